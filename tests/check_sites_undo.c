/*
 * What a change leaves whose barrier fails, while others change the same site: each way in which
 * changes can be nested in the barriers of others, two threads that end in any order, lists, and
 * threads that run freely.
 *
 * All of it has one model: changes of a site are counted in the order in which they are written,
 * and the site does what the successful one with the highest number asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/state.h"
#include "runtime/runtime.h"
#include "tests/barrier_support.h"
#include "tests/code_support.h"
#include "tests/machine.h"
#include "tests/site_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

/* ---- What a site can be made to do ---- */

enum deed { NEAR_ONE, NEAR_TWO, FAR_ONE, FAR_TWO, NOTHING, LEAVE, FIRST, DEEDS };

/* What the function then returns; at first its site calls site_one. */
static const long results[DEEDS] = {1, 2, 1, 2, 0, 3, 1};

static struct site_fixture fixture;

static const void *target_of(enum deed deed)
{
    const void *const targets[DEEDS] = {
        fixture.near_one, fixture.near_two, SITE_ONE, SITE_TWO, NULL, fixture.near_three, NULL};
    return targets[deed];
}

static enum cairn_status change(enum deed deed, enum cairn_strength strength)
{
    switch (deed) {
    case NOTHING:
        return cairn_site_nop(fixture.site, strength, NULL);
    case LEAVE:
        return cairn_site_jump(fixture.site, target_of(deed), strength, NULL);
    case FIRST:
        return cairn_site_restore(fixture.site, strength, NULL);
    default:
        return cairn_site_call(fixture.site, target_of(deed), strength, NULL);
    }
}

static void check_site(enum deed expected, const char *what, uint64_t number)
{
    struct cairn_site_description site = site_describe(fixture.site);
    const void *target = expected == FIRST ? SITE_ONE : target_of(expected);
    ck_assert_msg((const void *)(uintptr_t)site.target == target,
                  "%s %llu: its target is %p, not %p", what, (unsigned long long)number,
                  (void *)(uintptr_t)site.target, target);
    ck_assert_msg(fixture.function() == results[expected], "%s %llu: wrong result", what,
                  (unsigned long long)number);
}

static void set_up(enum cairn_code_mode mode)
{
    static uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_calling_patchpoint(region);
    site_load(&fixture, mode, &shape);
    /* The numbers of changes pass 2^32 while the test runs. */
    atomic_store(code_space_sequence(fixture.runtime->space), UINT32_MAX - 1000);
    support_keep_barriers_under(&fixture.runtime->space->lock);
}

/* ---- Changes in the barriers of others ---- */

enum outcome { RELAXED, SUCCEEDS, FAILS, OUTCOMES };

enum { NODES_MAX = 6 };

/* A change, and those that are made in its barrier. */
struct node {
    enum deed deed;
    enum outcome outcome;
    int children[NODES_MAX];
    int child_count;
};

static struct node nodes[NODES_MAX];
static enum deed expected;

static void make(struct node *node);

/* The first barrier of a change has its children; others are of one that is written again. */
static bool in_barrier(void *user)
{
    struct node *node = user;
    for (int i = 0; i < node->child_count; i++)
        make(&nodes[node->children[i]]);
    node->child_count = 0;
    support_set_barrier((struct support_barrier){in_barrier, node});
    return node->outcome == SUCCEEDS;
}

/* The model's order of numbers: a change, and then those in its barrier. A child that succeeds is
 * after its parent. */
static void make(struct node *node)
{
    enum deed before = expected;
    bool had_successful_child = false;
    support_set_barrier((struct support_barrier){in_barrier, node});
    expected = DEEDS;
    enum cairn_status status =
        change(node->deed, node->outcome == RELAXED ? CAIRN_RELAXED : CAIRN_SYNC);
    support_set_barrier((struct support_barrier){0});
    had_successful_child = expected != DEEDS;
    ck_assert_int_eq(status, node->outcome == FAILS ? CAIRN_ERROR_SYSTEM : CAIRN_OK);
    if (!had_successful_child)
        expected = node->outcome == FAILS ? before : node->deed;
}

/* Single mode has its children in the barrier, too, and RELAXED changes have none. */
static void make_random_tree(uint64_t *random)
{
    int count = 1 + (int)(support_random(random) % NODES_MAX);
    for (int i = 0; i < count; i++) {
        nodes[i] = (struct node){.deed = (enum deed)(support_random(random) % DEEDS),
                                 .outcome = (enum outcome)(support_random(random) % OUTCOMES)};
        if (i == 0)
            continue;
        struct node *parent = &nodes[support_random(random) % (unsigned)i];
        if (parent->outcome == RELAXED)
            parent = &nodes[0];
        parent->children[parent->child_count++] = i;
    }
    if (nodes[0].outcome == RELAXED)
        nodes[0].outcome = FAILS;
}

static void check_trees(uint64_t seed, int count)
{
    expected = FIRST;
    for (int i = 0; i < count; i++) {
        make_random_tree(&seed);
        make(&nodes[0]);
        check_site(expected, "tree", (uint64_t)i);
    }
}

START_TEST(a_failed_change_leaves_what_others_did_in_its_barrier)
{
    set_up(site_modes[_i]);
    check_trees(support_seed(), site_modes[_i] == CAIRN_CODE_MODE_DUAL ? 100000 : 3000);
    site_unload(&fixture);
}
END_TEST

/* Each failing change, and in its barrier each two others: A, B, A is among them. */
START_TEST(a_failed_change_leaves_the_same_instruction_where_another_change_has_put_it)
{
    set_up(site_modes[_i]);
    for (enum deed failing = 0; failing < DEEDS; failing++)
        for (unsigned others = 0; others < DEEDS * DEEDS * OUTCOMES * OUTCOMES; others++) {
            unsigned rest = others;
            nodes[0] = (struct node){failing, FAILS, {1, 2}, 2};
            for (int i = 1; i <= 2; i++) {
                nodes[i] = (struct node){.deed = (enum deed)(rest % DEEDS)};
                rest /= DEEDS;
                nodes[i].outcome = (enum outcome)(rest % OUTCOMES);
                rest /= OUTCOMES;
            }
            ck_assert_int_eq(change(FIRST, CAIRN_RELAXED), CAIRN_OK);
            expected = FIRST;
            make(&nodes[0]);
            check_site(expected, "pair", others);
        }
    site_unload(&fixture);
}
END_TEST

/* ---- Two threads that end in any order ---- */

/* One waits in its barrier until it is let go. */
struct waiting {
    pthread_t thread;
    enum deed deed;
    bool succeeds;
    atomic_bool is_written;
    atomic_bool may_end;
    enum cairn_status status;
};

static bool wait_in_barrier(void *user)
{
    struct waiting *waiting = user;
    atomic_store(&waiting->is_written, true);
    while (!atomic_load(&waiting->may_end))
        sched_yield();
    return waiting->succeeds;
}

static void *change_and_wait(void *user)
{
    struct waiting *waiting = user;
    support_set_barrier((struct support_barrier){wait_in_barrier, waiting});
    waiting->status = change(waiting->deed, CAIRN_SYNC);
    return NULL;
}

static void begin(struct waiting *waiting, enum deed deed, bool succeeds)
{
    waiting->deed = deed;
    waiting->succeeds = succeeds;
    atomic_store(&waiting->is_written, false);
    atomic_store(&waiting->may_end, false);
    ck_assert_int_eq(pthread_create(&waiting->thread, NULL, change_and_wait, waiting), 0);
    while (!atomic_load(&waiting->is_written))
        sched_yield();
}

static void end(struct waiting *waiting)
{
    atomic_store(&waiting->may_end, true);
    ck_assert_int_eq(pthread_join(waiting->thread, NULL), 0);
    ck_assert_int_eq(waiting->status, waiting->succeeds ? CAIRN_OK : CAIRN_ERROR_SYSTEM);
}

enum { PATIENT = 3, STEPS = 2 * PATIENT };

/* Begins and ends three changes in a random order, with changes without a barrier between. One that
 * has to be written again, because something was undone meanwhile, has a new number. */
static void check_order(uint64_t *random, uint64_t number)
{
    static struct waiting waiting[PATIENT];
    int begun = 0;
    bool ended[PATIENT] = {false};
    enum deed last = FIRST;
    int last_number = 0;
    int writes = 0;
    int undone = 0;
    int numbers[PATIENT];
    int undone_before[PATIENT];
    ck_assert_int_eq(change(FIRST, CAIRN_RELAXED), CAIRN_OK);
    for (int left = STEPS; left > 0;) {
        uint32_t choice = support_random(random) % 8;
        int which = (int)(support_random(random) % PATIENT);
        enum deed deed = (enum deed)(support_random(random) % DEEDS);
        if (choice == 0) {
            ck_assert_int_eq(change(deed, CAIRN_RELAXED), CAIRN_OK);
            last = deed;
            last_number = ++writes;
        } else if (choice < 4 && begun < PATIENT) {
            numbers[begun] = ++writes;
            undone_before[begun] = undone;
            begin(&waiting[begun++], deed, support_random(random) % 3 == 0);
            left--;
        } else if (which < begun && !ended[which]) {
            end(&waiting[which]);
            ended[which] = true;
            left--;
            if (!waiting[which].succeeds) {
                undone += numbers[which] == writes;
            } else if (numbers[which] > last_number) {
                last = waiting[which].deed;
                last_number = undone == undone_before[which] ? numbers[which] : ++writes;
            }
        }
    }
    check_site(last, "order", number);
}

START_TEST(the_last_change_that_succeeds_stays_in_whatever_order_they_end)
{
    uint64_t random = support_seed();
    set_up(site_modes[_i]);
    for (uint64_t i = 0; i < 300; i++)
        check_order(&random, i);
    site_unload(&fixture);
}
END_TEST

/* ---- Lists of changes ---- */

enum { SITES = 8 };

/* What others do to some of the sites of a list in its barrier. */
struct meddling {
    struct site_fixture *fixtures;
    unsigned round;
    bool is_done;
};

static bool meddle(void *user)
{
    struct meddling *meddling = user;
    support_set_barrier((struct support_barrier){0});
    for (unsigned i = 0; i < SITES && !meddling->is_done; i++) {
        cairn_site *site = meddling->fixtures[i].site;
        if ((meddling->round >> i & 1) == 0)
            continue;
        support_expect(cairn_site_nop(site, CAIRN_RELAXED, NULL) == CAIRN_OK);
        support_expect(cairn_site_call(site, SITE_TWO, CAIRN_SYNC, NULL) == CAIRN_OK);
    }
    meddling->is_done = true;
    support_set_barrier((struct support_barrier){meddle, meddling});
    return false;
}

START_TEST(a_failed_list_leaves_what_others_did_to_its_sites)
{
    struct site_fixture fixtures[SITES];
    struct cairn_site_change changes[SITES];
    uint8_t region[SITE_REGION_MAX];
    const struct site_shape shape = site_calling_patchpoint(region);
    cairn_runtime *runtime = site_runtime(site_modes[_i]);
    for (unsigned i = 0; i < SITES; i++)
        site_load_into(&fixtures[i], runtime, &shape);
    for (unsigned round = 0; round < 1U << SITES; round++) {
        struct meddling meddling = {fixtures, round, false};
        for (unsigned i = 0; i < SITES; i++) {
            ck_assert_int_eq(cairn_site_restore(fixtures[i].site, CAIRN_RELAXED, NULL), CAIRN_OK);
            changes[i] =
                (struct cairn_site_change){fixtures[i].site, CAIRN_SITE_CHANGE_CALL, SITE_TWO};
        }
        support_set_barrier((struct support_barrier){meddle, &meddling});
        ck_assert_int_eq(cairn_sites_change(changes, SITES, CAIRN_SYNC, NULL), CAIRN_ERROR_SYSTEM);
        support_set_barrier((struct support_barrier){0});
        for (unsigned i = 0; i < SITES; i++)
            ck_assert_int_eq(fixtures[i].function(), (round >> i & 1) == 0 ? 1 : 2);
    }
    for (unsigned i = 0; i < SITES; i++)
        cairn_module_retire(fixtures[i].module);
    cairn_runtime_quiesce(runtime);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Undoing that is refused ---- */

static bool refuse_barrier(void *user)
{
    (void)user;
    return false;
}

static bool refuse_barrier_and_undoing(void *user)
{
    (void)user;
    support_refuse_after(0);
    return false;
}

static void fail_twice(void *user)
{
    static const long calls[] = {SYS_mmap, SYS_mremap, SYS_mprotect};
    (void)user;
    if (!support_watch_calls(calls, sizeof calls / sizeof *calls))
        return;
    set_up(CAIRN_CODE_MODE_SINGLE);
    support_set_barrier((struct support_barrier){refuse_barrier_and_undoing, NULL});
    support_expect(change(NEAR_TWO, CAIRN_SYNC) == CAIRN_ERROR_SYSTEM);
    support_grant_all();
    support_expect(fixture.function() == results[NEAR_TWO]);
    support_set_barrier((struct support_barrier){refuse_barrier, NULL});
    support_expect(change(NOTHING, CAIRN_SYNC) == CAIRN_ERROR_SYSTEM);
    support_expect(fixture.function() == results[NEAR_TWO]);
}

START_TEST(a_failed_change_leaves_an_earlier_one_that_could_not_be_undone)
{
    support_in_child(fail_twice, NULL);
}
END_TEST

/* ---- Threads that run freely ---- */

static struct {
    pthread_barrier_t step;
    int rounds;
    atomic_uint wrong;
} race;

/* Changes the site to what the other thread changes it to, and fails. */
static void *fail_always(void *user)
{
    (void)user;
    support_set_barrier((struct support_barrier){refuse_barrier, NULL});
    for (int i = 0; i < race.rounds; i++) {
        pthread_barrier_wait(&race.step);
        for (int again = 0; again < 1 + i % 3; again++)
            if (change((enum deed)(i % DEEDS), CAIRN_SYNC) != CAIRN_ERROR_SYSTEM)
                atomic_fetch_add(&race.wrong, 1);
        pthread_barrier_wait(&race.step);
    }
    return NULL;
}

START_TEST(threads_whose_changes_fail_never_undo_a_finished_one)
{
    enum { FAILING = 2 };
    pthread_t threads[FAILING];
    set_up(site_modes[_i]);
    race.rounds = site_modes[_i] == CAIRN_CODE_MODE_DUAL ? 3000 : 600;
    atomic_store(&race.wrong, 0);
    pthread_barrier_init(&race.step, NULL, FAILING + 1);
    for (int i = 0; i < FAILING; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_always, NULL), 0);
    for (int i = 0; i < race.rounds; i++) {
        enum deed deed = (enum deed)(i % DEEDS);
        enum deed other = (enum deed)((i + 3) % DEEDS);
        enum cairn_strength strength = i % 2 == 0 ? CAIRN_RELAXED : CAIRN_SYNC;
        pthread_barrier_wait(&race.step);
        bool done = change(other, CAIRN_RELAXED) == CAIRN_OK && change(deed, strength) == CAIRN_OK;
        pthread_barrier_wait(&race.step);
        ck_assert(done);
        check_site(deed, "round", (uint64_t)i);
    }
    for (int i = 0; i < FAILING; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(race.wrong, 0);
    pthread_barrier_destroy(&race.step);
    site_unload(&fixture);
}
END_TEST

int main(void)
{
    const TTest *in_every_mode[] = {
        a_failed_change_leaves_what_others_did_in_its_barrier,
        a_failed_change_leaves_the_same_instruction_where_another_change_has_put_it,
        the_last_change_that_succeeds_stays_in_whatever_order_they_end,
        a_failed_list_leaves_what_others_did_to_its_sites,
        threads_whose_changes_fail_never_undo_a_finished_one,
    };
    Suite *suite = suite_create("undo");
    TCase *tests = tcase_create("undo");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_failed_change_leaves_an_earlier_one_that_could_not_be_undone);
    for (size_t i = 0; i < sizeof in_every_mode / sizeof *in_every_mode; i++)
        tcase_add_loop_test(tests, in_every_mode[i], site_first_mode(), SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
