/* SPDX-License-Identifier: MIT */
#ifndef ARCH_X86_64_TARGET_H
#define ARCH_X86_64_TARGET_H

#include "arch/arch.h"

extern const struct cairn_arch x86_64_arch;

bool x86_64_encode_cache(const struct cairn_arch *arch, const struct arch_cache *cache,
                         uint64_t address, uint8_t *code, struct arch_cache_size *size);
bool x86_64_encode_inline(const struct cairn_arch *arch, const struct arch_cache *cache,
                          struct arch_cache_inline *inlined, uint8_t *code);
bool x86_64_encode_miss(const struct cairn_arch *arch, uint64_t address, uint64_t target,
                        uint8_t *code);
bool x86_64_selects_cases(const struct arch_cache *cache);

#endif
