/* SPDX-License-Identifier: MIT */
#ifndef ARCH_X86_64_TARGET_H
#define ARCH_X86_64_TARGET_H

#include "arch/arch.h"

extern const struct cairn_arch x86_64_arch;

bool x86_64_encode_cache(const struct cairn_arch *arch, const struct arch_cache *cache,
                         uint64_t address, uint8_t *code, struct arch_cache_size *size);

#endif
