/*
 * cairn/table.h - a lookup table of stack map records by ID and by PC.
 *
 * A table is built once, from any number of stack map sections, and never changes. The sections are
 * not needed afterwards.
 *
 * Records are numbered in order of address. Records at the same address are in the order of the
 * sections, and in the order of each section.
 *
 * Cost: about 20 bytes for each record, 10 for each function, and 4 for each location and live-out.
 * A lookup by address takes one or two steps in a directory, or O(log n) at worst; a lookup by ID
 * takes that and O(1) for each record that it finds.
 *
 * Threads: building a table is thread-safe, but not async-signal-safe. Any number of threads and
 * signal handlers may query it.
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

/** A record of a table. A plain value, which may be copied; valid as long as the table. */
struct cairn_record {
    const cairn_table *table; /**< NULL: no record */
    uint32_t index;           /**< less than cairn_table_record_count */
};

/** A function that has records. It counts the records from its address up to the next function's
 *  address. If functions overlap, or if a function's last record is at the address of the next
 *  function, some of these records belong to another function (cairn_record_function). */
struct cairn_function {
    uint64_t address;
    /** In bytes, as LLVM recorded it; CAIRN_STACK_SIZE_DYNAMIC if it is not constant. */
    uint64_t stack_size;
    uint32_t first_record; /**< index of its first record in the table */
    uint32_t record_count; /**< number of its records, which are adjacent */
    /** Its name, if it was found by cairn_runtime_find_function or cairn_frame_function in a module
     *  of objects (cairn/load.h); otherwise NULL. Valid as long as the module. */
    const char *name;
};

/**
 * Builds a table of all records of `section_count` sections. There is one section for each object
 * file, and each may hold several maps. `allocator` NULL means malloc. The caller owns `*table`,
 * which is written only on success.
 *
 * Errors: TRUNCATED, VERSION, CORRUPT, RANGE (the code spans 4 GiB or more), UNSUPPORTED (a map of
 * version 1 does not tell which records belong to which function), MEMORY, ARGUMENT.
 * `error->offset` is the offset in the section; the message has the section's number if there are
 * several.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_table_create(
    const struct cairn_section *sections, size_t section_count,
    const struct cairn_allocator *allocator, cairn_table **table, struct cairn_error *error);

/** Frees a table, which may be NULL.
 *
 *  Threads: no thread may be using the table. Signal handlers must not call this. */
CAIRN_API void cairn_table_destroy(cairn_table *table);

/* Threads: thread-safe and async-signal-safe; takes no locks, allocates nothing. */

/** Returns the number of records. Each `index` below it, with the table, is a struct cairn_record.
 */
CAIRN_API uint32_t cairn_table_record_count(const cairn_table *table);

/* ---- Lookups ----
 *
 * Threads: thread-safe and async-signal-safe; takes no locks, allocates nothing. */

/** Finds the first record whose address (cairn_record_address) is `address`.
 *  Returns false if no record has it. Other records at the same address have
 *  the next indexes. */
CAIRN_API bool cairn_table_find_address(const cairn_table *table, uint64_t address,
                                        struct cairn_record *record);

/**
 * Finds the first record of a call by its return address. Returns false if no record has it. The
 * return address of a record is
 *
 *   - of a statepoint, its address;
 *   - of an armed patch point or shadow, the address after the call that is put there;
 *   - of a declared stack map at the address of a call, the address after the call, unless another
 *     record has that return address.
 *
 * Records have return addresses if they are declared and their module was loaded by a loader
 * (cairn/module.h).
 */
CAIRN_API bool cairn_table_find_return_address(const cairn_table *table, uint64_t address,
                                               struct cairn_record *record);

/** Finds the last function with records that begins at or before `address`. Returns false if no
 *  function does. */
CAIRN_API bool cairn_table_find_function(const cairn_table *table, uint64_t address,
                                         struct cairn_function *function);

/* ---- Contents of a record ----
 *
 * Threads: thread-safe and async-signal-safe; takes no locks, allocates nothing. */

/** Returns LLVM's ID, which the front end has chosen. It is not unique if code was inlined or
 *  unrolled. */
CAIRN_API uint64_t cairn_record_id(struct cairn_record record);

/** Returns the address that LLVM recorded: the first byte of a site, or the return address of a
 *  statepoint. */
CAIRN_API uint64_t cairn_record_address(struct cairn_record record);

/** Returns the number of the record's locations, each of which describes one live value. */
CAIRN_API uint32_t cairn_record_location_count(struct cairn_record record);

/** Returns location number `index`, which must be less than cairn_record_location_count. */
CAIRN_API struct cairn_location cairn_record_location(struct cairn_record record, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
