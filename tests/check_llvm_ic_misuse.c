/*
 * Tests of plausible misuse of inline caches: using a destroyed cache, patching a site that has a
 * cache, changing a cache in a visitor. Each call returns a status and changes nothing. Other tests
 * check the caches after a barrier has failed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"
#include "tests/barrier_support.h"
#include "tests/ic_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SITES = 2, ANSWER = 4711 };

static cairn_runtime *runtime;
static struct ic_program program;
static cairn_ic *caches[SITES];
static struct ic_access access_0;

static unsigned misses;
static void (*also)(struct cairn_ic_miss *miss);

static void missed(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_value value = cairn_value_of_integer(64, ANSWER);
    (void)user;
    misses++;
    if (also != NULL)
        also(miss);
    ck_assert_ok(cairn_ic_return(miss, &value, NULL));
}

static const struct cairn_ic_options options = {.handler = missed, .counts_hits = true};

static void set_up(void)
{
    struct cairn_error error = {0};
    const struct ic_function get = {.calling_convention = CAIRN_CALLING_CONVENTION_C,
                                    .result = INTEGER(64),
                                    .operand_count = 1,
                                    .operands = {POINTER}};
    const struct ic_function functions[SITES] = {get, get};
    misses = 0;
    also = NULL;
    ic_assert_done(cairn_runtime_create(NULL, &runtime, &error), error);
    ic_load(&program, runtime, functions, SITES, IC_FIRST_SITE);
    for (int i = 0; i < SITES; i++)
        ic_assert_done(cairn_ic_create(program.sites[i], &options, &caches[i], &error), error);
}

static void tear_down(void)
{
    ic_unload(&program);
    cairn_runtime_quiesce(runtime);
    cairn_runtime_destroy(runtime);
}

static struct cairn_ic_case constant_case(uint32_t shape)
{
    return (struct cairn_ic_case){.guard = {.width = sizeof(uint32_t), .key = shape},
                                  .action = CAIRN_IC_CONSTANT,
                                  .constant = 100 + shape};
}

static void add(int index, uint32_t shape)
{
    struct cairn_error error = {0};
    const struct cairn_ic_case added = constant_case(shape);
    ic_assert_done(cairn_ic_add(caches[index], &added, CAIRN_SYNC, &error), error);
}

static uint64_t run(int index, uint32_t shape)
{
    uint64_t result;
    uint32_t object[4] = {shape};
    ic_set_pointer(&access_0, 0, object);
    memset(access_0.result, 0, sizeof access_0.result);
    program.functions[index](&access_0);
    memcpy(&result, access_0.result, sizeof result);
    return result;
}

static void check(int index, uint32_t shape, bool hits)
{
    unsigned before = misses;
    ck_assert_uint_eq(run(index, shape), hits ? 100 + shape : ANSWER);
    ck_assert_uint_eq(misses, before + !hits);
}

static void destroy(int index)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_destroy(caches[index], CAIRN_SYNC, &error), error);
}

/* Asserts that every function that changes the cache, or would change it, returns this status. */
static void expect_all(cairn_ic *ic, enum cairn_status status)
{
    struct cairn_error error;
    const struct cairn_ic_case added = constant_case(9);
    ck_assert_int_eq(cairn_ic_add(ic, &added, CAIRN_RELAXED, &error), status);
    ck_assert_int_eq(cairn_ic_add(ic, &added, CAIRN_SYNC, &error), status);
    ck_assert_int_eq(ic_remove(ic, &added.guard, CAIRN_RELAXED, &error), status);
    ck_assert_int_eq(ic_reset(ic, CAIRN_RELAXED, &error), status);
    ck_assert_int_eq(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), status);
    ck_assert_int_eq(cairn_ic_destroy(ic, CAIRN_SYNC, &error), status);
    ck_assert_uint_gt(strlen(error.message), 10);
}

/* ---- A cache that is destroyed ---- */

START_TEST(a_destroyed_cache_has_a_state_and_refuses_every_change)
{
    struct cairn_ic_description description;
    add(0, 1);
    destroy(0);
    expect_all(caches[0], CAIRN_ERROR_STATE);
    cairn_ic_describe(caches[0], NULL, 0, &description);
    ck_assert_int_eq(description.state, CAIRN_IC_DESTROYED);
    ck_assert_uint_eq(description.case_count, 0);
    ck_assert_uint_eq(description.code_bytes, 0);
    ck_assert_int_eq(cairn_ic_state(caches[0]), CAIRN_IC_DESTROYED);
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_DESTROYED), "destroyed");
    ck_assert_uint_eq(ic_case_count(caches[0]), 0);
    ck_assert_ptr_eq(description.site, program.sites[0]);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    run(0, 1);
    ck_assert_uint_eq(misses, 0);
    add(1, 1);
    check(1, 1, true);
}
END_TEST

START_TEST(a_list_that_names_a_destroyed_cache_changes_nothing)
{
    const struct cairn_ic_case added = constant_case(9);
    const struct cairn_ic_change changes[] = {ic_adding(caches[1], &added),
                                              ic_adding(caches[0], &added)};
    destroy(0);
    ck_assert_int_eq(cairn_ics_change(changes, 2, CAIRN_SYNC, NULL), CAIRN_ERROR_STATE);
    ck_assert_uint_eq(ic_case_count(caches[1]), 0);
    ck_assert_ok(cairn_ics_change(changes, 1, CAIRN_SYNC, NULL));
    check(1, 9, true);
}
END_TEST

/* The cache is destroyed as if by another thread. */
static void destroy_and_add(struct cairn_ic_miss *miss)
{
    const struct cairn_ic_case added = constant_case(1);
    ck_assert_ok(cairn_ic_destroy(miss->ic, CAIRN_SYNC, NULL));
    ck_assert_int_eq(cairn_ic_add(miss->ic, &added, CAIRN_RELAXED, NULL), CAIRN_ERROR_STATE);
    expect_all(miss->ic, CAIRN_ERROR_STATE);
}

START_TEST(a_handler_that_adds_to_a_cache_that_was_destroyed_is_refused)
{
    also = destroy_and_add;
    check(0, 1, false);
    also = NULL;
    cairn_runtime_quiesce(runtime);
    run(0, 1);
    ck_assert_uint_eq(misses, 1);
}
END_TEST

static void replace_cache(struct cairn_ic_miss *miss)
{
    const struct cairn_ic_case added = constant_case(1);
    struct cairn_ic_description description;
    cairn_ic_describe(miss->ic, NULL, 0, &description);
    ck_assert_ok(cairn_ic_destroy(miss->ic, CAIRN_RELAXED, NULL));
    ck_assert_ok(cairn_ic_create(description.site, &options, &caches[0], NULL));
    ck_assert_ok(cairn_ic_add(caches[0], &added, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(cairn_ic_state(miss->ic), CAIRN_IC_DESTROYED);
}

START_TEST(a_handler_may_give_the_site_another_cache)
{
    also = replace_cache;
    check(0, 1, false);
    check(0, 1, true);
    check(0, 1, true);
}
END_TEST

START_TEST(a_cache_of_a_retired_module_refuses_changes_and_is_destroyed)
{
    struct cairn_error error;
    struct cairn_site_description description;
    const struct cairn_ic_case added = constant_case(1);
    add(0, 1);
    cairn_site_describe(program.sites[0], &description);
    cairn_module *module = record_module(description.record);
    cairn_module_retire(module);
    ck_assert_int_eq(cairn_ic_add(caches[0], &added, CAIRN_RELAXED, &error), CAIRN_ERROR_STATE);
    ck_assert_int_eq(ic_reset(caches[0], CAIRN_RELAXED, &error), CAIRN_ERROR_STATE);
    check(0, 1, true);
    ck_assert_ok(cairn_ic_destroy(caches[0], CAIRN_SYNC, &error));
    expect_all(caches[0], CAIRN_ERROR_STATE);
}
END_TEST

/* ---- A site that has a cache ---- */

static void target(void) {}
#define TARGET ((const void *)(uintptr_t)target)

static void expect_no_patch(cairn_site *site)
{
    for (int i = CAIRN_RELAXED; i <= CAIRN_QUIESCENT; i++) {
        enum cairn_strength strength = (enum cairn_strength)i;
        ck_assert_int_eq(cairn_site_call(site, TARGET, strength, NULL), CAIRN_ERROR_STATE);
        ck_assert_int_eq(cairn_site_jump(site, TARGET, strength, NULL), CAIRN_ERROR_STATE);
        ck_assert_int_eq(cairn_site_nop(site, strength, NULL), CAIRN_ERROR_STATE);
        ck_assert_int_eq(cairn_site_restore(site, strength, NULL), CAIRN_ERROR_STATE);
    }
    for (int i = CAIRN_SITE_CALL; i <= CAIRN_SITE_ORIGINAL; i++) {
        const struct cairn_site_change change = {site, (enum cairn_site_state)i, TARGET};
        ck_assert_int_eq(cairn_sites_change(&change, 1, CAIRN_RELAXED, NULL), CAIRN_ERROR_STATE);
    }
}

START_TEST(a_site_that_has_a_cache_is_not_patched)
{
    cairn_ic *second;
    struct cairn_error error;
    add(0, 1);
    expect_no_patch(program.sites[0]);
    ck_assert_int_eq(cairn_site_nop(program.sites[0], CAIRN_RELAXED, &error), CAIRN_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(error.message, "inline cache"));
    ck_assert_int_eq(cairn_ic_create(program.sites[0], &options, &second, NULL),
                     CAIRN_ERROR_CONFLICT);
    check(0, 1, true);
    check(0, 2, false);
    destroy(0);
    ck_assert_ok(cairn_site_nop(program.sites[0], CAIRN_SYNC, NULL));
    ck_assert_ok(cairn_ic_create(program.sites[0], &options, &caches[0], NULL));
    check(0, 1, false);
}
END_TEST

START_TEST(a_list_of_changes_is_refused_if_one_of_its_sites_has_a_cache)
{
    struct cairn_site_description description;
    destroy(0);
    destroy(1);
    const struct cairn_site_change changes[] = {
        {program.sites[0], CAIRN_SITE_CALL, TARGET},
        {program.sites[1], CAIRN_SITE_CALL, TARGET},
    };
    ck_assert_ok(cairn_ic_create(program.sites[1], &options, &caches[1], NULL));
    ck_assert_int_eq(cairn_sites_change(changes, 2, CAIRN_SYNC, NULL), CAIRN_ERROR_STATE);
    cairn_site_describe(program.sites[0], &description);
    ck_assert_int_eq(description.state, CAIRN_SITE_NOP);
    check(1, 1, false);
    ck_assert_ok(cairn_ic_destroy(caches[1], CAIRN_RELAXED, NULL));
    ck_assert_ok(cairn_sites_change(changes, 2, CAIRN_SYNC, NULL));
}
END_TEST

/* ---- A site whose cache comes and goes ---- */

/* On a busy machine, the time ends it first. */
enum { COMINGS = 40000, COMINGS_BETWEEN_QUIESCENCE = 256, COMING_SECONDS = 5 };

/* Creates and destroys a cache of a site many times. */
static struct coming {
    pthread_t thread;
    cairn_site *site;
    _Atomic bool is_over;
    unsigned displaced; /* caches that did not keep their site */
    struct cairn_error error;
} coming;

static uint64_t target_of(const cairn_site *site)
{
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    return description.target;
}

/* Check's assertions take a lock, so threads do not use them. No code of the program is executed
 * meanwhile. */
static void *come_and_go(void *user)
{
    enum cairn_status status = CAIRN_OK;
    time_t end = time(NULL) + COMING_SECONDS;
    (void)user;
    for (int i = 0; i < COMINGS && status == CAIRN_OK && time(NULL) < end; i++) {
        cairn_ic *ic;
        status = cairn_ic_create(coming.site, &options, &ic, &coming.error);
        if (status != CAIRN_OK)
            break;
        uint64_t code = target_of(coming.site);
        sched_yield();
        coming.displaced += target_of(coming.site) != code;
        status = cairn_ic_destroy(ic, CAIRN_RELAXED, &coming.error);
        if (i % COMINGS_BETWEEN_QUIESCENCE == 0)
            cairn_runtime_quiesce(runtime);
    }
    atomic_store(&coming.is_over, true);
    return NULL;
}

static void begin_coming(cairn_site *site)
{
    coming.site = site;
    ck_assert_int_eq(pthread_create(&coming.thread, NULL, come_and_go, NULL), 0);
}

static void end_coming(void)
{
    pthread_join(coming.thread, NULL);
    ck_assert_msg(coming.error.status == CAIRN_OK, "%s", coming.error.message);
}

/* Patches that overlap cairn_ic_create may displace the cache, but do no other harm. */
START_TEST(a_site_whose_cache_is_created_and_destroyed_is_patched_or_refuses_with_its_reason)
{
    struct cairn_error error;
    destroy(1);
    begin_coming(program.sites[1]);
    while (!atomic_load(&coming.is_over)) {
        enum cairn_status status = cairn_site_nop(program.sites[1], CAIRN_RELAXED, &error);
        if (status == CAIRN_OK)
            continue;
        ck_assert_int_eq(status, CAIRN_ERROR_STATE);
        ck_assert_ptr_nonnull(strstr(error.message, "inline cache"));
    }
    end_coming();
}
END_TEST

/* ---- Invalidation ---- */

static void answer_exit(struct cairn_exit_call *call, void *user)
{
    struct cairn_value value = cairn_value_of_integer(64, 77);
    (void)user;
    ck_assert_ok(cairn_exit_continue(call, &value, NULL));
}

/* For a function or module, sites with caches are skipped; in a list of sites, they are refused. */
START_TEST(an_invalidation_leaves_sites_with_caches_alone)
{
    struct cairn_site_description description;
    cairn_invalidation *invalidation;
    cairn_exit *exit;
    destroy(1);
    add(0, 1);
    cairn_site_describe(program.sites[0], &description);
    ck_assert_ok(cairn_exit_create(runtime, answer_exit, NULL, &exit, NULL));
    struct cairn_invalidation_options wanted = {.module = record_module(description.record),
                                                .target = cairn_exit_target(exit)};
    ck_assert_ok(cairn_invalidate(runtime, &wanted, CAIRN_RELAXED, &invalidation, NULL));
    struct cairn_site_description invalid;
    cairn_site_describe(program.sites[1], &invalid);
    ck_assert_uint_eq(invalid.target, (uintptr_t)cairn_exit_target(exit));
    check(0, 1, true);
    ck_assert_uint_eq(run(1, 1), 77);
    ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, NULL));
    cairn_invalidation_destroy(invalidation);
    wanted = (struct cairn_invalidation_options){
        .sites = program.sites, .site_count = SITES, .target = cairn_exit_target(exit)};
    ck_assert_int_eq(cairn_invalidate(runtime, &wanted, CAIRN_RELAXED, &invalidation, NULL),
                     CAIRN_ERROR_STATE);
    check(0, 1, true);
    wanted = (struct cairn_invalidation_options){.function = description.address,
                                                 .target = cairn_exit_target(exit)};
    ck_assert_int_eq(cairn_invalidate(runtime, &wanted, CAIRN_RELAXED, &invalidation, NULL),
                     CAIRN_ERROR_CONFLICT);
    cairn_exit_destroy(exit);
}
END_TEST

START_TEST(an_invalidation_does_not_change_a_cache_that_is_created_and_destroyed)
{
    struct cairn_site_description description;
    struct cairn_error error;
    cairn_exit *exit;
    destroy(0);
    destroy(1);
    cairn_site_describe(program.sites[0], &description);
    ck_assert_ok(cairn_exit_create(runtime, answer_exit, NULL, &exit, NULL));
    const struct cairn_invalidation_options wanted = {.module = record_module(description.record),
                                                      .target = cairn_exit_target(exit)};
    begin_coming(program.sites[1]);
    while (!atomic_load(&coming.is_over)) {
        cairn_invalidation *invalidation;
        ic_assert_done(cairn_invalidate(runtime, &wanted, CAIRN_RELAXED, &invalidation, &error),
                       error);
        ic_assert_done(cairn_invalidation_undo(invalidation, CAIRN_RELAXED, &error), error);
        cairn_invalidation_destroy(invalidation);
    }
    end_coming();
    ck_assert_uint_eq(coming.displaced, 0);
    cairn_exit_destroy(exit);
}
END_TEST

/* A site that gets a cache while it is invalidated keeps the cache. */
START_TEST(taking_an_invalidation_back_leaves_a_new_cache_alone)
{
    cairn_invalidation *invalidation;
    cairn_exit *exit;
    destroy(0);
    ck_assert_ok(cairn_exit_create(runtime, answer_exit, NULL, &exit, NULL));
    const struct cairn_invalidation_options wanted = {
        .sites = program.sites, .site_count = 1, .target = cairn_exit_target(exit)};
    ck_assert_ok(cairn_invalidate(runtime, &wanted, CAIRN_RELAXED, &invalidation, NULL));
    ck_assert_ok(cairn_ic_create(program.sites[0], &options, &caches[0], NULL));
    add(0, 1);
    ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, NULL));
    check(0, 1, true);
    cairn_invalidation_destroy(invalidation);
    cairn_exit_destroy(exit);
}
END_TEST

/* ---- Visitors ---- */

static unsigned visits;

static bool count_visit(const struct cairn_ic_description *description, void *user)
{
    (void)description;
    ++*(unsigned *)user;
    return true;
}

static bool do_all(const struct cairn_ic_description *description, void *user)
{
    cairn_ic *second;
    const struct cairn_ic_change *change = user;
    unsigned nested = 0;
    struct cairn_ic_description again;
    visits++;
    expect_all(description->ic, CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_ics_change(change, 1, CAIRN_SYNC, NULL), CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_ic_create(description->site, &options, &second, NULL),
                     CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_site_nop(description->site, CAIRN_SYNC, NULL), CAIRN_ERROR_STATE);
    cairn_ic_describe(description->ic, NULL, 0, &again);
    ck_assert_int_eq(again.state, description->state);
    ck_assert_int_eq(cairn_ic_state(description->ic), description->state);
    ck_assert_uint_eq(ic_case_count(description->ic), description->case_count);
    ck_assert_ptr_eq(cairn_site_ic(description->site), description->ic);
    cairn_runtime_visit_ics(runtime, count_visit, &nested);
    ck_assert_uint_eq(nested, SITES);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    run((int)visits - 1, 1);
    return true;
}

START_TEST(a_visitor_that_changes_caches_is_refused)
{
    const struct cairn_ic_case added = constant_case(9);
    add(0, 1);
    add(1, 1);
    struct cairn_ic_change change = ic_adding(caches[0], &added);
    visits = 0;
    cairn_runtime_visit_ics(runtime, do_all, &change);
    ck_assert_uint_eq(visits, SITES);
    ck_assert_ok(cairn_ics_change(&change, 1, CAIRN_SYNC, NULL));
    check(0, 9, true);
    check(1, 9, false);
}
END_TEST

static bool give_up_share(const struct cairn_ic_description *description, void *user)
{
    (void)description;
    cairn_runtime_destroy(user);
    visits++;
    return false;
}

/* The last reference except the visit's own. */
START_TEST(a_visitor_may_give_up_the_runtime)
{
    visits = 0;
    ic_unload(&program);
    cairn_runtime_visit_ics(runtime, give_up_share, runtime);
    ck_assert_uint_le(visits, 1);
    if (visits == 0)
        cairn_runtime_destroy(runtime);
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    const struct ic_function get = {.calling_convention = CAIRN_CALLING_CONVENTION_C,
                                    .result = INTEGER(64),
                                    .operand_count = 1,
                                    .operands = {POINTER}};
    ic_load(&program, runtime, &get, 1, IC_FIRST_SITE);
}
END_TEST

/* ---- Barriers that are refused ---- */

/* Meanwhile the cache is locked, and its site still belongs to it. */
static bool refuse(void *user)
{
    bool *is_seen = user;
    *is_seen = true;
    expect_no_patch(program.sites[0]);
    return false;
}

/* Asserts that the change's barrier was refused. */
#define ck_assert_refused(status)                                                                  \
    do {                                                                                           \
        is_seen = false;                                                                           \
        support_set_barrier((struct support_barrier){refuse, &is_seen});                           \
        ck_assert_int_eq((status), CAIRN_ERROR_SYSTEM);                                            \
        support_set_barrier((struct support_barrier){0});                                          \
        ck_assert(is_seen);                                                                        \
    } while (0)

START_TEST(changes_whose_barrier_is_refused_have_been_made)
{
    bool is_seen;
    const struct cairn_ic_case third = constant_case(3);
    const struct cairn_ic_case first = constant_case(1);
    add(0, 1);
    add(0, 2);
    add(1, 1);
    for (int times = 0; times < 2; times++) {
        ck_assert_refused(cairn_ic_add(caches[0], &third, CAIRN_SYNC, NULL));
        ck_assert_uint_eq(ic_case_count(caches[0]), 3);
        check(0, 3, true);
    }
    ck_assert_ok(cairn_ic_add(caches[0], &third, CAIRN_SYNC, NULL));
    ck_assert_refused(ic_remove(caches[0], &first.guard, CAIRN_SYNC, NULL));
    check(0, 1, false);
    check(0, 2, true);
    const struct cairn_ic_change changes[] = {ic_adding(caches[1], &third),
                                              ic_resetting(caches[0])};
    ck_assert_refused(cairn_ics_change(changes, 2, CAIRN_SYNC, NULL));
    check(0, 2, false);
    check(1, 3, true);
    check(1, 1, true);
    ck_assert_refused(cairn_ic_destroy(caches[1], CAIRN_SYNC, NULL));
    ck_assert_int_eq(cairn_ic_state(caches[1]), CAIRN_IC_DESTROYED);
    ck_assert_ptr_null(cairn_site_ic(program.sites[1]));
    ck_assert_int_eq(cairn_ic_destroy(caches[1], CAIRN_SYNC, NULL), CAIRN_ERROR_STATE);
    ck_assert_ok(cairn_site_restore(program.sites[1], CAIRN_SYNC, NULL));
}
END_TEST

int main(void)
{
    const TTest *all[] = {
        a_destroyed_cache_has_a_state_and_refuses_every_change,
        a_list_that_names_a_destroyed_cache_changes_nothing,
        a_handler_that_adds_to_a_cache_that_was_destroyed_is_refused,
        a_handler_may_give_the_site_another_cache,
        a_cache_of_a_retired_module_refuses_changes_and_is_destroyed,
        a_site_that_has_a_cache_is_not_patched,
        a_list_of_changes_is_refused_if_one_of_its_sites_has_a_cache,
        a_site_whose_cache_is_created_and_destroyed_is_patched_or_refuses_with_its_reason,
        an_invalidation_leaves_sites_with_caches_alone,
        an_invalidation_does_not_change_a_cache_that_is_created_and_destroyed,
        taking_an_invalidation_back_leaves_a_new_cache_alone,
        a_visitor_that_changes_caches_is_refused,
        a_visitor_may_give_up_the_runtime,
        changes_whose_barrier_is_refused_have_been_made,
    };
    Suite *suite = suite_create("misuse of inline caches");
    TCase *tests = tcase_create("misuse");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tcase_add_test(tests, all[i]);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
