/* SPDX-License-Identifier: MIT */
#include "index/sort.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* ---- Any elements ---- */

static void swap(uint8_t *left, uint8_t *right, size_t size)
{
    uint8_t held[SORT_ELEMENT_BYTES_MAX];
    memcpy(held, left, size);
    memcpy(left, right, size);
    memcpy(right, held, size);
}

static void sift_down(uint8_t *elements, size_t root, size_t count, size_t size,
                      int (*compare)(const void *left, const void *right))
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        bool right_is_larger = child + 1 < count &&
                               compare(elements + child * size, elements + (child + 1) * size) < 0;
        child += right_is_larger;
        if (compare(elements + root * size, elements + child * size) >= 0)
            return;
        swap(elements + root * size, elements + child * size, size);
        root = child;
    }
}

void sort_stably(void *elements, size_t count, size_t size,
                 int (*compare)(const void *left, const void *right))
{
    assert(size <= SORT_ELEMENT_BYTES_MAX);
    uint8_t *bytes = elements;
    for (size_t root = count / 2; root-- > 0;)
        sift_down(bytes, root, count, size, compare);
    for (size_t end = count; end-- > 1;) {
        swap(bytes, bytes + end * size, size);
        sift_down(bytes, 0, end, size, compare);
    }
}

/* ---- Record numbers by key ---- */

static bool comes_before(uint32_t left, uint32_t right, const uint64_t *keys)
{
    return keys[left] != keys[right] ? keys[left] < keys[right] : left < right;
}

static void sift_number_down(uint32_t *numbers, size_t root, size_t count, const uint64_t *keys)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        child += child + 1 < count && comes_before(numbers[child], numbers[child + 1], keys);
        if (!comes_before(numbers[root], numbers[child], keys))
            return;
        uint32_t held = numbers[root];
        numbers[root] = numbers[child];
        numbers[child] = held;
        root = child;
    }
}

static bool is_sorted(const uint32_t *numbers, size_t count, const uint64_t *keys)
{
    for (size_t i = 1; i < count; i++)
        if (!comes_before(numbers[i - 1], numbers[i], keys))
            return false;
    return true;
}

void sort_by_key(uint32_t *numbers, size_t count, const uint64_t *keys)
{
    /* One ID many times is the usual reason for a long run: it is in order already. */
    if (is_sorted(numbers, count, keys))
        return;
    for (size_t root = count / 2; root-- > 0;)
        sift_number_down(numbers, root, count, keys);
    for (size_t end = count; end-- > 1;) {
        uint32_t held = numbers[0];
        numbers[0] = numbers[end];
        numbers[end] = held;
        sift_number_down(numbers, 0, end, keys);
    }
}
