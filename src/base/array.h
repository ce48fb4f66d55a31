/*
 * base/array.h - growing an array.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include "base/memory.h"

#include <stdint.h>

/* Makes space for `more` elements (1 or more) after the first `count`. Returns the array, which may
 * have moved. Returns NULL, and leaves the array and `*capacity` unchanged, if memory runs out. */
static inline void *array_reserve(const struct cairn_allocator *allocator, void *elements,
                                  size_t count, size_t more, size_t *capacity, size_t element_bytes)
{
    enum { FIRST_CAPACITY = 8 };
    if (*capacity - count >= more)
        return elements;
    size_t wanted = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
    if (wanted - count < more)
        wanted = count + more;
    if (wanted > SIZE_MAX / element_bytes)
        return NULL;
    void *moved =
        memory_resize(allocator, elements, *capacity * element_bytes, wanted * element_bytes);
    if (moved != NULL)
        *capacity = wanted;
    return moved;
}

#endif
