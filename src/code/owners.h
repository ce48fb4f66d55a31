/*
 * code/owners.h - from a unit of a slab to the owner of the range that contains it.
 *
 * A range of units gets an owner when its code is published, and loses it when it is freed. Many
 * ranges may be in one page. A page here is OWNERS_PAGE_UNITS units, whatever the system's page
 * size is.
 *
 * The entry of a page is one of these:
 *  - 0: no unit of the page is in a range with an owner.
 *  - The owner of the range that contains the whole page.
 *  - A table, marked by bit 0: it has the owner of each unit, or NULL. A page keeps its table for
 *    good.
 *
 * So a lookup takes at most two cache misses, also among very many ranges, and the index is in
 * proportion to the code: a table for each page that ranges share.
 *
 * Guarantees for readers: a lookup takes no lock and allocates nothing, and is async-signal-safe.
 * It returns an owner that the unit's range had during the lookup, or NULL. Nothing that a reader
 * may be reading is freed before owners_destroy.
 *
 * Threads. The caller serialises all calls except owners_find and owners_set.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_OWNERS_H
#define CODE_OWNERS_H

#include "base/pool.h"

#include <cairn/status.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Powers of two, as shifts: the bytes of a unit, and the units of a page. */
enum { OWNERS_UNIT_SHIFT = 5, OWNERS_PAGE_SHIFT = 7 };
enum { OWNERS_UNIT_BYTES = 1 << OWNERS_UNIT_SHIFT, OWNERS_PAGE_UNITS = 1 << OWNERS_PAGE_SHIFT };

struct owners_table {
    _Atomic(void *) owners[OWNERS_PAGE_UNITS];
};

struct owners {
    _Atomic uintptr_t *pages; /* the entries */
    size_t page_count;
    size_t table_count;
    struct pool tables; /* so that lookups in any of them read few pages */
};

/* Returns the size of the entries of so many pages. */
size_t owners_bytes(size_t page_count);

/* Initialises an index without owners. `pages` has owners_bytes(page_count) bytes, all of them 0;
 * it may be a mapping of which only the used parts take memory. */
void owners_init(struct owners *owners, const struct cairn_allocator *allocator, size_t page_count,
                 void *pages);
/* Frees the tables. Does not read the entries: in an index that was never used, all of them would
 * take page faults. */
void owners_destroy(struct owners *owners);

/* Makes sure that owners_set can set the owner of a range. On MEMORY, nothing has changed that a
 * caller can see. */
enum cairn_status owners_reserve(struct owners *owners, size_t first, size_t count,
                                 struct cairn_error *error);

/* Sets the owner of a range that was reserved, whose bit 0 must be 0; NULL removes it. No unit of
 * it may be in another range with an owner. Takes time proportional to the number of units in pages
 * with a table, and of other pages. Other threads may call the other functions for other ranges at
 * the same time. */
void owners_set(struct owners *owners, size_t first, size_t count, void *owner);

/* Returns the owner of the range that contains a unit, or NULL. The unit must be in the index. */
static inline void *owners_find(const _Atomic uintptr_t *pages, size_t unit);

/* ---- Implementation of the lookup ---- */

enum { OWNERS_IS_TABLE = 1 };

static inline struct owners_table *owners_table_of(uintptr_t entry)
{
    if ((entry & OWNERS_IS_TABLE) == 0)
        return NULL;
    return (struct owners_table *)(entry - OWNERS_IS_TABLE);
}

static inline void *owners_find(const _Atomic uintptr_t *pages, size_t unit)
{
    uintptr_t entry = atomic_load_explicit(&pages[unit >> OWNERS_PAGE_SHIFT], memory_order_acquire);
    const struct owners_table *table = owners_table_of(entry);
    if (table == NULL)
        return (void *)entry;
    return atomic_load_explicit(&table->owners[unit % OWNERS_PAGE_UNITS], memory_order_acquire);
}

#endif
