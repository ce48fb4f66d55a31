/*
 * Values: 64 bits each, so that they fit registers, stack slots and frame states.
 *
 * A number is the bits of its double. All other values are bit patterns of NaNs that no arithmetic
 * gives: hardware makes 0x7ff8… and 0xfff8…, ours begin at FIRST_TAG. The order of the patterns is
 * what makes the tests cheap: numbers < FIRST_TAG <= nil, false, true < OBJECT_TAG <= objects.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_VALUE_H
#define LOX_VALUE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t lox_value;

struct object;

#define FIRST_TAG UINT64_C(0xfffa000000000000)
#define NIL (FIRST_TAG + 0) /* NIL and FALSE are neighbours: see is_falsy */
#define FALSE (FIRST_TAG + 1)
#define TRUE (FIRST_TAG + 2)
#define UNDEFINED (FIRST_TAG + 3) /* a global without a definition; programs never see it */
#define OBJECT_TAG UINT64_C(0xfffc000000000000)

static inline bool is_number(lox_value value) { return value < FIRST_TAG; }
static inline bool is_object(lox_value value) { return value >= OBJECT_TAG; }
static inline bool is_falsy(lox_value value) { return value - NIL <= FALSE - NIL; }

static inline double as_number(lox_value value)
{
    double number;
    memcpy(&number, &value, sizeof number);
    return number;
}

static inline lox_value number_value(double number)
{
    lox_value value;
    memcpy(&value, &number, sizeof value);
    return value;
}

static inline struct object *as_object(lox_value value)
{
    return (struct object *)(uintptr_t)(value ^ OBJECT_TAG);
}

/* An address has at most 48 bits, in user space of all our targets. */
static inline lox_value object_value(const void *object) { return (uintptr_t)object | OBJECT_TAG; }

static inline lox_value bool_value(bool truth) { return FALSE + truth; }

/* Strings are interned, so all but numbers are equal if they have the same bits. NaN differs from
 * itself. */
static inline bool values_equal(lox_value a, lox_value b)
{
    return is_number(a) && is_number(b) ? as_number(a) == as_number(b) : a == b;
}

#endif
