/*
 * Fuzzes tables of PC sections. Lookups of a PC give the same entries as a linear search.
 *
 * Input: flags (byte order, whether code is known), the length of a schema, the schema, the
 * section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "tests/runtime_support.h"

#include <cairn/pc_table.h>

enum { SCHEMA_MAX = 64, ENTRIES_MAX = 512 };

#define ADDRESS UINT64_C(0x10000)

static bool is_code(uint64_t address, void *user)
{
    (void)user;
    return address >= ADDRESS - 0x1000 && address < ADDRESS;
}

/* Whether the entry applies to the PC. */
static bool holds(const struct cairn_pc_table_entry *entry, uint64_t pc)
{
    if (!entry->section->schema.has_size)
        return pc == entry->value.address;
    return pc - entry->value.address < entry->value.size;
}

static void compare(const cairn_pc_table *table, const struct cairn_section *section)
{
    static struct cairn_pc_table_entry entries[ENTRIES_MAX];
    static struct cairn_pc_table_entry found[ENTRIES_MAX];
    uint32_t count = support_pc_entry_count(table);
    if (count > ENTRIES_MAX)
        return;
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = support_pc_entry(table, i);
        require(i == 0 || entries[i].value.address >= entries[i - 1].value.address);
        require(entries[i].value.offset < section->size);
        require(entries[i].section == cairn_pc_table_section(table, 0));
    }
    require(!cairn_pc_table_entry(table, count, &entries[0]));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t pcs[] = {entries[i].value.address, entries[i].value.address + 1,
                          entries[i].value.address + entries[i].value.size};
        for (unsigned k = 0; k < sizeof pcs / sizeof *pcs; k++) {
            size_t expected = 0;
            for (uint32_t m = 0; m < count; m++)
                expected += holds(&entries[m], pcs[k]);
            require(cairn_pc_table_find(table, pcs[k], found, ENTRIES_MAX) == expected);
            for (size_t m = 0; m < expected; m++)
                require(holds(&found[m], pcs[k]));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    char text[SCHEMA_MAX + 1] = "";
    unsigned length = fuzz_u8(&input) % SCHEMA_MAX;
    for (unsigned i = 0; i < length; i++)
        text[i] = (char)fuzz_u8(&input);
    struct cairn_pc_table_section section = {.name = "fuzz", .address = ADDRESS};
    if (cairn_pcsection_parse_schema(text, &section.schema, NULL) != CAIRN_OK)
        return 0;
    section.section = fuzz_section(&input, flags);
    const struct cairn_pc_table_options options = {.is_code = (flags & 2) != 0 ? is_code : NULL};
    cairn_pc_table *table;
    if (cairn_pc_table_create(&section, 1, &options, &table, NULL) != CAIRN_OK)
        return 0;
    compare(table, &section.section);
    cairn_pc_table_destroy(table);
    return 0;
}
