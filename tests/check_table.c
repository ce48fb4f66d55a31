/*
 * Tests of decoding and of tables, compared with a simple model, with random maps of every version
 * and byte order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/section_writer.h"
#include "tests/stackmap_support.h"

#include "record/address_index.h"
#include "record/table.h"

#include <cairn/cairn.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 8, RECORDS_MAX = 24, LOCATIONS_MAX = 9, LIVEOUTS_MAX = 4, CONSTANTS = 5 };

/* ---- The model ---- */

struct model_record {
    uint64_t id;
    uint64_t address;
    uint16_t location_count;
    uint16_t liveout_count;
    struct cairn_location locations[LOCATIONS_MAX];
    struct cairn_liveout liveouts[LIVEOUTS_MAX];
};

struct model {
    struct section_writer writer;
    uint32_t record_count;
    struct model_record records[FUNCTIONS_MAX * RECORDS_MAX];
};

static uint64_t state;

static uint32_t below(uint32_t bound) { return sample_random(&state, bound); }

/* Returns any location that the format allows: mostly ordinary ones, and sometimes one that only
 * the wide forms can hold. */
static struct cairn_location random_location(uint8_t version)
{
    static const uint16_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 10, 255};
    struct cairn_location location = {.kind = (enum cairn_location_kind)(1 + below(5))};
    location.size = sizes[below(9)];
    if (version == 3 && below(20) == 0)
        location.size = (uint16_t)(below(2) == 0 ? 8191 : 65535);
    location.offset = (int32_t)(below(8) == 0 ? below(UINT32_MAX) : below(400) - 200);
    if (location.kind <= CAIRN_LOCATION_INDIRECT)
        location.dwarf = (uint16_t)(below(10) == 0 ? 1200 + below(32) : below(100));
    else if (below(30) == 0)
        location.dwarf = 3;
    if (location.kind == CAIRN_LOCATION_CONSTANT_INDEX)
        location.offset = (int32_t)below(CONSTANTS);
    return location;
}

static uint64_t constant_number(uint32_t index) { return UINT64_C(0x123456789ABC0000) + index; }

static void fill_in_constant(struct cairn_location *location)
{
    location->constant = 0;
    if (location->kind == CAIRN_LOCATION_CONSTANT)
        location->constant = (uint64_t)(int64_t)location->offset;
    else if (location->kind == CAIRN_LOCATION_CONSTANT_INDEX)
        location->constant = constant_number((uint32_t)location->offset);
}

static void random_record(struct model_record *record, uint8_t version, uint64_t address,
                          uint32_t id_range)
{
    record->id = below(id_range) + (below(9) == 0 ? UINT64_C(1) << 40 : 0);
    record->address = address;
    record->location_count = (uint16_t)below(LOCATIONS_MAX + 1);
    record->liveout_count = (uint16_t)(below(3) == 0 ? below(LIVEOUTS_MAX + 1) : 0);
    bool ordinary = below(3) != 0;
    for (uint16_t i = 0; i < record->location_count; i++) {
        record->locations[i] = random_location(version);
        if (ordinary)
            record->locations[i] = (struct cairn_location){
                .kind = CAIRN_LOCATION_INDIRECT, .size = 8, .dwarf = 6, .offset = -8 * i};
        fill_in_constant(&record->locations[i]);
    }
    for (uint16_t i = 0; i < record->liveout_count; i++)
        record->liveouts[i] = (struct cairn_liveout){(uint16_t)below(100), (uint8_t)below(255)};
}

static void write_map(struct model *model, const uint64_t *functions, const uint32_t *counts,
                      uint32_t function_count, uint32_t record_count)
{
    struct section_writer *writer = &model->writer;
    const struct model_record *record = &model->records[model->record_count - record_count];
    writer_header(writer, function_count, CONSTANTS, record_count);
    for (uint32_t f = 0; f < function_count; f++)
        writer_function(writer, functions[f], 8 * f, counts[f]);
    for (uint32_t c = 0; c < CONSTANTS; c++)
        writer_constant(writer, constant_number(c));
    for (uint32_t f = 0; f < function_count; f++)
        for (uint32_t i = 0; i < counts[f]; i++, record++)
            writer_record(writer, record->id, (uint32_t)(record->address - functions[f]),
                          record->locations, record->location_count, record->liveouts,
                          record->liveout_count);
}

/* Adds one more map after the existing ones. */
static void add_random_map(struct model *model, uint64_t base, bool ascending)
{
    uint64_t functions[FUNCTIONS_MAX];
    uint32_t counts[FUNCTIONS_MAX];
    uint32_t function_count = model->writer.version == 1 ? 1 : 1 + below(3);
    uint32_t first = model->record_count;
    uint32_t id_range = below(2) == 0 ? 10 : 1000000;
    for (uint32_t f = 0; f < function_count; f++) {
        functions[f] = base + (ascending ? f : function_count - f) * UINT64_C(0x10000);
        counts[f] = below(RECORDS_MAX / 4 + 1) + (model->writer.version == 1);
        uint32_t offset = below(64);
        for (uint32_t i = 0; i < counts[f]; i++, offset += below(200))
            random_record(&model->records[model->record_count++], model->writer.version,
                          functions[f] + offset, id_range);
    }
    write_map(model, functions, counts, function_count, model->record_count - first);
}

static int compare_addresses(const void *left, const void *right)
{
    const struct model_record *a = left;
    const struct model_record *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* ---- Comparing ---- */

static void expect_location(struct cairn_location found, const struct cairn_location *expected)
{
    ck_assert_int_eq(found.kind, expected->kind);
    ck_assert_uint_eq(found.size, expected->size);
    ck_assert_uint_eq(found.dwarf, expected->dwarf);
    if (found.kind != CAIRN_LOCATION_CONSTANT_INDEX)
        ck_assert_int_eq(found.offset, expected->offset);
    ck_assert_uint_eq(found.constant, expected->constant);
}

static void expect_record(struct cairn_record record, const struct model_record *expected)
{
    ck_assert_uint_eq(cairn_record_id(record), expected->id);
    ck_assert_uint_eq(cairn_record_address(record), expected->address);
    ck_assert_uint_eq(cairn_record_location_count(record), expected->location_count);
    for (uint32_t i = 0; i < expected->location_count; i++)
        expect_location(cairn_record_location(record, i), &expected->locations[i]);
    struct cairn_liveout liveout;
    ck_assert(!record_liveout(record, expected->liveout_count, &liveout));
    for (uint32_t i = 0; i < expected->liveout_count; i++) {
        ck_assert(record_liveout(record, i, &liveout));
        ck_assert_uint_eq(liveout.dwarf, expected->liveouts[i].dwarf);
        ck_assert_uint_eq(liveout.size, expected->liveouts[i].size);
    }
}

static void expect_lookups(const cairn_table *table, const struct model *model)
{
    for (uint32_t i = 0; i < model->record_count; i++) {
        const struct model_record *expected = &model->records[i];
        struct cairn_record record;
        ck_assert(cairn_table_find_address(table, expected->address, &record));
        ck_assert_uint_eq(cairn_record_address(record), expected->address);
        ck_assert(record.index == 0 || cairn_record_address((struct cairn_record){
                                           table, record.index - 1}) != expected->address);
        uint32_t same = 0;
        bool next_exists = false;
        for (uint32_t j = 0; j < model->record_count; j++) {
            same += model->records[j].id == expected->id;
            next_exists |= model->records[j].address == expected->address + 1;
        }
        struct cairn_record found[FUNCTIONS_MAX * RECORDS_MAX];
        ck_assert_uint_eq(table_find_id(table, expected->id, found, FUNCTIONS_MAX * RECORDS_MAX),
                          same);
        for (uint32_t j = 0; j < same; j++) {
            ck_assert_uint_eq(cairn_record_id(found[j]), expected->id);
            ck_assert(j == 0 || found[j - 1].index < found[j].index);
        }
        ck_assert(cairn_table_find_address(table, expected->address + 1, &record) == next_exists);
    }
}

static void expect_table(const struct model *model)
{
    cairn_table *table;
    struct cairn_error error;
    const struct cairn_section section = writer_section(&model->writer);
    enum cairn_status status = cairn_table_create(&section, 1, NULL, &table, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_eq(cairn_table_record_count(table), model->record_count);
    for (uint32_t i = 0; i < model->record_count; i++)
        expect_record((struct cairn_record){table, i}, &model->records[i]);
    expect_lookups(table, model);
    cairn_table_destroy(table);
}

/* Sorts the model stably, so that records with equal addresses keep their order. */
static void sort_model(struct model *model)
{
    for (uint32_t i = 1; i < model->record_count; i++)
        for (uint32_t j = i;
             j > 0 && compare_addresses(&model->records[j - 1], &model->records[j]) > 0; j--) {
            struct model_record held = model->records[j];
            model->records[j] = model->records[j - 1];
            model->records[j - 1] = held;
        }
}

/* ---- Tests ---- */

START_TEST(random_maps_give_back_what_was_written)
{
    state = sample_seed();
    for (int round = 0; round < 400; round++) {
        struct model model = {.record_count = 0};
        writer_begin(&model.writer, (uint8_t)(1 + below(3)),
                     below(2) == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN);
        uint32_t maps = 1 + below(2);
        bool ascending = below(3) != 0;
        for (uint32_t m = 0; m < maps; m++)
            add_random_map(&model, UINT64_C(0x400000) + m * UINT64_C(0x100000), ascending);
        sort_model(&model);
        expect_table(&model);
        writer_end(&model.writer);
    }
}
END_TEST

/* The section ends at an inaccessible page. */
static uint8_t *at_guard_page(const uint8_t *bytes, size_t size, void **mapping)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size + page - 1) / page * page;
    *mapping = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(*mapping, MAP_FAILED);
    ck_assert_int_eq(mprotect((uint8_t *)*mapping + pages, page, PROT_NONE), 0);
    uint8_t *copy = (uint8_t *)*mapping + pages - size;
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

START_TEST(every_truncation_is_an_error_and_reads_nothing_beyond)
{
    state = sample_seed();
    uint8_t version = (uint8_t)(1 + _i % 3);
    struct model model = {.record_count = 0};
    writer_begin(&model.writer, version, _i < 3 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN);
    while (model.record_count < 3)
        model.record_count = 0, model.writer.size = 0, add_random_map(&model, 0x1000, true);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 1; size < model.writer.size; size++) {
        void *mapping;
        uint8_t *bytes = at_guard_page(model.writer.bytes, size, &mapping);
        const struct cairn_section section = {bytes, size, model.writer.byte_order};
        struct cairn_error error = {0};
        struct cairn_stackmap map;
        cairn_table *table;
        size_t offset = 0;
        ck_assert_int_ne(cairn_stackmap_read(&section, &offset, &map, &error), CAIRN_OK);
        ck_assert_uint_eq(offset, 0);
        ck_assert_uint_le(error.offset, size);
        ck_assert_int_gt((int)strlen(error.message), 10);
        enum cairn_status status = cairn_table_create(&section, 1, NULL, &table, &error);
        ck_assert_int_ne(status, CAIRN_OK);
        ck_assert_int_eq(error.status, status);
        ck_assert_uint_le(error.offset, size);
        ck_assert_int_gt((int)strlen(error.message), 10);
        munmap(mapping, (size + page - 1) / page * page + page);
    }
    writer_end(&model.writer);
}
END_TEST

START_TEST(flipped_bits_are_read_safely_and_alike_by_both_readers)
{
    state = sample_seed();
    for (int round = 0; round < 3000; round++) {
        struct model model = {.record_count = 0};
        writer_begin(&model.writer, (uint8_t)(1 + below(3)), CAIRN_LITTLE_ENDIAN);
        add_random_map(&model, 0x1000, true);
        for (uint32_t flips = 1 + below(3); flips > 0; flips--)
            model.writer.bytes[below((uint32_t)model.writer.size)] ^= (uint8_t)(1u << below(8));
        void *mapping;
        uint8_t *bytes = at_guard_page(model.writer.bytes, model.writer.size, &mapping);
        const struct cairn_section section = {bytes, model.writer.size, CAIRN_LITTLE_ENDIAN};
        struct cairn_error error;
        struct cairn_stackmap map;
        enum cairn_status read = CAIRN_OK;
        size_t offset = 0;
        while (read == CAIRN_OK && offset < section.size)
            read = cairn_stackmap_read(&section, &offset, &map, &error);
        cairn_table *table = NULL;
        enum cairn_status built = cairn_table_create(&section, 1, NULL, &table, &error);
        if (read != CAIRN_OK)
            ck_assert_int_ne(built, CAIRN_OK);
        else if (built != CAIRN_OK)
            ck_assert(built == CAIRN_ERROR_RANGE || built == CAIRN_ERROR_UNSUPPORTED);
        for (uint32_t i = 0; built == CAIRN_OK && i < cairn_table_record_count(table); i++) {
            struct cairn_record record = {table, i};
            for (uint32_t j = 0; j < cairn_record_location_count(record); j++)
                cairn_record_location(record, j);
        }
        if (built == CAIRN_OK)
            cairn_table_destroy(table);
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        munmap(mapping, (section.size + page - 1) / page * page + page);
        writer_end(&model.writer);
    }
}
END_TEST

struct failing_allocator {
    int left;
    int live;
};

static void *fail_in_turn(void *user, void *block, size_t old_size, size_t new_size)
{
    struct failing_allocator *failing = user;
    (void)old_size;
    if (new_size == 0) {
        failing->live -= block != NULL;
        free(block);
        return NULL;
    }
    if (block == NULL && failing->left-- <= 0)
        return NULL;
    failing->live += block == NULL;
    return realloc(block, new_size);
}

START_TEST(each_allocation_may_fail_and_nothing_leaks)
{
    state = sample_seed();
    bool ascending = _i == 0;
    struct model model = {.record_count = 0};
    writer_begin(&model.writer, 3, CAIRN_LITTLE_ENDIAN);
    while (model.record_count < 2)
        add_random_map(&model, 0x1000 + 0x100000 * (uint64_t)model.record_count, ascending);
    const struct cairn_section section = writer_section(&model.writer);
    int failures = 0;
    for (;; failures++) {
        struct failing_allocator failing = {.left = failures};
        const struct cairn_allocator allocator = {fail_in_turn, &failing};
        struct cairn_error error;
        cairn_table *table;
        enum cairn_status status = cairn_table_create(&section, 1, &allocator, &table, &error);
        if (status == CAIRN_OK)
            cairn_table_destroy(table);
        else
            ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        ck_assert_int_eq(failing.live, 0);
        if (status == CAIRN_OK)
            break;
    }
    ck_assert_int_ge(failures, 2);
    writer_end(&model.writer);
}
END_TEST

/* IDs that all fall into one bucket, and one ID for all records, must not take quadratic time. */
START_TEST(hostile_ids_do_not_make_building_quadratic)
{
    enum { COUNT = 200000 };
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_LITTLE_ENDIAN);
    writer_header(&writer, 1, 0, COUNT);
    writer_function(&writer, 0x1000, 8, COUNT);
    /* The hashes of multiples of the hash's inverse are small numbers, all in bucket 0. */
    const uint64_t inverse = UINT64_C(0xF1DE83E19937733D);
    for (uint32_t i = 0; i < COUNT; i++)
        writer_record(&writer, _i == 0 ? 7 : inverse * (COUNT - i), i, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    limit_cpu_seconds(60);
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
    struct cairn_record record;
    for (uint32_t i = 0; i < 1000; i++) {
        size_t found = table_find_id(table, _i == 0 ? 8 : inverse * (i + 1), &record, 1);
        ck_assert_uint_eq(found, _i == 0 ? 0 : 1);
    }
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

START_TEST(return_addresses_are_found_exactly)
{
    enum { COUNT = 500 };
    state = sample_seed();
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_LITTLE_ENDIAN);
    writer_header(&writer, 1, 0, COUNT);
    writer_function(&writer, 0x5000, 8, COUNT);
    uint32_t offsets[COUNT];
    for (uint32_t i = 0, offset = 0; i < COUNT; i++, offset += 16 + below(300)) {
        offsets[i] = offset;
        writer_record(&writer, i, offset, NULL, 0, NULL, 0);
    }
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
    struct cairn_record record;
    ck_assert(!cairn_table_find_return_address(table, 0x5000 + offsets[3], &record));
    for (uint32_t i = 0; i < COUNT; i++)
        if (i % 3 != 0)
            table_set_return_delta(table, i, i % 15);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t address = UINT64_C(0x5000) + offsets[i];
        bool known = i % 3 != 0;
        ck_assert(cairn_table_find_return_address(table, address + i % 15, &record) == known);
        if (known)
            ck_assert_uint_eq(record.index, i);
        ck_assert(table_has_return_address(table, i) == known);
        ck_assert(!cairn_table_find_return_address(table, address + 15, &record));
    }
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

START_TEST(code_over_4_gib_is_refused)
{
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_LITTLE_ENDIAN);
    writer_header(&writer, 2, 0, 2);
    writer_function(&writer, 0x1000, 8, 1);
    writer_function(&writer, UINT64_C(0x200000000), 8, 1);
    writer_record(&writer, 1, 0, NULL, 0, NULL, 0);
    writer_record(&writer, 2, 0, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    struct cairn_error error;
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, &error), CAIRN_ERROR_RANGE);
    writer_end(&writer);
}
END_TEST

START_TEST(version_1_functions_are_known_where_offsets_leave_one_way)
{
    struct section_writer writer;
    writer_begin(&writer, 1, CAIRN_LITTLE_ENDIAN);
    writer_header(&writer, 2, 0, 3);
    writer_function(&writer, 0x1000, 8, 0);
    writer_function(&writer, 0x2000, 8, 0);
    writer_record(&writer, 1, 8, NULL, 0, NULL, 0);
    writer_record(&writer, 2, 16, NULL, 0, NULL, 0);
    writer_record(&writer, 3, _i == 0 ? 4 : 24, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    struct cairn_error error;
    enum cairn_status status = cairn_table_create(&section, 1, NULL, &table, &error);
    ck_assert_int_eq(status, _i == 0 ? CAIRN_OK : CAIRN_ERROR_UNSUPPORTED);
    if (_i == 0) {
        ck_assert_uint_eq(cairn_record_address((struct cairn_record){table, 2}), 0x2004);
        ck_assert_uint_eq(record_function((struct cairn_record){table, 2}).address, 0x2000);
        cairn_table_destroy(table);
    }
    writer_end(&writer);
}
END_TEST

static bool one_in(uint32_t count) { return below(count) == 0; }

enum { OVERLAPPING_FUNCTIONS = 12, OVERLAPPING_RECORDS = 6 };

/* Functions that share addresses, or that begin at the last record of another one, in any order. */
static void write_overlapping(struct section_writer *writer, uint64_t *next_id)
{
    uint32_t counts[OVERLAPPING_FUNCTIONS];
    uint32_t function_count = 1 + below(OVERLAPPING_FUNCTIONS);
    uint32_t record_count = 0;
    for (uint32_t i = 0; i < function_count; i++)
        record_count += counts[i] = below(OVERLAPPING_RECORDS);
    writer_header(writer, function_count, 0, record_count);
    for (uint32_t i = 0; i < function_count; i++)
        writer_function(writer, 0x1000 + 8 * below(one_in(2) ? 4 : 40),
                        one_in(4) ? UINT64_MAX : below(one_in(4) ? UINT32_MAX : 4), counts[i]);
    for (uint32_t i = 0; i < record_count; i++)
        writer_record(writer, (*next_id)++, 8 * below(20), NULL, 0, NULL, 0);
}

/* Returns the table's only record with the ID. */
static struct cairn_record only_record(const cairn_table *table, uint64_t id)
{
    struct cairn_record record;
    expect(table_find_id(table, id, &record, 1) == 1);
    return record;
}

static void expect_owned(const cairn_table *table, const struct cairn_stackmap *map,
                         const struct cairn_stackmap_record *record)
{
    const struct cairn_record found = only_record(table, record->id);
    struct cairn_stackmap_function expected = cairn_stackmap_function(map, record->function);
    struct cairn_function function = record_function(found);
    expect(function.address == expected.address);
    expect(function.stack_size == expected.stack_size);
    expect(cairn_record_address(found) == expected.address + record->code_offset);
}

START_TEST(records_of_overlapping_functions_have_the_decoders_function)
{
    state = sample_seed();
    for (unsigned round = 0; round < 3000; round++) {
        struct section_writer writer;
        uint64_t next_id = one_in(2) ? 0 : UINT32_MAX - 5;
        writer_begin(&writer, 3, one_in(2) ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN);
        for (uint32_t maps = 1 + below(3); maps > 0; maps--)
            write_overlapping(&writer, &next_id);
        const struct cairn_section section = writer_section(&writer);
        cairn_table *table;
        ck_assert_ok(cairn_table_create(&section, 1, NULL, &table, NULL));
        struct cairn_stackmap map;
        for (size_t offset = 0; offset < section.size;) {
            struct cairn_stackmap_record record = {0};
            ck_assert_ok(cairn_stackmap_read(&section, &offset, &map, NULL));
            while (cairn_stackmap_next(&map, &record))
                expect_owned(table, &map, &record);
        }
        cairn_table_destroy(table);
        writer_end(&writer);
    }
}
END_TEST

START_TEST(unknown_version_says_so)
{
    struct section_writer writer;
    writer_begin(&writer, 4, CAIRN_LITTLE_ENDIAN);
    writer_header(&writer, 0, 0, 0);
    const struct cairn_section section = writer_section(&writer);
    struct cairn_error error;
    struct cairn_stackmap map;
    size_t offset = 0;
    ck_assert_int_eq(cairn_stackmap_read(&section, &offset, &map, &error), CAIRN_ERROR_VERSION);
    writer_end(&writer);
}
END_TEST

START_TEST(statepoint_is_taken_apart)
{
    const struct cairn_location locations[] = {
        {.kind = CAIRN_LOCATION_CONSTANT, .size = 8},
        {.kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = 2},
        {.kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = 1},
        {.kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = 99},
        {.kind = CAIRN_LOCATION_INDIRECT, .size = 8, .dwarf = 7, .offset = 8},
        {.kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = 3},
        {.kind = CAIRN_LOCATION_DIRECT, .size = 8, .dwarf = 7, .offset = 16},
    };
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BIG_ENDIAN);
    writer_header(&writer, 1, 0, 2);
    writer_function(&writer, 0x1000, 8, 2);
    writer_record(&writer, 1, 8, locations, 7, NULL, 0);
    writer_record(&writer, 2, 16, locations, 5, NULL, 0); /* half a pair */
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    struct cairn_statepoint statepoint;
    struct cairn_error error;
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_record_statepoint((struct cairn_record){table, 0}, &statepoint, NULL),
                     CAIRN_OK);
    ck_assert_uint_eq(statepoint.flags, 2);
    ck_assert_uint_eq(statepoint.deopt_count, 1);
    ck_assert_uint_eq(statepoint.first_pair, 4);
    ck_assert_uint_eq(statepoint.pair_count, 1);
    ck_assert_uint_eq(statepoint.first_alloca, 6);
    ck_assert_uint_eq(statepoint.alloca_count, 1);
    ck_assert_int_eq(cairn_record_statepoint((struct cairn_record){table, 1}, &statepoint, &error),
                     CAIRN_ERROR_CORRUPT);
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

/* ---- Compared with the iteration over sections ---- */

/* Properties of the maps of a test; see random_shape. */
enum id_kind {
    IDS_SEQUENTIAL,
    IDS_ASCENDING,
    IDS_PERMUTED,
    IDS_RANDOM,
    IDS_FEW,
    IDS_ACROSS_4G,
    ID_KINDS
};
enum order { ORDER_ASCENDING, ORDER_SHUFFLED, ORDER_FOLDED, ORDER_OVERLAPPING, ORDERS };
enum forms { FORMS_COMPACT, FORMS_WIDE, FORMS_FULL, FORMS_MIXED, FORM_KINDS };

struct shape {
    uint8_t version;
    enum cairn_byte_order byte_order;
    uint32_t map_count;
    uint32_t function_count;
    uint32_t records_max; /* records of a function */
    uint32_t gap_max;     /* bytes of code between records */
    uint32_t locations_max;
    uint32_t liveouts_max;
    bool large_stacks;
    bool records_descend;
    enum id_kind ids;
    enum order order;
    enum forms forms;
};

static struct shape random_shape(void)
{
    static const uint32_t locations_max[] = {0, 3, 12, 16, 17, 40, 70};
    static const uint32_t gap_max[] = {1, 3, 40, 3000, 400000};
    return (struct shape){
        .version = (uint8_t)(below(4) == 0 ? 2 : 3),
        .byte_order = below(4) == 0 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN,
        .map_count = below(3) == 0 ? 1 + below(4) : 1,
        .function_count = 1 + below(below(2) == 0 ? 4 : 60),
        .records_max = 1 + below(below(2) == 0 ? 3 : 60),
        .gap_max = gap_max[below(5)],
        .locations_max = locations_max[below(7)],
        .liveouts_max = below(2) == 0 ? 0 : 1 + below(12),
        .large_stacks = below(4) == 0,
        .records_descend = below(6) == 0,
        .ids = (enum id_kind)below(ID_KINDS),
        .order = below(2) == 0 ? ORDER_ASCENDING : (enum order)below(ORDERS),
        .forms = (enum forms)below(FORM_KINDS),
    };
}

static uint64_t random_64(void) { return (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX); }

static uint64_t shaped_id(const struct shape *shape, uint32_t number, uint64_t previous)
{
    switch (shape->ids) {
    case IDS_SEQUENTIAL:
        return number;
    case IDS_ASCENDING:
        return previous + below(5000);
    case IDS_PERMUTED:
        return (number * UINT64_C(40503)) & 0xFFFF;
    case IDS_RANDOM:
        return random_64();
    case IDS_FEW:
        return below(4);
    default:
        return UINT64_C(0xFFFFFF00) + number;
    }
}

static struct cairn_location shaped_location(const struct shape *shape)
{
    struct cairn_location location = {.kind = (enum cairn_location_kind)(1 + below(5)), .size = 8};
    bool is_wide = shape->forms == FORMS_WIDE || (shape->forms == FORMS_MIXED && below(20) == 0);
    bool is_full = shape->forms == FORMS_FULL || (shape->forms == FORMS_MIXED && below(20) == 0);
    location.size = (uint16_t)(1u << below(8));
    /* Offsets that fit in 18 bits, and wide ones on both sides of that range. */
    location.offset = (int32_t)below(1 << 18) - (1 << 17);
    if (is_wide)
        location.offset = (int32_t)below(1 << 20) - (1 << 19);
    if (location.kind <= CAIRN_LOCATION_INDIRECT)
        location.dwarf = (uint16_t)below(is_wide && below(2) == 0 ? 65536 : 256);
    else if (location.kind == CAIRN_LOCATION_CONSTANT)
        location.offset =
            (int32_t)below(is_wide ? 1 << 28 : 1 << 26) - (is_wide ? 1 << 27 : 1 << 25);
    else
        location.offset = (int32_t)below(CONSTANTS);
    if (is_full)
        location.size = (uint16_t)below(shape->version == 3 ? 65536 : 256);
    return location;
}

static void write_shaped_record(struct section_writer *writer, const struct shape *shape,
                                uint64_t id, uint32_t code_offset)
{
    enum { LOCATIONS = 80, LIVEOUTS = 16 };
    struct cairn_location locations[LOCATIONS];
    struct cairn_liveout liveouts[LIVEOUTS];
    uint16_t location_count = (uint16_t)below(shape->locations_max + 1);
    uint16_t liveout_count = (uint16_t)(below(2) == 0 ? below(shape->liveouts_max + 1) : 0);
    for (uint16_t i = 0; i < location_count; i++)
        locations[i] = shaped_location(shape);
    for (uint16_t i = 0; i < liveout_count; i++)
        liveouts[i] = (struct cairn_liveout){(uint16_t)below(65536), (uint8_t)below(256)};
    writer_record(writer, id, code_offset, locations, location_count, liveouts, liveout_count);
}

enum { SHAPED_FUNCTIONS = 64, SHAPED_RECORDS = 64 };

static void shape_addresses(const struct shape *shape, uint64_t base, uint64_t *addresses)
{
    uint64_t room = (uint64_t)(shape->records_max + 1) * shape->gap_max + 1;
    for (uint32_t f = 0; f < shape->function_count; f++)
        addresses[f] = base + f * (shape->order == ORDER_OVERLAPPING ? room / 3 + 1 : room);
    for (uint32_t f = 0; f < shape->function_count && shape->order != ORDER_ASCENDING; f++) {
        uint32_t other = below(shape->function_count);
        uint64_t held = addresses[f];
        addresses[f] = addresses[other];
        addresses[other] = held;
        if (shape->order == ORDER_FOLDED && f > 0 && below(3) == 0)
            addresses[f] = addresses[f - 1];
    }
}

static void write_shaped_map(struct section_writer *writer, const struct shape *shape,
                             uint64_t base, uint32_t *number)
{
    uint64_t addresses[SHAPED_FUNCTIONS];
    uint32_t counts[SHAPED_FUNCTIONS];
    uint32_t total = 0;
    shape_addresses(shape, base, addresses);
    for (uint32_t f = 0; f < shape->function_count; f++)
        total += counts[f] = below(6) == 0 ? 0 : 1 + below(shape->records_max);
    writer_header(writer, shape->function_count, CONSTANTS, total);
    for (uint32_t f = 0; f < shape->function_count; f++) {
        uint64_t stack_size = below(6) == 0 ? UINT64_MAX : 8 * below(8192);
        if (shape->large_stacks && below(3) == 0)
            stack_size = random_64();
        writer_function(writer, addresses[f], stack_size, counts[f]);
    }
    for (uint32_t c = 0; c < CONSTANTS; c++)
        writer_constant(writer, random_64());
    uint64_t id = below(1000);
    for (uint32_t f = 0; f < shape->function_count; f++) {
        uint32_t offset = below(shape->gap_max);
        for (uint32_t i = 0; i < counts[f]; i++) {
            id = shaped_id(shape, (*number)++, id);
            write_shaped_record(writer, shape, id, offset);
            offset = shape->records_descend && below(8) == 0 ? offset / 2
                                                             : offset + below(shape->gap_max + 1);
        }
    }
}

/* A record as the iteration returns it. */
struct seen {
    struct cairn_stackmap map;
    struct cairn_stackmap_record record;
    struct cairn_stackmap_function function;
    uint64_t address;
    uint32_t sequence;
};

static int compare_seen(const void *left, const void *right)
{
    const struct seen *a = left;
    const struct seen *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Returns all records in the order that a table guarantees; the caller frees them. */
static struct seen *see_all(const struct cairn_section *sections, uint32_t section_count,
                            uint32_t *count)
{
    struct seen *all = NULL;
    *count = 0;
    for (uint32_t s = 0; s < section_count; s++) {
        struct cairn_stackmap map;
        for (size_t offset = 0; offset < sections[s].size;) {
            struct cairn_stackmap_record record = {0};
            ck_assert_int_eq(cairn_stackmap_read(&sections[s], &offset, &map, NULL), CAIRN_OK);
            while (cairn_stackmap_next(&map, &record)) {
                struct seen one = {map, record, cairn_stackmap_function(&map, record.function), 0,
                                   *count};
                one.address = one.function.address + record.code_offset;
                struct seen *grown = realloc(all, (*count + 1) * sizeof *all);
                ck_assert_ptr_nonnull(grown);
                all = grown;
                all[(*count)++] = one;
            }
        }
    }
    if (*count > 0)
        qsort(all, *count, sizeof *all, compare_seen);
    return all;
}

static void expect_seen_values(struct cairn_record record, const struct seen *seen)
{
    expect(cairn_record_location_count(record) == seen->record.location_count);
    for (uint32_t i = 0; i < seen->record.location_count; i++) {
        struct cairn_location wanted = cairn_stackmap_location(&seen->map, &seen->record, i);
        struct cairn_location found = cairn_record_location(record, i);
        expect(found.kind == wanted.kind);
        expect(found.size == wanted.size);
        expect(found.dwarf == wanted.dwarf);
        expect(found.constant == wanted.constant);
        expect(found.kind == CAIRN_LOCATION_CONSTANT_INDEX || found.offset == wanted.offset);
    }
    struct cairn_liveout found_liveout;
    expect(!record_liveout(record, seen->record.liveout_count, &found_liveout));
    for (uint32_t i = 0; i < seen->record.liveout_count; i++) {
        struct cairn_liveout wanted = cairn_stackmap_liveout(&seen->map, &seen->record, i);
        expect(record_liveout(record, i, &found_liveout));
        expect(found_liveout.dwarf == wanted.dwarf);
        expect(found_liveout.size == wanted.size);
    }
}

static void expect_seen_ids(const cairn_table *table, const struct seen *all, uint32_t count,
                            uint64_t id)
{
    struct cairn_record *found = malloc((count + 1) * sizeof *found);
    ck_assert_ptr_nonnull(found);
    size_t found_count = table_find_id(table, id, found, count + 1);
    size_t place = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].record.id != id)
            continue;
        expect(place < found_count);
        expect(found[place].index == i);
        place++;
    }
    expect(place == found_count);
    expect(table_find_id(table, id, NULL, 0) == found_count);
    free(found);
}

static void expect_seen_address(const cairn_table *table, const struct seen *all, uint32_t count,
                                uint64_t address)
{
    struct cairn_record record;
    uint32_t first = 0;
    while (first < count && all[first].address < address)
        first++;
    bool exists = first < count && all[first].address == address;
    expect(cairn_table_find_address(table, address, &record) == exists);
    expect(!exists || record.index == first);
}

/* Finds the last function that begins at or before the address; of several with the same address,
 * the first. */
static const struct seen *function_before(const struct seen *all, uint32_t count, uint64_t address)
{
    const struct seen *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct seen *each = &all[i];
        if (each->function.address > address)
            continue;
        if (last == NULL || each->function.address > last->function.address ||
            (each->function.address == last->function.address && each->sequence < last->sequence))
            last = each;
    }
    return last;
}

static void expect_seen_function(const cairn_table *table, const struct seen *all, uint32_t count,
                                 uint64_t address)
{
    struct cairn_function found;
    const struct seen *wanted = function_before(all, count, address);
    expect(cairn_table_find_function(table, address, &found) == (wanted != NULL));
    if (wanted == NULL)
        return;
    expect(found.address == wanted->function.address);
    expect(found.stack_size == wanted->function.stack_size);
    expect(found.first_record <= count);
    expect(found.first_record == 0 || all[found.first_record - 1].address <= found.address);
    expect(found.first_record == count || all[found.first_record].address >= found.address);
}

static void expect_next_address(const cairn_table *table, const struct seen *all, uint32_t count,
                                uint64_t address)
{
    uint32_t index = 0;
    while (index < count && all[index].address <= address)
        index++;
    expect(table_next_address(table, address) == (index < count ? all[index].address : UINT64_MAX));
}

static void expect_all_seen(const cairn_table *table, const struct seen *all, uint32_t count)
{
    expect(cairn_table_record_count(table) == count);
    for (uint32_t i = 0; i < count; i++) {
        const struct cairn_record record = {table, i};
        expect(cairn_record_id(record) == all[i].record.id);
        expect(cairn_record_address(record) == all[i].address);
        expect_seen_values(record, &all[i]);
    }
    uint32_t next = 0;
    struct cairn_function function;
    for (uint32_t f = 0; table_function_at(table, f, &function); f++) {
        expect(function.first_record == next);
        next += function.record_count;
    }
    expect(next == count);
    expect_next_address(table, all, count, 0);
    expect_next_address(table, all, count, UINT64_MAX);
    for (uint32_t i = 0; i < 40 && count > 0; i++) {
        const struct seen *one = &all[below(count)];
        expect_seen_ids(table, all, count, below(4) == 0 ? one->record.id + 1 : one->record.id);
        expect_seen_address(table, all, count, one->address + (i % 4 == 0));
        expect_seen_function(table, all, count, one->address - (i % 3 == 0));
        expect_next_address(table, all, count, one->address - (i % 2 == 0));
    }
}

static void expect_shape(const struct shape *shape, uint32_t section_count)
{
    enum { SECTIONS = 3 };
    struct section_writer writers[SECTIONS];
    struct cairn_section sections[SECTIONS];
    uint32_t number = 0;
    uint64_t base = UINT64_C(0x7F0000000000) + below(4096);
    for (uint32_t s = 0; s < section_count; s++) {
        writer_begin(&writers[s], shape->version, shape->byte_order);
        for (uint32_t m = 0; m < shape->map_count; m++) {
            write_shaped_map(&writers[s], shape, base, &number);
            base += (uint64_t)(shape->function_count + 1) * (shape->records_max + 2) *
                    (shape->gap_max + 1);
        }
        sections[s] = writer_section(&writers[s]);
    }
    uint32_t count;
    struct seen *all = see_all(sections, section_count, &count);
    cairn_table *table;
    struct cairn_error error;
    enum cairn_status status = cairn_table_create(sections, section_count, NULL, &table, &error);
    ck_assert_msg(status == CAIRN_OK || status == CAIRN_ERROR_RANGE, "%s", error.message);
    if (status == CAIRN_OK) {
        expect_all_seen(table, all, count);
        cairn_table_destroy(table);
    } else {
        ck_assert_uint_gt(base - UINT64_C(0x7F0000000000), UINT32_MAX);
    }
    free(all);
    for (uint32_t s = 0; s < section_count; s++)
        writer_end(&writers[s]);
}

START_TEST(tables_say_what_iteration_does)
{
    state = sample_seed();
    for (int round = 0; round < 150; round++) {
        const struct shape shape = random_shape();
        expect_shape(&shape, below(4) == 0 ? 1 + below(3) : 1);
    }
}
END_TEST

/* The test uses one of each, so that none depends on chance. */
START_TEST(every_order_form_and_kind_of_id_is_kept)
{
    state = sample_seed();
    for (int round = 0; round < 3; round++) {
        struct shape shape = random_shape();
        shape.ids = (enum id_kind)(_i % ID_KINDS);
        shape.order = (enum order)(_i / ID_KINDS % ORDERS);
        shape.forms = (enum forms)(_i / (int)ID_KINDS / (int)ORDERS);
        expect_shape(&shape, 1);
    }
}
END_TEST

/* The directory begins with small buckets, because the end of the only function is unknown. */
START_TEST(one_function_may_be_as_large_as_a_table)
{
    enum { COUNT = 3000 };
    state = sample_seed();
    static const uint32_t gaps[] = {1, 100, 1400000};
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, COUNT);
    writer_function(&writer, 0x5000, 8, COUNT);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < COUNT; i++, offset += below(gaps[_i]) + (i == COUNT / 2 ? 5000 : 0))
        writer_record(&writer, i, offset, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    uint32_t count;
    struct seen *all = see_all(&section, 1, &count);
    cairn_table *table;
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
    expect_all_seen(table, all, count);
    cairn_table_destroy(table);
    free(all);
    writer_end(&writer);
}
END_TEST

/* An invalid location, at each index of records of each size. The error must be the same as from
 * reading the section. */
START_TEST(a_bad_location_is_found_wherever_it_is)
{
    enum { LOCATIONS = 36 };
    struct cairn_location locations[LOCATIONS];
    for (int i = 0; i < LOCATIONS; i++)
        locations[i] = (struct cairn_location){.kind = CAIRN_LOCATION_REGISTER, .size = 8};
    for (int bad = 0; bad < LOCATIONS; bad++) {
        struct section_writer writer;
        writer_begin(&writer, 3, _i % 2 == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN);
        writer_header(&writer, 1, 1, 3);
        writer_function(&writer, 0x5000, 8, 3);
        writer_constant(&writer, 7);
        locations[bad] = (struct cairn_location){
            .kind = _i < 2 ? CAIRN_LOCATION_CONSTANT_INDEX : (enum cairn_location_kind)17,
            .size = 8,
            .offset = _i < 2 ? 1 : 0,
        };
        writer_record(&writer, 1, 0, locations, (uint16_t)bad, NULL, 0);
        writer_record(&writer, 2, 8, locations, (uint16_t)(bad + 1), NULL, 0);
        writer_record(&writer, 3, 16, locations, (uint16_t)bad, NULL, 0);
        locations[bad] = (struct cairn_location){.kind = CAIRN_LOCATION_REGISTER, .size = 8};
        const struct cairn_section section = writer_section(&writer);
        struct cairn_error read;
        struct cairn_stackmap map;
        size_t offset = 0;
        ck_assert_int_eq(cairn_stackmap_read(&section, &offset, &map, &read), CAIRN_ERROR_CORRUPT);
        struct cairn_error built;
        cairn_table *table;
        ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, &built),
                         CAIRN_ERROR_CORRUPT);
        ck_assert_uint_eq(built.offset, read.offset);
        ck_assert_str_eq(built.message, read.message);
        writer_end(&writer);
    }
}
END_TEST

/* Without a directory of small buckets, finding a return address would search many records. */
START_TEST(return_addresses_are_found_among_crowded_records)
{
    enum { COUNT = 2000 };
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 2, 0, COUNT + 1);
    writer_function(&writer, 0x5000, 8, COUNT);
    writer_function(&writer, UINT64_C(0x5000) + UINT32_MAX - 10, 8, 1);
    for (uint32_t i = 0; i < COUNT; i++)
        writer_record(&writer, i, 0xFF00 + 7 * i, NULL, 0, NULL, 0);
    writer_record(&writer, COUNT, 0, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
    for (uint32_t i = 0; i <= COUNT; i++)
        table_set_return_delta(table, i, 5);
    for (uint32_t i = 0; i <= COUNT; i++) {
        struct cairn_record record;
        uint64_t address = cairn_record_address((struct cairn_record){table, i});
        expect(cairn_table_find_address(table, address, &record) && record.index == i);
        expect(cairn_table_find_return_address(table, address + 5, &record) && record.index == i);
        expect(!cairn_table_find_return_address(table, address + 4, &record));
    }
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

/* Tables that are small enough for an index of their own, and others. */
START_TEST(an_index_finds_what_its_table_finds)
{
    enum { COUNT_MAX = ADDRESS_INDEX_RECORDS + 2, REACH = 100 };
    state = sample_seed();
    for (int round = 0; round < 1000; round++) {
        uint32_t count = below(COUNT_MAX + 1);
        uint32_t gap = below(10) == 0 ? 30000 : 12;
        struct section_writer writer;
        writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
        writer_header(&writer, count > 0, 0, count);
        if (count > 0)
            writer_function(&writer, 0x5000, 8, count);
        for (uint32_t i = 0, offset = below(3); i < count; i++, offset += below(4) * below(gap))
            writer_record(&writer, i, offset, NULL, 0, NULL, 0);
        const struct cairn_section section = writer_section(&writer);
        cairn_table *table;
        struct address_index index;
        ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
        address_index_init(&index, table);
        for (uint32_t i = 0; i < REACH + count; i++) {
            uint64_t address = i < REACH
                                   ? UINT64_C(0x5000) - 10 + i + (i % 2 << 16)
                                   : cairn_record_address((struct cairn_record){table, i - REACH});
            struct cairn_record record = {0};
            struct cairn_record expected = {0};
            bool is_found = cairn_table_find_address(table, address, &expected);
            expect(address_index_find(&index, address, &record) == is_found);
            expect(!is_found || (record.table == table && record.index == expected.index));
        }
        cairn_table_destroy(table);
        writer_end(&writer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tables");
    TCase *tests = tcase_create("tables");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_maps_give_back_what_was_written);
    tcase_add_loop_test(tests, every_truncation_is_an_error_and_reads_nothing_beyond, 0, 6);
    tcase_add_test(tests, flipped_bits_are_read_safely_and_alike_by_both_readers);
    tcase_add_loop_test(tests, each_allocation_may_fail_and_nothing_leaks, 0, 2);
    tcase_add_loop_test(tests, hostile_ids_do_not_make_building_quadratic, 0, 2);
    tcase_add_test(tests, return_addresses_are_found_exactly);
    tcase_add_test(tests, code_over_4_gib_is_refused);
    tcase_add_loop_test(tests, version_1_functions_are_known_where_offsets_leave_one_way, 0, 2);
    tcase_add_test(tests, records_of_overlapping_functions_have_the_decoders_function);
    tcase_add_test(tests, unknown_version_says_so);
    tcase_add_test(tests, statepoint_is_taken_apart);
    tcase_add_test(tests, tables_say_what_iteration_does);
    tcase_add_loop_test(tests, every_order_form_and_kind_of_id_is_kept, 0,
                        (int)ID_KINDS * (int)ORDERS * (int)FORM_KINDS);
    tcase_add_loop_test(tests, one_function_may_be_as_large_as_a_table, 0, 3);
    tcase_add_loop_test(tests, a_bad_location_is_found_wherever_it_is, 0, 4);
    tcase_add_test(tests, return_addresses_are_found_among_crowded_records);
    tcase_add_test(tests, an_index_finds_what_its_table_finds);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
