/*
 * index/function_list.h - the functions of a module's unwind tables, read once while it is loaded.
 *
 * What is kept of it is made from it: index/functions.h, index/unwind.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_FUNCTION_LIST_H
#define INDEX_FUNCTION_LIST_H

#include "base/memory.h"
#include "format/eh_frame.h"

struct listed_function {
    struct eh_frame_function function;
    size_t offset; /* of its entry in the unwind table */
    size_t common; /* of its common information there */
    size_t table;  /* which of them */
};

/* Sorted by address, of one address in the order of the tables; none is empty. */
struct function_list {
    const struct eh_frame *tables;
    size_t table_count;
    struct eh_frame_commons *commons; /* of each table */
    struct cairn_allocator allocator;
    size_t count;
    size_t capacity;
    struct listed_function *entries;
};

/* From `table_count` unwind tables, which have to stay as long as the list. On failure there is
 * nothing to release. MEMORY, and what eh_frame_next gives. */
enum cairn_status function_list_read(const struct eh_frame *tables, size_t table_count,
                                     const struct cairn_allocator *allocator,
                                     struct function_list *list, struct cairn_error *error);

void function_list_release(struct function_list *list);

#endif
