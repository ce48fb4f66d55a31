/*
 * arch/inline_cache.h - the code of an inline cache: guards, what a hit does, and the way out.
 *
 * Pure, like all of `struct cairn_arch`: plain values in, bytes out. Registers are given by DWARF
 * number, as `whole_register` gives it; which of them are vector registers their numbers say.
 *
 * The code keeps every register but the result's, and the architecture's scratch registers, in
 * which LLVM has no values across patch points, whatever the calling convention: r11 on x86-64, x16
 * and x17 on AArch64, r11, r12, CTR and LR on PPC64. Operands come in none of them but PPC64's r11,
 * which exits then find as it was. Nothing is written below the stack pointer.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_INLINE_CACHE_H
#define ARCH_INLINE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cairn_arch;

enum arch_cache_action {
    ARCH_CACHE_LOAD,
    ARCH_CACHE_STORE,
    ARCH_CACHE_CONSTANT,
    /* As an exit's stub, to the struct arch_exit at `target`, as if the site had called it. */
    ARCH_CACHE_EXIT,
    /* To a function, with all as it was at the site. Only where the site calls. */
    ARCH_CACHE_JUMP
};

/* What a load or a store gets to. */
struct arch_cache_field {
    int32_t offset;
    uint8_t width;          /* 1, 2, 4 or 8 bytes; 4 or 8 where `value` is a vector register */
    bool is_signed;         /* a load into a general register extends by the sign to all of it */
    bool is_out_of_line;    /* the offset is from where the pointer in the receiver points to */
    int32_t pointer_offset; /* of that pointer, of 8 bytes */
};

/* What must stay true: `mask` and `key` have no bits beyond the width, `key` none beyond `mask`.
 * `receiver` is a general register and not the stack pointer; it may be `value`, too. */
struct arch_cache_case {
    uint16_t receiver;
    uint8_t key_width; /* 1, 2, 4 or 8 bytes */
    int32_t key_offset;
    uint64_t mask;
    uint64_t key;

    enum arch_cache_action action;
    uint16_t value; /* the result's register, or the one that is stored; not of a jump */
    struct arch_cache_field field;
    /* What the register's low 8 bytes, or as many as `constant_width` of a vector register, become.
     * PPC64's floating-point registers hold a float of 4 bytes as a double. */
    uint64_t constant;
    uint8_t constant_width;
    uint64_t target; /* a function pointer, or the address of a struct arch_exit */

    /* Address of 8 bytes that a hit adds 1 to, aligned; 0: none. */
    uint64_t counter;
};

/* What must stay true: `count` is at most ARCH_CACHE_CASES_MAX; no case jumps unless `is_called`.
 */
struct arch_cache {
    const struct arch_cache_case *cases;
    size_t count;
    /* Registers that operands are in, whether a case names them or not. */
    const uint16_t *operands;
    size_t operand_count;
    /* The site calls the code, which returns; otherwise the site jumps to it, and it jumps to where
     * the site's bytes end, in reach of a direct branch. */
    bool is_called;
    uint64_t site_end;
    /* Of a call at the site: what exits are told. */
    uint64_t return_address;
    /* Flags stay as they are where that takes time; on AArch64 and PPC64 they always do. */
    bool keeps_flags;
    /* Cases may be told apart without a branch for each, where the architecture can and they allow
     * it: at the cost of such flags as `keeps_flags` is about. */
    bool may_select;
    /* Behind the last case: as an exit's stub (`encode_exit`), to the struct arch_exit at this
     * address, which is anywhere, as if the site had called it. */
    uint64_t exit_data;
    /* Or to the function with this pointer, if it is not 0; then `is_called`. */
    uint64_t miss_target;
};

/* Of all architectures. */
enum {
    ARCH_CACHE_CASES_MAX = 16,
    ARCH_CACHE_CASE_BYTES_MAX = 192,
    ARCH_CACHE_END_BYTES_MAX = 128,
    ARCH_CACHE_BYTES_MAX =
        ARCH_CACHE_CASES_MAX * ARCH_CACHE_CASE_BYTES_MAX + ARCH_CACHE_END_BYTES_MAX,
    /* Of the code's address. */
    ARCH_CACHE_ALIGNMENT = 32
};

/* What was written. */
struct arch_cache_size {
    size_t bytes;
    size_t case_bytes; /* those before the way out for misses, and literals of cases */
};

#endif
