/* SPDX-License-Identifier: MIT */
#include "tools/cli/list.h"

#include <stdlib.h>
#include <string.h>

void *list_add(struct list *list, size_t item_bytes)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        void *items = realloc(list->items, capacity * item_bytes);
        if (items == NULL)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    return memset((char *)list->items + list->count++ * item_bytes, 0, item_bytes);
}

bool list_append(struct list *list, const void *item, size_t item_bytes)
{
    void *added = list_add(list, item_bytes);
    if (added != NULL)
        memcpy(added, item, item_bytes);
    return added != NULL;
}

void list_sort(struct list *list, size_t item_bytes, compare_items *compare)
{
    if (list->count > 1)
        qsort(list->items, list->count, item_bytes, compare);
}

void list_release(struct list *list)
{
    free(list->items);
    *list = (struct list){.items = NULL};
}

int compare_first_numbers(const void *left, const void *right)
{
    return compare_numbers(*(const uint64_t *)left, *(const uint64_t *)right);
}

size_t first_above(const void *numbers, size_t stride, size_t count, uint64_t value)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        uint64_t number;
        memcpy(&number, (const char *)numbers + middle * stride, sizeof number);
        if (number <= value)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}
