/*
 * file/block_builder.h - the input of a table of blocks: functions, ranges and blocks in the order
 * in which they were added.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_BLOCK_BUILDER_H
#define FILE_BLOCK_BUILDER_H

#include "file/block_table.h"

/* A block as it was added. */
struct added_block {
    uint32_t offset; /* from the range's base */
    uint32_t size;
    uint32_t id;
    uint8_t flags;
};

/* A range of blocks. The blocks of a range are adjacent and in ascending order, and so are the
 * ranges of a function. */
struct added_range {
    uint64_t base;
    uint32_t first_block;
    uint32_t block_count;
    uint32_t function;
    uint32_t number;      /* among the function's ranges */
    uint32_t first_index; /* of its first block, among the function's blocks */
    uint32_t end;         /* end of its last block, from the base */
};

struct added_function {
    struct cairn_block_function function; /* without `index` */
    uint32_t first_range;
};

/* An array that grows. */
struct added_list {
    void *items;
    size_t capacity;
    size_t count;
};

struct cairn_block_builder {
    struct cairn_allocator allocator;
    struct added_list functions;             /* struct added_function */
    struct added_list ranges;                /* struct added_range */
    struct added_list blocks;                /* struct added_block */
    struct added_list columns[COLUMN_COUNT]; /* uint64_t; blocks after the last entry have 0 */
};

#endif
