/*
 * arch/words.h - for architectures whose instructions are all words of 4 bytes: AArch64, PPC64.
 *
 * Instructions are plain numbers here; the table's byte order says how they lie in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_WORDS_H
#define ARCH_WORDS_H

#include "arch/arch.h"

enum { WORDS_BYTES = 4 };

/* One instruction that LLVM emits: the bits under `mask`. The others are an operand. */
struct words_pattern {
    uint32_t mask;
    uint32_t bits;
    const char *text;
};

uint32_t words_read(const struct cairn_arch *arch, const uint8_t *bytes);
void words_write(const struct cairn_arch *arch, uint8_t *bytes, uint32_t word);

/* Code that is being written, a word behind the other. */
struct words_code {
    const struct cairn_arch *arch;
    uint8_t *bytes;
    size_t size; /* of what is written */
};

void words_append(struct words_code *code, uint32_t word);

/* Writes `word` over and over; a part of a word at the end stays as it is. */
void words_fill(const struct cairn_arch *arch, uint8_t *bytes, size_t size, uint32_t word);

/* Bytes, from the first one on, that are whole words equal to `word`. */
size_t words_leading(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                     uint32_t word);

static inline bool words_match(const struct words_pattern *pattern, uint32_t word)
{
    return (word & pattern->mask) == pattern->bits;
}

/* Whether `length` bytes are one instruction, and one of these. */
bool words_match_any(const struct cairn_arch *arch, const uint8_t *bytes, size_t length,
                     const struct words_pattern *patterns, size_t count);

/* Whether the region consists of whole instructions. CORRUPT. */
enum cairn_status words_expect_aligned(size_t size, uint64_t address, struct cairn_error *error);

/* Whether the region goes on at `offset` with these instructions. CORRUPT, naming the first word
 * that is another one or lies beyond the region's end. */
enum cairn_status words_expect(const struct cairn_arch *arch, const uint8_t *region, size_t size,
                               uint64_t address, size_t offset,
                               const struct words_pattern *patterns, size_t count,
                               struct cairn_error *error);

/* Whether the region, from `offset` on, holds nothing but `nop`. CORRUPT, naming the first word
 * that is another one. */
enum cairn_status words_expect_nops(const struct cairn_arch *arch, const uint8_t *region,
                                    size_t size, uint64_t address, size_t offset, uint32_t nop,
                                    struct cairn_error *error);

/*
 * The place of the patch word in a region where `before` and `after` bytes have to lie directly
 * before and behind it: such that a call returns where LLVM's own call did, or as near to that as
 * there is room. RANGE.
 */
enum cairn_status words_place(const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, size_t before, size_t after,
                              struct arch_placement *placement, struct cairn_error *error);

/* Whether an inline cache at `address` reaches its return address, wherever in the code the
 * branches stand: that depends on the addresses alone, and not on the cases. */
bool words_reach_return(const struct cairn_arch *arch, const struct arch_cache *cache,
                        uint64_t address);

/* What ends a hit: the instruction that returns, where the cache is called, and otherwise a branch
 * to its return address, which has to be in reach. `address` is the code's. */
void words_append_return(struct words_code *code, const struct arch_cache *cache, uint64_t address,
                         uint32_t return_instruction);

/* The three instructions that a patch word may hold. A branch's displacement is a signed number of
 * words, counted from the branch itself, `displacement_bits` wide from bit `displacement_shift` on.
 */
struct words_branches {
    uint32_t nop;
    uint32_t call;
    uint32_t jump;
    unsigned displacement_bits;
    unsigned displacement_shift;
};

/* As `encode_branch` and `decode_branch` of arch/arch.h; a target that is no instruction's address
 * is out of reach. */
bool words_encode_branch(const struct words_branches *branches, enum arch_branch branch,
                         uint64_t address, uint64_t target, uint64_t *bits);
bool words_decode_branch(const struct words_branches *branches, uint64_t bits, uint64_t address,
                         enum arch_branch *branch, uint64_t *target);

/* Where a branch at `address` goes to. */
uint64_t words_branch_target(const struct words_branches *branches, uint64_t address,
                             uint32_t instruction);

#endif
