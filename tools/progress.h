/*
 * tools/progress.h - how far long work has come: one line on standard error that is written over
 * again, and erased at the end.
 *
 * Only on a terminal, and only when the work has taken a second.
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
    const char *what; /* is counted: "bytes" */
    uint64_t total;   /* 0: not known */
    bool is_shown;    /* if it takes long enough */
    bool is_drawn;
    uint64_t asked; /* how often it was told since the clock was last looked at */
    struct timespec begun;
    struct timespec drawn;
};

/* For work that writes nothing meanwhile. */
void progress_begin(struct progress *progress, const char *what, uint64_t total);
/* For work that writes to `output`: if that is a terminal, it shows by itself how far the work is.
 */
void progress_begin_beside(struct progress *progress, const struct output *output, const char *what,
                           uint64_t total);

/* May be called millions of times. */
void progress_move(struct progress *progress, uint64_t done);

/* Erases the line: to be called before anything else is written to standard error. */
void progress_end(struct progress *progress);

#endif
