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

/* Writes `word` over and over; a part of a word at the end stays as it is. */
void words_fill(const struct cairn_arch *arch, uint8_t *bytes, size_t size, uint32_t word);

/* Bytes, from the first one on, that are whole words equal to `word`. */
size_t words_leading(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                     uint32_t word);

static inline bool words_match(const struct words_pattern *pattern, uint32_t word)
{
    return (word & pattern->mask) == pattern->bits;
}

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

/*
 * A branch's displacement: a signed number of words, `bits` bits wide, counted from the branch
 * itself. False if `target` is out of reach or no instruction's address.
 */
bool words_displacement(uint64_t address, uint64_t target, unsigned bits, uint32_t *field);

/* The reverse. */
uint64_t words_branch_target(uint64_t address, unsigned bits, uint32_t field);

#endif
