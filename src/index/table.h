/*
 * index/table.h - what the loader needs of a table besides cairn/table.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_TABLE_H
#define INDEX_TABLE_H

#include <cairn/table.h>

/* Whoever loaded the table (a cairn_module); NULL for a table of the client's own. */
void table_set_owner(cairn_table *table, void *owner);
void *table_owner(const cairn_table *table);

/* Calls `visit` for each record with the ID, until it answers false; returns whether it never did.
 * Lock-free, async-signal-safe. */
typedef bool table_id_visitor(struct cairn_record record, void *user);
bool table_visit_id(const cairn_table *table, uint64_t id, table_id_visitor *visit, void *user);

/* The lowest address of a record beyond `address`; UINT64_MAX if there is none. */
uint64_t table_next_address(const cairn_table *table, uint64_t address);

/* Says that the call at record `index` returns `delta` bytes behind its address (0 for a
 * statepoint, whose address is the return address). Only before the table is published. */
enum { TABLE_RETURN_DELTA_MAX = 254 };
void table_set_return_delta(cairn_table *table, uint32_t index, uint32_t delta);

#endif
