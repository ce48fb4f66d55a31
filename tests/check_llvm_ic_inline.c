/*
 * Tests of inline caches whose first case, or first two cases, are in the site's own bytes: when
 * they are there, when they are not, and what is there afterwards.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"
#include "tests/mode_support.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static enum cairn_code_mode mode;

static void set_up_mode(void)
{
    struct cairn_error error = {0};
    set_up();
    if (mode == CAIRN_CODE_MODE_AUTOMATIC)
        return;
    cairn_runtime_destroy(runtime);
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations),
                                                  .code_mode = mode};
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
}

static void set_up_single(void)
{
    mode = CAIRN_CODE_MODE_SINGLE;
    set_up_mode();
}

static void set_up_dual(void)
{
    mode = CAIRN_CODE_MODE_AUTOMATIC;
    set_up_mode();
}

/* ---- Where the first case is ---- */

static struct cairn_site_description site(void)
{
    struct cairn_site_description description;
    cairn_site_describe(program.sites[0], &description);
    return description;
}

/* While the first case is in the site's bytes, the site is a no-op. */
static bool is_inline(void) { return site().state == CAIRN_SITE_NOP; }

static bool can_be_inline(void)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    return statistics.can_synchronise;
}

static void expect_inline(bool expected)
{
    ck_assert_int_eq(is_inline(), expected && can_be_inline());
}

static void expect_initial_bytes(const uint8_t *initial)
{
    struct cairn_site_description now = site();
    ck_assert_int_eq(now.state, CAIRN_SITE_NOP);
    ck_assert_mem_eq(now.bytes, initial, now.byte_count);
}

static void remove_shape(uint32_t shape)
{
    struct cairn_error error = {0};
    struct cairn_ic_guard guard = shape_guard(shape);
    ic_assert_done(ic_remove(ic, &guard, CAIRN_RELAXED, &error), error);
}

/* Makes the cache one case for this shape with one change. */
static void become(uint32_t shape, uint64_t constant)
{
    struct cairn_error error = {0};
    struct cairn_ic_case added = constant_case(shape, constant);
    const struct cairn_ic_change changes[] = {ic_resetting(ic), ic_adding(ic, &added)};
    ic_assert_done(cairn_ics_change(changes, 2, CAIRN_SYNC, &error), error);
}

START_TEST(the_first_case_is_in_the_bytes_of_the_site)
{
    load_one(&get, no_options);
    ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
    expect_miss(1);
    add_constant(1, 101);
    expect_inline(true);
    expect_hit(1, 101);
    expect_miss(2);
    expect_state(CAIRN_IC_MONOMORPHIC, 1);
}
END_TEST

START_TEST(the_other_cases_are_elsewhere_and_the_first_one_stays)
{
    load_one(&get, no_options);
    for (uint32_t shape = 1; shape <= 4; shape++) {
        add_constant(shape, 100 + shape);
        expect_inline(true);
        for (uint32_t other = 1; other <= shape; other++)
            expect_hit(other, 100 + other);
        expect_miss(shape + 1);
    }
    remove_shape(3);
    expect_inline(true);
    expect_miss(3);
    expect_hit(4, 104);
    remove_shape(2);
    remove_shape(4);
    expect_inline(true);
    expect_hit(1, 101);
    expect_miss(4);
}
END_TEST

START_TEST(a_replaced_first_case_returns_after_a_grace_period)
{
    load_one(&get, no_options);
    add_constant(1, 101);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t token = cairn_runtime_grace_start(runtime);
        become(2 + i, 200 + i);
        ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
        expect_hit(2 + i, 200 + i);
        expect_miss(1 + i);
        cairn_runtime_grace_end(runtime, token); /* began before the change */
        ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
        cairn_runtime_quiesce(runtime);
        expect_inline(true);
        expect_hit(2 + i, 200 + i);
        expect_miss(1 + i);
    }
}
END_TEST

START_TEST(an_empty_cache_uses_the_bytes_again_when_it_has_a_case)
{
    load_one(&get, no_options);
    add_constant(1, 101);
    reset();
    ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
    expect_miss(1);
    cairn_runtime_quiesce(runtime);
    expect_miss(1);
    add_constant(2, 102);
    expect_inline(true);
    expect_hit(2, 102);
    expect_miss(1);
}
END_TEST

START_TEST(a_case_that_does_not_fit_is_elsewhere)
{
    const struct ic_function narrow = {.calling_convention = ANYREG,
                                       .result = INTEGER(64),
                                       .operand_count = 2,
                                       .operands = {POINTER, INTEGER(64)},
                                       .byte_count = 12};
    load_one(&narrow, no_options);
    add_constant(1, 101);
    ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
    expect_hit(1, 101);
    expect_miss(2);
}
END_TEST

START_TEST(many_similar_cases_are_selected_elsewhere)
{
    load_one(&get, no_options);
    for (uint32_t i = 0; i < 4; i++) {
        struct cairn_ic_case added = load_case(1 + i, i);
        add(&added);
        for (uint32_t j = 0; j <= i; j++)
            expect_hit(1 + j, 10 + j);
        expect_miss(2 + i);
    }
    remove_shape(3);
    remove_shape(4);
    cairn_runtime_quiesce(runtime);
    expect_inline(true);
    expect_hit(1, 10);
    expect_hit(2, 11);
    expect_miss(3);
}
END_TEST

START_TEST(a_megamorphic_cache_leaves_the_bytes)
{
    load_one(&get, (struct cairn_ic_options){.case_limit = 1});
    add_constant(1, 101);
    add_constant(2, 102);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    expect_miss(1);
    cairn_runtime_quiesce(runtime);
    expect_miss(1);
    become(1, 103);
    expect_inline(true);
    expect_hit(1, 103);
}
END_TEST

START_TEST(hits_are_counted_in_the_bytes)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    struct ic_function wide = get;
    wide.byte_count = 96;
    load_one(&wide, (struct cairn_ic_options){.counts_hits = true});
    add_constant(1, 101);
    expect_inline(true);
    run_often(1, 50);
    add_constant(2, 102);
    run_often(1, 50);
    run_often(2, 7);
    for (int i = 0; i < 2; i++) {
        cairn_runtime_quiesce(runtime);
        run_often(2, 10);
    }
    cairn_ic_describe(ic, cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.seen[0].hits, 100);
    ck_assert_uint_eq(description.seen[1].hits, 27);
}
END_TEST

/* ---- The first two cases ---- */

static struct ic_function wide_get(void)
{
    struct ic_function wide = get;
    wide.byte_count = 96;
    return wide;
}

static bool can_have_two(void)
{
    return can_be_inline() && cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
}

/* Asserts that so many of the cases for shapes 1 and 2 are in the site's bytes, with their
 * constants: at most one, if no more are possible. */
static void expect_inline_count(uint32_t count)
{
    const struct cairn_site_description now = site();
    uint32_t found = 0;
    expect_inline(count > 0);
    if (!can_have_two() || count == 0)
        return;
    for (uint32_t constant = 101; constant <= 102; constant++)
        found += memmem(now.bytes, now.byte_count, &constant, sizeof constant) != NULL;
    ck_assert_uint_eq(found, count);
}

/* Shape 1 has the constant 101, and so on. */
static void expect_hits(uint32_t first, uint32_t last)
{
    for (uint32_t shape = first; shape <= last; shape++)
        expect_hit(shape, 100 + shape);
    expect_miss(last + 1);
}

START_TEST(a_second_case_joins_the_first_one_after_two_grace_periods)
{
    const struct ic_function wide = wide_get();
    load_one(&wide, no_options);
    add_constant(1, 101);
    uint64_t token = cairn_runtime_grace_start(runtime);
    add_constant(2, 102);
    expect_inline_count(1);
    expect_hits(1, 2);
    cairn_runtime_grace_end(runtime, token); /* began before the change */
    expect_inline_count(1);
    cairn_runtime_quiesce(runtime);
    expect_inline_count(can_have_two() ? 0 : 1);
    expect_hits(1, 2);
    cairn_runtime_quiesce(runtime);
    expect_inline_count(2);
    expect_hits(1, 2);
    add_constant(3, 103); /* elsewhere */
    expect_inline_count(2);
    expect_hits(1, 3);
    remove_shape(3);
    expect_inline_count(2);
    expect_hits(1, 2);
    for (int i = 0; i < 3; i++)
        cairn_runtime_quiesce(runtime);
    expect_inline_count(2);
    remove_shape(2);
    expect_hits(1, 1);
    cairn_runtime_quiesce(runtime);
    expect_inline_count(1);
    expect_hits(1, 1);
}
END_TEST

START_TEST(two_cases_that_are_added_together_are_in_the_bytes_together)
{
    const struct ic_function wide = wide_get();
    struct cairn_error error = {0};
    struct cairn_ic_case one = constant_case(1, 101);
    struct cairn_ic_case two = constant_case(2, 102);
    load_one(&wide, no_options);
    const struct cairn_ic_change changes[] = {ic_adding(ic, &one), ic_adding(ic, &two)};
    ic_assert_done(cairn_ics_change(changes, 2, CAIRN_SYNC, &error), error);
    expect_inline_count(2);
    expect_hits(1, 2);
    remove_shape(1);
    expect_hits(2, 2);
    expect_miss(1);
}
END_TEST

START_TEST(two_cases_that_do_not_fit_together_stay_apart)
{
    load_one(&get, no_options);
    add_constant(1, 101);
    struct cairn_ic_case far = load_case(2, 0);
    far.field.is_out_of_line = true;
    far.field.pointer_offset = 1000;
    far.guard.mask = 0xFFFF0FFF;
    add(&far);
    for (int i = 0; i < 3; i++) {
        expect_inline_count(1);
        expect_hit(1, 101);
        expect_miss(3);
        cairn_runtime_quiesce(runtime);
    }
}
END_TEST

/* A cache may change or end while its second case waits. */
START_TEST(what_waits_to_join_may_be_gone)
{
    const struct ic_function wide = wide_get();
    load_one(&wide, no_options);
    for (int what = 0; what < 4; what++) {
        add_constant(1, 101);
        add_constant(2, 102);
        if (what == 0)
            remove_shape(2);
        if (what == 1)
            become(1, 101);
        if (what == 2)
            reset();
        if (what == 3) {
            struct cairn_error error = {0};
            ic_assert_done(cairn_ic_destroy(ic, CAIRN_SYNC, &error), error);
            ic = create(program.sites[0], no_options);
        }
        for (int i = 0; i < 3; i++) {
            expect_hits(1, what < 2 ? 1 : 0);
            cairn_runtime_quiesce(runtime);
        }
        reset();
        cairn_runtime_quiesce(runtime);
    }
    add_constant(1, 101);
    add_constant(2, 102);
    become(3, 103);
    ic_unload(&program); /* while the bytes wait, too */
    program.engine = NULL;
    cairn_runtime_quiesce(runtime);
}
END_TEST

/* ---- Calls ---- */

static const char callees[] = "define i64 @first(ptr %receiver, i64 %integer) {\n"
                              "  %a = add i64 %integer, 5\n"
                              "  ret i64 %a\n"
                              "}\n"
                              "define i64 @second(ptr %receiver, i64 %integer) {\n"
                              "  %a = add i64 %integer, 6\n"
                              "  ret i64 %a\n"
                              "}\n";

static void add_call(uint32_t shape, const char *name)
{
    const struct cairn_ic_case added = {
        .guard = shape_guard(shape), .action = CAIRN_IC_CALL, .target = ic_find(&program, name)};
    add(&added);
}

static bool has_toc(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    return host == CAIRN_ARCHITECTURE_PPC64_ELFV1 || host == CAIRN_ARCHITECTURE_PPC64_ELFV2;
}

static void load_callers(void)
{
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    ic_load_with(&program, runtime, &get_by_c, 1, IC_FIRST_SITE, callees);
    ic = create(program.sites[0], no_options);
    ic_set_operand(&access_0, 1, &integer);
}

START_TEST(the_first_call_is_in_the_bytes_of_the_site)
{
    load_callers();
    add_call(1, "first");
    expect_inline(!has_toc());
    expect_hit(1, 1005);
    expect_miss(2);
    add_constant(2, 102);
    expect_inline(!has_toc());
    expect_hit(1, 1005);
    expect_hit(2, 102);
    expect_miss(3);
}
END_TEST

START_TEST(a_site_with_two_calls_becomes_a_call_after_a_grace_period)
{
    load_callers();
    add_call(1, "first");
    add_call(2, "second");
    for (int i = 0; i < 2; i++) {
        expect_inline(false);
        expect_hit(1, 1005);
        expect_hit(2, 1006);
        expect_miss(3);
        cairn_runtime_quiesce(runtime);
        ck_assert_int_eq(site().state, CAIRN_SITE_CALL);
    }
    become(1, 101);
    ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
    cairn_runtime_quiesce(runtime);
    ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
    expect_hit(1, 101);
    expect_miss(2);
}
END_TEST

START_TEST(a_megamorphic_target_is_called_also_before_the_grace_period)
{
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    ic_load_with(&program, runtime, &get_by_c, 1, IC_FIRST_SITE, callees);
    ic = create(program.sites[0],
                (struct cairn_ic_options){.case_limit = 1,
                                          .megamorphic_target = ic_find(&program, "second")});
    ic_set_operand(&access_0, 1, &integer);
    add_call(1, "first");
    expect_hit(1, 1005);
    add_call(2, "first");
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    expect_hit(1, 1006);
    cairn_runtime_quiesce(runtime);
    ck_assert_int_eq(site().state, CAIRN_SITE_CALL);
    expect_hit(1, 1006);
}
END_TEST

/* ---- Handlers that change the cache ---- */

static uint32_t next_shape;

static void add_in_handler(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    struct cairn_ic_case added = constant_case(next_shape, 300 + next_shape);
    ic_assert_done(cairn_ic_add(miss->ic, &added, CAIRN_SYNC, &error), error);
}

/* The thread returns to the end of the bytes, which were written while it was in the handler. */
START_TEST(a_handler_writes_the_bytes_and_returns_past_them)
{
    load_one(&get, no_options);
    seen.also = add_in_handler;
    for (next_shape = 1; next_shape <= 4; next_shape++)
        expect_miss(next_shape);
    seen.also = NULL;
    for (uint32_t shape = 1; shape <= 4; shape++)
        expect_hit(shape, 300 + shape);
}
END_TEST

static void destroy_in_handler(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_destroy(miss->ic, CAIRN_SYNC, &error), error);
}

START_TEST(a_handler_destroys_the_cache_whose_bytes_have_missed)
{
    uint8_t initial[64];
    load(&get, 1);
    memcpy(initial, site().bytes, site().byte_count);
    ic = create(program.sites[0], no_options);
    add_constant(1, 101);
    seen.also = destroy_in_handler;
    expect_miss(2);
    cairn_runtime_quiesce(runtime);
    expect_initial_bytes(initial);
}
END_TEST

/* ---- Afterwards ---- */

static void destroy(void)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_SYNC, &error), error);
}

START_TEST(a_destroyed_cache_leaves_the_bytes_as_they_were)
{
    uint8_t initial[64];
    load(&get, 1);
    struct cairn_site_description before = site();
    ck_assert_uint_le(before.byte_count, sizeof initial);
    ck_assert_int_eq(before.state, CAIRN_SITE_NOP);
    memcpy(initial, before.bytes, before.byte_count);
    for (int i = 0; i < 3; i++) {
        ic = create(program.sites[0], no_options);
        add_constant(1, 101);
        expect_hit(1, 101);
        destroy();
        ck_assert_int_eq(site().state, CAIRN_SITE_NOP);
        cairn_runtime_quiesce(runtime);
        expect_initial_bytes(initial);
    }
}
END_TEST

START_TEST(a_cache_that_is_created_before_the_grace_period_waits_for_it)
{
    load_one(&get, no_options);
    add_constant(1, 101);
    destroy();
    ic = create(program.sites[0], no_options);
    add_constant(2, 102);
    ck_assert_int_eq(site().state, can_be_inline() ? CAIRN_SITE_JUMP : site().state);
    expect_hit(2, 102);
    cairn_runtime_quiesce(runtime);
    expect_inline(true);
    expect_hit(2, 102);
    expect_miss(1);
}
END_TEST

static int64_t called_operand(const void *receiver, int64_t integer)
{
    (void)receiver;
    return integer;
}

START_TEST(a_site_becomes_a_call_only_after_the_grace_period)
{
    const void *target = (const void *)(uintptr_t)called_operand;
    struct cairn_error error = {0};
    load_one(&get, no_options);
    add_constant(1, 101);
    bool was_inline = is_inline();
    destroy();
    enum cairn_status status = cairn_site_call(program.sites[0], target, CAIRN_RELAXED, &error);
    ck_assert_int_eq(status, was_inline ? CAIRN_ERROR_STATE : CAIRN_OK);
    if (was_inline)
        ck_assert_ptr_nonnull(strstr(error.message, "grace period"));
    cairn_runtime_quiesce(runtime);
    ic_assert_done(cairn_site_call(program.sites[0], target, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(site().state, CAIRN_SITE_CALL);
    ic_assert_done(cairn_site_nop(program.sites[0], CAIRN_SYNC, &error), error);
    ck_assert_int_eq(site().state, CAIRN_SITE_NOP);
    ic = create(program.sites[0], no_options); /* calls may return into the bytes */
    add_constant(1, 101);
    ck_assert_int_eq(site().state, CAIRN_SITE_JUMP);
    expect_hit(1, 101);
    expect_miss(2);
}
END_TEST

START_TEST(retired_modules_keep_their_code)
{
    load_one(&get, no_options);
    add_constant(1, 101);
    become(2, 102);
    ic_unload(&program); /* while the bytes wait */
    program.engine = NULL;
    cairn_runtime_quiesce(runtime);
    cairn_runtime_quiesce(runtime);
}
END_TEST

/* ---- Failures ---- */

static enum cairn_status add_second(struct cairn_error *error)
{
    struct cairn_ic_case added = constant_case(2, 102);
    return cairn_ic_add(ic, &added, CAIRN_SYNC, error);
}

static void expect_first_alone(void)
{
    expect_hit(1, 101);
    expect_miss(2);
    expect_state(CAIRN_IC_MONOMORPHIC, 1);
}

START_TEST(without_memory_the_first_case_stays_alone)
{
    load_one(&get, no_options);
    add_constant(1, 101);
    fail_each_allocation(add_second, expect_first_alone);
    expect_hit(1, 101);
    expect_hit(2, 102);
}
END_TEST

/* ---- Forked children ---- */

static int run_child(void)
{
    struct cairn_error error;
    struct cairn_ic_case added = constant_case(3, 303);
    pause(); /* until the parent has changed its own cache */
    if (run_shape(1) != 101 || run_shape(2) != ANSWER)
        return 1;
    if (cairn_ic_add(ic, &added, CAIRN_RELAXED, &error) != CAIRN_OK)
        return 2;
    if (run_shape(1) != 101 || run_shape(3) != 303 || run_shape(2) != ANSWER)
        return 3;
    if (ic_reset(ic, CAIRN_RELAXED, &error) != CAIRN_OK || run_shape(1) != ANSWER)
        return 4;
    cairn_runtime_quiesce(runtime);
    if (cairn_ic_add(ic, &added, CAIRN_RELAXED, &error) != CAIRN_OK)
        return 5;
    return run_shape(3) == 303 && run_shape(1) == ANSWER && is_inline() == can_be_inline() ? 0 : 6;
}

static void go_on(int signal) { (void)signal; }

START_TEST(a_forked_child_has_its_own_bytes)
{
    int status;
    load_one(&get, no_options);
    add_constant(1, 101);
    answer(ANSWER);
    signal(SIGUSR1, go_on);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(run_child());
    become(2, 102);
    cairn_runtime_quiesce(runtime);
    expect_hit(2, 102);
    do {
        kill(child, SIGUSR1);
        usleep(1000);
    } while (waitpid(child, &status, WNOHANG) == 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    expect_inline(true);
    expect_hit(2, 102);
    expect_miss(1);
}
END_TEST

static void add_tests(Suite *suite, const char *name, void (*begin)(void))
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, tear_down);
    tcase_add_test(tests, the_first_case_is_in_the_bytes_of_the_site);
    tcase_add_test(tests, the_other_cases_are_elsewhere_and_the_first_one_stays);
    tcase_add_test(tests, a_replaced_first_case_returns_after_a_grace_period);
    tcase_add_test(tests, an_empty_cache_uses_the_bytes_again_when_it_has_a_case);
    tcase_add_test(tests, a_case_that_does_not_fit_is_elsewhere);
    tcase_add_test(tests, many_similar_cases_are_selected_elsewhere);
    tcase_add_test(tests, a_megamorphic_cache_leaves_the_bytes);
    tcase_add_test(tests, hits_are_counted_in_the_bytes);
    tcase_add_test(tests, a_second_case_joins_the_first_one_after_two_grace_periods);
    tcase_add_test(tests, two_cases_that_are_added_together_are_in_the_bytes_together);
    tcase_add_test(tests, two_cases_that_do_not_fit_together_stay_apart);
    tcase_add_test(tests, what_waits_to_join_may_be_gone);
    tcase_add_test(tests, the_first_call_is_in_the_bytes_of_the_site);
    tcase_add_test(tests, a_site_with_two_calls_becomes_a_call_after_a_grace_period);
    tcase_add_test(tests, a_megamorphic_target_is_called_also_before_the_grace_period);
    tcase_add_test(tests, a_handler_writes_the_bytes_and_returns_past_them);
    tcase_add_test(tests, a_handler_destroys_the_cache_whose_bytes_have_missed);
    tcase_add_test(tests, a_destroyed_cache_leaves_the_bytes_as_they_were);
    tcase_add_test(tests, a_cache_that_is_created_before_the_grace_period_waits_for_it);
    tcase_add_test(tests, a_site_becomes_a_call_only_after_the_grace_period);
    tcase_add_test(tests, retired_modules_keep_their_code);
    tcase_add_test(tests, without_memory_the_first_case_stays_alone);
    tcase_add_test(tests, a_forked_child_has_its_own_bytes);
    suite_add_tcase(suite, tests);
}

int main(void)
{
    Suite *suite = suite_create("first cases of inline caches");
    if (site_first_mode() == 0)
        add_tests(suite, "first",
                  site_modes[0] == CAIRN_CODE_MODE_SINGLE ? set_up_single : set_up_dual);
    add_tests(suite, "second",
              site_modes[1] == CAIRN_CODE_MODE_SINGLE ? set_up_single : set_up_dual);
    return support_main(suite);
}
