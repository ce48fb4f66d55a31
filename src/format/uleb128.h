/*
 * format/uleb128.h - reads unsigned LEB128 numbers, most of which have one or two bytes.
 *
 * Source: DWARF Debugging Information Format, version 5, section 7.6.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_ULEB128_H
#define FORMAT_ULEB128_H

#include <stddef.h>
#include <stdint.h>

/* Implements uleb128_read for numbers with more than two bytes. */
const uint8_t *uleb128_read_long(const uint8_t *at, const uint8_t *end, uint64_t *value);

/* Reads the number at `at`, and returns the address after it. Returns NULL if the number goes
 * beyond `end`, with `*value` 0, or if it has more than 64 bits, with `*value` UINT64_MAX. */
static inline const uint8_t *uleb128_read(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (__builtin_expect(at < end && *at < 0x80, 1)) {
        *value = *at;
        return at + 1;
    }
    if (__builtin_expect(end - at >= 2 && at[1] < 0x80, 1)) {
        *value = (at[0] & 0x7Fu) | (uint64_t)at[1] << 7;
        return at + 2;
    }
    return uleb128_read_long(at, end, value);
}

#endif
