/*
 * Two changes of one site, interleaved at each of their instructions, as if two threads made them
 * that can be stopped anywhere. One thread makes both, each on its own stack. The processor's trap
 * flag raises SIGTRAP after each instruction, and the handler switches stacks.
 *
 * The first change is stopped after each of its instructions, or after some of them. While it is,
 * the second one is stopped after each of its own. From each such pair, the first one ends, and
 * then the second one, and then all memory is restored to what it was at the pair. While both are
 * stopped, the site does what it did before or what one of them has requested; when one has ended,
 * what one of them has requested; and afterwards a third change decides. All of this holds whether
 * or not their barriers are refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/veneers.h"
#include "tests/barrier_support.h"
#include "tests/code_support.h"
#include "tests/site_support.h"

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100, STACK_BYTES = 1 << 16, VENEERS = 3, WAYS = 8 };

static struct site_fixture fixture;

static long site_three(void) { return 3; }

/* ---- A change that can be stopped ---- */

enum outcome { RELAXED, GRANTED, REFUSED };

struct actor {
    const void *target;
    enum outcome outcome;
    int stop_after; /* so many instructions */
    int steps;
    bool is_stepped;
    bool has_ended;
    enum cairn_status status;
    ucontext_t context;
    _Alignas(16) char stack[STACK_BYTES];
};

static struct actor first, second;
static struct actor *running;
static ucontext_t scheduler;

static bool barrier(void *user)
{
    (void)user;
    return running->outcome != REFUSED;
}

static enum cairn_status make(const void *target, enum outcome outcome)
{
    return cairn_site_call(fixture.site, target, outcome == RELAXED ? CAIRN_RELAXED : CAIRN_SYNC,
                           NULL);
}

/* Runs on the actor's stack. */
static void stepped(int signal, siginfo_t *info, void *context)
{
    struct actor *actor = running;
    (void)signal;
    (void)info;
    if (actor->is_stepped && actor->steps++ >= actor->stop_after)
        swapcontext(&actor->context, &scheduler);
    if (!actor->is_stepped)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void act(void)
{
    struct actor *actor = running;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    actor->status = make(actor->target, actor->outcome);
    actor->is_stepped = false;
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    actor->has_ended = true;
    setcontext(&scheduler);
}

/* Continues the actor until it stops or ends. */
static void go_on(struct actor *actor)
{
    running = actor;
    swapcontext(&scheduler, &actor->context);
}

static void start(struct actor *actor, int stop_after)
{
    actor->stop_after = stop_after;
    actor->steps = 0;
    actor->is_stepped = true;
    actor->has_ended = false;
    getcontext(&actor->context);
    actor->context.uc_stack.ss_sp = actor->stack;
    actor->context.uc_stack.ss_size = sizeof actor->stack;
    makecontext(&actor->context, act, 0);
    go_on(actor);
}

static void end(struct actor *actor)
{
    actor->is_stepped = false;
    go_on(actor);
    ck_assert(actor->has_ended);
    ck_assert_int_eq(actor->status, actor->outcome == REFUSED ? CAIRN_ERROR_SYSTEM : CAIRN_OK);
}

/* ---- The memory that a change writes ---- */

/* The used part of a stack begins below its pointer, with the red zone. */
static void copy_actor(struct actor *to, const struct actor *from)
{
    enum { RED_ZONE = 128 };
    size_t head = offsetof(struct actor, stack);
    uintptr_t pointer = (uintptr_t)from->context.uc_mcontext.gregs[REG_RSP] - RED_ZONE;
    /* A copy's stack pointer is the original's. */
    const struct actor *owner = pointer - (uintptr_t)first.stack < STACK_BYTES ? &first : &second;
    size_t unused = pointer - (uintptr_t)owner->stack;
    memcpy(to, from, head);
    memcpy(to->stack + unused, from->stack + unused, STACK_BYTES - unused);
}

static struct site_veneer *veneers[VENEERS];

static struct {
    struct actor first, second;
    struct cairn_site site;
    struct site_veneer veneers[VENEERS];
    uint64_t slots[VENEERS];
    uint64_t word;
} saved;

static uint64_t *word(void) { return (uint64_t *)(uintptr_t)fixture.site->word; }

static void save(void)
{
    copy_actor(&saved.first, &first);
    copy_actor(&saved.second, &second);
    memcpy(&saved.site, fixture.site, sizeof saved.site);
    for (int i = 0; i < VENEERS; i++) {
        memcpy(&saved.veneers[i], veneers[i], sizeof saved.veneers[i]);
        saved.slots[i] = *veneers[i]->code.slot;
    }
    saved.word = *word();
}

static void restore(void)
{
    copy_actor(&first, &saved.first);
    copy_actor(&second, &saved.second);
    memcpy(fixture.site, &saved.site, sizeof saved.site);
    for (int i = 0; i < VENEERS; i++) {
        memcpy(veneers[i], &saved.veneers[i], sizeof saved.veneers[i]);
        *veneers[i]->code.slot = saved.slots[i];
    }
    *word() = saved.word;
}

/* While one veneer is in use, both changes take one. They must not wait for a lock. */
static void make_veneers(void)
{
    for (int i = 0; i < VENEERS; i++)
        ck_assert_int_eq(veneers_take(fixture.site, CAIRN_SITE_CALL, &veneers[i], NULL), CAIRN_OK);
    for (int i = 0; i < VENEERS; i++)
        veneers_release(veneers[i]);
}

/* ---- Interleaving ---- */

static long result_before;
static long pairs;

static void check_site(bool may_be_before, const char *when)
{
    long result = fixture.function();
    ck_assert_msg(result == 1 || result == 2 || (may_be_before && result == result_before),
                  "%s: the site returns %ld, after %d and %d instructions", when, result,
                  first.steps, second.steps);
}

static void check_third(void)
{
    ck_assert_int_eq(make((const void *)(uintptr_t)site_three, RELAXED), CAIRN_OK);
    ck_assert_int_eq(fixture.function(), 3);
}

static void end_both(void)
{
    end(&first);
    check_site(false, "the first has ended");
    if (!second.has_ended)
        end(&second);
    check_site(false, "both have ended");
    check_third();
    pairs++;
}

/* Stops the second change after each of its instructions. The first one is stopped. */
static void stop_second(void)
{
    check_site(true, "the first is stopped");
    for (start(&second, 0); !second.has_ended; go_on(&second)) {
        check_site(true, "both are stopped");
        save();
        end_both();
        restore();
    }
    check_site(false, "the second has ended");
    end_both();
}

/* Stops the first change after each of its instructions, or after one of `stride`. */
static void stop_first(const void *before, int stride, uint64_t *random)
{
    int stop_after = (int)(support_random(random) % (unsigned)stride);
    for (;; stop_after += stride) {
        ck_assert_int_eq(make(before, RELAXED), CAIRN_OK);
        start(&first, stop_after);
        if (first.has_ended)
            return;
        stop_second();
    }
}

/* Tries near and far targets of both changes, and of the one before them: where all are far, and so
 * want each other's veneers, with `stride`; otherwise with a larger one. */
static void interleave(enum outcome outcome, enum outcome other, int stride)
{
    static uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_calling_patchpoint(region);
    const struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    uint64_t random = support_seed();
    if (getenv("CAIRN_TEST_REPEATED") != NULL)
        stride = 64;
    site_load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
    make_veneers();
    sigaction(SIGTRAP, &action, NULL);
    support_set_barrier((struct support_barrier){barrier, NULL});
    first.outcome = outcome;
    second.outcome = other;
    for (unsigned ways = 0; ways < WAYS; ways++) {
        bool is_far = (ways & 4) != 0;
        first.target = (ways & 1) != 0 ? SITE_ONE : fixture.near_one;
        second.target = (ways & 2) != 0 ? SITE_TWO : fixture.near_two;
        result_before = is_far ? 3 : 1;
        stop_first(is_far ? (const void *)(uintptr_t)site_three : fixture.near_one,
                   ways == WAYS - 1 ? stride : 8 * stride, &random);
    }
    printf("%ld pairs of stops\n", pairs);
    support_set_barrier((struct support_barrier){0});
    site_unload(&fixture);
}

START_TEST(changes_without_barriers) { interleave(RELAXED, RELAXED, 8); }
END_TEST

START_TEST(the_second_change_s_barrier_is_refused) { interleave(GRANTED, REFUSED, 1); }
END_TEST

START_TEST(the_first_change_s_barrier_is_refused) { interleave(REFUSED, GRANTED, 8); }
END_TEST

int main(void)
{
    if (support_is_sanitized()) {
        printf("skipped: AddressSanitizer does not let stacks be copied\n");
        return 77;
    }
    Suite *suite = suite_create("interleaved changes");
    TCase *tests = tcase_create("interleaved");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, changes_without_barriers);
    tcase_add_test(tests, the_second_change_s_barrier_is_refused);
    tcase_add_test(tests, the_first_change_s_barrier_is_refused);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
