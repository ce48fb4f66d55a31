/*
 * Fault maps by PC. A table is one allocation: the table, its rows, the buckets of their directory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/fault_table.h"

#include "base/array.h"
#include "base/error.h"
#include "base/sort.h"
#include "record/offset_directory.h"

/* All offsets are relative to the table's base. */
struct fault_row {
    uint32_t offset; /* first member, as struct offsets requires */
    uint32_t handler;
    uint32_t function;
    uint32_t kind;
};

struct cairn_fault_table {
    struct cairn_allocator allocator;
    size_t size_bytes;
    struct offsets offsets;
    struct fault_row *rows;
};

/* All entries, in the order of the sections. */
struct fault_list {
    struct cairn_allocator allocator;
    struct cairn_fault_entry *entries;
    size_t count;
    size_t capacity;
    uint64_t lowest;
    uint64_t highest;
    uint64_t last; /* highest address of an instruction */
};

/* ---- Building ---- */

static enum cairn_status add_map(struct fault_list *list, const struct cairn_faultmap *map,
                                 struct cairn_error *error)
{
    struct cairn_faultmap_function function = {0};
    while (cairn_faultmap_next(map, &function)) {
        for (uint32_t i = 0; i < function.fault_count; i++) {
            struct cairn_fault fault = cairn_faultmap_fault(map, &function, i);
            struct cairn_fault_entry *entries = array_reserve(
                &list->allocator, list->entries, list->count, 1, &list->capacity, sizeof *entries);
            if (entries == NULL)
                return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu faults",
                                 list->count + 1);
            const uint64_t addresses[] = {function.address + fault.faulting_offset,
                                          function.address + fault.handler_offset,
                                          function.address};
            list->entries = entries;
            entries[list->count++] =
                (struct cairn_fault_entry){addresses[0], addresses[1], addresses[2], fault.kind};
            for (size_t k = 0; k < sizeof addresses / sizeof *addresses; k++) {
                list->lowest = addresses[k] < list->lowest ? addresses[k] : list->lowest;
                list->highest = addresses[k] > list->highest ? addresses[k] : list->highest;
            }
            list->last = addresses[0] > list->last ? addresses[0] : list->last;
        }
    }
    return CAIRN_OK;
}

static enum cairn_status add_section(struct fault_list *list, const struct cairn_section *section,
                                     bool zeros_may_follow, struct cairn_error *error)
{
    size_t offset = 0;
    while (offset < section->size) {
        struct cairn_faultmap map;
        enum cairn_status status = cairn_faultmap_read(section, &offset, &map, error);
        if (status == CAIRN_OK)
            status = add_map(list, &map, error);
        if (status != CAIRN_OK)
            return status;
        size_t zeros = offset;
        while (zeros_may_follow && zeros < section->size && section->bytes[zeros] == 0)
            zeros++;
        if (zeros == section->size)
            break;
    }
    return CAIRN_OK;
}

/* Makes a table of the list, sorted by offset, stably. */
static enum cairn_status make_table(const struct fault_list *list, cairn_fault_table **table,
                                    struct cairn_error *error)
{
    if (list->count > 0 && list->highest - list->lowest >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, list->highest,
                         "the fault maps' addresses, from 0x%llx to 0x%llx, are 4 GiB apart",
                         (unsigned long long)list->lowest, (unsigned long long)list->highest);
    if (list->count >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, list->count, "the fault maps have %zu entries",
                         list->count);
    const uint32_t count = (uint32_t)list->count;
    const uint64_t base = count == 0 ? 0 : list->lowest;
    struct offsets offsets = {.base = base, .stride = sizeof(struct fault_row)};
    uint32_t buckets = offsets_plan(&offsets, count, (uint32_t)(list->last - base));
    size_t bytes = sizeof(cairn_fault_table) + count * sizeof(struct fault_row) +
                   (size_t)buckets * sizeof(uint32_t);
    cairn_fault_table *made = memory_new(&list->allocator, bytes, 1);
    struct sort_key *keys = memory_new(&list->allocator, 2 * list->count, sizeof *keys);
    if (made == NULL || (keys == NULL && count > 0)) {
        memory_free(&list->allocator, made, bytes);
        memory_free(&list->allocator, keys, 2 * list->count * sizeof *keys);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %u faults", count);
    }
    made->allocator = list->allocator;
    made->size_bytes = bytes;
    made->rows = (struct fault_row *)(made + 1);
    made->offsets = offsets;
    made->offsets.rows = (const unsigned char *)made->rows;
    made->offsets.buckets = (uint32_t *)(made->rows + count);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (struct sort_key){(uint32_t)(list->entries[i].address - base), i};
    if (count > 0)
        sort_keys(keys, keys + count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct cairn_fault_entry *entry = &list->entries[keys[i].number];
        made->rows[i] =
            (struct fault_row){keys[i].key, (uint32_t)(entry->handler_address - base),
                               (uint32_t)(entry->function_address - base), (uint32_t)entry->kind};
    }
    memory_free(&list->allocator, keys, 2 * list->count * sizeof *keys);
    offsets_fill(&made->offsets);
    *table = made;
    return CAIRN_OK;
}

enum cairn_status fault_table_create(const struct cairn_section *sections, size_t count,
                                     const struct cairn_allocator *allocator, bool zeros_may_follow,
                                     cairn_fault_table **table, struct cairn_error *error)
{
    if (table == NULL || (sections == NULL && count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_fault_table_create: `%s` is NULL",
                         table == NULL ? "table" : "sections");
    struct fault_list list = {.allocator = memory_allocator(allocator), .lowest = UINT64_MAX};
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = add_section(&list, &sections[i], zeros_may_follow, error);
    if (status == CAIRN_OK)
        status = make_table(&list, table, error);
    memory_free(&list.allocator, list.entries, list.capacity * sizeof *list.entries);
    return status;
}

enum cairn_status cairn_fault_table_create(const struct cairn_section *sections, size_t count,
                                           const struct cairn_allocator *allocator,
                                           cairn_fault_table **table, struct cairn_error *error)
{
    return fault_table_create(sections, count, allocator, false, table, error);
}

void cairn_fault_table_destroy(cairn_fault_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size_bytes);
}

/* ---- Looking up ---- */

size_t fault_table_size_bytes(const cairn_fault_table *table)
{
    return table == NULL ? 0 : table->size_bytes;
}

bool cairn_fault_table_entry(const cairn_fault_table *table, uint32_t index,
                             struct cairn_fault_entry *entry)
{
    if (table == NULL || index >= table->offsets.count)
        return false;
    const struct fault_row *row = &table->rows[index];
    uint64_t base = table->offsets.base;
    *entry = (struct cairn_fault_entry){
        .address = base + row->offset,
        .handler_address = base + row->handler,
        .function_address = base + row->function,
        .kind = (enum cairn_fault_kind)row->kind,
    };
    return true;
}

bool cairn_fault_table_find(const cairn_fault_table *table, uint64_t pc,
                            struct cairn_fault_entry *entry)
{
    struct cairn_fault_entry found;
    if (table == NULL ||
        !cairn_fault_table_entry(table, offsets_first(&table->offsets, pc), &found) ||
        found.address != pc)
        return false;
    *entry = found;
    return true;
}
