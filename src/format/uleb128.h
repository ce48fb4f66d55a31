/*
 * format/uleb128.h - unsigned LEB128 numbers, most of which are one byte.
 *
 * Source: DWARF Debugging Information Format, version 5, section 7.6.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_ULEB128_H
#define FORMAT_ULEB128_H

#include <stddef.h>
#include <stdint.h>

/* Of numbers with more than one byte. */
const uint8_t *uleb128_read_long(const uint8_t *at, const uint8_t *end, uint64_t *value);

/* Where the number that begins at `at` ends; NULL if that is beyond `end`, or the number has more
 * than 64 bits (`*value` is then UINT64_MAX; otherwise 0). */
static inline const uint8_t *uleb128_read(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (__builtin_expect(at < end && *at < 0x80, 1)) {
        *value = *at;
        return at + 1;
    }
    return uleb128_read_long(at, end, value);
}

#endif
