/* SPDX-License-Identifier: MIT */
#ifndef ARCH_AARCH64_TARGET_H
#define ARCH_AARCH64_TARGET_H

#include "arch/arch.h"

extern const struct cairn_arch aarch64_arch;

const char *aarch64_register_name(uint16_t dwarf);
uint16_t aarch64_whole_register(uint16_t dwarf);

#endif
