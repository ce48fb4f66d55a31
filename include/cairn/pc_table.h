/*
 * cairn/pc_table.h - PC sections by PC: everything that was said about an instruction or a
 * function.
 *
 * A table is made once, from any number of sections, each with its schema, and never changes. It
 * does not copy the sections: their bytes have to stay as long as the table.
 *
 *     struct cairn_pc_table_entry found[8];
 *     size_t count = cairn_pc_table_find(table, pc, found, 8);
 *     for (size_t i = 0; i < count && i < 8; i++)
 *         use(found[i].section->name, found[i].value.constants);
 *
 * Of code that was loaded into a runtime, cairn_loader_finish makes the table, and
 * cairn_runtime_find_pc_entries asks it (cairn/runtime.h).
 *
 * RUNS. LLVM writes an entry for each instruction with the metadata; but instructions of one
 * function that have the same node of metadata, or are machine instructions that were made from one
 * instruction, get one entry with all of their addresses, one behind the other, and the constants
 * once behind them. Nothing in the section says so. It can be seen by where words lead to, if
 * somebody knows where code is (`is_code` below): a constant is mistaken for an address only if,
 * counted from its place, it leads to code behind the entry's own. cairn_attach_pcsections
 * (cairn/llvm.h) gives each instruction a node of its own, so that runs are left to what the code
 * generator duplicates.
 *
 * Cost: 10 to 12 bytes for each entry, 16 more for a function's, and 8 for each run. Making a table
 * takes O(n log n) time for sections of n bytes. A lookup takes a step or two by a directory,
 * O(log n) at worst; functions O(log n).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_PC_TABLE_H
#define CAIRN_PC_TABLE_H

#include <cairn/allocator.h>
#include <cairn/pcsection.h>
#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_pc_table cairn_pc_table;

/** A section of a table. */
struct cairn_pc_table_section {
    /** Copied when a table is made. */
    const char *name;
    struct cairn_section section;
    /** Where its first byte is loaded. */
    uint64_t address;
    /** With `address_bytes` 0 the section has no schema: it is kept, and its entries are not read.
     */
    struct cairn_pcsection_schema schema;
};

struct cairn_pc_table_options {
    /** A NULL function means malloc. */
    struct cairn_allocator allocator;
    /** Whether `address` is one of code that entries may be about; called while the table is made.
     *  With it, runs are read as such; entries that lead elsewhere are CORRUPT; and zeros up to the
     *  section's end, which LLVM's RuntimeDyld may leave there, are no entries. Without it (NULL),
     *  entries are read as cairn_pcsection_read reads them. */
    bool (*is_code)(uint64_t address, void *user);
    void *user;
};

/**
 * A table of all entries of `count` sections. `options` NULL means all zero. On failure no table is
 * made. TRUNCATED, CORRUPT: a section does not have the form of its schema; the sentence says which
 * section, which entry and what was expected, and `error->offset` where in the section. RANGE: the
 * entries are 4 GiB apart, or the sections have as many bytes in all. ARGUMENT: a schema is none.
 * MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_pc_table_create(
    const struct cairn_pc_table_section *sections, size_t count,
    const struct cairn_pc_table_options *options, cairn_pc_table **table,
    struct cairn_error *error);

/** NULL is allowed. */
CAIRN_API void cairn_pc_table_destroy(cairn_pc_table *table);

/*
 * All that follows takes NULL as a table that has nothing, takes no lock, allocates nothing, and is
 * async-signal-safe.
 */

/** Bytes of memory that the table occupies, sections not counted. */
CAIRN_API size_t cairn_pc_table_size_bytes(const cairn_pc_table *table);

/** How many sections it has, with a schema or without. */
CAIRN_API uint32_t cairn_pc_table_section_count(const cairn_pc_table *table);
/** Section number `index`, in the order in which they were given; NULL beyond the last. As
 *  long-lived as the table. */
CAIRN_API const struct cairn_pc_table_section *cairn_pc_table_section(const cairn_pc_table *table,
                                                                      uint32_t index);

/** An entry. Plain values; `section` lives as long as the table. */
struct cairn_pc_table_entry {
    const struct cairn_pc_table_section *section;
    struct cairn_pcsection_entry value;
};

/** Entries of all sections. */
CAIRN_API uint32_t cairn_pc_table_entry_count(const cairn_pc_table *table);
/** Entry number `index`, which has to be below the count: by address, and of one address in the
 * order of the sections and in them. */
CAIRN_API struct cairn_pc_table_entry cairn_pc_table_entry(const cairn_pc_table *table,
                                                           uint32_t index);
/** The first entry of section number `section` whose number is `*index` or higher, and in `*index`
 *  the number after it: so from 0 on all entries of the section by address. False if there are no
 *  more. Takes O(n) time for n entries of other sections in between. */
CAIRN_API bool cairn_pc_table_next(const cairn_pc_table *table, uint32_t section, uint32_t *index,
                                   struct cairn_pc_table_entry *entry);

/**
 * All that is known of `pc`: functions' entries in whose range it is, by where they begin, and then
 * instructions' entries at exactly this address, in the order of the sections and in them. Writes
 * up to `capacity` of them to `entries` (may be NULL if `capacity` is 0) and returns how many there
 * are in all. A function of no bytes has no PC.
 */
CAIRN_API size_t cairn_pc_table_find(const cairn_pc_table *table, uint64_t pc,
                                     struct cairn_pc_table_entry *entries, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
