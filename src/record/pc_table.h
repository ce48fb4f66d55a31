/*
 * record/pc_table.h - the memory layout of a table of PC sections.
 *
 * A table is one allocation: the table, followed by the sections, the ranges of functions, the
 * rows, the runs, the buckets of the rows' directory, the starts of the sections, the ends of the
 * ranges, and the names of the sections.
 *
 * Invariants:
 *  - Rows are sorted by offset, and those with one offset by place.
 *  - A place is the position of an entry's address, counted through all sections. Section s begins
 *    at place `starts[s]`.
 *  - Runs are groups of several addresses, sorted by place. If an address is not in a run, its
 *    values follow it.
 *  - Each row of a function has a range, also if its size is 0. Ranges are in the order of the
 *    rows, so they are sorted by row and by begin. They form a tree. The root of the ranges from
 *    `first` up to `end` is the one in the middle. Its `furthest` is the highest end of all of
 * them.
 *  - `ends` are the ends of all ranges, sorted. With them, the ranges that contain an offset are
 *    counted without looking at each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_PC_TABLE_H
#define RECORD_PC_TABLE_H

#include "base/memory.h"
#include "base/sort.h"
#include "record/offset_directory.h"

#include <cairn/pc_table.h>

/* `key` is the offset, `number` the place. */
typedef struct sort_key pc_row;

struct pc_range {
    uint32_t begin; /* offset of the first byte, and of the first byte after the range */
    uint32_t end;
    uint32_t furthest;
    uint32_t row;
};

/* Addresses that share their values. */
struct pc_run {
    uint32_t place;  /* of the first address */
    uint32_t values; /* place of the end of the addresses and the start of the values */
};

struct cairn_pc_table {
    struct cairn_allocator allocator;
    size_t size_bytes;
    uint32_t section_count;
    uint32_t range_count;
    uint32_t run_count;
    struct offsets offsets; /* directory of the rows */
    struct cairn_pc_table_section *sections;
    struct pc_range *ranges;
    pc_row *rows;
    struct pc_run *runs;
    uint32_t *starts;
    uint32_t *ends;
};

/* ---- Entries ---- */

/* Returns entry number `index`, which must be less than the number of entries. */
struct cairn_pc_table_entry pc_table_entry_at(const cairn_pc_table *table, uint32_t index);

/* Returns the size of the table in memory, in bytes, without the sections; 0 for NULL. */
size_t pc_table_size_bytes(const cairn_pc_table *table);

#endif
