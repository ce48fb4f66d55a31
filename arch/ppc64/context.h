/*
 * PPC64: offsets of the registers in a context. For C and for assembly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_PPC64_CONTEXT_H
#define ARCH_PPC64_CONTEXT_H

#include "arch/context.h"

#define CONTEXT_CR CONTEXT_FLAGS
#define CONTEXT_LR 40
#define CONTEXT_CTR 48
#define CONTEXT_XER 56
#define CONTEXT_GENERAL 64
#define CONTEXT_R(number) (CONTEXT_GENERAL + 8 * (number))
#define CONTEXT_FPSCR 320
/* First vs0 to vs31, which include f0 to f31, with the first doubleword first. Then vs32 to vs63,
 * which are v0 to v31, as a vector store writes them. */
#define CONTEXT_VECTORS 384
#define CONTEXT_VECTOR_BYTES 16
#define CONTEXT_VS(number) (CONTEXT_VECTORS + CONTEXT_VECTOR_BYTES * (number))

/* FLOAT: the first doublewords of vs0 to vs31. ALTIVEC: vs32 to vs63 in addition. VSX: all of vs0
 * to vs63. */
#define CONTEXT_LEVEL_FLOAT 1
#define CONTEXT_LEVEL_ALTIVEC 2
#define CONTEXT_LEVEL_VSX 3

/*
 * Bits of `present`. First word: 0 to 31 general registers, 32 to 63 floating-point registers.
 * Second word: 64 and 68 to 75 CR, 65 LR, 66 CTR, 76 XER; 77 to 108 vector registers.
 */
#define CONTEXT_PRESENT_GENERAL 0x00000000FFFFFFFF
#define CONTEXT_PRESENT_FLOAT 0xFFFFFFFF00000000
#define CONTEXT_PRESENT_SPECIAL 0x0000000000001FF7
#define CONTEXT_PRESENT_VECTORS 0x00001FFFFFFFE000
/* Without r12 and CTR, which stubs use. */
#define CONTEXT_PRESENT_AT_EXIT 0xFFFFFFFFFFFFEFFF
#define CONTEXT_PRESENT_SPECIAL_AT_EXIT 0x0000000000001FF3
/* r1, r13 to r31, f14 to f31; CR (of which fields 2 to 4 are callee-saved); v20 to v31. */
#define CONTEXT_PRESENT_KEPT 0xFFFFC000FFFFE002
#define CONTEXT_PRESENT_KEPT_SPECIAL 0x0000000000000FF1
#define CONTEXT_PRESENT_KEPT_VECTORS 0x00001FFE00000000

#ifndef __ASSEMBLER__
struct __attribute__((may_alias)) host_context {
    struct arch_context_head head; /* the unused words are LR, CTR and XER */
    uint64_t general[32];
    uint64_t fpscr;
    uint64_t unused[7];
    uint64_t vectors[64][2];
};

CONTEXT_ASSERT_OFFSET(struct arch_context_head, unused[0], CONTEXT_LR);
CONTEXT_ASSERT_OFFSET(struct arch_context_head, unused[1], CONTEXT_CTR);
CONTEXT_ASSERT_OFFSET(struct arch_context_head, unused[2], CONTEXT_XER);
CONTEXT_ASSERT_OFFSET(struct host_context, general, CONTEXT_GENERAL);
CONTEXT_ASSERT_OFFSET(struct host_context, fpscr, CONTEXT_FPSCR);
CONTEXT_ASSERT_OFFSET(struct host_context, vectors, CONTEXT_VECTORS);
_Static_assert(sizeof(struct host_context) <= CONTEXT_USED_BYTES_MAX, "as on every host");

/* Declared here for assembly. */
uint32_t arch_host_vector_level(void);
#endif
#endif
