/*
 * AArch64: offsets of the registers in a context. For C and for assembly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_AARCH64_CONTEXT_H
#define ARCH_AARCH64_CONTEXT_H

#include "arch/context.h"

#define CONTEXT_FPCR CONTEXT_CONTROL
#define CONTEXT_FPSR 40
/* x0 to x30 and the stack pointer, in the order of their DWARF numbers. */
#define CONTEXT_GENERAL 64
#define CONTEXT_X(number) (CONTEXT_GENERAL + 8 * (number))
#define CONTEXT_SP CONTEXT_X(31)
#define CONTEXT_VECTORS 320
#define CONTEXT_VECTOR_BYTES 16
#define CONTEXT_Q(number) (CONTEXT_VECTORS + CONTEXT_VECTOR_BYTES * (number))

#define CONTEXT_LEVEL_SIMD 1

/* Bits of `present`. First word: 0 to 31, general registers. Second word: 64 to 95, vector
 * registers. */
#define CONTEXT_PRESENT_GENERAL 0xFFFFFFFF
#define CONTEXT_PRESENT_VECTORS 0xFFFFFFFF
/* Without x16 and x17, which stubs use. */
#define CONTEXT_PRESENT_AT_EXIT 0xFFFCFFFF
/* x19 to x29, the stack pointer, and v8 to v15 (of which the lower halves are callee-saved). */
#define CONTEXT_PRESENT_KEPT 0xBFF80000
#define CONTEXT_PRESENT_KEPT_VECTORS 0xFF00

#ifndef __ASSEMBLER__
struct __attribute__((may_alias)) host_context {
    struct arch_context_head head; /* the first of the unused words is FPSR */
    uint64_t general[32];
    uint8_t vectors[32][CONTEXT_VECTOR_BYTES];
};

CONTEXT_ASSERT_OFFSET(struct arch_context_head, unused, CONTEXT_FPSR);
CONTEXT_ASSERT_OFFSET(struct host_context, general, CONTEXT_GENERAL);
CONTEXT_ASSERT_OFFSET(struct host_context, general[31], CONTEXT_SP);
CONTEXT_ASSERT_OFFSET(struct host_context, vectors, CONTEXT_VECTORS);
_Static_assert(sizeof(struct host_context) <= CONTEXT_USED_BYTES_MAX, "as on every host");
#endif
#endif
