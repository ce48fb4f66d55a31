/*
 * x86-64: offsets of the registers in a context. For C and for assembly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_X86_64_CONTEXT_H
#define ARCH_X86_64_CONTEXT_H

#include "arch/context.h"

/* The general registers in the order of their DWARF numbers. */
#define CONTEXT_RAX 64
#define CONTEXT_RDX 72
#define CONTEXT_RCX 80
#define CONTEXT_RBX 88
#define CONTEXT_RSI 96
#define CONTEXT_RDI 104
#define CONTEXT_RBP 112
#define CONTEXT_RSP 120
#define CONTEXT_R(number) (CONTEXT_RAX + 8 * (number)) /* r8 to r15 */
#define CONTEXT_MASKS 192
#define CONTEXT_VECTORS 256
#define CONTEXT_VECTOR_BYTES 64
#define CONTEXT_MXCSR CONTEXT_CONTROL

#define CONTEXT_LEVEL_SSE 1
#define CONTEXT_LEVEL_AVX 2
#define CONTEXT_LEVEL_AVX512 3

/* Bits of `present`, in both words: 0 to 16 general registers and PC, 17 to 32 vector registers, 49
 * flags, 64 MXCSR, 67 to 82 vector registers, 118 to 125 mask registers. */
#define CONTEXT_PRESENT_GENERAL 0x000200000001FFFF
#define CONTEXT_PRESENT_VECTORS 0x00000001FFFE0000
#define CONTEXT_PRESENT_CONTROL 0x0000000000000001
#define CONTEXT_PRESENT_AVX512 0x3FC000000007FFF8
/* rbx, rbp, rsp, r12 to r15, rip */
#define CONTEXT_PRESENT_KEPT 0x000000000001F0C8

#ifndef __ASSEMBLER__
struct __attribute__((may_alias)) host_context {
    struct arch_context_head head;
    uint64_t general[16];
    uint64_t masks[8];
    uint8_t vectors[32][CONTEXT_VECTOR_BYTES];
};

CONTEXT_ASSERT_OFFSET(struct host_context, general, CONTEXT_RAX);
CONTEXT_ASSERT_OFFSET(struct host_context, general[15], CONTEXT_R(15));
CONTEXT_ASSERT_OFFSET(struct host_context, masks, CONTEXT_MASKS);
CONTEXT_ASSERT_OFFSET(struct host_context, vectors, CONTEXT_VECTORS);
_Static_assert(sizeof(struct host_context) <= CONTEXT_USED_BYTES_MAX, "resuming needs the rest");
#endif
#endif
