/*
 * unwind/function_list.h - the functions of a module's unwind tables, read once while it is loaded.
 *
 * The tables of unwind/functions.h and unwind/unwind.h are made from the list.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_FUNCTION_LIST_H
#define UNWIND_FUNCTION_LIST_H

#include "base/memory.h"
#include "unwind/eh_frame.h"

struct listed_function {
    struct eh_frame_function function;
    size_t offset; /* of its entry in the unwind table */
    size_t common; /* of its common information in that table */
    size_t table;  /* index of the unwind table */
};

/* Sorted by address, and at one address in the order of the tables. There are no empty
 * functions. */
struct function_list {
    const struct eh_frame *tables;
    size_t table_count;
    struct eh_frame_commons *commons; /* for each table */
    struct cairn_allocator allocator;
    size_t count;
    size_t capacity;
    struct listed_function *entries;
};

/* Reads `table_count` unwind tables, which must be valid as long as the list. On failure there is
 * nothing to release. Errors: MEMORY, and those of eh_frame_next. */
enum cairn_status function_list_read(const struct eh_frame *tables, size_t table_count,
                                     const struct cairn_allocator *allocator,
                                     struct function_list *list, struct cairn_error *error);

void function_list_release(struct function_list *list);

#endif
