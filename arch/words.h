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

/* What the functions below need to know about an ABI. */
struct words_target {
    /* The three instructions that a patch word may hold. The displacement of a branch is a signed
     * number of words, relative to the branch itself, in the `displacement_bits` bits from bit
     * `displacement_shift` on. */
    uint32_t nop;
    uint32_t call;
    uint32_t jump;
    unsigned displacement_bits;
    unsigned displacement_shift;
    /* All instructions that are calls. */
    const struct words_pattern *calls;
    size_t call_count;
    /* What `may_be_exchanged` accepts. */
    const struct words_pattern *exchangeable;
    size_t exchangeable_count;
    /* LLVM's call of an immediate. The operands of its instructions are 16 bits each of the target,
     * the highest first. */
    const struct words_pattern *far_call;
    size_t far_call_count;
    /* Instructions that must directly precede and follow the patch word, or 0.
     * `reload` is the last instruction of `far_call`, after the return address. Where there is such
     * an instruction, LLVM calls symbols by `call` and a no-op. */
    uint32_t save;
    uint32_t reload;
};

/* A buffer to which code is appended word by word. */
struct words_code {
    const struct cairn_arch *arch;
    uint8_t *bytes;
    size_t size;      /* bytes written so far */
    uint64_t address; /* at which the code will be executed */
};

void words_append(struct words_code *code, uint32_t word);

/* Reads a word. */
uint32_t words_read(const struct cairn_arch *arch, const uint8_t *bytes);

/* Appends `size` bytes of words. */
void words_append_all(struct words_code *code, const uint32_t *words, size_t size);

/* Appends `word` up to a size of `end` bytes, as padding. */
void words_append_until(struct words_code *code, size_t end, uint32_t word);

/*
 * An architecture's part of an inline cache's code. Functions that are NULL append nothing.
 */
struct words_cache {
    uint32_t return_instruction; /* where the cache is called */
    /* Distance in bytes of a guard's branch, shifted left by this, is its operand. */
    unsigned guard_shift;
    /* Bits that turn this branch into one that a hit takes. */
    uint32_t guard_inversion;
    /* Appends what precedes all cases. */
    void (*begin)(struct words_code *code, const struct arch_cache *cache);
    /* Appends a guard, which ends with the branch that a miss takes, without its operand. */
    void (*guard)(struct words_code *code, const struct arch_cache *cache,
                  const struct arch_cache_case *one);
    /* Append the second guard, and the check of the index, which end in the same way. */
    void (*second)(struct words_code *code, const struct arch_cache_second *second);
    void (*bounds)(struct words_code *code, const struct arch_cache *cache,
                   const struct arch_cache_case *one);
    void (*count)(struct words_code *code, uint64_t counter);
    /* Append the search in the table, which ends with the branch that a miss takes, without its
     * operand; and the access to the field that was found. */
    void (*search)(struct words_code *code, const struct arch_cache *cache);
    void (*found)(struct words_code *code, const struct arch_cache_case *access);
    /* Appends what precedes the action of a hit and the end. */
    void (*leave)(struct words_code *code, const struct arch_cache *cache);
    /* Append the actions: a load or a store, a constant, a jump to a function, and a jump to the
     * exit with this data. */
    void (*field)(struct words_code *code, const struct arch_cache_case *one);
    void (*result)(struct words_code *code, const struct arch_cache_case *one);
    /* Appends what follows a store. */
    void (*epilogue)(struct words_code *code, const struct arch_cache_case *one);
    void (*jump)(struct words_code *code, const struct arch_cache *cache, uint64_t target);
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

/* Implements `encode_inline`. The branch over the miss goes to the hit's action, which ends with
 * the site: so a hit executes no padding. */
bool words_encode_inline(const struct words_cache *encoder, const struct cairn_arch *arch,
                         const struct arch_cache *cache, struct arch_cache_inline *inlined,
                         uint8_t *code);
bool words_encode_miss(const struct cairn_arch *arch, uint64_t address, uint64_t target,
                       uint8_t *code);

/*
 * Implement these functions of arch/arch.h. `place` chooses a place in which the return address of
 * a call is that of LLVM's call, or as close to it as the region's size allows. A target of a
 * branch that is not a multiple of the instruction size is out of reach.
 */
enum cairn_status words_recognise(const struct cairn_arch *arch, const uint8_t *region, size_t size,
                                  uint64_t address, struct arch_patchpoint *patchpoint,
                                  struct cairn_error *error);
enum cairn_status words_place(const struct cairn_arch *arch,
                              const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, struct arch_placement *placement,
                              struct cairn_error *error);
void words_arm(const struct cairn_arch *arch, uint8_t *region, size_t size,
               const struct arch_patchpoint *patchpoint, const struct arch_placement *placement);
bool words_encode_branch(const struct cairn_arch *arch, enum cairn_site_state branch,
                         uint64_t address, uint64_t target, size_t length, uint64_t *bits);
bool words_decode_branch(const struct cairn_arch *arch, uint64_t bits, uint64_t address,
                         size_t length, enum cairn_site_state *branch, uint64_t *target);
void words_fill_nops(const struct cairn_arch *arch, uint8_t *bytes, size_t size);
size_t words_leading_nops(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);
size_t words_call_length(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);
bool words_may_be_exchanged(const struct cairn_arch *arch, const uint8_t *bytes, size_t length);

#endif
