/* SPDX-License-Identifier: MIT */
#ifndef ARCH_X86_64_TARGET_H
#define ARCH_X86_64_TARGET_H

#include "arch/arch.h"

extern const struct cairn_arch x86_64_arch;

/* inline_cache.c */
extern const struct arch_cache_encoder x86_64_cache_encoder;

#endif
