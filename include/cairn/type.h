/*
 * cairn/type.h - the types of values: LLVM's integers, pointers and floating-point numbers, and
 * vectors of them.
 *
 * A stack map contains the place of a value, but not its type. Types come from declarations
 * (cairn/declaration.h), which libcairn-llvm reads from the IR, or from the host:
 *
 *     struct cairn_type arguments[] = {CAIRN_INTEGER(64), CAIRN_POINTER,
 *                                      cairn_type_vector(CAIRN_FLOAT, 4)};
 *
 * Types are plain data without an owner.
 *
 * Threads: every function is thread-safe and async-signal-safe.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_TYPE_H
#define CAIRN_TYPE_H

#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of a scalar. */
enum cairn_type_kind {
    CAIRN_TYPE_VOID = 0,
    CAIRN_TYPE_INTEGER = 1,
    CAIRN_TYPE_POINTER = 2,
    CAIRN_TYPE_HALF = 3,
    CAIRN_TYPE_BFLOAT = 4,
    CAIRN_TYPE_FLOAT = 5,
    CAIRN_TYPE_DOUBLE = 6,
    CAIRN_TYPE_X86_FP80 = 7,
    CAIRN_TYPE_FP128 = 8,
    CAIRN_TYPE_PPC_FP128 = 9,
    /** Any other type of LLVM, such as a structure, an array or a token. It has no values here. */
    CAIRN_TYPE_OTHER = 10
};

/** A scalar type, or a vector of a fixed number of scalars. */
struct cairn_type {
    enum cairn_type_kind kind;
    /** Bits of the scalar, or of one element of the vector; 0 for void. */
    uint32_t bits;
    /** Number of elements of a vector; 0 for a scalar. */
    uint32_t element_count;
    union {
        uint32_t address_space; /**< address space of a pointer */
        /** 1 if an integer of less than 64 bits is sign-extended, 0 if it is zero-extended, as an
         *  argument or a result of a signature (cairn/call.h). */
        uint32_t extends_sign;
    };
};

/** A type with these fields, as an expression. */
#ifdef __cplusplus
#define CAIRN_TYPE(kind, bits, element_count, address_space)                                       \
    (cairn_type{(kind), (bits), (element_count), {(address_space)}})
#else
#define CAIRN_TYPE(kind, bits, element_count, address_space)                                       \
    ((struct cairn_type){(kind), (bits), (element_count), {(address_space)}})
#endif

/** An integer of `bits` bits. */
#define CAIRN_INTEGER(bits) CAIRN_TYPE(CAIRN_TYPE_INTEGER, bits, 0, 0)
/** A pointer of 64 bits in address space 0. */
#define CAIRN_POINTER CAIRN_TYPE(CAIRN_TYPE_POINTER, 64, 0, 0)
/** C's float. */
#define CAIRN_FLOAT CAIRN_TYPE(CAIRN_TYPE_FLOAT, 32, 0, 0)
/** C's double. */
#define CAIRN_DOUBLE CAIRN_TYPE(CAIRN_TYPE_DOUBLE, 64, 0, 0)

/** Returns the type of a vector of `count` scalars; with a count of 0, the type of one of them. */
CAIRN_INLINE struct cairn_type cairn_type_vector(struct cairn_type type, uint32_t count)
{
    type.element_count = count;
    return type;
}

/** Size of the largest value in bytes: a vector register of AVX-512. */
enum { CAIRN_VALUE_BYTES_MAX = 64 };

/**
 * Returns the size of a value of the type in a struct cairn_value, in bytes. An element of a vector
 * has a whole number of bytes: <4 x i1> has 4 bytes, although LLVM would pack it into one. Returns
 * 0 for void, for CAIRN_TYPE_OTHER, and for types larger than CAIRN_VALUE_BYTES_MAX.
 */
CAIRN_API size_t cairn_type_size(struct cairn_type type);

/** Formats the type as LLVM does: "i32", "double", "ptr addrspace(1)", "<4 x float>". Writes at
 * most `size` bytes to `text`, including the terminating null byte. Returns the full length.
 *
 * Threads: thread-safe, and as async-signal-safe as snprintf. */
CAIRN_API size_t cairn_type_format(struct cairn_type type, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
