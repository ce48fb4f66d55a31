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

struct signature_argument {
    struct cairn_type type;
    enum signature_kind kind;
    bool extends_sign;
};

struct foreign_call;

struct cairn_signature {
    struct cairn_allocator allocator;
    struct cairn_results results; /* known */
    uint32_t argument_count;
    /* How libffi calls; NULL if it does not, and then the reason. */
    struct foreign_call *foreign;
    struct cairn_error refused;
    struct signature_argument arguments[];
};

/* Of an argument of the type; NONE if it cannot be passed. */
enum signature_kind signature_kind(struct cairn_type type);

/* An integer of up to 64 bits, or an address, as its register is to hold it. */
uint64_t signature_extend(const struct signature_argument *argument,
                          const struct cairn_value *value);

/* Whether these are the signature's arguments. ARGUMENT. */
enum cairn_status signature_check(const cairn_signature *signature,
                                  const struct cairn_value *arguments, uint32_t argument_count,
                                  struct cairn_error *error);

/* Whether libffi calls functions of the signature. UNSUPPORTED. */
enum cairn_status signature_check_foreign(const cairn_signature *signature,
                                          struct cairn_error *error);

/* ---- With libffi: foreign.c; without: foreign_none.c ---- */

/* `*made` stays NULL, and the signature says why, if libffi does not call such functions. MEMORY.
 */
enum cairn_status foreign_create(cairn_signature *signature, struct cairn_error *error);
void foreign_destroy(cairn_signature *signature);

/* An argument's extension was changed. */
void foreign_extend_sign(cairn_signature *signature, uint32_t argument);

#endif
