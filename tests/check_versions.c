/*
 * Tests of entries whose versions are C functions: what calls reach while versions are replaced, in
 * each mode of code memory, by several threads, and in forked children.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "mode_support.h"
#include "runtime_support.h"
#include "slab_limit.h"
#include "stackmap_support.h"

#include <cairn/cairn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int64_t function(int64_t x);

/* ---- Versions: function number i returns i + x ---- */

#define VERSIONS(X)                                                                                \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
enum { VERSION_COUNT = 16 };
#define DEFINE_VERSION(number)                                                                     \
    static int64_t version_##number(int64_t x) { return (number) + x; }
VERSIONS(DEFINE_VERSION)
#define VERSION_ADDRESS(number) (const void *)(uintptr_t)version_##number,
static const void *const versions[VERSION_COUNT] = {VERSIONS(VERSION_ADDRESS)};

/* ---- The fixture ---- */

static struct support_allocator allocations;
static cairn_runtime *runtime;
static cairn_signature *signature;

static void create_runtime(enum cairn_code_mode mode)
{
    const struct cairn_type word = CAIRN_INTEGER(64);
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations),
                                                  .code_mode = mode};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_signature_create(NULL, &word, 1, &word, 1, &signature, NULL));
}

static void destroy_runtime(void)
{
    cairn_runtime_destroy(runtime);
    cairn_signature_destroy(signature);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}

static void set_up(void) { create_runtime(CAIRN_CODE_MODE_AUTOMATIC); }

static cairn_entry *create_entry(unsigned number)
{
    struct cairn_error error = {0};
    cairn_entry *entry = NULL;
    enum cairn_status status =
        cairn_entry_create(runtime, "f", signature, versions[number], &entry, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return entry;
}

static enum cairn_status install(cairn_entry *entry, uint64_t number)
{
    const struct cairn_entry_version version = {.code = versions[number % VERSION_COUNT],
                                                .signature = signature};
    return cairn_entry_install(entry, &version, CAIRN_RELAXED, NULL);
}

static int64_t call(const cairn_entry *entry, int64_t x)
{
    return ((function *)(uintptr_t)cairn_entry_target(entry))(x);
}

/* ---- Calling ---- */

START_TEST(calls_reach_the_version_that_was_installed_last)
{
    for (int i = site_first_mode(); i < SITE_MODES; i++) {
        create_runtime(site_modes[i]);
        cairn_entry *entry = create_entry(3);
        cairn_entry *other = create_entry(9);
        const void *target = cairn_entry_target(entry);
        ck_assert_ptr_ne(target, cairn_entry_target(other));
        ck_assert_int_eq(call(entry, 100), 103);
        for (uint64_t n = 0; n < 2 * VERSION_COUNT; n++) {
            ck_assert_ok(install(entry, n));
            ck_assert_int_eq(call(entry, 100), 100 + (int64_t)n % VERSION_COUNT);
            ck_assert_ok(install(entry, n));
            ck_assert_int_eq(call(entry, 100), 100 + (int64_t)n % VERSION_COUNT);
        }
        ck_assert_ptr_eq(target, cairn_entry_target(entry));
        ck_assert_int_eq(call(other, 100), 109);
        cairn_entry_destroy(entry);
        cairn_entry_destroy(other);
        destroy_runtime();
    }
}
END_TEST

START_TEST(calls_by_a_signature_reach_the_version)
{
    struct cairn_value x = cairn_value_of_integer(64, 40), result;
    cairn_entry *entry = create_entry(2);
    ck_assert_ok(cairn_call(signature, cairn_entry_target(entry), &x, 1, &result, NULL));
    ck_assert_int_eq(cairn_value_signed(&result), 42);
    cairn_entry_destroy(entry);
}
END_TEST

START_TEST(an_entry_may_be_the_version_of_another)
{
    cairn_entry *inner = create_entry(2);
    cairn_entry *outer = create_entry(1);
    const struct cairn_entry_version version = {.code = cairn_entry_target(inner),
                                                .signature = signature};
    ck_assert_ok(cairn_entry_install(outer, &version, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(call(outer, 5), 7);
    ck_assert_ok(install(inner, 4));
    ck_assert_int_eq(call(outer, 5), 9);
    cairn_entry_destroy(outer);
    cairn_entry_destroy(inner);
}
END_TEST

/* ---- Refusals ---- */

static void expect_refused(cairn_entry *entry, const struct cairn_entry_version *version,
                           const char *text)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_entry_install(entry, version, CAIRN_RELAXED, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    if (entry != NULL)
        ck_assert_int_eq(call(entry, 1), 6);
}

START_TEST(a_version_of_another_type_is_refused_with_both_types)
{
    const struct {
        struct cairn_type result, arguments[2];
        uint32_t result_count, argument_count;
        const char *name;
    } cases[] = {
        {CAIRN_DOUBLE, {CAIRN_INTEGER(64)}, 1, 1, "double (i64)"},
        {CAIRN_INTEGER(64), {CAIRN_INTEGER(64)}, 0, 1, "void (i64)"},
        {CAIRN_INTEGER(64), {CAIRN_INTEGER(64), CAIRN_POINTER}, 1, 2, "i64 (i64, ptr)"},
        {CAIRN_INTEGER(64), {CAIRN_INTEGER(32)}, 1, 1, "i64 (i32)"},
        {CAIRN_INTEGER(64), {CAIRN_POINTER}, 1, 0, "i64 ()"},
    };
    cairn_entry *entry = create_entry(5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cairn_signature *other;
        ck_assert_ok(cairn_signature_create(NULL, &cases[i].result, cases[i].result_count,
                                            cases[i].arguments, cases[i].argument_count, &other,
                                            NULL));
        const struct cairn_entry_version version = {.code = versions[1], .signature = other};
        expect_refused(entry, &version, "entry 'f' has the type i64 (i64), and the version 0x");
        expect_refused(entry, &version, cases[i].name);
        cairn_signature_destroy(other);
    }
    expect_refused(entry, &(struct cairn_entry_version){.code = versions[1]}, "the type unknown");
    cairn_entry_destroy(entry);
}
END_TEST

START_TEST(a_long_type_does_not_overflow_the_message)
{
    struct cairn_type arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    char name[1024];
    cairn_signature *many;
    cairn_entry *entry;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (uint32_t i = 0; i < CAIRN_SIGNATURE_ARGUMENTS_MAX; i++)
        arguments[i] = i % 2 == 0 ? CAIRN_POINTER : CAIRN_DOUBLE;
    ck_assert_ok(cairn_signature_create(NULL, arguments, 2, arguments,
                                        CAIRN_SIGNATURE_ARGUMENTS_MAX, &many, NULL));
    ck_assert_ok(cairn_entry_create(runtime, name, many, versions[5], &entry, NULL));
    const struct cairn_entry_version version = {.code = versions[1], .signature = signature};
    expect_refused(entry, &version, "nnn' has the type {ptr, double} (ptr, double, ptr");
    cairn_entry_destroy(entry);
    cairn_signature_destroy(many);
}
END_TEST

/* Types that are too long for the message, and alike at their beginning. */
START_TEST(long_types_are_named_from_the_first_difference)
{
    const struct {
        uint32_t count;
        unsigned bits; /* of the last argument */
        const char *text;
    } cases[] = {
        {19, 32, "the type i64 (18 alike, i64), and the version "},
        {19, 32, "the type i64 (18 alike, i32)"},
        {18, 64, "the type i64 (18 alike, i64), and the version "},
        {18, 64, "the type i64 (18 alike)"},
    };
    enum { ARGUMENTS = 19 };
    struct cairn_type arguments[ARGUMENTS];
    cairn_signature *many, *other;
    cairn_entry *entry;
    for (uint32_t i = 0; i < ARGUMENTS; i++)
        arguments[i] = CAIRN_INTEGER(64);
    ck_assert_ok(cairn_signature_create(NULL, arguments, 1, arguments, ARGUMENTS, &many, NULL));
    ck_assert_ok(cairn_entry_create(runtime, "f", many, versions[5], &entry, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arguments[ARGUMENTS - 1].bits = (uint16_t)cases[i].bits;
        ck_assert_ok(
            cairn_signature_create(NULL, arguments, 1, arguments, cases[i].count, &other, NULL));
        const struct cairn_entry_version version = {.code = versions[1], .signature = other};
        expect_refused(entry, &version, cases[i].text);
        cairn_signature_destroy(other);
        arguments[ARGUMENTS - 1].bits = 64;
    }
    cairn_entry_destroy(entry);
    cairn_signature_destroy(many);
}
END_TEST

START_TEST(misuse_is_refused)
{
    static const char exit_code[1];
    cairn_entry *entry = create_entry(5);
    cairn_entry *none = NULL;
    expect_refused(entry, NULL, "`version` is NULL");
    expect_refused(entry, &(struct cairn_entry_version){.signature = signature},
                   "`version->code` is NULL");
    expect_refused(NULL, &(struct cairn_entry_version){.code = versions[1]}, "`entry` is NULL");
    expect_refused(
        entry,
        &(struct cairn_entry_version){.code = cairn_entry_target(entry), .signature = signature},
        "cannot have itself as a version");
    expect_refused(entry,
                   &(struct cairn_entry_version){
                       .code = versions[1], .signature = signature, .leave = exit_code},
                   "it is not in a module");
    ck_assert_int_eq(cairn_entry_create(NULL, "f", NULL, versions[0], &none, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_entry_create(runtime, "f", NULL, NULL, &none, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_entry_create(runtime, "f", NULL, versions[0], NULL, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(none);
    cairn_entry_destroy(entry);
    cairn_entry_destroy(NULL);
}
END_TEST

START_TEST(an_entry_without_a_type_takes_versions_with_and_without_one)
{
    cairn_entry *entry;
    ck_assert_ok(cairn_entry_create(runtime, NULL, NULL, versions[5], &entry, NULL));
    const struct cairn_entry_version without = {.code = versions[1]};
    const struct cairn_entry_version with = {.code = versions[2], .signature = signature};
    ck_assert_ok(cairn_entry_install(entry, &without, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(call(entry, 1), 2);
    ck_assert_ok(cairn_entry_install(entry, &with, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(call(entry, 1), 3);
    cairn_entry_destroy(entry);
}
END_TEST

START_TEST(an_entry_with_a_type_takes_no_version_without_one)
{
    cairn_entry *entry = create_entry(5);
    expect_refused(entry, &(struct cairn_entry_version){.code = versions[1]}, "the type unknown");
    cairn_entry_destroy(entry);
}
END_TEST

/* ---- Memory ---- */

START_TEST(an_entry_that_cannot_be_allocated_leaves_nothing)
{
    struct cairn_error error;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    cairn_entry *entry = NULL;
    for (size_t i = 1; status != CAIRN_OK; i++) {
        size_t before = allocations.outstanding_bytes;
        allocations.fail_at = allocations.calls + i;
        status = cairn_entry_create(runtime, "f", signature, versions[0], &entry, &error);
        allocations.fail_at = 0;
        ck_assert_msg(status == CAIRN_OK || status == CAIRN_ERROR_MEMORY, "%s", error.message);
        ck_assert(status == CAIRN_OK || allocations.outstanding_bytes == before);
    }
    ck_assert_int_eq(call(entry, 1), 1);
    cairn_entry_destroy(entry);
}
END_TEST

START_TEST(the_memory_of_destroyed_entries_is_used_again)
{
    enum { ENTRIES = 500, TIMES = 20 };
    static cairn_entry *entries[ENTRIES];
    struct cairn_runtime_statistics first = {0};
    for (int n = 0; n < TIMES; n++) {
        for (unsigned i = 0; i < ENTRIES; i++)
            entries[i] = create_entry(i % VERSION_COUNT);
        for (unsigned i = 0; i < ENTRIES; i++)
            ck_assert_int_eq(call(entries[i], 0), i % VERSION_COUNT);
        struct cairn_runtime_statistics now = support_runtime_statistics(runtime);
        first = n == 0 ? now : first;
        ck_assert_uint_eq(now.code_bytes, first.code_bytes);
        ck_assert_uint_eq(now.data_bytes, first.data_bytes);
        for (unsigned i = 0; i < ENTRIES; i++)
            cairn_entry_destroy(entries[i]);
        cairn_runtime_quiesce(runtime);
    }
}
END_TEST

START_TEST(a_slab_without_space_is_reported)
{
    enum { ENTRIES_MAX = 100000 };
    static cairn_entry *entries[ENTRIES_MAX];
    const struct cairn_runtime_options options = {.slab_size = 65536};
    cairn_runtime *small;
    struct cairn_error error = {0};
    enum cairn_status status = CAIRN_OK;
    size_t count = 0;
    ck_assert_ok(cairn_runtime_create(&options, &small, NULL));
    support_limit_slabs(small, 1);
    while (count < ENTRIES_MAX &&
           (status = cairn_entry_create(small, "f", NULL, versions[count % VERSION_COUNT],
                                        &entries[count], &error)) == CAIRN_OK)
        count++;
    ck_assert_int_eq(status, CAIRN_ERROR_FULL);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(call(entries[i], 0), (int64_t)(i % VERSION_COUNT));
        cairn_entry_destroy(entries[i]);
    }
    cairn_runtime_quiesce(small);
    ck_assert_ok(cairn_entry_create(small, "f", NULL, versions[1], &entries[0], NULL));
    cairn_entry_destroy(entries[0]);
    cairn_runtime_destroy(small);
}
END_TEST

/* ---- Threads ---- */

enum { CALLERS = 3, INSTALLERS = 2, INSTALLATIONS = 20000 };

/* Versions are numbered modulo VERSION_COUNT. With one installer, a call reaches a version between
 * the last one that was installed completely before it, and the first one that was not begun after
 * it. */
static struct {
    cairn_entry *entry;
    _Atomic uint64_t begun;
    _Atomic uint64_t finished;
    _Atomic bool stop;
    _Atomic unsigned checked;
    _Atomic unsigned wrong;
    bool has_order;
} race;

static void *call_it(void *unused)
{
    while (!atomic_load(&race.stop)) {
        uint64_t from = atomic_load(&race.finished);
        int64_t number = call(race.entry, 1000) - 1000;
        uint64_t to = atomic_load(&race.begun);
        uint64_t distance = ((uint64_t)number - from) % VERSION_COUNT;
        bool is_known = race.has_order && to - from < VERSION_COUNT;
        race.wrong += number < 0 || number >= VERSION_COUNT;
        race.wrong += is_known && distance > to - from;
        race.checked += is_known;
    }
    return unused;
}

static void *install_it(void *seed)
{
    uint64_t number = (uintptr_t)seed;
    for (int i = 0; i < INSTALLATIONS; i++) {
        number = race.has_order ? number + 1 : number * 6364136223846793005U + 1442695040888963407U;
        if (race.has_order)
            atomic_store(&race.begun, number);
        race.wrong += install(race.entry, race.has_order ? number : number >> 40) != CAIRN_OK;
        if (race.has_order)
            atomic_store(&race.finished, number);
    }
    return NULL;
}

START_TEST(each_call_reaches_a_version_of_its_time)
{
    pthread_t callers[CALLERS], installers[INSTALLERS];
    size_t installer_count = _i == 0 ? 1 : INSTALLERS;
    race.has_order = _i == 0;
    race.entry = create_entry(0);
    atomic_store(&race.stop, false);
    for (size_t i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, call_it, NULL);
    for (size_t i = 0; i < installer_count; i++)
        pthread_create(&installers[i], NULL, install_it, (void *)(uintptr_t)(i * 77));
    for (size_t i = 0; i < installer_count; i++)
        pthread_join(installers[i], NULL);
    atomic_store(&race.stop, true);
    for (size_t i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    ck_assert_uint_eq(race.wrong, 0);
    cairn_entry_destroy(race.entry);
}
END_TEST

/* ---- Forked children ---- */

/* Whether a child that runs `check` succeeds. */
static bool succeeds(bool (*check)(cairn_entry *entry), cairn_entry *entry)
{
    int result = 1;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(check(entry) ? 0 : 1);
    }
    waitpid(child, &result, 0);
    return result == 0;
}

/* A child installs versions of its own, also of entries that it creates and destroys. */
static bool install_all(cairn_entry *entry)
{
    bool is_right = call(entry, 10) == 13;
    for (uint64_t n = 0; n < VERSION_COUNT; n++)
        is_right &= install(entry, n) == CAIRN_OK && call(entry, 10) == 10 + (int64_t)n;
    cairn_entry *own = NULL;
    is_right &= cairn_entry_create(runtime, "g", signature, versions[4], &own, NULL) == CAIRN_OK &&
                call(own, 10) == 14;
    cairn_entry_destroy(own);
    cairn_runtime_quiesce(runtime);
    return is_right && call(entry, 10) == 10 + VERSION_COUNT - 1;
}

START_TEST(a_child_has_the_versions_of_the_fork_and_installs_its_own)
{
    for (int i = site_first_mode(); i < SITE_MODES; i++) {
        create_runtime(site_modes[i]);
        cairn_entry *entry = create_entry(3);
        ck_assert(succeeds(install_all, entry));
        ck_assert_int_eq(call(entry, 10), 13);
        ck_assert_ok(install(entry, 7));
        ck_assert_int_eq(call(entry, 10), 17);
        cairn_entry_destroy(entry);
        destroy_runtime();
    }
}
END_TEST

/* The parent's thread goes on installing, which the child must not see. */
static bool stays_unchanged(cairn_entry *entry)
{
    int64_t number = call(entry, 0);
    bool is_right = true;
    for (int i = 0; i < 1000; i++)
        is_right &= call(entry, 0) == number;
    return is_right && install(entry, (uint64_t)number + 1) == CAIRN_OK &&
           call(entry, 0) == (number + 1) % VERSION_COUNT;
}

START_TEST(a_child_does_not_see_what_its_parent_installs)
{
    enum { CHILDREN = 30 };
    pthread_t installer;
    unsigned failed = 0;
    race.has_order = false;
    race.entry = create_entry(0);
    pthread_create(&installer, NULL, install_it, (void *)(uintptr_t)1);
    for (int i = 0; i < CHILDREN; i++)
        failed += !succeeds(stays_unchanged, race.entry);
    pthread_join(installer, NULL);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_eq(race.wrong, 0);
    cairn_entry_destroy(race.entry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("versions");
    TCase *tests = tcase_create("entries");
    TCase *modes = tcase_create("modes");
    tcase_add_checked_fixture(tests, set_up, destroy_runtime);
    tcase_set_timeout(tests, 60);
    tcase_set_timeout(modes, 60);
    tcase_add_test(modes, calls_reach_the_version_that_was_installed_last);
    tcase_add_test(modes, a_child_has_the_versions_of_the_fork_and_installs_its_own);
    tcase_add_test(tests, calls_by_a_signature_reach_the_version);
    tcase_add_test(tests, an_entry_may_be_the_version_of_another);
    tcase_add_test(tests, a_version_of_another_type_is_refused_with_both_types);
    tcase_add_test(tests, a_long_type_does_not_overflow_the_message);
    tcase_add_test(tests, long_types_are_named_from_the_first_difference);
    tcase_add_test(tests, misuse_is_refused);
    tcase_add_test(tests, an_entry_without_a_type_takes_versions_with_and_without_one);
    tcase_add_test(tests, an_entry_with_a_type_takes_no_version_without_one);
    tcase_add_test(tests, an_entry_that_cannot_be_allocated_leaves_nothing);
    tcase_add_test(tests, the_memory_of_destroyed_entries_is_used_again);
    tcase_add_test(tests, a_slab_without_space_is_reported);
    tcase_add_loop_test(tests, each_call_reaches_a_version_of_its_time, 0, 2);
    tcase_add_test(tests, a_child_does_not_see_what_its_parent_installs);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, modes);
    return run_suite(suite);
}
