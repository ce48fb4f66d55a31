/*
 * index/pc_table.h - how a table of PC sections lies in memory, and how sections are read for it.
 *
 * One allocation: the table, and after it, in this order, the sections, the ranges of functions,
 * the rows, the runs, the buckets of the rows' directory, where sections begin, the sections'
 * names.
 *
 * What must stay true:
 *  - rows are sorted by offset, and those of one offset by place;
 *  - a place is where an entry's address is: counted through all sections, of which number s begins
 *    at `starts[s]`;
 *  - runs are groups of several addresses, sorted by place; the values of an address that is in no
 *    run follow it;
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

/* Addresses with their values in common. */
struct pc_run {
    uint32_t place;  /* of the first address */
    uint32_t values; /* place at which the addresses end and the values begin */
};

struct cairn_pc_table {
    struct cairn_allocator allocator;
    size_t size_bytes;
    uint32_t section_count;
    uint32_t range_count;
    uint32_t run_count;
    struct offsets offsets; /* of the rows */
    struct cairn_pc_table_section *sections;
    struct pc_range *ranges;
    pc_row *rows;
    struct pc_run *runs;
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

/* Goes through the groups of a section. */
struct pc_group_reader {
    const struct cairn_pc_table_section *section;
    const struct cairn_pc_table_options *options;
    size_t offset;   /* of the next group */
    size_t blank;    /* from here to the section's end there are only zeros */
    uint32_t number; /* of the next group's first entry, for sentences */
    struct cairn_error *error;
};

/* Begins at the section's first group. */
struct pc_group_reader pc_group_reader_of(const struct cairn_pc_table_section *section,
                                          const struct cairn_pc_table_options *options,
                                          struct cairn_error *error);

/* Reads the next group; `*found` is false if there is none. Errors: TRUNCATED, CORRUPT. */
enum cairn_status pc_group_next(struct pc_group_reader *reader, struct pc_group *group,
                                bool *found);

/* How many entries it is. */
static inline uint32_t pc_group_count(const struct cairn_pc_table_section *section,
                                      const struct pc_group *group)
{
    return (uint32_t)((group->values - group->offset) / section->schema.address_bytes);
}

#endif
