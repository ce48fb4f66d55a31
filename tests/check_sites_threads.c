/*
 * Sites that are patched while threads and signal handlers run through them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

/* ---- Threads ---- */

enum { THREADS = 3, PATCHES = 20000 };

struct runner {
    pthread_t thread;
    long (*function)(void);
    _Atomic long *promised; /* after a synchronised patch: the only result; -1: any */
    atomic_bool *stop;
    atomic_ulong wrong;
    atomic_ulong runs;
};

static void *run(void *argument)
{
    struct runner *runner = argument;
    while (!atomic_load(runner->stop)) {
        long promised = atomic_load(runner->promised);
        long result = runner->function();
        bool still = atomic_load(runner->promised) == promised;
        if (result < 0 || result > 2 || (promised >= 0 && still && result != promised))
            atomic_fetch_add(&runner->wrong, 1);
        atomic_fetch_add(&runner->runs, 1);
    }
    return NULL;
}

static void patch_at_random(const struct site_fixture *fixture, _Atomic long *promised, int patches)
{
    for (int i = 0; i < patches; i++) {
        long choice = i * 7 % 5;
        bool sync = i % 16 == 0;
        enum cairn_strength strength = sync ? CAIRN_SYNC : CAIRN_RELAXED;
        atomic_store(promised, -1);
        enum cairn_status status = CAIRN_OK;
        if (choice == 0)
            status = cairn_site_nop(fixture->site, strength, NULL);
        else if (choice == 3)
            status = cairn_site_jump(fixture->site, fixture->tail, strength, NULL);
        else
            status = cairn_site_call(fixture->site, choice % 2 == 1 ? SITE_ONE : SITE_TWO, strength,
                                     NULL);
        ck_assert_int_eq(status, CAIRN_OK);
        if (sync)
            atomic_store(promised, choice == 0 || choice == 3 ? 0 : choice % 2 == 1 ? 1 : 2);
    }
}

START_TEST(threads_see_the_old_or_the_new_and_after_a_barrier_the_new)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    static struct runner runners[THREADS];
    static _Atomic long promised;
    static atomic_bool stop;
    const struct site_shape shape = site_patchpoint(region, 16);
    site_load(&fixture, site_modes[_i], &shape);
    atomic_store(&promised, -1);
    for (int i = 0; i < THREADS; i++) {
        runners[i] =
            (struct runner){.function = fixture.function, .promised = &promised, .stop = &stop};
        ck_assert_int_eq(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    }
    patch_at_random(&fixture, &promised, _i == 0 ? PATCHES : PATCHES / 10);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(runners[i].thread, NULL);
        ck_assert_uint_eq(runners[i].wrong, 0);
        ck_assert_uint_gt(runners[i].runs, 0);
    }
    site_unload(&fixture);
}
END_TEST

/* ---- Signals ---- */

static struct {
    const struct site_fixture *fixture;
    bool may_patch;
    atomic_ulong runs;
    atomic_ulong wrong;
} timer;

static bool patch_in_signal(void)
{
    const void *target = atomic_load(&timer.runs) % 2 == 0 ? SITE_ONE : SITE_TWO;
    return cairn_site_call(timer.fixture->site, target, CAIRN_RELAXED, NULL) == CAIRN_OK;
}

/* What a profiler's handler does: runs into the site, looks it up, describes it. */
static void run_in_signal(int signal)
{
    (void)signal;
    struct cairn_record record;
    struct cairn_site_description description;
    long result = timer.fixture->function();
    cairn_site_describe(timer.fixture->site, &description);
    bool found = cairn_runtime_find_address(timer.fixture->runtime, description.address, &record) &&
                 cairn_record_site(record) == timer.fixture->site;
    bool patched = !timer.may_patch || patch_in_signal();
    atomic_fetch_add(&timer.runs, 1);
    if (result < 0 || result > 2 || !found || !patched)
        atomic_fetch_add(&timer.wrong, 1);
}

static void patch_under_the_timer(const struct site_fixture *fixture)
{
    static const struct itimerval often = {{0, 200}, {0, 200}};
    static const struct itimerval never;
    const struct sigaction action = {.sa_handler = run_in_signal};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (atomic_load(&timer.runs) < 1000) {
        long result = fixture->function();
        ck_assert(result >= 0 && result <= 2);
        ck_assert_int_eq(cairn_site_call(fixture->site, SITE_TWO, CAIRN_RELAXED, NULL), CAIRN_OK);
        ck_assert_int_eq(cairn_site_nop(fixture->site, CAIRN_RELAXED, NULL), CAIRN_OK);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_uint_eq(timer.wrong, 0);
}

/* In Single mode patching takes a lock: handlers must not do it. */
START_TEST(signal_handlers_may_run_look_up_and_in_dual_mode_patch_the_site)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    const struct site_shape shape = site_patchpoint(region, 16);
    site_load(&fixture, site_modes[_i], &shape);
    timer.fixture = &fixture;
    timer.may_patch = site_modes[_i] == CAIRN_CODE_MODE_DUAL;
    patch_under_the_timer(&fixture);
    site_unload(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads at sites");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, threads_see_the_old_or_the_new_and_after_a_barrier_the_new, 0,
                        SITE_MODES);
    tcase_add_loop_test(tests, signal_handlers_may_run_look_up_and_in_dual_mode_patch_the_site, 0,
                        SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
