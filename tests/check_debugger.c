/*
 * Tests of gdb's list of compiled code in forked children.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fork_support.h"
#include "stackmap_support.h"

#include <cairn/cairn.h>
#include <cairn/debug.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* ---- What gdb reads ---- */

struct entry {
    const struct entry *next;
    const struct entry *previous;
};

extern const struct {
    uint32_t version;
    uint32_t action;
    const struct entry *relevant;
    const struct entry *first;
} __jit_debug_descriptor; /* NOLINT(bugprone-reserved-identifier,cert-*): gdb's name */

/* Returns the length of the list, whose links must agree. */
static size_t list_length(void)
{
    size_t length = 0;
    const struct entry *previous = NULL;
    for (const struct entry *entry = __jit_debug_descriptor.first; entry != NULL;
         entry = entry->next) {
        ck_assert_ptr_eq(entry->previous, previous);
        previous = entry;
        length++;
    }
    return length;
}

/* ---- The fixture ---- */

enum { ENTRIES = 3 };

static cairn_runtime *runtime;
static cairn_debugger *debugger;
static cairn_entry *entries[ENTRIES];

static void code(void) {}

static cairn_entry *create_entry(void)
{
    cairn_entry *entry = NULL;
    ck_assert_ok(
        cairn_entry_create(runtime, "f", NULL, (const void *)(uintptr_t)code, &entry, NULL));
    return entry;
}

static void set_up(void)
{
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_debugger_attach(runtime, &debugger, NULL));
    for (int i = 0; i < ENTRIES; i++)
        entries[i] = create_entry();
    ck_assert_uint_eq(list_length(), ENTRIES);
}

static void tear_down(void)
{
    for (int i = 0; i < ENTRIES; i++)
        cairn_entry_destroy(entries[i]);
    cairn_debugger_destroy(debugger);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(list_length(), 0);
}

/* Attaches a debugger of the child's own, and detaches it. */
static void attach_in_child(void)
{
    cairn_debugger *own = NULL;
    ck_assert_ok(cairn_debugger_attach(runtime, &own, NULL));
    cairn_entry *entry = create_entry();
    ck_assert_uint_eq(list_length(), 1);
    cairn_entry_destroy(entry);
    cairn_debugger_destroy(own);
    ck_assert_uint_eq(list_length(), 0);
}

/* Executes a function in a child, which must not take long. */
static void in_child(void (*work)(void))
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fork_limit_time(20);
        work();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "the child ended with status 0x%x", (unsigned)status);
}

/* ---- Tests ---- */

static void detach_parents_first(void)
{
    ck_assert_uint_eq(list_length(), ENTRIES);
    cairn_debugger_destroy(debugger);
    ck_assert_uint_eq(list_length(), 0);
    attach_in_child();
}

static void detach_parents_last(void)
{
    attach_in_child();
    cairn_debugger_destroy(debugger);
    attach_in_child();
}

START_TEST(a_child_removes_its_parents_code_from_its_list)
{
    in_child(detach_parents_first);
    in_child(detach_parents_last);
    ck_assert_uint_eq(list_length(), ENTRIES);
}
END_TEST

static atomic_bool is_over;

/* Uses nothing of Check, whose lock a child would wait for. */
static void *add_and_remove(void *unused)
{
    cairn_entry *entry;
    while (!is_over && cairn_entry_create(runtime, "f", NULL, (const void *)(uintptr_t)code, &entry,
                                          NULL) == CAIRN_OK) {
        cairn_entry_destroy(entry);
        cairn_runtime_quiesce(runtime); /* otherwise memory grows, which each fork copies */
    }
    return unused;
}

START_TEST(a_child_does_not_wait_for_threads_of_its_parent)
{
    enum { THREADS = 2, CHILDREN = 50 };
    pthread_t threads[THREADS];
    if (fork_breaks_the_allocator())
        return;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_and_remove, NULL), 0);
    for (int i = 0; i < CHILDREN; i++)
        in_child(attach_in_child);
    is_over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("debugger");
    TCase *tests = tcase_create("fork");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_child_removes_its_parents_code_from_its_list);
    tcase_add_test(tests, a_child_does_not_wait_for_threads_of_its_parent);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? 0 : 1;
}
