/*
 * Reads and writes values as a register, memory or a constant holds them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "value/representation.h"

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

size_t storage_part(struct cairn_type type, struct storage place)
{
    size_t size = cairn_type_size(type);
    if (size == 0 || size > place.size || place.size > CAIRN_VALUE_BYTES_MAX)
        return 0;
    if (is_vector(type)) {
        /* The elements may be in wider lanes that fill the place. */
        bool has_lanes = type.kind == CAIRN_TYPE_INTEGER && place.size % type.element_count == 0;
        bool fits = size == place.size || has_lanes;
        return fits && place.form != STORAGE_GENERAL ? place.size : 0;
    }
    if (is_widened(type, place))
        return place.size < sizeof(double) ? 0 : sizeof(double);
    /* In memory, the place may be larger than the value that was stored there. */
    return place.form == STORAGE_MEMORY ? place.size : size;
}

/* ---- Reading ---- */

void storage_read(struct cairn_type type, struct storage place, const void *bytes,
                  struct cairn_value *value)
{
    size_t size = cairn_type_size(type);
    *value = (struct cairn_value){.type = type, .size = (uint32_t)size};
    if (is_widened(type, place)) {
        /* PPC64: exact, because the double was made from a float. NaNs keep their bits. */
        enum { SHIFT = 52 - 23 }; /* between the fractions */
        double number;
        uint64_t bits;
        memcpy(&number, bytes, sizeof number);
        memcpy(&bits, bytes, sizeof bits);
        uint32_t nan =
            (uint32_t)(bits >> 63 << 31) | 0x7F800000U | (uint32_t)(bits >> SHIFT & 0x7FFFFF);
        float narrowed = isnan(number) ? 0 : (float)number;
        memcpy(value->bytes, isnan(number) ? (const void *)&nan : &narrowed, sizeof nan);
        return;
    }
    uint32_t count = is_vector(type) ? type.element_count : 1;
    size_t lane = storage_part(type, place) / count;
    size_t element = size / count;
    for (uint32_t i = 0; i < count; i++) {
        value_copy_low(value->bytes + i * element, element, (const uint8_t *)bytes + i * lane,
                       lane);
        clear_unused_bits(value->bytes + i * element, type, element);
    }
}

/* ---- Writing ---- */

void storage_write(const struct cairn_value *value, struct storage place, void *bytes)
{
    size_t part = storage_part(value->type, place);
    if (is_widened(value->type, place)) {
        double number = cairn_value_double(value);
        memcpy(bytes, &number, sizeof number);
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
    bool is_integer = type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER;
    if (size == 0 || is_vector(type) || (is_wide && !is_integer))
        return false;
    struct cairn_value read = {.type = type, .size = (uint32_t)size};
    memset(read.bytes, is_wide && (int64_t)constant < 0 ? 0xFF : 0, size);
    value_copy_low(read.bytes, size, &constant, sizeof constant);
    clear_unused_bits(read.bytes, type, size);
    *value = read;
    return true;
}
