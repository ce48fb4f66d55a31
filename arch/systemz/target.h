/* SPDX-License-Identifier: MIT */
#ifndef ARCH_SYSTEMZ_TARGET_H
#define ARCH_SYSTEMZ_TARGET_H

#include "arch/arch.h"

const char *systemz_register_name(uint16_t dwarf);

#endif
