/* SPDX-License-Identifier: MIT */
#include "format/uleb128.h"

#include <cairn/section.h>

enum { BITS = 7, MORE = 0x80, VALUE = MORE - 1, LAST_SHIFT = 63 };

/* The highest bit of each byte. */
#define ALL_MORE UINT64_C(0x8080808080808080)

/* Accepts zeros after the last significant bit, because assemblers pad with them. */
const uint8_t *uleb128_read_long(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t number = 0;
    if (end - at >= 8) {
        /* Where the number ends is not predictable, so there is no branch for each byte. */
        uint64_t word = cairn_load_u64(at, CAIRN_LITTLE_ENDIAN);
        uint64_t ends = ~word & ALL_MORE;
        if (ends != 0) {
            /* Moves the 7 bits of each byte together: by pairs, by fours, by eights. */
            word &= (ends ^ (ends - 1)) & ~ALL_MORE;
            word =
                (word & UINT64_C(0x007F007F007F007F)) | (word & UINT64_C(0x7F007F007F007F00)) >> 1;
            word =
                (word & UINT64_C(0x00003FFF00003FFF)) | (word & UINT64_C(0x3FFF00003FFF0000)) >> 2;
            *value = (word & UINT64_C(0x0FFFFFFF)) | (word & UINT64_C(0x0FFFFFFF00000000)) >> 4;
            return at + (__builtin_ctzll(ends) + 1) / 8;
        }
    }
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
