/*
 * Tests of cairn_site_reserve: changes to targets out of reach, without a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "tests/site_support.h"

#include "site/veneers.h"
#include "tests/allocator_support.h"
#include "tests/code_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns how many veneers for calls the site has. */
static unsigned call_veneers(const cairn_site *site)
{
    unsigned count = 0;
    for (const struct site_veneer *veneer = site->veneers; veneer != NULL; veneer = veneer->next)
        count += veneer->branch == CAIRN_SITE_CALL;
    return count;
}

static cairn_runtime *create(struct cairn_allocator allocator)
{
    const struct cairn_runtime_options options = {.code_mode = CAIRN_CODE_MODE_DUAL,
                                                  .allocator = allocator};
    struct cairn_error error;
    cairn_runtime *runtime;
    ck_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    return runtime;
}

static void load(struct site_fixture *fixture, cairn_runtime *runtime)
{
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_calling_patchpoint(region);
    site_load_into(fixture, runtime, &shape);
}

static void reserve(cairn_site *site, uint32_t count)
{
    struct cairn_error error;
    ck_assert_done(cairn_site_reserve(site, count, &error), error);
}

static bool call(cairn_site *site, unsigned number)
{
    const void *target = number % 2 == 0 ? SITE_ONE : SITE_TWO;
    return cairn_site_call(site, target, CAIRN_RELAXED, NULL) == CAIRN_OK;
}

static void handle_signals_with(void (*handler)(int))
{
    const struct sigaction action = {.sa_handler = handler};
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

/* ---- A handler that interrupts Cairn ---- */

/* The site that a handler changes, and whether allocations for the list of a module's veneers are
 * interrupted: code memory's lock is held then. */
static struct {
    cairn_site *site;
    bool is_armed;
    unsigned handled;
} interrupted;

static void change_the_site(int signal)
{
    (void)signal;
    for (unsigned i = 0; i < 4; i++)
        support_expect(call(interrupted.site, i));
    interrupted.handled++;
}

static void *reallocate_interrupted(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (interrupted.is_armed && new_size != 0 && new_size != sizeof(struct site_veneer))
        raise(SIGUSR1);
    if (new_size != 0)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

START_TEST(a_handler_changes_a_reserved_site_while_its_thread_makes_veneers)
{
    struct site_fixture other, reserved;
    cairn_runtime *runtime = create((struct cairn_allocator){.reallocate = reallocate_interrupted});
    load(&other, runtime);
    load(&reserved, runtime);
    reserve(reserved.site, 1);
    interrupted.site = reserved.site;
    handle_signals_with(change_the_site);
    interrupted.is_armed = true;
    reserve(other.site, 100);
    interrupted.is_armed = false;
    ck_assert_uint_gt(interrupted.handled, 0);
    ck_assert(call(other.site, 0));
    ck_assert_int_eq(reserved.function(), 2);
    ck_assert_int_eq(other.function(), 1);
    cairn_module_retire(other.module);
    cairn_module_retire(reserved.module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 2);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Threads with handlers ---- */

enum { THREADS = 3, CHANGES = 30000 };

static struct {
    struct site_fixture fixture;
    atomic_uint wrong;
    atomic_bool is_stopped;
} storm;

static void change_in_handler(int signal)
{
    static atomic_uint number;
    (void)signal;
    if (!call(storm.fixture.site, atomic_fetch_add(&number, 1)))
        atomic_fetch_add(&storm.wrong, 1);
}

static void *change_often(void *unused)
{
    for (unsigned i = 0; i < CHANGES; i++) {
        bool is_done = i % 8 != 7 ? call(storm.fixture.site, i)
                                  : cairn_site_nop(storm.fixture.site, CAIRN_RELAXED, NULL) == 0;
        long result = storm.fixture.function();
        if (!is_done || result < 0 || result > 2)
            atomic_fetch_add(&storm.wrong, 1);
    }
    return unused;
}

static void send_signals(const pthread_t *threads)
{
    while (!atomic_load(&storm.is_stopped))
        for (int i = 0; i < THREADS; i++)
            pthread_kill(threads[i], SIGUSR1);
}

static void *join_all(void *threads)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(((pthread_t *)threads)[i], NULL);
    atomic_store(&storm.is_stopped, true);
    return NULL;
}

/* Each thread makes a change, and its handler makes one that interrupts it. */
START_TEST(as_many_threads_and_handlers_as_reserved_make_no_veneer)
{
    pthread_t threads[THREADS], joining;
    load(&storm.fixture, create((struct cairn_allocator){0}));
    reserve(storm.fixture.site, 2 * THREADS);
    unsigned reserved = call_veneers(storm.fixture.site);
    handle_signals_with(change_in_handler);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, change_often, NULL), 0);
    ck_assert_int_eq(pthread_create(&joining, NULL, join_all, threads), 0);
    send_signals(threads);
    pthread_join(joining, NULL);
    ck_assert_uint_eq(storm.wrong, 0);
    ck_assert_uint_eq(call_veneers(storm.fixture.site), reserved);
    site_unload(&storm.fixture);
}
END_TEST

/* ---- How many ---- */

START_TEST(reserving_as_many_again_makes_none)
{
    struct site_fixture fixture;
    load(&fixture, create((struct cairn_allocator){0}));
    ck_assert(call(fixture.site, 0));
    reserve(fixture.site, 5);
    unsigned reserved = call_veneers(fixture.site);
    ck_assert_uint_eq(reserved, 6);
    reserve(fixture.site, 5);
    reserve(fixture.site, 2);
    ck_assert_uint_eq(call_veneers(fixture.site), reserved);
    ck_assert_int_eq(fixture.function(), 1);
    site_unload(&fixture);
}
END_TEST

START_TEST(veneers_that_were_made_before_memory_ran_out_are_kept)
{
    struct support_allocator counting = {0};
    struct site_fixture fixture;
    struct cairn_error error;
    load(&fixture, create(support_counting(&counting)));
    reserve(fixture.site, 1);
    counting.fail_at = counting.calls + 3;
    ck_assert_int_eq(cairn_site_reserve(fixture.site, 100, &error), CAIRN_ERROR_MEMORY);
    counting.fail_at = 0;
    ck_assert_uint_gt(call_veneers(fixture.site), 2);
    reserve(fixture.site, 100);
    ck_assert_uint_eq(call_veneers(fixture.site), 101);
    ck_assert(call(fixture.site, 1));
    ck_assert_int_eq(fixture.function(), 2);
    site_unload(&fixture);
    ck_assert_uint_eq(counting.outstanding_bytes, 0);
}
END_TEST

/* In the child, a veneer may be taken by a thread that it does not have. */
START_TEST(a_child_reserves_again)
{
    struct site_fixture fixture;
    struct site_veneer *taken;
    int result;
    load(&fixture, create((struct cairn_allocator){0}));
    reserve(fixture.site, 1);
    ck_assert_int_eq(veneers_take(fixture.site, CAIRN_SITE_CALL, &taken, NULL), CAIRN_OK);
    pid_t child = fork();
    if (child == 0) {
        bool is_done = cairn_site_reserve(fixture.site, 1, NULL) == CAIRN_OK;
        unsigned reserved = call_veneers(fixture.site);
        is_done &= call(fixture.site, 0) && call(fixture.site, 1) && fixture.function() == 2;
        _exit(is_done && reserved == 3 && call_veneers(fixture.site) == 3 ? 0 : 1);
    }
    waitpid(child, &result, 0);
    ck_assert_int_eq(result, 0);
    veneers_release(taken);
    site_unload(&fixture);
}
END_TEST

/* ---- Misuse ---- */

START_TEST(a_site_that_is_not_live_is_refused)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    struct site_shape shape = site_null_patchpoint(region, 1);
    shape.byte_count = 1;
    shape.publish = true;
    site_load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
    ck_assert_int_eq(cairn_site_reserve(fixture.site, 1, &error), CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(cairn_site_reserve(NULL, 1, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "`site` is NULL"));
    site_unload(&fixture);
}
END_TEST

START_TEST(a_single_mapping_is_refused)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_calling_patchpoint(region);
    site_load(&fixture, CAIRN_CODE_MODE_SINGLE, &shape);
    ck_assert_int_eq(cairn_site_reserve(fixture.site, 1, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "CAIRN_CODE_MODE_DUAL"));
    site_unload(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reserved veneers");
    TCase *tests = tcase_create("sites");
    if (site_first_mode() == 0) {
        tcase_add_test(tests, a_handler_changes_a_reserved_site_while_its_thread_makes_veneers);
        tcase_add_test(tests, as_many_threads_and_handlers_as_reserved_make_no_veneer);
        tcase_add_test(tests, reserving_as_many_again_makes_none);
        tcase_add_test(tests, veneers_that_were_made_before_memory_ran_out_are_kept);
        tcase_add_test(tests, a_child_reserves_again);
        tcase_add_test(tests, a_site_that_is_not_live_is_refused);
    }
    tcase_add_test(tests, a_single_mapping_is_refused);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
