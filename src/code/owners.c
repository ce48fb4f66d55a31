/* SPDX-License-Identifier: MIT */
#include "code/owners.h"

#include "base/error.h"

#include <assert.h>
#include <string.h>

/* ---- Parts of a range: its units in one page ---- */

struct part {
    size_t page;
    uint32_t first; /* first unit, counted from the start of the page */
    uint32_t count;
};

/* Returns the part of the range that begins at unit `first`. */
static struct part part_at(size_t first, size_t end)
{
    uint32_t in_page = (uint32_t)(first % OWNERS_PAGE_UNITS);
    size_t left = end - first;
    uint32_t space = OWNERS_PAGE_UNITS - in_page;
    return (struct part){first >> OWNERS_PAGE_SHIFT, in_page,
                         left < space ? (uint32_t)left : space};
}

static struct owners_table *find_table(const struct owners *owners, size_t page)
{
    return owners_table_of(atomic_load_explicit(&owners->pages[page], memory_order_relaxed));
}

/* ---- The index ---- */

size_t owners_bytes(size_t page_count) { return page_count * sizeof(uintptr_t); }

void owners_init(struct owners *owners, const struct cairn_allocator *allocator, size_t page_count,
                 void *pages)
{
    *owners = (struct owners){.pages = pages, .page_count = page_count};
    pool_init(&owners->tables, allocator, sizeof(struct owners_table));
}

void owners_destroy(struct owners *owners) { pool_release(&owners->tables); }

/* A part that is a whole page needs no table. If a table cannot be made, those before it stay
 * empty. */
enum cairn_status owners_reserve(struct owners *owners, size_t first, size_t count,
                                 struct cairn_error *error)
{
    struct part part;
    size_t end = first + count;
    assert(end > first && end <= owners->page_count << OWNERS_PAGE_SHIFT);
    for (size_t at = first; at < end; at += part.count) {
        part = part_at(at, end);
        if (part.count == OWNERS_PAGE_UNITS || find_table(owners, part.page) != NULL)
            continue;
        struct owners_table *table = pool_take(&owners->tables, 1);
        if (table == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0,
                             "no memory for the index of code by address");
        memset(table, 0, sizeof *table);
        atomic_store_explicit(&owners->pages[part.page], (uintptr_t)table | OWNERS_IS_TABLE,
                              memory_order_release);
        owners->table_count++;
    }
    return CAIRN_OK;
}

static void set_part(struct owners *owners, const struct part *part, void *owner)
{
    struct owners_table *table = find_table(owners, part->page);
    if (table == NULL)
        atomic_store_explicit(&owners->pages[part->page], (uintptr_t)owner, memory_order_release);
    for (uint32_t i = 0; table != NULL && i < part->count; i++)
        atomic_store_explicit(&table->owners[part->first + i], owner, memory_order_release);
}

void owners_set(struct owners *owners, size_t first, size_t count, void *owner)
{
    struct part part;
    assert(((uintptr_t)owner & OWNERS_IS_TABLE) == 0);
    for (size_t at = first; at < first + count; at += part.count) {
        part = part_at(at, first + count);
        set_part(owners, &part, owner);
    }
}
