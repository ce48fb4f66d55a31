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
    size_t size;      /* bytes written so far */
    uint64_t address; /* at which the code will be executed */
};

void words_append(struct words_code *code, uint32_t word);

/* Fills the buffer with `word`. A part of a word at the end is left unchanged. */
void words_fill(const struct cairn_arch *arch, uint8_t *bytes, size_t size, uint32_t word);

static inline bool words_match(const struct words_pattern *pattern, uint32_t word)
{
    return (word & pattern->mask) == pattern->bits;
}

/* Checks that the region consists of whole instructions. CORRUPT. */
enum cairn_status words_expect_aligned(size_t size, uint64_t address, struct cairn_error *error);

/* Checks that the region continues at `offset` with these instructions. CORRUPT, with the address
 * of the first word that differs or lies past the region's end. */
enum cairn_status words_expect(const struct cairn_arch *arch, const uint8_t *region, size_t size,
                               uint64_t address, size_t offset,
                               const struct words_pattern *patterns, size_t count,
                               struct cairn_error *error);

/* Checks that the region contains only no-ops from `offset` on. CORRUPT, with the address of the
 * first word that differs. */
enum cairn_status words_expect_nops(const struct cairn_arch *arch, const uint8_t *region,
                                    size_t size, uint64_t address, size_t offset,
                                    struct cairn_error *error);

/*
 * An architecture's part of an inline cache's code. Functions that are NULL append nothing.
 */
struct words_cache {
    uint32_t return_instruction; /* where the cache is called */
    /* Distance in bytes of a guard's branch, shifted left by this, is its operand. */
    unsigned guard_shift;
    /* Appends what precedes all cases. */
    void (*begin)(struct words_code *code, const struct arch_cache *cache);
    /* Appends a guard, which ends with the branch that a miss takes, without its operand. */
    void (*guard)(struct words_code *code, const struct arch_cache *cache,
                  const struct arch_cache_case *one);
    void (*count)(struct words_code *code, uint64_t counter);
    /* Appends what precedes the action of a hit and the end. */
    void (*leave)(struct words_code *code, const struct arch_cache *cache);
    /* Append the actions: a load or a store, a constant, a jump to a function, and a jump to the
     * exit with this data. */
    void (*field)(struct words_code *code, const struct arch_cache_case *one);
    void (*result)(struct words_code *code, const struct arch_cache_case *one);
    void (*jump)(struct words_code *code, uint64_t target);
    void (*exit)(struct words_code *code, const struct arch_cache *cache, uint64_t data);
    /* Appends the literal of a constant, after the hit. */
    void (*literal)(struct words_code *code, const struct arch_cache_case *one);
    /* Whether a case may use the register, as a receiver or as a value. */
    bool (*is_free)(uint16_t dwarf, bool is_receiver);
};

/* Implements `encode_cache` of arch/arch.h. */
bool words_encode_cache(const struct words_cache *encoder, const struct cairn_arch *arch,
                        const struct arch_cache *cache, uint64_t address, uint8_t *code,
                        struct arch_cache_size *size);

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

/* What is the same for all ABIs of an architecture. */
struct words_target {
    struct words_branches branches;
    const struct words_pattern *calls;
    size_t call_count;
    /* What `may_be_exchanged` accepts. */
    const struct words_pattern *exchangeable;
    size_t exchangeable_count;
    /* Bytes that must directly precede the patch word, and directly follow it. */
    size_t before;
    size_t after;
};

/* Implement these functions of arch/arch.h. `place` chooses a place in which the return address of
 * a call is that of LLVM's call, or as close to it as the region's size allows. */
void words_fill_nops(const struct cairn_arch *arch, uint8_t *bytes, size_t size);
size_t words_leading_nops(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);
size_t words_call_length(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);
bool words_may_be_exchanged(const struct cairn_arch *arch, const uint8_t *bytes, size_t length);
enum cairn_status words_place(const struct cairn_arch *arch,
                              const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, struct arch_placement *placement,
                              struct cairn_error *error);

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
