/*
 * Builds a table of PC sections. One pass over the sections checks and counts, and a second one
 * writes the rows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/pcsection.h"
#include "index/pc_table.h"

#include <string.h>

struct pc_builder {
    const struct cairn_pc_table_section *sections;
    size_t section_count;
    struct cairn_pc_table_options options;
    uint32_t row_count;
    uint32_t range_count;
    uint32_t run_count;
    uint64_t lowest;
    uint64_t highest; /* last byte of all ranges */
    uint64_t last_begin;
    uint64_t section_bytes;
    size_t name_bytes;
    cairn_pc_table *table;
};

/* ---- Counting ---- */

static enum cairn_status count_group(struct pc_builder *builder,
                                     const struct cairn_pc_table_section *section,
                                     const struct pc_group *group, struct cairn_error *error)
{
    uint32_t count = pc_group_count(section, group);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address;
        pcsection_read_address(&section->section, section->address, section->schema.address_bytes,
                               group->offset + (size_t)i * section->schema.address_bytes, &address);
        uint64_t last = group->size == 0 ? address : address + (group->size - 1);
        if (last < address)
            return error_set(error, CAIRN_ERROR_CORRUPT, group->offset,
                             "PC section '%.60s': the function at byte %zu ends beyond the last "
                             "address",
                             section->name, group->offset);
        if (address < builder->lowest)
            builder->lowest = address;
        if (address > builder->last_begin)
            builder->last_begin = address;
        if (last > builder->highest)
            builder->highest = last;
    }
    builder->row_count += count;
    builder->range_count += section->schema.has_size ? count : 0;
    builder->run_count += count > 1;
    return CAIRN_OK;
}

static enum cairn_status count_section(struct pc_builder *builder,
                                       const struct cairn_pc_table_section *section,
                                       struct cairn_error *error)
{
    struct pc_group_reader reader = pc_group_reader_of(section, &builder->options, error);
    for (;;) {
        struct pc_group group;
        bool found;
        enum cairn_status status = pc_group_next(&reader, &group, &found);
        if (status != CAIRN_OK || !found)
            return status;
        status = count_group(builder, section, &group, error);
        if (status != CAIRN_OK)
            return status;
    }
}

static bool has_schema(const struct cairn_pc_table_section *section)
{
    return section->schema.address_bytes != 0;
}

static enum cairn_status check_section(struct pc_builder *builder,
                                       const struct cairn_pc_table_section *section,
                                       struct cairn_error *error)
{
    builder->section_bytes += section->section.size;
    builder->name_bytes += strlen(section->name) + 1;
    /* So places, and numbers of entries, fit 32 bits. */
    if (section->section.size >= OFFSETS_SPAN_MAX || builder->section_bytes >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, section->section.size,
                         "PC section '%.60s': the sections have 4 GiB or more", section->name);
    if (has_schema(section) && !pcsection_is_schema(&section->schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': a schema has addresses of 4 or 8 bytes, and up to %d "
                         "constants of 1 to 8",
                         section->name, CAIRN_PCSECTION_CONSTANTS_MAX);
    return has_schema(section) ? count_section(builder, section, error) : CAIRN_OK;
}

static enum cairn_status count_all(struct pc_builder *builder, struct cairn_error *error)
{
    builder->lowest = UINT64_MAX;
    for (size_t i = 0; i < builder->section_count; i++) {
        enum cairn_status status = check_section(builder, &builder->sections[i], error);
        if (status != CAIRN_OK)
            return status;
    }
    if (builder->row_count > 0 && builder->highest - builder->lowest >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, builder->highest,
                         "the entries' addresses, from 0x%llx to 0x%llx, are 4 GiB apart",
                         (unsigned long long)builder->lowest, (unsigned long long)builder->highest);
    return CAIRN_OK;
}

/* ---- One allocation ---- */

static enum cairn_status allocate(struct pc_builder *builder, struct cairn_error *error)
{
    size_t sections = builder->section_count;
    struct offsets offsets = {.base = builder->row_count == 0 ? 0 : builder->lowest,
                              .stride = sizeof(pc_row)};
    uint32_t buckets =
        offsets_plan(&offsets, builder->row_count, (uint32_t)(builder->last_begin - offsets.base));
    size_t bytes = sizeof(cairn_pc_table) + sections * sizeof(struct cairn_pc_table_section) +
                   builder->range_count * sizeof(struct pc_range) +
                   builder->row_count * sizeof(pc_row) +
                   builder->run_count * sizeof(struct pc_run) +
                   ((size_t)buckets + sections + builder->range_count) * sizeof(uint32_t) +
                   builder->name_bytes;
    cairn_pc_table *table = memory_new(&builder->options.allocator, bytes, 1);
    if (table == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %u PCs",
                         builder->row_count);
    table->allocator = builder->options.allocator;
    table->size_bytes = bytes;
    table->section_count = (uint32_t)sections;
    table->range_count = builder->range_count;
    table->sections = (struct cairn_pc_table_section *)(table + 1);
    table->ranges = (struct pc_range *)(table->sections + sections);
    table->rows = (pc_row *)(table->ranges + table->range_count);
    table->offsets = offsets;
    table->offsets.rows = (const unsigned char *)table->rows;
    table->runs = (struct pc_run *)(table->rows + builder->row_count);
    table->offsets.buckets = (uint32_t *)(table->runs + builder->run_count);
    table->starts = table->offsets.buckets + buckets;
    table->ends = table->starts + sections;
    builder->table = table;
    return CAIRN_OK;
}

/* ---- Filling in ---- */

static void copy_sections(const struct pc_builder *builder)
{
    cairn_pc_table *table = builder->table;
    char *names = (char *)(table->ends + table->range_count);
    uint32_t start = 0;
    for (size_t i = 0; i < builder->section_count; i++) {
        const struct cairn_pc_table_section *section = &builder->sections[i];
        size_t size = strlen(section->name) + 1;
        table->sections[i] = *section;
        table->sections[i].name = memcpy(names, section->name, size);
        table->starts[i] = start;
        names += size;
        start += (uint32_t)section->section.size;
    }
}

/* Adds the group's rows from number `*row` on, and its run if it has several addresses. */
static void add_group(const struct pc_builder *builder, size_t number, const struct pc_group *group,
                      uint32_t *row)
{
    cairn_pc_table *table = builder->table;
    const struct cairn_pc_table_section *section = &table->sections[number];
    uint32_t start = table->starts[number];
    uint8_t width = section->schema.address_bytes;
    if (pc_group_count(section, group) > 1)
        table->runs[table->run_count++] =
            (struct pc_run){start + (uint32_t)group->offset, start + (uint32_t)group->values};
    for (size_t at = group->offset; at < group->values; at += width) {
        uint64_t address;
        pcsection_read_address(&section->section, section->address, width, at, &address);
        table->rows[(*row)++] =
            (pc_row){(uint32_t)(address - table->offsets.base), start + (uint32_t)at};
    }
}

static void add_rows(const struct pc_builder *builder)
{
    uint32_t row = 0;
    for (size_t i = 0; i < builder->section_count; i++) {
        struct pc_group group;
        struct pc_group_reader reader =
            pc_group_reader_of(&builder->sections[i], &builder->options, NULL);
        bool found = has_schema(&builder->sections[i]);
        while (found) {
            /* This cannot fail, because the group has been read before. */
            enum cairn_status status = pc_group_next(&reader, &group, &found);
            found = found && status == CAIRN_OK;
            if (found)
                add_group(builder, i, &group, &row);
        }
    }
}

static bool ascends(const cairn_pc_table *table)
{
    for (uint32_t i = 1; i < table->offsets.count; i++)
        if (table->rows[i].key < table->rows[i - 1].key)
            return false;
    return true;
}

static enum cairn_status sort_rows(const struct pc_builder *builder, struct cairn_error *error)
{
    const cairn_pc_table *table = builder->table;
    uint32_t count = table->offsets.count;
    if (ascends(table))
        return CAIRN_OK;
    pc_row *space = memory_new(&table->allocator, count, sizeof *space);
    if (space == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %u PCs", count);
    sort_keys(table->rows, space, count);
    memory_free(&table->allocator, space, count * sizeof *space);
    return CAIRN_OK;
}

/* Sets `furthest` of the ranges from `first` up to `end`, and returns that of their root. Each
 * range is the root of a part of the tree. */
static uint32_t find_furthest(struct pc_range *ranges, uint32_t first, uint32_t end)
{
    if (first == end)
        return 0;
    uint32_t middle = first + (end - first) / 2;
    uint32_t left = find_furthest(ranges, first, middle);
    uint32_t right = find_furthest(ranges, middle + 1, end);
    uint32_t furthest = ranges[middle].end;
    if (left > furthest)
        furthest = left;
    if (right > furthest)
        furthest = right;
    ranges[middle].furthest = furthest;
    return furthest;
}

static enum cairn_status sort_ends(const cairn_pc_table *table, struct cairn_error *error)
{
    uint32_t count = table->range_count;
    bool is_sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        table->ends[i] = table->ranges[i].end;
        is_sorted = is_sorted && (i == 0 || table->ends[i - 1] <= table->ends[i]);
    }
    if (is_sorted)
        return CAIRN_OK;
    struct sort_key *keys = memory_new(&table->allocator, count, 2 * sizeof *keys);
    if (keys == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %u functions", count);
    for (uint32_t i = 0; i < count; i++)
        keys[i].key = table->ends[i];
    sort_keys(keys, keys + count, count);
    for (uint32_t i = 0; i < count; i++)
        table->ends[i] = keys[i].key;
    memory_free(&table->allocator, keys, (size_t)count * 2 * sizeof *keys);
    return CAIRN_OK;
}

static enum cairn_status add_ranges(const cairn_pc_table *table, struct cairn_error *error)
{
    uint32_t count = 0;
    for (uint32_t row = 0; row < table->offsets.count; row++) {
        struct cairn_pc_table_entry entry = cairn_pc_table_entry(table, row);
        if (!entry.section->schema.has_size)
            continue;
        uint32_t begin = table->rows[row].key;
        table->ranges[count++] = (struct pc_range){
            .begin = begin, .end = begin + (uint32_t)entry.value.size, .row = row};
    }
    find_furthest(table->ranges, 0, count);
    return sort_ends(table, error);
}

static enum cairn_status fill_in(const struct pc_builder *builder, struct cairn_error *error)
{
    copy_sections(builder);
    add_rows(builder);
    enum cairn_status status = sort_rows(builder, error);
    if (status != CAIRN_OK)
        return status;
    offsets_fill(&builder->table->offsets);
    return add_ranges(builder->table, error);
}

enum cairn_status cairn_pc_table_create(const struct cairn_pc_table_section *sections, size_t count,
                                        const struct cairn_pc_table_options *options,
                                        cairn_pc_table **table, struct cairn_error *error)
{
    if (table == NULL || (sections == NULL && count > 0) || count >= UINT32_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_pc_table_create needs sections and a place for the table");
    struct pc_builder builder = {.sections = sections, .section_count = count};
    if (options != NULL)
        builder.options = *options;
    builder.options.allocator = memory_allocator(&builder.options.allocator);
    enum cairn_status status = count_all(&builder, error);
    if (status == CAIRN_OK)
        status = allocate(&builder, error);
    if (status == CAIRN_OK)
        status = fill_in(&builder, error);
    if (status != CAIRN_OK) {
        cairn_pc_table_destroy(builder.table);
        return status;
    }
    *table = builder.table;
    return CAIRN_OK;
}

void cairn_pc_table_destroy(cairn_pc_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size_bytes);
}
