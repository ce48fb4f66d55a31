/*
 * llvm/invocation.h - calls a function whose types are known only at run time.
 *
 * An IR function that is added to the program makes the call. It contains the arguments as
 * constants, and stores the scalars of the result into slots. So the code generator compiles both
 * sides of the call, and Cairn need not know how the machine passes a vector or a structure.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_INVOCATION_H
#define LLVM_INVOCATION_H

#include "llvm/program.h"

/* The kinds of pieces. A value is a scalar, or scalars in brackets: { } around the elements of a
 * structure, [ ] of an array, and < > of a vector. */
enum invocation_piece_kind { INVOCATION_SCALAR, INVOCATION_OPEN, INVOCATION_CLOSE };

struct invocation_piece {
    enum invocation_piece_kind kind;
    char bracket;
    struct cairn_type type; /* for scalars */
};

struct invocation_value {
    struct invocation_piece *pieces; /* NULL for void */
    uint32_t piece_count;
    uint32_t scalar_count;
    bool is_unsigned; /* whether `zeroext` is set; otherwise integers are signed */
    char type[64];    /* as LLVM prints it, truncated */
};

struct invocation_signature {
    struct invocation_value result;
    struct invocation_value *parameters;
    uint32_t parameter_count;
    bool is_variadic; /* variable arguments are not passed */
};

/* Reads the signature of a function that the program defines. Errors: NOT_FOUND, with a message
 * that lists the defined functions; UNSUPPORTED if the function cannot be called from here, with a
 * message that suggests an alternative; MEMORY. */
enum cairn_status invocation_read(const struct program *program, const char *function,
                                  struct invocation_signature *signature,
                                  struct cairn_error *error);
void invocation_release(struct invocation_signature *signature);

/* A scalar of an argument: the bits of an integer or an address, or the text of a floating-point
 * number in C's syntax, "inf" and "nan" included. */
struct invocation_scalar {
    uint64_t low;
    uint64_t high;
    const char *number;
};

/* The slot of a scalar of the result. Integers are sign-extended or zero-extended to 128 bits,
 * depending on the value's `is_unsigned`; addresses are zero-extended. Other scalars are stored as
 * in memory, followed by zeros. */
union invocation_slot {
    uint64_t words[2];
    uint8_t bytes[16];
} __attribute__((aligned(16)));

typedef void invocation_function(union invocation_slot *slots);

enum { INVOCATION_NAME_BYTES = 32 };

/* Adds the function that makes the call to the program, which must not be compiled yet. The
 * function is an invocation_function; its name is written to `name`. `scalars` holds the scalars of
 * all arguments. MEMORY. */
enum cairn_status invocation_build(const struct program *program, const char *function,
                                   const struct invocation_signature *signature,
                                   const struct invocation_scalar *scalars,
                                   char name[INVOCATION_NAME_BYTES], struct cairn_error *error);

#endif
