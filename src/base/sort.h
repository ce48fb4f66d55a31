/*
 * base/sort.h - sorting in linear time for any input, without allocation.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_key {
    uint32_t key;
    uint32_t number;
};

/* Sorts by `key`, stably. `space` has as many elements as `keys`. */
void sort_keys(struct sort_key *keys, struct sort_key *space, size_t count);

#endif
