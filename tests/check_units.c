/*
 * check_units.c - free units of a range, against an array with a byte for each unit:
 * src/code/units.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/units.h"
#include "code_support.h"

#include <stdlib.h>
#include <string.h>

enum { UNITS_MAX = 1500 };

/* The units under test, and what they must be: 1 if free. */
struct pair {
    struct units units;
    void *tables;
    uint8_t free[UNITS_MAX];
};

static void create(struct pair *pair, uint32_t count)
{
    memset(pair->free, 0, sizeof pair->free);
    pair->tables = calloc(1, units_table_bytes(count));
    ck_assert_ptr_nonnull(pair->tables);
    units_init(&pair->units, count, pair->tables);
}

static void give(struct pair *pair, uint32_t first, uint32_t count)
{
    units_give(&pair->units, first, count);
    memset(pair->free + first, 1, count);
}

/* ---- The model ---- */

static uint32_t model_run_at(const struct pair *pair, uint32_t first)
{
    uint32_t length = 0;
    while (first + length < pair->units.count && pair->free[first + length])
        length++;
    return length;
}

static uint32_t model_longest(const struct pair *pair)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < pair->units.count; i++) {
        uint32_t length = model_run_at(pair, i);
        longest = length > longest ? length : longest;
        i += length;
    }
    return longest;
}

/* Takes the first units with this alignment in the lowest run that fits with any alignment. */
static bool model_take(struct pair *pair, uint32_t count, uint32_t alignment, uint32_t *first)
{
    for (uint32_t i = 0; i < pair->units.count; i++) {
        if (model_run_at(pair, i) < count + alignment - 1)
            continue;
        *first = (i + alignment - 1) / alignment * alignment;
        memset(pair->free + *first, 0, count);
        return true;
    }
    return false;
}

static bool model_take_last(struct pair *pair, uint32_t count, uint32_t end, uint32_t *first)
{
    for (uint32_t i = end; i >= count; i--) {
        if (model_run_at(pair, i - count) < count)
            continue;
        *first = i - count;
        memset(pair->free + *first, 0, count);
        return true;
    }
    return false;
}

static void check_same(const struct pair *pair)
{
    uint32_t wrong = 0;
    ck_assert_uint_eq(units_longest(&pair->units), model_longest(pair));
    for (uint32_t i = 0; i < pair->units.count; i++)
        wrong += units_are_free(&pair->units, i, 1) != pair->free[i];
    ck_assert_uint_eq(wrong, 0);
}

/* Return the first of the units that they take, or UINT32_MAX. */
static uint32_t take(struct pair *pair, uint32_t count, uint32_t alignment)
{
    uint32_t first;
    return units_take(&pair->units, count, alignment, &first) ? first : UINT32_MAX;
}

static uint32_t take_last(struct pair *pair, uint32_t count, uint32_t limit)
{
    uint32_t first;
    return units_take_last(&pair->units, count, limit, &first) ? first : UINT32_MAX;
}

/* ---- Single cases ---- */

START_TEST(zeroed_tables_have_no_free_unit)
{
    struct pair pair;
    uint32_t first;
    create(&pair, 1000);
    ck_assert_uint_eq(units_longest(&pair.units), 0);
    ck_assert(!units_take(&pair.units, 1, 1, &first));
    ck_assert(!units_are_free(&pair.units, 999, 1));
    free(pair.tables);
}
END_TEST

START_TEST(whole_range_can_be_taken_and_given_back)
{
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 128, 129, 1000, 1024, UNITS_MAX};
    struct pair pair;
    uint32_t first = 77;
    create(&pair, counts[_i]);
    give(&pair, 0, counts[_i]);
    for (int round = 0; round < 3; round++) {
        ck_assert_uint_eq(units_longest(&pair.units), counts[_i]);
        ck_assert(!units_take(&pair.units, counts[_i] + 1, 1, &first));
        ck_assert_uint_eq(take(&pair, counts[_i], 1), 0);
        ck_assert_uint_eq(units_longest(&pair.units), 0);
        units_give(&pair.units, 0, counts[_i]);
    }
    free(pair.tables);
}
END_TEST

START_TEST(run_across_words_and_subtrees_is_found)
{
    struct pair pair;
    create(&pair, 1024);
    give(&pair, 300, 500);
    ck_assert_uint_eq(take(&pair, 500, 1), 300);
    free(pair.tables);
}
END_TEST

START_TEST(neighbours_that_are_given_back_become_one_run)
{
    struct pair pair;
    uint32_t first;
    create(&pair, 256);
    give(&pair, 10, 30);
    give(&pair, 70, 30);
    ck_assert(!units_take(&pair.units, 31, 1, &first));
    give(&pair, 40, 30);
    ck_assert_uint_eq(take(&pair, 90, 1), 10);
    free(pair.tables);
}
END_TEST

START_TEST(highest_run_may_cross_words_and_end_at_the_limit)
{
    struct pair pair;
    uint32_t first;
    create(&pair, 1024);
    give(&pair, 100, 800);
    ck_assert_uint_eq(take_last(&pair, 300, 1024), 600);
    ck_assert_uint_eq(take_last(&pair, 200, 450), 250);
    ck_assert(!units_take_last(&pair.units, 151, 450, &first));
    ck_assert_uint_eq(take_last(&pair, 150, 256), 100);
    free(pair.tables);
}
END_TEST

START_TEST(taken_units_have_the_alignment)
{
    struct pair pair;
    create(&pair, 1024);
    give(&pair, 1, 1000);
    ck_assert_uint_eq(take(&pair, 3, 256), 256);
    ck_assert_uint_eq(take(&pair, 255, 1), 1);
    free(pair.tables);
}
END_TEST

START_TEST(request_beyond_all_bounds_finds_nothing)
{
    struct pair pair;
    uint32_t first = 5;
    create(&pair, 64);
    give(&pair, 0, 64);
    ck_assert(!units_take(&pair.units, UINT32_MAX, 1, &first));
    ck_assert(!units_take(&pair.units, UINT32_MAX, UINT32_C(1) << 31, &first));
    ck_assert(!units_take(&pair.units, 1, UINT32_C(1) << 31, &first));
    ck_assert(!units_take_at(&pair.units, 64, 1));
    ck_assert(!units_take_at(&pair.units, 1, UINT32_MAX));
    ck_assert(!units_take_at(&pair.units, 1, 0));
    ck_assert_uint_eq(first, 5);
    ck_assert_uint_eq(units_longest(&pair.units), 64);
    free(pair.tables);
}
END_TEST

START_TEST(units_that_are_not_all_free_are_not_taken)
{
    struct pair pair;
    create(&pair, 300);
    give(&pair, 0, 299);
    ck_assert(!units_take_at(&pair.units, 100, 200));
    check_same(&pair);
    ck_assert(units_take_at(&pair.units, 100, 199));
    ck_assert_uint_eq(units_longest(&pair.units), 100);
    free(pair.tables);
}
END_TEST

START_TEST(largest_range_needs_only_the_tables_it_touches)
{
    struct units units;
    const uint32_t count = UINT32_C(1) << 26; /* 1 GiB in units of 16 bytes */
    uint32_t first;
    void *tables = calloc(1, units_table_bytes(count)); /* a mapping: malloc touches nothing */
    ck_assert_ptr_nonnull(tables);
    units_init(&units, count, tables);
    units_give(&units, 0, 4096);
    units_give(&units, count - 4096, 4096);
    ck_assert(!units_take(&units, 4097, 1, &first));
    ck_assert(units_take(&units, 4096, 1, &first));
    ck_assert(units_take(&units, 4096, 1, &first));
    ck_assert_uint_eq(first, count - 4096);
    free(tables);
}
END_TEST

/* ---- Random operations ---- */

/* A range of units that the test has taken. */
struct taken {
    uint32_t first;
    uint32_t count;
};

static void random_take(struct pair *pair, struct taken *taken, size_t *taken_count,
                        uint64_t *random)
{
    bool is_large = support_random(random) % 8 == 0;
    uint32_t count = 1 + support_random(random) % (is_large ? 300 : 12);
    uint32_t alignment = UINT32_C(1) << support_random(random) % (is_large ? 1 : 6);
    uint32_t first = 0;
    uint32_t expected = 0;
    bool is_taken = units_take(&pair->units, count, alignment, &first);
    ck_assert_int_eq(is_taken, model_take(pair, count, alignment, &expected));
    ck_assert_uint_eq(first, expected);
    if (is_taken)
        taken[(*taken_count)++] = (struct taken){first, count};
}

static void random_take_last(struct pair *pair, struct taken *taken, size_t *taken_count,
                             uint64_t *random)
{
    uint32_t count = 1 + support_random(random) % (support_random(random) % 8 == 0 ? 300 : 12);
    uint32_t end = support_random(random) % (pair->units.count + 1);
    uint32_t first = 0;
    uint32_t expected = 0;
    if (support_random(random) % 2 == 0)
        end = pair->units.count;
    bool is_taken = units_take_last(&pair->units, count, end, &first);
    ck_assert_int_eq(is_taken, model_take_last(pair, count, end, &expected));
    ck_assert_uint_eq(first, expected);
    if (is_taken)
        taken[(*taken_count)++] = (struct taken){first, count};
}

static void random_take_at(struct pair *pair, struct taken *taken, size_t *taken_count,
                           uint64_t *random)
{
    uint32_t first = support_random(random) % pair->units.count;
    uint32_t count = 1 + support_random(random) % 20;
    bool is_possible = model_run_at(pair, first) >= count;
    ck_assert_int_eq(units_take_at(&pair->units, first, count), is_possible);
    if (!is_possible)
        return;
    memset(pair->free + first, 0, count);
    taken[(*taken_count)++] = (struct taken){first, count};
}

/* Gives back the whole range, or one end of it, as a module does that has reserved too much. */
static void random_give(struct pair *pair, struct taken *taken, size_t *taken_count,
                        uint64_t *random)
{
    if (*taken_count == 0)
        return;
    struct taken *chosen = &taken[support_random(random) % *taken_count];
    uint32_t kept = support_random(random) % 4 == 0 ? support_random(random) % chosen->count : 0;
    give(pair, chosen->first + kept, chosen->count - kept);
    chosen->count = kept;
    if (kept == 0)
        *chosen = taken[--*taken_count];
}

START_TEST(random_operations_agree_with_the_model)
{
    enum { OPERATIONS = 4000 };
    static struct taken taken[UNITS_MAX];
    struct pair pair;
    size_t taken_count = 0;
    uint64_t random = support_seed() + (uint64_t)_i;
    create(&pair, 1 + support_random(&random) % UNITS_MAX);
    give(&pair, 0, pair.units.count);
    for (int i = 0; i < OPERATIONS; i++) {
        switch (support_random(&random) % 7) {
        case 0:
            random_take_at(&pair, taken, &taken_count, &random);
            break;
        case 1:
        case 2:
            random_take(&pair, taken, &taken_count, &random);
            break;
        case 3:
            random_take_last(&pair, taken, &taken_count, &random);
            break;
        default:
            random_give(&pair, taken, &taken_count, &random);
            break;
        }
        if (i % 16 == 0)
            check_same(&pair);
    }
    for (size_t i = 0; i < taken_count; i++)
        give(&pair, taken[i].first, taken[i].count);
    check_same(&pair);
    ck_assert_uint_eq(units_longest(&pair.units), pair.units.count);
    free(pair.tables);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("units");
    TCase *tests = tcase_create("units");
    tcase_add_test(tests, zeroed_tables_have_no_free_unit);
    tcase_add_loop_test(tests, whole_range_can_be_taken_and_given_back, 0, 10);
    tcase_add_test(tests, run_across_words_and_subtrees_is_found);
    tcase_add_test(tests, neighbours_that_are_given_back_become_one_run);
    tcase_add_test(tests, highest_run_may_cross_words_and_end_at_the_limit);
    tcase_add_test(tests, taken_units_have_the_alignment);
    tcase_add_test(tests, request_beyond_all_bounds_finds_nothing);
    tcase_add_test(tests, units_that_are_not_all_free_are_not_taken);
    tcase_add_test(tests, largest_range_needs_only_the_tables_it_touches);
    tcase_add_loop_test(tests, random_operations_agree_with_the_model, 0, 20);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
