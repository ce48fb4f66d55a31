/*
 * check_stackmap.c - tests of decoding stack maps: src/format/stackmap.c and cairn/stackmap.h.
 *
 * tests/stackmap_support.c writes the sections, in all versions and both byte orders. They end at
 * an inaccessible page.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/record.h"
#include "stackmap_support.h"

#include <cairn/table.h>
#include <stdlib.h>
#include <string.h>

enum { BYTE_ORDERS = 2, VERSION_MAX = 3 };

/* ---- A map with every feature ---- */

static const struct cairn_stackmap_function functions[] = {
    {.address = 0x401000, .stack_size = 24, .record_count = 1},
    {.address = 0x7FFFFFFF2000, .stack_size = CAIRN_STACK_SIZE_DYNAMIC, .record_count = 0},
    {.address = UINT64_C(0xFFFF800000003000), .stack_size = 8, .record_count = 2},
};
/* The same functions, except the one without records: version 1 does not list such functions. */
static const struct cairn_stackmap_function two_functions[] = {
    {.address = 0x401000, .stack_size = 24, .record_count = 1},
    {.address = UINT64_C(0xFFFF800000003000), .stack_size = 8, .record_count = 2},
};
static const uint64_t constants[] = {UINT64_C(0x123456789ABCDEF0), UINT64_MAX};
static const struct cairn_location first_locations[] = {
    {.kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = 3},
    {.kind = CAIRN_LOCATION_DIRECT, .size = 8, .dwarf = 6, .offset = -16},
    {.kind = CAIRN_LOCATION_INDIRECT, .size = 4, .dwarf = 1203, .offset = 2147483647},
    {.kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = -1},
    {.kind = CAIRN_LOCATION_CONSTANT_INDEX, .size = 8, .offset = 1},
};
static const struct cairn_location second_locations[] = {
    {.kind = CAIRN_LOCATION_CONSTANT, .size = 255, .dwarf = 65535, .offset = INT32_MIN},
    {.kind = CAIRN_LOCATION_CONSTANT_INDEX, .size = 8, .offset = 0},
};
static const struct cairn_liveout second_liveouts[] = {{7, 8}, {17, 16}, {65535, 255}};
static const struct sample_record records[] = {
    {.id = UINT64_MAX, .code_offset = 77, .location_count = 5, .locations = first_locations},
    {.id = 0, .code_offset = 0},
    {.id = 42,
     .code_offset = UINT32_MAX,
     .location_count = 2,
     .liveout_count = 3,
     .locations = second_locations,
     .liveouts = second_liveouts},
};

static struct sample_map full_map(uint8_t version)
{
    return (struct sample_map){
        .version = version,
        .function_count = version == 1 ? 2 : 3,
        .constant_count = 2,
        .record_count = 3,
        .functions = version == 1 ? two_functions : functions,
        .constants = constants,
        .records = records,
    };
}

static struct sample_section full_section(uint8_t version, enum cairn_byte_order byte_order)
{
    struct sample_section section = {.byte_order = byte_order};
    struct sample_map map = full_map(version);
    section_put_map(&section, &map);
    return section;
}

/* ---- Comparing ---- */

static void assert_record(const struct cairn_stackmap *map,
                          const struct cairn_stackmap_record *record,
                          const struct sample_record *expected, const uint64_t *expected_constants)
{
    ck_assert_uint_eq(record->id, expected->id);
    ck_assert_uint_eq(record->code_offset, expected->code_offset);
    ck_assert_uint_eq(record->location_count, expected->location_count);
    ck_assert_uint_eq(record->liveout_count, expected->liveout_count);
    for (uint32_t i = 0; i < expected->location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, i);
        expect(location.offset == expected->locations[i].offset);
        assert_location(location, expected->locations[i], expected_constants);
    }
    for (uint32_t i = 0; i < expected->liveout_count; i++)
        assert_liveout(cairn_stackmap_liveout(map, record, i), expected->liveouts[i]);
}

static void assert_map(const struct cairn_stackmap *map, const struct sample_map *expected)
{
    ck_assert_uint_eq(map->version, expected->version);
    ck_assert_uint_eq(map->function_count, expected->function_count);
    ck_assert_uint_eq(map->constant_count, expected->constant_count);
    ck_assert_uint_eq(map->record_count, expected->record_count);
    for (uint32_t i = 0; i < map->function_count; i++) {
        struct cairn_stackmap_function function = cairn_stackmap_function(map, i);
        ck_assert_uint_eq(function.address, expected->functions[i].address);
        ck_assert_uint_eq(function.stack_size, expected->functions[i].stack_size);
        if (map->version > 1)
            ck_assert_uint_eq(function.record_count, expected->functions[i].record_count);
    }
    for (uint32_t i = 0; i < map->constant_count; i++)
        ck_assert_uint_eq(cairn_stackmap_constant(map, i), expected->constants[i]);
    struct cairn_stackmap_record record = {0};
    uint32_t count = 0;
    while (cairn_stackmap_next(map, &record)) {
        ck_assert_uint_lt(count, expected->record_count);
        ck_assert_uint_eq(record.index, count);
        assert_record(map, &record, &expected->records[count++], expected->constants);
    }
    ck_assert_uint_eq(count, expected->record_count);
}

static void assert_reads(const struct cairn_section *section, const struct sample_map *expected)
{
    struct cairn_stackmap map;
    struct cairn_error error = {0};
    size_t offset = 0;
    ck_assert_msg(cairn_stackmap_read(section, &offset, &map, &error) == CAIRN_OK, "%s",
                  error.message);
    ck_assert_uint_eq(offset, section->size);
    assert_map(&map, expected);
}

static void assert_refused(const struct cairn_section *section, enum cairn_status expected,
                           size_t expected_offset)
{
    struct cairn_stackmap map;
    memset(&map, 0x5A, sizeof map);
    struct cairn_stackmap before = map;
    struct cairn_error error = {0};
    size_t offset = 0;
    enum cairn_status status = CAIRN_OK;
    while (status == CAIRN_OK && offset < section->size) {
        before = map;
        size_t begin = offset;
        status = cairn_stackmap_read(section, &offset, &map, &error);
        if (status != CAIRN_OK)
            ck_assert_uint_eq(offset, begin);
    }
    ck_assert_int_eq(status, expected);
    ck_assert_int_eq(error.status, expected);
    ck_assert_uint_eq(error.offset, expected_offset);
    ck_assert_uint_gt(strlen(error.message), 20);
    ck_assert_mem_eq(&map, &before, sizeof map);
}

/* ---- Valid maps ---- */

/* The bytes are those in LLVM's documentation, so that the decoder is not only tested with this
 * project's own writer. */
START_TEST(a_version_3_map_written_out_is_read)
{
    static const uint8_t bytes[] = {
        3,    0,    0,    0,    1,    0,    0,    0,    1,    0,    0,    0,    1, 0, 0, 0,
        0x00, 0x10, 0x40, 0,    0,    0,    0,    0,    0x18, 0,    0,    0,    0, 0, 0, 0,
        1,    0,    0,    0,    0,    0,    0,    0,                                        /**/
        0xF0, 0xDE, 0xBC, 0x9A, 0x78, 0x56, 0x34, 0x12,                                     /**/
        0x2A, 0,    0,    0,    0,    0,    0,    0,    0x11, 0,    0,    0,    0, 0, 3, 0, /**/
        1,    0,    8,    0,    3,    0,    0,    0,    0,    0,    0,    0,                /**/
        3,    0,    4,    0,    6,    0,    0,    0,    0xF8, 0xFF, 0xFF, 0xFF,             /**/
        5,    0,    8,    0,    0,    0,    0,    0,    0,    0,    0,    0,                /**/
        0,    0,    0,    0,                                                                /**/
        0,    0,    1,    0,    7,    0,    0,    8,
    };
    static const struct cairn_stackmap_function function = {0x401000, 24, 1};
    static const uint64_t constant = UINT64_C(0x123456789ABCDEF0);
    static const struct cairn_location locations[] = {
        {.kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = 3},
        {.kind = CAIRN_LOCATION_INDIRECT, .size = 4, .dwarf = 6, .offset = -8},
        {.kind = CAIRN_LOCATION_CONSTANT_INDEX, .size = 8},
    };
    static const struct cairn_liveout liveout = {7, 8};
    static const struct sample_record record = {42, 17, 3, 1, locations, &liveout};
    static const struct sample_map expected = {3, 0, 1, 1, 1, &function, &constant, &record};
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    assert_reads(&section, &expected);

    struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
    section_put_map(&written, &expected);
    ck_assert_uint_eq(written.size, sizeof bytes);
    ck_assert_mem_eq(written.bytes, bytes, sizeof bytes);
    section_free(&written);
}
END_TEST

START_TEST(every_version_is_read_in_both_byte_orders)
{
    uint8_t version = (uint8_t)(_i / BYTE_ORDERS + 1);
    struct sample_section written =
        full_section(version, (enum cairn_byte_order)(_i % BYTE_ORDERS));
    struct guarded guarded = guard(written.bytes, written.size);
    const struct cairn_section section = {guarded.bytes, guarded.size, written.byte_order};
    struct sample_map expected = full_map((uint8_t)version);
    assert_reads(&section, &expected);
    guard_end(&guarded);
    section_free(&written);
}
END_TEST

START_TEST(no_alignment_is_needed)
{
    struct sample_section written = full_section(3, CAIRN_BIG_ENDIAN);
    uint8_t *copy = malloc(written.size + 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy + 1, written.bytes, written.size);
    const struct cairn_section section = {copy + 1, written.size, CAIRN_BIG_ENDIAN};
    struct sample_map expected = full_map(3);
    assert_reads(&section, &expected);
    free(copy);
    section_free(&written);
}
END_TEST

START_TEST(reserved_bytes_and_padding_are_not_looked_at)
{
    uint8_t version = (uint8_t)(_i + 1);
    struct sample_map map = full_map(version);
    map.reserved = 0xFF;
    struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
    section_put_map(&written, &map);
    const struct cairn_section section = section_view(&written);
    assert_reads(&section, &map);
    section_free(&written);
}
END_TEST

START_TEST(an_empty_map_is_read)
{
    const struct sample_map empty = {.version = (uint8_t)(_i + 1)};
    struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
    section_put_map(&written, &empty);
    const struct cairn_section section = section_view(&written);
    assert_reads(&section, &empty);
    section_free(&written);
}
END_TEST

START_TEST(random_maps_are_read)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < 300; i++) {
        const struct sample_shape shape = {
            .version = (uint8_t)(1 + sample_random(&random, VERSION_MAX)),
            .functions_max = 5,
            .records_max = 4,
            .locations_max = 20,
            .liveouts_max = 9,
            .constants_max = 3,
            .code_bytes_max = 100,
            .first_address = sample_random_id(&random),
        };
        struct sample_map *map = sample_map_random(&shape, &random);
        struct sample_section written = {.byte_order = (enum cairn_byte_order)(i % BYTE_ORDERS)};
        section_put_map(&written, map);
        struct guarded guarded = guard(written.bytes, written.size);
        const struct cairn_section section = {guarded.bytes, guarded.size, written.byte_order};
        assert_reads(&section, map);
        guard_end(&guarded);
        section_free(&written);
        sample_map_free(map);
    }
}
END_TEST

START_TEST(counts_may_be_the_largest_that_their_fields_hold)
{
    enum { MOST = UINT16_MAX };
    struct cairn_location *locations = calloc(MOST, sizeof *locations);
    struct cairn_liveout *liveouts = calloc(MOST, sizeof *liveouts);
    ck_assert_ptr_nonnull(locations);
    ck_assert_ptr_nonnull(liveouts);
    for (int i = 0; i < MOST; i++) {
        locations[i] = (struct cairn_location){.kind = CAIRN_LOCATION_REGISTER, .size = 8};
        locations[i].dwarf = (uint16_t)i;
        liveouts[i] = (struct cairn_liveout){.dwarf = (uint16_t)i, .size = (uint8_t)i};
    }
    const struct cairn_stackmap_function function = {.address = 1, .record_count = 2};
    const struct sample_record two[] = {{5, 6, MOST, MOST, locations, liveouts}, {.id = 8}};
    const struct sample_map map = {.version = (uint8_t)(_i + 1),
                                   .function_count = 1,
                                   .record_count = 2,
                                   .functions = &function,
                                   .records = two};
    struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
    section_put_map(&written, &map);
    const struct cairn_section section = section_view(&written);
    assert_reads(&section, &map);
    section_free(&written);
    free(locations);
    free(liveouts);
}
END_TEST

/* ---- Several maps ---- */

static struct sample_section three_maps(enum cairn_byte_order byte_order)
{
    struct sample_section section = {.byte_order = byte_order};
    for (int version = 1; version <= VERSION_MAX; version++) {
        struct sample_map map = full_map((uint8_t)version);
        section_put_map(&section, &map);
    }
    return section;
}

START_TEST(maps_follow_each_other_in_a_section)
{
    struct sample_section written = three_maps((enum cairn_byte_order)_i);
    const struct cairn_section section = section_view(&written);
    size_t offset = 0;
    for (int version = 1; version <= VERSION_MAX; version++) {
        struct cairn_stackmap map;
        size_t begin = offset;
        ck_assert_ok(cairn_stackmap_read(&section, &offset, &map, NULL));
        struct sample_map expected = full_map((uint8_t)version);
        assert_map(&map, &expected);
        ck_assert_uint_eq(map.section_offset, begin);
        ck_assert_uint_eq(map.size, offset - begin);
        ck_assert_ptr_eq(map.bytes, section.bytes + begin);
    }
    ck_assert_uint_eq(offset, section.size);
    section_free(&written);
}
END_TEST

START_TEST(up_to_seven_zero_bytes_at_the_end_are_padding)
{
    struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
    struct sample_map expected = full_map(3);
    for (int i = 0; i < 7; i++) {
        section_put(&written, 0, 1);
        const struct cairn_section section = section_view(&written);
        assert_reads(&section, &expected);
    }
    size_t end = written.size - 7;
    section_put(&written, 0, 1);
    const struct cairn_section section = section_view(&written);
    assert_refused(&section, CAIRN_ERROR_TRUNCATED, end);
    section_free(&written);
}
END_TEST

START_TEST(other_bytes_at_the_end_are_not_padding)
{
    struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
    size_t end = written.size;
    section_put(&written, 0, 3);
    section_put(&written, 1, 1);
    const struct cairn_section section = section_view(&written);
    assert_refused(&section, CAIRN_ERROR_TRUNCATED, end);
    section_free(&written);
}
END_TEST

START_TEST(an_empty_section_has_no_map)
{
    const struct cairn_section section = {NULL, 0, CAIRN_LITTLE_ENDIAN};
    struct cairn_stackmap map;
    struct cairn_error error = {0};
    size_t offset = 0;
    ck_assert_int_eq(cairn_stackmap_read(&section, &offset, &map, &error), CAIRN_ERROR_TRUNCATED);
}
END_TEST

/* ---- Records of functions in old maps ---- */

static void assert_functions_of_records(const struct sample_map *sample,
                                        enum cairn_stackmap_functions how, const uint32_t *expected)
{
    struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
    section_put_map(&written, sample);
    const struct cairn_section section = section_view(&written);
    struct cairn_stackmap map;
    size_t offset = 0;
    ck_assert_ok(cairn_stackmap_read(&section, &offset, &map, NULL));
    ck_assert_int_eq(map.functions, how);
    struct cairn_stackmap_record record = {0};
    bool more = cairn_stackmap_next(&map, &record);
    for (uint32_t i = 0; i < sample->record_count; i++) {
        ck_assert(more);
        ck_assert_uint_eq(record.function, expected[i]);
        more = cairn_stackmap_next(&map, &record);
    }
    ck_assert(!more);
    section_free(&written);
}

static const struct cairn_stackmap_function five_functions[] = {
    {0x1000, 8, 0}, {0x2000, 8, 2}, {0x3000, 8, 0}, {0x4000, 8, 1}, {0x5000, 8, 0}};

START_TEST(functions_without_records_are_passed_over)
{
    const struct sample_map map = {.version = (uint8_t)(_i + 2),
                                   .function_count = 5,
                                   .record_count = 3,
                                   .functions = five_functions,
                                   .records = records};
    static const struct sample_record three[] = {{.id = 1}, {.id = 2}, {.id = 3}};
    struct sample_map plain = map;
    plain.records = three;
    static const uint32_t expected[] = {1, 1, 3};
    assert_functions_of_records(&plain, CAIRN_STACKMAP_FUNCTIONS_COUNTED, expected);
}
END_TEST

struct old_map {
    uint32_t function_count;
    uint32_t record_count;
    uint32_t offsets[4];
    enum cairn_stackmap_functions how;
    uint32_t functions[4];
};

enum { NONE = -1 }; /* CAIRN_STACKMAP_NO_FUNCTION in the tables below */

static const struct old_map old_maps[] = {
    /* one function has all records, in any order */
    {1, 3, {9, 5, 7}, CAIRN_STACKMAP_FUNCTIONS_COUNTED, {0, 0, 0}},
    /* each function has one record */
    {3, 3, {1, 2, 3}, CAIRN_STACKMAP_FUNCTIONS_EACH, {0, 1, 2}},
    {3, 3, {3, 2, 1}, CAIRN_STACKMAP_FUNCTIONS_EACH, {0, 1, 2}},
    /* the number of descents equals the number of borders between functions */
    {2, 4, {4, 8, 2, 2}, CAIRN_STACKMAP_FUNCTIONS_DESCENDING, {0, 0, 1, 1}},
    {3, 4, {4, 2, 6, 1}, CAIRN_STACKMAP_FUNCTIONS_DESCENDING, {0, 1, 1, 2}},
    /* fewer descents: the second function may begin at any record */
    {2, 4, {1, 2, 3, 4}, CAIRN_STACKMAP_FUNCTIONS_UNKNOWN, {0}},
    {3, 4, {1, 2, 1, 4}, CAIRN_STACKMAP_FUNCTIONS_UNKNOWN, {0}},
    /* more descents than borders, more functions than records, or no function: not written by LLVM
     */
    {2, 4, {4, 3, 2, 1}, CAIRN_STACKMAP_FUNCTIONS_UNKNOWN, {0}},
    {4, 2, {1, 2}, CAIRN_STACKMAP_FUNCTIONS_UNKNOWN, {0}},
    {0, 2, {1, 2}, CAIRN_STACKMAP_FUNCTIONS_UNKNOWN, {0}},
};

START_TEST(version_1_records_are_shared_out_where_that_is_certain)
{
    const struct old_map *old = &old_maps[_i];
    struct sample_record own[4] = {{0}};
    uint32_t expected[4];
    for (uint32_t i = 0; i < old->record_count; i++) {
        own[i].code_offset = old->offsets[i];
        expected[i] = old->how == CAIRN_STACKMAP_FUNCTIONS_UNKNOWN ? CAIRN_STACKMAP_NO_FUNCTION
                                                                   : old->functions[i];
    }
    const struct sample_map map = {.version = 1,
                                   .function_count = old->function_count,
                                   .record_count = old->record_count,
                                   .functions = five_functions,
                                   .records = own};
    assert_functions_of_records(&map, old->how, expected);
}
END_TEST

START_TEST(the_only_function_of_version_1_has_all_records)
{
    const struct sample_map map = {.version = 1,
                                   .function_count = 1,
                                   .record_count = 3,
                                   .functions = five_functions,
                                   .records = records};
    struct sample_map with_constants = map;
    with_constants.constant_count = 2;
    with_constants.constants = constants;
    struct sample_section written = {.byte_order = CAIRN_BIG_ENDIAN};
    section_put_map(&written, &with_constants);
    const struct cairn_section section = section_view(&written);
    struct cairn_stackmap read;
    size_t offset = 0;
    ck_assert_ok(cairn_stackmap_read(&section, &offset, &read, NULL));
    ck_assert_uint_eq(cairn_stackmap_function(&read, 0).record_count, 3);
    section_free(&written);
}
END_TEST

START_TEST(functions_have_as_many_records_as_the_map)
{
    static const struct cairn_stackmap_function too_many[] = {{1, 8, 2}, {2, 8, 2}};
    static const struct cairn_stackmap_function too_few[] = {{1, 8, 1}, {2, 8, 1}};
    static const struct cairn_stackmap_function enormous[] = {{1, 8, UINT64_MAX}, {2, 8, 4}};
    struct sample_map map = full_map((uint8_t)(_i + 2));
    const struct {
        const struct cairn_stackmap_function *functions;
        size_t offset;
    } cases[] = {{too_many, 16 + 24 + 16}, {too_few, 12}, {enormous, 16 + 16}};
    map.function_count = 2;
    for (size_t i = 0; i < 3; i++) {
        struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
        map.functions = cases[i].functions;
        section_put_map(&written, &map);
        const struct cairn_section section = section_view(&written);
        assert_refused(&section, CAIRN_ERROR_CORRUPT, cases[i].offset);
        section_free(&written);
    }
}
END_TEST

/* ---- Errors ---- */

START_TEST(every_shorter_section_is_refused_without_a_look_beyond_its_end)
{
    uint8_t version = (uint8_t)(_i / BYTE_ORDERS + 1);
    struct sample_section written =
        full_section(version, (enum cairn_byte_order)(_i % BYTE_ORDERS));
    for (size_t size = 1; size < written.size; size++) {
        struct guarded guarded = guard(written.bytes, size);
        const struct cairn_section section = {guarded.bytes, size, written.byte_order};
        struct cairn_stackmap map;
        struct cairn_error error = {0};
        size_t offset = 0;
        ck_assert_int_eq(cairn_stackmap_read(&section, &offset, &map, &error),
                         CAIRN_ERROR_TRUNCATED);
        ck_assert_uint_eq(offset, 0);
        ck_assert_uint_le(error.offset, size);
        assert_refused(&section, CAIRN_ERROR_TRUNCATED, error.offset);
        guard_end(&guarded);
    }
    section_free(&written);
}
END_TEST

START_TEST(a_second_map_that_is_cut_is_refused_at_its_place)
{
    struct sample_section first = full_section(2, CAIRN_LITTLE_ENDIAN);
    size_t second = first.size;
    struct sample_map map = full_map(3);
    section_put_map(&first, &map);
    /* Truncated to 8 bytes and more: fewer zeros would be padding. */
    for (size_t size = second + 8; size < first.size; size++) {
        struct guarded guarded = guard(first.bytes, size);
        const struct cairn_section section = {guarded.bytes, size, first.byte_order};
        struct cairn_stackmap read;
        struct cairn_error error = {0};
        size_t offset = 0;
        ck_assert_ok(cairn_stackmap_read(&section, &offset, &read, &error));
        ck_assert_uint_eq(offset, second);
        ck_assert_int_eq(cairn_stackmap_read(&section, &offset, &read, &error),
                         CAIRN_ERROR_TRUNCATED);
        ck_assert_uint_ge(error.offset, second);
        ck_assert_uint_le(error.offset, size);
        guard_end(&guarded);
    }
    section_free(&first);
}
END_TEST

START_TEST(other_versions_are_refused)
{
    static const uint8_t versions[] = {0, 4, 127, 255};
    for (size_t i = 0; i < sizeof versions; i++) {
        struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
        written.bytes[0] = versions[i];
        const struct cairn_section section = section_view(&written);
        assert_refused(&section, CAIRN_ERROR_VERSION, 0);
        section_free(&written);
    }
}
END_TEST

/* Offsets of the parts of full_map(3). */
enum {
    FUNCTIONS_AT = 16,
    CONSTANTS_AT = FUNCTIONS_AT + 3 * 24,
    RECORDS_AT = CONSTANTS_AT + 2 * 8,
    LOCATIONS_AT = RECORDS_AT + 16
};

START_TEST(counts_that_the_section_cannot_hold_are_refused)
{
    const struct {
        size_t field;
        size_t offset;
    } counts[] = {{4, FUNCTIONS_AT}, {8, CONSTANTS_AT}, {12, RECORDS_AT}};
    for (size_t i = 0; i < 3; i++) {
        struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
        memset(written.bytes + counts[i].field, 0xFF, 4);
        const struct cairn_section section = section_view(&written);
        assert_refused(&section, CAIRN_ERROR_TRUNCATED, counts[i].offset);
        section_free(&written);
    }
}
END_TEST

START_TEST(location_and_liveout_counts_that_run_over_the_end_are_refused)
{
    struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
    memset(written.bytes + RECORDS_AT + 14, 0xFF, 2);
    struct cairn_section section = section_view(&written);
    assert_refused(&section, CAIRN_ERROR_TRUNCATED, RECORDS_AT);
    section_free(&written);

    written = full_section(3, CAIRN_LITTLE_ENDIAN);
    size_t liveouts = LOCATIONS_AT + 5 * 12 + 4;
    memset(written.bytes + liveouts + 2, 0xFF, 2);
    section = section_view(&written);
    assert_refused(&section, CAIRN_ERROR_TRUNCATED, RECORDS_AT);
    section_free(&written);
}
END_TEST

START_TEST(unknown_kinds_are_refused_wherever_they_are)
{
    static const uint8_t kinds[] = {0, 6, 7, 8, 9, 129, 255};
    for (size_t place = 0; place < 5; place++)
        for (size_t i = 0; i < sizeof kinds; i++) {
            struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
            written.bytes[LOCATIONS_AT + place * 12] = kinds[i];
            const struct cairn_section section = section_view(&written);
            assert_refused(&section, CAIRN_ERROR_CORRUPT, LOCATIONS_AT + place * 12);
            section_free(&written);
        }
}
END_TEST

START_TEST(indices_of_constants_that_are_not_there_are_refused)
{
    static const uint32_t indices[] = {2, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
    for (size_t place = 0; place < 5; place++)
        for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
            struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
            uint8_t *location = written.bytes + LOCATIONS_AT + place * 12;
            location[0] = CAIRN_LOCATION_CONSTANT_INDEX;
            for (int byte = 0; byte < 4; byte++)
                location[8 + byte] = (uint8_t)(indices[i] >> (8 * byte));
            const struct cairn_section section = section_view(&written);
            assert_refused(&section, CAIRN_ERROR_CORRUPT, LOCATIONS_AT + place * 12 + 8);
            section_free(&written);
        }
}
END_TEST

START_TEST(arguments_that_are_missing_are_refused)
{
    struct sample_section written = full_section(3, CAIRN_LITTLE_ENDIAN);
    const struct cairn_section section = section_view(&written);
    const struct cairn_section no_bytes = {NULL, 8, CAIRN_LITTLE_ENDIAN};
    struct cairn_stackmap map;
    struct cairn_error error = {0};
    size_t offset = 0;
    size_t beyond = section.size + 1;
    ck_assert_int_eq(cairn_stackmap_read(NULL, &offset, &map, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_read(&section, NULL, &map, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_read(&section, &offset, NULL, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_read(&section, &beyond, &map, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_read(&no_bytes, &offset, &map, &error), CAIRN_ERROR_ARGUMENT);
    section_free(&written);
}
END_TEST

/* ---- Random bytes ---- */

static uint64_t sum_of(const struct cairn_section *section)
{
    struct cairn_stackmap map;
    size_t offset = 0;
    uint64_t sum = 0;
    while (offset < section->size) {
        struct cairn_error error = {0};
        size_t begin = offset;
        if (cairn_stackmap_read(section, &offset, &map, &error) != CAIRN_OK) {
            expect(error.offset <= section->size);
            break;
        }
        expect(offset > begin);
        struct cairn_stackmap_record record = {0};
        while (cairn_stackmap_next(&map, &record)) {
            if (record.function != CAIRN_STACKMAP_NO_FUNCTION)
                sum += cairn_stackmap_function(&map, record.function).address;
            for (uint32_t i = 0; i < record.location_count; i++)
                sum += cairn_stackmap_location(&map, &record, i).constant;
            for (uint32_t i = 0; i < record.liveout_count; i++)
                sum += cairn_stackmap_liveout(&map, &record, i).dwarf;
        }
    }
    return sum;
}

START_TEST(changed_bits_never_lead_outside)
{
    uint64_t random = sample_seed();
    struct sample_section written = three_maps((enum cairn_byte_order)_i);
    struct guarded guarded = guard(written.bytes, written.size);
    const struct cairn_section section = {guarded.bytes, guarded.size, written.byte_order};
    volatile uint64_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(guarded.bytes, written.bytes, written.size);
        uint32_t changes = 1 + sample_random(&random, 4);
        while (changes-- > 0)
            guarded.bytes[sample_random(&random, (uint32_t)written.size)] ^=
                (uint8_t)(1 << sample_random(&random, 8));
        sum += sum_of(&section);
    }
    (void)sum;
    guard_end(&guarded);
    section_free(&written);
}
END_TEST

/* Tables check records while they add them, in a loop of their own. */
START_TEST(tables_refuse_what_reading_refuses)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < 500; i++) {
        const struct sample_shape shape = {.version = (uint8_t)(1 + i % 3),
                                           .functions_max = 3,
                                           .records_max = 4,
                                           .locations_max = i % 2 == 0 ? 18 : 70,
                                           .liveouts_max = 5,
                                           .constants_max = 3,
                                           .code_bytes_max = 9};
        struct sample_map *sample = sample_map_random(&shape, &random);
        struct sample_section written = {.byte_order = (enum cairn_byte_order)_i};
        section_put_map(&written, sample);
        struct guarded guarded = guard(written.bytes, written.size);
        const struct cairn_section section = {guarded.bytes, guarded.size, written.byte_order};
        struct cairn_stackmap map;
        size_t offset = 0;
        ck_assert_ok(cairn_stackmap_read(&section, &offset, &map, NULL));
        for (int change = 0; change < 40 && section.size > map.records_offset; change++) {
            struct cairn_stackmap changed;
            struct cairn_error read_error = {0};
            struct cairn_error build_error = {0};
            cairn_table *table = NULL;
            offset = 0;
            enum cairn_status read = CAIRN_OK;
            while (offset < section.size && read == CAIRN_OK)
                read = cairn_stackmap_read(&section, &offset, &changed, &read_error);
            enum cairn_status built = cairn_table_create(&section, 1, NULL, &table, &build_error);
            if (read != CAIRN_OK) {
                expect(built == read && build_error.offset == read_error.offset);
                expect(strcmp(build_error.message, read_error.message) == 0);
            } else {
                expect(built == CAIRN_OK || built == CAIRN_ERROR_RANGE ||
                       built == CAIRN_ERROR_UNSUPPORTED);
            }
            cairn_table_destroy(table);
            size_t bytes = section.size - map.records_offset;
            guarded.bytes[map.records_offset + sample_random(&random, (uint32_t)bytes)] ^=
                (uint8_t)(1 << sample_random(&random, 8));
        }
        guard_end(&guarded);
        section_free(&written);
        sample_map_free(sample);
    }
}
END_TEST

START_TEST(kinds_have_llvms_names)
{
    ck_assert_str_eq(location_kind_name(CAIRN_LOCATION_REGISTER), "Register");
    ck_assert_str_eq(location_kind_name(CAIRN_LOCATION_DIRECT), "Direct");
    ck_assert_str_eq(location_kind_name(CAIRN_LOCATION_INDIRECT), "Indirect");
    ck_assert_str_eq(location_kind_name(CAIRN_LOCATION_CONSTANT), "Constant");
    ck_assert_str_eq(location_kind_name(CAIRN_LOCATION_CONSTANT_INDEX), "ConstantIndex");
    ck_assert_str_eq(location_kind_name((enum cairn_location_kind)0), "unknown");
    ck_assert_str_eq(location_kind_name((enum cairn_location_kind)6), "unknown");
}
END_TEST

static TCase *reading_cases(void)
{
    TCase *cases = tcase_create("reading");
    tcase_add_test(cases, a_version_3_map_written_out_is_read);
    tcase_add_loop_test(cases, every_version_is_read_in_both_byte_orders, 0,
                        VERSION_MAX * BYTE_ORDERS);
    tcase_add_test(cases, no_alignment_is_needed);
    tcase_add_loop_test(cases, reserved_bytes_and_padding_are_not_looked_at, 0, VERSION_MAX);
    tcase_add_loop_test(cases, an_empty_map_is_read, 0, VERSION_MAX);
    tcase_add_test(cases, random_maps_are_read);
    tcase_add_loop_test(cases, counts_may_be_the_largest_that_their_fields_hold, 0, VERSION_MAX);
    tcase_add_loop_test(cases, maps_follow_each_other_in_a_section, 0, BYTE_ORDERS);
    tcase_add_test(cases, up_to_seven_zero_bytes_at_the_end_are_padding);
    tcase_add_test(cases, other_bytes_at_the_end_are_not_padding);
    tcase_add_test(cases, an_empty_section_has_no_map);
    tcase_add_loop_test(cases, functions_without_records_are_passed_over, 0, 2);
    tcase_add_loop_test(cases, version_1_records_are_shared_out_where_that_is_certain, 0,
                        sizeof old_maps / sizeof *old_maps);
    tcase_add_test(cases, the_only_function_of_version_1_has_all_records);
    tcase_add_test(cases, kinds_have_llvms_names);
    return cases;
}

static TCase *refusing_cases(void)
{
    TCase *cases = tcase_create("refusing");
    tcase_add_loop_test(cases, every_shorter_section_is_refused_without_a_look_beyond_its_end, 0,
                        VERSION_MAX * BYTE_ORDERS);
    tcase_add_test(cases, a_second_map_that_is_cut_is_refused_at_its_place);
    tcase_add_test(cases, other_versions_are_refused);
    tcase_add_loop_test(cases, functions_have_as_many_records_as_the_map, 0, 2);
    tcase_add_test(cases, counts_that_the_section_cannot_hold_are_refused);
    tcase_add_test(cases, location_and_liveout_counts_that_run_over_the_end_are_refused);
    tcase_add_test(cases, unknown_kinds_are_refused_wherever_they_are);
    tcase_add_test(cases, indices_of_constants_that_are_not_there_are_refused);
    tcase_add_test(cases, arguments_that_are_missing_are_refused);
    tcase_add_loop_test(cases, changed_bits_never_lead_outside, 0, BYTE_ORDERS);
    tcase_add_loop_test(cases, tables_refuse_what_reading_refuses, 0, BYTE_ORDERS);
    return cases;
}

int main(void)
{
    Suite *suite = suite_create("stackmap");
    suite_add_tcase(suite, reading_cases());
    suite_add_tcase(suite, refusing_cases());
    return run_suite(suite);
}
