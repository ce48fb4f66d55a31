/*
 * arch/registers.h - the registers that DWARF numbers denote. One table for each architecture whose
 * records can be decoded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_REGISTERS_H
#define ARCH_REGISTERS_H

#include <stdint.h>

/* Names are in the tables themselves: pointers would need a relocation each in every process. */
enum { ARCH_REGISTER_NAME_BYTES = 8 };

struct arch_registers {
    const char (*names)[ARCH_REGISTER_NAME_BYTES]; /* by number; "" where there is no register */
    uint16_t count;
    /* LLVM numbers the lower halves of the first `lower_half_count` registers from here on. */
    uint16_t lower_halves;
    uint16_t lower_half_count;
};

/* Returns the register that contains a register, which may be such a half. */
uint16_t registers_whole(const struct arch_registers *registers, uint16_t dwarf);

/* Returns the name of that register; NULL if it has no name. */
const char *registers_name(const struct arch_registers *registers, uint16_t dwarf);

extern const struct arch_registers aarch64_registers;
extern const struct arch_registers ppc64_registers;
extern const struct arch_registers riscv64_registers;
extern const struct arch_registers systemz_registers;
extern const struct arch_registers x86_64_registers;

#endif
