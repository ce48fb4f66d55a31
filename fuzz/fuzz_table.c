/*
 * Fuzzes tables of records. Lookups by record, ID, address and function give the same results as a
 * linear search through the decoder's records.
 *
 * Input: flags (byte order; raw or made), then a section, or what maps are made from: IDs, offsets,
 * locations and functions in three bytes each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "record/table.h"
#include "tests/section_writer.h"

#include <cairn/statepoint.h>
#include <cairn/table.h>

enum { RECORDS_MAX = 256, FUNCTIONS_MAX = 8 };

static struct {
    struct cairn_stackmap map;
    struct cairn_stackmap_record record;
    struct cairn_stackmap_function function;
    uint64_t address;
} records[RECORDS_MAX];
static size_t record_count;

/* ---- Making maps ---- */

static void write_record(struct section_writer *writer, struct fuzz_input *input)
{
    enum { LOCATIONS_MAX = 24 };
    struct cairn_location locations[LOCATIONS_MAX];
    struct cairn_liveout liveouts[2] = {{7, 8}, {0, 4}};
    uint64_t what = fuzz_number(input, 3);
    uint16_t count = (uint16_t)(what % LOCATIONS_MAX);
    for (uint16_t i = 0; i < count; i++) {
        uint64_t location = fuzz_number(input, 4);
        locations[i] = (struct cairn_location){.kind = (enum cairn_location_kind)(1 + location % 4),
                                               .size = (uint16_t)(1U << (location >> 8 & 7)),
                                               .dwarf = location >> 11 & 0x3F,
                                               .offset = (int32_t)(location << 8)};
        if (locations[i].kind == CAIRN_LOCATION_CONSTANT)
            locations[i].dwarf = 0;
    }
    writer_record(writer, (what >> 5 & 0x3F) << (what >> 20 & 15) * 3, (uint32_t)(what >> 8 & 0x3F),
                  locations, count, liveouts, (uint16_t)(what >> 18 & 1) * 2);
}

static void write_map(struct section_writer *writer, struct fuzz_input *input)
{
    uint8_t counts[FUNCTIONS_MAX];
    uint32_t count = fuzz_u8(input) % FUNCTIONS_MAX;
    uint32_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += counts[i] = fuzz_u8(input) & 7;
    writer_header(writer, count, 0, all);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t what = fuzz_u8(input);
        writer_function(writer, 0x1000 + ((uint64_t)(what & 0x3F) << (what >> 6) * 4),
                        (what & 3) == 3 ? UINT64_MAX : what, counts[i]);
    }
    for (uint32_t i = 0; i < all; i++)
        write_record(writer, input);
}

/* ---- Comparing ---- */

/* Notes the records of the section, up to the first one whose function is not known. */
static void note_records(const struct cairn_section *section)
{
    struct cairn_stackmap map;
    size_t offset = 0;
    record_count = 0;
    while (offset < section->size) {
        require(cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK);
        struct cairn_stackmap_record record = {0};
        while (cairn_stackmap_next(&map, &record)) {
            if (record_count == RECORDS_MAX || record.function == CAIRN_STACKMAP_NO_FUNCTION)
                return;
            records[record_count].map = map;
            records[record_count].record = record;
            records[record_count].function = cairn_stackmap_function(&map, record.function);
            records[record_count].address =
                records[record_count].function.address + record.code_offset;
            record_count++;
        }
    }
}

/* Returns the index, in the order of decoding, of the table's record. The table sorts records by
 * address, and keeps their order if addresses are equal. */
static size_t noted_as(const cairn_table *table, uint32_t index)
{
    uint64_t address = cairn_record_address((struct cairn_record){table, index});
    uint32_t before = 0;
    while (index > before &&
           cairn_record_address((struct cairn_record){table, index - before - 1}) == address)
        before++;
    for (size_t i = 0; i < record_count; i++)
        if (records[i].address == address && before-- == 0)
            return i;
    return record_count;
}

static void compare_values(struct cairn_record record, size_t noted)
{
    const struct cairn_stackmap *map = &records[noted].map;
    const struct cairn_stackmap_record *expected = &records[noted].record;
    require(cairn_record_location_count(record) == expected->location_count);
    for (uint16_t i = 0; i < expected->location_count; i++) {
        struct cairn_location location = cairn_record_location(record, i);
        struct cairn_location other = cairn_stackmap_location(map, expected, i);
        require(location.kind == other.kind && location.size == other.size);
        require(location.dwarf == other.dwarf && location.constant == other.constant);
    }
    struct cairn_liveout liveout;
    require(!record_liveout(record, expected->liveout_count, &liveout));
    for (uint16_t i = 0; i < expected->liveout_count; i++) {
        require(record_liveout(record, i, &liveout));
        struct cairn_liveout other = cairn_stackmap_liveout(map, expected, i);
        require(liveout.dwarf == other.dwarf && liveout.size == other.size);
    }
    struct cairn_statepoint parts;
    struct cairn_statepoint others;
    enum cairn_status status = cairn_record_statepoint(record, &parts, NULL);
    require(cairn_stackmap_statepoint(map, expected, &others, NULL) == status);
    if (status != CAIRN_OK)
        return;
    require(parts.calling_convention == others.calling_convention && parts.flags == others.flags);
    require(parts.first_deopt == others.first_deopt && parts.deopt_count == others.deopt_count);
    require(parts.first_pair == others.first_pair && parts.pair_count == others.pair_count);
    require(parts.first_alloca == others.first_alloca);
    require(parts.alloca_count == others.alloca_count);
}

static void compare_record(const cairn_table *table, uint32_t index)
{
    const struct cairn_record record = {table, index};
    size_t noted = noted_as(table, index);
    require(noted < record_count);
    require(cairn_record_id(record) == records[noted].record.id);
    struct cairn_function function = record_function(record);
    require(function.address == records[noted].function.address);
    require(function.stack_size == records[noted].function.stack_size);
    compare_values(record, noted);
}

static void compare_lookups(const cairn_table *table)
{
    for (size_t i = 0; i < record_count; i++) {
        struct cairn_record found;
        size_t count = 0;
        for (size_t k = 0; k < record_count; k++)
            count += records[k].record.id == records[i].record.id;
        require(table_find_id(table, records[i].record.id, &found, 1) == count);
        require(cairn_table_find_address(table, records[i].address, &found));
        require(cairn_record_address(found) == records[i].address);
        bool is_there = false;
        for (size_t k = 0; k < record_count; k++)
            is_there = is_there || records[k].address == records[i].address + 1;
        require(cairn_table_find_address(table, records[i].address + 1, &found) == is_there);
    }
}

static void compare(const struct cairn_section *section)
{
    cairn_table *table;
    if (cairn_table_create(section, 1, NULL, &table, NULL) != CAIRN_OK)
        return;
    note_records(section);
    if (cairn_table_record_count(table) == record_count) {
        for (uint32_t i = 0; i < record_count; i++)
            compare_record(table, i);
        compare_lookups(table);
    }
    cairn_table_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    struct cairn_section section = fuzz_section(&input, flags);
    if ((flags & 2) == 0) {
        compare(&section);
        return 0;
    }
    struct section_writer writer;
    writer_begin(&writer, 3, section.byte_order);
    for (unsigned maps = 1 + (flags >> 2 & 3); maps > 0; maps--)
        write_map(&writer, &input);
    section = writer_section(&writer);
    compare(&section);
    writer_end(&writer);
    return 0;
}
