/* SPDX-License-Identifier: MIT */
#ifndef ARCH_PPC64_TARGET_H
#define ARCH_PPC64_TARGET_H

#include "arch/arch.h"

extern const struct cairn_arch ppc64_elfv2_arch;
extern const struct cairn_arch ppc64_elfv1_arch;

/* Instructions for `last` of ppc64_write_address, which sign-extend the lower 16 bits. */
#define PPC64_LOAD UINT32_C(0xE98C0000) /* ld r12, #(r12) */
#define PPC64_ADD UINT32_C(0x398C0000)  /* addi r12, r12, # */

/* Writes code that loads an address, or the memory at an address, into r12: `last` is the
 * instruction that adds the lower 16 bits to r12. The size is always PPC64_ADDRESS_BYTES. Returns
 * the end of the code. */
enum { PPC64_ADDRESS_BYTES = 20 };
uint8_t *ppc64_write_address(const struct cairn_arch *arch, uint64_t address, uint32_t last,
                             uint8_t *code);

/* Writes the instructions that enter the function whose pointer is in r12, except for the branch to
 * CTR. Returns the end of the code. */
uint8_t *ppc64_write_entering(const struct cairn_arch *arch, uint8_t *code);

/* inline_cache.c */
bool ppc64_encode_cache(const struct cairn_arch *arch, const struct arch_cache *cache,
                        uint64_t address, uint8_t *code, struct arch_cache_size *size);

const char *ppc64_register_name(uint16_t dwarf);
uint16_t ppc64_whole_register(uint16_t dwarf);

#endif
