/*
 * arch/inline_cache.h - the machine code of inline caches: guards, the actions of hits, and the
 * branch of misses.
 *
 * Pure, like all of `struct cairn_arch`: plain values in, bytes out. Registers are DWARF numbers,
 * as `whole_register` returns them; the number also tells vector registers from general registers.
 *
 * The code preserves every register except for the result's and the scratch registers of the
 * architecture, in which LLVM keeps no values across patch points, whatever the calling convention:
 * r11 on x86-64, x16 and x17 on AArch64, r11, r12, CTR and LR on PPC64. Operands are never in these
 * registers, except for PPC64's r11, which is then unchanged when the code reaches an exit. Nothing
 * is written below the stack pointer.
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
    /* Jumps to the struct arch_exit at `target`, like an exit's stub, as if the site had called
     * it. */
    ARCH_CACHE_EXIT,
    /* Jumps to a function with the registers of the site unchanged, which returns to the site. If
     * the site does not call the code, the code sets the return address, which processors do not
     * predict, and PPC64 does not support. In the site's own bytes, it is a call that ends them. */
    ARCH_CACHE_JUMP
};

/* The memory that a load or a store accesses. */
struct arch_cache_field {
    int32_t offset;
    uint8_t width;          /* 1, 2, 4 or 8 bytes; 4 or 8 where `value` is a vector register */
    bool is_signed;         /* a load into a general register sign-extends to the whole register */
    bool is_out_of_line;    /* the offset is relative to the address that a pointer in the receiver
                             * holds */
    int32_t pointer_offset; /* offset of that pointer, of 8 bytes */
};

/* A second guard, which compares the word at a constant address. Invariants: as for the first. */
struct arch_cache_second {
    uint8_t width; /* 0: there is no second guard */
    uint64_t word; /* address */
    uint64_t mask;
    uint64_t key;
};

/* The elements of an array. The number of elements is in the receiver, and is less than 2^63. A
 * case with an index that is not less misses. Element `index` is `index` times the field's width
 * after the field's offset. */
struct arch_cache_elements {
    uint8_t length_width; /* 1, 2, 4 or 8 bytes; 0: the case accesses a field */
    int32_t length_offset;
    uint16_t index; /* general register, unsigned */
    bool is_narrow; /* only the low 4 bytes of the register are the index */
};

/* What a store does after it has stored the value. */
struct arch_cache_epilogue {
    uint8_t key_width; /* 0: the key does not change; otherwise the guard's width */
    uint64_t key;      /* new value of the guard's word */
    /* Whether the byte `card_shift` bits of the receiver's address after `cards` is set to `card`.
     * `cards` shifted left by `card_shift` is less than 2^63. */
    bool marks_card;
    uint8_t card_shift;
    uint8_t card;
    uint64_t cards;
};

/* Invariants: `mask` and `key` have no bits beyond the width, and `key` has no bits outside `mask`.
 * `receiver` is a general register other than the stack pointer; it may be the same as `value`. */
struct arch_cache_case {
    uint16_t receiver;
    uint8_t key_width; /* 1, 2, 4 or 8 bytes */
    int32_t key_offset;
    uint64_t mask;
    uint64_t key;
    struct arch_cache_second second;

    enum arch_cache_action action;
    uint16_t value; /* register of the result, or of the value to store; unused by jumps */
    struct arch_cache_field field;
    uint64_t holder; /* of a load: the address that replaces the receiver, or 0 */
    struct arch_cache_elements elements; /* of a load or a store without a holder */
    struct arch_cache_epilogue epilogue; /* of a store */
    /* New value of the low 8 bytes of the register, or of the low `constant_width` bytes of a
     * vector register. PPC64's floating-point registers hold a float of 4 bytes as a double. */
    uint64_t constant;
    uint8_t constant_width;
    uint64_t target; /* a function pointer, or the address of a struct arch_exit */

    /* Address of an aligned counter of 8 bytes that a hit increments; 0 if there is no counter. */
    uint64_t counter;
};

/*
 * A table of fields by key, for cases that differ only in key and field. It has 2^`bits` words of 8
 * bytes, each of which holds a key in its low half and the field's offset in its high half. For
 * keys of 8 bytes, which must be less than 2^48, these are the low 48 and the high 16 bits. The
 * word of a free slot holds a key that belongs to another slot. Words may change at any time.
 */
struct arch_cache_table {
    uint64_t address; /* of the first word; 0: there is no table */
    unsigned bits;
    uint32_t multiplier; /* less than 2^31 */
    /* A load or a store of a field in the receiver. Its key and the field's offset are ignored; the
     * key is of 4 or 8 bytes and has no mask, and there is no counter. */
    struct arch_cache_case access;
};

enum {
    ARCH_CACHE_TABLE_BITS_MAX = 11,
    ARCH_CACHE_TABLE_SHIFT = 20 /* first bit of the product that is part of the slot's number */
};

/* Returns the number of the slot of a key. */
static inline size_t arch_cache_table_slot(uint64_t key, uint32_t multiplier, unsigned bits)
{
    return key * multiplier >> ARCH_CACHE_TABLE_SHIFT & (((size_t)1 << bits) - 1);
}

/* Returns the position of the offset in the words of a table. */
static inline unsigned arch_cache_table_offset_bit(uint8_t key_width)
{
    return key_width == 8 ? 48 : 32;
}

/* Invariant: `count` is at most ARCH_CACHE_CASES_MAX. */
struct arch_cache {
    const struct arch_cache_case *cases;
    size_t count;
    /* Registers that hold operands, whether a case uses them or not. */
    const uint16_t *operands;
    size_t operand_count;
    /* Whether the site calls the code, which then returns. If not, the site jumps to the code, and
     * the code jumps to the end of the site's bytes, `site_end`, which must be in reach of a direct
     * branch. */
    bool is_called;
    uint64_t site_end;
    /* Return address of a call at the site, which exits get. */
    uint64_t return_address;
    /* What the code searches after the last case. On x86-64, with keys of 8 bytes, two words are
     * pushed, the first of which is the site's return address. */
    struct arch_cache_table table;
    /* Target after the last case: the code jumps to the struct arch_exit at this address, like an
     * exit's stub (`encode_exit`), as if the site had called it. The address may be anywhere. */
    uint64_t exit_data;
    uint64_t miss_target; /* or, if it is not 0, the pointer of the function to jump to instead */
};

/*
 * The first case of a cache in the site's own bytes, from the patch word to the site's end, or the
 * first two cases. The word is a no-op while this code is in use. A hit continues at the end of the
 * bytes. A miss of all these cases continues at `miss`, with the registers of the site unchanged.
 */
struct arch_cache_inline {
    uint64_t address; /* of the first byte, where a patch word ends */
    uint64_t miss;
    bool has_second; /* whether there are two; not for calls, and on x86-64 alone */
    /* Set by the encoder: the offset of the instruction that branches to `miss`, which is in one
     * patch word of these bytes, and the number of bytes that are not padding. */
    size_t miss_offset;
    size_t code_bytes;
};

/* Limits for all architectures. */
enum {
    ARCH_CACHE_CASES_MAX = 16,
    ARCH_CACHE_CASE_BYTES_MAX = 480,
    ARCH_CACHE_END_BYTES_MAX = 256,
    ARCH_CACHE_BYTES_MAX =
        ARCH_CACHE_CASES_MAX * ARCH_CACHE_CASE_BYTES_MAX + ARCH_CACHE_END_BYTES_MAX,
    /* Maximum size of a case in the site's own bytes, with padding. */
    ARCH_CACHE_INLINE_BYTES_MAX = 128,
    /* Alignment of the code's address. */
    ARCH_CACHE_ALIGNMENT = 32
};

/* Sizes of the written code. */
struct arch_cache_size {
    size_t bytes;
    size_t case_bytes; /* bytes before the code for misses, and before literals of cases */
};

#endif
