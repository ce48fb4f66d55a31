/* SPDX-License-Identifier: MIT */
#ifndef ARCH_PPC64_TARGET_H
#define ARCH_PPC64_TARGET_H

#include "arch/arch.h"

extern const struct cairn_arch ppc64_elfv2_arch;
extern const struct cairn_arch ppc64_elfv1_arch;

const char *ppc64_register_name(uint16_t dwarf);
uint16_t ppc64_whole_register(uint16_t dwarf);

#endif
