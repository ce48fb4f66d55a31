/*
 * index/functions.h - where a module's functions begin and end, by address.
 *
 * Records name only functions that have any, and not where they end. An unwind table has all
 * functions that were compiled with one (attribute `uwtable`, or not `nounwind`).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_FUNCTIONS_H
#define INDEX_FUNCTIONS_H

#include "index/function_list.h"

#include <cairn/table.h>

/* Sorted by address; none is empty. */
struct functions {
    struct cairn_allocator allocator;
    size_t count;
    struct eh_frame_function entries[];
};

/* NULL, which all the others take, if there is no function in the list. MEMORY. */
enum cairn_status functions_create(const struct function_list *list, struct functions **functions,
                                   struct cairn_error *error);

void functions_destroy(struct functions *functions);

size_t functions_size_bytes(const struct functions *functions);

/*
 * The function that holds `pc`, with its records if it has any. False between functions, and
 * before the first. Where a function with records has no known end, it is taken to go on to the
 * next. Async-signal-safe.
 */
bool functions_find(const struct functions *functions, const cairn_table *table, uint64_t pc,
                    struct cairn_function *function);

#endif
