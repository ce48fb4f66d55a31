/*
 * Fuzzes tables of faults. The tables hold the entries of the maps in sorted order, and lookups
 * give the same results as a linear search.
 *
 * Input: flags (byte order), a section of fault maps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "tests/runtime_support.h"

#include <cairn/fault_table.h>
#include <cairn/faultmap.h>

enum { ENTRIES_MAX = 2048 };

static struct cairn_fault_entry entries[ENTRIES_MAX];
static size_t count;

static void note(const struct cairn_faultmap *map)
{
    struct cairn_faultmap_function function = {0};
    while (cairn_faultmap_next(map, &function))
        for (uint32_t i = 0; i < function.fault_count && count < ENTRIES_MAX; i++) {
            struct cairn_fault fault = cairn_faultmap_fault(map, &function, i);
            entries[count++] = (struct cairn_fault_entry){
                .address = function.address + fault.faulting_offset,
                .handler_address = function.address + fault.handler_offset,
                .function_address = function.address,
                .kind = fault.kind,
            };
        }
}

/* The first recorded fault at the PC. */
static const struct cairn_fault_entry *search(uint64_t pc)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i].address == pc)
            return &entries[i];
    return NULL;
}

static void compare(const cairn_fault_table *table)
{
    require(support_fault_count(table) == count);
    for (uint32_t i = 1; i < count; i++)
        require(support_fault_entry(table, i).address >= support_fault_entry(table, i - 1).address);
    for (size_t i = 0; i < 2 * count; i++) {
        uint64_t pc = entries[i / 2].address + i % 2;
        const struct cairn_fault_entry *expected = search(pc);
        struct cairn_fault_entry found;
        require(cairn_fault_table_find(table, pc, &found) == (expected != NULL));
        if (expected == NULL)
            continue;
        require(found.address == expected->address && found.kind == expected->kind);
        require(found.handler_address == expected->handler_address);
        require(found.function_address == expected->function_address);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    cairn_fault_table *table;
    if (cairn_fault_table_create(&section, 1, NULL, &table, NULL) != CAIRN_OK)
        return 0;
    count = 0;
    for (size_t offset = 0; offset < section.size;) {
        struct cairn_faultmap map;
        require(cairn_faultmap_read(&section, &offset, &map, NULL) == CAIRN_OK);
        note(&map);
    }
    if (count < ENTRIES_MAX)
        compare(table);
    cairn_fault_table_destroy(table);
    return 0;
}
