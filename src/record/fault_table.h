/*
 * record/fault_table.h - functions of tables of faults for the loader, in addition to
 * cairn/fault_table.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_FAULT_TABLE_H
#define RECORD_FAULT_TABLE_H

#include <cairn/fault_table.h>

/* Same as cairn_fault_table_create. If `zeros_may_follow`, zeros may follow the last map of a
 * section, as in table_create. */
enum cairn_status fault_table_create(const struct cairn_section *sections, size_t count,
                                     const struct cairn_allocator *allocator, bool zeros_may_follow,
                                     cairn_fault_table **table, struct cairn_error *error);

/* Returns the size of the table in memory, in bytes; 0 for NULL. */
size_t fault_table_size_bytes(const cairn_fault_table *table);

#endif
