/*
 * file/sorted.h - sorting arrays and searching them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_SORTED_H
#define FILE_SORTED_H

#include <stddef.h>
#include <stdlib.h>

typedef int sorted_compare(const void *left, const void *right);

/* Sorts an array. Takes O(n) time if it is sorted already, as input from linkers mostly is. */
static inline void sorted_make(void *items, size_t count, size_t item_bytes,
                               sorted_compare *compare)
{
    const char *at = items;
    for (size_t i = 1; i < count; i++, at += item_bytes)
        if (compare(at, at + item_bytes) > 0) {
            qsort(items, count, item_bytes, compare);
            return;
        }
}

/* Returns the index of the first item of a sorted array that is not less than `key`; `count` if all
 * items are less. */
static inline size_t sorted_lower_bound(const void *items, size_t count, size_t item_bytes,
                                        const void *key, sorted_compare *compare)
{
    size_t low = 0;
    while (count > 0) {
        size_t half = count / 2;
        if (compare((const char *)items + (low + half) * item_bytes, key) < 0) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

#endif
