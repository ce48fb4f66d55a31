/* SPDX-License-Identifier: MIT */
#include "format/uleb128.h"

enum { BITS = 7, MORE = 0x80, VALUE = MORE - 1, LAST_SHIFT = 63 };

/* Accepts zeros after the last significant bit, because assemblers pad with them. */
const uint8_t *uleb128_read_long(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t number = 0;
    for (unsigned shift = 0; at < end; shift += BITS) {
        uint8_t byte = *at++;
        uint64_t part = byte & VALUE;
        if ((shift == LAST_SHIFT && part > 1) || (shift > LAST_SHIFT && part != 0)) {
            *value = UINT64_MAX;
            return NULL;
        }
        if (shift <= LAST_SHIFT)
            number |= part << shift;
        if ((byte & MORE) == 0) {
            *value = number;
            return at;
        }
    }
    *value = 0;
    return NULL;
}
