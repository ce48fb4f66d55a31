/*
 * Tests of fault map tables: random maps are compared with the written values; every allocation is
 * made to fail; maps are truncated.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/fault_table.h"
#include "runtime_support.h"
#include "stackmap_support.h"

#include <cairn/fault_table.h>

enum { SECTIONS_MAX = 3, MAPS_MAX = 3, FUNCTIONS_MAX = 4, FAULTS_MAX = 6, ROUNDS = 500 };
enum { ENTRIES_MAX = SECTIONS_MAX * MAPS_MAX * FUNCTIONS_MAX * FAULTS_MAX };

#define CODE UINT64_C(0x7F0000100000)

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Writing ---- */

static struct {
    struct sample_section bytes[SECTIONS_MAX];
    struct cairn_section sections[SECTIONS_MAX];
    uint32_t section_count;
    struct cairn_fault_entry entries[ENTRIES_MAX];
    uint32_t entry_count;
} written;

static void put_function(struct sample_section *bytes)
{
    uint64_t function = CODE + below(1 << 20);
    uint32_t faults = below(FAULTS_MAX + 1);
    section_put(bytes, function, 8);
    section_put(bytes, faults, 4);
    section_put(bytes, 0, 4);
    for (uint32_t i = 0; i < faults; i++) {
        uint32_t offset = below(1 << 10);
        uint32_t handler = below(1 << 10);
        enum cairn_fault_kind kind = (enum cairn_fault_kind)(1 + below(3));
        section_put(bytes, kind, 4);
        section_put(bytes, offset, 4);
        section_put(bytes, handler, 4);
        written.entries[written.entry_count++] =
            (struct cairn_fault_entry){function + offset, function + handler, function, kind};
    }
}

static void put_map(struct sample_section *bytes)
{
    uint32_t functions = below(FUNCTIONS_MAX + 1);
    section_put(bytes, 1, 1);
    section_put(bytes, 0, 3);
    section_put(bytes, functions, 4);
    for (uint32_t i = 0; i < functions; i++)
        put_function(bytes);
}

static void put_all(void)
{
    written.section_count = below(SECTIONS_MAX + 1);
    written.entry_count = 0;
    for (uint32_t i = 0; i < written.section_count; i++) {
        written.bytes[i] = (struct sample_section){
            .byte_order = below(2) == 0 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN};
        for (uint32_t maps = below(MAPS_MAX + 1); maps > 0; maps--)
            put_map(&written.bytes[i]);
        written.sections[i] = section_view(&written.bytes[i]);
    }
}

static void forget_all(void)
{
    for (uint32_t i = 0; i < written.section_count; i++)
        section_free(&written.bytes[i]);
}

/* ---- Comparing ---- */

static const struct cairn_fault_entry *search(uint64_t pc)
{
    for (uint32_t i = 0; i < written.entry_count; i++)
        if (written.entries[i].address == pc)
            return &written.entries[i];
    return NULL;
}

static void ask(const cairn_fault_table *table, uint64_t pc)
{
    struct cairn_fault_entry found = {.address = 0};
    const struct cairn_fault_entry *expected = search(pc);
    expect(cairn_fault_table_find(table, pc, &found) == (expected != NULL));
    if (expected == NULL) {
        expect(found.address == 0);
        return;
    }
    expect(found.address == expected->address);
    expect(found.handler_address == expected->handler_address);
    expect(found.function_address == expected->function_address);
    expect(found.kind == expected->kind);
}

START_TEST(random_faults_are_found_by_pc)
{
    random_state = sample_seed();
    for (int round = 0; round < ROUNDS; round++) {
        struct counting_allocator allocator = {.fail_at = 0};
        struct cairn_allocator hooks = counting(&allocator);
        cairn_fault_table *table = NULL;
        put_all();
        ck_assert_ok(cairn_fault_table_create(written.sections, written.section_count, &hooks,
                                              &table, NULL));
        ck_assert_uint_eq(allocator.blocks, 1);
        ck_assert_uint_eq(allocator.bytes, fault_table_size_bytes(table));
        ck_assert_uint_eq(support_fault_count(table), written.entry_count);
        uint64_t last = 0;
        for (uint32_t i = 0; i < written.entry_count; i++) {
            ask(table, written.entries[i].address);
            ask(table, written.entries[i].address + 1);
            ask(table, written.entries[i].address - 1);
            uint64_t address = support_fault_entry(table, i).address;
            expect(address >= last);
            last = address;
        }
        ask(table, 0);
        ask(table, UINT64_MAX);
        cairn_fault_table_destroy(table);
        ck_assert_uint_eq(allocator.blocks, 0);
        forget_all();
    }
}
END_TEST

START_TEST(each_failed_allocation_is_reported)
{
    random_state = sample_seed();
    for (int round = 0; round < 20; round++) {
        enum cairn_status status = CAIRN_ERROR_MEMORY;
        put_all();
        for (size_t fail_at = 1; status != CAIRN_OK; fail_at++) {
            struct counting_allocator allocator = {.fail_at = fail_at};
            struct cairn_allocator hooks = counting(&allocator);
            cairn_fault_table *table = NULL;
            status = cairn_fault_table_create(written.sections, written.section_count, &hooks,
                                              &table, NULL);
            ck_assert(status == CAIRN_OK || (status == CAIRN_ERROR_MEMORY && table == NULL));
            cairn_fault_table_destroy(table);
            ck_assert_uint_eq(allocator.blocks, 0);
        }
        forget_all();
    }
}
END_TEST

static void put_far(struct sample_section *bytes, uint64_t second)
{
    section_put(bytes, 1, 4);
    section_put(bytes, 2, 4);
    const uint64_t functions[] = {CODE, second};
    for (size_t i = 0; i < 2; i++) {
        section_put(bytes, functions[i], 8);
        section_put(bytes, 1, 8);
        section_put(bytes, CAIRN_FAULT_LOAD, 4);
        section_put(bytes, 0, 8);
    }
}

START_TEST(faults_may_be_almost_four_gigabytes_apart)
{
    for (uint64_t too_far = 0; too_far < 2; too_far++) {
        struct sample_section bytes = {.byte_order = CAIRN_LITTLE_ENDIAN};
        cairn_fault_table *table = NULL;
        put_far(&bytes, CODE + UINT32_MAX - 1 + too_far);
        struct cairn_section section = section_view(&bytes);
        ck_assert_int_eq(cairn_fault_table_create(&section, 1, NULL, &table, NULL),
                         too_far ? CAIRN_ERROR_RANGE : CAIRN_OK);
        struct cairn_fault_entry entry;
        ck_assert_int_eq(cairn_fault_table_find(table, CODE + UINT32_MAX - 1, &entry), !too_far);
        cairn_fault_table_destroy(table);
        section_free(&bytes);
    }
}
END_TEST

START_TEST(maps_that_are_cut_are_refused)
{
    struct sample_section bytes = {.byte_order = CAIRN_LITTLE_ENDIAN};
    put_far(&bytes, CODE + 8);
    for (size_t size = 1; size < bytes.size; size++) {
        struct cairn_section section = section_view(&bytes);
        cairn_fault_table *table = NULL;
        section.size = size;
        ck_assert_int_eq(cairn_fault_table_create(&section, 1, NULL, &table, NULL),
                         CAIRN_ERROR_TRUNCATED);
        ck_assert_ptr_null(table);
    }
    section_free(&bytes);
}
END_TEST

START_TEST(no_table_is_an_empty_one)
{
    struct cairn_fault_entry entry;
    cairn_fault_table *table = NULL;
    ck_assert_uint_eq(fault_table_size_bytes(NULL), 0);
    ck_assert_uint_eq(support_fault_count(NULL), 0);
    ck_assert(!cairn_fault_table_entry(NULL, 0, &entry));
    ck_assert(!cairn_fault_table_find(NULL, CODE, &entry));
    cairn_fault_table_destroy(NULL);
    ck_assert_int_eq(cairn_fault_table_create(NULL, 1, NULL, &table, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_fault_table_create(NULL, 0, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_table");
    TCase *tests = tcase_create("fault_table");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_faults_are_found_by_pc);
    tcase_add_test(tests, each_failed_allocation_is_reported);
    tcase_add_test(tests, faults_may_be_almost_four_gigabytes_apart);
    tcase_add_test(tests, maps_that_are_cut_are_refused);
    tcase_add_test(tests, no_table_is_an_empty_one);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
