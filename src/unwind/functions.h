/*
 * unwind/functions.h - where a module's functions begin and end, by address.
 *
 * Tables of records contain only functions that have records, and not their ends. An unwind table
 * has all functions that were compiled with one (with attribute `uwtable`, or without `nounwind`).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_FUNCTIONS_H
#define UNWIND_FUNCTIONS_H

#include "unwind/function_list.h"

#include <cairn/table.h>

/* Sorted by address. There are no empty functions. */
struct functions {
    struct cairn_allocator allocator;
    size_t count;
    struct eh_frame_function entries[];
};

/* Creates the functions of a list. `*functions` is NULL if the list is empty; all other functions
 * accept that. MEMORY. */
enum cairn_status functions_create(const struct function_list *list, struct functions **functions,
                                   struct cairn_error *error);

void functions_destroy(struct functions *functions);

size_t functions_size_bytes(const struct functions *functions);

/*
 * Finds the function that contains `pc`, with its records if it has any. False between functions,
 * and before the first. A function with records but without a known end is assumed to extend to the
 * next. Async-signal-safe.
 */
bool functions_find(const struct functions *functions, const cairn_table *table, uint64_t pc,
                    struct cairn_function *function);

#endif
