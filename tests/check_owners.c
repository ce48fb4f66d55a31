/*
 * check_owners.c - from a unit to the owner of its range, against an array with an owner for each
 * unit: src/code/owners.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "code/owners.h"
#include "code_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { PAGES = 6, UNITS = PAGES * OWNERS_PAGE_UNITS };

static struct owners create(void)
{
    struct owners owners;
    struct cairn_allocator allocator = memory_allocator(NULL);
    void *pages = calloc(1, owners_bytes(PAGES));
    ck_assert_ptr_nonnull(pages);
    owners_init(&owners, &allocator, PAGES, pages);
    return owners;
}

static void destroy(struct owners *owners)
{
    owners_destroy(owners);
    free((void *)(uintptr_t)owners->pages);
}

static void add(struct owners *owners, size_t first, size_t count, void *owner)
{
    ck_assert_ok(owners_reserve(owners, first, count, NULL));
    owners_set(owners, first, count, owner);
}

static void take_away(struct owners *owners, size_t first, size_t count)
{
    owners_set(owners, first, count, NULL);
}

/* ---- Single cases ---- */

START_TEST(every_unit_of_a_range_has_its_owner)
{
    static const size_t firsts[] = {0, 3, 127, 128, 100, 0, 255};
    static const size_t counts[] = {1, 7, 2, 128, 350, UNITS, 513};
    struct owners owners = create();
    add(&owners, firsts[_i], counts[_i], &owners);
    for (size_t i = 0; i < UNITS; i++)
        ck_assert_ptr_eq(owners_find(owners.pages, i),
                         i - firsts[_i] < counts[_i] ? &owners : NULL);
    destroy(&owners);
}
END_TEST

START_TEST(range_without_owner_is_not_found)
{
    struct owners owners = create();
    ck_assert_ok(owners_reserve(&owners, 100, 400, NULL));
    ck_assert_ptr_null(owners_find(owners.pages, 100));
    owners_set(&owners, 100, 400, &owners);
    owners_set(&owners, 100, 400, NULL);
    ck_assert_ptr_null(owners_find(owners.pages, 300));
    destroy(&owners);
}
END_TEST

START_TEST(page_holds_as_many_ranges_as_fit)
{
    struct owners owners = create();
    uint64_t names[OWNERS_PAGE_UNITS * 2];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 2 * OWNERS_PAGE_UNITS; i++)
            add(&owners, i, 1, &names[i]);
        for (size_t i = 0; i < 2 * OWNERS_PAGE_UNITS; i++)
            ck_assert_ptr_eq(owners_find(owners.pages, i), &names[i]);
        for (size_t i = 0; i < 2 * OWNERS_PAGE_UNITS; i++)
            take_away(&owners, i, 1);
    }
    destroy(&owners);
}
END_TEST

START_TEST(whole_page_is_used_again_in_parts_and_as_a_whole)
{
    struct owners owners = create();
    uint64_t a, b;
    add(&owners, 128, 256, &a);
    ck_assert_ptr_eq(owners_find(owners.pages, 200), &a);
    take_away(&owners, 128, 256);
    ck_assert_ptr_null(owners_find(owners.pages, 200));
    add(&owners, 150, 10, &b);
    ck_assert_ptr_eq(owners_find(owners.pages, 155), &b);
    take_away(&owners, 150, 10);
    add(&owners, 128, 256, &a);
    ck_assert_ptr_eq(owners_find(owners.pages, 155), &a);
    ck_assert_ptr_eq(owners_find(owners.pages, 300), &a);
    destroy(&owners);
}
END_TEST

/* ---- Failing allocations ---- */

/* Takes all tables that the index has memory for. Returns the last one. */
static void *take_tables(struct owners *owners)
{
    void *last = NULL;
    do
        last = pool_take(&owners->tables, 1);
    while (owners->tables.rest_bytes >= sizeof(struct owners_table));
    return last;
}

START_TEST(range_that_finds_no_memory_leaves_no_trace)
{
    struct support_allocator counter = {0};
    struct owners owners = create();
    struct cairn_error error;
    uint64_t a, b;
    owners.tables.allocator = support_counting(&counter);
    add(&owners, 300, 10, &a);
    void *table = take_tables(&owners);
    /* The range is in parts of two pages without a table. */
    for (size_t i = 1; i <= 2; i++) {
        counter.fail_at = counter.calls + 1;
        if (i == 2)
            pool_give(&owners.tables, table, 1);
        ck_assert_int_eq(owners_reserve(&owners, 100, 100, &error), CAIRN_ERROR_MEMORY);
        ck_assert_int_eq(error.status, CAIRN_ERROR_MEMORY);
        ck_assert_ptr_eq(owners_find(owners.pages, 305), &a);
        ck_assert_ptr_null(owners_find(owners.pages, 100));
    }
    add(&owners, 100, 100, &b);
    ck_assert_ptr_eq(owners_find(owners.pages, 199), &b);
    destroy(&owners);
    ck_assert_uint_eq(counter.outstanding_bytes, 0);
}
END_TEST

/* ---- Random ranges ---- */

struct range {
    size_t first;
    size_t count;
};

/* The index under test, its ranges, and the owner that each unit must have. */
struct model {
    struct owners owners;
    struct range ranges[UNITS];
    size_t range_count;
    void *expected[UNITS];
};

static void expect(struct model *model, struct range range, void *owner)
{
    for (size_t i = range.first; i < range.first + range.count; i++)
        model->expected[i] = owner;
}

/* Returns false if the units of the range are not all free. */
static bool try_range(const struct model *model, struct range range)
{
    if (range.first + range.count > UNITS)
        return false;
    for (size_t i = range.first; i < range.first + range.count; i++)
        if (model->expected[i] != NULL)
            return false;
    return true;
}

static void random_add(struct model *model, uint64_t *random, void *owner)
{
    size_t limit = support_random(random) % 10 == 0 ? 400 : 5;
    struct range range = {.first = support_random(random) % UNITS,
                          .count = 1 + support_random(random) % limit};
    if (!try_range(model, range))
        return;
    add(&model->owners, range.first, range.count, owner);
    expect(model, range, owner);
    model->ranges[model->range_count++] = range;
}

static void random_take_away(struct model *model, uint64_t *random)
{
    if (model->range_count == 0)
        return;
    struct range *range = &model->ranges[support_random(random) % model->range_count];
    take_away(&model->owners, range->first, range->count);
    expect(model, *range, NULL);
    *range = model->ranges[--model->range_count];
}

static void check_same(const struct model *model)
{
    for (size_t i = 0; i < UNITS; i++)
        ck_assert_ptr_eq(owners_find(model->owners.pages, i), model->expected[i]);
}

START_TEST(random_ranges_agree_with_the_model)
{
    enum { OPERATIONS = 4000 };
    static uint64_t names[OPERATIONS];
    static struct model model;
    uint64_t random = support_seed() + (uint64_t)_i;
    model = (struct model){.owners = create()};
    for (int i = 0; i < OPERATIONS; i++) {
        if (support_random(&random) % 5 < 3)
            random_add(&model, &random, &names[i]);
        else
            random_take_away(&model, &random);
        if (i % 64 == 0)
            check_same(&model);
    }
    check_same(&model);
    destroy(&model.owners);
}
END_TEST

/* ---- Readers ---- */

/* Ranges take turns in one page. The owner of each range points to its first unit, so that a reader
 * can tell whether an owner belongs to its unit. */
struct turns {
    struct owners owners;
    uint64_t names[OWNERS_PAGE_UNITS];
    _Atomic bool stop;
    _Atomic uint64_t lookups;
    _Atomic uint64_t wrong;
};

static void *read_turns(void *user)
{
    struct turns *turns = user;
    while (!atomic_load(&turns->stop))
        for (size_t unit = 0; unit < OWNERS_PAGE_UNITS; unit++) {
            const uint64_t *name = owners_find(turns->owners.pages, unit);
            if (name != NULL && unit - (size_t)(name - turns->names) >= 4)
                atomic_fetch_add(&turns->wrong, 1);
            atomic_fetch_add(&turns->lookups, 1);
        }
    return NULL;
}

/* Waits until every lookup that is in progress has ended. */
static void wait_for_reader(const struct turns *turns)
{
    uint64_t seen = atomic_load(&turns->lookups);
    while (atomic_load(&turns->lookups) - seen < 2)
        sched_yield();
}

START_TEST(reader_never_finds_the_owner_of_another_range)
{
    enum { ROUNDS = 5000, SECONDS = 20 }; /* a busy machine makes fewer rounds */
    static struct turns turns;
    pthread_t reader;
    time_t end = time(NULL) + SECONDS;
    turns.owners = create();
    ck_assert_int_eq(pthread_create(&reader, NULL, read_turns, &turns), 0);
    for (size_t i = 0; i < ROUNDS && time(NULL) < end; i++) {
        size_t first = i * 4 % OWNERS_PAGE_UNITS;
        add(&turns.owners, first, 4, &turns.names[first]);
        owners_set(&turns.owners, first, 4, NULL);
        wait_for_reader(&turns);
    }
    atomic_store(&turns.stop, true);
    pthread_join(reader, NULL);
    ck_assert_uint_eq(turns.wrong, 0);
    destroy(&turns.owners);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("owners");
    TCase *tests = tcase_create("owners");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_unit_of_a_range_has_its_owner, 0, 7);
    tcase_add_test(tests, range_without_owner_is_not_found);
    tcase_add_test(tests, page_holds_as_many_ranges_as_fit);
    tcase_add_test(tests, whole_page_is_used_again_in_parts_and_as_a_whole);
    tcase_add_test(tests, range_that_finds_no_memory_leaves_no_trace);
    tcase_add_loop_test(tests, random_ranges_agree_with_the_model, 0, 20);
    tcase_add_test(tests, reader_never_finds_the_owner_of_another_range);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
