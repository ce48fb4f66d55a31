/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

enum { DIGIT_BITS = 11, DIGITS = 3, DIGIT_VALUES = 1 << DIGIT_BITS };

static uint32_t digit_of(uint32_t key, int digit)
{
    return key >> (digit * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

/* Sorts by each digit, from the lowest to the highest, stably. */
void sort_keys(struct sort_key *keys, struct sort_key *space, size_t count)
{
    struct sort_key *from = keys;
    struct sort_key *to = space;
    for (int digit = 0; digit < DIGITS; digit++) {
        uint32_t places[DIGIT_VALUES] = {0};
        for (size_t i = 0; i < count; i++)
            places[digit_of(from[i].key, digit)]++;
        uint32_t begin = 0;
        for (size_t value = 0; value < DIGIT_VALUES; value++) {
            uint32_t size = places[value];
            places[value] = begin;
            begin += size;
        }
        for (size_t i = 0; i < count; i++)
            to[places[digit_of(from[i].key, digit)]++] = from[i];
        struct sort_key *held = from;
        from = to;
        to = held;
    }
    memcpy(keys, space, count * sizeof *keys);
}
