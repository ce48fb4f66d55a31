/*
 * index/pc_table.h - how a table of PC sections lies in memory, and how sections are read for it.
 *
 * One allocation: the table, and behind it, in this order, the sections, the ranges of functions,
 * the rows, the buckets of their directory, where sections begin, the sections' names.
 *
 * What must stay true:
 *  - rows are sorted by offset, and those of one offset by place;
 *  - a place is where an entry's values begin, what stands behind its address: counted through all
 *    sections, of which number s begins at `starts[s]`;
 *  - ranges are sorted by begin and are a tree: the root of those from `first` up to `end` is the
 *    one in the middle, and its `furthest` the highest end of all of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_PC_TABLE_H
#define INDEX_PC_TABLE_H

#include "base/memory.h"
#include "index/offsets.h"
#include "index/sort.h"

#include <cairn/pc_table.h>

/* `key` is the offset, `number` the place. */
typedef struct sort_key pc_row;

struct pc_range {
    uint32_t begin; /* offset of the first byte, and of the first one behind */
    uint32_t end;
    uint32_t furthest;
    uint32_t row;
};

struct cairn_pc_table {
    struct cairn_allocator allocator;
    size_t size_bytes;
    uint32_t section_count;
    uint32_t range_count;
    struct offsets offsets; /* of the rows */
    struct cairn_pc_table_section *sections;
    struct pc_range *ranges;
    pc_row *rows;
    uint32_t *starts;
};

/* ---- Reading ---- */

/* An entry, or a run of entries that have their constants together. */
struct pc_group {
    size_t offset;    /* of the first address */
    size_t values;    /* where the addresses end and the values begin */
    size_t end;       /* where these do */
    uint64_t address; /* the first one */
    uint64_t size;    /* of a function */
};

/* Reads the group at `*offset`, which is moved on to the next one; `*found` is false if there is
 * none. `number` is that of the group's first entry in the section, for sentences. TRUNCATED,
 * CORRUPT. */
enum cairn_status pc_group_next(const struct cairn_pc_table_section *section,
                                const struct cairn_pc_table_options *options, uint32_t number,
                                size_t *offset, struct pc_group *group, bool *found,
                                struct cairn_error *error);

/* How many entries it is. */
static inline uint32_t pc_group_count(const struct cairn_pc_table_section *section,
                                      const struct pc_group *group)
{
    return (uint32_t)((group->values - group->offset) / section->schema.address_bytes);
}

#endif
