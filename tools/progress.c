/* SPDX-License-Identifier: MIT */
#include "tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_A_LOOK = 1024, MILLISECONDS_BEFORE = 1000, MILLISECONDS_BETWEEN = 100 };

void progress_begin(struct progress *progress, const struct output *output, const char *what,
                    uint64_t total)
{
    const char *terminal = getenv("TERM");
    *progress = (struct progress){.what = what, .total = total};
    progress->is_shown = isatty(STDERR_FILENO) == 1 && terminal != NULL &&
                         strcmp(terminal, "dumb") != 0 &&
                         (output == NULL || isatty(output->descriptor) != 1);
    clock_gettime(CLOCK_MONOTONIC, &progress->begun);
    progress->drawn = progress->begun;
}

static int64_t milliseconds_between(const struct timespec *from, const struct timespec *to)
{
    return (int64_t)(to->tv_sec - from->tv_sec) * 1000 + (to->tv_nsec - from->tv_nsec) / 1000000;
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
    progress->is_drawn = true;
    if (progress->total > 0)
        fprintf(stderr, "\r\033[K%3.0f %% of %llu %s",
                100.0 * (double)done / (double)progress->total, (unsigned long long)progress->total,
                progress->what);
    else
        fprintf(stderr, "\r\033[K%llu %s", (unsigned long long)done, progress->what);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        fwrite("\r\033[K", 1, 4, stderr);
    progress->is_drawn = false;
}
