/*
 * check_base.c - errors and the allocator hooks: src/base/error.c, src/base/memory.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"

#include <cairn/cairn.h>
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors ---- */

/* Returns an error whose members error_set must overwrite. */
static struct cairn_error stale_error(void)
{
    struct cairn_error error = {.status = CAIRN_ERROR_LLVM, .system_error = ENOENT, .offset = 77};
    memset(error.message, 'x', sizeof error.message);
    return error;
}

START_TEST(error_set_fills_in_every_field)
{
    struct cairn_error error = stale_error();
    enum cairn_status status =
        error_set(&error, CAIRN_ERROR_CORRUPT, 0x1122334455667788, "%s has %d legs", "a stool", 3);
    ck_assert_int_eq(status, CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(error.status, CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(error.system_error, 0);
    ck_assert_uint_eq(error.offset, 0x1122334455667788);
    ck_assert_str_eq(error.message, "a stool has 3 legs");
}
END_TEST

START_TEST(error_set_takes_no_error)
{
    ck_assert_int_eq(error_set(NULL, CAIRN_ERROR_FULL, 5, "%d", 1), CAIRN_ERROR_FULL);
}
END_TEST

START_TEST(error_set_cuts_a_long_sentence)
{
    struct {
        struct cairn_error error;
        char guard;
    } guarded = {stale_error(), 'g'};
    char long_word[2 * CAIRN_ERROR_MESSAGE_SIZE];
    memset(long_word, 'a', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';

    (void)error_set(&guarded.error, CAIRN_ERROR_RANGE, 0, "%s", long_word);
    ck_assert_uint_eq(strlen(guarded.error.message), CAIRN_ERROR_MESSAGE_SIZE - 1);
    ck_assert_mem_eq(guarded.error.message, long_word, CAIRN_ERROR_MESSAGE_SIZE - 1);
    ck_assert_int_eq(guarded.guard, 'g');
}
END_TEST

START_TEST(error_set_keeps_a_sentence_that_just_fits)
{
    struct cairn_error error = stale_error();
    char word[CAIRN_ERROR_MESSAGE_SIZE];
    memset(word, 'b', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    (void)error_set(&error, CAIRN_ERROR_RANGE, 0, "%s", word);
    ck_assert_str_eq(error.message, word);
}
END_TEST

START_TEST(error_set_system_appends_what_the_number_means)
{
    struct cairn_error error = stale_error();
    enum cairn_status status = error_set_system(&error, ENOMEM, "cannot map %d bytes", 4096);
    ck_assert_int_eq(status, CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.status, CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, ENOMEM);
    ck_assert_uint_eq(error.offset, 0);
    ck_assert_str_eq(error.message, "cannot map 4096 bytes: Cannot allocate memory");
}
END_TEST

START_TEST(error_set_system_takes_a_number_that_means_nothing)
{
    struct cairn_error error = stale_error();
    (void)error_set_system(&error, 123456, "cannot map");
    ck_assert_int_eq(error.system_error, 123456);
    ck_assert_str_eq(error.message, "cannot map: error 123456");
}
END_TEST

START_TEST(error_set_system_takes_no_error)
{
    ck_assert_int_eq(error_set_system(NULL, EACCES, "%d", 1), CAIRN_ERROR_SYSTEM);
}
END_TEST

START_TEST(error_set_system_cuts_a_long_sentence)
{
    struct cairn_error error = stale_error();
    char word[CAIRN_ERROR_MESSAGE_SIZE - 5];
    memset(word, 'c', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    (void)error_set_system(&error, EPERM, "%s", word);
    ck_assert_uint_eq(strlen(error.message), CAIRN_ERROR_MESSAGE_SIZE - 1);
    ck_assert_mem_eq(error.message, word, sizeof word - 1);
    ck_assert_str_eq(error.message + sizeof word - 1, ": Ope");
}
END_TEST

/* Control characters of terminals, and invalid UTF-8. */
static const struct {
    const char *given;
    const char *cleaned;
} texts[] = {
    {"a\033[31mb\177c", "a?[31mb?c"},
    {"two\nlines and\ta tab", "two lines and a tab"},
    {"\xc2\x9b"
     "31m",
     "??31m"},
    {"\x9b"
     "31m",
     "?31m"},
    {"gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\xc2\xa0", "\xc2\xa0"},
    {"\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80", "?? ??? ????"},
    {"cut \xe2\x82", "cut ??"},
};
enum { TEXT_COUNT = sizeof texts / sizeof *texts };

START_TEST(sentences_have_no_control_characters)
{
    struct cairn_error error;
    char expected[CAIRN_ERROR_MESSAGE_SIZE];
    (void)error_set(&error, CAIRN_ERROR_CORRUPT, 0, "member '%s'", texts[_i].given);
    snprintf(expected, sizeof expected, "member '%s'", texts[_i].cleaned);
    ck_assert_str_eq(error.message, expected);
    (void)error_set_system(&error, EPERM, "%s", texts[_i].given);
    snprintf(expected, sizeof expected, "%s: Operation not permitted", texts[_i].cleaned);
    ck_assert_str_eq(error.message, expected);
}
END_TEST

/* A message that is truncated must not end with a part of a character. */
START_TEST(a_cut_sentence_is_utf_8)
{
    struct cairn_error error;
    char word[CAIRN_ERROR_MESSAGE_SIZE + 2];
    memset(word, 'd', sizeof word);
    memcpy(word + CAIRN_ERROR_MESSAGE_SIZE - 3, "\xe2\x82\xac", 4);
    (void)error_set(&error, CAIRN_ERROR_CORRUPT, 0, "%s", word);
    ck_assert_uint_eq(strlen(error.message), CAIRN_ERROR_MESSAGE_SIZE - 1);
    ck_assert_str_eq(error.message + CAIRN_ERROR_MESSAGE_SIZE - 4, "d??");
}
END_TEST

/* ---- The names of the statuses ---- */

static const struct {
    enum cairn_status status;
    int number;
    const char *name;
} statuses[] = {
    {CAIRN_OK, 0, "OK"},
    {CAIRN_ERROR_ARGUMENT, 1, "ARGUMENT"},
    {CAIRN_ERROR_MEMORY, 2, "MEMORY"},
    {CAIRN_ERROR_SYSTEM, 3, "SYSTEM"},
    {CAIRN_ERROR_TRUNCATED, 4, "TRUNCATED"},
    {CAIRN_ERROR_VERSION, 5, "VERSION"},
    {CAIRN_ERROR_CORRUPT, 6, "CORRUPT"},
    {CAIRN_ERROR_FULL, 7, "FULL"},
    {CAIRN_ERROR_NOT_FOUND, 8, "NOT_FOUND"},
    {CAIRN_ERROR_CONFLICT, 9, "CONFLICT"},
    {CAIRN_ERROR_UNMANAGED, 10, "UNMANAGED"},
    {CAIRN_ERROR_RANGE, 11, "RANGE"},
    {CAIRN_ERROR_UNSUPPORTED, 12, "UNSUPPORTED"},
    {CAIRN_ERROR_STATE, 13, "STATE"},
    {CAIRN_ERROR_LLVM, 14, "LLVM"},
};

enum { STATUS_COUNT = sizeof statuses / sizeof *statuses };

/* The numbers are part of the ABI, so the test has its own copy. */
START_TEST(statuses_have_their_numbers_and_names)
{
    ck_assert_int_eq(statuses[_i].status, statuses[_i].number);
    ck_assert_str_eq(cairn_status_name(statuses[_i].status), statuses[_i].name);
}
END_TEST

START_TEST(numbers_that_are_no_status_are_unknown)
{
    int numbers[] = {-1, STATUS_COUNT, 1000, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ck_assert_str_eq(cairn_status_name((enum cairn_status)numbers[i]), "UNKNOWN");
}
END_TEST

START_TEST(the_version_is_the_headers)
{
    ck_assert_str_eq(cairn_version(), CAIRN_VERSION_STRING);
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", CAIRN_VERSION_MAJOR, CAIRN_VERSION_MINOR,
             CAIRN_VERSION_PATCH);
    ck_assert_str_eq(cairn_version(), text);
}
END_TEST

/* ---- The allocator hooks ---- */

/* The last call of an allocator that counts. */
struct ledger {
    unsigned calls;
    void *block;
    size_t old_size;
    size_t new_size;
    size_t outstanding; /* bytes */
    bool refuses;
};

static void *count_reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct ledger *ledger = user;
    ledger->calls++;
    ledger->block = block;
    ledger->old_size = old_size;
    ledger->new_size = new_size;
    if (new_size == 0) {
        ledger->outstanding -= old_size;
        free(block);
        return NULL;
    }
    if (ledger->refuses)
        return NULL;
    void *moved = realloc(block, new_size);
    ledger->outstanding += moved == NULL ? 0 : new_size - old_size;
    if (block == NULL && moved != NULL)
        memset(moved, 0xaa, new_size);
    return moved;
}

static struct cairn_allocator counting(struct ledger *ledger)
{
    return (struct cairn_allocator){.reallocate = count_reallocate, .user = ledger};
}

START_TEST(no_allocator_means_malloc)
{
    struct cairn_allocator none = {0};
    const struct cairn_allocator *choices[] = {NULL, &none};
    for (int i = 0; i < 2; i++) {
        struct cairn_allocator allocator = memory_allocator(choices[i]);
        ck_assert(allocator.reallocate != NULL);
        char *block = memory_new(&allocator, 3, 4);
        ck_assert_ptr_nonnull(block);
        memcpy(block, "eleven char", 12);
        block = memory_resize(&allocator, block, 12, 100000);
        ck_assert_ptr_nonnull(block);
        ck_assert_str_eq(block, "eleven char");
        memory_free(&allocator, block, 100000);
    }
}
END_TEST

START_TEST(a_chosen_allocator_is_kept)
{
    struct ledger ledger = {0};
    struct cairn_allocator chosen = counting(&ledger);
    struct cairn_allocator allocator = memory_allocator(&chosen);
    ck_assert(allocator.reallocate == chosen.reallocate);
    ck_assert_ptr_eq(allocator.user, &ledger);
}
END_TEST

START_TEST(new_memory_is_zeroed)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    const unsigned char zeros[60] = {0};
    void *block = memory_new(&allocator, 6, 10);
    ck_assert_ptr_nonnull(block);
    ck_assert_mem_eq(block, zeros, sizeof zeros);
    ck_assert_uint_eq(ledger.old_size, 0);
    ck_assert_uint_eq(ledger.new_size, 60);
    memory_free(&allocator, block, 60);
}
END_TEST

START_TEST(a_size_that_overflows_is_never_asked_for)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    ck_assert_ptr_null(memory_new(&allocator, SIZE_MAX / 2 + 1, 2));
    ck_assert_ptr_null(memory_new(&allocator, 2, SIZE_MAX / 2 + 1));
    ck_assert_ptr_null(memory_new(&allocator, SIZE_MAX, SIZE_MAX));
    ck_assert_uint_eq(ledger.calls, 0);
}
END_TEST

START_TEST(nothing_is_never_asked_for)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    ck_assert_ptr_null(memory_new(&allocator, 0, 8));
    ck_assert_ptr_null(memory_new(&allocator, 8, 0));
    ck_assert_uint_eq(ledger.calls, 0);
}
END_TEST

START_TEST(a_refusal_is_passed_on)
{
    struct ledger ledger = {.refuses = true};
    struct cairn_allocator allocator = counting(&ledger);
    ck_assert_ptr_null(memory_new(&allocator, 1, 8));
    ck_assert_uint_eq(ledger.calls, 1);
}
END_TEST

START_TEST(a_refused_resize_leaves_the_block)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    char *block = memory_new(&allocator, 1, 8);
    ck_assert_ptr_nonnull(block);
    memcpy(block, "pebbles", 8);
    ledger.refuses = true;
    ck_assert_ptr_null(memory_resize(&allocator, block, 8, 16));
    ck_assert_ptr_eq(ledger.block, block);
    ck_assert_uint_eq(ledger.old_size, 8);
    ck_assert_uint_eq(ledger.new_size, 16);
    ck_assert_str_eq(block, "pebbles");
    memory_free(&allocator, block, 8);
}
END_TEST

START_TEST(free_hands_over_the_size)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    void *block = memory_new(&allocator, 5, 8);
    ck_assert_ptr_nonnull(block);
    memory_free(&allocator, block, 40);
    ck_assert_uint_eq(ledger.calls, 2);
    ck_assert_uint_eq(ledger.old_size, 40);
    ck_assert_uint_eq(ledger.new_size, 0);
}
END_TEST

START_TEST(free_of_nothing_asks_nobody)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    memory_free(&allocator, NULL, 0);
    ck_assert_uint_eq(ledger.calls, 0);
}
END_TEST

/* ---- All of them ---- */

static TCase *error_cases(void)
{
    TCase *cases = tcase_create("error");
    tcase_add_test(cases, error_set_fills_in_every_field);
    tcase_add_test(cases, error_set_takes_no_error);
    tcase_add_test(cases, error_set_cuts_a_long_sentence);
    tcase_add_test(cases, error_set_keeps_a_sentence_that_just_fits);
    tcase_add_test(cases, error_set_system_appends_what_the_number_means);
    tcase_add_test(cases, error_set_system_takes_a_number_that_means_nothing);
    tcase_add_test(cases, error_set_system_takes_no_error);
    tcase_add_test(cases, error_set_system_cuts_a_long_sentence);
    tcase_add_loop_test(cases, sentences_have_no_control_characters, 0, TEXT_COUNT);
    tcase_add_test(cases, a_cut_sentence_is_utf_8);
    tcase_add_loop_test(cases, statuses_have_their_numbers_and_names, 0, STATUS_COUNT);
    tcase_add_test(cases, numbers_that_are_no_status_are_unknown);
    tcase_add_test(cases, the_version_is_the_headers);
    return cases;
}

/* ---- Pools ---- */

START_TEST(objects_of_a_pool_are_apart_and_in_one_cache_line)
{
    enum { OBJECTS = 2000, BYTES = 32 };
    static unsigned char *objects[OBJECTS];
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    struct pool pool;
    pool_init(&pool, &allocator, BYTES);
    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] = pool_take(&pool, 1);
        ck_assert_ptr_nonnull(objects[i]);
        ck_assert_uint_eq((uintptr_t)objects[i] % BYTES, 0);
        memset(objects[i], (int)(i % 251), BYTES);
    }
    for (size_t i = 0; i < OBJECTS; i++)
        for (size_t j = 0; j < BYTES; j++)
            ck_assert_uint_eq(objects[i][j], i % 251);
    pool_release(&pool);
}
END_TEST

START_TEST(an_object_that_a_pool_got_back_is_used_again)
{
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    struct pool pool;
    pool_init(&pool, &allocator, 32);
    void *first = pool_take(&pool, 1);
    pool_give(&pool, NULL, 1);
    pool_give(&pool, first, 1);
    ck_assert_ptr_eq(pool_take(&pool, 1), first);
    pool_release(&pool);
}
END_TEST

static bool is_filled(const unsigned char *bytes, size_t count, size_t value)
{
    size_t same = 0;
    for (size_t i = 0; i < count; i++)
        same += bytes[i] == value;
    return same == count;
}

/* Takes and gives arrays of random lengths. Each byte has the array's mark until it is given. */
START_TEST(arrays_of_a_pool_are_apart_and_used_again)
{
    enum { ARRAYS = 64, STEPS = 20000, BYTES = 40 };
    struct ledger ledger = {0};
    struct cairn_allocator allocator = counting(&ledger);
    struct pool pool;
    unsigned char *arrays[ARRAYS] = {0};
    size_t counts[ARRAYS] = {0};
    unsigned state = 1;
    size_t bytes = 0;
    pool_init(&pool, &allocator, BYTES);
    ck_assert_ptr_null(pool_take(&pool, 0));
    for (int step = 0; step < STEPS; step++) {
        state = state * 1103515245 + 12345;
        size_t at = state >> 16 & (ARRAYS - 1);
        ck_assert(is_filled(arrays[at], counts[at] * BYTES, at));
        pool_give(&pool, arrays[at], counts[at]);
        counts[at] = 1 + (state >> 22) % (POOL_ARRAY_MAX + 8);
        arrays[at] = pool_take(&pool, counts[at]);
        ck_assert_ptr_nonnull(arrays[at]);
        memset(arrays[at], (int)at, counts[at] * BYTES);
        if (step == STEPS / 2)
            bytes = ledger.outstanding;
    }
    ck_assert_uint_le(ledger.outstanding, bytes + bytes / 2);
    for (size_t at = 0; at < ARRAYS; at++)
        pool_give(&pool, arrays[at], counts[at]);
    pool_release(&pool);
    ck_assert_uint_eq(ledger.outstanding, 0);
}
END_TEST

static TCase *pool_cases(void)
{
    TCase *cases = tcase_create("pool");
    tcase_add_test(cases, objects_of_a_pool_are_apart_and_in_one_cache_line);
    tcase_add_test(cases, an_object_that_a_pool_got_back_is_used_again);
    tcase_add_test(cases, arrays_of_a_pool_are_apart_and_used_again);
    return cases;
}

static TCase *memory_cases(void)
{
    TCase *cases = tcase_create("memory");
    tcase_add_test(cases, no_allocator_means_malloc);
    tcase_add_test(cases, a_chosen_allocator_is_kept);
    tcase_add_test(cases, new_memory_is_zeroed);
    tcase_add_test(cases, a_size_that_overflows_is_never_asked_for);
    tcase_add_test(cases, nothing_is_never_asked_for);
    tcase_add_test(cases, a_refusal_is_passed_on);
    tcase_add_test(cases, a_refused_resize_leaves_the_block);
    tcase_add_test(cases, free_hands_over_the_size);
    tcase_add_test(cases, free_of_nothing_asks_nobody);
    return cases;
}

int main(void)
{
    Suite *suite = suite_create("base");
    suite_add_tcase(suite, error_cases());
    suite_add_tcase(suite, memory_cases());
    suite_add_tcase(suite, pool_cases());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
