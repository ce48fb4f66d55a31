/*
 * cairn/table.h - records by ID and by PC.
 *
 * A table is built once from a stack map section, into one allocation and in
 * Cairn's own form; the section is not needed afterwards. It never changes then,
 * so any number of threads, and signal handlers, may look things up in it.
 *
 * Records are numbered by address, lowest first; records with the same address
 * are neighbours, in the order in which the section has them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_TABLE_H
#define CAIRN_TABLE_H

#include <cairn/allocator.h>
#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_table cairn_table;

/** A record of a table. A plain value: copy it freely; valid as long as its table. */
struct cairn_record {
    const cairn_table *table; /**< NULL: no record */
    uint32_t index;
};

/** A function that has records. Those that it counts are the records from its address on up to the
 *  next function's: where functions overlap, as they do if an object says so, and where one's last
 *  record is at the address of the next one, some of them are another function's
 *  (cairn_record_function). */
struct cairn_function {
    uint64_t address;
    /** As LLVM recorded it; CAIRN_STACK_SIZE_DYNAMIC where it does not know. */
    uint64_t stack_size;
    uint32_t first_record; /**< of the table; the function's records are neighbours */
    uint32_t record_count;
};

/**
 * Decodes, checks and indexes `section_count` sections (one per object file; each may hold
 * several maps). `allocator` NULL means malloc. On failure nothing is left allocated.
 * TRUNCATED, VERSION, CORRUPT (offset counts from the section's first byte, the sentence names
 * the section's number if there are several), RANGE (code spread over 4 GiB or more), MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_table_create(
    const struct cairn_section *sections, size_t section_count,
    const struct cairn_allocator *allocator, cairn_table **table, struct cairn_error *error);

/** NULL is allowed. */
CAIRN_API void cairn_table_destroy(cairn_table *table);

/** How many records, and functions with records, all sections hold together. */
CAIRN_API uint32_t cairn_table_record_count(const cairn_table *table);
CAIRN_API uint32_t cairn_table_function_count(const cairn_table *table);

/** Bytes of memory that the table occupies, and how many of them hold decoded locations,
 *  live-outs and large constants. */
CAIRN_API size_t cairn_table_size_bytes(const cairn_table *table);
CAIRN_API size_t cairn_table_value_bytes(const cairn_table *table);

/** Function number `index`, by address; `index` must be below cairn_table_function_count. */
CAIRN_API struct cairn_function cairn_table_function(const cairn_table *table, uint32_t index);

/* Lookups: no locks, no allocation, async-signal-safe. */

/** The first record whose patch address is `address`; false if no record is. Further ones
 *  with the same address follow it by index. */
CAIRN_API bool cairn_table_find_address(const cairn_table *table, uint64_t address,
                                        struct cairn_record *record);

/** The first record whose call returns to `address`: exact, and only for records whose return
 *  address is known (see cairn_record_return_address). */
CAIRN_API bool cairn_table_find_return_address(const cairn_table *table, uint64_t address,
                                               struct cairn_record *record);

/** The function with records that begins at or last before `address`; false if none does. */
CAIRN_API bool cairn_table_find_function(const cairn_table *table, uint64_t address,
                                         struct cairn_function *function);

/**
 * All records with an ID, in the order of their addresses: writes up to `capacity` of them to
 * `records` (may be NULL if `capacity` is 0) and returns how many there are in all.
 */
CAIRN_API size_t cairn_table_find_id(const cairn_table *table, uint64_t id,
                                     struct cairn_record *records, size_t capacity);

/* What a record says. All async-signal-safe. */

/** LLVM's ID: chosen by the front end, and not unique where code was inlined or unrolled. */
CAIRN_API uint64_t cairn_record_id(struct cairn_record record);
/** The address that LLVM recorded: a site's first byte, or a statepoint's return address. */
CAIRN_API uint64_t cairn_record_address(struct cairn_record record);
/** Where the call at this record returns to: of a statepoint, its address; of a patch point or a
 * shadow that was armed, the address after the call that is put there; of a declared stack map
 * whose address is that of a call, the address after that call, unless another record has that
 * return address. 0 where no call is known. */
CAIRN_API uint64_t cairn_record_return_address(struct cairn_record record);
/** Returns the function whose code the record describes, as the section has it; also its stack size
 *  is that of the record's function, if several have the same address. */
CAIRN_API struct cairn_function cairn_record_function(struct cairn_record record);
/** How many live values the record has, and how many registers are live after its call. */
CAIRN_API uint32_t cairn_record_location_count(struct cairn_record record);
CAIRN_API uint32_t cairn_record_liveout_count(struct cairn_record record);
/** `index` must be below cairn_record_location_count. */
CAIRN_API struct cairn_location cairn_record_location(struct cairn_record record, uint32_t index);
/** `index` must be below cairn_record_liveout_count. */
CAIRN_API struct cairn_liveout cairn_record_liveout(struct cairn_record record, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
