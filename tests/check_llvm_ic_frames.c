/*
 * Tests of threads that are interrupted in the code of an inline cache, and of caches in forked
 * children.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/frame.h"
#include "tests/context_support.h"
#include "tests/ic_support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHAPE = 7, FIELD = 9 };

struct object {
    uint32_t shape;
    uint32_t unused;
    uint64_t field;
};

static const struct ic_function functions[] = {
    {.calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
     .result = INTEGER(64),
     .operand_count = 1,
     .operands = {POINTER}},
    {.calling_convention = CAIRN_CALLING_CONVENTION_C,
     .result = INTEGER(64),
     .operand_count = 1,
     .operands = {POINTER}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static cairn_runtime *runtime;
static struct ic_program program;
static cairn_ic *caches[FUNCTIONS];
static unsigned misses;

static void look_at_nothing(const struct cairn_ic_miss *miss) { (void)miss; }
static void (*look)(const struct cairn_ic_miss *miss) = look_at_nothing;

static void missed(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_error error = {0};
    struct cairn_value result = cairn_value_of_integer(64, 1);
    (void)user;
    misses++;
    look(miss);
    ic_assert_done(cairn_ic_return(miss, &result, &error), error);
}

static void set_up(void)
{
    struct cairn_error error = {0};
    const struct cairn_ic_options options = {.handler = missed};
    ic_assert_done(cairn_runtime_create(NULL, &runtime, &error), error);
    ic_load(&program, runtime, functions, FUNCTIONS, IC_FIRST_SITE);
    for (int i = 0; i < FUNCTIONS; i++)
        ic_assert_done(cairn_ic_create(program.sites[i], &options, &caches[i], &error), error);
    misses = 0;
    look = look_at_nothing;
}

static void tear_down(void)
{
    ic_unload(&program);
    cairn_runtime_destroy(runtime);
}

static struct cairn_ic_case load_field(uint32_t shape)
{
    return (struct cairn_ic_case){
        .guard = {.width = 4, .key = shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = offsetof(struct object, field), .width = 8},
    };
}

static uint64_t get(int function, uint32_t shape)
{
    struct ic_access access = {.signs = {0}};
    const struct object object = {.shape = shape, .field = FIELD};
    uint64_t result;
    ic_set_pointer(&access, 0, &object);
    program.functions[function](&access);
    memcpy(&result, access.result, sizeof result);
    return result;
}

/* ---- Frames ---- */

static void check_same_frame(const struct cairn_frame *seen, const struct cairn_frame *expected)
{
    struct cairn_record record;
    struct cairn_frame caller = *seen;
    struct cairn_frame expected_caller = *expected;
    struct cairn_error error = {0};
    ck_assert_ptr_eq(seen->module, expected->module);
    ck_assert_uint_eq(seen->pc, expected->pc);
    ck_assert_uint_eq(seen->sp, expected->sp);
    ck_assert(cairn_frame_record(seen, &record));
    ck_assert_uint_ge(cairn_record_id(record), IC_FIRST_SITE);
    ic_assert_done(cairn_frame_caller(&caller, &error), error);
    ic_assert_done(cairn_frame_caller(&expected_caller, &error), error);
    ck_assert_uint_eq(caller.pc, expected_caller.pc);
    ck_assert_uint_eq(caller.sp, expected_caller.sp);
}

static void check_frame_at(const struct cairn_ic_miss *miss, uint64_t pc, uint64_t sp)
{
    static struct cairn_context context;
    struct cairn_frame frame;
    struct cairn_error error = {0};
    context = *miss->call->frame.context;
    write_register(&context, CAIRN_REGISTER_PC, pc);
    write_register(&context, CAIRN_REGISTER_SP, sp);
    ic_assert_done(cairn_frame_from_context(runtime, &context, false, &frame, &error), error);
    check_same_frame(&frame, &miss->call->frame);
}

/* The stack pointer in the code of a hit. */
static uint64_t sp_of_hits(const struct cairn_ic_miss *miss, bool is_called)
{
    bool pushes = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    return miss->call->frame.sp - (pushes && is_called ? 8 : 0);
}

static void look_at_every_byte(const struct cairn_ic_miss *miss)
{
    struct cairn_ic_description cache;
    struct cairn_site_description site;
    cairn_ic_describe(miss->ic, NULL, 0, &cache);
    cairn_site_describe(cache.site, &site);
    ck_assert_uint_gt(cache.code_bytes, cache.case_bytes);
    if (site.state == CAIRN_SITE_NOP) { /* the first case is in the site's own bytes */
        uint64_t end = site.address + site.byte_count;
        for (uint64_t pc = site.return_address; pc < end; pc++)
            check_frame_at(miss, pc, miss->call->frame.sp);
        return;
    }
    for (size_t i = 0; i < cache.code_bytes; i++)
        check_frame_at(miss, site.target + i, sp_of_hits(miss, site.state == CAIRN_SITE_CALL));
}

START_TEST(a_thread_in_the_code_of_a_cache_is_where_its_site_calls)
{
    struct cairn_ic_case added = load_field(SHAPE);
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_add(caches[_i], &added, CAIRN_SYNC, &error), error);
    look = look_at_every_byte;
    ck_assert_uint_eq(get(_i, SHAPE + 1), 1);
    ck_assert_uint_eq(misses, 1);
}
END_TEST

static uint64_t called(const struct object *object) { return object->field + 1; }

START_TEST(a_thread_in_code_that_is_called_is_where_its_site_calls)
{
    struct cairn_ic_case added = load_field(SHAPE);
    struct cairn_error error = {0};
    added.action = CAIRN_IC_CALL;
    added.target = (const void *)(uintptr_t)called;
    ic_assert_done(cairn_ic_add(caches[1], &added, CAIRN_SYNC, &error), error);
    look = look_at_every_byte;
    ck_assert_uint_eq(get(1, SHAPE), FIELD + 1);
    ck_assert_uint_eq(get(1, SHAPE + 1), 1);
    ck_assert_uint_eq(misses, 1);
}
END_TEST

/* On x86-64 the return address is pushed first, and then the exit's address. */
static void look_at_pushed_words(const struct cairn_ic_miss *miss)
{
    struct cairn_site_description site;
    cairn_site_describe(program.sites[0], &site);
    check_frame_at(miss, site.target, miss->call->frame.sp - 8);
    check_frame_at(miss, site.target, miss->call->frame.sp - 16);
}

START_TEST(a_thread_on_its_way_to_the_handler_is_where_its_site_calls)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return;
    look = look_at_pushed_words;
    ck_assert_uint_eq(get(0, SHAPE), 1);
    ck_assert_uint_eq(misses, 1);
}
END_TEST

static uint64_t retired_code;

static void look_at_retired_code(const struct cairn_ic_miss *miss)
{
    check_frame_at(miss, retired_code, miss->call->frame.sp);
}

START_TEST(a_thread_in_retired_code_is_seen_until_it_is_quiescent)
{
    struct cairn_site_description site;
    struct cairn_ic_case added = load_field(SHAPE);
    struct cairn_error error = {0};
    cairn_site_describe(program.sites[0], &site);
    retired_code = site.target;
    ic_assert_done(cairn_ic_add(caches[0], &added, CAIRN_SYNC, &error), error);
    look = look_at_retired_code;
    ck_assert_uint_eq(get(0, SHAPE + 1), 1);
}
END_TEST

/* ---- Forked children ---- */

static int change_in_child(void)
{
    struct cairn_ic_case added = load_field(SHAPE + 1);
    struct cairn_error error;
    if (get(0, SHAPE) != FIELD || get(0, SHAPE + 1) != 1)
        return 1;
    if (cairn_ic_add(caches[0], &added, CAIRN_RELAXED, &error) != CAIRN_OK)
        return 2;
    if (get(0, SHAPE) != FIELD || get(0, SHAPE + 1) != FIELD)
        return 3;
    if (ic_reset(caches[0], CAIRN_RELAXED, &error) != CAIRN_OK || get(0, SHAPE) != 1)
        return 4;
    cairn_runtime_quiesce(runtime);
    return get(0, SHAPE) == 1 ? 0 : 5;
}

START_TEST(a_forked_child_changes_its_own_caches)
{
    struct cairn_ic_case added = load_field(SHAPE);
    struct cairn_error error = {0};
    int status;
    ic_assert_done(cairn_ic_add(caches[0], &added, CAIRN_SYNC, &error), error);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(change_in_child());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_uint_eq(get(0, SHAPE), FIELD);
    ck_assert_uint_eq(get(0, SHAPE + 1), 1);
    ck_assert_uint_eq(ic_case_count(caches[0]), 1);
}
END_TEST

/* ---- */

int main(void)
{
    Suite *suite = suite_create("inline caches, frames and forks");
    TCase *tests = tcase_create("seen");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_thread_in_the_code_of_a_cache_is_where_its_site_calls, 0,
                        FUNCTIONS);
    tcase_add_test(tests, a_thread_in_code_that_is_called_is_where_its_site_calls);
    tcase_add_test(tests, a_thread_on_its_way_to_the_handler_is_where_its_site_calls);
    tcase_add_test(tests, a_thread_in_retired_code_is_seen_until_it_is_quiescent);
    tcase_add_test(tests, a_forked_child_changes_its_own_caches);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
