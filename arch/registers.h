/*
 * arch/registers.h - the registers that DWARF numbers denote. One table for each architecture whose
 * records can be decoded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_REGISTERS_H
#define ARCH_REGISTERS_H

#include <stdint.h>

struct arch_registers {
    const char *const *names; /* by number; NULL where there is no register */
    uint16_t count;
    /* LLVM numbers the lower halves of the first `lower_half_count` registers from here on. */
    uint16_t lower_halves;
    uint16_t lower_half_count;
};

extern const struct arch_registers aarch64_registers;
extern const struct arch_registers ppc64_registers;
extern const struct arch_registers riscv64_registers;
extern const struct arch_registers systemz_registers;
extern const struct arch_registers x86_64_registers;

#endif
