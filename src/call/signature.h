/*
 * call/signature.h - the contents of a signature, and the places of its arguments and results.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CALL_SIGNATURE_H
#define CALL_SIGNATURE_H

#include "arch/call.h"

#include <cairn/call.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The registers that an argument needs: one general register, two general registers, one
 * floating-point register, or one vector register. */
enum signature_kind {
    SIGNATURE_NONE,
    SIGNATURE_GENERAL,
    SIGNATURE_PAIR,
    SIGNATURE_FLOATING,
    SIGNATURE_VECTOR
};

enum { SIGNATURE_VECTOR_BYTES = 16 };

/* How an argument or a result is represented. */
enum signature_form {
    SIGNATURE_WORD,    /* 64 bits, zero-extended */
    SIGNATURE_SIGNED,  /* 64 bits, sign-extended */
    SIGNATURE_WIDENED, /* a float as a double */
    SIGNATURE_HALVES,  /* two places of 64 bits */
    SIGNATURE_WHOLE    /* 16 bytes: a vector, or a pair that is returned */
};

struct signature_argument {
    struct cairn_type type;
    uint8_t kind; /* enum signature_kind */
    uint8_t form; /* enum signature_form */
    /* Offsets in struct arch_call of the argument, or of its first and second half. */
    uint16_t offset;
    uint16_t second_offset;
};

struct signature_result {
    uint8_t form;    /* enum signature_form */
    uint16_t offset; /* in struct arch_call */
    uint16_t size;   /* of the value */
};

/* The beginning of libffi's description of a type (call/closure.c), by which it is freed. */
struct closure_type {
    size_t bytes; /* size of the whole description */
};

struct cairn_signature {
    struct cairn_allocator allocator;
    /* libffi's description of the type, which the first closure creates; NULL before. */
    _Atomic(struct closure_type *) closure_type;
    struct cairn_results results; /* `is_known` is true */
    struct signature_result returned[CAIRN_FUNCTION_RESULTS_MAX];
    /* OK if there are registers for the results; otherwise the error. */
    struct cairn_error results_refused;
    uint32_t argument_count;
    /* As in struct arch_call. */
    uint32_t stack_bytes;
    uint8_t general_count;
    uint8_t floating_count;
    uint8_t vector_count;
    bool returns_vector;
    struct signature_argument arguments[];
};

/* Returns the kind of a type's values; NONE if they cannot be passed. */
enum signature_kind signature_kind(struct cairn_type type);

/* Checks that the values have the number and the types of the signature's arguments. ARGUMENT. */
enum cairn_status signature_check(const cairn_signature *signature,
                                  const struct cairn_value *arguments, uint32_t argument_count,
                                  struct cairn_error *error);

/* Writes the arguments to their places. signature_check must have accepted them. */
void signature_write(const cairn_signature *signature, const struct cairn_value *values,
                     struct arch_call *call);

#endif
