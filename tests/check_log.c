/*
 * Tests of logs: the file, its bound, crashes, threads, signals and forked children. The events of
 * compiled code are tested by check_llvm_log.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fork_support.h"
#include "log_support.h"

#include <cairn/cairn.h>
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { NAME_BYTES = 256, TEXT_BYTES = 2000, CHILD_SECONDS = 60 };

static char name[NAME_BYTES];
static cairn_log *the_log;
static cairn_runtime *runtime;
static struct log_file file;

static void create(uint64_t slot_count)
{
    struct cairn_error error = {0};
    const struct cairn_log_options options = {.slot_count = slot_count};
    log_name(name, sizeof name);
    ck_assert_msg(cairn_log_create(name, &options, &the_log, &error) == CAIRN_OK, "%s",
                  error.message);
    ck_assert_int_eq(cairn_runtime_create(NULL, &runtime, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_log_attach(the_log, runtime, NULL), CAIRN_OK);
}

/* Ends the log, and opens its file. */
static void end(void)
{
    cairn_runtime_destroy(runtime);
    cairn_log_destroy(the_log);
    ck_assert(log_open(&file, name));
}

static void remove_file(void)
{
    log_close(&file);
    unlink(name);
}

static void write_text(const char *text, const char *about, uint64_t a)
{
    const struct cairn_log_message message = {.text = text, .name = about, .values = {a, ~a}};
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it is async-signal-safe. */
    cairn_log_write(runtime, &message);
}

static void assert_next(const char *text, const char *about, uint64_t a)
{
    char found[TEXT_BYTES];
    const struct cairn_log_event *event = log_next(&file);
    ck_assert_ptr_nonnull(event);
    ck_assert_uint_eq(event->kind, CAIRN_LOG_HOST);
    ck_assert_uint_eq(event->a, a);
    ck_assert_uint_eq(event->b, ~a);
    ck_assert_str_eq(log_text(&file, event->text, found, sizeof found), text);
    ck_assert_str_eq(log_text(&file, event->name, found, sizeof found), about);
}

/* ---- The file ---- */

START_TEST(the_header_tells_the_process_the_machine_and_the_time)
{
    time_t before = time(NULL);
    create(64);
    end();
    const struct cairn_log_header *header = file.header;
    ck_assert_mem_eq(header->magic, CAIRN_LOG_MAGIC, sizeof header->magic);
    ck_assert_uint_eq(header->byte_order, CAIRN_LOG_BYTE_ORDER);
    ck_assert_uint_eq(header->version, CAIRN_LOG_VERSION);
    ck_assert_uint_eq(header->slot_bytes, sizeof(struct cairn_log_event));
    ck_assert_uint_eq(header->slot_count, 64);
    ck_assert_uint_eq(file.size, header->header_bytes + 64 * header->slot_bytes);
    ck_assert_uint_eq(header->process, (uint64_t)getpid());
    ck_assert_str_eq(header->cairn_version, cairn_version());
    ck_assert_str_eq(header->architecture, cairn_architecture_name(cairn_architecture_host()));
    ck_assert_uint_ge(header->start_time_ns / 1000000000, (uint64_t)before);
    ck_assert_uint_gt(header->clock_hz, 1000000);
    ck_assert_uint_ge(header->end_clock, header->start_clock);
    ck_assert_uint_eq(header->lost, 0);
    remove_file();
}
END_TEST

START_TEST(texts_of_all_lengths_are_recorded_and_long_ones_are_cut)
{
    static const size_t lengths[] = {0, 1, 7, 8, 55, 56, 57, 119, 120, 121, 999, 1000, 1001, 1500};
    enum { COUNT = sizeof lengths / sizeof *lengths };
    char text[TEXT_BYTES];
    create(1024);
    for (size_t i = 0; i < COUNT; i++) {
        memset(text, 'a' + (int)i, lengths[i]);
        text[lengths[i]] = '\0';
        write_text(text, "of a length", i);
    }
    end();
    for (size_t i = 0; i < COUNT; i++) {
        size_t length =
            lengths[i] < CAIRN_LOG_STRING_BYTES_MAX ? lengths[i] : CAIRN_LOG_STRING_BYTES_MAX;
        memset(text, 'a' + (int)i, length);
        text[length] = '\0';
        assert_next(text, "of a length", i);
    }
    ck_assert_ptr_null(log_next(&file));
    remove_file();
}
END_TEST

START_TEST(a_repeated_text_is_stored_once)
{
    char text[32], other[32];
    create(64);
    for (unsigned i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "same %u", i % 2);
        snprintf(other, sizeof other, "same %u", (i + 1) % 2);
        write_text(text, other, i);
    }
    end();
    ck_assert_uint_eq(file.header->next, 52);
    for (unsigned i = 0; i < 50; i++)
        assert_next(i % 2 == 0 ? "same 0" : "same 1", i % 2 == 0 ? "same 1" : "same 0", i);
    remove_file();
}
END_TEST

START_TEST(a_full_log_keeps_the_first_events_and_counts_the_lost_ones)
{
    char text[32];
    create(100);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "event %u", i);
        write_text(text, NULL, i);
    }
    end();
    for (unsigned i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "event %u", i);
        assert_next(text, "", i);
    }
    ck_assert_ptr_null(log_next(&file));
    ck_assert_uint_eq(file.incomplete, 0);
    ck_assert_uint_eq(file.header->lost, 950);
    remove_file();
}
END_TEST

START_TEST(times_increase_at_the_rate_that_the_header_tells)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    create(64);
    write_text("first", NULL, 0);
    nanosleep(&pause, NULL);
    write_text("second", NULL, 1);
    end();
    const struct cairn_log_event *first = log_next(&file), *second = log_next(&file);
    double seconds = (double)(second->clock - first->clock) / (double)file.header->clock_hz;
    ck_assert_uint_ge(first->clock, file.header->start_clock);
    ck_assert(seconds > 0.019);
    remove_file();
}
END_TEST

START_TEST(a_compilation_of_the_host_ends_when_it_is_written)
{
    create(64);
    const struct cairn_log_message message = {
        .name = "f", .text = "baseline", .compilation_ns = 1000000};
    cairn_log_write(runtime, &message);
    end();
    const struct cairn_log_event *event = log_next_of(&file, CAIRN_LOG_COMPILATION);
    ck_assert_ptr_nonnull(event);
    double ns = (double)(event->b - event->a) * 1e9 / (double)file.header->clock_hz;
    ck_assert(ns > 0.9e6);
    ck_assert(ns < 1.1e6);
    ck_assert_uint_le(event->b, event->clock);
    remove_file();
}
END_TEST

/* Returns the bytes of the log's mapping that have pages; 0 if the system does not tell. */
static size_t mapped_bytes(void)
{
    char line[4096];
    size_t found = 0;
    FILE *maps = fopen("/proc/self/smaps", "re");
    bool is_log = false;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (line[strspn(line, "0123456789abcdef")] == '-') /* the first line of a mapping */
            is_log = strstr(line, name) != NULL;
        if (is_log && strncmp(line, "Rss:", 4) == 0)
            found = strtoul(line + 4, NULL, 10) << 10;
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* The pages of the slots that are written next exist, also in a large log. */
START_TEST(slots_are_mapped_ahead_of_the_writer)
{
    enum { FIRST = 1 << 20, STEP = 1 << 12, FOUR_STEPS = 4 * STEP };
    create(FIRST + FOUR_STEPS);
    if (mapped_bytes() < (size_t)FIRST * CAIRN_LOG_SLOT_BYTES) {
        printf("skipped: the kernel does not populate pages (Linux 5.14)\n");
    } else {
        for (int i = 0; i < FIRST - STEP + 1; i++)
            write_text(NULL, NULL, 0);
        ck_assert_uint_ge(mapped_bytes(), (FIRST + STEP) * CAIRN_LOG_SLOT_BYTES);
        for (int i = 0; i < STEP; i++)
            write_text(NULL, NULL, 0);
        ck_assert_uint_ge(mapped_bytes(), (FIRST + 2 * STEP) * CAIRN_LOG_SLOT_BYTES);
    }
    end();
    remove_file();
}
END_TEST

/* ---- Errors ---- */

static void assert_refused(const char *path, uint64_t slot_count, enum cairn_status status,
                           const char *text)
{
    struct cairn_error error = {0};
    cairn_log *refused = NULL;
    const struct cairn_log_options options = {.slot_count = slot_count};
    ck_assert_int_eq(cairn_log_create(path, &options, &refused, &error), status);
    ck_assert_ptr_null(refused);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
}

START_TEST(paths_and_sizes_that_cannot_be_used_are_refused)
{
    assert_refused(NULL, 0, CAIRN_ERROR_ARGUMENT, "cairn_log_create: `path` is NULL");
    assert_refused("/dev/null", 0, CAIRN_ERROR_SYSTEM, "cannot create the log '/dev/null'");
    assert_refused("/", 0, CAIRN_ERROR_SYSTEM, "cannot create the log '/'");
    assert_refused("/no/such/folder/log", 0, CAIRN_ERROR_SYSTEM, "/no/such/folder/log");
    assert_refused("unused", 63, CAIRN_ERROR_ARGUMENT, "from 64 to 67108864 slots, not 63");
    assert_refused("unused", UINT64_MAX, CAIRN_ERROR_ARGUMENT, "slots, not");
    ck_assert_int_eq(access("unused", F_OK), -1);
    ck_assert_int_eq(cairn_log_attach(NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_log_write(NULL, NULL);
    cairn_log_destroy(NULL);
}
END_TEST

START_TEST(a_log_that_the_system_has_no_space_for_leaves_no_file)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    log_name(name, sizeof name); /* SIGXFSZ has its default action, which ends the process */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_refused(name, 1000, CAIRN_ERROR_SYSTEM, "cannot allocate 64128 bytes for the log");
    assert_refused(name, 1000, CAIRN_ERROR_SYSTEM, "raise RLIMIT_FSIZE");
    ck_assert_int_eq(access(name, F_OK), -1);
}
END_TEST

START_TEST(a_runtime_has_one_log)
{
    struct cairn_error error = {0};
    create(64);
    ck_assert_int_eq(cairn_log_attach(the_log, runtime, &error), CAIRN_ERROR_STATE);
    ck_assert_str_eq(error.message, "the runtime has a log already");
    end();
    remove_file();
}
END_TEST

START_TEST(a_log_that_is_replaced_stays_valid_for_its_process)
{
    create(64);
    cairn_log *newer = NULL;
    const struct cairn_log_options options = {.slot_count = 64};
    write_text("before", NULL, 0);
    ck_assert_int_eq(cairn_log_create(name, &options, &newer, NULL), CAIRN_OK);
    write_text("after", NULL, 1);
    end();
    ck_assert_ptr_null(log_next(&file)); /* of the newer one */
    cairn_log_destroy(newer);
    remove_file();
}
END_TEST

/* ---- Crashes, threads, signals ---- */

enum { CRASH_EVENTS = 500 };

START_TEST(the_file_of_a_killed_process_is_intact)
{
    char text[64];
    log_name(name, sizeof name);
    pid_t child = fork();
    ck_assert_int_ne(child, -1);
    if (child == 0) {
        const struct cairn_log_options options = {.slot_count = 4096};
        if (cairn_log_create(name, &options, &the_log, NULL) != CAIRN_OK ||
            cairn_runtime_create(NULL, &runtime, NULL) != CAIRN_OK ||
            cairn_log_attach(the_log, runtime, NULL) != CAIRN_OK)
            _exit(1);
        for (unsigned i = 0; i < CRASH_EVENTS; i++) {
            snprintf(text, sizeof text, "event %u before the crash", i);
            write_text(text, "child", i);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert(log_open(&file, name));
    ck_assert_uint_eq(file.header->process, (uint64_t)child);
    ck_assert_uint_eq(file.header->end_clock, 0);
    for (unsigned i = 0; i < CRASH_EVENTS; i++) {
        snprintf(text, sizeof text, "event %u before the crash", i);
        assert_next(text, "child", i);
    }
    ck_assert_ptr_null(log_next(&file));
    remove_file();
}
END_TEST

enum { WRITERS = 6, EVENTS_OF_WRITER = 20000, TEXTS = 300 };

static void *write_many(void *user)
{
    char text[64], about[64];
    uint64_t number = (uint64_t)(uintptr_t)user;
    for (uint64_t i = 0; i < EVENTS_OF_WRITER; i++) {
        snprintf(text, sizeof text, "text %u of any writer", (unsigned)(i % TEXTS));
        snprintf(about, sizeof about, "writer %u", (unsigned)number);
        write_text(text, about, number << 32 | i);
    }
    return NULL;
}

/* Checks one event of a writer, whose events have increasing numbers and one thread ID. */
static void check_event(const struct cairn_log_event *event, uint64_t *next, uint32_t *threads)
{
    char expected[64], found[TEXT_BYTES];
    uint64_t number = event->a >> 32, i = event->a & UINT32_MAX;
    ck_assert_uint_lt(number, WRITERS);
    ck_assert_uint_ge(i, next[number]);
    next[number] = i + 1;
    if (threads[number] == 0)
        threads[number] = event->thread;
    ck_assert_uint_eq(event->thread, threads[number]);
    ck_assert_uint_eq(event->b, ~event->a);
    snprintf(expected, sizeof expected, "text %u of any writer", (unsigned)(i % TEXTS));
    ck_assert_str_eq(log_text(&file, event->text, found, sizeof found), expected);
    snprintf(expected, sizeof expected, "writer %u", (unsigned)number);
    ck_assert_str_eq(log_text(&file, event->name, found, sizeof found), expected);
}

/* In the second round, the log becomes full. */
START_TEST(events_of_many_threads_are_all_intact_and_counted)
{
    pthread_t threads[WRITERS];
    uint64_t next[WRITERS] = {0}, count = 0;
    uint32_t ids[WRITERS] = {0};
    create(_i == 0 ? WRITERS * EVENTS_OF_WRITER * 2 : WRITERS * EVENTS_OF_WRITER / 2);
    for (uintptr_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    end();
    for (const struct cairn_log_event *event; (event = log_next(&file)) != NULL; count++)
        check_event(event, next, ids);
    ck_assert_uint_eq(file.incomplete, 0);
    ck_assert_uint_eq(count + file.header->lost, (uint64_t)WRITERS * EVENTS_OF_WRITER);
    ck_assert_uint_eq(file.header->lost == 0, _i == 0);
    /* Threads that add a text at the same time may each store it. */
    if (_i == 0)
        ck_assert_uint_le(file.header->next - count, (uint64_t)WRITERS * (TEXTS + WRITERS));
    remove_file();
}
END_TEST

static volatile sig_atomic_t signals;

static void write_in_handler(int number)
{
    (void)number;
    write_text("interrupted", "handler", (uint64_t)signals);
    signals = signals + 1;
}

START_TEST(signal_handlers_record_while_they_interrupt_a_writer)
{
    char text[64];
    const struct itimerval often = {{.tv_usec = 100}, {.tv_usec = 100}};
    const struct itimerval never = {{0}, {0}};
    uint64_t written = 0, found = 0;
    create(1 << 20);
    signals = 0;
    signal(SIGALRM, write_in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (; signals < 100; written++) {
        snprintf(text, sizeof text, "text %u", (unsigned)(written % 10000));
        write_text(text, "writer", written);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_DFL);
    end();
    for (const struct cairn_log_event *event; (event = log_next(&file)) != NULL; found++)
        ck_assert_uint_ne(event->text, 0);
    ck_assert_uint_eq(found + file.header->lost, written + (uint64_t)signals);
    ck_assert_uint_eq(file.incomplete, 0);
    remove_file();
}
END_TEST

/* ---- Forked children ---- */

static void assert_succeeds(pid_t child)
{
    int status;
    ck_assert_int_ne(child, -1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* In the second round, no fork handler runs. */
START_TEST(a_child_does_not_write_to_its_parents_log)
{
    create(64);
    write_text("parent", NULL, 0);
    pid_t child = _i == 0 ? fork() : (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        fork_limit_time(CHILD_SECONDS);
        write_text("child", NULL, 1);
        uint64_t token = cairn_runtime_grace_start(runtime);
        cairn_runtime_grace_end(runtime, token);
        bool is_refused = cairn_log_attach(the_log, runtime, NULL) == CAIRN_ERROR_STATE;
        cairn_runtime_destroy(runtime);
        cairn_log_destroy(the_log);
        _exit(is_refused ? 0 : 1);
    }
    assert_succeeds(child);
    write_text("parent", NULL, 2);
    end();
    ck_assert_uint_ne(file.header->end_clock, 0);
    assert_next("parent", "", 0);
    assert_next("parent", "", 2);
    ck_assert_ptr_null(log_next(&file));
    remove_file();
}
END_TEST

START_TEST(a_child_can_have_a_log_of_its_own)
{
    char own[NAME_BYTES];
    create(64);
    log_name(own, sizeof own);
    write_text("parent", NULL, 0);
    pid_t child = fork();
    if (child == 0) {
        const struct cairn_log_options options = {.slot_count = 64};
        cairn_log *log = NULL;
        fork_limit_time(CHILD_SECONDS);
        bool is_right = cairn_log_create(own, &options, &log, NULL) == CAIRN_OK &&
                        cairn_log_attach(log, runtime, NULL) == CAIRN_OK;
        write_text("child", NULL, (uint64_t)syscall(SYS_gettid));
        cairn_log_destroy(log);
        cairn_log_destroy(the_log);
        cairn_runtime_destroy(runtime);
        _exit(is_right ? 0 : 1);
    }
    assert_succeeds(child);
    end();
    assert_next("parent", "", 0);
    ck_assert_ptr_null(log_next(&file));
    remove_file();
    ck_assert(log_open(&file, own));
    const struct cairn_log_event *event = log_next(&file);
    ck_assert_ptr_nonnull(event);
    ck_assert_uint_eq(file.header->process, (uint64_t)child);
    ck_assert_uint_eq(event->thread, (uint32_t)child);
    ck_assert_uint_eq(event->a, (uint64_t)child);
    log_close(&file);
    unlink(own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = tcase_create("log");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_header_tells_the_process_the_machine_and_the_time);
    tcase_add_test(tests, texts_of_all_lengths_are_recorded_and_long_ones_are_cut);
    tcase_add_test(tests, a_repeated_text_is_stored_once);
    tcase_add_test(tests, a_full_log_keeps_the_first_events_and_counts_the_lost_ones);
    tcase_add_test(tests, slots_are_mapped_ahead_of_the_writer);
    tcase_add_test(tests, times_increase_at_the_rate_that_the_header_tells);
    tcase_add_test(tests, a_compilation_of_the_host_ends_when_it_is_written);
    tcase_add_test(tests, paths_and_sizes_that_cannot_be_used_are_refused);
    tcase_add_test(tests, a_log_that_the_system_has_no_space_for_leaves_no_file);
    tcase_add_test(tests, a_runtime_has_one_log);
    tcase_add_test(tests, a_log_that_is_replaced_stays_valid_for_its_process);
    tcase_add_test(tests, the_file_of_a_killed_process_is_intact);
    tcase_add_loop_test(tests, events_of_many_threads_are_all_intact_and_counted, 0, 2);
    tcase_add_test(tests, signal_handlers_record_while_they_interrupt_a_writer);
    tcase_add_loop_test(tests, a_child_does_not_write_to_its_parents_log, 0, 2);
    tcase_add_test(tests, a_child_can_have_a_log_of_its_own);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? 0 : 1;
}
