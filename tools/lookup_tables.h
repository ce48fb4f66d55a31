/*
 * tools/lookup_tables.h - what an object's sections say about addresses of its code.
 *
 * All sections are read once, into tables by address. Addresses are those of the layout
 * (tools/layout.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LOOKUP_TABLES_H
#define TOOLS_LOOKUP_TABLES_H

#include "tools/layout.h"
#include "tools/pcsection_entries.h"
#include "tools/sanmd_read.h"

#include <cairn/block_table.h>
#include <cairn/fault_table.h>
#include <cairn/pc_table.h>
#include <cairn/table.h>

/* Tables of an object. A table is NULL if the object has no such section. */
struct tables {
    const struct input *input;
    struct layout layout;
    cairn_block_table *blocks;
    cairn_table *records;
    cairn_fault_table *faults;
    uint32_t *handlers; /* numbers of the entries of `faults`, sorted by the addresses of their
                           handlers */
    cairn_pc_table *entries;
    struct sanmd_contents sanmd; /* the addresses are those of the layout, and sections are 0 */
    struct list copies;          /* items are pointers to bytes that `entries` points into */
};

/* Reads all sections. False if one is invalid, after an error message; all other tables are then
 * complete. The caller releases `tables` in either case. */
bool tables_read(const struct input *input, const struct wanted_sections *wanted,
                 struct tables *tables);
void tables_release(struct tables *tables);

/* Whether the object has more than names of functions. */
bool tables_has_metadata(const struct tables *tables);

/* Finds the first record at `address`. Returns how many consecutive records have that address. */
uint32_t tables_find_records(const struct tables *tables, uint64_t address,
                             struct cairn_record *first);

/* Finds the record of the patch point whose call returns to `address`. False if none does.
 * Statepoints are not found, because their records are at the return address. */
bool tables_find_call(const struct tables *tables, uint64_t address, struct cairn_record *record);

/* Finds the frame size of the function that contains `address`. False if it is unknown. `function`
 * is the function from the symbol table, or NULL. */
bool tables_find_frame(const struct tables *tables, uint64_t address,
                       const struct cairn_object_function *function, uint64_t *stack_size);

/* tables_find_handled finds the first fault whose handler is at `address`, as its number in the
 * order of handlers, and returns how many consecutive faults have that handler. tables_handled
 * returns the fault with a number. */
uint32_t tables_find_handled(const struct tables *tables, uint64_t address, uint32_t *number);
struct cairn_fault_entry tables_handled(const struct tables *tables, uint32_t number);

/* Returns the covered function that contains `address`, and its address in the layout; or NULL. */
const struct cairn_sanmd_entry *tables_find_covered(const struct tables *tables, uint64_t address,
                                                    uint64_t *function);

bool tables_is_atomic(const struct tables *tables, uint64_t address);

#endif
