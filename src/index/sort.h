/*
 * index/sort.h - sorting without allocating and without a bad case.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_SORT_H
#define INDEX_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Heap sort. Stable only if `compare` never says that two elements are equal, for example by
 * comparing where they stood. Elements are at most SORT_ELEMENT_BYTES_MAX long. */
enum { SORT_ELEMENT_BYTES_MAX = 256 };
void sort_stably(void *elements, size_t count, size_t size,
                 int (*compare)(const void *left, const void *right));

/* Sorts record numbers by keys[number], and equal keys by number. */
void sort_by_key(uint32_t *numbers, size_t count, const uint64_t *keys);

#endif
