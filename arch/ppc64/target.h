/* SPDX-License-Identifier: MIT */
#ifndef ARCH_PPC64_TARGET_H
#define ARCH_PPC64_TARGET_H

#include "arch/arch.h"

const char *ppc64_register_name(uint16_t dwarf);

#endif
