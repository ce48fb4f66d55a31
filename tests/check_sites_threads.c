/*
 * Tests of patching sites while threads and signal handlers execute them.
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
    _Atomic long *promised; /* the only possible result after a synchronised patch; -1: any */
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
    const struct site_shape shape = site_calling_patchpoint(region);
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

/* ---- Several patching threads ---- */

static long ten(void) { return 10; }
static long eleven(void) { return 11; }

static struct {
    const struct site_fixture *fixture;
    atomic_int patchers_left;
    atomic_ulong wrong;
} crowd;

/* Patches the site to calls through veneers, which other patching threads must not free, and to all
 * other states. */
static void *patch_among_others(void *argument)
{
    const void *target = argument;
    cairn_site *site = crowd.fixture->site;
    bool done = true;
    for (int i = 0; i < 4000 && done; i++) {
        enum cairn_strength strength = i % 64 == 0 ? CAIRN_SYNC : CAIRN_RELAXED;
        if (i % 8 == 7)
            done = cairn_site_nop(site, strength, NULL) == CAIRN_OK;
        else if (i % 8 == 3)
            done = cairn_site_jump(site, crowd.fixture->tail, strength, NULL) == CAIRN_OK;
        else
            done = cairn_site_call(site, target, strength, NULL) == CAIRN_OK;
    }
    if (!done)
        atomic_fetch_add(&crowd.wrong, 1);
    atomic_fetch_sub(&crowd.patchers_left, 1);
    return NULL;
}

/* State and target are consistent: a call has one of the targets, and a no-op has none. */
static bool is_sound(const struct cairn_site_description *description)
{
    switch (description->state) {
    case CAIRN_SITE_NOP:
        return description->target == 0;
    case CAIRN_SITE_JUMP:
        return description->target == (uintptr_t)crowd.fixture->tail;
    default:
        return description->target == (uintptr_t)ten || description->target == (uintptr_t)eleven;
    }
}

static void *run_among_patchers(void *argument)
{
    while (atomic_load(&crowd.patchers_left) > 0) {
        struct cairn_site_description description = site_describe(crowd.fixture->site);
        long result = crowd.fixture->function();
        bool known = result == 0 || result == 10 || result == 11;
        if (!known || !is_sound(&description))
            atomic_fetch_add(&crowd.wrong, 1);
    }
    return argument;
}

START_TEST(patchers_of_one_site_do_not_mix_what_they_want)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    pthread_t threads[4];
    const struct site_shape shape = site_null_patchpoint(region, 16);
    site_load(&fixture, site_modes[_i], &shape);
    crowd.fixture = &fixture;
    atomic_store(&crowd.patchers_left, 2);
    pthread_create(&threads[0], NULL, patch_among_others, (void *)(uintptr_t)ten);
    pthread_create(&threads[1], NULL, patch_among_others, (void *)(uintptr_t)eleven);
    pthread_create(&threads[2], NULL, run_among_patchers, NULL);
    pthread_create(&threads[3], NULL, run_among_patchers, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(crowd.wrong, 0);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
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

/* Like a profiler's handler: executes the site, looks it up, and describes it. */
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

/* With a single mapping, patching takes a lock, so handlers must not patch. */
START_TEST(signal_handlers_may_run_look_up_and_in_dual_mode_patch_the_site)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    const struct site_shape shape = site_calling_patchpoint(region);
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
    int first_mode = site_first_mode();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, threads_see_the_old_or_the_new_and_after_a_barrier_the_new,
                        first_mode, SITE_MODES);
    tcase_add_loop_test(tests, patchers_of_one_site_do_not_mix_what_they_want, first_mode,
                        SITE_MODES);
    tcase_add_loop_test(tests, signal_handlers_may_run_look_up_and_in_dual_mode_patch_the_site,
                        first_mode, SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
