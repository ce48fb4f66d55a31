/*
 * record/address_index.h - what a lookup by address reads of a module, in one cache line.
 *
 * A module's tables are far from those of the next one, and of a hundred thousand modules they do
 * not fit a cache. So the addresses of the records of a small table are here, too, and so is the
 * function of a module that has only one. All indexes of a runtime are in its pool (base/pool.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_ADDRESS_INDEX_H
#define RECORD_ADDRESS_INDEX_H

#include "record/function_index.h"

#include <cairn/table.h>
#include <stdbool.h>
#include <stdint.h>

enum { ADDRESS_INDEX_RECORDS = 7, ADDRESS_INDEX_BYTES = 64 };

/* Base of the index of a table that is not small: no address is that far. */
#define ADDRESS_INDEX_OF_LARGE UINT64_MAX

/* Invariant: a small table has 1 to ADDRESS_INDEX_RECORDS records, at most 64 KiB from the base.
 * `low` holds their distances; all other entries repeat the last one, so that all are compared at
 * once, and the last entry is the distance of the last record. */
struct address_index {
    const cairn_table *table;
    uint64_t base; /* address of the first function, or ADDRESS_INDEX_OF_LARGE */
    uint16_t low[ADDRESS_INDEX_RECORDS + 1];
    void *owner; /* the module */
    struct function_index functions;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct address_index) == ADDRESS_INDEX_BYTES,
               "an index is a cache line");

/* Fills in the index of a table, which does not change any more, and of its owner. There are no
 * functions yet. */
void address_index_init(struct address_index *index, const cairn_table *table);

/* Same as cairn_table_find_address on the table. Lock-free, async-signal-safe. */
bool address_index_find(const struct address_index *index, uint64_t address,
                        struct cairn_record *record);

#endif
