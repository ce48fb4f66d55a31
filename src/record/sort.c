/* SPDX-License-Identifier: MIT */
#include "record/sort.h"

#include <stdbool.h>
#include <string.h>

/* ---- Numbers by key ---- */

enum { DIGIT_BITS = 11, DIGITS = 3, DIGIT_VALUES = 1 << DIGIT_BITS };

static uint32_t digit_of(uint32_t key, int digit)
{
    return key >> (digit * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

static void distribute(const struct sort_key *from, struct sort_key *to, size_t count, int digit)
{
    uint32_t ends[DIGIT_VALUES] = {0};
    for (size_t i = 0; i < count; i++)
        ends[digit_of(from[i].key, digit)]++;
    uint32_t begin = 0;
    for (size_t value = 0; value < DIGIT_VALUES; value++) {
        uint32_t size = ends[value];
        ends[value] = begin;
        begin += size;
    }
    for (size_t i = 0; i < count; i++)
        to[ends[digit_of(from[i].key, digit)]++] = from[i];
}

/* Sorts by each digit, from the lowest to the highest, stably. */
void sort_keys(struct sort_key *keys, struct sort_key *space, size_t count)
{
    struct sort_key *from = keys;
    struct sort_key *to = space;
    for (int digit = 0; digit < DIGITS; digit++) {
        distribute(from, to, count, digit);
        struct sort_key *held = from;
        from = to;
        to = held;
    }
    memcpy(keys, space, count * sizeof *keys);
}

/* ---- Record numbers by ID ---- */

static bool comes_before(uint32_t left, uint32_t right, const cairn_table *table)
{
    uint64_t left_id = table_id(table, left);
    uint64_t right_id = table_id(table, right);
    return left_id != right_id ? left_id < right_id : left < right;
}

static void sift_number_down(uint32_t *numbers, size_t root, size_t count, const cairn_table *table)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        child += child + 1 < count && comes_before(numbers[child], numbers[child + 1], table);
        if (!comes_before(numbers[root], numbers[child], table))
            return;
        uint32_t held = numbers[root];
        numbers[root] = numbers[child];
        numbers[child] = held;
        root = child;
    }
}

static bool is_sorted(const uint32_t *numbers, size_t count, const cairn_table *table)
{
    for (size_t i = 1; i < count; i++)
        if (!comes_before(numbers[i - 1], numbers[i], table))
            return false;
    return true;
}

void sort_by_id(uint32_t *numbers, size_t count, const cairn_table *table)
{
    /* A long run usually has one ID many times, and is sorted already. */
    if (is_sorted(numbers, count, table))
        return;
    for (size_t root = count / 2; root-- > 0;)
        sift_number_down(numbers, root, count, table);
    for (size_t end = count; end-- > 1;) {
        uint32_t held = numbers[0];
        numbers[0] = numbers[end];
        numbers[end] = held;
        sift_number_down(numbers, 0, end, table);
    }
}
