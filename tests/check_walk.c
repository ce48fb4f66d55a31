/*
 * Tests of walking in columns: the results must equal those of the walk record by record, for
 * sections of every kind, and nothing is read past the end of a section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <stdlib.h>
#include <string.h>

/* ---- The results of a walk, in order ---- */

struct seen {
    uint64_t *words;
    size_t count;
    size_t capacity;
    size_t records;
    size_t records_at_most; /* number of records after which the walk stops */
};

static void note(struct seen *seen, uint64_t word)
{
    if (seen->count == seen->capacity) {
        seen->capacity = 2 * seen->capacity + 1024;
        seen->words = realloc(seen->words, seen->capacity * sizeof *seen->words);
        ck_assert_ptr_nonnull(seen->words);
    }
    seen->words[seen->count++] = word;
}

static void note_record(struct seen *seen, const struct cairn_stackmap *map,
                        const struct cairn_stackmap_record *record)
{
    note(seen, map->section_offset);
    note(seen, record->index);
    note(seen, record->id);
    note(seen, record->code_offset);
    note(seen, record->function);
    note(seen, record->offset);
    note(seen, record->location_count);
    note(seen, record->liveout_count);
    for (uint32_t i = 0; i < record->liveout_count; i++)
        note(seen, cairn_stackmap_liveout(map, record, i).dwarf);
    seen->records++;
}

static void note_location(struct seen *seen, uint64_t kind, uint64_t size, uint64_t dwarf,
                          int32_t offset)
{
    note(seen, kind << 48 | size << 32 | dwarf);
    note(seen, (uint32_t)offset);
}

static bool see_record(void *user, const struct cairn_stackmap *map,
                       const struct cairn_stackmap_record *record)
{
    struct seen *seen = user;
    note_record(seen, map, record);
    for (uint32_t i = 0; i < record->location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, i);
        note_location(seen, location.kind, location.size, location.dwarf, location.offset);
    }
    return seen->records < seen->records_at_most;
}

static void see_locations(struct seen *seen, const struct cairn_stackmap_columns *columns,
                          uint32_t record)
{
    uint32_t end = columns->first_locations[record + 1];
    for (uint32_t i = columns->first_locations[record]; i < end; i++)
        note_location(seen, columns->kinds[i], columns->sizes[i], columns->registers[i],
                      columns->offsets[i]);
}

static bool see_columns(void *user, const struct cairn_stackmap_columns *columns)
{
    struct seen *seen = user;
    expect(columns->record_count > 0);
    expect(columns->location_count <= CAIRN_STACKMAP_COLUMN_LENGTH);
    expect(columns->first_locations[0] == 0);
    expect(columns->first_locations[columns->record_count] == columns->location_count);
    bool is_part = columns->record_count == 1 &&
                   columns->records[0].location_count > CAIRN_STACKMAP_COLUMN_LENGTH;
    expect(is_part || columns->skipped_locations == 0);
    for (uint32_t i = 0; i < columns->record_count && seen->records < seen->records_at_most; i++) {
        const struct cairn_stackmap_record *record = &columns->records[i];
        uint32_t locations = columns->first_locations[i + 1] - columns->first_locations[i];
        expect(is_part || locations == record->location_count);
        if (columns->skipped_locations == 0)
            note_record(seen, columns->map, record);
        see_locations(seen, columns, i);
    }
    return seen->records < seen->records_at_most;
}

/* Does both walks over a copy of the section at the end of an allocation. */
static void compare_walks(const struct cairn_section *section, size_t records_at_most)
{
    struct guarded guarded = guard(section->bytes, section->size);
    const struct cairn_section copy = {guarded.bytes, guarded.size, section->byte_order};
    struct seen by_record = {.records_at_most = records_at_most};
    struct seen in_columns = {.records_at_most = records_at_most};
    struct cairn_error record_error = {0};
    struct cairn_error column_error = {0};
    enum cairn_status status = cairn_stackmap_walk(&copy, see_record, &by_record, &record_error);
    ck_assert_int_eq(cairn_stackmap_walk_columns(&copy, see_columns, &in_columns, &column_error),
                     status);
    ck_assert_uint_eq(column_error.offset, record_error.offset);
    ck_assert_str_eq(column_error.message, record_error.message);
    ck_assert_uint_eq(in_columns.records, by_record.records);
    ck_assert_uint_eq(in_columns.count, by_record.count);
    if (by_record.count > 0)
        ck_assert_mem_eq(in_columns.words, by_record.words,
                         by_record.count * sizeof *by_record.words);
    free(by_record.words);
    free(in_columns.words);
    guard_end(&guarded);
}

/* ---- Sections ---- */

static void put_random_map(struct sample_section *section, uint8_t version, uint32_t locations_max,
                           uint64_t *random)
{
    const struct sample_shape shape = {
        .version = version,
        .functions_max = 20,
        .records_max = 20,
        .locations_max = locations_max,
        .liveouts_max = 5,
        .constants_max = 10,
        .code_bytes_max = 50,
        .first_address = 0x1000,
    };
    struct sample_map *map = sample_map_random(&shape, random);
    section_put_map(section, map);
    while (section->size % 8 != 0)
        section_put(section, 0, 1);
    sample_map_free(map);
}

static uint64_t seed;

START_TEST(columns_hold_what_a_walk_visits)
{
    static const uint32_t locations_max[] = {0, 1, 15, 16, 17, 40, 300};
    uint64_t random = seed + (uint64_t)_i;
    for (size_t i = 0; i < sizeof locations_max / sizeof *locations_max; i++) {
        struct sample_section section = {.byte_order =
                                             _i / 3 == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN};
        for (int maps = 0; maps < 3; maps++)
            put_random_map(&section, (uint8_t)(1 + _i % 3), locations_max[i], &random);
        const struct cairn_section view = section_view(&section);
        compare_walks(&view, SIZE_MAX);
        compare_walks(&view, 1);
        compare_walks(&view, 1 + sample_random(&random, 300));
        section_free(&section);
    }
}
END_TEST

/* Writes one function with records of `counts` locations. */
static void put_records(struct sample_section *section, uint8_t version, const uint32_t *counts,
                        uint32_t record_count)
{
    struct cairn_location *locations = calloc(UINT16_MAX, sizeof *locations);
    struct sample_record *records = calloc(record_count, sizeof *records);
    for (uint32_t i = 0; i < UINT16_MAX; i++)
        locations[i] = (struct cairn_location){.kind = CAIRN_LOCATION_INDIRECT,
                                               .size = (uint16_t)(1 + i % 200),
                                               .dwarf = (uint16_t)(i % 32),
                                               .offset = (int32_t)i};
    for (uint32_t i = 0; i < record_count; i++)
        records[i] = (struct sample_record){
            .id = i, .code_offset = i, .location_count = counts[i], .locations = locations};
    const struct cairn_stackmap_function function = {
        .address = 0x1000, .stack_size = 8, .record_count = record_count};
    const struct sample_map map = {.version = version,
                                   .function_count = 1,
                                   .record_count = record_count,
                                   .functions = &function,
                                   .records = records};
    section_put_map(section, &map);
    free(records);
    free(locations);
}

START_TEST(records_larger_than_a_column_come_in_parts)
{
    static const uint32_t counts[] = {3,    1024, 1023, 1,    1025, 0,   0, 65535,
                                      2048, 7,    1024, 1024, 16,   990, 5};
    enum { COUNT = sizeof counts / sizeof *counts };
    for (uint8_t version = 1; version <= 3; version++) {
        for (uint32_t records = 1; records <= COUNT; records++) {
            struct sample_section section = {.byte_order = cairn_byte_order_host()};
            put_records(&section, version, counts, records);
            const struct cairn_section view = section_view(&section);
            compare_walks(&view, SIZE_MAX);
            section_free(&section);
        }
    }
}
END_TEST

START_TEST(part_of_a_large_record_may_end_the_walk)
{
    static const uint32_t count = 5000;
    struct sample_section section = {.byte_order = cairn_byte_order_host()};
    put_records(&section, 3, &count, 1);
    const struct cairn_section view = section_view(&section);
    struct seen seen = {.records_at_most = 1};
    ck_assert_ok(cairn_stackmap_walk_columns(&view, see_columns, &seen, NULL));
    ck_assert_uint_eq(seen.records, 1);
    ck_assert_uint_lt(seen.count, 2 * 1024 + 100);
    free(seen.words);
    section_free(&section);
}
END_TEST

START_TEST(sections_may_end_anywhere)
{
    uint64_t random = seed;
    struct sample_section section = {.byte_order = cairn_byte_order_host()};
    put_random_map(&section, 3, 20, &random);
    struct cairn_section view = section_view(&section);
    for (size_t size = section.size > 3000 ? section.size - 3000 : 0; size < section.size; size++) {
        view.size = size;
        compare_walks(&view, SIZE_MAX);
    }
    section_free(&section);
}
END_TEST

START_TEST(bad_locations_are_found)
{
    uint64_t random = seed;
    for (int i = 0; i < 500; i++) {
        struct sample_section section = {.byte_order = cairn_byte_order_host()};
        put_random_map(&section, 3, 20, &random);
        section.bytes[sample_random(&random, (uint32_t)section.size)] ^=
            (uint8_t)(1 + sample_random(&random, 255));
        const struct cairn_section view = section_view(&section);
        compare_walks(&view, SIZE_MAX);
        section_free(&section);
    }
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    struct cairn_section section = {.bytes = NULL, .size = 1};
    struct seen seen = {.records_at_most = SIZE_MAX};
    ck_assert_int_eq(cairn_stackmap_walk_columns(NULL, see_columns, &seen, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_walk_columns(&section, see_columns, &seen, NULL),
                     CAIRN_ERROR_ARGUMENT);
    section.size = 0;
    ck_assert_int_eq(cairn_stackmap_walk_columns(&section, NULL, &seen, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_ok(cairn_stackmap_walk_columns(&section, see_columns, &seen, NULL));
    ck_assert_uint_eq(seen.records, 0);
}
END_TEST

int main(void)
{
    seed = sample_seed();
    Suite *suite = suite_create("walk");
    TCase *tests = tcase_create("columns");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, columns_hold_what_a_walk_visits, 0, 6);
    tcase_add_test(tests, records_larger_than_a_column_come_in_parts);
    tcase_add_test(tests, part_of_a_large_record_may_end_the_walk);
    tcase_add_test(tests, sections_may_end_anywhere);
    tcase_add_test(tests, bad_locations_are_found);
    tcase_add_test(tests, bad_arguments_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
