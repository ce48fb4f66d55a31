/*
 * frame/signature.h - what is known of a signature.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_SIGNATURE_H
#define FRAME_SIGNATURE_H

#include <cairn/call.h>
#include <stdbool.h>

/* What an argument takes: a general register, two, one for floating-point numbers, or one for
 * vectors. */
enum signature_kind {
    SIGNATURE_NONE,
    SIGNATURE_GENERAL,
    SIGNATURE_PAIR,
    SIGNATURE_FLOATING,
    SIGNATURE_VECTOR
};

enum { SIGNATURE_VECTOR_BYTES = 16 };

/* How an argument is written. */
enum signature_form {
    SIGNATURE_WORD,    /* 64 bits, with zeros above the value's */
    SIGNATURE_SIGNED,  /* the same, extended by the value's sign */
    SIGNATURE_WIDENED, /* a float as a double */
    SIGNATURE_HALVES,  /* 64 bits each, in two places */
    SIGNATURE_WHOLE    /* a vector */
};

struct signature_argument {
    struct cairn_type type;
    uint8_t kind; /* enum signature_kind */
    uint8_t form; /* enum signature_form */
    /* Where it is in struct arch_call; of halves the first, and the second. */
    uint16_t offset;
    uint16_t second_offset;
};

struct signature_result {
    uint8_t form;    /* enum signature_form */
    uint16_t offset; /* where it is in struct arch_call */
    uint16_t size;   /* of the value */
};

struct cairn_signature {
    struct cairn_allocator allocator;
    struct cairn_results results; /* known */
    struct signature_result returned[CAIRN_FUNCTION_RESULTS_MAX];
    /* OK if there are registers for them; otherwise why not. */
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

/* Of a value of the type; NONE if it cannot be passed. */
enum signature_kind signature_kind(struct cairn_type type);

/* Whether these are the signature's arguments. ARGUMENT. */
enum cairn_status signature_check(const cairn_signature *signature,
                                  const struct cairn_value *arguments, uint32_t argument_count,
                                  struct cairn_error *error);

#endif
