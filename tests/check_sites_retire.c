/*
 * Tests of modules that are retired while they are still in use: by another thread, by a handler of
 * one of their exits, or by mistake.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "runtime/module.h"
#include "tests/machine.h"
#include "tests/site_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { REGION = 16 };

static struct site_shape null_patchpoint(void)
{
    static uint8_t region[SITE_REGION_MAX];
    return site_null_patchpoint(region, REGION);
}

static cairn_exit *new_exit(cairn_runtime *runtime, cairn_exit_handler *handler, void *user)
{
    struct cairn_error error;
    cairn_exit *made;
    ck_assert_done(cairn_exit_create(runtime, handler, user, &made, &error), error);
    return made;
}

static void answer_nothing(struct cairn_ic_miss *miss, void *user)
{
    (void)miss;
    (void)user;
}

static void go_on(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

/* ---- Invalidating a module that is being retired ---- */

static struct {
    cairn_runtime *runtime;
    const void *target;
    _Atomic uint64_t address; /* code of the latest module's function */
    atomic_bool stop;
    atomic_int holds; /* nonzero while the invalidating thread is in an invalidation */
    atomic_bool pause;
    atomic_ulong tries;
    atomic_ulong counts[CAIRN_ERROR_STATE + 1];
} race;

static void invalidate_once(void)
{
    const struct cairn_invalidation_options options = {.function = atomic_load(&race.address),
                                                       .target = race.target};
    cairn_invalidation *invalidation;
    enum cairn_status status =
        cairn_invalidate(race.runtime, &options, CAIRN_RELAXED, &invalidation, NULL);
    if (status == CAIRN_OK)
        cairn_invalidation_destroy(invalidation);
    if ((unsigned)status <= CAIRN_ERROR_STATE)
        atomic_fetch_add(&race.counts[status], 1);
    atomic_fetch_add(&race.tries, 1);
    sched_yield();
}

/* Waits until the other thread is in its next invalidation, or in the one after it. */
static void wait_for_a_try(unsigned spins)
{
    unsigned long before = atomic_load(&race.tries);
    while (atomic_load(&race.tries) < before + 2)
        continue;
    for (volatile unsigned i = 0; i < spins; i++)
        continue;
}

static void *invalidate_always(void *user)
{
    (void)user;
    while (!atomic_load(&race.stop)) {
        atomic_store(&race.holds, 1);
        if (!atomic_load(&race.pause))
            invalidate_once();
        atomic_store(&race.holds, 0);
        while (atomic_load(&race.pause) && !atomic_load(&race.stop))
            sched_yield();
    }
    return NULL;
}

/* Waits for a moment at which no thread is invalidating. */
static void quiesce(void)
{
    atomic_store(&race.pause, true);
    while (atomic_load(&race.holds) != 0)
        sched_yield();
    cairn_runtime_quiesce(race.runtime);
    atomic_store(&race.pause, false);
}

static unsigned long count_of(enum cairn_status status)
{
    return atomic_load(&race.counts[status]);
}

START_TEST(a_function_is_invalidated_while_its_module_is_retired)
{
    enum { MODULES = 300, BETWEEN = 64 };
    const struct site_shape shape = null_patchpoint();
    pthread_t thread;
    memset(&race, 0, sizeof race);
    race.runtime = site_runtime(site_modes[_i]);
    cairn_exit *exit = new_exit(race.runtime, go_on, NULL);
    race.target = cairn_exit_target(exit);
    atomic_store(&race.address, 16);
    ck_assert_int_eq(pthread_create(&thread, NULL, invalidate_always, NULL), 0);
    for (int i = 0; i < (_i == 0 ? MODULES : MODULES / 4); i++) {
        struct site_fixture fixture;
        site_load_into(&fixture, race.runtime, &shape);
        atomic_store(&race.address, (uintptr_t)fixture.code);
        wait_for_a_try((unsigned)i * 7 % 256);
        cairn_module_retire(fixture.module);
        if (i % BETWEEN == 0)
            quiesce();
    }
    atomic_store(&race.stop, true);
    pthread_join(thread, NULL);
    printf("invalidated %lu, not found %lu, taken %lu, retired %lu\n", count_of(CAIRN_OK),
           count_of(CAIRN_ERROR_NOT_FOUND), count_of(CAIRN_ERROR_CONFLICT),
           count_of(CAIRN_ERROR_STATE));
    ck_assert_uint_gt(count_of(CAIRN_OK), 0);
    cairn_exit_destroy(exit);
    cairn_runtime_quiesce(race.runtime);
    cairn_runtime_destroy(race.runtime);
}
END_TEST

/* ---- Sites of a retired module, until it is freed ---- */

START_TEST(a_site_of_a_retired_module_is_described_and_changed)
{
    struct site_fixture fixture;
    struct cairn_error error;
    cairn_invalidation *invalidation;
    cairn_ic *ic;
    const struct site_shape shape = null_patchpoint();
    site_load(&fixture, site_modes[_i], &shape);
    cairn_exit *exit = new_exit(fixture.runtime, go_on, NULL);
    cairn_module_retire(fixture.module);
    cairn_module_retire(fixture.module);
    ck_assert_int_eq(cairn_module_publish(fixture.module, &error), CAIRN_ERROR_STATE);
    ck_assert_done(cairn_site_call(fixture.site, SITE_ONE, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_done(cairn_site_nop(fixture.site, CAIRN_RELAXED, &error), error);
    const struct cairn_site_change change = {fixture.site, CAIRN_SITE_CALL, SITE_ONE};
    ck_assert_done(cairn_sites_change(&change, 1, CAIRN_SYNC, &error), error);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    const struct cairn_ic_options options = {.handler = answer_nothing};
    ck_assert_int_eq(cairn_ic_create(fixture.site, &options, &ic, &error), CAIRN_ERROR_STATE);
    const struct cairn_invalidation_options by_module = {.module = fixture.module,
                                                         .target = cairn_exit_target(exit)};
    ck_assert_done(
        cairn_invalidate(fixture.runtime, &by_module, CAIRN_RELAXED, &invalidation, &error), error);
    ck_assert_done(cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error), error);
    cairn_invalidation_destroy(invalidation);
    const struct cairn_invalidation_options by_function = {.function = (uintptr_t)fixture.code,
                                                           .target = cairn_exit_target(exit)};
    ck_assert_int_eq(
        cairn_invalidate(fixture.runtime, &by_function, CAIRN_RELAXED, &invalidation, &error),
        CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    ck_assert_int_eq(fixture.function(), 0);
    cairn_exit_destroy(exit);
    ck_assert_uint_eq(cairn_runtime_quiesce(fixture.runtime), 1);
    cairn_runtime_destroy(fixture.runtime);
}
END_TEST

START_TEST(an_invalidation_of_a_retired_module_is_undone)
{
    struct site_fixture fixture;
    struct cairn_error error;
    cairn_invalidation *invalidation;
    const struct site_shape shape = null_patchpoint();
    site_load(&fixture, site_modes[_i], &shape);
    cairn_exit *exit = new_exit(fixture.runtime, go_on, NULL);
    const struct cairn_invalidation_options options = {.module = fixture.module,
                                                       .target = cairn_exit_target(exit)};
    ck_assert_done(
        cairn_invalidate(fixture.runtime, &options, CAIRN_RELAXED, &invalidation, &error), error);
    cairn_module_retire(fixture.module);
    ck_assert_done(cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    cairn_exit_destroy(exit);
    ck_assert_uint_eq(cairn_runtime_quiesce(fixture.runtime), 1);
    cairn_invalidation_destroy(invalidation);
    cairn_runtime_destroy(fixture.runtime);
}
END_TEST

/* ---- Actions of filters and handlers ---- */

static struct site_fixture running;

static bool retire_what_is_invalidated(const struct cairn_site_description *site, void *user)
{
    (void)site;
    (void)user;
    cairn_module_retire(running.module);
    return true;
}

START_TEST(a_filter_may_retire_the_module)
{
    struct cairn_error error;
    cairn_invalidation *invalidation;
    const struct site_shape shape = null_patchpoint();
    site_load(&running, site_modes[_i], &shape);
    cairn_exit *exit = new_exit(running.runtime, go_on, NULL);
    const struct cairn_invalidation_options options = {.function = (uintptr_t)running.code,
                                                       .target = cairn_exit_target(exit),
                                                       .accepts = retire_what_is_invalidated};
    ck_assert_done(
        cairn_invalidate(running.runtime, &options, CAIRN_RELAXED, &invalidation, &error), error);
    cairn_invalidation_destroy(invalidation);
    ck_assert_int_eq(site_describe(running.site).state, CAIRN_SITE_CALL);
    cairn_exit_destroy(exit);
    ck_assert_uint_eq(cairn_runtime_quiesce(running.runtime), 1);
    cairn_runtime_destroy(running.runtime);
}
END_TEST

static unsigned handled;

/* Releases everything that the thread is using, and a reference to the runtime, of which the test
 * holds another one. */
static void give_all_up(struct cairn_exit_call *call, void *user)
{
    cairn_exit **exit = user;
    struct cairn_record record = call->record;
    handled++;
    cairn_module_retire(running.module);
    cairn_exit_destroy(*exit);
    cairn_exit_destroy(*exit);
    cairn_runtime_destroy(running.runtime);
    ck_assert_ptr_eq(record_module(record), running.module);
    ck_assert_int_eq(cairn_site_nop(cairn_record_site(record), CAIRN_RELAXED, NULL), CAIRN_OK);
}

START_TEST(a_handler_may_give_up_its_exit_its_module_and_a_share_of_the_runtime)
{
    struct cairn_error error;
    const struct site_shape shape = null_patchpoint();
    site_load(&running, site_modes[_i], &shape);
    cairn_exit *exit;
    ck_assert_done(cairn_exit_create(running.runtime, give_all_up, &exit, &exit, &error), error);
    ck_assert_done(cairn_site_call(running.site, cairn_exit_target(exit), CAIRN_SYNC, &error),
                   error);
    handled = 0;
    cairn_runtime_retain(running.runtime);
    running.function();
    ck_assert_uint_eq(handled, 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(running.runtime), 1);
    cairn_runtime_destroy(running.runtime);
}
END_TEST

/* The exit is unchanged until the quiescent point. */
START_TEST(a_site_may_call_a_destroyed_exit_until_the_quiescent_point)
{
    struct cairn_error error;
    const struct site_shape shape = null_patchpoint();
    site_load(&running, site_modes[_i], &shape);
    cairn_exit *exit = new_exit(running.runtime, go_on, NULL);
    ck_assert_done(cairn_site_call(running.site, cairn_exit_target(exit), CAIRN_SYNC, &error),
                   error);
    cairn_exit_destroy(exit);
    ck_assert_int_eq(running.function(), 0);
    ck_assert_done(cairn_site_nop(running.site, CAIRN_SYNC, &error), error);
    ck_assert_uint_eq(cairn_runtime_quiesce(running.runtime), 0);
    ck_assert_int_eq(running.function(), 0);
    site_unload(&running);
}
END_TEST

static void quiesce_in_handler(struct cairn_exit_call *call, void *user)
{
    (void)call;
    size_t *count = user;
    *count = cairn_runtime_quiesce(running.runtime);
}

/* The thread is not in any code that was retired. */
START_TEST(a_handler_may_reach_a_quiescent_point)
{
    struct cairn_error error;
    struct site_fixture other;
    size_t count = 99;
    const struct site_shape shape = null_patchpoint();
    site_load(&running, site_modes[_i], &shape);
    site_load_into(&other, running.runtime, &shape);
    cairn_exit *exit = new_exit(running.runtime, quiesce_in_handler, &count);
    ck_assert_done(cairn_site_call(running.site, cairn_exit_target(exit), CAIRN_SYNC, &error),
                   error);
    cairn_module_retire(other.module);
    ck_assert_int_eq(running.function(), 0);
    ck_assert_uint_eq(count, 1);
    cairn_exit_destroy(exit);
    cairn_module_retire(running.module);
    ck_assert_uint_eq(cairn_runtime_quiesce(running.runtime), 1);
    cairn_runtime_destroy(running.runtime);
}
END_TEST

/* ---- One ID in many modules ---- */

static cairn_module *load_undeclared(cairn_runtime *runtime)
{
    uint8_t bytes[SITE_CODE_BYTES];
    uint8_t *address;
    struct cairn_error error;
    const struct site_function function = {0, 1};
    const struct site_record record = {42, 0, 0, CAIRN_RECORD_UNDECLARED};
    const struct site_code code = {bytes, sizeof bytes, &function, 1, &record, 0};
    memset(bytes, 0, sizeof bytes);
    cairn_module *module = site_load_code(runtime, &code, &address);
    ck_assert_done(cairn_module_publish(module, &error), error);
    return module;
}

START_TEST(the_only_site_of_an_id_is_found_among_any_number_of_records)
{
    enum { MODULES = 100 };
    struct cairn_error error;
    struct site_fixture with_site;
    struct site_fixture second;
    struct site_shape shape = null_patchpoint();
    cairn_runtime *runtime = site_runtime(site_modes[SITE_MODES - 1]);
    for (int i = 0; i < MODULES; i++) {
        load_undeclared(runtime);
        if (i < 40)
            ck_assert_ptr_null(cairn_runtime_find_site(runtime, 42, &error));
        if (i < 40)
            ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
        if (i == 40)
            site_load_into(&with_site, runtime, &shape);
        if (i >= 40)
            ck_assert_ptr_eq(cairn_runtime_find_site(runtime, 42, &error), with_site.site);
    }
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 42, NULL, 0), MODULES + 1);
    site_load_into(&second, runtime, &shape);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 42, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_CONFLICT);
    cairn_module_retire(with_site.module);
    ck_assert_ptr_eq(cairn_runtime_find_site(runtime, 42, &error), second.site);
    cairn_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    const TTest *in_every_mode[] = {
        a_function_is_invalidated_while_its_module_is_retired,
        a_site_of_a_retired_module_is_described_and_changed,
        an_invalidation_of_a_retired_module_is_undone,
        a_filter_may_retire_the_module,
        a_handler_may_give_up_its_exit_its_module_and_a_share_of_the_runtime,
        a_site_may_call_a_destroyed_exit_until_the_quiescent_point,
        a_handler_may_reach_a_quiescent_point,
    };
    Suite *suite = suite_create("retire");
    TCase *tests = tcase_create("retire");
    tcase_set_timeout(tests, 120);
    for (size_t i = 0; i < sizeof in_every_mode / sizeof *in_every_mode; i++)
        tcase_add_loop_test(tests, in_every_mode[i], site_first_mode(), SITE_MODES);
    tcase_add_test(tests, the_only_site_of_an_id_is_found_among_any_number_of_records);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
