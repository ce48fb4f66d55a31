/*
 * cairn/value.h - a value of compiled code with its type: live values, arguments and results.
 *
 *     struct cairn_value value;
 *     if (cairn_frame_value(&frame, record, 0, &value, &error) == CAIRN_OK)
 *         printf("%lld\n", (long long)cairn_value_signed(&value));
 *
 *     value = cairn_value_of_double(0.5);
 *
 * Values that compiled code keeps only in registers can be read only at sites that record them: the
 * VM's own debugger, which reads the VM's stack and heap, does not find them elsewhere.
 *
 * A value is plain data without an owner.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_VALUE_H
#define CAIRN_VALUE_H

#include <cairn/status.h>
#include <cairn/type.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A value. `size` must be cairn_type_size(type), and the other bytes of `bytes` must be zero.
 *
 * `bytes` are in the machine's byte order. A scalar is in the form in which a store writes it to
 * memory; the unused bits of an integer are zero. The elements of a vector follow each other
 * without padding, element 0 first, each with the size of its scalar type.
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

/* ---- Conversion to C ---- */

/** Returns an integer, sign-extended; the low 64 bits of a wider integer; the address of a pointer;
 *  0 for all other types. */
CAIRN_API int64_t cairn_value_signed(const struct cairn_value *value);

/** Returns the bits of a scalar as an interpreter's slot of 64 bits: an integer, zero-extended; the
 *  address of a pointer; the bits of a floating-point number in the low bits; the low 64 bits of a
 *  wider scalar; 0 for vectors and void. */
CAIRN_API uint64_t cairn_value_bits(const struct cairn_value *value);

/** Returns a pointer; NULL for all other types. */
CAIRN_API void *cairn_value_pointer(const struct cairn_value *value);

/** Returns a half, bfloat, float or double, converted exactly and without raising exceptions; NaN
 *  for all other types. */
CAIRN_API double cairn_value_double(const struct cairn_value *value);

/* ---- Conversion from C ---- */

/** Returns an integer of `bits` bits (1 to 64) with the low bits of `number`. */
CAIRN_API struct cairn_value cairn_value_of_integer(uint32_t bits, int64_t number);
/** Returns a value of type CAIRN_POINTER. */
CAIRN_API struct cairn_value cairn_value_of_pointer(const void *pointer);
/** Returns a value of type CAIRN_DOUBLE. */
CAIRN_API struct cairn_value cairn_value_of_double(double number);

#ifdef __cplusplus
}
#endif
#endif
