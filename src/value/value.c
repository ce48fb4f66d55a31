/*
 * Values: conversions to and from types of C.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "value/representation.h"

#include <string.h>

/* Copies with a constant size where possible, so that no call is needed. */
void value_copy_low(void *to, size_t to_size, const void *from, size_t from_size)
{
    const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    size_t size = to_size < from_size ? to_size : from_size;
    unsigned char *low = (unsigned char *)to + (is_big_endian ? to_size - size : 0);
    const unsigned char *bytes =
        (const unsigned char *)from + (is_big_endian ? from_size - size : 0);
    switch (size) {
    case 1:
        memcpy(low, bytes, 1);
        break;
    case 4:
        memcpy(low, bytes, 4);
        break;
    case 8:
        memcpy(low, bytes, 8);
        break;
    case 16:
        memcpy(low, bytes, 16);
        break;
    default:
        memcpy(low, bytes, size);
        break;
    }
}

/* ---- Bits of scalars ---- */

static bool is_scalar(const struct cairn_value *value, enum cairn_type_kind kind)
{
    return value->type.kind == kind && value->type.element_count == 0;
}

/* Returns the lowest 64 bits, zero-extended. */
static uint64_t low_bits(const struct cairn_value *value)
{
    uint64_t bits = 0;
    value_copy_low(&bits, sizeof bits, value->bytes, value->size);
    return bits;
}

/* Returns a mask of the low `count` bits (1 to 64). */
static uint64_t mask_of(uint32_t count) { return UINT64_MAX >> (64 - count); }

static struct cairn_value scalar_of_bits(struct cairn_type type, uint64_t bits)
{
    struct cairn_value value = {.type = type, .size = (uint32_t)cairn_type_size(type)};
    value_copy_low(value.bytes, value.size, &bits, sizeof bits);
    return value;
}

/* ---- Conversion to C types ---- */

uint64_t value_unsigned(const struct cairn_value *value)
{
    if (is_scalar(value, CAIRN_TYPE_INTEGER) || is_scalar(value, CAIRN_TYPE_POINTER))
        return low_bits(value);
    return 0;
}

int64_t cairn_value_signed(const struct cairn_value *value)
{
    uint64_t bits = value_unsigned(value);
    if (value->type.bits == 0 || value->type.bits >= 64)
        return (int64_t)bits;
    uint64_t sign = (uint64_t)1 << (value->type.bits - 1);
    return (int64_t)((bits ^ sign) - sign);
}

uint64_t cairn_value_bits(const struct cairn_value *value)
{
    return value->type.element_count == 0 ? low_bits(value) : 0;
}

void *cairn_value_pointer(const struct cairn_value *value)
{
    return is_scalar(value, CAIRN_TYPE_POINTER) ? (void *)(uintptr_t)low_bits(value) : NULL;
}

static double double_of_bits(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* A floating-point format narrower than double. */
struct narrow {
    uint32_t fraction_bits;
    uint32_t exponent_bits;
};

enum { DOUBLE_FRACTION_BITS = 52, DOUBLE_BIAS = 1023, DOUBLE_EXPONENT_MAX = 2047 };

/* Converts by bits, so that signalling NaNs stay signalling and no exception is raised. */
static double widen(uint64_t bits, struct narrow format)
{
    uint32_t exponent_max = (1U << format.exponent_bits) - 1;
    uint64_t sign = bits >> (format.fraction_bits + format.exponent_bits) << 63;
    uint64_t exponent = bits >> format.fraction_bits & exponent_max;
    uint64_t fraction = (bits & mask_of(format.fraction_bits))
                        << (DOUBLE_FRACTION_BITS - format.fraction_bits);
    uint64_t distance = DOUBLE_BIAS - exponent_max / 2;
    if (exponent == exponent_max)
        return double_of_bits(sign | (uint64_t)DOUBLE_EXPONENT_MAX << DOUBLE_FRACTION_BITS |
                              fraction);
    if (exponent == 0 && fraction == 0)
        return double_of_bits(sign);
    if (exponent == 0) {
        /* A denormal number is normal as a double: its highest bit becomes the implied bit. */
        for (exponent = 1; fraction >> DOUBLE_FRACTION_BITS == 0; exponent--)
            fraction <<= 1;
        fraction &= mask_of(DOUBLE_FRACTION_BITS);
    }
    return double_of_bits(sign | (exponent + distance) << DOUBLE_FRACTION_BITS | fraction);
}

double cairn_value_double(const struct cairn_value *value)
{
    if (is_scalar(value, CAIRN_TYPE_DOUBLE))
        return double_of_bits(low_bits(value));
    if (is_scalar(value, CAIRN_TYPE_FLOAT))
        return widen(low_bits(value), (struct narrow){23, 8});
    if (is_scalar(value, CAIRN_TYPE_HALF))
        return widen(low_bits(value), (struct narrow){10, 5});
    if (is_scalar(value, CAIRN_TYPE_BFLOAT))
        return widen(low_bits(value), (struct narrow){7, 8});
    return double_of_bits((uint64_t)0x7FF8 << 48);
}

/* ---- Conversion from C types ---- */

struct cairn_value cairn_value_of_integer(uint32_t bits, int64_t number)
{
    return scalar_of_bits(CAIRN_INTEGER(bits), (uint64_t)number & mask_of(bits));
}

struct cairn_value cairn_value_of_pointer(const void *pointer)
{
    return scalar_of_bits(CAIRN_POINTER, (uintptr_t)pointer);
}

struct cairn_value cairn_value_of_double(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return scalar_of_bits(CAIRN_DOUBLE, bits);
}

enum cairn_status value_of_bytes(struct cairn_type type, const void *bytes, size_t size,
                                 struct cairn_value *value, struct cairn_error *error)
{
    size_t expected = cairn_type_size(type);
    if (size == expected && size != 0) {
        struct cairn_value made = {.type = type, .size = (uint32_t)size};
        memcpy(made.bytes, bytes, size);
        *value = made;
        return CAIRN_OK;
    }
    char name[64];
    cairn_type_format(type, name, sizeof name);
    if (expected == 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "there are no values of type %s", name);
    return error_set(error, CAIRN_ERROR_RANGE, 0, "%s has %zu bytes, not %zu", name, expected,
                     size);
}
