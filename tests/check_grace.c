/*
 * Tests of grace periods: what is freed when, and when a retirement and the start of a period meet.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/grace.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct item {
    struct grace_entry entry;
    unsigned number;
    unsigned *released; /* numbers in the order of release, and their count before them */
};

static size_t release(struct grace_entry *entry)
{
    struct item *item = (struct item *)(void *)entry;
    item->released[++item->released[0]] = item->number;
    return 1;
}

struct fixture {
    struct grace grace;
    struct item items[8];
    unsigned released[9];
};

static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){.released = {0}};
    grace_init(&fixture->grace);
    for (unsigned i = 0; i < 8; i++)
        fixture->items[i] = (struct item){.number = i, .released = fixture->released};
}

static void retire(struct fixture *fixture, unsigned number)
{
    grace_retire(&fixture->grace, &fixture->items[number].entry, release);
}

static bool is_odd(const struct grace_entry *entry)
{
    const struct item *item = (const struct item *)(const void *)entry;
    return item->number % 2 == 1;
}

START_TEST(what_is_not_selected_waits_for_a_later_period)
{
    struct fixture fixture;
    set_up(&fixture);
    for (unsigned i = 0; i < 4; i++)
        retire(&fixture, i);
    uint64_t token = grace_start(&fixture.grace);
    ck_assert_uint_eq(grace_end(&fixture.grace, token, is_odd), 2);
    ck_assert_uint_eq(fixture.released[1], 1);
    ck_assert_uint_eq(fixture.released[2], 3);
    retire(&fixture, 5); /* the end of the queue is right after the last one was taken */
    ck_assert_uint_eq(grace_end(&fixture.grace, token, NULL), 2);
    ck_assert_uint_eq(fixture.released[3], 0);
    ck_assert_uint_eq(fixture.released[4], 2);
    ck_assert_uint_eq(grace_end(&fixture.grace, grace_start(&fixture.grace), is_odd), 1);
    grace_destroy(&fixture.grace);
}
END_TEST

START_TEST(a_period_frees_what_was_retired_before_its_start_in_that_order)
{
    struct fixture fixture;
    set_up(&fixture);
    retire(&fixture, 2);
    retire(&fixture, 0);
    uint64_t token = grace_start(&fixture.grace);
    retire(&fixture, 1);
    ck_assert_uint_eq(fixture.released[0], 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, token, NULL), 2);
    ck_assert_uint_eq(fixture.released[0], 2);
    ck_assert_uint_eq(fixture.released[1], 2);
    ck_assert_uint_eq(fixture.released[2], 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, token, NULL), 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, grace_start(&fixture.grace), NULL), 1);
    ck_assert_uint_eq(fixture.released[3], 1);
    grace_drain(&fixture.grace);
    grace_destroy(&fixture.grace);
    ck_assert_uint_eq(fixture.released[0], 3);
}
END_TEST

START_TEST(periods_overlap_and_end_in_any_order)
{
    struct fixture fixture;
    set_up(&fixture);
    uint64_t tokens[3];
    for (unsigned i = 0; i < 3; i++) {
        retire(&fixture, i);
        tokens[i] = grace_start(&fixture.grace);
    }
    retire(&fixture, 3);
    ck_assert_uint_eq(grace_end(&fixture.grace, tokens[1], NULL), 2);
    ck_assert_uint_eq(grace_end(&fixture.grace, tokens[0], NULL), 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, tokens[2], NULL), 1);
    grace_drain(&fixture.grace);
    grace_destroy(&fixture.grace);
    ck_assert_uint_eq(fixture.released[0], 4);
}
END_TEST

START_TEST(a_token_that_was_not_returned_frees_nothing)
{
    struct fixture fixture;
    set_up(&fixture);
    retire(&fixture, 0);
    uint64_t token = grace_start(&fixture.grace);
    ck_assert_uint_ne(token, 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, 0, NULL), 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, token + 1, NULL), 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, UINT64_MAX, NULL), 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, token, NULL), 1);
    grace_drain(&fixture.grace);
    grace_destroy(&fixture.grace);
}
END_TEST

struct chained {
    struct grace_entry entry;
    struct grace *grace;
    struct item *next;
};

static size_t retire_next(struct grace_entry *entry)
{
    struct chained *chained = (struct chained *)(void *)entry;
    grace_retire(chained->grace, &chained->next->entry, release);
    return 1;
}

START_TEST(a_release_may_retire_another_thing_which_waits_for_the_next_period)
{
    struct fixture fixture;
    set_up(&fixture);
    struct chained chained = {.grace = &fixture.grace, .next = &fixture.items[0]};
    grace_retire(&fixture.grace, &chained.entry, retire_next);
    uint64_t token = grace_start(&fixture.grace);
    ck_assert_uint_eq(grace_end(&fixture.grace, token, NULL), 1);
    ck_assert_uint_eq(fixture.released[0], 0);
    ck_assert_uint_eq(grace_end(&fixture.grace, token, NULL), 0);
    grace_drain(&fixture.grace);
    grace_destroy(&fixture.grace);
    ck_assert_uint_eq(fixture.released[0], 1);
}
END_TEST

/* ---- Threads ---- */

/* An item is removed from `current` and retired; it must not be freed by a period whose start has
 * seen it in `current` afterwards. */
struct box {
    struct grace_entry entry;
    _Atomic unsigned freed;
};

enum { BOXES = 20000 };

struct race {
    struct grace grace;
    struct box *boxes;
    _Atomic(struct box *) current;
    _Atomic bool stop;
};

static size_t free_box(struct grace_entry *entry)
{
    atomic_fetch_add(&((struct box *)(void *)entry)->freed, 1);
    return 1;
}

/* The only reader, which is at a quiescent point whenever it starts or ends a period. */
static void *end_periods(void *argument)
{
    struct race *race = argument;
    size_t wrong = 0;
    uint64_t token = grace_start(&race->grace);
    while (!atomic_load(&race->stop)) {
        /* Begins after the start, so it may hold the box until the end. */
        const struct box *box = atomic_load(&race->current);
        uint64_t next = grace_start(&race->grace);
        grace_end(&race->grace, token, NULL);
        wrong += atomic_load(&box->freed) != 0;
        token = next;
    }
    return (void *)wrong;
}

START_TEST(what_is_seen_after_the_start_is_not_freed_at_the_end)
{
    struct race race = {.boxes = calloc(BOXES, sizeof *race.boxes)};
    pthread_t thread;
    void *wrong;
    grace_init(&race.grace);
    race.current = &race.boxes[0];
    ck_assert_int_eq(pthread_create(&thread, NULL, end_periods, &race), 0);
    for (size_t i = 1; i < BOXES; i++) {
        struct box *old = atomic_exchange(&race.current, &race.boxes[i]);
        grace_retire(&race.grace, &old->entry, free_box);
    }
    atomic_store(&race.stop, true);
    pthread_join(thread, &wrong);
    ck_assert_ptr_null(wrong);
    grace_drain(&race.grace);
    grace_destroy(&race.grace);
    for (size_t i = 0; i + 1 < BOXES; i++)
        ck_assert_uint_eq(race.boxes[i].freed, 1);
    free(race.boxes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grace periods");
    TCase *tests = tcase_create("grace");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_is_not_selected_waits_for_a_later_period);
    tcase_add_test(tests, a_period_frees_what_was_retired_before_its_start_in_that_order);
    tcase_add_test(tests, periods_overlap_and_end_in_any_order);
    tcase_add_test(tests, a_token_that_was_not_returned_frees_nothing);
    tcase_add_test(tests, a_release_may_retire_another_thing_which_waits_for_the_next_period);
    tcase_add_test(tests, what_is_seen_after_the_start_is_not_freed_at_the_end);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
