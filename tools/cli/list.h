/*
 * tools/cli/list.h - growing arrays, and searching sorted ones.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_LIST_H
#define TOOLS_CLI_LIST_H

#include <stddef.h>
#include <stdint.h>

/* A growing array. */
struct list {
    void *items;
    size_t count;
    size_t capacity;
};

/* Returns space for one more item. NULL without memory. */
void *list_add(struct list *list, size_t item_bytes);

/* Searches `count` ascending numbers of 8 bytes, which are `stride` bytes apart; the first is at
 * `numbers`. Returns the index of the first one that is greater than `value`, or `count`. */
size_t first_above(const void *numbers, size_t stride, size_t count, uint64_t value);

#endif
