/*
 * Tests of sets of declarations: lookups by ID, the order of adding, one shape per ID.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "record/declarations.h"
#include "section_writer.h"
#include "stackmap_support.h"

#include <string.h>

static cairn_declarations *set;

static void set_up(void) { ck_assert_ok(cairn_declarations_create(NULL, &set, NULL)); }

static void tear_down(void) { cairn_declarations_destroy(set); }

static const struct cairn_type types[] = {
    {.kind = CAIRN_TYPE_INTEGER, .bits = 32},
    {.kind = CAIRN_TYPE_DOUBLE, .bits = 64},
};

/* A location of the live value. */
static const struct cairn_location live_value = {.kind = CAIRN_LOCATION_CONSTANT, .size = 8};

static struct cairn_declaration declaration_of(uint64_t id)
{
    return (struct cairn_declaration){
        .id = id,
        .kind = CAIRN_RECORD_PATCHPOINT,
        .byte_count = 16,
        .types = types,
        .argument_count = 1,
        .live_value_count = 1,
        .function = "first",
    };
}

static void add(uint64_t id)
{
    struct cairn_declaration declaration = declaration_of(id);
    ck_assert_ok(cairn_declarations_add(set, &declaration, NULL));
}

START_TEST(declarations_are_found_and_keep_their_order)
{
    uint64_t random = sample_seed();
    enum { COUNT = 1000 };
    uint64_t ids[COUNT];
    for (int i = 0; i < COUNT; i++)
        add(ids[i] = sample_random_id(&random));
    ck_assert_uint_eq(cairn_declarations_count(set), COUNT);
    for (int i = 0; i < COUNT; i++) {
        const struct cairn_declaration *found = cairn_declarations_find(set, ids[i]);
        expect(found != NULL && found->id == ids[i]);
        expect(found == cairn_declarations_at(set, (size_t)i));
        expect(cairn_declarations_find(set, ids[i] + 1) == NULL);
    }
    ck_assert_ptr_null(cairn_declarations_at(set, COUNT));
}
END_TEST

START_TEST(declarations_are_copies)
{
    char name[] = "function";
    struct cairn_type type = {.kind = CAIRN_TYPE_FLOAT, .bits = 32};
    const struct cairn_declaration declaration = {.id = 5,
                                                  .kind = CAIRN_RECORD_STACKMAP,
                                                  .types = &type,
                                                  .live_value_count = 1,
                                                  .function = name};
    ck_assert_ok(cairn_declarations_add(set, &declaration, NULL));
    memset(name, 'x', sizeof name - 1);
    type.kind = CAIRN_TYPE_VOID;
    const struct cairn_declaration *found = cairn_declarations_find(set, 5);
    ck_assert_str_eq(found->function, "function");
    ck_assert_int_eq(found->types[0].kind, CAIRN_TYPE_FLOAT);
}
END_TEST

START_TEST(results_of_functions_that_differ_are_not_known)
{
    struct cairn_declaration first = declaration_of(5);
    first.function_results = (struct cairn_results){
        .is_known = true,
        .count = 1,
        .types = {{.kind = CAIRN_TYPE_DOUBLE, .bits = 64}},
    };
    struct cairn_declaration second = first;
    second.function = "second";
    ck_assert_ok(cairn_declarations_add(set, &first, NULL));
    ck_assert_ok(cairn_declarations_add(set, &second, NULL));
    const struct cairn_results *results = &cairn_declarations_find(set, 5)->function_results;
    ck_assert(results->is_known);
    ck_assert_uint_eq(results->count, 1);
    ck_assert_int_eq(results->types[0].kind, CAIRN_TYPE_DOUBLE);
    second.function_results.extends_sign = true;
    ck_assert_ok(cairn_declarations_add(set, &second, NULL));
    ck_assert(!results->is_known);
}
END_TEST

START_TEST(truncating_takes_the_last_ones_back)
{
    uint64_t random = sample_seed();
    enum { COUNT = 300, KEPT = 100 };
    uint64_t ids[COUNT];
    for (int i = 0; i < COUNT; i++)
        add(ids[i] = sample_random_id(&random));
    cairn_declarations_truncate(set, COUNT + 1);
    ck_assert_uint_eq(cairn_declarations_count(set), COUNT);
    cairn_declarations_truncate(set, KEPT);
    ck_assert_uint_eq(cairn_declarations_count(set), KEPT);
    for (int i = 0; i < COUNT; i++)
        expect((cairn_declarations_find(set, ids[i]) != NULL) == (i < KEPT));
    for (int i = KEPT; i < COUNT; i++)
        add(ids[i]);
    for (int i = 0; i < COUNT; i++)
        expect(cairn_declarations_at(set, (size_t)i)->id == ids[i]);
    cairn_declarations_truncate(set, 0);
    ck_assert_ptr_null(cairn_declarations_find(set, ids[0]));
}
END_TEST

START_TEST(the_same_shape_again_changes_nothing)
{
    add(7);
    struct cairn_declaration again = declaration_of(7);
    again.function = "second";
    ck_assert_ok(cairn_declarations_add(set, &again, NULL));
    ck_assert_uint_eq(cairn_declarations_count(set), 1);
    ck_assert_str_eq(cairn_declarations_find(set, 7)->function, "first");
}
END_TEST

static const struct cairn_type other_types[] = {
    {.kind = CAIRN_TYPE_INTEGER, .bits = 64},
    {.kind = CAIRN_TYPE_DOUBLE, .bits = 64},
};

START_TEST(another_shape_is_a_conflict_that_names_both_functions)
{
    struct cairn_declaration others[7];
    for (size_t i = 0; i < 7; i++) {
        others[i] = declaration_of(7);
        others[i].function = "second";
    }
    others[0].kind = CAIRN_RECORD_STATEPOINT;
    others[1].byte_count = 32;
    others[2].calling_convention = CAIRN_CALLING_CONVENTION_ANYREG;
    others[3].has_target = true;
    others[4].argument_count = 0;
    others[5].types = other_types;
    others[6].result = types[0];
    struct cairn_error error = {0};
    add(7);
    ck_assert_int_eq(cairn_declarations_add(set, &others[_i], &error), CAIRN_ERROR_CONFLICT);
    ck_assert_uint_eq(error.offset, 7);
    ck_assert_ptr_nonnull(strstr(error.message, "'first'"));
    ck_assert_ptr_nonnull(strstr(error.message, "'second'"));
    ck_assert_uint_eq(cairn_declarations_find(set, 7)->byte_count, 16);
}
END_TEST

/* The result must not depend on the declarations added before and after. */
START_TEST(an_undeclared_id_has_no_declaration)
{
    const struct cairn_declaration undeclared = {.id = 2, .kind = CAIRN_RECORD_UNDECLARED};
    bool comes_first = _i == 0;
    struct cairn_declaration other = declaration_of(2);
    add(1);
    if (!comes_first)
        add(2);
    ck_assert_ok(cairn_declarations_add(set, &undeclared, NULL));
    ck_assert_ptr_null(cairn_declarations_find(set, 2));
    add(2);
    other.byte_count++; /* no conflict, because the ID is undeclared */
    ck_assert_ok(cairn_declarations_add(set, &other, NULL));
    ck_assert_ok(cairn_declarations_add(set, &undeclared, NULL));
    ck_assert_ptr_null(cairn_declarations_find(set, 2));
    ck_assert_uint_eq(cairn_declarations_count(set), 2);
    ck_assert_int_eq(cairn_declarations_at(set, 1)->kind, CAIRN_RECORD_UNDECLARED);
    ck_assert_ptr_nonnull(cairn_declarations_find(set, 1));
    cairn_declarations_truncate(set, 1);
    add(2);
    ck_assert_ptr_nonnull(cairn_declarations_find(set, 2));
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    bool failed = true;
    for (size_t fail_at = 1; failed; fail_at++) {
        struct counting_allocator allocator = {.fail_at = fail_at};
        const struct cairn_allocator hooks = counting(&allocator);
        cairn_declarations *refused = NULL;
        enum cairn_status status = cairn_declarations_create(&hooks, &refused, NULL);
        for (uint64_t id = 0; id < 40 && status == CAIRN_OK; id++) {
            struct cairn_declaration declaration = declaration_of(id);
            status = cairn_declarations_add(refused, &declaration, NULL);
            if (status != CAIRN_OK)
                ck_assert_uint_eq(cairn_declarations_count(refused), id);
        }
        failed = status != CAIRN_OK;
        if (failed)
            ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        cairn_declarations_destroy(refused);
        ck_assert_uint_eq(allocator.blocks, 0);
    }
}
END_TEST

START_TEST(a_record_with_another_number_of_locations_is_refused)
{
    struct section_writer writer;
    struct cairn_error error;
    cairn_table *table;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, 1);
    writer_function(&writer, 4096, 8, 1);
    writer_record(&writer, 7, 16, NULL, 0, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    ck_assert_ok(cairn_table_create(&section, 1, NULL, &table, NULL));
    add(7);
    ck_assert_int_eq(declarations_bind(set, table, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, 4096 + 16);
    ck_assert_ptr_nonnull(
        strstr(error.message, "record 7 at 0x1010 has 0 locations and its declaration needs 1"));
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

/* Records in, before, after and outside the order of the declarations, several with one ID. */
START_TEST(records_find_their_declarations_by_number)
{
    enum { DECLARATIONS = 40, RECORDS = 400, STEP = 8 };
    uint64_t random = sample_seed();
    struct section_writer writer;
    uint64_t ids[RECORDS];
    const struct cairn_declaration *expected[RECORDS];
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, RECORDS);
    writer_function(&writer, 4096, 8, RECORDS);
    uint64_t last = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint64_t choices[] = {last + 1, last, sample_random_id(&random) % (2 * DECLARATIONS)};
        last = choices[sample_random_id(&random) % 3];
        ids[i] = last;
        writer_record(&writer, ids[i], STEP * i, &live_value, 1, NULL, 0);
    }
    for (uint64_t id = 0; id < DECLARATIONS; id++)
        add(id % 2 == 0 ? id : DECLARATIONS - id);
    const struct cairn_declaration undeclared = {.id = 6};
    ck_assert_ok(cairn_declarations_add(set, &undeclared, NULL));
    const struct cairn_section section = writer_section(&writer);
    cairn_table *table;
    ck_assert_ok(cairn_table_create(&section, 1, NULL, &table, NULL));
    ck_assert_ptr_null(declarations_of_record(set, 0));
    for (uint32_t i = 0; i < RECORDS; i++)
        expected[i] = cairn_declarations_find(set, ids[i]);
    ck_assert_ok(declarations_bind(set, table, NULL));
    ck_assert_uint_eq(declarations_bound_bytes(set), RECORDS * sizeof(uint32_t));
    for (uint32_t i = 0; i < RECORDS; i++) {
        const struct declaration_entry *entry = declarations_of_record(set, i);
        expect((entry == NULL ? NULL : entry->declaration) == expected[i]);
        expect(entry == NULL || entry->has_site);
    }
    cairn_table_destroy(table);
    writer_end(&writer);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    struct cairn_declaration declaration = declaration_of(1);
    ck_assert_int_eq(cairn_declarations_create(NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_declarations_add(NULL, &declaration, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_declarations_add(set, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    declaration.types = NULL;
    ck_assert_int_eq(cairn_declarations_add(set, &declaration, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_uint_eq(cairn_declarations_count(set), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("declarations");
    TCase *tests = tcase_create("set");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, declarations_are_found_and_keep_their_order);
    tcase_add_test(tests, declarations_are_copies);
    tcase_add_test(tests, results_of_functions_that_differ_are_not_known);
    tcase_add_test(tests, truncating_takes_the_last_ones_back);
    tcase_add_test(tests, the_same_shape_again_changes_nothing);
    tcase_add_loop_test(tests, another_shape_is_a_conflict_that_names_both_functions, 0, 7);
    tcase_add_loop_test(tests, an_undeclared_id_has_no_declaration, 0, 2);
    tcase_add_test(tests, each_allocation_may_fail);
    tcase_add_test(tests, a_record_with_another_number_of_locations_is_refused);
    tcase_add_test(tests, records_find_their_declarations_by_number);
    tcase_add_test(tests, bad_arguments_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
