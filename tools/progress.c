/* SPDX-License-Identifier: MIT */
#include "tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_A_LOOK = 1024, MILLISECONDS_BEFORE = 1000, MILLISECONDS_BETWEEN = 100 };

static bool is_terminal(int descriptor)
{
    const char *terminal = getenv("TERM");
    return isatty(descriptor) == 1 && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

void progress_begin(struct progress *progress, const char *what, uint64_t total)
{
    *progress = (struct progress){.what = what, .total = total};
    progress->is_shown = is_terminal(STDERR_FILENO);
    clock_gettime(CLOCK_MONOTONIC, &progress->begun);
    progress->drawn = progress->begun;
}

void progress_begin_beside(struct progress *progress, const struct output *output, const char *what,
                           uint64_t total)
{
    progress_begin(progress, what, total);
    if (isatty(output->descriptor) == 1)
        progress->is_shown = false;
}

static int64_t milliseconds_between(const struct timespec *from, const struct timespec *to)
{
    return (int64_t)(to->tv_sec - from->tv_sec) * 1000 + (to->tv_nsec - from->tv_nsec) / 1000000;
}

static void draw(struct progress *progress, uint64_t done)
{
    char line[128];
    int length;
    unsigned long long count = done;
    if (progress->total > 0)
        length = snprintf(line, sizeof line, "\r\033[K%3.0f %% of %llu %s",
                          100.0 * (double)done / (double)progress->total,
                          (unsigned long long)progress->total, progress->what);
    else
        length = snprintf(line, sizeof line, "\r\033[K%llu %s", count, progress->what);
    fwrite(line, 1, (size_t)length, stderr);
    fflush(stderr);
    progress->is_drawn = true;
}

void progress_move(struct progress *progress, uint64_t done)
{
    if (!progress->is_shown || ++progress->asked % CALLS_A_LOOK != 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (milliseconds_between(&progress->begun, &now) < MILLISECONDS_BEFORE ||
        milliseconds_between(&progress->drawn, &now) < MILLISECONDS_BETWEEN)
        return;
    progress->drawn = now;
    draw(progress, done);
}

void progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        fwrite("\r\033[K", 1, 4, stderr);
    progress->is_drawn = false;
}
