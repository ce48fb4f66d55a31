/*
 * tests/runtime_support.h - queries that take more than one call of the library.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_RUNTIME_SUPPORT_H
#define TESTS_RUNTIME_SUPPORT_H

#include <cairn/runtime.h>

static inline struct cairn_runtime_statistics support_runtime_statistics(cairn_runtime *runtime)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    return statistics;
}

static inline bool support_find_return_address(const cairn_runtime *runtime, uint64_t address,
                                               struct cairn_record *record)
{
    const cairn_module *module = cairn_runtime_find_module(runtime, address);
    return module != NULL &&
           cairn_table_find_return_address(cairn_module_table(module), address, record);
}

static inline size_t support_find_pc_entries(const cairn_runtime *runtime, uint64_t pc,
                                             struct cairn_pc_table_entry *entries, size_t capacity)
{
    const cairn_module *module = cairn_runtime_find_module(runtime, pc);
    return cairn_pc_table_find(cairn_module_pc_table(module), pc, entries, capacity);
}

static inline bool support_find_fault(const cairn_runtime *runtime, uint64_t pc,
                                      struct cairn_fault_entry *entry)
{
    const cairn_module *module = cairn_runtime_find_module(runtime, pc);
    return cairn_fault_table_find(cairn_module_fault_table(module), pc, entry);
}

/* Returns an entry that must exist; a zeroed one otherwise. */
static inline struct cairn_fault_entry support_fault_entry(const cairn_fault_table *table,
                                                           uint32_t index)
{
    struct cairn_fault_entry entry = {0};
    return cairn_fault_table_entry(table, index, &entry) ? entry : (struct cairn_fault_entry){0};
}

static inline uint32_t support_fault_count(const cairn_fault_table *table)
{
    struct cairn_fault_entry entry;
    uint32_t count = 0;
    while (cairn_fault_table_entry(table, count, &entry))
        count++;
    return count;
}

/* Returns the number of the module's sites. */
static inline uint32_t support_site_count(const cairn_module *module)
{
    uint32_t count = 0;
    while (cairn_module_site(module, count) != NULL)
        count++;
    return count;
}

/* Returns the number of entries of a table of PC sections. */
static inline uint32_t support_pc_entry_count(const cairn_pc_table *table)
{
    struct cairn_pc_table_entry entry;
    uint32_t count = 0;
    while (cairn_pc_table_entry(table, count, &entry))
        count++;
    return count;
}

static inline struct cairn_pc_table_entry support_pc_entry(const cairn_pc_table *table,
                                                           uint32_t index)
{
    struct cairn_pc_table_entry entry;
    return cairn_pc_table_entry(table, index, &entry) ? entry : (struct cairn_pc_table_entry){0};
}

static inline uint32_t support_pc_section_count(const cairn_pc_table *table)
{
    uint32_t count = 0;
    while (cairn_pc_table_section(table, count) != NULL)
        count++;
    return count;
}

#endif
