/* SPDX-License-Identifier: MIT */
#include "base/error.h"
#include "value/representation.h"

#include <cairn/value.h>
#include <string.h>

/* ---- Types ---- */

/* Returns the size of an element from its bits, also for PPC64's pair of doubles and x86's 80-bit
 * numbers. */
static size_t element_size(struct cairn_type type)
{
    bool has_bits = type.kind != CAIRN_TYPE_VOID && type.kind != CAIRN_TYPE_OTHER;
    return has_bits ? ((size_t)type.bits + 7) / 8 : 0;
}

size_t cairn_type_size(struct cairn_type type)
{
    uint64_t count = type.element_count == 0 ? 1 : type.element_count;
    uint64_t size = element_size(type) * count;
    return size <= CAIRN_VALUE_BYTES_MAX ? (size_t)size : 0;
}

struct cairn_type cairn_type_integer(uint32_t bits)
{
    return (struct cairn_type){.kind = CAIRN_TYPE_INTEGER, .bits = bits};
}

struct cairn_type cairn_type_pointer(void)
{
    return (struct cairn_type){.kind = CAIRN_TYPE_POINTER, .bits = 64};
}

struct cairn_type cairn_type_float(void)
{
    return (struct cairn_type){.kind = CAIRN_TYPE_FLOAT, .bits = 32};
}

struct cairn_type cairn_type_double(void)
{
    return (struct cairn_type){.kind = CAIRN_TYPE_DOUBLE, .bits = 64};
}

struct cairn_type cairn_type_vector(struct cairn_type element, uint32_t count)
{
    element.element_count = count;
    return element;
}

bool cairn_type_equal(struct cairn_type left, struct cairn_type right)
{
    return left.kind == right.kind && left.bits == right.bits &&
           left.element_count == right.element_count;
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
    storage_copy_low(&bits, sizeof bits, value->bytes, value->size);
    return bits;
}

/* Returns a mask of the low `count` bits (1 to 64). */
static uint64_t mask_of(uint32_t count) { return UINT64_MAX >> (64 - count); }

static struct cairn_value scalar_of_bits(struct cairn_type type, uint64_t bits)
{
    struct cairn_value value = {.type = type, .size = (uint32_t)element_size(type)};
    storage_copy_low(value.bytes, value.size, &bits, sizeof bits);
    return value;
}

/* ---- Conversion to C types ---- */

uint64_t cairn_value_unsigned(const struct cairn_value *value)
{
    if (is_scalar(value, CAIRN_TYPE_INTEGER) || is_scalar(value, CAIRN_TYPE_POINTER))
        return low_bits(value);
    return 0;
}

int64_t cairn_value_signed(const struct cairn_value *value)
{
    uint64_t bits = cairn_value_unsigned(value);
    if (value->type.bits == 0 || value->type.bits >= 64)
        return (int64_t)bits;
    uint64_t sign = (uint64_t)1 << (value->type.bits - 1);
    return (int64_t)((bits ^ sign) - sign);
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

enum cairn_status cairn_value_element(const struct cairn_value *value, uint32_t index,
                                      struct cairn_value *element, struct cairn_error *error)
{
    if (index >= value->type.element_count)
        return error_set(error, CAIRN_ERROR_RANGE, index, "there is no element %u among %u", index,
                         value->type.element_count);
    struct cairn_value found = {.type = cairn_type_vector(value->type, 0)};
    found.size = (uint32_t)element_size(found.type);
    memcpy(found.bytes, value->bytes + (size_t)index * found.size, found.size);
    *element = found;
    return CAIRN_OK;
}

/* ---- Conversion from C types ---- */

struct cairn_value cairn_value_of_integer(uint32_t bits, int64_t number)
{
    return scalar_of_bits(cairn_type_integer(bits), (uint64_t)number & mask_of(bits));
}

struct cairn_value cairn_value_of_pointer(const void *pointer)
{
    return scalar_of_bits(cairn_type_pointer(), (uintptr_t)pointer);
}

struct cairn_value cairn_value_of_float(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return scalar_of_bits(cairn_type_float(), bits);
}

struct cairn_value cairn_value_of_double(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return scalar_of_bits(cairn_type_double(), bits);
}

static enum cairn_status refuse_size(struct cairn_type type, size_t size, struct cairn_error *error)
{
    size_t expected = cairn_type_size(type);
    char name[64];
    cairn_type_format(type, name, sizeof name);
    if (expected == 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "there are no values of type %s", name);
    return error_set(error, CAIRN_ERROR_RANGE, 0, "%s has %zu bytes, not %zu", name, expected,
                     size);
}

enum cairn_status cairn_value_of_bytes(struct cairn_type type, const void *bytes, size_t size,
                                       struct cairn_value *value, struct cairn_error *error)
{
    if (size != cairn_type_size(type) || size == 0)
        return refuse_size(type, size, error);
    struct cairn_value made = {.type = type, .size = (uint32_t)size};
    memcpy(made.bytes, bytes, size);
    *value = made;
    return CAIRN_OK;
}
