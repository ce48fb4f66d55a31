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
extern const struct arch_cache_encoder aarch64_cache_encoder;

#endif
