/*
 * record/declarations.h - which declaration belongs to which record of a module.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_DECLARATIONS_H
#define RECORD_DECLARATIONS_H

#include <cairn/declaration.h>
#include <cairn/table.h>

/* Finds the declaration of each record of the table, once, and notes its number. Declarations must
 * not be added afterwards. Errors: MEMORY. */
CAIRN_MUST_CHECK enum cairn_status declarations_bind(cairn_declarations *declarations,
                                                     const cairn_table *table,
                                                     struct cairn_error *error);

/* Returns the declaration of record `record` of the table that the set was bound to; NULL if it has
 * none. Takes O(1) time, without hashing. Async-signal-safe. */
const struct cairn_declaration *declarations_of_record(const cairn_declarations *declarations,
                                                       uint32_t record);

/* Returns the bytes of the notes that declarations_bind makes. */
size_t declarations_bound_bytes(const cairn_declarations *declarations);

#endif
