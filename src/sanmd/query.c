/*
 * The queries of programs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanmd/registry.h"

/* The entries of one kind in a directory. */
struct entries {
    const struct directory_entry *first;
    size_t count;
};

static struct entries entries_of(struct query query, enum cairn_sanmd_kind kind)
{
    const struct directory *directory = query.directory;
    if (directory == NULL)
        return (struct entries){NULL, 0};
    if (kind == CAIRN_SANMD_COVERED)
        return (struct entries){directory->entries, directory->covered_count};
    return (struct entries){directory->entries + directory->covered_count,
                            directory->count - directory->covered_count};
}

/* ---- By PC ---- */

/* Returns the number of directory entries whose code begins at or before `pc`. */
static size_t count_up_to(struct entries of, uint64_t pc)
{
    size_t low = 0;
    size_t high = of.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of.first[middle].code_begin <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the last entry of the table at or before `pc`. Returns false if all entries are after it,
 * if `pc` is after the table's code, or if the table was deleted. */
static bool find_in_table(const struct directory_entry *entry, uint64_t pc, size_t *found)
{
    if (pc >= entry->code_end || atomic_load_explicit(&entry->table->is_gone, memory_order_acquire))
        return false;
    size_t count = table_count_up_to(entry->table, pc);
    *found = count - 1;
    return count > 0;
}

bool cairn_sanmd_is_atomic(uint64_t pc)
{
    struct query query = query_begin();
    struct entries of = entries_of(query, CAIRN_SANMD_ATOMICS);
    bool is_found = false;
    for (size_t i = count_up_to(of, pc); !is_found && i > 0 && of.first[i - 1].furthest_end > pc;
         i--) {
        size_t found;
        is_found = find_in_table(&of.first[i - 1], pc, &found) &&
                   table_address(of.first[i - 1].table, found) == pc;
    }
    query_end(query);
    return is_found;
}

bool cairn_sanmd_find_function(uint64_t pc, struct cairn_sanmd_entry *function)
{
    struct query query = query_begin();
    struct entries of = entries_of(query, CAIRN_SANMD_COVERED);
    bool is_found = false;
    for (size_t i = count_up_to(of, pc); !is_found && i > 0 && of.first[i - 1].furthest_end > pc;
         i--) {
        size_t found;
        if (!find_in_table(&of.first[i - 1], pc, &found))
            continue;
        struct cairn_sanmd_entry last = table_entry(of.first[i - 1].table, found);
        is_found = pc - last.address < last.size;
        if (is_found)
            *function = last;
    }
    query_end(query);
    return is_found;
}

/* ---- Visits ---- */

/* Returns the number of the first entry at or after `begin`. */
static size_t first_entry(const struct table *table, uint64_t begin)
{
    if (begin <= table->range.code_begin)
        return 0;
    if (begin >= table->range.code_end)
        return table->range.entry_count;
    return table_count_up_to(table, begin - 1);
}

bool cairn_sanmd_visit(enum cairn_sanmd_kind kind, uint64_t begin, uint64_t end,
                       bool (*visit)(void *data, const struct cairn_sanmd_entry *entry), void *data)
{
    struct query query = query_begin();
    struct entries of = entries_of(query, kind);
    bool visits_all = true;
    for (size_t i = 0; i < of.count && visits_all; i++) {
        const struct table *table = of.first[i].table;
        /* The callback may delete the table. */
        for (size_t k = first_entry(table, begin);
             visits_all && k < table->range.entry_count && !atomic_load(&table->is_gone); k++) {
            struct cairn_sanmd_entry entry = table_entry(table, k);
            if (entry.address >= end)
                break;
            visits_all = visit(data, &entry);
        }
    }
    query_end(query);
    return visits_all;
}

bool cairn_sanmd_visit_ranges(bool (*visit)(void *data, const struct cairn_sanmd_range *range),
                              void *data)
{
    struct query query = query_begin();
    size_t count = query.directory == NULL ? 0 : query.directory->count;
    bool visits_all = true;
    for (size_t i = 0; i < count && visits_all; i++) {
        const struct table *table = query.directory->entries[i].table;
        visits_all = atomic_load(&table->is_gone) || visit(data, &table->range);
    }
    query_end(query);
    return visits_all;
}
