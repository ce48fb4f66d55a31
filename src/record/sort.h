/*
 * record/sort.h - sorting without allocation, in bounded time for any input.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_SORT_H
#define RECORD_SORT_H

#include "record/layout.h"

struct sort_key {
    uint32_t key;
    uint32_t number;
};

/* Sorts by `key`, stably, in linear time. `space` has as many elements as `keys`. */
void sort_keys(struct sort_key *keys, struct sort_key *space, size_t count);

/* Sorts record numbers by the table's IDs. Numbers with equal IDs are sorted by number. */
void sort_by_id(uint32_t *numbers, size_t count, const cairn_table *table);

#endif
