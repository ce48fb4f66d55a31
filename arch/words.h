/*
 * arch/words.h - helpers for architectures whose instructions are words of 4 bytes: AArch64 and
 * PPC64.
 *
 * Instructions are integers here; the byte order in the architecture's table determines their bytes
 * in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_WORDS_H
#define ARCH_WORDS_H

#include "arch/arch.h"

enum { WORDS_BYTES = 4 };

/* An instruction that LLVM emits: the bits under `mask`. The other bits are an operand. */
struct words_pattern {
    uint32_t mask;
    uint32_t bits;
    const char *text;
};

uint32_t words_read(const struct cairn_arch *arch, const uint8_t *bytes);
void words_write(const struct cairn_arch *arch, uint8_t *bytes, uint32_t word);

/* A buffer to which code is appended word by word. */
struct words_code {
    const struct cairn_arch *arch;
    uint8_t *bytes;
    size_t size; /* bytes written so far */
};

void words_append(struct words_code *code, uint32_t word);

/* Fills the buffer with `word`. A part of a word at the end is left unchanged. */
void words_fill(const struct cairn_arch *arch, uint8_t *bytes, size_t size, uint32_t word);

/* Returns the size in bytes of the longest prefix that consists of words equal to `word`. */
size_t words_leading(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                     uint32_t word);

static inline bool words_match(const struct words_pattern *pattern, uint32_t word)
{
    return (word & pattern->mask) == pattern->bits;
}

/* Whether the `length` bytes are one instruction that matches one of the patterns. */
bool words_match_any(const struct cairn_arch *arch, const uint8_t *bytes, size_t length,
                     const struct words_pattern *patterns, size_t count);

/* Checks that the region consists of whole instructions. CORRUPT. */
enum cairn_status words_expect_aligned(size_t size, uint64_t address, struct cairn_error *error);

/* Checks that the region continues at `offset` with these instructions. CORRUPT, with the address
 * of the first word that differs or lies past the region's end. */
enum cairn_status words_expect(const struct cairn_arch *arch, const uint8_t *region, size_t size,
                               uint64_t address, size_t offset,
                               const struct words_pattern *patterns, size_t count,
                               struct cairn_error *error);

/* Checks that the region contains only `nop` from `offset` on. CORRUPT, with the address of the
 * first word that differs. */
enum cairn_status words_expect_nops(const struct cairn_arch *arch, const uint8_t *region,
                                    size_t size, uint64_t address, size_t offset, uint32_t nop,
                                    struct cairn_error *error);

/*
 * Chooses the place of the patch word in a region in which `before` bytes must directly precede it
 * and `after` bytes must directly follow it. The return address of a call is that of LLVM's call,
 * or as close to it as the region's size allows. RANGE.
 */
enum cairn_status words_place(const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, size_t before, size_t after,
                              struct arch_placement *placement, struct cairn_error *error);

/* Whether an inline cache at `address` reaches its return address from every position in its code.
 * The result depends only on the addresses, not on the cases. */
bool words_reach_return(const struct cairn_arch *arch, const struct arch_cache *cache,
                        uint64_t address);

/* Appends the end of a hit: `return_instruction` if the cache is called, and otherwise a branch to
 * the cache's return address, which must be in reach. `address` is the address of the code. */
void words_append_return(struct words_code *code, const struct arch_cache *cache, uint64_t address,
                         uint32_t return_instruction);

/* The three instructions that a patch word may hold. The displacement of a branch is a signed
 * number of words, relative to the branch itself, in the `displacement_bits` bits from bit
 * `displacement_shift` on. */
struct words_branches {
    uint32_t nop;
    uint32_t call;
    uint32_t jump;
    unsigned displacement_bits;
    unsigned displacement_shift;
};

/* Implement `encode_branch` and `decode_branch` of arch/arch.h. A target that is not a multiple of
 * the instruction size is out of reach. */
bool words_encode_branch(const struct words_branches *branches, enum arch_branch branch,
                         uint64_t address, uint64_t target, uint64_t *bits);
bool words_decode_branch(const struct words_branches *branches, uint64_t bits, uint64_t address,
                         enum arch_branch *branch, uint64_t *target);

/* Returns the target of a branch at `address`. */
uint64_t words_branch_target(const struct words_branches *branches, uint64_t address,
                             uint32_t instruction);

#endif
