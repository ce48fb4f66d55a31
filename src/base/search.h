/*
 * base/search.h - binary search.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Searches ascending numbers of 4 bytes, which are `stride` bytes apart; the first is at `numbers`.
 * Returns the index of the first one from `begin` up to `end` that is not less than `wanted`, or
 * `end`. */
static inline uint32_t search_u32(const void *numbers, size_t stride, uint32_t begin, uint32_t end,
                                  uint64_t wanted)
{
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        uint32_t number;
        memcpy(&number, (const unsigned char *)numbers + middle * stride, sizeof number);
        if (number < wanted)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

#endif
