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

uint32_t cairn_pc_table_entry_count(const cairn_pc_table *table)
{
    return table == NULL ? 0 : table->offsets.count;
}

/* ---- Entries ---- */

/* Returns the section that contains a place: the last one that begins at or before it. A section
 * without bytes begins at the same place as the next one. */
static uint32_t section_of(const cairn_pc_table *table, uint32_t place)
{
    uint32_t begin = 0;
    uint32_t end = table->section_count;
    while (end - begin > 1) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->starts[middle] <= place)
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

/* Returns the place of the values of the address at `place`. */
static uint32_t values_of(const cairn_pc_table *table, uint32_t place, uint8_t address_bytes)
{
    uint32_t begin = 0;
    uint32_t end = table->run_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->runs[middle].place <= place)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin > 0 && place < table->runs[begin - 1].values)
        return table->runs[begin - 1].values;
    return place + address_bytes;
}

struct cairn_pc_table_entry pc_table_entry_at(const cairn_pc_table *table, uint32_t index)
{
    const pc_row *row = &table->rows[index];
    uint32_t number = section_of(table, row->number);
    uint32_t start = table->starts[number];
    const struct cairn_pc_table_section *section = &table->sections[number];
    struct cairn_pc_table_entry entry = {
        .section = section,
        .value = {.address = table->offsets.base + row->key, .offset = row->number - start}};
    size_t at = values_of(table, row->number, section->schema.address_bytes) - start;
    /* This cannot fail, because the values were read when the table was made. */
    enum cairn_status status =
        pcsection_read_values(&section->section, &section->schema, at, &entry.value, &at, NULL);
    (void)status;
    return entry;
}

bool cairn_pc_table_entry(const cairn_pc_table *table, uint32_t index,
                          struct cairn_pc_table_entry *entry)
{
    if (index >= cairn_pc_table_entry_count(table))
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

/* Whether there is space for more. */
static bool wants_more(const struct finding *finding) { return finding->count < finding->capacity; }

static void add(struct finding *finding, uint32_t row)
{
    finding->entries[finding->count++] = pc_table_entry_at(finding->table, row);
}

/* Adds matching ranges from `first` up to `end`, until there is no more space. The recursion is as
 * deep as the tree is high. */
static void add_ranges(struct finding *finding, uint32_t first, uint32_t end, uint32_t offset)
{
    if (first == end || !wants_more(finding))
        return;
    uint32_t middle = first + (end - first) / 2;
    const struct pc_range *range = &finding->table->ranges[middle];
    if (range->furthest <= offset)
        return;
    add_ranges(finding, first, middle, offset);
    if (range->begin > offset)
        return;
    if (range->end > offset && wants_more(finding))
        add(finding, range->row);
    add_ranges(finding, middle + 1, end, offset);
}

/* Returns how many ranges contain `offset`: those that begin at or before it, without those that
 * end at or before it, which have begun before, too. */
static uint32_t count_ranges(const cairn_pc_table *table, uint32_t offset)
{
    uint32_t begun = 0;
    uint32_t ended = 0;
    for (uint32_t end = table->range_count; begun < end;) {
        uint32_t middle = begun + (end - begun) / 2;
        if (table->ranges[middle].begin <= offset)
            begun = middle + 1;
        else
            end = middle;
    }
    for (uint32_t end = begun; ended < end;) {
        uint32_t middle = ended + (end - ended) / 2;
        if (table->ends[middle] <= offset)
            ended = middle + 1;
        else
            end = middle;
    }
    return begun - ended;
}

/* Returns how many rows before `row` are functions'. */
static uint32_t count_functions_before(const cairn_pc_table *table, uint32_t row)
{
    uint32_t begin = 0;
    uint32_t end = table->range_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->ranges[middle].row < row)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
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

/* Adds the rows of instructions from `row` up to `end`, until there is no more space. `range` and
 * `range_end` are those of the functions among them. */
static void add_instructions(struct finding *finding, uint32_t row, uint32_t end, uint32_t range,
                             uint32_t range_end)
{
    const cairn_pc_table *table = finding->table;
    while (row < end && wants_more(finding)) {
        if (range == range_end || table->ranges[range].row != row) {
            add(finding, row++);
            continue;
        }
        uint32_t next = skip_consecutive(table, range, range_end);
        row += next - range;
        range = next;
    }
}

/* Returns the number of the first row after `row` with another offset. */
static uint32_t end_of_rows(const cairn_pc_table *table, uint32_t row, uint32_t offset)
{
    uint32_t begin = row;
    uint32_t end = table->offsets.count;
    /* In most tables, few entries have one address. */
    for (uint32_t step = 1; step < end - begin; step *= 2) {
        if (table->rows[begin + step].key != offset)
            end = begin + step;
        else
            begin += step;
    }
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->rows[middle].key == offset)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Adds the entries of instructions at `pc`. Returns how many there are. */
static uint32_t find_instructions(struct finding *finding, uint64_t pc)
{
    const cairn_pc_table *table = finding->table;
    uint32_t offset = (uint32_t)(pc - table->offsets.base);
    uint32_t row = offsets_first(&table->offsets, pc);
    if (row >= table->offsets.count || table->rows[row].key != offset)
        return 0;
    uint32_t end = end_of_rows(table, row, offset);
    uint32_t range = count_functions_before(table, row);
    uint32_t range_end = count_functions_before(table, end);
    add_instructions(finding, row, end, range, range_end);
    return end - row - (range_end - range);
}

size_t cairn_pc_table_find(const cairn_pc_table *table, uint64_t pc,
                           struct cairn_pc_table_entry *entries, size_t capacity)
{
    if (table == NULL || pc < table->offsets.base || pc - table->offsets.base > OFFSETS_SPAN_MAX)
        return 0;
    uint32_t offset = (uint32_t)(pc - table->offsets.base);
    struct finding finding = {.table = table, .entries = entries, .capacity = capacity};
    add_ranges(&finding, 0, table->range_count, offset);
    return (size_t)count_ranges(table, offset) + find_instructions(&finding, pc);
}
