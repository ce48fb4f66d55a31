/*
 * check_file.c - files at RLIMIT_FSIZE, signals and parts of writes: src/base/file.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/file.h"
#include "code_support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { LIMIT = 1000 };

static _Atomic int signals_seen;

static void count_signal(int number)
{
    (void)number;
    signals_seen++;
}

/* Returns an empty file without a name. From now on, files have at most LIMIT bytes. */
static int limited_file(void)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    char name[] = "file-test.XXXXXX";
    int file = mkstemp(name);
    support_expect(file >= 0 && unlink(name) == 0);
    support_expect(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    return file;
}

static off_t size_of(int file)
{
    struct stat found;
    support_expect(fstat(file, &found) == 0);
    return found.st_size;
}

/* ---- The limit ---- */

static int do_resize(int file, size_t size) { return file_resize(file, size); }
static int do_allocate(int file, size_t size) { return file_allocate(file, size); }

static int do_write(int file, size_t size)
{
    static const char bytes[2 * LIMIT];
    return file_write(file, bytes, size);
}

static int do_write_at(int file, size_t size)
{
    static const char bytes[2 * LIMIT];
    return file_write_at(file, bytes + size / 2, size - size / 2, size / 2);
}

static int (*const actions[])(int file, size_t size) = {do_resize, do_allocate, do_write,
                                                        do_write_at};
enum { ACTION_COUNT = sizeof actions / sizeof *actions };

static void act_at_the_limit(void *user)
{
    int file = limited_file();
    int action = *(const int *)user;
    support_expect(actions[action](file, LIMIT) == 0);
    support_expect(size_of(file) == LIMIT);
    support_expect(lseek(file, 0, SEEK_SET) == 0);
    support_expect(actions[action](file, LIMIT + 1) == EFBIG);
    signal(SIGXFSZ, count_signal);
    support_expect(lseek(file, 0, SEEK_SET) == 0);
    support_expect(actions[action](file, LIMIT + 1) == EFBIG);
    support_expect(signals_seen == 0 && size_of(file) == LIMIT);
}

START_TEST(a_file_that_is_too_large_ends_no_process)
{
    int action = _i;
    support_in_child(act_at_the_limit, &action);
}
END_TEST

static void act_with_pending_signal(void *user)
{
    int file = limited_file();
    sigset_t set, found;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    support_expect(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    support_expect(actions[*(const int *)user](file, LIMIT + 1) == EFBIG);
    support_expect(sigpending(&found) == 0 && sigismember(&found, SIGXFSZ) == 0);
    raise(SIGXFSZ);
    support_expect(actions[*(const int *)user](file, LIMIT + 1) == EFBIG);
    support_expect(sigpending(&found) == 0 && sigismember(&found, SIGXFSZ) == 1);
    support_expect(pthread_sigmask(SIG_BLOCK, NULL, &found) == 0);
    support_expect(sigismember(&found, SIGXFSZ) == 1);
}

START_TEST(a_signal_of_the_host_stays_pending)
{
    int action = _i;
    support_in_child(act_with_pending_signal, &action);
}
END_TEST

/* ---- Signals and parts of writes ---- */

enum { PIPE_BYTES = 1 << 20 };

static void *read_slowly(void *user)
{
    static char bytes[PIPE_BYTES];
    int file = *(const int *)user;
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size < PIPE_BYTES; size += (size_t)got) {
        usleep(500);
        got = read(file, bytes + size, 20000);
        support_expect(got >= 0 || errno == EINTR);
    }
    for (size_t i = 0; i < PIPE_BYTES; i++)
        support_expect(bytes[i] == (char)(i % 251));
    return NULL;
}

static void write_while_interrupted(void *user)
{
    static char bytes[PIPE_BYTES];
    const struct itimerval often = {{0, 200}, {0, 200}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = count_signal}; /* without SA_RESTART */
    sigset_t alarms;
    int ends[2];
    pthread_t reader;
    (void)user;
    for (size_t i = 0; i < PIPE_BYTES; i++)
        bytes[i] = (char)(i % 251);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    support_expect(pipe(ends) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    support_expect(pthread_create(&reader, NULL, read_slowly, &ends[0]) == 0);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    support_expect(file_write(ends[1], bytes, sizeof bytes) == 0);
    setitimer(ITIMER_REAL, &never, NULL);
    support_expect(pthread_join(reader, NULL) == 0);
    support_expect(signals_seen > 0);
}

START_TEST(a_write_continues_after_signals) { support_in_child(write_while_interrupted, NULL); }
END_TEST

START_TEST(a_device_without_space_is_an_error)
{
    int file = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(file_write(file, "x", 1), ENOSPC);
    ck_assert_int_eq(file_write(-1, "x", 1), EBADF);
    ck_assert_int_eq(file_resize(-1, 1), EBADF);
    close(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *tests = tcase_create("limits");
    tcase_add_loop_test(tests, a_file_that_is_too_large_ends_no_process, 0, ACTION_COUNT);
    tcase_add_loop_test(tests, a_signal_of_the_host_stays_pending, 0, ACTION_COUNT);
    tcase_add_test(tests, a_write_continues_after_signals);
    tcase_add_test(tests, a_device_without_space_is_an_error);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
