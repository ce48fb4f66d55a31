/*
 * index/block_builder.h - what a table of blocks is made from: functions, ranges and blocks in the
 * order in which they were added.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_BLOCK_BUILDER_H
#define INDEX_BLOCK_BUILDER_H

#include "index/block_table.h"

/* As it was added. */
struct added_block {
    uint32_t offset; /* from the range's base on */
    uint32_t size;
    uint32_t id;
    uint8_t flags;
};

/* A range's blocks are neighbours, in ascending order, and so are a function's ranges. */
struct added_range {
    uint64_t base;
    uint32_t first_block;
    uint32_t block_count;
    uint32_t function;
    uint32_t number;      /* among the function's */
    uint32_t first_index; /* of its first block, among the function's */
    uint32_t end;         /* of its last block, from the base on */
};

struct added_function {
    struct cairn_block_function function; /* `index` is not set */
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
    struct added_list columns[COLUMN_COUNT]; /* uint64_t; of the first blocks: the others have 0 */
};

#endif
