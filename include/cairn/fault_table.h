/*
 * cairn/fault_table.h - a lookup table from the address of an instruction that may fault to the
 * address at which execution continues.
 *
 * A table is built once, from any number of `.llvm_faultmaps` sections, and never changes. The
 * sections are not needed afterwards. For code that is loaded into a runtime, cairn_loader_finish
 * builds the table (cairn_module_fault_table). cairn/fault.h shows how to continue in a SIGSEGV
 * handler.
 *
 *     struct cairn_fault_entry entry;
 *     for (uint32_t i = 0; cairn_fault_table_entry(table, i, &entry); i++)
 *         use(&entry);
 *
 * Cost: 16 bytes for each entry, and 2 to 4 more for a directory. A lookup takes one or two steps,
 * or O(log n) at worst.
 *
 * Threads: building a table is thread-safe, but not async-signal-safe. Any number of threads and
 * signal handlers may query it.
 *
 * Source: LLVM, "FaultMaps and implicit checks", section "The FaultMap Section".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FAULT_TABLE_H
#define CAIRN_FAULT_TABLE_H

#include <cairn/allocator.h>
#include <cairn/faultmap.h>
#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A table. Immutable, so any number of threads may query it. */
typedef struct cairn_fault_table cairn_fault_table;

/** An instruction that may fault. A plain value, which may be copied. */
struct cairn_fault_entry {
    uint64_t address;          /**< address of the instruction */
    uint64_t handler_address;  /**< address at which execution continues after a fault */
    uint64_t function_address; /**< address of the function that contains both */
    enum cairn_fault_kind kind;
};

/**
 * Builds a table of all fault maps in `count` sections. `allocator` NULL means malloc. The caller
 * owns `*table`, which is written only on success.
 *
 * Errors: TRUNCATED, VERSION, CORRUPT as cairn_faultmap_read; RANGE (the lowest and the highest
 * address differ by 4 GiB or more, or there are 2^32 entries or more); MEMORY; ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_fault_table_create(
    const struct cairn_section *sections, size_t count, const struct cairn_allocator *allocator,
    cairn_fault_table **table, struct cairn_error *error);

/** Frees a table, which may be NULL.
 *
 *  Threads: no thread may be using the table. Signal handlers must not call this. */
CAIRN_API void cairn_fault_table_destroy(cairn_fault_table *table);

/* NULL stands for an empty table.
 *
 * Threads: every function that follows is thread-safe and async-signal-safe, takes no locks, and
 * allocates nothing. */

/** Sets `*entry` to entry number `index`, in order of address. Returns false after the last one. */
CAIRN_API bool cairn_fault_table_entry(const cairn_fault_table *table, uint32_t index,
                                       struct cairn_fault_entry *entry);

/** Finds the entry of the instruction at exactly `pc`; if there are several, the first one in the
 *  order of the sections. Returns false if it has no entry. */
CAIRN_API bool cairn_fault_table_find(const cairn_fault_table *table, uint64_t pc,
                                      struct cairn_fault_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
