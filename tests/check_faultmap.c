/*
 * Tests of fault maps. Random maps are written and read back. Truncated and invalid ones are
 * refused with the right offset, and nothing is read past their end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/faultmap.h>
#include <string.h>

enum { BYTES_MAX = 4096, MAPS = 3, FUNCTIONS_MAX = 4, FAULTS_MAX = 5, ROUNDS = 2000 };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Writing ---- */

struct written_function {
    uint64_t address;
    uint32_t fault_count;
    struct cairn_fault faults[FAULTS_MAX];
};

struct written_map {
    size_t end;
    uint32_t function_count;
    struct written_function functions[FUNCTIONS_MAX];
};

static struct {
    enum cairn_byte_order byte_order;
    struct written_map maps[MAPS];
    uint8_t bytes[BYTES_MAX];
    size_t size;
} written;

static void put(uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        unsigned place = written.byte_order == CAIRN_LITTLE_ENDIAN ? i : bytes - 1 - i;
        expect(written.size < BYTES_MAX);
        written.bytes[written.size++] = (uint8_t)(value >> 8 * place);
    }
}

static void put_function(struct written_function *function)
{
    function->address = (uint64_t)below(UINT32_MAX) << 16;
    function->fault_count = below(FAULTS_MAX + 1);
    put(function->address, 8);
    put(function->fault_count, 4);
    put(below(UINT32_MAX), 4); /* reserved */
    for (uint32_t i = 0; i < function->fault_count; i++) {
        struct cairn_fault *fault = &function->faults[i];
        fault->kind = (enum cairn_fault_kind)(1 + below(3));
        fault->faulting_offset = below(UINT32_MAX);
        fault->handler_offset = below(UINT32_MAX);
        put(fault->kind, 4);
        put(fault->faulting_offset, 4);
        put(fault->handler_offset, 4);
    }
}

static void put_section(void)
{
    written.byte_order = below(2) == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN;
    written.size = 0;
    for (unsigned i = 0; i < MAPS; i++) {
        struct written_map *map = &written.maps[i];
        map->function_count = below(FUNCTIONS_MAX + 1);
        put(1, 1);
        put(below(256), 1); /* reserved, as are the next two */
        put(below(65536), 2);
        put(map->function_count, 4);
        for (uint32_t j = 0; j < map->function_count; j++)
            put_function(&map->functions[j]);
        map->end = written.size;
    }
}

/* ---- Reading ---- */

static void expect_function(const struct cairn_faultmap *map,
                            const struct cairn_faultmap_function *function,
                            const struct written_function *expected)
{
    expect_equal(function->address, expected->address);
    expect_equal(function->fault_count, expected->fault_count);
    for (uint32_t i = 0; i < function->fault_count; i++) {
        struct cairn_fault fault = cairn_faultmap_fault(map, function, i);
        expect_equal(fault.kind, expected->faults[i].kind);
        expect_equal(fault.faulting_offset, expected->faults[i].faulting_offset);
        expect_equal(fault.handler_offset, expected->faults[i].handler_offset);
    }
}

static void expect_map(const struct cairn_faultmap *map, const struct written_map *expected)
{
    struct cairn_faultmap_function function = {0};
    uint32_t count = 0;
    expect_equal(map->section_offset + map->size, expected->end);
    expect_equal(map->function_count, expected->function_count);
    while (cairn_faultmap_next(map, &function))
        expect_function(map, &function, &expected->functions[count++]);
    expect_equal(count, expected->function_count);
}

START_TEST(random_maps_are_read_as_they_were_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_section();
        struct guarded guarded = guard(written.bytes, written.size);
        const struct cairn_section section = {guarded.bytes, guarded.size, written.byte_order};
        size_t offset = 0;
        for (unsigned i = 0; i < MAPS; i++) {
            struct cairn_faultmap map;
            expect_equal(cairn_faultmap_read(&section, &offset, &map, NULL), CAIRN_OK);
            expect_map(&map, &written.maps[i]);
        }
        expect_equal(offset, written.size);
        guard_end(&guarded);
    }
}
END_TEST

/* Expects the functions before the cut from the truncated map, and no others. */
static void expect_functions_before(const struct cairn_faultmap *map, size_t size,
                                    const struct written_map *expected)
{
    struct cairn_faultmap_function function = {0};
    uint32_t count = 0;
    while (cairn_faultmap_next(map, &function))
        expect_function(map, &function, &expected->functions[count++]);
    expect_equal(count, map->function_count);
    if (map->bytes == NULL)
        return;
    expect(count < expected->function_count);
    size_t next_bytes = 16 + 12 * (size_t)expected->functions[count].fault_count;
    ck_assert_uint_le(map->size, size - map->section_offset);
    ck_assert_uint_gt(map->size + next_bytes, size - map->section_offset);
}

/* Expects the maps that end before the cut. */
static void expect_cut(size_t size)
{
    struct guarded guarded = guard(written.bytes, size);
    const struct cairn_section section = {guarded.bytes, guarded.size, written.byte_order};
    size_t offset = 0;
    for (unsigned i = 0; offset < size; i++) {
        struct cairn_faultmap map;
        struct cairn_error error = {0};
        size_t before = offset;
        enum cairn_status status = cairn_faultmap_read(&section, &offset, &map, &error);
        if (written.maps[i].end <= size) {
            expect_equal(status, CAIRN_OK);
            continue;
        }
        expect_equal(status, CAIRN_ERROR_TRUNCATED);
        expect_equal(offset, before);
        ck_assert_uint_ge(error.offset, before);
        ck_assert_uint_le(error.offset, size);
        expect_functions_before(&map, size, &written.maps[i]);
        break;
    }
    guard_end(&guarded);
}

START_TEST(a_map_cut_anywhere_is_truncated_there)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < 20; round++) {
        put_section();
        for (size_t size = 0; size < written.size; size++)
            expect_cut(size);
    }
}
END_TEST

START_TEST(what_llc_writes_for_a_load_and_a_store_is_read)
{
    static const uint8_t bytes[] = {1, 0, 0, 0, 2, 0,    0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
                                    1, 0, 0, 0, 0, 0,    0, 0, 1, 0,    0, 0, 0, 0, 0, 0,
                                    3, 0, 0, 0, 8, 0x10, 0, 0, 0, 0,    0, 0, 1, 0, 0, 0,
                                    0, 0, 0, 0, 3, 0,    0, 0, 0, 0,    0, 0, 7, 0, 0, 0};
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    struct cairn_faultmap map;
    struct cairn_faultmap_function function = {0};
    size_t offset = 0;
    expect_equal(cairn_faultmap_read(&section, &offset, &map, NULL), CAIRN_OK);
    expect(cairn_faultmap_next(&map, &function));
    struct cairn_fault load = cairn_faultmap_fault(&map, &function, 0);
    ck_assert_str_eq(cairn_fault_kind_name(load.kind), "load");
    expect_equal(load.handler_offset, 3);
    expect(cairn_faultmap_next(&map, &function));
    expect_equal(function.address, 0x1008);
    struct cairn_fault store = cairn_faultmap_fault(&map, &function, 0);
    ck_assert_str_eq(cairn_fault_kind_name(store.kind), "store");
    expect_equal(store.handler_offset, 7);
    expect(!cairn_faultmap_next(&map, &function));
}
END_TEST

/* ---- Invalid maps ---- */

static const struct {
    uint8_t bytes[40];
    size_t size;
    enum cairn_status status;
    size_t offset;
    const char *sentence; /* a part of the message */
} refused[] = {
    {{2}, 8, CAIRN_ERROR_VERSION, 0, "version 2: Cairn reads version 1"},
    {{1}, 7, CAIRN_ERROR_TRUNCATED, 0, "7 bytes are left of 8"},
    {{1, 0, 0, 0, 1}, 23, CAIRN_ERROR_TRUNCATED, 8, "inside function 0 of the fault map's 1"},
    {{1, 0, 0, 0, 1, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4},
     36,
     CAIRN_ERROR_CORRUPT,
     24,
     "function 0 at 0x40, fault 0: unknown kind of fault 4"},
    {{0}, 0, CAIRN_ERROR_ARGUMENT, 0, "offset 0 is out of range: the section has 0 bytes"},
};

START_TEST(errors_are_explained_with_their_place)
{
    const struct cairn_section section = {refused[_i].bytes, refused[_i].size, CAIRN_LITTLE_ENDIAN};
    struct cairn_faultmap map;
    struct cairn_error error = {0};
    size_t offset = 0;
    expect_equal(cairn_faultmap_read(&section, &offset, &map, &error), refused[_i].status);
    expect_equal(error.offset, refused[_i].offset);
    if (strstr(error.message, refused[_i].sentence) == NULL)
        ck_abort_msg("no '%s' in '%s'", refused[_i].sentence, error.message);
    expect_equal(offset, 0);
}
END_TEST

START_TEST(kinds_have_names)
{
    ck_assert_str_eq(cairn_fault_kind_name(CAIRN_FAULT_LOAD_STORE), "load and store");
    ck_assert_str_eq(cairn_fault_kind_name((enum cairn_fault_kind)0), "unknown");
    ck_assert_str_eq(cairn_fault_kind_name((enum cairn_fault_kind)4), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault maps");
    TCase *tests = tcase_create("maps");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_maps_are_read_as_they_were_written);
    tcase_add_test(tests, a_map_cut_anywhere_is_truncated_there);
    tcase_add_test(tests, what_llc_writes_for_a_load_and_a_store_is_read);
    tcase_add_loop_test(tests, errors_are_explained_with_their_place, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, kinds_have_names);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
