/*
 * base/sort.h - sorting in linear time for any input, without allocation, and binary search.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sort_key {
    uint32_t key;
    uint32_t number;
};

/* Sorts by `key`, stably. `space` has as many elements as `keys`. */
void sort_keys(struct sort_key *keys, struct sort_key *space, size_t count);

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
