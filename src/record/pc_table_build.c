/*
 * Builds a table of PC sections. One pass over the sections checks and counts, and a second one
 * writes the rows.
 *
 * Sections are read as LLVM writes them: with entries in which several addresses share the
 * constants that follow them (the RUNS of cairn/pc_table.h), and zeros at the end.
 *
 * The end of a run is not marked. Its addresses ascend, because the code does. So a value that
 * leads to code after the last address is assumed to be the next address, as long as the constants
 * then still fit: they are followed by an address of code, the section's end, or only zeros.
 * Constants that lead from their place to code after their entry's would be mistaken for addresses.
 *
 * Each byte is read a bounded number of times. If the constants begin before the end of the
 * apparent addresses of a run, they begin at most VALUE_BYTES_MAX bytes before it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/pcsection.h"
#include "record/pc_table.h"

#include <string.h>

/* ---- Reading ---- */

/* An entry, or a run of entries that share their constants. */
struct pc_group {
    size_t offset;    /* of the first address */
    size_t values;    /* end of the addresses and start of the values */
    size_t end;       /* end of the values */
    uint64_t address; /* the first one */
    uint64_t size;    /* of a function */
};

/* Reads the groups of a section one by one. */
struct pc_group_reader {
    const struct cairn_pc_table_section *section;
    const struct cairn_pc_table_options *options;
    size_t offset;   /* of the next group */
    size_t blank;    /* start of the zeros at the section's end */
    uint32_t number; /* of the next group's first entry, for error messages */
    struct cairn_error *error;
};

/* Returns the number of entries in a group. */
static uint32_t count_of(const struct cairn_pc_table_section *section, const struct pc_group *group)
{
    return (uint32_t)((group->values - group->offset) / section->schema.address_bytes);
}

enum { VALUE_BYTES_MAX = CAIRN_PCSECTION_CONSTANTS_MAX * CAIRN_PCSECTION_CONSTANT_BYTES_MAX };

/* Reports the error in `*reason`, with the section and the entry that it belongs to. */
static enum cairn_status complain(const struct pc_group_reader *reader,
                                  const struct cairn_error *reason)
{
    return error_set(reader->error, reason->status, reason->offset,
                     "PC section '%.60s', entry %u: %s", reader->section->name, reader->number,
                     reason->message);
}

static bool is_code(const struct pc_group_reader *reader, uint64_t address)
{
    const struct cairn_pc_table_options *options = reader->options;
    /* If the code generator has left out the end of the code, the address before is still code. */
    return options->is_code(address, options->user) || options->is_code(address - 1, options->user);
}

static bool leads_to_code(const struct pc_group_reader *reader, size_t offset, uint64_t *address)
{
    const struct cairn_pc_table_section *section = reader->section;
    return pcsection_read_address(&section->section, section->address,
                                  section->schema.address_bytes, offset, address) &&
           is_code(reader, *address);
}

static enum cairn_status read_values(const struct pc_group_reader *reader, size_t values,
                                     struct pc_group *group, struct cairn_error *error)
{
    const struct cairn_pc_table_section *section = reader->section;
    struct cairn_pcsection_entry entry = {.offset = group->offset};
    size_t end;
    enum cairn_status status =
        pcsection_read_values(&section->section, &section->schema, values, &entry, &end, error);
    if (status != CAIRN_OK)
        return status;
    group->values = values;
    group->end = end;
    group->size = entry.size;
    return CAIRN_OK;
}

/* Reads a run. Its constants begin after its addresses, or some words earlier if they look like
 * addresses. */
static enum cairn_status read_run(const struct pc_group_reader *reader, struct pc_group *group,
                                  struct cairn_error *error)
{
    size_t width = reader->section->schema.address_bytes;
    size_t last = group->offset + width;
    uint64_t address = group->address;
    uint64_t next;
    for (; leads_to_code(reader, last, &next) && next >= address; last += width)
        address = next;
    for (size_t at = last; at > group->offset && last - at <= VALUE_BYTES_MAX; at -= width) {
        struct pc_group candidate = *group;
        if (read_values(reader, at, &candidate, NULL) != CAIRN_OK ||
            (!leads_to_code(reader, candidate.end, &next) && candidate.end < reader->blank))
            continue;
        *group = candidate;
        return CAIRN_OK;
    }
    /* An error in what follows is reported when that is read. */
    return read_values(reader, last, group, error);
}

/* Reads a group if the code is known. */
static enum cairn_status read_group(const struct pc_group_reader *reader, struct pc_group *group)
{
    const struct cairn_pc_table_section *section = reader->section;
    const uint8_t width = section->schema.address_bytes;
    const size_t offset = group->offset;
    struct cairn_error reason = {0};
    enum cairn_status status = CAIRN_OK;
    if (!pcsection_read_address(&section->section, section->address, width, offset,
                                &group->address))
        status = error_set(&reason, CAIRN_ERROR_TRUNCATED, offset,
                           "at byte %zu, the section ends inside an address of %u bytes: is the "
                           "schema this section's?",
                           offset, width);
    else if (!is_code(reader, group->address))
        status = error_set(&reason, CAIRN_ERROR_CORRUPT, offset,
                           "at byte %zu, an address of %u bytes was expected, and 0x%llx is not "
                           "one of code: is the schema this section's?",
                           offset, width, (unsigned long long)group->address);
    else if (section->schema.constant_count > 0 && !section->schema.has_size)
        status = read_run(reader, group, &reason);
    else
        status = read_values(reader, offset + width, group, &reason);
    return status == CAIRN_OK ? CAIRN_OK : complain(reader, &reason);
}

/* Returns a reader at the first group of the section. */
static struct pc_group_reader reader_of(const struct cairn_pc_table_section *section,
                                        const struct cairn_pc_table_options *options,
                                        struct cairn_error *error)
{
    size_t blank = section->section.size;
    while (blank > 0 && section->section.bytes[blank - 1] == 0)
        blank--;
    return (struct pc_group_reader){
        .section = section, .options = options, .blank = blank, .error = error};
}

/* Reads the next group; `*found` is false after the last. Errors: TRUNCATED, CORRUPT. */
static enum cairn_status read_next(struct pc_group_reader *reader, struct pc_group *group,
                                   bool *found)
{
    bool knows_code = reader->options->is_code != NULL;
    *group = (struct pc_group){.offset = reader->offset};
    *found = reader->offset < (knows_code ? reader->blank : reader->section->section.size);
    if (!*found)
        return CAIRN_OK;
    const struct cairn_pc_table_section *section = reader->section;
    struct cairn_pcsection_entry entry;
    struct cairn_error reason = {0};
    group->end = group->offset;
    enum cairn_status status = CAIRN_OK;
    if (knows_code) {
        status = read_group(reader, group);
    } else if (cairn_pcsection_read(&section->section, section->address, &section->schema,
                                    &group->end, &entry, &reason) == CAIRN_OK) {
        group->values = group->offset + section->schema.address_bytes;
        group->address = entry.address;
        group->size = entry.size;
    } else {
        status = complain(reader, &reason);
    }
    if (status != CAIRN_OK)
        return status;
    reader->offset = group->end;
    reader->number += count_of(reader->section, group);
    return CAIRN_OK;
}

/* ---- Counting ---- */

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

static enum cairn_status count_group(struct pc_builder *builder,
                                     const struct cairn_pc_table_section *section,
                                     const struct pc_group *group, struct cairn_error *error)
{
    uint32_t count = count_of(section, group);
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

static bool has_schema(const struct cairn_pc_table_section *section)
{
    return section->schema.address_bytes != 0;
}

static enum cairn_status count_section(struct pc_builder *builder,
                                       const struct cairn_pc_table_section *section,
                                       struct cairn_error *error)
{
    struct pc_group_reader reader = reader_of(section, &builder->options, error);
    struct pc_group group;
    bool found = has_schema(section);
    builder->section_bytes += section->section.size;
    builder->name_bytes += strlen(section->name) + 1;
    /* So places, and numbers of entries, fit 32 bits. */
    if (section->section.size >= OFFSETS_SPAN_MAX || builder->section_bytes >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, section->section.size,
                         "PC section '%.60s': the sections have 4 GiB or more", section->name);
    if (found && !pcsection_is_schema(&section->schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': a schema has addresses of 4 or 8 bytes, and up to %d "
                         "constants of 1 to 8",
                         section->name, CAIRN_PCSECTION_CONSTANTS_MAX);
    enum cairn_status status = CAIRN_OK;
    while (status == CAIRN_OK && found) {
        status = read_next(&reader, &group, &found);
        if (status == CAIRN_OK && found)
            status = count_group(builder, section, &group, error);
    }
    return status;
}

/* ---- One allocation ---- */

static enum cairn_status allocate(struct pc_builder *builder, struct cairn_error *error)
{
    if (builder->row_count > 0 && builder->highest - builder->lowest >= OFFSETS_SPAN_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, builder->highest,
                         "the entries' addresses, from 0x%llx to 0x%llx, are 4 GiB apart",
                         (unsigned long long)builder->lowest, (unsigned long long)builder->highest);
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

/* Adds the sections, the rows of all groups, and a run for each group of several addresses. */
static void add_sections(const struct pc_builder *builder)
{
    cairn_pc_table *table = builder->table;
    char *names = (char *)(table->ends + table->range_count);
    uint32_t start = 0;
    uint32_t row = 0;
    for (size_t i = 0; i < builder->section_count; i++) {
        const struct cairn_pc_table_section *section = &builder->sections[i];
        const uint8_t width = section->schema.address_bytes;
        struct pc_group_reader reader = reader_of(section, &builder->options, NULL);
        struct pc_group group;
        bool found = has_schema(section);
        /* This cannot fail, because the groups have been read before. */
        while (found && read_next(&reader, &group, &found) == CAIRN_OK && found) {
            if (count_of(section, &group) > 1)
                table->runs[table->run_count++] =
                    (struct pc_run){start + (uint32_t)group.offset, start + (uint32_t)group.values};
            for (size_t at = group.offset; at < group.values; at += width) {
                uint64_t address;
                pcsection_read_address(&section->section, section->address, width, at, &address);
                table->rows[row++] =
                    (pc_row){(uint32_t)(address - table->offsets.base), start + (uint32_t)at};
            }
        }
        size_t name_size = strlen(section->name) + 1;
        table->sections[i] = *section;
        table->sections[i].name = memcpy(names, section->name, name_size);
        table->starts[i] = start;
        names += name_size;
        start += (uint32_t)section->section.size;
    }
}

/* Sorts `count` keys, stably. */
static enum cairn_status sort(const cairn_pc_table *table, struct sort_key *keys, uint32_t count,
                              struct cairn_error *error)
{
    bool ascends = true;
    for (uint32_t i = 1; i < count; i++)
        ascends = ascends && keys[i - 1].key <= keys[i].key;
    if (ascends)
        return CAIRN_OK;
    struct sort_key *space = memory_new(&table->allocator, count, sizeof *space);
    if (space == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %u PCs", count);
    sort_keys(keys, space, count);
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

/* Adds the ranges of functions, and their ends. */
static enum cairn_status add_ranges(const cairn_pc_table *table, struct cairn_error *error)
{
    uint32_t count = table->range_count;
    uint32_t range = 0;
    if (count == 0)
        return CAIRN_OK;
    struct sort_key *keys = memory_new(&table->allocator, count, sizeof *keys);
    if (keys == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %u functions", count);
    for (uint32_t row = 0; row < table->offsets.count; row++) {
        struct cairn_pc_table_entry entry = pc_table_entry_at(table, row);
        if (!entry.section->schema.has_size)
            continue;
        uint32_t begin = table->rows[row].key;
        uint32_t end = begin + (uint32_t)entry.value.size;
        keys[range].key = end;
        table->ranges[range++] = (struct pc_range){.begin = begin, .end = end, .row = row};
    }
    find_furthest(table->ranges, 0, count);
    enum cairn_status status = sort(table, keys, count, error);
    for (uint32_t i = 0; i < count; i++)
        table->ends[i] = keys[i].key;
    memory_free(&table->allocator, keys, count * sizeof *keys);
    return status;
}

enum cairn_status cairn_pc_table_create(const struct cairn_pc_table_section *sections, size_t count,
                                        const struct cairn_pc_table_options *options,
                                        cairn_pc_table **table, struct cairn_error *error)
{
    if (table == NULL || (sections == NULL && count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_pc_table_create: `%s` is NULL",
                         table == NULL ? "table" : "sections");
    if (count >= UINT32_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_pc_table_create: `count` is %zu (less than 2^32 - 1 expected)",
                         count);
    struct pc_builder builder = {
        .sections = sections, .section_count = count, .lowest = UINT64_MAX};
    if (options != NULL)
        builder.options = *options;
    builder.options.allocator = memory_allocator(&builder.options.allocator);
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = count_section(&builder, &sections[i], error);
    if (status == CAIRN_OK)
        status = allocate(&builder, error);
    if (status == CAIRN_OK) {
        add_sections(&builder);
        status = sort(builder.table, builder.table->rows, builder.row_count, error);
    }
    if (status == CAIRN_OK) {
        offsets_fill(&builder.table->offsets);
        status = add_ranges(builder.table, error);
    }
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
