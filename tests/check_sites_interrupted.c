/*
 * Changes of a site that are interrupted at each of their instructions by one to three other
 * changes of the site, as by a signal handler, or by a thread that runs meanwhile. The processor's
 * trap flag raises SIGTRAP after each instruction, and the handler makes the other changes.
 *
 * Whichever of them fail: afterwards the site does what the interrupted change has asked for, or
 * the last of the others that has succeeded, and a change that fails then leaves it so.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/barrier_support.h"
#include "tests/code_support.h"
#include "tests/site_support.h"

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100, MANY = 100000, STRIDE_REPEATED = 64, OTHERS = 3 };

/* ---- Changes ---- */

/* What a site can be made to do, and what its function then returns. */
enum deed { NOTHING, NEAR_ONE, NEAR_TWO, DEEDS };

enum outcome { RELAXED, SUCCEEDS, FAILS, OUTCOMES };

struct wanted {
    enum deed deed;
    enum outcome outcome;
};

static struct site_fixture fixture;

static bool end_barrier(void *user)
{
    const enum outcome *outcome = user;
    return *outcome == SUCCEEDS;
}

/* Returns whether the change has the outcome that is wanted. */
static bool change(struct wanted wanted)
{
    static enum outcome outcomes[OUTCOMES] = {RELAXED, SUCCEEDS, FAILS};
    const void *const targets[DEEDS] = {NULL, fixture.near_one, fixture.near_two};
    enum cairn_strength strength = wanted.outcome == RELAXED ? CAIRN_RELAXED : CAIRN_SYNC;
    support_set_barrier((struct support_barrier){end_barrier, &outcomes[wanted.outcome]});
    enum cairn_status status =
        wanted.deed == NOTHING
            ? cairn_site_nop(fixture.site, strength, NULL)
            : cairn_site_call(fixture.site, targets[wanted.deed], strength, NULL);
    return status == (wanted.outcome == FAILS ? CAIRN_ERROR_SYSTEM : CAIRN_OK);
}

/* ---- Interrupting ---- */

static struct {
    struct wanted interrupted;
    struct wanted others[OTHERS];
    int other_count;
    int stop_at; /* after so many instructions */
    int steps;
    bool is_right;
} now;

/* The interrupted change has its own barrier then. */
static void stepped(int signal, siginfo_t *info, void *context)
{
    static enum outcome outcome;
    (void)signal;
    (void)info;
    if (now.steps++ < now.stop_at)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    now.is_right = true;
    for (int i = 0; i < now.other_count; i++)
        now.is_right &= change(now.others[i]);
    outcome = now.interrupted.outcome;
    support_set_barrier((struct support_barrier){end_barrier, &outcome});
}

/* Returns false if the change has ended before. */
static bool change_interrupted(void)
{
    now.steps = 0;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    bool is_right = change(now.interrupted);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    ck_assert(is_right);
    if (now.steps <= now.stop_at)
        return false;
    ck_assert(now.is_right);
    return true;
}

/* Whether the site may do this afterwards. */
static bool may_do(enum deed found, enum deed before)
{
    bool interrupted_succeeds = now.interrupted.outcome != FAILS;
    bool other_succeeds = false;
    enum deed last = before;
    for (int i = 0; i < now.other_count; i++) {
        if (now.others[i].outcome == FAILS)
            continue;
        last = now.others[i].deed;
        other_succeeds = true;
    }
    if (interrupted_succeeds && found == now.interrupted.deed)
        return true;
    return found == last && (other_succeeds || !interrupted_succeeds);
}

static void check_site(enum deed before)
{
    long found = fixture.function();
    ck_assert(change((struct wanted){(enum deed)((found + 1) % DEEDS), FAILS}));
    long left = fixture.function();
    ck_assert_msg(may_do((enum deed)found, before) && left == found,
                  "a change from %d to %d (outcome %d), interrupted after %d instructions by %d to "
                  "%d (%d), %d (%d), %d (%d): %ld, and after one that failed %ld",
                  (int)before, (int)now.interrupted.deed, (int)now.interrupted.outcome, now.stop_at,
                  now.other_count, (int)now.others[0].deed, (int)now.others[0].outcome,
                  (int)now.others[1].deed, (int)now.others[1].outcome, (int)now.others[2].deed,
                  (int)now.others[2].outcome, found, left);
}

/* The first of the others has this outcome, further ones any. */
static void interrupt_everywhere(enum outcome interrupted, enum outcome other, uint64_t *random)
{
    int stride = getenv("CAIRN_TEST_REPEATED") != NULL ? STRIDE_REPEATED : 1;
    now.stop_at = (int)(support_random(random) % (unsigned)stride);
    for (; now.stop_at < MANY; now.stop_at += stride) {
        struct wanted before = {NOTHING, support_random(random) % 2 == 0 ? RELAXED : SUCCEEDS};
        now.interrupted = (struct wanted){NEAR_ONE, interrupted};
        now.other_count = 1 + (int)(support_random(random) % OTHERS);
        for (int i = 0; i < OTHERS; i++)
            now.others[i] = (struct wanted){(enum deed)(support_random(random) % DEEDS),
                                            (enum outcome)(support_random(random) % OUTCOMES)};
        now.others[0].outcome = other;
        ck_assert(change(before));
        if (!change_interrupted())
            return;
        check_site(before.deed);
    }
    ck_abort_msg("the change does not end");
}

static void test_interrupting(enum outcome interrupted)
{
    static uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_calling_patchpoint(region);
    const struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    uint64_t random = support_seed();
    site_load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
    sigaction(SIGTRAP, &action, NULL);
    for (enum outcome other = 0; other < OUTCOMES; other++)
        interrupt_everywhere(interrupted, other, &random);
    support_set_barrier((struct support_barrier){0});
    site_unload(&fixture);
}

START_TEST(a_change_without_a_barrier) { test_interrupting(RELAXED); }
END_TEST

START_TEST(a_change_whose_barrier_succeeds) { test_interrupting(SUCCEEDS); }
END_TEST

START_TEST(a_change_whose_barrier_fails) { test_interrupting(FAILS); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("changes interrupted at each instruction");
    TCase *tests = tcase_create("interrupted");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_change_without_a_barrier);
    tcase_add_test(tests, a_change_whose_barrier_succeeds);
    tcase_add_test(tests, a_change_whose_barrier_fails);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
