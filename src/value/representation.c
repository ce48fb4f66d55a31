/* SPDX-License-Identifier: MIT */
#include "value/representation.h"

#include "value/value.h"

#include <math.h>
#include <string.h>

static const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

enum storage_form storage_form(enum arch_register_form form)
{
    static const enum storage_form forms[] = {
        [ARCH_REGISTER_INTEGER] = STORAGE_GENERAL,
        [ARCH_REGISTER_VECTOR] = STORAGE_VECTOR,
        [ARCH_REGISTER_DOUBLEWORDS] = STORAGE_DOUBLE,
        [ARCH_REGISTER_QUADWORD] = STORAGE_DOUBLE,
    };
    return forms[form];
}

/* ---- Types ---- */

static bool is_vector(struct cairn_type type) { return type.element_count > 0; }

static bool is_integral(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER;
}

/* Whether the place holds the value as a double, as PPC64's registers hold floats. */
static bool is_widened(struct cairn_type type, struct storage place)
{
    return place.form == STORAGE_DOUBLE && type.kind == CAIRN_TYPE_FLOAT && !is_vector(type);
}

static void clear_unused_bits(unsigned char *bytes, struct cairn_type type, size_t size)
{
    if (type.kind == CAIRN_TYPE_INTEGER && type.bits % 8 != 0)
        bytes[is_big_endian ? 0 : size - 1] &= (unsigned char)((1U << type.bits % 8) - 1);
}

/* ---- Parts ---- */

/* Returns the size of the part for a vector. Its elements may be in wider lanes that fill the
 * place. */
static size_t vector_part(struct cairn_type type, struct storage place)
{
    size_t size = cairn_type_size(type);
    if (size == place.size)
        return size;
    bool has_lanes = type.kind == CAIRN_TYPE_INTEGER && place.size % type.element_count == 0;
    return has_lanes && place.size > size ? place.size : 0;
}

size_t storage_part(struct cairn_type type, struct storage place)
{
    size_t size = cairn_type_size(type);
    if (size == 0 || size > place.size || place.size > CAIRN_VALUE_BYTES_MAX)
        return 0;
    if (is_vector(type))
        return place.form == STORAGE_GENERAL ? 0 : vector_part(type, place);
    if (is_widened(type, place))
        return place.size < sizeof(double) ? 0 : sizeof(double);
    /* In memory, the place may be larger than the value that was stored there. */
    return place.form == STORAGE_MEMORY ? place.size : size;
}

/* ---- PPC64's doubles ---- */

enum { FLOAT_FRACTION_SHIFT = 52 - 23 };

/* Converts a double to a float. The result is exact, because the double was made from a float. NaNs
 * keep their bits. */
static float narrow(double number)
{
    if (!isnan(number))
        return (float)number;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint32_t narrow_bits = (uint32_t)(bits >> 63 << 31) | 0x7F800000U |
                           (uint32_t)(bits >> FLOAT_FRACTION_SHIFT & 0x7FFFFF);
    float narrowed;
    memcpy(&narrowed, &narrow_bits, sizeof narrowed);
    return narrowed;
}

static struct cairn_value read_widened(const void *bytes)
{
    double number;
    memcpy(&number, bytes, sizeof number);
    float narrowed = narrow(number);
    struct cairn_value value = {.type = CAIRN_FLOAT, .size = sizeof narrowed};
    memcpy(value.bytes, &narrowed, sizeof narrowed);
    return value;
}

static void write_widened(const struct cairn_value *value, void *bytes)
{
    double number = cairn_value_double(value);
    memcpy(bytes, &number, sizeof number);
}

/* ---- Reading ---- */

/* Reads a scalar of `size` bytes. */
static void read_scalar(struct cairn_type type, size_t size, const unsigned char *bytes,
                        size_t part, unsigned char *to)
{
    value_copy_low(to, size, bytes, part);
    clear_unused_bits(to, type, size);
}

static void read_lanes(struct cairn_type type, size_t size, const unsigned char *bytes, size_t part,
                       unsigned char *to)
{
    struct cairn_type element = cairn_type_vector(type, 0);
    size_t element_size = size / type.element_count;
    size_t lane = part / type.element_count;
    for (uint32_t i = 0; i < type.element_count; i++)
        read_scalar(element, element_size, bytes + i * lane, lane, to + i * element_size);
}

void storage_read(struct cairn_type type, struct storage place, const void *bytes,
                  struct cairn_value *value)
{
    if (is_widened(type, place)) {
        *value = read_widened(bytes);
        return;
    }
    size_t size = cairn_type_size(type);
    *value = (struct cairn_value){.type = type, .size = (uint32_t)size};
    if (is_vector(type))
        read_lanes(type, size, bytes, storage_part(type, place), value->bytes);
    else
        read_scalar(type, size, bytes, place.form == STORAGE_MEMORY ? place.size : size,
                    value->bytes);
}

/* ---- Writing ---- */

void storage_write(const struct cairn_value *value, struct storage place, void *bytes)
{
    size_t part = storage_part(value->type, place);
    if (is_widened(value->type, place)) {
        write_widened(value, bytes);
        return;
    }
    uint32_t count = is_vector(value->type) ? value->type.element_count : 1;
    size_t size = value->size / count;
    size_t lane = part / count;
    memset(bytes, 0, part);
    for (uint32_t i = 0; i < count; i++)
        value_copy_low((unsigned char *)bytes + i * lane, lane, value->bytes + i * size, size);
}

/* ---- Constants ---- */

bool storage_read_constant(struct cairn_type type, uint64_t constant, struct cairn_value *value)
{
    size_t size = cairn_type_size(type);
    bool is_wide = size > sizeof constant;
    if (size == 0 || is_vector(type) || (is_wide && !is_integral(type)))
        return false;
    struct cairn_value read = {.type = type, .size = (uint32_t)size};
    memset(read.bytes, is_wide && (int64_t)constant < 0 ? 0xFF : 0, size);
    value_copy_low(read.bytes, size, &constant, sizeof constant);
    clear_unused_bits(read.bytes, type, size);
    *value = read;
    return true;
}
