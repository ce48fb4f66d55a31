/*
 * Tests of cases that inline caches refuse, and of changes that fail.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/runtime_support.h"
#include "tests/slab_limit.h"

#include "tests/ic_fixture.h"

#include <string.h>

/* ---- Errors of cases ---- */

/* Operands of all kinds; operand 12 is on the stack on every architecture. */
enum { ON_STACK = 12 };

static const struct ic_function many_by_c = {
    .calling_convention = C,
    .result = INTEGER(32),
    .operand_count = ON_STACK + 1,
    .operands = {POINTER,
                 DOUBLE,
                 INTEGER(32),
                 {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 4},
                 INTEGER(64),
                 FLOAT,
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 POINTER},
};

static const struct ic_function many = {
    .calling_convention = ANYREG,
    .operand_count = 6,
    .operands = {POINTER,
                 DOUBLE,
                 INTEGER(32),
                 {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 4},
                 INTEGER(64),
                 FLOAT},
};

#define GUARD                                                                                      \
    {                                                                                              \
        .offset = 0, .width = 4, .key = 1                                                          \
    }

static const struct bad_case {
    struct cairn_ic_case given;
    enum cairn_status status;
    bool by_c; /* otherwise it is a site without a result */
    const char *says;
} bad_cases[] = {
    {{.guard = {.operand = 6, .width = 4}, .action = CAIRN_IC_CALL},
     CAIRN_ERROR_ARGUMENT,
     false,
     "number 6"},
    {{.guard = {.operand = UINT32_MAX, .width = 4}, .action = CAIRN_IC_CALL},
     CAIRN_ERROR_ARGUMENT,
     false,
     "number 4294967295"},
    {{.guard = {.operand = 1, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "the receiver, of type double"},
    {{.guard = {.operand = 2, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "the receiver, of type i32"},
    {{.guard = {.operand = 3, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "the receiver, of type <4 x float>"},
    {{.guard = {.width = 0}, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, true, "not 0"},
    {{.guard = {.width = 3}, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, true, "not 3"},
    {{.guard = {.width = 16}, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, true, "not 16"},
    {{.guard = {.width = 2, .key = 0x10000}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "key"},
    {{.guard = {.width = 4, .mask = 0xF0, .key = 0x18}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "key"},
    {{.guard = {.width = 1, .mask = 0x1FF, .key = 1}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "mask"},
    {{.guard = GUARD, .action = (enum cairn_ic_action)9}, CAIRN_ERROR_ARGUMENT, true, "action"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 0}},
     CAIRN_ERROR_ARGUMENT,
     true,
     "not 0"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 3}},
     CAIRN_ERROR_ARGUMENT,
     true,
     "not 3"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 16}},
     CAIRN_ERROR_ARGUMENT,
     true,
     "not 16"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 8}},
     CAIRN_ERROR_ARGUMENT,
     false,
     "result"},
    {{.guard = GUARD, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, false, "result"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 6},
     CAIRN_ERROR_ARGUMENT,
     false,
     "number 6"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 2},
     CAIRN_ERROR_ARGUMENT,
     false,
     "the stored operand, of type i32, is narrower"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 4}, .operand = 1},
     CAIRN_ERROR_ARGUMENT,
     false,
     "the stored operand, of type double, has another size"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 5},
     CAIRN_ERROR_ARGUMENT,
     false,
     "the stored operand, of type float, has another size"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 3},
     CAIRN_ERROR_UNSUPPORTED,
     false,
     "the stored operand, of type <4 x float>"},
    {{.guard = GUARD, .action = CAIRN_IC_CALL}, CAIRN_ERROR_ARGUMENT, true, "NULL"},
    {{.guard = {.operand = ON_STACK, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_UNSUPPORTED,
     true,
     "the receiver, of type ptr, is not in a register"},
};

enum { BAD_CASES = sizeof bad_cases / sizeof *bad_cases };

static bool same_case(const struct cairn_ic_case *left, const struct cairn_ic_case *right)
{
    return left->guard.operand == right->guard.operand &&
           left->guard.offset == right->guard.offset && left->guard.width == right->guard.width &&
           left->guard.mask == right->guard.mask && left->guard.key == right->guard.key &&
           left->action == right->action && left->constant == right->constant &&
           left->field.offset == right->field.offset && left->field.width == right->field.width;
}

static void expect_same(const struct cairn_ic_description *before)
{
    struct cairn_ic_seen seen_now[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description now;
    cairn_ic_describe(before->ic, seen_now, CAIRN_IC_CASE_LIMIT_MAX, &now);
    ck_assert_int_eq(now.state, before->state);
    ck_assert_uint_eq(now.case_count, before->case_count);
    ck_assert_uint_eq(now.code_bytes, before->code_bytes);
    for (uint32_t i = 0; i < now.case_count; i++)
        ck_assert(same_case(&now.seen[i].entry, &before->seen[i].entry));
}

static void expect_bad(cairn_ic *cache, const struct bad_case *bad)
{
    struct cairn_error error = {0};
    struct cairn_ic_seen seen_before[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description before;
    cairn_ic_describe(cache, seen_before, CAIRN_IC_CASE_LIMIT_MAX, &before);
    enum cairn_status status = cairn_ic_add(cache, &bad->given, CAIRN_RELAXED, &error);
    ck_assert_msg(status == bad->status, "case %d: %d: %s", (int)(bad - bad_cases), (int)status,
                  error.message);
    ck_assert_int_eq(error.status, bad->status);
    ck_assert_msg(strstr(error.message, bad->says) != NULL, "case %d: no '%s' in '%s'",
                  (int)(bad - bad_cases), bad->says, error.message);
    expect_same(&before);
    expect_same(&before);
}

START_TEST(cases_that_do_not_fit_are_refused_and_the_cache_is_unchanged)
{
    const struct ic_function functions[] = {many_by_c, many};
    const struct cairn_ic_case good = {.guard = {.width = 1, .key = 9},
                                       .action = CAIRN_IC_STORE,
                                       .field = {.width = 1},
                                       .operand = 4};
    struct cairn_ic_case constant = constant_case(9, 1);
    load(functions, 2);
    cairn_ic *by_c = create(program.sites[0], no_options);
    cairn_ic *setting = create(program.sites[1], no_options);
    add_to(by_c, &constant);
    add_to(setting, &good);
    for (int i = 0; i < BAD_CASES; i++)
        expect_bad(bad_cases[i].by_c ? by_c : setting, &bad_cases[i]);
}
END_TEST

START_TEST(a_field_is_not_wider_than_the_result)
{
    struct ic_function functions[2] = {get, get};
    struct cairn_ic_case wide = load_case(1, 0);
    struct cairn_error error = {0};
    functions[0].result = CAIRN_INTEGER(32);
    functions[1].result = CAIRN_DOUBLE;
    if (!ic_can_return(functions[1].result))
        return;
    load(functions, 2);
    ic = create(program.sites[0], no_options);
    ck_assert_int_eq(cairn_ic_add(ic, &wide, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "i32"));
    expect_state(CAIRN_IC_EMPTY, 0);
    ic = create(program.sites[1], no_options);
    wide.field.width = 4;
    ck_assert_int_eq(cairn_ic_add(ic, &wide, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "double"));
    expect_state(CAIRN_IC_EMPTY, 0);
}
END_TEST

START_TEST(a_missing_case_cannot_be_removed)
{
    struct cairn_error error = {0};
    struct cairn_ic_seen seen_before[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description before;
    struct cairn_ic_guard guard = shape_guard(2);
    load_one(&get, no_options);
    add_constant(1, 101);
    cairn_ic_describe(ic, seen_before, CAIRN_IC_CASE_LIMIT_MAX, &before);
    ck_assert_int_eq(ic_remove(ic, &guard, CAIRN_RELAXED, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    expect_same(&before);
    guard = shape_guard(1);
    guard.offset = 4;
    ck_assert_int_eq(ic_remove(ic, &guard, CAIRN_RELAXED, &error), CAIRN_ERROR_NOT_FOUND);
    expect_same(&before);
    expect_hit(1, 101);
}
END_TEST

START_TEST(missing_arguments_are_refused)
{
    struct cairn_error error = {0};
    struct cairn_ic_case good = constant_case(1, 1);
    load_one(&get, no_options);
    ck_assert_int_eq(cairn_ic_add(NULL, &good, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ic_add(ic, NULL, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(ic_remove(NULL, &good.guard, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(ic_reset(NULL, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ics_change(NULL, 1, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    const struct cairn_ic_change changes[] = {ic_adding(ic, &good), ic_adding(NULL, &good)};
    ck_assert_int_eq(cairn_ics_change(changes, 2, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    expect_state(CAIRN_IC_EMPTY, 0);
}
END_TEST

/* ---- Errors of memory allocation ---- */

static uint32_t added_shape;

static enum cairn_status change_add(struct cairn_error *error)
{
    struct cairn_ic_case added = constant_case(added_shape, 200 + added_shape);
    return cairn_ic_add(ic, &added, CAIRN_RELAXED, error);
}

static void expect_not_added(void)
{
    ck_assert_uint_eq(ic_case_count(ic), added_shape - 1);
    for (uint32_t shape = 1; shape < added_shape; shape++)
        expect_hit(shape, 200 + shape);
    expect_miss(added_shape);
}

START_TEST(adding_fails_with_each_allocation)
{
    load_one(getters[_i], (struct cairn_ic_options){.case_limit = 16});
    for (added_shape = 1; added_shape <= 16; added_shape++)
        fail_each_allocation(change_add, expect_not_added);
    for (uint32_t shape = 1; shape <= 16; shape++)
        expect_hit(shape, 200 + shape);
}
END_TEST

/* Adds a case that calls; with anyregcc the call goes through Cairn. */
static enum cairn_status change_add_call(struct cairn_error *error)
{
    const struct cairn_ic_case added = {.guard = shape_guard(1),
                                        .action = CAIRN_IC_CALL,
                                        .target = (const void *)(uintptr_t)first_target};
    return cairn_ic_add(ic, &added, CAIRN_RELAXED, error);
}

START_TEST(adding_a_call_fails_with_each_allocation)
{
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    load_one(getters[_i], no_options);
    added_shape = 1;
    fail_each_allocation(change_add_call, expect_not_added);
    ic_set_operand(&access_0, 1, &integer);
    expect_hit(1, 1077);
}
END_TEST

/* ---- Errors of code memory ---- */

static void set_up_small(void)
{
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations),
                                                  .slab_size = 1 << 20};
    set_up();
    cairn_runtime_destroy(runtime);
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    support_limit_slabs(runtime, 1);
}

START_TEST(code_memory_ends_without_quiescent_points_and_the_cache_is_unchanged)
{
    struct cairn_error error = {0};
    struct cairn_ic_seen seen_before[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description before;
    load_one(&get, (struct cairn_ic_options){.case_limit = 16});
    for (uint32_t shape = 1; shape <= 15; shape++)
        add_constant(shape, 100 + shape);
    enum cairn_status status = CAIRN_OK;
    for (int i = 0; i < 100000 && status == CAIRN_OK; i++) {
        struct cairn_ic_case added = constant_case(16, (uint64_t)i);
        cairn_ic_describe(ic, seen_before, CAIRN_IC_CASE_LIMIT_MAX, &before);
        status = cairn_ic_add(ic, &added, CAIRN_RELAXED, &error);
    }
    ck_assert_msg(status == CAIRN_ERROR_FULL, "%s", error.message);
    expect_same(&before);
    for (uint32_t shape = 1; shape <= 15; shape++)
        expect_hit(shape, 100 + shape);
    expect_hit(16, before.seen[15].entry.constant);
    cairn_runtime_quiesce(runtime);
    add_constant(16, 116);
    expect_hit(16, 116);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("refusals of inline caches");
    TCase *tests = tcase_create("refusals");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, cases_that_do_not_fit_are_refused_and_the_cache_is_unchanged);
    tcase_add_test(tests, a_field_is_not_wider_than_the_result);
    tcase_add_test(tests, a_missing_case_cannot_be_removed);
    tcase_add_test(tests, missing_arguments_are_refused);
    tcase_add_loop_test(tests, adding_fails_with_each_allocation, 0, 2);
    tcase_add_loop_test(tests, adding_a_call_fails_with_each_allocation, 0, 2);
    suite_add_tcase(suite, tests);
    TCase *small = tcase_create("small");
    tcase_set_timeout(small, 60);
    tcase_add_checked_fixture(small, set_up_small, tear_down);
    tcase_add_test(small, code_memory_ends_without_quiescent_points_and_the_cache_is_unchanged);
    suite_add_tcase(suite, small);
    return support_main(suite);
}
