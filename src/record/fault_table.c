/*
 * Fault maps by PC. A table is one allocation: the table, its rows, the buckets of their directory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/fault_table.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/sort.h"
#include "record/offset_directory.h"

#include <string.h>

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

struct fault_builder {
    const struct cairn_section *sections;
    size_t section_count;
    const struct cairn_allocator *allocator;
    bool zeros_may_follow;
    uint64_t count;
    uint64_t lowest;
    uint64_t highest;
    uint64_t last; /* highest address of an instruction */
    cairn_fault_table *table;
};

/* ---- All entries of all maps ---- */

typedef void visit_fault(struct fault_builder *builder, const struct cairn_fault_entry *entry);

static void visit_map(struct fault_builder *builder, const struct cairn_faultmap *map,
                      visit_fault *visit)
{
    struct cairn_faultmap_function function = {0};
    while (cairn_faultmap_next(map, &function))
        for (uint32_t i = 0; i < function.fault_count; i++) {
            struct cairn_fault fault = cairn_faultmap_fault(map, &function, i);
            struct cairn_fault_entry entry = {
                .address = function.address + fault.faulting_offset,
                .handler_address = function.address + fault.handler_offset,
                .function_address = function.address,
                .kind = fault.kind,
            };
            visit(builder, &entry);
        }
}

static enum cairn_status visit_all(struct fault_builder *builder, visit_fault *visit,
                                   struct cairn_error *error)
{
    for (size_t i = 0; i < builder->section_count; i++) {
        const struct cairn_section *section = &builder->sections[i];
        size_t offset = 0;
        while (offset < section->size) {
            struct cairn_faultmap map;
            enum cairn_status status = cairn_faultmap_read(section, &offset, &map, error);
            if (status != CAIRN_OK)
                return status;
            visit_map(builder, &map, visit);
            size_t zeros = offset;
            while (builder->zeros_may_follow && zeros < section->size && section->bytes[zeros] == 0)
                zeros++;
            if (zeros == section->size)
                break;
        }
    }
    return CAIRN_OK;
}

/* ---- Counting ---- */

static void count_entry(struct fault_builder *builder, const struct cairn_fault_entry *entry)
{
    const uint64_t addresses[] = {entry->address, entry->handler_address, entry->function_address};
    builder->count++;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        if (addresses[i] < builder->lowest)
            builder->lowest = addresses[i];
        if (addresses[i] > builder->highest)
            builder->highest = addresses[i];
    }
    if (entry->address > builder->last)
        builder->last = entry->address;
}

static enum cairn_status count_all(struct fault_builder *builder, struct cairn_error *error)
{
    builder->lowest = UINT64_MAX;
    enum cairn_status status = visit_all(builder, count_entry, error);
    if (status != CAIRN_OK || builder->count == 0)
        return status;
    if (builder->highest - builder->lowest >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, builder->highest,
                         "the fault maps' addresses, from 0x%llx to 0x%llx, are 4 GiB apart",
                         (unsigned long long)builder->lowest, (unsigned long long)builder->highest);
    if (builder->count >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, builder->count,
                         "the fault maps have %llu entries", (unsigned long long)builder->count);
    return CAIRN_OK;
}

/* ---- Filling in ---- */

static enum cairn_status allocate(struct fault_builder *builder, struct cairn_error *error)
{
    size_t rows = (size_t)builder->count;
    struct offsets offsets = {.base = rows == 0 ? 0 : builder->lowest,
                              .stride = sizeof(struct fault_row)};
    uint32_t buckets =
        offsets_plan(&offsets, (uint32_t)rows, (uint32_t)(builder->last - offsets.base));
    size_t bytes = sizeof(cairn_fault_table) + rows * sizeof(struct fault_row) +
                   (size_t)buckets * sizeof(uint32_t);
    cairn_fault_table *table = memory_new(builder->allocator, bytes, 1);
    if (table == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu faults", rows);
    table->allocator = *builder->allocator;
    table->size_bytes = bytes;
    table->rows = (struct fault_row *)(table + 1);
    table->offsets = offsets;
    table->offsets.rows = (const unsigned char *)table->rows;
    table->offsets.buckets = (uint32_t *)(table->rows + rows);
    table->offsets.count = 0; /* counts up as rows are added */
    builder->table = table;
    return CAIRN_OK;
}

static void add_row(struct fault_builder *builder, const struct cairn_fault_entry *entry)
{
    cairn_fault_table *table = builder->table;
    uint64_t base = table->offsets.base;
    table->rows[table->offsets.count++] = (struct fault_row){
        .offset = (uint32_t)(entry->address - base),
        .handler = (uint32_t)(entry->handler_address - base),
        .function = (uint32_t)(entry->function_address - base),
        .kind = (uint32_t)entry->kind,
    };
}

/* Sorts the rows by offset, stably. */
static enum cairn_status sort_rows(const cairn_fault_table *table, struct cairn_error *error)
{
    size_t count = table->offsets.count;
    size_t row_bytes = 2 * sizeof(struct sort_key) + sizeof(struct fault_row);
    bool ascends = true;
    for (size_t i = 1; i < count; i++)
        ascends = ascends && table->rows[i - 1].offset <= table->rows[i].offset;
    if (ascends)
        return CAIRN_OK;
    struct fault_row *rows = memory_new(&table->allocator, count, row_bytes);
    if (rows == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %zu faults", count);
    struct sort_key *keys = (struct sort_key *)(rows + count);
    memcpy(rows, table->rows, count * sizeof *rows);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (struct sort_key){rows[i].offset, i};
    sort_keys(keys, keys + count, count);
    for (size_t i = 0; i < count; i++)
        table->rows[i] = rows[keys[i].number];
    memory_free(&table->allocator, rows, count * row_bytes);
    return CAIRN_OK;
}

static enum cairn_status create(const struct cairn_section *sections, size_t count,
                                const struct cairn_allocator *allocator, bool zeros_may_follow,
                                cairn_fault_table **table, struct cairn_error *error)
{
    if (table == NULL || (sections == NULL && count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_fault_table_create needs sections and a place for the table");
    struct cairn_allocator chosen = memory_allocator(allocator);
    struct fault_builder builder = {
        .sections = sections,
        .section_count = count,
        .allocator = &chosen,
        .zeros_may_follow = zeros_may_follow,
    };
    enum cairn_status status = count_all(&builder, error);
    if (status == CAIRN_OK)
        status = allocate(&builder, error);
    if (status == CAIRN_OK)
        status = visit_all(&builder, add_row, error);
    if (status == CAIRN_OK)
        status = sort_rows(builder.table, error);
    if (status != CAIRN_OK) {
        cairn_fault_table_destroy(builder.table);
        return status;
    }
    offsets_fill(&builder.table->offsets);
    *table = builder.table;
    return CAIRN_OK;
}

enum cairn_status cairn_fault_table_create(const struct cairn_section *sections, size_t count,
                                           const struct cairn_allocator *allocator,
                                           cairn_fault_table **table, struct cairn_error *error)
{
    return create(sections, count, allocator, false, table, error);
}

enum cairn_status fault_table_create_padded(const struct cairn_section *sections, size_t count,
                                            const struct cairn_allocator *allocator,
                                            cairn_fault_table **table, struct cairn_error *error)
{
    return create(sections, count, allocator, true, table, error);
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

uint32_t cairn_fault_table_count(const cairn_fault_table *table)
{
    return table == NULL ? 0 : table->offsets.count;
}

bool cairn_fault_table_entry(const cairn_fault_table *table, uint32_t index,
                             struct cairn_fault_entry *entry)
{
    if (index >= cairn_fault_table_count(table))
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
