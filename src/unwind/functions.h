/*
 * unwind/functions.h - where a module's functions begin and end, from its unwind tables.
 *
 * Tables of records contain only functions that have records, and not their ends. An unwind table
 * has all functions that were compiled with one (with attribute `uwtable`, or without `nounwind`).
 * The list of functions exists only while a module is loaded; it is the input of struct functions,
 * and of the rules in unwind/rules.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_FUNCTIONS_H
#define UNWIND_FUNCTIONS_H

#include "base/memory.h"
#include "unwind/eh_frame.h"

#include <cairn/table.h>

/* ---- The list ---- */

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

/* ---- The table ---- */

/* Sorted by address. There are no empty functions. */
struct functions {
    size_t count;
    struct eh_frame_function entries[];
};

/* Creates the functions of a list. `*functions` is NULL if the list is empty; all other functions
 * accept that. MEMORY. */
enum cairn_status functions_create(const struct function_list *list, struct functions **functions,
                                   struct cairn_error *error);

/* Frees them with the allocator of the list. NULL is allowed. */
void functions_destroy(struct functions *functions, const struct cairn_allocator *allocator);

size_t functions_size_bytes(const struct functions *functions);

/*
 * Finds the function that contains `pc`, with its records if it has any. False between functions,
 * and before the first. A function with records but without a known end is assumed to extend to the
 * next. Async-signal-safe.
 */
bool functions_find(const struct functions *functions, const cairn_table *table, uint64_t pc,
                    struct cairn_function *function);

/* Returns the lowest address after `pc` from which functions_find may find another of these
 * functions, or none; UINT64_MAX if the answer does not change. */
uint64_t functions_next_change(const struct functions *functions, uint64_t pc);

#endif
