/*
 * tools/cli/list.h - growing arrays, and sorting and searching by numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_LIST_H
#define TOOLS_CLI_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing array. */
struct list {
    void *items;
    size_t count;
    size_t capacity;
};

typedef int compare_items(const void *left, const void *right);

/* Returns one more item, of zeros. NULL without memory. */
void *list_add(struct list *list, size_t item_bytes);

/* Adds a copy of the item. False without memory. */
bool list_append(struct list *list, const void *item, size_t item_bytes);

void list_sort(struct list *list, size_t item_bytes, compare_items *compare);

/* Frees the items. The list is then empty. */
void list_release(struct list *list);

/* Returns a number below, equal to or above 0 if `left` is less than, equal to or greater than
 * `right`. */
static inline int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

/* Compares items that begin with a number of 8 bytes by it. */
int compare_first_numbers(const void *left, const void *right);

/* Searches `count` ascending numbers of 8 bytes, which are `stride` bytes apart; the first is at
 * `numbers`. Returns the index of the first one that is greater than `value`, or `count`. */
size_t first_above(const void *numbers, size_t stride, size_t count, uint64_t value);

#endif
