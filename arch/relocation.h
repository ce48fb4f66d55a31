/*
 * arch/relocation.h - what a relocation of an object file means: which value it calculates, and
 * into which bits it writes that value. Pure: plain values in, bytes out.
 *
 * Each architecture has one table. The loader (src/object) finds the target's address (a symbol, a
 * slot, a stub), and arch_relocate does everything else. A type that is in no table is refused by
 * its number; a type that is refused for a reason (thread-local storage) is in the table with that
 * reason.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_RELOCATION_H
#define ARCH_RELOCATION_H

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The address, or number, to which the addend is added. */
enum arch_relocation_target {
    ARCH_TARGET_NONE,   /* the relocation is a hint or a marker, and changes nothing */
    ARCH_TARGET_SYMBOL, /* the symbol; of a function: what a function pointer holds */
    /* The code to branch to: the symbol's, or a stub's. */
    ARCH_TARGET_BRANCH,
    /* The same, from code that has no TOC pointer (PPC64). */
    ARCH_TARGET_BRANCH_WITHOUT_TOC,
    ARCH_TARGET_SLOT,  /* a slot of 8 bytes, in reach of the table, with the symbol's address */
    ARCH_TARGET_TABLE, /* the base of the table of slots (GOT or TOC); there is no symbol */
    ARCH_TARGET_SIZE,  /* the symbol's size */
    ARCH_TARGET_REFUSED
};

/* What is subtracted from target + addend. */
enum arch_relocation_origin {
    ARCH_ORIGIN_ZERO,
    ARCH_ORIGIN_PLACE,     /* the address of the changed bytes */
    ARCH_ORIGIN_PAGE,      /* of both, the lower 12 bits are cleared before the subtraction */
    ARCH_ORIGIN_TABLE,     /* the base of the table of slots */
    ARCH_ORIGIN_TABLE_PAGE /* the same, with its lower 12 bits cleared */
};

/* Which values are refused because they do not fit, for a field that holds the bits below bit n. */
enum arch_relocation_range {
    ARCH_RANGE_ANY,
    ARCH_RANGE_SIGNED,   /* -2^(n-1) to 2^(n-1) - 1 */
    ARCH_RANGE_UNSIGNED, /* 0 to 2^n - 1 */
    ARCH_RANGE_EITHER    /* -2^(n-1) to 2^n - 1 */
};

/* How the bits are written. */
enum arch_relocation_form {
    ARCH_FORM_BITS, /* consecutive bits of an integer */
    ARCH_FORM_ADR,  /* AArch64 ADR and ADRP: the lowest 2 bits from bit 29, the others from 5 */
    ARCH_FORM_MOVE_WIDE, /* AArch64 MOVZ, or MOVN with the inverted bits if the value is negative */
    ARCH_FORM_PREFIXED   /* PPC64: the lowest 16 bits in the second word, the others in the first */
};

struct arch_relocation {
    uint32_t type;
    const char *name;   /* as in the ABI's document */
    const char *reason; /* for ARCH_TARGET_REFUSED: what is not supported */
    uint8_t target;     /* an enum arch_relocation_target, and so on */
    uint8_t origin;
    uint8_t range;
    uint8_t form;
    uint8_t bytes;    /* size of the integer that is changed, in the byte order of the object */
    uint8_t low;      /* the first bit of the value that is written */
    uint8_t bits;     /* and the number of bits */
    uint8_t position; /* the bit of the integer at which they are written */
    uint8_t aligned;  /* number of the value's low bits that must be 0 */
    /* Whether 2^15 is added first, because the lower half is sign-extended when it is added to the
     * upper one (PPC64's "adjusted" values). */
    uint8_t is_adjusted;
};

struct arch_relocation_table {
    const struct arch_relocation *entries; /* sorted by type */
    size_t count;
    size_t table_bias; /* from the start of the table of slots to its base */
    /* Whether a distance to a weak symbol that is not there is 0, and a branch to it continues at
     * the next instruction. Otherwise the symbol has the address 0. */
    bool missing_is_next;
};

/* The values from which a relocation calculates. */
struct arch_relocation_input {
    uint64_t place;  /* address of the bytes, at which they will be used */
    uint64_t target; /* as the relocation's `target` says */
    int64_t addend;
    uint64_t table; /* base of the table of slots */
};

/* Returns the entry of a type, or NULL. */
const struct arch_relocation *arch_find_relocation(const struct arch_relocation_table *table,
                                                   uint32_t type);

/* Changes the bytes at the place, of which there must be `relocation->bytes`. Errors: RANGE (the
 * value does not fit, or is not aligned); the bytes are unchanged. `error` gets the name and the
 * value, and the place as its offset. */
CAIRN_MUST_CHECK enum cairn_status arch_relocate(const struct arch_relocation *relocation,
                                                 const struct arch_relocation_input *input,
                                                 enum cairn_byte_order byte_order, uint8_t *bytes,
                                                 struct cairn_error *error);

extern const struct arch_relocation_table aarch64_relocations;
extern const struct arch_relocation_table ppc64_relocations;
extern const struct arch_relocation_table x86_64_relocations;

#endif
