/*
 * record/address_index.h - what a lookup by address reads of a module: one cache line.
 *
 * A module's tables are far from those of the next one, and of a hundred thousand modules they do
 * not fit a cache. So the addresses of the records of a small table are here, too. The function of
 * a module that has only one is in the other part of the index (record/function_index.h). All
 * indexes of a runtime are in its pool (base/pool.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_ADDRESS_INDEX_H
#define RECORD_ADDRESS_INDEX_H

#include "record/function_index.h"

#include <cairn/table.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_INDEX_RECORDS = 7, ADDRESS_INDEX_BYTES = 32, INDEX_LINE_BYTES = 64 };

/* Base of the index of a table that is not small: no address is that far. */
#define ADDRESS_INDEX_OF_LARGE UINT64_MAX

/* Invariant: a small table has 1 to ADDRESS_INDEX_RECORDS records, at most 64 KiB from the base.
 * `low` holds their distances; all other entries repeat the last one, so that all are compared at
 * once, and the last entry is the distance of the last record. */
struct address_index {
    const cairn_table *table;
    uint64_t base; /* address of the first function, or ADDRESS_INDEX_OF_LARGE */
    uint16_t low[ADDRESS_INDEX_RECORDS + 1];
};

_Static_assert(sizeof(struct address_index) == ADDRESS_INDEX_BYTES, "two are in a cache line");

/* The indexes of several modules. Lookups of records are the most frequent ones, so what they read
 * is together, and what all others read follows. (Processors fetch two neighbouring lines at once,
 * so with two modules in a group, half of what is fetched would be the other part.) */
enum { INDEX_GROUP_SIZE = 16 };

struct index_group {
    struct address_index addresses[INDEX_GROUP_SIZE];
    struct function_index functions[INDEX_GROUP_SIZE];
};

_Static_assert(sizeof(struct address_index) == sizeof(struct function_index),
               "both parts of an index are at one distance");
_Static_assert(offsetof(struct index_group, functions) % INDEX_LINE_BYTES == 0,
               "each part is in a cache line");

/* Returns the other part of an index that is in a group. */
static inline const struct function_index *index_functions(const struct address_index *index)
{
    const char *part = (const char *)index + offsetof(struct index_group, functions);
    return (const struct function_index *)(const void *)part;
}

/* Fills in the index of a table, which does not change any more. */
void address_index_init(struct address_index *index, const cairn_table *table);

/* Same as cairn_table_find_address on the table. Lock-free, async-signal-safe. */
bool address_index_find(const struct address_index *index, uint64_t address,
                        struct cairn_record *record);

#endif
