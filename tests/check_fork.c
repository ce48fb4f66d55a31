/*
 * Runtimes in forked children: a child is a copy of its parent at the moment of the fork, whatever
 * other threads of the parent patch, load and free meanwhile and afterwards; and every entry point
 * can be called in a child.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/code_support.h"
#include "tests/site_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A child that hangs ends itself. */
enum { CHILD_SECONDS = 20 };

/* ---- A site that is patched all the time ---- */

#define TARGETS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
enum { TARGET_COUNT = 8 };

/* In the test's program, so the site goes to them through veneers. */
#define DEFINE_TARGET(value)                                                                       \
    static long target_##value(void) { return value; }
TARGETS(DEFINE_TARGET)
#define TARGET_ADDRESS(value) (const void *)(uintptr_t)target_##value,
static const void *const far_targets[TARGET_COUNT] = {TARGETS(TARGET_ADDRESS)};

struct patcher {
    struct site_fixture fixture;
    const void *targets[TARGET_COUNT];
    enum cairn_strength strength;
    /* How many patches have returned: private memory, so a child has the value of its fork. */
    _Atomic uint64_t finished;
    _Atomic bool stop;
    pthread_t thread;
};

static void *patch_all_the_time(void *user)
{
    struct patcher *patcher = user;
    while (!atomic_load(&patcher->stop)) {
        uint64_t next = atomic_load(&patcher->finished) + 1;
        support_expect(cairn_site_call(patcher->fixture.site, patcher->targets[next % TARGET_COUNT],
                                       patcher->strength, NULL) == CAIRN_OK);
        atomic_store(&patcher->finished, next);
    }
    return NULL;
}

static void start_patching(struct patcher *patcher, enum cairn_code_mode mode)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_shape shape = site_calling_patchpoint(region);
    shape.publish = true;
    site_load(&patcher->fixture, mode, &shape);
    patcher->strength =
        cairn_runtime_can_synchronise(patcher->fixture.runtime) ? patcher->strength : CAIRN_RELAXED;
    ck_assert_ok(cairn_site_call(patcher->fixture.site, patcher->targets[0], CAIRN_RELAXED, NULL));
    ck_assert_int_eq(pthread_create(&patcher->thread, NULL, patch_all_the_time, patcher), 0);
}

static void stop_patching(struct patcher *patcher)
{
    atomic_store(&patcher->stop, true);
    pthread_join(patcher->thread, NULL);
    site_unload(&patcher->fixture);
}

/* Long enough for the parent to change something. */
static void wait_some(void)
{
    const struct timespec some = {.tv_nsec = 300000};
    nanosleep(&some, NULL);
}

/* What the site calls is what it called at the fork, or what a patch that had not returned yet
 * asked for; and stays so. */
static void run_in_child(struct patcher *patcher)
{
    uint64_t finished = atomic_load(&patcher->finished);
    long first = patcher->fixture.function();
    support_expect(first == (long)(finished % TARGET_COUNT) ||
                   first == (long)((finished + 1) % TARGET_COUNT));
    for (int i = 0; i < 4; i++) {
        wait_some();
        support_expect(patcher->fixture.function() == first);
    }
    struct cairn_site_description description = site_describe(patcher->fixture.site);
    support_expect(description.state == CAIRN_SITE_CALL);
    support_expect(description.target == (uintptr_t)patcher->targets[first]);
    long next = (first + 3) % TARGET_COUNT;
    support_expect(cairn_site_call(patcher->fixture.site, patcher->targets[next], patcher->strength,
                                   NULL) == CAIRN_OK);
    for (int i = 0; i < 2; i++) {
        support_expect(patcher->fixture.function() == next);
        wait_some();
    }
}

static void fork_and_run(struct patcher *patcher)
{
    enum { CHILDREN = 60 };
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            alarm(CHILD_SECONDS);
            run_in_child(patcher);
            _exit(0);
        }
        support_wait(child);
    }
}

static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC};

START_TEST(child_runs_what_far_targets_were_at_the_fork)
{
    struct patcher patcher = {.strength = strengths[_i % 2]};
    memcpy(patcher.targets, far_targets, sizeof far_targets);
    start_patching(&patcher, support_modes[_i / 2]);
    fork_and_run(&patcher);
    stop_patching(&patcher);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tests = tcase_create("fork");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, child_runs_what_far_targets_were_at_the_fork, 0,
                        2 * support_mode_count());
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
