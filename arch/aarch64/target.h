/* SPDX-License-Identifier: MIT */
#ifndef ARCH_AARCH64_TARGET_H
#define ARCH_AARCH64_TARGET_H

#include "arch/words.h"

extern const struct cairn_arch aarch64_arch;

/* Appends an `adrp` of the register; false if `target` is out of reach. An `add` of
 * aarch64_in_page(target) completes the address. */
bool aarch64_append_page(struct words_code *code, uint32_t general, uint64_t target);
uint32_t aarch64_in_page(uint64_t address);

/* inline_cache.c */
bool aarch64_encode_cache(const struct cairn_arch *arch, const struct arch_cache *cache,
                          uint64_t address, uint8_t *code, struct arch_cache_size *size);
bool aarch64_encode_inline(const struct cairn_arch *arch, const struct arch_cache *cache,
                           struct arch_cache_inline *inlined, uint8_t *code);

#endif
