/*
 * cairn-bench-command: the time and memory of a command, compared with another command that does
 * the same.
 *
 * usage: cairn-bench-command [--least] NAME COMMAND... -- PEER...
 *
 * The output of both is discarded. Both are run in turn, five times, and medians are compared; with
 * --least, 25 times, and the least values are, which other programs on the machine influence less.
 * Times are user and system time of the process, and memory is the maximum that was resident.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = 5, REPEATS_MAX = 25, BAD_USAGE = 2, NOT_FOUND = 127 };

struct cost {
    double milliseconds;
    double megabytes;
};

static double milliseconds(struct timeval time)
{
    return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

static void become(char **words)
{
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 && dup2(nowhere, STDERR_FILENO) >= 0)
        execvp(words[0], words);
    _exit(NOT_FOUND);
}

static bool run(char **words, struct cost *cost)
{
    int status;
    struct rusage usage;
    pid_t child = fork();
    if (child == 0)
        become(words);
    if (child < 0 || wait4(child, &status, 0, &usage) != child)
        return false;
    cost->milliseconds = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
    cost->megabytes = (double)usage.ru_maxrss / 1024;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print(const char *name, const char *what, const char *unit, const char *peer_name,
                  double *values, double *peer_values, int repeats)
{
    double rank = repeats == REPEATS_MAX ? 0 : 0.5;
    const struct bench_options options = {0};
    char full_name[128];
    snprintf(full_name, sizeof full_name, "%s.%s", name, what);
    bench_print(&options, &(struct bench_figure){
                              .name = full_name,
                              .value = bench_percentile(values, (size_t)repeats, rank),
                              .unit = unit,
                              .peer = peer_name,
                              .peer_value = bench_percentile(peer_values, (size_t)repeats, rank),
                              .ratio_limit = 1});
}

static int compare(const char *name, char **command, char **peer, int repeats)
{
    double times[REPEATS_MAX];
    double peer_times[REPEATS_MAX];
    double memory[REPEATS_MAX];
    double peer_memory[REPEATS_MAX];
    for (int i = 0; i < repeats; i++) {
        struct cost cost;
        struct cost peer_cost;
        if (!run(command, &cost) || !run(peer, &peer_cost)) {
            fprintf(stderr, "cairn-bench-command: '%s' or '%s' has failed\n", command[0], peer[0]);
            return 1;
        }
        times[i] = cost.milliseconds;
        peer_times[i] = peer_cost.milliseconds;
        memory[i] = cost.megabytes;
        peer_memory[i] = peer_cost.megabytes;
    }
    print(name, "time", "ms", peer[0], times, peer_times, repeats);
    print(name, "memory", "MB", peer[0], memory, peer_memory, repeats);
    return 0;
}

int main(int argc, char **argv)
{
    char **peer = NULL;
    bool is_least = argc > 1 && strcmp(argv[1], "--least") == 0;
    argc -= is_least;
    argv += is_least;
    for (int i = 3; i < argc && peer == NULL; i++)
        if (strcmp(argv[i], "--") == 0) {
            argv[i] = NULL;
            peer = &argv[i + 1];
        }
    if (peer == NULL || *peer == NULL) {
        fprintf(stderr, "usage: cairn-bench-command [--least] NAME COMMAND... -- PEER...\n");
        return BAD_USAGE;
    }
    return compare(argv[1], &argv[2], peer, is_least ? REPEATS_MAX : REPEATS);
}
