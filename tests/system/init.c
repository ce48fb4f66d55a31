/*
 * The first and only process of a machine that is booted to run tests: runs each program of /tests
 * in turn, says how it ended, and turns the machine off.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77, PROGRAMS_MAX = 100, NOT_STARTED = 127 };

struct tally {
    unsigned passed;
    unsigned failed;
    unsigned skipped;
};

static void prepare(void)
{
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/dev", 0755);
    mkdir("/tmp", 01777);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mkdir("/dev/shm", 01777);
    mount("shm", "/dev/shm", "tmpfs", 0, NULL);
    mount("tmp", "/tmp", "tmpfs", 0, NULL);
    setenv("PATH", "/bin", 1);
    setenv("HOME", "/tmp", 1);
    setenv("CK_TIMEOUT_MULTIPLIER", "20", 1);
}

static int is_program(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Its exit status; 128 and the signal's number if a signal ended it. */
static int run(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, (char *)NULL);
        _exit(NOT_STARTED);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return NOT_STARTED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_and_count(const char *name, struct tally *tally)
{
    char path[300];
    snprintf(path, sizeof path, "/tests/%s", name);
    time_t begin = time(NULL);
    int status = run(path);
    const char *outcome = status == 0 ? "PASS" : status == SKIPPED ? "SKIP" : "FAIL";
    tally->passed += status == 0;
    tally->skipped += status == SKIPPED;
    tally->failed += status != 0 && status != SKIPPED;
    printf("cairn-system: %s %s (status %d, %ld s)\n", outcome, name, status,
           (long)(time(NULL) - begin));
}

int main(void)
{
    struct tally tally = {0};
    struct dirent **programs = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare();
    printf("cairn-system: %ld processors\n", sysconf(_SC_NPROCESSORS_ONLN));
    int count = scandir("/tests", &programs, is_program, alphasort);
    for (int i = 0; i < count; i++)
        run_and_count(programs[i]->d_name, &tally);
    printf("cairn-system: end: %u passed, %u failed, %u skipped\n", tally.passed, tally.failed,
           tally.skipped);
    sync();
    reboot(RB_POWER_OFF);
    return 1;
}
