/*
 * Implements the queries of programs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanmd/registry.h"

/* ---- Queries by PC ---- */

/* Returns the number of entries whose code begins at or before `pc`. */
static size_t count_up_to(struct query_entries of, uint64_t pc)
{
    size_t low = 0;
    size_t high = of.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of.entries[middle].code_begin <= pc)
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

static bool is_atomic(struct query query, uint64_t pc)
{
    struct query_entries of = query_entries(query, CAIRN_SANMD_ATOMICS);
    for (size_t i = count_up_to(of, pc); i > 0 && of.entries[i - 1].furthest_end > pc; i--) {
        size_t found;
        if (find_in_table(&of.entries[i - 1], pc, &found) &&
            table_address(of.entries[i - 1].table, found) == pc)
            return true;
    }
    return false;
}

bool cairn_sanmd_is_atomic(uint64_t pc)
{
    struct query query = query_begin();
    bool is = is_atomic(query, pc);
    query_end(query);
    return is;
}

static bool find_function(struct query query, uint64_t pc, struct cairn_sanmd_function *function)
{
    struct query_entries of = query_entries(query, CAIRN_SANMD_COVERED);
    for (size_t i = count_up_to(of, pc); i > 0 && of.entries[i - 1].furthest_end > pc; i--) {
        size_t found;
        if (!find_in_table(&of.entries[i - 1], pc, &found))
            continue;
        struct cairn_sanmd_function last = table_function(of.entries[i - 1].table, found);
        if (pc - last.address >= last.size)
            continue;
        *function = last;
        return true;
    }
    return false;
}

bool cairn_sanmd_find_function(uint64_t pc, struct cairn_sanmd_function *function)
{
    struct query query = query_begin();
    bool is_found = find_function(query, pc, function);
    query_end(query);
    return is_found;
}

/* ---- Visits of all entries ---- */

/* A visit to the entries of one kind. Only the callback for this kind is set. */
struct visit {
    enum cairn_sanmd_kind kind;
    uint64_t begin;
    uint64_t end;
    bool (*function)(void *data, const struct cairn_sanmd_function *function);
    bool (*atomic)(void *data, uint64_t pc);
    void *data;
};

static bool visit_entry(const struct visit *visit, const struct table *table, size_t entry)
{
    if (visit->kind == CAIRN_SANMD_ATOMICS)
        return visit->atomic(visit->data, table_address(table, entry));
    struct cairn_sanmd_function function = table_function(table, entry);
    return visit->function(visit->data, &function);
}

static size_t first_entry(const struct table *table, uint64_t begin)
{
    if (begin <= table->range.code_begin)
        return 0;
    if (begin >= table->range.code_end)
        return table->range.entry_count;
    return table_count_up_to(table, begin - 1);
}

static bool visit_table(const struct visit *visit, const struct table *table)
{
    for (size_t i = first_entry(table, visit->begin); i < table->range.entry_count; i++) {
        /* The callback may delete the table. */
        if (atomic_load(&table->is_gone) || table_address(table, i) >= visit->end)
            return true;
        if (!visit_entry(visit, table, i))
            return false;
    }
    return true;
}

static bool visit_entries(const struct visit *visit)
{
    struct query query = query_begin();
    struct query_entries of = query_entries(query, visit->kind);
    bool visits_all = true;
    for (size_t i = 0; i < of.count && visits_all; i++)
        visits_all = visit_table(visit, of.entries[i].table);
    query_end(query);
    return visits_all;
}

bool cairn_sanmd_visit_functions(uint64_t begin, uint64_t end,
                                 bool (*visit)(void *data,
                                               const struct cairn_sanmd_function *function),
                                 void *data)
{
    const struct visit visitor = {CAIRN_SANMD_COVERED, begin, end, visit, NULL, data};
    return visit_entries(&visitor);
}

bool cairn_sanmd_visit_atomics(uint64_t begin, uint64_t end, bool (*visit)(void *data, uint64_t pc),
                               void *data)
{
    const struct visit visitor = {CAIRN_SANMD_ATOMICS, begin, end, NULL, visit, data};
    return visit_entries(&visitor);
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

void cairn_sanmd_get_statistics(struct cairn_sanmd_statistics *statistics)
{
    registry_statistics(statistics);
}
