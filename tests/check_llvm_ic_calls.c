/*
 * Tests of inline caches whose cases call functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <string.h>

/* ---- Calls ---- */

static struct {
    unsigned calls;
    const void *receiver;
    int64_t integer;
    double number;
} called;

static int64_t getter(const void *receiver, int64_t integer, double number)
{
    called.calls++;
    called.receiver = receiver;
    called.integer = integer;
    called.number = number;
    return integer * 3;
}

static void setter(const void *receiver, int64_t integer, double number)
{
    getter(receiver, integer, number);
}

static double numeric_getter(const void *receiver, int64_t integer, double number)
{
    getter(receiver, integer, number);
    return number * 2;
}

/* The declaration of a compiled function in the test's module. */
static const char compiled_getter[] =
    "define i64 @getter(ptr %receiver, i64 %integer, double %number) {\n"
    "  %n = fptosi double %number to i64\n"
    "  %p = ptrtoint ptr %receiver to i64\n"
    "  %a = add i64 %n, %p\n"
    "  %b = xor i64 %a, %integer\n"
    "  ret i64 %b\n"
    "}\n";

static struct ic_function calling(uint32_t convention, struct cairn_type result)
{
    return (struct ic_function){
        .calling_convention = convention,
        .result = result,
        .operand_count = 3,
        .operands = {POINTER, INTEGER(64), DOUBLE},
        .keeps_operands = true,
        .kept_count = 6,
        .kept = {INTEGER(64), DOUBLE, INTEGER(64), DOUBLE, INTEGER(64), INTEGER(64)},
    };
}

static void add_call(const void *target)
{
    const struct cairn_ic_case added = {
        .guard = shape_guard(1), .action = CAIRN_IC_CALL, .target = target};
    add(&added);
}

static void run_call(const struct ic_function *function, const struct object *object)
{
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    struct cairn_value number = cairn_value_of_double(2.5);
    ic_fill_kept(function, &access_0, &random_state);
    ic_set_operand(&access_0, 1, &integer);
    ic_set_operand(&access_0, 2, &number);
    called.calls = 0;
    run_function(0, object);
    ck_assert_uint_eq(seen.misses, 0);
    ic_check_kept(function, &access_0, "a call");
}

static void expect_called_with(const struct object *object)
{
    ck_assert_uint_eq(called.calls, 1);
    ck_assert_ptr_eq(called.receiver, object);
    ck_assert_int_eq(called.integer, 1000);
    ck_assert_double_eq(called.number, 2.5);
}

/* coldcc and preserve_mostcc are missing because C functions change registers that these
 * conventions preserve. */
static const uint32_t calling_conventions[] = {ANYREG, C, FASTCC};

enum { CALLING_CONVENTIONS = sizeof calling_conventions / sizeof *calling_conventions };

START_TEST(a_c_function_is_called_with_the_sites_arguments)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    load_one(&function, no_options);
    add_call((const void *)(uintptr_t)getter);
    run_call(&function, &object);
    expect_called_with(&object);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 3000);
}
END_TEST

START_TEST(a_c_function_without_result_is_called)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type){0});
    if (!has_convention(function.calling_convention))
        return;
    load_one(&function, no_options);
    add_call((const void *)(uintptr_t)setter);
    run_call(&function, &object);
    expect_called_with(&object);
}
END_TEST

START_TEST(a_c_function_returns_a_double)
{
    struct object object = {.shape = 1};
    double result;
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)DOUBLE);
    if (!has_convention(function.calling_convention) || !ic_can_return(function.result))
        return;
    load_one(&function, no_options);
    add_call((const void *)(uintptr_t)numeric_getter);
    run_call(&function, &object);
    expect_called_with(&object);
    memcpy(&result, access_0.result, sizeof result);
    ck_assert_double_eq(result, 5);
}
END_TEST

START_TEST(a_compiled_function_is_called_with_the_sites_arguments)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    ic_load_with(&program, runtime, &function, 1, IC_FIRST_SITE, compiled_getter);
    ic = create(program.sites[0], no_options);
    add_call(ic_find(&program, "getter"));
    run_call(&function, &object);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), (2 + (uintptr_t)&object) ^ 1000);
}
END_TEST

/* The called function reaches the same site again, in deeper frames. */
static int64_t recursive_getter(const void *receiver, int64_t integer, double number)
{
    struct ic_access inner = {.signs = {0}};
    int64_t result;
    called.calls++;
    if (integer == 0)
        return (int64_t)number;
    struct cairn_value less = cairn_value_of_integer(64, integer - 1);
    struct cairn_value same = cairn_value_of_double(number);
    ic_set_pointer(&inner, 0, receiver);
    ic_set_operand(&inner, 1, &less);
    ic_set_operand(&inner, 2, &same);
    program.functions[0](&inner);
    memcpy(&result, inner.result, sizeof result);
    return result + integer;
}

START_TEST(a_called_function_may_reach_the_site_again)
{
    enum { DEPTH = 20 };
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    struct cairn_value depth = cairn_value_of_integer(64, DEPTH);
    struct cairn_value number = cairn_value_of_double(7);
    load_one(&function, no_options);
    add_call((const void *)(uintptr_t)recursive_getter);
    ic_set_operand(&access_0, 1, &depth);
    ic_set_operand(&access_0, 2, &number);
    called.calls = 0;
    ck_assert_uint_eq(run_function(0, &object), 7 + DEPTH * (DEPTH + 1) / 2);
    ck_assert_uint_eq(called.calls, DEPTH + 1);
}
END_TEST

/* ---- States ---- */

START_TEST(a_megamorphic_function_is_called_directly)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    const struct cairn_ic_options options = {
        .case_limit = 1,
        .megamorphic_handler = missed_as_megamorphic,
        .megamorphic_target = (const void *)(uintptr_t)getter,
    };
    load_one(&function, options);
    add_constant(1, 101);
    add_constant(2, 102);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    run_call(&function, &object);
    expect_called_with(&object);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 3000);
    reset();
    answer(ANSWER);
    ck_assert_uint_eq(run_function(0, &object), ANSWER);
    ck_assert_uint_eq(seen.megamorphic_misses, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calls of inline caches");
    TCase *tests = tcase_create("calls");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_c_function_is_called_with_the_sites_arguments, 0,
                        CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_c_function_without_result_is_called, 0, CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_c_function_returns_a_double, 0, CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_compiled_function_is_called_with_the_sites_arguments, 0,
                        CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_called_function_may_reach_the_site_again, 0, CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_megamorphic_function_is_called_directly, 1, CALLING_CONVENTIONS);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
