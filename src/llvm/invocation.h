/*
 * llvm/invocation.h - calling a function of which the types are known at run time only.
 *
 * The call is made by an IR function that is added to the program: it has the arguments as
 * constants, and stores the result's scalars into slots. So the code generator has both sides of
 * the call, and nobody has to know how the machine passes a vector or a structure.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_INVOCATION_H
#define LLVM_INVOCATION_H

#include "llvm/program.h"

/* A value is a scalar, or scalars in brackets: { structures }, [ arrays ], < vectors >. */
enum invocation_piece_kind { INVOCATION_SCALAR, INVOCATION_OPEN, INVOCATION_CLOSE };

struct invocation_piece {
    enum invocation_piece_kind kind;
    char bracket;
    struct cairn_type type; /* of a scalar */
};

struct invocation_value {
    struct invocation_piece *pieces; /* none: void */
    uint32_t piece_count;
    uint32_t scalar_count;
    bool is_unsigned; /* as `zeroext` says; otherwise integers count as signed */
    char type[64];    /* in LLVM's words, cut if they are long */
};

struct invocation_signature {
    struct invocation_value result;
    struct invocation_value *parameters;
    uint32_t parameter_count;
    bool is_variadic; /* what is variable is left out */
};

/* The signature of a function that the program defines. NOT_FOUND (the sentence names those that
 * there are), UNSUPPORTED (it cannot be called from here; the sentence says what to do), MEMORY. */
enum cairn_status invocation_read(const struct program *program, const char *function,
                                  struct invocation_signature *signature,
                                  struct cairn_error *error);
void invocation_release(struct invocation_signature *signature);

/* A scalar of an argument: an integer or an address by its bits, or the text of a floating-point
 * number as C has it, "inf" and "nan" included. */
struct invocation_scalar {
    uint64_t low;
    uint64_t high;
    const char *number;
};

/* Where a scalar of the result is stored. Integers are extended to 128 bits, by their sign or with
 * zeros as the value says; all else is as in memory, with zeros behind it. */
union invocation_slot {
    uint64_t words[2];
    uint8_t bytes[16];
} __attribute__((aligned(16)));

typedef void invocation_function(union invocation_slot *slots);

enum { INVOCATION_NAME_BYTES = 32 };

/* Adds the function that makes the call, an invocation_function, to the program, which has not been
 * compiled yet. `scalars` are those of all arguments. `name` is what it is called. MEMORY. */
enum cairn_status invocation_build(const struct program *program, const char *function,
                                   const struct invocation_signature *signature,
                                   const struct invocation_scalar *scalars,
                                   char name[INVOCATION_NAME_BYTES], struct cairn_error *error);

#endif
