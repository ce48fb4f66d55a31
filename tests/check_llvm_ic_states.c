/*
 * Tests of the states of inline caches, of the order of their cases, and of their counters.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <string.h>

/* ---- Many cases ---- */

static uint64_t expected_of(uint32_t shape) { return 10 + shape % 6; }

/* Keys that are close to each other, and keys that are far apart. */
static uint32_t spread(uint32_t number, bool is_spread)
{
    return is_spread ? (number + 1) * 0x9E3779B1u : 100 + number;
}

static struct cairn_ic_options options_number(int number)
{
    return (struct cairn_ic_options){
        .case_limit = CAIRN_IC_CASE_LIMIT_MAX,
        .counts_hits = number != 0,
    };
}

enum { OPTIONS = 2 };

static void check_all(uint32_t count, bool is_spread)
{
    for (uint32_t i = 0; i < CAIRN_IC_CASE_LIMIT_MAX + 2; i++) {
        if (i < count)
            expect_hit(spread(i, is_spread), expected_of(i));
        else
            expect_miss(spread(i, is_spread));
    }
    expect_miss(0);
    expect_miss(UINT32_MAX);
}

static void add_and_remove(bool is_spread)
{
    struct cairn_error error = {0};
    for (uint32_t i = 0; i < CAIRN_IC_CASE_LIMIT_MAX; i++) {
        struct cairn_ic_case added = load_case(spread(i, is_spread), i % 6);
        add(&added);
        check_all(i + 1, is_spread);
    }
    cairn_runtime_quiesce(runtime);
    for (uint32_t i = CAIRN_IC_CASE_LIMIT_MAX; i-- > 0;) {
        struct cairn_ic_guard guard = shape_guard(spread(i, is_spread));
        ic_assert_done(ic_remove(ic, &guard, CAIRN_RELAXED, &error), error);
        check_all(i, is_spread);
    }
    cairn_runtime_quiesce(runtime);
}

START_TEST(each_of_many_cases_hits_and_everything_else_misses)
{
    load_one(getters[_i / OPTIONS], options_number(_i % OPTIONS));
    add_and_remove(false);
    add_and_remove(true);
}
END_TEST

/* Cases of all kinds in one cache, so that none of the branchless methods of selecting a case is
 * applicable. */
START_TEST(cases_with_different_guards_and_actions_are_tried_in_order)
{
    struct object object = {.shape = 7, .flags = 0x80000001, .fields = {41, 42}};
    const struct cairn_ic_case narrow = {
        .guard = {.offset = 4, .width = 1, .mask = 1, .key = 1},
        .action = CAIRN_IC_CONSTANT,
        .constant = 1,
    };
    load_one(&get, options_number(_i));
    add_constant(6, 6);
    struct cairn_ic_case added = load_case(7, 1);
    add(&added);
    add(&narrow);
    ck_assert_uint_eq(run_function(0, &object), 42);
    object.shape = 8;
    ck_assert_uint_eq(run_function(0, &object), 1);
    object.shape = 6;
    ck_assert_uint_eq(run_function(0, &object), 6);
    object.shape = 8;
    object.flags = 0x80000000;
    answer(ANSWER);
    ck_assert_uint_eq(run_function(0, &object), ANSWER);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

/* The receiver is an integer that holds an address. It is not the first operand, and guards read
 * other operands, too. */
START_TEST(guards_look_at_the_operand_that_they_name)
{
    struct object first = {.shape = 1};
    struct object second = {.shape = 2};
    const struct ic_function function = {
        .calling_convention = conventions[_i],
        .result = INTEGER(64),
        .operand_count = 4,
        .operands = {DOUBLE, POINTER, INTEGER(32), INTEGER(64)},
    };
    struct cairn_ic_case of_first = constant_case(1, 11);
    struct cairn_ic_case of_second = constant_case(2, 22);
    load_one(&function, no_options);
    of_first.guard.operand = 1;
    of_second.guard.operand = 3;
    add(&of_first);
    add(&of_second);
    answer(ANSWER);
    ic_set_pointer(&access_0, 1, &first);
    ic_set_pointer(&access_0, 3, &first);
    program.functions[0](&access_0);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 11);
    ic_set_pointer(&access_0, 1, &second);
    program.functions[0](&access_0);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), ANSWER);
    ic_set_pointer(&access_0, 3, &second);
    program.functions[0](&access_0);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 22);
}
END_TEST

/* ---- States ---- */

static void go_through_states(void)
{
    expect_state(CAIRN_IC_EMPTY, 0);
    expect_miss(1);
    add_constant(1, 101);
    expect_state(CAIRN_IC_MONOMORPHIC, 1);
    expect_hit(1, 101);
    expect_miss(2);
    add_constant(2, 102);
    expect_state(CAIRN_IC_POLYMORPHIC, 2);
    add_constant(3, 103);
    expect_state(CAIRN_IC_POLYMORPHIC, 3);
    for (uint32_t shape = 1; shape <= 3; shape++)
        expect_hit(shape, 100 + shape);
    ck_assert_uint_eq(seen.megamorphic_misses, 0);
    add_constant(4, 104);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
}

START_TEST(a_cache_becomes_megamorphic_at_its_limit_until_it_is_reset)
{
    load_one(getters[_i], (struct cairn_ic_options){.case_limit = 3,
                                                    .megamorphic_handler = missed_as_megamorphic});
    for (int i = 0; i < 3; i++) {
        memset(&seen, 0, sizeof seen);
        go_through_states();
        for (uint32_t shape = 1; shape <= 5; shape++)
            expect_miss(shape);
        ck_assert_uint_eq(seen.megamorphic_misses, 5);
        add_constant(1, 101);
        expect_state(CAIRN_IC_MEGAMORPHIC, 0);
        expect_miss(1);
        reset();
    }
    expect_state(CAIRN_IC_EMPTY, 0);
}
END_TEST

static void expect_seen(uint32_t place, uint64_t constant, uint64_t hits, uint64_t additions)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_lt(place, description.seen_count);
    ck_assert_uint_eq(description.seen[place].entry.constant, constant);
    ck_assert_uint_eq(description.seen[place].hits, hits);
    ck_assert_uint_eq(description.seen[place].additions, additions);
}

static void expect_seen_count(uint32_t count, uint64_t others)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen_count, count);
    ck_assert_uint_eq(description.other_additions, others);
}

START_TEST(a_megamorphic_cache_reports_what_it_has_seen)
{
    load_one(&get, (struct cairn_ic_options){.case_limit = 2, .counts_hits = true});
    answer(ANSWER);
    for (int i = 0; i < 2; i++) {
        add_constants(ic, 2);
        run_often(1, 4);
        run_often(2, 7);
        expect_seen_count(2, 0);
        expect_seen(1, 102, 7, 0);
        add_constant(3, 103);
        add_constant(2, 102);
        add_constant(3, 203); /* the guard is that of a case that it has */
        expect_state(CAIRN_IC_MEGAMORPHIC, 0);
        expect_seen_count(3, 0);
        expect_seen(0, 101, 4, 0);
        expect_seen(1, 102, 7, 1);
        expect_seen(2, 203, 0, 2);
        for (uint32_t shape = 4; shape < CAIRN_IC_CASE_LIMIT_MAX + 4; shape++)
            add_constant(shape, 100 + shape);
        expect_seen_count(CAIRN_IC_CASE_LIMIT_MAX, 3);
        expect_seen(CAIRN_IC_CASE_LIMIT_MAX - 1, 100 + CAIRN_IC_CASE_LIMIT_MAX, 0, 1);
        cairn_runtime_quiesce(runtime); /* which may make the code again */
        expect_seen_count(CAIRN_IC_CASE_LIMIT_MAX, 3);
        reset();
        expect_seen_count(0, 0);
    }
}
END_TEST

START_TEST(a_list_that_fails_leaves_what_was_seen)
{
    const struct cairn_ic_case good[] = {constant_case(5, 1), constant_case(6, 2)};
    struct cairn_ic_case bad = constant_case(7, 3);
    load_one(&get, (struct cairn_ic_options){.case_limit = 1});
    add_constants(ic, 2);
    bad.guard.width = 3;
    const struct cairn_ic_change changes[] = {ic_resetting(ic), ic_adding(ic, &good[0]),
                                              ic_adding(ic, &good[1]), ic_adding(ic, &bad)};
    ck_assert_int_eq(cairn_ics_change(changes, 4, CAIRN_RELAXED, NULL), CAIRN_ERROR_ARGUMENT);
    expect_seen_count(2, 0);
    expect_seen(0, 101, 0, 0);
    expect_seen(1, 102, 0, 1);
    ck_assert_ok(cairn_ics_change(changes, 3, CAIRN_RELAXED, NULL));
    expect_seen_count(2, 0);
    expect_seen(0, 1, 0, 0);
    expect_seen(1, 2, 0, 1);
}
END_TEST

static enum cairn_status add_one_more(struct cairn_error *error)
{
    const struct cairn_ic_case added = constant_case(2, 102);
    return cairn_ic_add(ic, &added, CAIRN_RELAXED, error);
}

static void expect_one_case(void) { expect_state(CAIRN_IC_MONOMORPHIC, 1); }

START_TEST(becoming_megamorphic_fails_with_each_allocation)
{
    load_one(&get, (struct cairn_ic_options){.case_limit = 1});
    add_constant(1, 101);
    fail_each_allocation(add_one_more, expect_one_case);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
}
END_TEST

START_TEST(without_a_megamorphic_handler_the_handler_is_called)
{
    load_one(&get, (struct cairn_ic_options){.case_limit = 1});
    add_constant(1, 101);
    add_constant(2, 102);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    expect_miss(1);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

START_TEST(the_usual_limit_is_the_one_in_the_header)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    load_one(&get, no_options);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.case_limit, CAIRN_IC_CASE_LIMIT_DEFAULT);
    for (uint32_t i = 0; i < CAIRN_IC_CASE_LIMIT_DEFAULT; i++)
        add_constant(i, i);
    expect_state(CAIRN_IC_POLYMORPHIC, CAIRN_IC_CASE_LIMIT_DEFAULT);
    add_constant(CAIRN_IC_CASE_LIMIT_DEFAULT, 1);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
}
END_TEST

START_TEST(a_case_with_the_same_guard_replaces_the_other)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    load_one(&get, (struct cairn_ic_options){.case_limit = 2});
    add_constant(1, 101);
    add_constant(2, 102);
    struct cairn_ic_case replacing = load_case(1, 3);
    replacing.guard.mask = UINT32_MAX; /* the meaning of 0 */
    add(&replacing);
    expect_state(CAIRN_IC_POLYMORPHIC, 2);
    expect_hit(1, 13);
    expect_hit(2, 102);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen[0].entry.guard.key, 1);
    ck_assert_int_eq(description.seen[0].entry.action, CAIRN_IC_LOAD);
    ck_assert_uint_eq(description.seen[1].entry.guard.key, 2);
}
END_TEST

START_TEST(guards_that_differ_in_anything_are_of_different_cases)
{
    const struct cairn_ic_guard guards[] = {
        {.offset = 0, .width = 4, .key = 5},
        {.offset = 1, .width = 4, .key = 5},
        {.offset = 0, .width = 2, .key = 5},
        {.offset = 0, .width = 4, .key = 6},
        {.offset = 0, .width = 4, .mask = 0xFF, .key = 5},
        {.operand = 1, .offset = 0, .width = 4, .key = 5},
    };
    enum { GUARDS = sizeof guards / sizeof *guards };
    load_one(&get, (struct cairn_ic_options){.case_limit = GUARDS});
    for (uint32_t i = 0; i < GUARDS; i++) {
        const struct cairn_ic_case added = {.guard = guards[i], .action = CAIRN_IC_CONSTANT};
        add(&added);
        ck_assert_uint_eq(ic_case_count(ic), i + 1);
    }
}
END_TEST

START_TEST(a_case_is_removed_and_the_others_stay_in_order)
{
    struct cairn_error error = {0};
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    struct cairn_ic_guard second = shape_guard(2);
    load_one(&get, no_options);
    for (uint32_t shape = 1; shape <= 4; shape++)
        add_constant(shape, 100 + shape);
    ic_assert_done(ic_remove(ic, &second, CAIRN_RELAXED, &error), error);
    expect_state(CAIRN_IC_POLYMORPHIC, 3);
    expect_hit(1, 101);
    expect_miss(2);
    expect_hit(3, 103);
    expect_hit(4, 104);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen[0].entry.guard.key, 1);
    ck_assert_uint_eq(description.seen[1].entry.guard.key, 3);
    ck_assert_uint_eq(description.seen[2].entry.guard.key, 4);
}
END_TEST

START_TEST(names_of_states_and_actions)
{
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_EMPTY), "empty");
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_MONOMORPHIC), "monomorphic");
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_POLYMORPHIC), "polymorphic");
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_MEGAMORPHIC), "megamorphic");
    ck_assert_ptr_nonnull(cairn_ic_state_name((enum cairn_ic_state)99));
}
END_TEST

/* ---- Counts ---- */

START_TEST(a_description_has_no_more_cases_than_the_caller_has_space_for)
{
    struct cairn_ic_seen cases[2] = {{.hits = 7}, {.hits = 7}};
    struct cairn_ic_description description;
    load_one(&get, no_options);
    for (uint32_t shape = 1; shape <= 3; shape++)
        add_constant(shape, shape);
    cairn_ic_describe(ic, cases, 1, &description);
    ck_assert_uint_eq(description.case_count, 3);
    ck_assert_uint_eq(description.seen_count, 1);
    ck_assert_ptr_eq(description.seen, cases);
    ck_assert_uint_eq(cases[0].entry.guard.key, 1);
    ck_assert_uint_eq(cases[1].hits, 7);
    cairn_ic_describe(ic, NULL, 0, &description);
    ck_assert_uint_eq(description.case_count, 3);
    ck_assert_uint_eq(description.seen_count, 0);
}
END_TEST

START_TEST(hits_and_misses_of_one_thread_are_counted_exactly)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    load_one(getters[_i], (struct cairn_ic_options){.counts_hits = true});
    answer(ANSWER);
    run_often(1, 5);
    for (uint32_t shape = 1; shape <= 3; shape++)
        add_constant(shape, shape);
    run_often(1, 1000);
    run_often(2, 3);
    run_often(3, 70);
    run_often(9, 20);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert(description.counts_hits);
    ck_assert_uint_eq(description.seen[0].hits, 1000);
    ck_assert_uint_eq(description.seen[1].hits, 3);
    ck_assert_uint_eq(description.seen[2].hits, 70);
    ck_assert_uint_eq(description.misses, 25);
    ck_assert_uint_eq(seen.misses, 25);
    reset();
    add_constant(2, 2);
    run_often(2, 4);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen[0].hits, 4);
    ck_assert_uint_eq(description.misses, 0);
}
END_TEST

START_TEST(counts_of_a_case_are_kept_by_changes_of_others)
{
    struct cairn_error error = {0};
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    struct cairn_ic_guard first = shape_guard(1);
    load_one(&get, (struct cairn_ic_options){.counts_hits = true});
    add_constant(1, 1);
    add_constant(2, 2);
    run_often(2, 11);
    add_constant(3, 3);
    run_often(2, 11);
    ic_assert_done(ic_remove(ic, &first, CAIRN_RELAXED, &error), error);
    run_often(2, 11);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen[0].entry.guard.key, 2);
    ck_assert_uint_eq(description.seen[0].hits, 33);
    ck_assert_uint_eq(description.seen[1].hits, 0);
}
END_TEST

/* There are as many counters as cases, so the new case needs a counter that is in use. */
START_TEST(counters_begin_at_zero_also_when_all_are_in_use)
{
    struct cairn_error error = {0};
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    struct cairn_ic_guard third = shape_guard(3);
    struct cairn_ic_case added = constant_case(99, 99);
    load_one(&get, (struct cairn_ic_options){.counts_hits = true, .case_limit = 16});
    for (uint32_t shape = 1; shape <= 16; shape++) {
        add_constant(shape, shape);
        run_often(shape, shape);
    }
    const struct cairn_ic_change changes[] = {ic_removing(ic, &third), ic_adding(ic, &added)};
    ic_assert_done(cairn_ics_change(changes, 2, CAIRN_RELAXED, &error), error);
    run_often(99, 2);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen[15].entry.guard.key, 99);
    ck_assert_uint_eq(description.seen[15].hits, 2);
    ck_assert_uint_eq(description.seen[14].hits, 16);
}
END_TEST

START_TEST(what_is_not_counted_is_zero)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    load_one(&get, no_options);
    add_constant(1, 1);
    answer(ANSWER);
    run_often(1, 10);
    run_often(2, 10);
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert(!description.counts_hits);
    ck_assert_uint_eq(description.seen[0].hits, 0);
    ck_assert_uint_eq(description.misses, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("states of inline caches");
    TCase *tests = tcase_create("states");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, each_of_many_cases_hits_and_everything_else_misses, 0, 2 * OPTIONS);
    tcase_add_loop_test(tests, cases_with_different_guards_and_actions_are_tried_in_order, 0,
                        OPTIONS);
    tcase_add_loop_test(tests, guards_look_at_the_operand_that_they_name, 0, 2);
    tcase_add_loop_test(tests, a_cache_becomes_megamorphic_at_its_limit_until_it_is_reset, 0, 2);
    tcase_add_test(tests, a_megamorphic_cache_reports_what_it_has_seen);
    tcase_add_test(tests, a_list_that_fails_leaves_what_was_seen);
    tcase_add_test(tests, becoming_megamorphic_fails_with_each_allocation);
    tcase_add_test(tests, without_a_megamorphic_handler_the_handler_is_called);
    tcase_add_test(tests, the_usual_limit_is_the_one_in_the_header);
    tcase_add_test(tests, a_case_with_the_same_guard_replaces_the_other);
    tcase_add_test(tests, guards_that_differ_in_anything_are_of_different_cases);
    tcase_add_test(tests, a_case_is_removed_and_the_others_stay_in_order);
    tcase_add_test(tests, names_of_states_and_actions);
    tcase_add_test(tests, a_description_has_no_more_cases_than_the_caller_has_space_for);
    tcase_add_loop_test(tests, hits_and_misses_of_one_thread_are_counted_exactly, 0, 2);
    tcase_add_test(tests, counts_of_a_case_are_kept_by_changes_of_others);
    tcase_add_test(tests, counters_begin_at_zero_also_when_all_are_in_use);
    tcase_add_test(tests, what_is_not_counted_is_zero);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
