/* SPDX-License-Identifier: MIT */
#ifndef ARCH_PPC64_TARGET_H
#define ARCH_PPC64_TARGET_H

#include "arch/words.h"

extern const struct cairn_arch ppc64_elfv2_arch;
extern const struct cairn_arch ppc64_elfv1_arch;

#define PPC64_BCTR UINT32_C(0x4E800420)
#define PPC64_TRAP UINT32_C(0x7FE00008)

/* Instructions for `last` of ppc64_append_address, which sign-extend the lower 16 bits. */
#define PPC64_LOAD UINT32_C(0xE98C0000) /* ld r12, #(r12) */
#define PPC64_ADD UINT32_C(0x398C0000)  /* addi r12, r12, # */

/* Appends code that loads an address, or the memory at an address, into r12: `last` is the
 * instruction that adds the lower 16 bits to r12. It always takes five instructions, because the
 * size of code must not depend on addresses. */
enum { PPC64_ADDRESS_BYTES = 20 };
void ppc64_append_address(struct words_code *code, uint64_t address, uint32_t last);

/* Appends the instructions that enter the function whose pointer is in r12, except for the branch
 * to CTR. */
void ppc64_append_entering(struct words_code *code);

/* inline_cache.c */
extern const struct arch_cache_encoder ppc64_cache_encoder;

#endif
