/*
 * cairn/fault_table.h - fault maps by PC: where the code goes on if the instruction faults.
 *
 * A table is made once, from any number of `.llvm_faultmaps` sections, and never changes; the
 * sections may go afterwards. Of code that was loaded into a runtime, cairn_loader_finish makes the
 * table, and cairn_runtime_find_fault asks it (cairn/runtime.h). What a handler of SIGSEGV does
 * with it, stands in cairn/fault.h.
 *
 * Cost: 16 bytes for each entry, and 2 to 4 for the directory by which one is found, in a step or
 * two (O(log n) at worst).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FAULT_TABLE_H
#define CAIRN_FAULT_TABLE_H

#include <cairn/allocator.h>
#include <cairn/faultmap.h>
#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_fault_table cairn_fault_table;

/** An instruction that may fault. Plain values; copy it freely. */
struct cairn_fault_entry {
    uint64_t address;          /**< of the instruction */
    uint64_t handler_address;  /**< of where the code goes on if it faults */
    uint64_t function_address; /**< of the function that both are in */
    enum cairn_fault_kind kind;
};

/**
 * A table of all fault maps in `count` sections. `allocator` NULL means malloc. On failure no table
 * is made: TRUNCATED, VERSION, CORRUPT as cairn_faultmap_read, RANGE (the addresses are 4 GiB
 * apart, or there are as many entries), MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_fault_table_create(
    const struct cairn_section *sections, size_t count, const struct cairn_allocator *allocator,
    cairn_fault_table **table, struct cairn_error *error);

/** NULL is allowed. */
CAIRN_API void cairn_fault_table_destroy(cairn_fault_table *table);

/*
 * All that follows takes NULL as a table that has nothing, takes no lock, allocates nothing, and is
 * async-signal-safe.
 */

/** Bytes of memory that the table occupies. */
CAIRN_API size_t cairn_fault_table_size_bytes(const cairn_fault_table *table);

/** How many entries it has. */
CAIRN_API uint32_t cairn_fault_table_count(const cairn_fault_table *table);
/** Entry number `index`, by address; `index` has to be below the count. */
CAIRN_API struct cairn_fault_entry cairn_fault_table_entry(const cairn_fault_table *table,
                                                           uint32_t index);

/** The instruction at exactly `pc`; false if none is known that may fault there. If there are
 * several, the first one in the order of the sections. */
CAIRN_API bool cairn_fault_table_find(const cairn_fault_table *table, uint64_t pc,
                                      struct cairn_fault_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
