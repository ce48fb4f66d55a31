/*
 * tools/progress.h - a progress line on standard error that is overwritten, and erased at the end.
 *
 * It appears only on a terminal, and only if the work takes more than a second.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include "tools/output.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
    const char *what; /* plural noun for what is counted, such as "bytes" */
    uint64_t total;   /* 0 if unknown */
    bool is_shown;    /* whether progress may be shown */
    bool is_drawn;
    uint64_t asked; /* number of calls since the clock was last read */
    struct timespec begun;
    struct timespec drawn;
};

/* Begins work that writes to `output`, which may be NULL. If that is a terminal, no progress is
 * shown, because the output itself shows it. */
void progress_begin(struct progress *progress, const struct output *output, const char *what,
                    uint64_t total);

/* Reports progress. May be called millions of times. */
void progress_move(struct progress *progress, uint64_t done);

/* Erases the line. Must be called before anything else is written to standard error. */
void progress_end(struct progress *progress);

#endif
