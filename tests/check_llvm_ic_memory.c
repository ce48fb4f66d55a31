/*
 * Tests that changing an inline cache without end uses no additional memory if there are quiescent
 * points. Cases are added and removed, two million times natively, while a thread executes the site
 * repeatedly. The thread pauses in between, because changing code that another core executes takes
 * ten times as long.
 *
 * Environment: CAIRN_TEST_CHANGES is the number of changes with a dual mapping; with a single
 * mapping there are a hundredth of that. If it is not set, CAIRN_TEST_ROUNDS scales the number; its
 * default is 60 natively and lower under emulators.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_support.h"
#include "tests/mode_support.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    ANYREG = CAIRN_CALLING_CONVENTION_ANYREG,
    SHAPES = 6,
    BETWEEN_QUIESCENT_POINTS = 500,
    WARM_UP = 10, /* number of quiescent points */
    RUNS_BETWEEN_QUIESCENT_POINTS = 50,
    CHANGES = 2000000,
    SINGLE_MODE_IS_SLOWER = 100
};

struct object {
    uint32_t shape;
    uint64_t field;
};

static struct support_allocator allocations;
static cairn_runtime *runtime;
static struct ic_program program;
static cairn_ic *ic;

static const struct ic_function get = {
    .calling_convention = ANYREG,
    .result = {.kind = CAIRN_TYPE_INTEGER, .bits = 64},
    .operand_count = 1,
    .operands = {{.kind = CAIRN_TYPE_POINTER, .bits = 64}},
};

static void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    struct cairn_value value = cairn_value_of_integer(64, (int64_t)object->field);
    atomic_uint *wrong = user;
    if (cairn_ic_return(miss, &value, NULL) != CAIRN_OK)
        atomic_fetch_add(wrong, 1);
}

/* ---- The executing thread ---- */

/* Between two runs the thread is outside of all code and publishes the number of the last quiescent
 * point that was requested. Until the next request it runs this many times. */
static struct {
    pthread_t thread;
    atomic_ulong wanted;
    atomic_ulong passed;
    atomic_bool stops;
    atomic_uint wrong;
    atomic_ulong runs;
} runner;

static void rest(void)
{
    while (atomic_load(&runner.passed) == atomic_load(&runner.wanted) &&
           !atomic_load(&runner.stops))
        sched_yield();
    atomic_store(&runner.passed, atomic_load(&runner.wanted));
}

static void *run(void *unused)
{
    struct object objects[SHAPES];
    struct ic_access access;
    for (uint32_t i = 0; i < SHAPES; i++)
        objects[i] = (struct object){.shape = i, .field = 1000 + i};
    for (uint32_t i = 0; !atomic_load(&runner.stops); i = (i + 1) % SHAPES) {
        uint64_t result;
        if (atomic_load(&runner.runs) % RUNS_BETWEEN_QUIESCENT_POINTS == 0)
            rest();
        ic_set_pointer(&access, 0, &objects[i]);
        program.functions[0](&access);
        memcpy(&result, access.result, sizeof result);
        if (result != objects[i].field)
            atomic_fetch_add(&runner.wrong, 1);
        atomic_fetch_add(&runner.runs, 1);
        atomic_store(&runner.passed, atomic_load(&runner.wanted));
    }
    return unused;
}

static void come_to_quiescent_point(void)
{
    unsigned long wanted = atomic_fetch_add(&runner.wanted, 1) + 1;
    while (atomic_load(&runner.passed) != wanted)
        sched_yield();
    cairn_runtime_quiesce(runtime);
}

/* ---- Changes ---- */

static struct cairn_ic_guard guard_of(uint32_t shape)
{
    return (struct cairn_ic_guard){.width = sizeof shape, .key = shape};
}

/* Alternates between adding and removing, so that there are up to four cases. */
static void change(uint64_t number)
{
    struct cairn_error error = {0};
    const struct cairn_ic_case added = {
        .guard = guard_of((uint32_t)(number / 2 % SHAPES)),
        .action = CAIRN_IC_LOAD,
        .field = {.offset = offsetof(struct object, field), .width = sizeof(uint64_t)},
    };
    const struct cairn_ic_guard removed = guard_of((uint32_t)((number / 2 + SHAPES - 3) % SHAPES));
    enum cairn_status status = number % 2 == 0 ? cairn_ic_add(ic, &added, CAIRN_RELAXED, &error)
                                               : ic_remove(ic, &removed, CAIRN_RELAXED, &error);
    if (status != CAIRN_OK)
        ck_abort_msg("%s", error.message);
}

static void fill(void)
{
    struct cairn_error error = {0};
    for (uint32_t shape = SHAPES - 3; shape < SHAPES; shape++) {
        const struct cairn_ic_case added = {
            .guard = guard_of(shape), .action = CAIRN_IC_CONSTANT, .constant = 1000 + shape};
        ic_assert_done(cairn_ic_add(ic, &added, CAIRN_RELAXED, &error), error);
    }
}

struct sizes {
    size_t code;
    size_t data;
    size_t tables;
    size_t allocated;
    uint32_t slabs;
};

static struct sizes measure(void)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    return (struct sizes){
        .code = statistics.code_bytes,
        .data = statistics.data_bytes,
        .tables = statistics.table_bytes,
        .allocated = atomic_load(&allocations.outstanding_bytes),
        .slabs = statistics.slab_count,
    };
}

static void expect_same(const struct sizes *before, uint64_t changes)
{
    struct sizes now = measure();
    ck_assert_msg(now.code == before->code && now.data == before->data &&
                      now.tables == before->tables && now.allocated == before->allocated &&
                      now.slabs == before->slabs,
                  "after %" PRIu64 " changes there are %zu bytes of code, %zu of data, %zu of "
                  "tables, %zu allocated, %u slabs; there were %zu, %zu, %zu, %zu, %u",
                  changes, now.code, now.data, now.tables, now.allocated, now.slabs, before->code,
                  before->data, before->tables, before->allocated, before->slabs);
}

/* A quiescent point precedes each of them. */
static uint64_t change_for_ever(uint64_t count)
{
    struct sizes before = {0};
    uint64_t changes = 0;
    for (uint64_t points = 0; changes < count; points++) {
        for (int i = 0; i < BETWEEN_QUIESCENT_POINTS; i++)
            change(changes++);
        come_to_quiescent_point();
        if (points == WARM_UP)
            before = measure();
        if (points > WARM_UP)
            expect_same(&before, changes);
    }
    return changes;
}

static void load(enum cairn_code_mode mode)
{
    struct cairn_error error = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations),
                                                  .code_mode = mode};
    const struct cairn_ic_options ic_options = {.handler = missed, .user = &runner.wrong};
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    ic_load(&program, runtime, &get, 1, IC_FIRST_SITE);
    ic_assert_done(cairn_ic_create(program.sites[0], &ic_options, &ic, &error), error);
    fill();
}

static void unload(void)
{
    ic_unload(&program);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}

START_TEST(adding_and_removing_without_end_takes_no_memory)
{
    uint64_t wanted = support_read_number("CAIRN_TEST_CHANGES", ic_rounds(CHANGES));
    uint64_t least = 2 * WARM_UP * (uint64_t)BETWEEN_QUIESCENT_POINTS;
    if (site_modes[_i] == CAIRN_CODE_MODE_SINGLE)
        wanted /= SINGLE_MODE_IS_SLOWER;
    atomic_store(&runner.stops, false);
    load(site_modes[_i]);
    ck_assert_int_eq(pthread_create(&runner.thread, NULL, run, NULL), 0);
    uint64_t changes = change_for_ever(wanted < least ? least : wanted);
    atomic_store(&runner.stops, true);
    pthread_join(runner.thread, NULL);
    printf("check_llvm_ic_memory: %" PRIu64 " changes, %lu runs\n", changes, runner.runs);
    ck_assert_uint_eq(runner.wrong, 0);
    ck_assert_uint_gt(runner.runs, 0);
    unload();
}
END_TEST

/* ---- Many caches ---- */

enum { CACHES = IC_FUNCTIONS_MAX, RANDOM_CHANGES = 10000 };

static void create_cache(cairn_ic **ics, uint32_t place)
{
    struct cairn_error error = {0};
    const struct cairn_ic_options ic_options = {.handler = missed, .user = &runner.wrong};
    ic_assert_done(cairn_ic_create(program.sites[place], &ic_options, &ics[place], &error), error);
}

/* Creates or destroys a random cache, or adds or removes a random case. */
static void change_randomly(cairn_ic **ics, uint64_t *seed)
{
    struct cairn_error error = {0};
    uint32_t place = (uint32_t)ic_random(seed) % CACHES;
    uint32_t choice = (uint32_t)ic_random(seed) % 8;
    uint32_t shape = (uint32_t)ic_random(seed) % SHAPES;
    const struct cairn_ic_case added = {
        .guard = guard_of(shape),
        .action = CAIRN_IC_LOAD,
        .field = {.offset = offsetof(struct object, field), .width = sizeof(uint64_t)},
    };
    if (ics[place] == NULL) {
        create_cache(ics, place);
    } else if (choice == 0) {
        ic_assert_done(cairn_ic_destroy(ics[place], CAIRN_RELAXED, &error), error);
        ics[place] = NULL;
    } else if (choice < 5) {
        ic_assert_done(cairn_ic_add(ics[place], &added, CAIRN_RELAXED, &error), error);
    } else {
        enum cairn_status status = ic_remove(ics[place], &added.guard, CAIRN_RELAXED, &error);
        ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_NOT_FOUND);
    }
}

static void run_all(void)
{
    struct object object = {.shape = 1, .field = 4711};
    struct ic_access access;
    for (uint32_t i = 0; i < CACHES; i++) {
        uint64_t result;
        ic_set_pointer(&access, 0, &object);
        program.functions[i](&access);
        memcpy(&result, access.result, sizeof result);
        ck_assert_uint_eq(result, object.field);
    }
}

static void load_many(enum cairn_code_mode mode)
{
    static struct ic_function functions[CACHES];
    struct cairn_error error = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations),
                                                  .code_mode = mode};
    for (uint32_t i = 0; i < CACHES; i++)
        functions[i] = get;
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    ic_load(&program, runtime, functions, CACHES, IC_FIRST_SITE);
}

static void create_all(cairn_ic **ics)
{
    for (uint32_t i = 0; i < CACHES; i++)
        if (ics[i] == NULL)
            create_cache(ics, i);
}

static void destroy_all(cairn_ic **ics)
{
    for (uint32_t i = 0; i < CACHES; i++) {
        ck_assert_int_eq(cairn_ic_destroy(ics[i], CAIRN_RELAXED, NULL), CAIRN_OK);
        ics[i] = NULL;
    }
    cairn_runtime_quiesce(runtime);
}

/* The same changes are made twice, because the index of code by address keeps its tables. */
START_TEST(ten_thousand_random_changes_leave_nothing)
{
    static cairn_ic *ics[CACHES];
    const uint64_t seed = support_seed_or(0);
    struct sizes before = {0};
    load_many(site_modes[_i]);
    for (int round = 0; round < 2; round++) {
        uint64_t random = seed;
        for (int i = 0; i < RANDOM_CHANGES; i++) {
            change_randomly(ics, &random);
            if (i % 500 == 0)
                cairn_runtime_quiesce(runtime);
        }
        create_all(ics);
        run_all();
        destroy_all(ics);
        if (round == 0)
            before = measure();
        else
            expect_same(&before, RANDOM_CHANGES);
    }
    unload();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory of inline caches");
    TCase *tests = tcase_create("memory");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, adding_and_removing_without_end_takes_no_memory, site_first_mode(),
                        SITE_MODES);
    tcase_add_loop_test(tests, ten_thousand_random_changes_leave_nothing, site_first_mode(),
                        SITE_MODES);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
