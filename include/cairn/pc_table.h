/*
 * cairn/pc_table.h - a lookup table from an address (PC) to the entries of PC sections about its
 * instruction and its function.
 *
 *     struct cairn_pc_table_entry found[8];
 *     size_t count = cairn_pc_table_find(table, pc, found, 8);
 *     for (size_t i = 0; i < count && i < 8; i++)
 *         use(found[i].section->name, found[i].value.constants);
 *
 * A table is built once, from any number of sections, each with its schema, and never changes. It
 * does not copy the sections: their bytes must stay valid as long as the table. For code that is
 * loaded into a runtime, cairn_loader_finish builds the table (cairn_module_pc_table).
 *
 * Threads: building a table is thread-safe, but not async-signal-safe. Any number of threads and
 * signal handlers may query it.
 *
 * See cairn-metadata(7) (doc/metadata.md): runs of addresses with one entry, memory and times.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_PC_TABLE_H
#define CAIRN_PC_TABLE_H

#include <cairn/allocator.h>
#include <cairn/pcsection.h>
#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A table. Immutable, so any number of threads may query it. */
typedef struct cairn_pc_table cairn_pc_table;

/** A section of a table. */
struct cairn_pc_table_section {
    /** The name; copied when a table is built. */
    const char *name;
    struct cairn_section section;
    /** The address at which the section is loaded. */
    uint64_t address;
    /** The form of the entries. If `address_bytes` is 0, it has no schema: the section is part of
     *  the table, but its entries are not read. */
    struct cairn_pcsection_schema schema;
};

/** Options for building a table. All zero is the default. */
struct cairn_pc_table_options {
    /** The allocator; a NULL function means malloc. */
    struct cairn_allocator allocator;
    /** Returns whether `address` is an address of code that entries may refer to; called only while
     *  the table is built. If it is not NULL, runs are recognised; entries that refer to other
     *  addresses are CAIRN_ERROR_CORRUPT; and zeros up to the end of the section, which LLVM's
     *  RuntimeDyld may leave there, are ignored. If it is NULL, entries are read as by
     *  cairn_pcsection_read. */
    bool (*is_code)(uint64_t address, void *user);
    void *user;
};

/**
 * Builds a table of all entries of `count` sections. `options` NULL means all zero. The caller owns
 * `*table`, which is written only on success.
 *
 * Errors: TRUNCATED, CORRUPT (a section does not have the form of its schema; the message names the
 * section, the entry, and what was expected, and `error->offset` is the place in the section);
 * RANGE (the lowest and the highest address differ by 4 GiB or more, or the sections have 4 GiB or
 * more in all); ARGUMENT (a schema is invalid); MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pc_table_create(
    const struct cairn_pc_table_section *sections, size_t count,
    const struct cairn_pc_table_options *options, cairn_pc_table **table,
    struct cairn_error *error);

/** Frees a table, which may be NULL.
 *
 *  Threads: no thread may be using the table. Signal handlers must not call this. */
CAIRN_API void cairn_pc_table_destroy(cairn_pc_table *table);

/* NULL stands for an empty table.
 *
 * Threads: every function that follows is thread-safe and async-signal-safe, takes no locks, and
 * allocates nothing. */

/** Returns section number `index`, in the order in which they were passed, with or without a
 * schema; NULL after the last one. Valid as long as the table. */
CAIRN_API const struct cairn_pc_table_section *cairn_pc_table_section(const cairn_pc_table *table,
                                                                      uint32_t index);

/** An entry. A plain value; `section` is valid as long as the table. */
struct cairn_pc_table_entry {
    const struct cairn_pc_table_section *section;
    struct cairn_pcsection_entry value;
};

/** Sets `*entry` to entry number `index`, in order of address. Entries at the same address are in
 *  the order of the sections, and in the order of each section. Returns false after the last one.
 */
CAIRN_API bool cairn_pc_table_entry(const cairn_pc_table *table, uint32_t index,
                                    struct cairn_pc_table_entry *entry);

/**
 * Finds all entries about `pc`: first the entries of functions that contain `pc`, in order of their
 * start; then the entries of instructions at exactly `pc`, in the order of the sections, and in the
 * order of each section. A function of size 0 contains no PC.
 *
 * Writes up to `capacity` entries to `entries`, which may be NULL if `capacity` is 0. Returns the
 * number of all such entries, which may be greater than `capacity`.
 */
CAIRN_API size_t cairn_pc_table_find(const cairn_pc_table *table, uint64_t pc,
                                     struct cairn_pc_table_entry *entries, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
