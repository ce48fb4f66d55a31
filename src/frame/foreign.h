/*
 * frame/foreign.h - how libffi calls functions of a signature.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_FOREIGN_H
#define FRAME_FOREIGN_H

#include "frame/signature.h"

#include <ffi.h>

/* An argument may take two of libffi's, and one before it that fills a register. */
enum { FOREIGN_ARGUMENTS_MAX = 2 * CAIRN_SIGNATURE_ARGUMENTS_MAX };

/* What libffi gets for an argument. */
enum foreign_form {
    FOREIGN_AS_IT_IS,  /* the value's bytes */
    FOREIGN_EXTENDED,  /* an integer of odd size, as 64 bits */
    FOREIGN_STRUCTURE, /* of two registers */
    FOREIGN_FILLED,    /* the same, behind an argument that fills a register */
    FOREIGN_SPLIT      /* its halves */
};

/* What libffi returns: registers as they are, but for one float. */
enum foreign_result {
    FOREIGN_NOTHING,
    FOREIGN_WORDS, /* 64 bits of a register for each result; or both for one */
    FOREIGN_FLOAT
};

union foreign_results {
    uint64_t words[2];
    float single;
};

struct foreign_call {
    ffi_cif cif;
    uint8_t result; /* enum foreign_result */
    uint8_t forms[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    ffi_type pair;
    ffi_type *pair_members[3];
    ffi_type structure;
    ffi_type *structure_members[3];
    uint32_t count;
    ffi_type *types[FOREIGN_ARGUMENTS_MAX];
    /* The first of libffi's that is the argument's own. */
    uint8_t first[CAIRN_SIGNATURE_ARGUMENTS_MAX];
};

/* The reverse of each other, by the signature's results. */
void foreign_read_results(const cairn_signature *signature, const union foreign_results *from,
                          struct cairn_value *results);
void foreign_write_results(const cairn_signature *signature, const struct cairn_value *results,
                           union foreign_results *to);

#endif
