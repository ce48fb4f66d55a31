/*
 * As much of Check (https://libcheck.github.io/check/) as it takes to build a test of the library's
 * inner functions for an architecture that Debian has no libraries for. Tests run one after the
 * other, in one process; the first failure ends it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CROSS_CHECK_H
#define TESTS_CROSS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CK_ENV, CHECK_TESTS_MAX = 16 };

typedef struct {
    const char *name;
    void (*set_up)(void);
    void (*tear_down)(void);
    void (*tests[CHECK_TESTS_MAX])(int);
    int count;
} TCase;
typedef TCase Suite;
typedef TCase SRunner;

static TCase check_case;

#define START_TEST(name) static void name(__attribute__((unused)) int _i)
#define END_TEST

static inline __attribute__((noreturn)) void check_failed(void)
{
    printf("\n0%%: Checks: %d, Failures: 1, Errors: 0\n", check_case.count);
    exit(EXIT_FAILURE);
}

#define ck_abort_msg(...)                                                                          \
    (printf("# %s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), check_failed())
#define ck_assert_msg(true_, ...) ((true_) ? (void)0 : ck_abort_msg(__VA_ARGS__))
#define ck_assert(true_) ck_assert_msg(true_, "%s", #true_)
#define ck_assert_compare(one, relation, other)                                                    \
    ck_assert_msg((one)relation(other), "%s %s %s: %lld, %lld", #one, #relation, #other,           \
                  (long long)(one), (long long)(other))
#define ck_assert_int_eq(one, other) ck_assert_compare((intmax_t)(one), ==, (intmax_t)(other))
#define ck_assert_int_ne(one, other) ck_assert_compare((intmax_t)(one), !=, (intmax_t)(other))
#define ck_assert_int_ge(one, other) ck_assert_compare((intmax_t)(one), >=, (intmax_t)(other))
#define ck_assert_int_gt(one, other) ck_assert_compare((intmax_t)(one), >, (intmax_t)(other))
#define ck_assert_uint_eq(one, other) ck_assert_compare((uintmax_t)(one), ==, (uintmax_t)(other))
#define ck_assert_uint_le(one, other) ck_assert_compare((uintmax_t)(one), <=, (uintmax_t)(other))
#define ck_assert_uint_lt(one, other) ck_assert_compare((uintmax_t)(one), <, (uintmax_t)(other))
#define ck_assert_uint_ge(one, other) ck_assert_compare((uintmax_t)(one), >=, (uintmax_t)(other))
#define ck_assert_uint_gt(one, other) ck_assert_compare((uintmax_t)(one), >, (uintmax_t)(other))
#define ck_assert_ptr_ne(one, other) ck_assert((one) != (other))
#define ck_assert_ptr_eq(one, other) ck_assert((one) == (other))
#define ck_assert_ptr_nonnull(one) ck_assert((one) != NULL)
#define ck_assert_mem_eq(one, other, size) ck_assert(memcmp((one), (other), (size)) == 0)

static inline TCase *suite_create(const char *name)
{
    check_case.name = name;
    return &check_case;
}
#define tcase_create suite_create
#define suite_add_tcase(suite, tests) ((void)(suite), (void)(tests))
#define tcase_set_timeout(tests, seconds) ((void)(tests), (void)(seconds))
#define tcase_add_checked_fixture(tests, before, after)                                            \
    ((tests)->set_up = (before), (tests)->tear_down = (after))
#define tcase_add_test(to, test) ((to)->tests[(to)->count++] = (test))
#define srunner_create(suite) (suite)
#define srunner_free(runner) ((void)(runner))
#define srunner_ntests_failed(runner) ((void)(runner), 0)

static inline void srunner_run_all(const TCase *tests, int mode)
{
    (void)mode;
    for (int i = 0; i < tests->count; i++) {
        tests->set_up();
        tests->tests[i](i);
        tests->tear_down();
    }
    printf("100%%: Checks: %d, Failures: 0, Errors: 0\n", tests->count);
}

#endif
