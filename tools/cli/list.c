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
    return (char *)list->items + list->count++ * item_bytes;
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
