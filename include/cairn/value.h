/*
 * cairn/value.h - a live value of compiled code, with its type.
 *
 * A stack map says where a value is, not what it is. With the type that the declaration has, it
 * becomes a number that C understands:
 *
 *     struct cairn_value value;
 *     if (cairn_frame_value(&frame, 0, &value, &error) == CAIRN_OK)
 *         printf("%lld\n", (long long)cairn_value_signed(&value));
 *
 * A value is plain memory: copy it freely. All functions are thread-safe and async-signal-safe;
 * they touch only their arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_VALUE_H
#define CAIRN_VALUE_H

#include <cairn/declaration.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of the largest value: a vector register of AVX-512. */
enum { CAIRN_VALUE_BYTES_MAX = 64 };

/**
 * What must stay true: `size` is cairn_type_size(type), and the rest of `bytes` is zero.
 *
 * `bytes` are in the machine's byte order. A scalar is as a store puts it into memory; an integer
 * whose bits are no whole bytes has zeros above them. The elements of a vector follow each other,
 * element 0 first, each in whole bytes: <4 x i1> has 4 bytes, where LLVM would pack them into one.
 */
struct cairn_value {
    struct cairn_type type;
    uint32_t size;
#ifdef __cplusplus
    alignas(16) unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
#else
    _Alignas(16) unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
#endif
};

/** Bytes that a value of the type has in a struct cairn_value: whole bytes for each element. 0 for
 *  void, for types that are named and not described, and for those with more than
 *  CAIRN_VALUE_BYTES_MAX. */
CAIRN_API size_t cairn_type_size(struct cairn_type type);

/* ---- Types that C has ---- */

/** An integer of `bits`. */
CAIRN_API struct cairn_type cairn_type_integer(uint32_t bits);
/** A pointer of 64 bits, in address space 0. */
CAIRN_API struct cairn_type cairn_type_pointer(void);
/** C's float, of 32 bits. */
CAIRN_API struct cairn_type cairn_type_float(void);
/** C's double, of 64 bits. */
CAIRN_API struct cairn_type cairn_type_double(void);
/** A vector of `count` scalars of a type. */
CAIRN_API struct cairn_type cairn_type_vector(struct cairn_type element, uint32_t count);
/** Whether they are the same: pointers in all address spaces are. */
CAIRN_API bool cairn_type_equal(struct cairn_type left, struct cairn_type right);

/* ---- Into C ---- */

/** An integer extended by its sign, or by zeros; of more than 64 bits the lowest; of a pointer its
 *  address. 0 for all others. */
CAIRN_API int64_t cairn_value_signed(const struct cairn_value *value);
CAIRN_API uint64_t cairn_value_unsigned(const struct cairn_value *value);
/** NULL for all but pointers. */
CAIRN_API void *cairn_value_pointer(const struct cairn_value *value);
/** Half, bfloat, float and double exactly, without raising exceptions; NaN for all others. */
CAIRN_API double cairn_value_double(const struct cairn_value *value);
/** An element of a vector as a scalar. RANGE beyond the last (a scalar has none): `element` is as
 *  it was. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_value_element(const struct cairn_value *value,
                                                                 uint32_t index,
                                                                 struct cairn_value *element,
                                                                 struct cairn_error *error);

/* ---- From C ---- */

/** The integer's lowest bits as an integer of `bits`, which are 1 to 64. */
CAIRN_API struct cairn_value cairn_value_of_integer(uint32_t bits, int64_t number);
CAIRN_API struct cairn_value cairn_value_of_pointer(const void *pointer);
CAIRN_API struct cairn_value cairn_value_of_float(float number);
CAIRN_API struct cairn_value cairn_value_of_double(double number);
/** Of any type, from the bytes of a struct cairn_value. UNSUPPORTED if cairn_type_size is 0; RANGE
 *  if it is not `size`; `value` is then as it was. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_value_of_bytes(struct cairn_type type,
                                                                  const void *bytes, size_t size,
                                                                  struct cairn_value *value,
                                                                  struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
