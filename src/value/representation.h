/*
 * value/representation.h - the representation of a typed value in a register, in memory, or as a
 * constant.
 *
 * LLVM records the size of the place, not of the value: a 32-bit integer may be in a register of 8
 * bytes, a float in one of 16 bytes, and a vector of small integers in lanes that are wider than
 * its elements. The other bytes of the place are unspecified.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VALUE_REPRESENTATION_H
#define VALUE_REPRESENTATION_H

#include "arch/arch.h"

#include <cairn/value.h>
#include <stdbool.h>

/* Returns an integer, zero-extended; the low 64 bits of a wider integer; the address of a pointer;
 * 0 for all other types. */
uint64_t value_unsigned(const struct cairn_value *value);

/* Converts bytes in the form of struct cairn_value to a value of any type. Errors: UNSUPPORTED if
 * cairn_type_size is 0; RANGE if it is not `size`. `value` is unchanged after an error. */
CAIRN_MUST_CHECK enum cairn_status value_of_bytes(struct cairn_type type, const void *bytes,
                                                  size_t size, struct cairn_value *value,
                                                  struct cairn_error *error);

/* Copies the low bytes of an integer, as many as both sides have. Other bytes of `to` stay
 * unchanged. */
void value_copy_low(void *to, size_t to_size, const void *from, size_t from_size);

enum storage_form {
    /* Memory, as a store writes it. */
    STORAGE_MEMORY,
    /* An integer, whose low bytes are the value. */
    STORAGE_GENERAL,
    /* A vector, whose first bytes (the lowest lanes) are the value. */
    STORAGE_VECTOR,
    /* PPC64: a floating-point scalar is a double, in 8 bytes; a vector is as a store writes it. */
    STORAGE_DOUBLE
};

/* A place for a value, with the size from the record or of the register. */
struct storage {
    enum storage_form form;
    size_t size;
};

/* Returns the form of a register. */
enum storage_form storage_form(enum arch_register_form form);

/* Returns how many of the place's bytes a value of the type uses; 0 if the place cannot hold
 * one. */
size_t storage_part(struct cairn_type type, struct storage place);

/* Reads a value from `bytes`, its part of the place. */
void storage_read(struct cairn_type type, struct storage place, const void *bytes,
                  struct cairn_value *value);

/* Writes a value to `bytes`, its part of the place. The other bytes of the part become zero. */
void storage_write(const struct cairn_value *value, struct storage place, void *bytes);

/* Reads a value from a record's constant, which is sign-extended to the type. False for vectors,
 * and for types of more than 64 bits other than integers and pointers. */
bool storage_read_constant(struct cairn_type type, uint64_t constant, struct cairn_value *value);

#endif
