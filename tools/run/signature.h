/*
 * tools/run/signature.h - the types of a function, as `cairn compile` writes them
 * (llvm/invocation.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_SIGNATURE_H
#define TOOLS_RUN_SIGNATURE_H

#include <cairn/status.h>
#include <cairn/type.h>

enum { SIGNATURE_TYPE_BYTES = 64 };

/* A value is its scalars in order, and the brackets around them. */
enum piece_kind { PIECE_SCALAR, PIECE_OPEN, PIECE_CLOSE };

struct signature_piece {
    enum piece_kind kind;
    char bracket;           /* one of {}[]<>; 0 for a scalar */
    struct cairn_type type; /* of a scalar */
};

struct signature_value {
    char type[SIGNATURE_TYPE_BYTES]; /* as text, for messages; a long one ends in dots */
    struct signature_piece *pieces;
    uint32_t piece_count; /* 0 for void */
    uint32_t scalar_count;
    bool is_unsigned; /* whether integers have no sign; only for the result */
};

struct signature {
    struct signature_value result;
    struct signature_value *parameters;
    uint32_t parameter_count;
    bool is_variadic;
};

/* Parses the text of a signature. On success, the caller releases it. Errors: CORRUPT, MEMORY. */
CAIRN_MUST_CHECK enum cairn_status signature_parse(const char *text, struct signature *signature,
                                                   struct cairn_error *error);

void signature_release(struct signature *signature);

#endif
