/*
 * Tests of changes of many inline caches: lists of changes, and visits.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"
#include "tests/ic_fixture.h"

#include <stdio.h>
#include <string.h>

/* ---- Many caches ---- */

static cairn_ic *caches[4];

/* Creates four caches in two modules, two in each. */
static struct ic_program second_program;

static void load_two_modules(struct cairn_ic_options options)
{
    const struct ic_function functions[] = {get, get_by_c};
    load(functions, 2);
    ic_load(&second_program, runtime, functions, 2, 2 * IC_FIRST_SITE);
    for (int i = 0; i < 4; i++)
        caches[i] = create(i < 2 ? program.sites[i] : second_program.sites[i - 2], options);
    ic = caches[0];
}

static void unload_second(void) { ic_unload(&second_program); }

static cairn_module *module_of(const cairn_ic *cache)
{
    struct cairn_ic_description described;
    struct cairn_site_description description;
    cairn_ic_describe((cairn_ic *)(uintptr_t)cache, NULL, 0, &described);
    cairn_site_describe(described.site, &description);
    return record_module(description.record);
}

/* The result of cache `index` for an object of this shape; ANSWER on a miss. */
static uint64_t run_cache(int index, uint32_t shape)
{
    uint64_t result;
    struct object object = {.shape = shape};
    ic_set_pointer(&access_0, 0, &object);
    answer(ANSWER);
    (index < 2 ? program.functions[index] : second_program.functions[index - 2])(&access_0);
    memcpy(&result, access_0.result, sizeof result);
    return result;
}

START_TEST(a_modules_caches_are_reset_together)
{
    struct cairn_error error = {0};
    size_t count = 99;
    load_two_modules((struct cairn_ic_options){.case_limit = 2});
    add_constants(caches[0], 1);
    add_constants(caches[1], 3);
    add_constants(caches[2], 2);
    ck_assert_int_eq(cairn_ic_state(caches[1]), CAIRN_IC_MEGAMORPHIC);
    ic_assert_done(ic_reset_module(runtime, module_of(caches[0]), CAIRN_SYNC, &count, &error),
                   error);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(cairn_ic_state(caches[0]), CAIRN_IC_EMPTY);
    ck_assert_int_eq(cairn_ic_state(caches[1]), CAIRN_IC_EMPTY);
    ck_assert_int_eq(cairn_ic_state(caches[2]), CAIRN_IC_POLYMORPHIC);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    ck_assert_uint_eq(run_cache(2, 1), 101);
    ic_assert_done(ic_reset_module(runtime, module_of(caches[2]), CAIRN_SYNC, NULL, &error), error);
    ck_assert_uint_eq(run_cache(2, 1), ANSWER);
    ic_assert_done(ic_reset_module(runtime, module_of(caches[2]), CAIRN_SYNC, &count, &error),
                   error);
    ck_assert_uint_eq(count, 0);
    unload_second();
}
END_TEST

START_TEST(all_cases_of_a_key_are_removed_from_all_caches)
{
    struct cairn_error error = {0};
    size_t count = 99;
    struct cairn_ic_case masked = constant_case(2, 55);
    masked.guard.mask = 0xFF;
    load_two_modules(no_options);
    add_constants(caches[0], 3);
    add_constants(caches[1], 1);
    add_constants(caches[3], 2);
    add_to(caches[3], &masked);
    ic_assert_done(ic_remove_key(runtime, 2, CAIRN_SYNC, &count, &error), error);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(ic_case_count(caches[0]), 2);
    ck_assert_uint_eq(ic_case_count(caches[1]), 1);
    ck_assert_uint_eq(ic_case_count(caches[2]), 0);
    ck_assert_uint_eq(ic_case_count(caches[3]), 1);
    ck_assert_uint_eq(run_cache(0, 2), ANSWER);
    ck_assert_uint_eq(run_cache(0, 3), 103);
    ck_assert_uint_eq(run_cache(3, 2), ANSWER);
    ck_assert_uint_eq(run_cache(3, 1), 101);
    ic_assert_done(ic_remove_key(runtime, 2, CAIRN_SYNC, &count, &error), error);
    ck_assert_uint_eq(count, 0);
    ic_assert_done(ic_remove_key(runtime, 1, CAIRN_RELAXED, NULL, &error), error);
    ck_assert_uint_eq(run_cache(3, 1), ANSWER);
    unload_second();
}
END_TEST

/* Gives caches[0] two cases, of which one has shape 3 and one shape 9; caches[1] none; caches[2]
 * one of shape 9. */
enum { NOTED = 5 };

static void note_changes(struct cairn_ic_change changes[NOTED])
{
    struct cairn_ic_guard first = shape_guard(1);
    struct cairn_ic_guard second = shape_guard(2);
    struct cairn_ic_case ninth = constant_case(9, 109);
    changes[0] = ic_removing(caches[0], &first);
    changes[1] = ic_resetting(caches[1]);
    changes[2] = ic_adding(caches[2], &ninth);
    changes[3] = ic_removing(caches[0], &second);
    changes[4] = ic_adding(caches[0], &ninth);
}

static void expect_unchanged(void)
{
    ck_assert_uint_eq(ic_case_count(caches[0]), 3);
    ck_assert_uint_eq(ic_case_count(caches[1]), 1);
    ck_assert_uint_eq(ic_case_count(caches[2]), 0);
    for (uint32_t shape = 1; shape <= 3; shape++)
        ck_assert_uint_eq(run_cache(0, shape), 100 + shape);
    ck_assert_uint_eq(run_cache(1, 1), 101);
    ck_assert_uint_eq(run_cache(0, 9), ANSWER);
    ck_assert_uint_eq(run_cache(2, 9), ANSWER);
}

static void expect_changed(void)
{
    ck_assert_uint_eq(ic_case_count(caches[0]), 2);
    ck_assert_uint_eq(ic_case_count(caches[1]), 0);
    ck_assert_uint_eq(ic_case_count(caches[2]), 1);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(0, 2), ANSWER);
    ck_assert_uint_eq(run_cache(0, 3), 103);
    ck_assert_uint_eq(run_cache(0, 9), 109);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    ck_assert_uint_eq(run_cache(2, 9), 109);
}

static void load_for_list(void)
{
    load_two_modules(no_options);
    add_constants(caches[0], 3);
    add_constants(caches[1], 1);
}

START_TEST(a_list_of_changes_is_made_together)
{
    struct cairn_error error = {0};
    struct cairn_ic_change changes[NOTED];
    load_for_list();
    note_changes(changes);
    expect_unchanged();
    ic_assert_done(cairn_ics_change(changes, NOTED, CAIRN_SYNC, &error), error);
    expect_changed();
    ic_assert_done(cairn_ics_change(NULL, 0, CAIRN_SYNC, &error), error);
    expect_changed();
    unload_second();
}
END_TEST

START_TEST(a_list_that_cannot_be_made_changes_nothing)
{
    struct cairn_error error = {0};
    char site[32];
    struct cairn_ic_guard missing = shape_guard(77);
    struct cairn_ic_case late = constant_case(77, 1);
    struct cairn_ic_change changes[NOTED + 1];
    load_for_list();
    note_changes(changes);
    changes[NOTED] = ic_removing(caches[3], &missing);
    ck_assert_int_eq(cairn_ics_change(changes, NOTED + 1, CAIRN_SYNC, &error),
                     CAIRN_ERROR_NOT_FOUND);
    snprintf(site, sizeof site, "site %d", 2 * IC_FIRST_SITE + 1);
    ck_assert_msg(strstr(error.message, site) != NULL, "%s", error.message);
    expect_unchanged();
    changes[NOTED].kind = (enum cairn_ic_change_kind)4;
    ck_assert_int_eq(cairn_ics_change(changes, NOTED + 1, CAIRN_SYNC, &error),
                     CAIRN_ERROR_ARGUMENT);
    expect_unchanged();
    changes[NOTED].kind = CAIRN_IC_CHANGE_REMOVE;
    add_to(caches[3], &late);
    ic_assert_done(cairn_ics_change(changes, NOTED + 1, CAIRN_SYNC, &error), error);
    expect_changed();
    unload_second();
}
END_TEST

START_TEST(changes_of_one_cache_are_made_in_their_order)
{
    struct cairn_error error = {0};
    struct cairn_ic_guard first = shape_guard(1);
    struct cairn_ic_case again = constant_case(1, 201);
    load_for_list();
    const struct cairn_ic_change removing = ic_removing(caches[0], &first);
    const struct cairn_ic_change adding = ic_adding(caches[0], &again);
    /* The case can be removed twice because it is added in between. */
    const struct cairn_ic_change fourfold[] = {removing, adding, removing, adding};
    ic_assert_done(cairn_ics_change(fourfold, 4, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(ic_case_count(caches[0]), 3);
    ck_assert_uint_eq(run_cache(0, 1), 201);
    ck_assert_uint_eq(run_cache(0, 2), 102);
    const struct cairn_ic_change twice[] = {removing, removing};
    ck_assert_int_eq(cairn_ics_change(twice, 2, CAIRN_RELAXED, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(run_cache(0, 1), 201);
    const struct cairn_ic_change emptying[] = {adding, ic_resetting(caches[0])};
    ic_assert_done(cairn_ics_change(emptying, 2, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(ic_case_count(caches[0]), 0);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    unload_second();
}
END_TEST

START_TEST(a_list_exceeds_the_limit_as_adding_does)
{
    struct cairn_error error = {0};
    struct cairn_ic_change changes[3];
    load_two_modules((struct cairn_ic_options){.case_limit = 2});
    for (uint32_t i = 0; i < 3; i++) {
        struct cairn_ic_case added = constant_case(i + 1, i + 1);
        changes[i] = ic_adding(caches[0], &added);
    }
    ic_assert_done(cairn_ics_change(changes, 3, CAIRN_RELAXED, &error), error);
    ck_assert_int_eq(cairn_ic_state(caches[0]), CAIRN_IC_MEGAMORPHIC);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    unload_second();
}
END_TEST

START_TEST(a_list_has_caches_of_one_runtime_only)
{
    struct cairn_error error = {0};
    cairn_runtime *other;
    cairn_ic *foreign;
    struct ic_program foreign_program;
    const struct cairn_ic_options options = {.handler = missed};
    struct cairn_ic_case added = constant_case(1, 1);
    ck_assert_ok(cairn_runtime_create(NULL, &other, NULL));
    load_one(&get, no_options);
    ic_load(&foreign_program, other, &get, 1, IC_FIRST_SITE);
    ck_assert_ok(cairn_ic_create(foreign_program.sites[0], &options, &foreign, NULL));
    const struct cairn_ic_change changes[] = {ic_adding(ic, &added), ic_adding(foreign, &added)};
    ck_assert_int_eq(cairn_ics_change(changes, 2, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "runtime"));
    expect_state(CAIRN_IC_EMPTY, 0);
    ck_assert_int_eq(cairn_ic_state(foreign), CAIRN_IC_EMPTY);
    ic_unload(&foreign_program);
    cairn_runtime_destroy(other);
}
END_TEST

/* ---- Reports ---- */

struct visits {
    cairn_ic *seen[8];
    unsigned count;
    unsigned wanted;
};

static bool note_visit(const struct cairn_ic_description *description, void *user)
{
    struct visits *visits = user;
    ck_assert_uint_lt(visits->count, 8);
    visits->seen[visits->count++] = description->ic;
    return visits->count < visits->wanted;
}

START_TEST(caches_are_visited_oldest_first_until_the_visitor_stops)
{
    struct cairn_error error = {0};
    struct visits all = {.wanted = 8};
    struct visits two = {.wanted = 2};
    load_two_modules(no_options);
    cairn_runtime_visit_ics(runtime, note_visit, &all);
    ck_assert_uint_eq(all.count, 4);
    ck_assert_mem_eq(all.seen, caches, sizeof caches);
    cairn_runtime_visit_ics(runtime, note_visit, &two);
    ck_assert_uint_eq(two.count, 2);
    ic_assert_done(cairn_ic_destroy(caches[1], CAIRN_RELAXED, &error), error);
    all.count = 0;
    cairn_runtime_visit_ics(runtime, note_visit, &all);
    ck_assert_uint_eq(all.count, 3);
    ck_assert_ptr_eq(all.seen[1], caches[2]);
    unload_second();
}
END_TEST

/* ---- Errors of memory allocation ---- */

static enum cairn_status change_by_list(struct cairn_error *error)
{
    struct cairn_ic_change changes[NOTED];
    note_changes(changes);
    return cairn_ics_change(changes, NOTED, CAIRN_RELAXED, error);
}

START_TEST(a_list_fails_with_each_allocation)
{
    load_for_list();
    fail_each_allocation(change_by_list, expect_unchanged);
    expect_changed();
    unload_second();
}
END_TEST

static enum cairn_status change_by_key(struct cairn_error *error)
{
    return ic_remove_key(runtime, 1, CAIRN_RELAXED, NULL, error);
}

START_TEST(removing_a_key_fails_with_each_allocation)
{
    load_for_list();
    fail_each_allocation(change_by_key, expect_unchanged);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    unload_second();
}
END_TEST

static enum cairn_status change_by_reset(struct cairn_error *error)
{
    return ic_reset_module(runtime, module_of(caches[0]), CAIRN_RELAXED, NULL, error);
}

START_TEST(resetting_a_modules_caches_fails_with_each_allocation)
{
    load_for_list();
    fail_each_allocation(change_by_reset, expect_unchanged);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    unload_second();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lists of changes of inline caches");
    TCase *tests = tcase_create("lists");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_modules_caches_are_reset_together);
    tcase_add_test(tests, all_cases_of_a_key_are_removed_from_all_caches);
    tcase_add_test(tests, a_list_of_changes_is_made_together);
    tcase_add_test(tests, a_list_that_cannot_be_made_changes_nothing);
    tcase_add_test(tests, changes_of_one_cache_are_made_in_their_order);
    tcase_add_test(tests, a_list_exceeds_the_limit_as_adding_does);
    tcase_add_test(tests, a_list_has_caches_of_one_runtime_only);
    tcase_add_test(tests, caches_are_visited_oldest_first_until_the_visitor_stops);
    tcase_add_test(tests, a_list_fails_with_each_allocation);
    tcase_add_test(tests, removing_a_key_fails_with_each_allocation);
    tcase_add_test(tests, resetting_a_modules_caches_fails_with_each_allocation);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
