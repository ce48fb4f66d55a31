/*
 * record/table.h - functions of tables for the loader, in addition to cairn/table.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_TABLE_H
#define RECORD_TABLE_H

#include <cairn/table.h>

/* Same as cairn_table_create. If `zeros_may_follow`, zeros may follow the last map of a section:
 * LLVM's RuntimeDyld requests more memory than a section has where its relocations might need
 * stubs. */
enum cairn_status table_create(const struct cairn_section *sections, size_t section_count,
                               const struct cairn_allocator *allocator, bool zeros_may_follow,
                               cairn_table **table, struct cairn_error *error);

/* Returns the size of the table in memory, in bytes. Sets `*value_bytes`, unless it is NULL, to the
 * bytes of these that hold locations, live-outs and large constants. */
size_t table_size_bytes(const cairn_table *table, size_t *value_bytes);

/* Sets `*function` to function number `index`, in order of address; false if there are no more. */
bool table_function_at(const cairn_table *table, uint32_t index, struct cairn_function *function);

/* Set and return the owner of the table: the cairn_module that was loaded with it, or NULL for a
 * table that the host has created itself. */
void table_set_owner(cairn_table *table, void *owner);
void *table_owner(const cairn_table *table);

/* Returns the function of the record as the section has it. If several functions have the same
 * address, the stack size is that of the record's own function. */
struct cairn_function record_function(struct cairn_record record);

/* Sets `*liveout` to live-out number `index`, a register that is live after the call; false if
 * there are no more. */
bool record_liveout(struct cairn_record record, uint32_t index, struct cairn_liveout *liveout);

/* Finds all records with an ID, in order of address. Writes up to `capacity` of them to `records`,
 * which may be NULL if `capacity` is 0. Returns the number of all such records, which may be
 * greater than `capacity`. */
size_t table_find_id(const cairn_table *table, uint64_t id, struct cairn_record *records,
                     size_t capacity);

/* Calls `visit` for each record with the ID, until it returns false. Returns whether it never did.
 * Lock-free and async-signal-safe. */
typedef bool table_id_visitor(struct cairn_record record, void *user);
bool table_visit_id(const cairn_table *table, uint64_t id, table_id_visitor *visit, void *user);

/* A list of visited records, and the table_id_visitor that appends to it. */
struct record_list {
    struct cairn_record *records;
    size_t capacity;
    size_t count; /* of all records, also beyond the capacity */
};
bool record_list_append(struct cairn_record record, void *user);

/* Calls `visit` once for each ID of the table, with the ID's first record, and whether the ID has
 * no other. Takes linear time. */
typedef void table_first_visitor(struct cairn_record record, bool is_only, void *user);
void table_visit_ids(const cairn_table *table, table_first_visitor *visit, void *user);

/* Returns the address of record `index`, in O(1) time on average over calls with ascending indexes.
 * `*bucket` is 0 at the first call. */
uint64_t table_next_record_address(const cairn_table *table, uint32_t index, uint32_t *bucket);

/* Returns the lowest address of a record after `address`; UINT64_MAX after the last. */
uint64_t table_next_address(const cairn_table *table, uint64_t address);

/* Returns the address of the first function with records after `address`; UINT64_MAX if there is
 * none. */
uint64_t table_next_function(const cairn_table *table, uint64_t address);

/* Whether record `index` has a return address. */
bool table_has_return_address(const cairn_table *table, uint32_t index);

/* Sets the distance from the address of record `index` to the return address of its call (0 for
 * a statepoint, whose address is the return address). Must be called before the table is
 * published. */
enum { TABLE_RETURN_DELTA_MAX = 254 };
void table_set_return_delta(cairn_table *table, uint32_t index, uint32_t delta);

/* Sets the fields of tables for readers in other processes (base/inspect.h). */
struct inspect_field;
void table_inspect(struct inspect_field *fields);

#endif
