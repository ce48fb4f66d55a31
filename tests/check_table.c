/*
 * Decoding and tables against a plain model, over random maps of every version and byte order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/section_writer.h"

#include "index/table.h"

#include <cairn/cairn.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
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

static uint32_t below(uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % bound);
}

static void seed_random(void)
{
    const char *given = getenv("CAIRN_TEST_SEED");
    state = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    printf("CAIRN_TEST_SEED=%llu\n", (unsigned long long)state);
    fflush(stdout);
}

/* Everything that fits the format: ordinary locations, and now and then what only the wide forms
 * hold. */
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

/* One more map behind those that are there. */
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
    ck_assert_uint_eq(cairn_record_liveout_count(record), expected->liveout_count);
    for (uint32_t i = 0; i < expected->location_count; i++)
        expect_location(cairn_record_location(record, i), &expected->locations[i]);
    for (uint32_t i = 0; i < expected->liveout_count; i++) {
        struct cairn_liveout liveout = cairn_record_liveout(record, i);
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
        ck_assert_uint_eq(
            cairn_table_find_id(table, expected->id, found, FUNCTIONS_MAX * RECORDS_MAX), same);
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

/* Equal addresses keep their order only if the model's sort is stable: give each its own. */
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
    seed_random();
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

/* The section ends at a page that cannot be read. */
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
    seed_random();
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
        ck_assert_int_ne(cairn_table_create(&section, 1, NULL, &table, &error), CAIRN_OK);
        munmap(mapping, (size + page - 1) / page * page + page);
    }
    writer_end(&model.writer);
}
END_TEST

START_TEST(flipped_bits_are_read_safely_and_alike_by_both_readers)
{
    seed_random();
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
    seed_random();
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

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* IDs that all fall into one bucket, and one ID for all: must not take quadratic time. */
START_TEST(hostile_ids_do_not_make_building_quadratic)
{
    enum { COUNT = 200000 };
    struct section_writer writer;
    writer_begin(&writer, 3, CAIRN_LITTLE_ENDIAN);
    writer_header(&writer, 1, 0, COUNT);
    writer_function(&writer, 0x1000, 8, COUNT);
    /* Multiples of the hash's inverse hash to small numbers: all in bucket 0. */
    const uint64_t inverse = UINT64_C(0xF1DE83E19937733D);
    for (uint32_t i = 0; i < COUNT; i++)
        writer_record(&writer, _i == 0 ? 7 : inverse * (COUNT - i), i, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    double start = seconds();
    ck_assert_int_eq(cairn_table_create(&section, 1, NULL, &table, NULL), CAIRN_OK);
    struct cairn_record record;
    for (uint32_t i = 0; i < 1000; i++) {
        size_t found = cairn_table_find_id(table, _i == 0 ? 8 : inverse * (i + 1), &record, 1);
        ck_assert_uint_eq(found, _i == 0 ? 0 : 1);
    }
    ck_assert_msg(seconds() - start < 5, "it took %f s", seconds() - start);
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

START_TEST(return_addresses_are_found_exactly)
{
    enum { COUNT = 500 };
    seed_random();
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
        ck_assert_uint_eq(cairn_record_return_address((struct cairn_record){table, i}),
                          known ? address + i % 15 : 0);
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
        ck_assert_uint_eq(cairn_record_function((struct cairn_record){table, 2}).address, 0x2000);
        cairn_table_destroy(table);
    }
    writer_end(&writer);
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
    tcase_add_test(tests, unknown_version_says_so);
    tcase_add_test(tests, statepoint_is_taken_apart);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
