/*
 * frame/storage.h - how a value of a type lies in a register, in memory, in a constant.
 *
 * LLVM's record has the size of the place, not of the value: a 32-bit integer may be in a register
 * of 8 bytes, a float in one of 16, and a vector of small integers in lanes that are wider than its
 * elements. What is beside the value is anything.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_STORAGE_H
#define FRAME_STORAGE_H

#include "arch/arch.h"

#include <cairn/value.h>
#include <stdbool.h>

enum storage_form {
    /* As a store has put it there. */
    STORAGE_MEMORY,
    /* The low bytes of an integer. */
    STORAGE_GENERAL,
    /* The first bytes: the lowest lanes. */
    STORAGE_VECTOR,
    /* PPC64: a scalar that floats is a double, in 8 bytes; a vector as a store has it. */
    STORAGE_DOUBLE
};

/* A place for a value, as large as the record or the register says. */
struct storage {
    enum storage_form form;
    size_t size;
};

/* Of a register. */
enum storage_form storage_form(enum arch_register_form form);

/* How many of the place's bytes a value of the type needs; 0 if the place cannot hold one. */
size_t storage_part(struct cairn_type type, struct storage place);

/* The value whose part of the place is `bytes`. */
void storage_read(struct cairn_type type, struct storage place, const void *bytes,
                  struct cairn_value *value);

/* The reverse: what is beside the value becomes zero. */
void storage_write(const struct cairn_value *value, struct storage place, void *bytes);

/* The value that a record has as a constant, its bits extended by their sign. False if the type has
 * more than 64 bits and is no integer, or is a vector. */
bool storage_read_constant(struct cairn_type type, uint64_t constant, struct cairn_value *value);

/* Copies the low bytes of an integer, as many as both have; the rest of `to` stays. */
void storage_copy_low(void *to, size_t to_size, const void *from, size_t from_size);

#endif
