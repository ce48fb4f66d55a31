/* SPDX-License-Identifier: MIT */
#ifndef ARCH_RISCV64_TARGET_H
#define ARCH_RISCV64_TARGET_H

#include "arch/arch.h"

const char *riscv64_register_name(uint16_t dwarf);

#endif
