/*
 * Lookups in a table of PC sections. Values are read from the sections, which must still be in
 * memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/pc_table.h"

#include "format/pcsection.h"

/* ---- Contents ---- */

size_t pc_table_size_bytes(const cairn_pc_table *table)
{
    return table == NULL ? 0 : table->size_bytes;
}

const struct cairn_pc_table_section *cairn_pc_table_section(const cairn_pc_table *table,
                                                            uint32_t index)
{
    return table != NULL && index < table->section_count ? &table->sections[index] : NULL;
}

/* ---- Entries ---- */

struct cairn_pc_table_entry pc_table_entry_at(const cairn_pc_table *table, uint32_t index)
{
    const pc_row *row = &table->rows[index];
    /* The section is the last one that begins at or before the row's place. A section without bytes
     * begins at the same place as the next one. */
    uint64_t after = row->number + UINT64_C(1);
    uint32_t number =
        search_u32(table->starts, sizeof *table->starts, 0, table->section_count, after) - 1;
    uint32_t start = table->starts[number];
    const struct cairn_pc_table_section *section = &table->sections[number];
    struct cairn_pc_table_entry entry = {
        .section = section,
        .value = {.address = table->offsets.base + row->key, .offset = row->number - start}};
    const struct pc_run *runs = table->runs;
    uint32_t run = search_u32(runs, sizeof *runs, 0, table->run_count, after);
    bool is_in_run = run > 0 && row->number < runs[run - 1].values;
    size_t at = row->number - start + section->schema.address_bytes;
    if (is_in_run)
        at = runs[run - 1].values - start;
    /* This cannot fail, because the values were read when the table was made. */
    enum cairn_status status =
        pcsection_read_values(&section->section, &section->schema, at, &entry.value, &at, NULL);
    (void)status;
    return entry;
}

bool cairn_pc_table_entry(const cairn_pc_table *table, uint32_t index,
                          struct cairn_pc_table_entry *entry)
{
    if (table == NULL || index >= table->offsets.count)
        return false;
    *entry = pc_table_entry_at(table, index);
    return true;
}

/* ---- Finding ---- */

struct finding {
    const cairn_pc_table *table;
    struct cairn_pc_table_entry *entries;
    size_t capacity;
    size_t count; /* of entries written */
};

static void add(struct finding *finding, uint32_t row)
{
    finding->entries[finding->count++] = pc_table_entry_at(finding->table, row);
}

/* Adds matching ranges from `first` up to `end`, until there is no more space. The recursion is as
 * deep as the tree is high. */
static void add_ranges(struct finding *finding, uint32_t first, uint32_t end, uint32_t offset)
{
    if (first == end || finding->count == finding->capacity)
        return;
    uint32_t middle = first + (end - first) / 2;
    const struct pc_range *range = &finding->table->ranges[middle];
    if (range->furthest <= offset)
        return;
    add_ranges(finding, first, middle, offset);
    if (range->begin > offset)
        return;
    if (range->end > offset && finding->count < finding->capacity)
        add(finding, range->row);
    add_ranges(finding, middle + 1, end, offset);
}

/* Returns the number of the first range from `range` up to `end` whose row does not directly follow
 * that of the range before it. Row numbers of ranges ascend. */
static uint32_t skip_consecutive(const cairn_pc_table *table, uint32_t range, uint32_t end)
{
    uint32_t begin = range;
    uint32_t distance = table->ranges[range].row - range;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->ranges[middle].row - middle == distance)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Adds the entries of instructions at `pc`, until there is no more space. Returns how many there
 * are. */
static uint32_t find_instructions(struct finding *finding, uint64_t pc)
{
    const cairn_pc_table *table = finding->table;
    const struct pc_range *ranges = table->ranges;
    uint32_t offset = (uint32_t)(pc - table->offsets.base);
    uint32_t row = offsets_first(&table->offsets, pc);
    if (row >= table->offsets.count || table->rows[row].key != offset)
        return 0;
    /* The end of the rows with this offset. In most tables, few entries have one address. */
    uint32_t begin = row;
    uint32_t end = table->offsets.count;
    for (uint32_t step = 1; step < end - begin; step *= 2) {
        if (table->rows[begin + step].key != offset)
            end = begin + step;
        else
            begin += step;
    }
    end = search_u32(table->rows, sizeof *table->rows, begin, end, offset + UINT64_C(1));
    /* The ranges of the functions among the rows. */
    const uint32_t *rows = table->range_count == 0 ? NULL : &ranges->row;
    uint32_t range = search_u32(rows, sizeof *ranges, 0, table->range_count, row);
    uint32_t range_end = search_u32(rows, sizeof *ranges, range, table->range_count, end);
    uint32_t count = end - row - (range_end - range);
    while (row < end && finding->count < finding->capacity) {
        if (range == range_end || ranges[range].row != row) {
            add(finding, row++);
            continue;
        }
        uint32_t next = skip_consecutive(table, range, range_end);
        row += next - range;
        range = next;
    }
    return count;
}

size_t cairn_pc_table_find(const cairn_pc_table *table, uint64_t pc,
                           struct cairn_pc_table_entry *entries, size_t capacity)
{
    if (table == NULL || pc < table->offsets.base || pc - table->offsets.base > OFFSETS_SPAN_MAX)
        return 0;
    uint32_t offset = (uint32_t)(pc - table->offsets.base);
    uint64_t after = offset + UINT64_C(1);
    struct finding finding = {.table = table, .entries = entries, .capacity = capacity};
    add_ranges(&finding, 0, table->range_count, offset);
    /* The ranges that contain the offset are those that begin at or before it, without those that
     * end at or before it, which have begun before, too. */
    uint32_t begun = search_u32(table->ranges, sizeof *table->ranges, 0, table->range_count, after);
    uint32_t ended = search_u32(table->ends, sizeof *table->ends, 0, begun, after);
    return (size_t)(begun - ended) + find_instructions(&finding, pc);
}
