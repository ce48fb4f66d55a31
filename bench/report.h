/*
 * bench/report.h - printing one line for each figure, and functions for timing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

/* A figure. Missing members are NULL or 0. */
struct bench_figure {
    const char *name;
    double value;
    const char *unit;
    /* A peer that does the same in this run, and its value in the same unit. */
    const char *peer;
    double peer_value;
    /* The limit: value <= limit, or value / peer_value <= ratio_limit. */
    double limit;
    double ratio_limit;
};

struct bench_options {
    bool json;
    const char *only; /* prefix of the wanted names; NULL for all */
};

/* Whether figures whose names begin with `name` are wanted. */
bool bench_wants(const struct bench_options *options, const char *name);
void bench_begin(const struct bench_options *options);
void bench_print(const struct bench_options *options, const struct bench_figure *figure);
/* Prints a line for a figure that could not be measured. */
void bench_print_missing(const struct bench_options *options, const char *name, const char *why);
void bench_end(const struct bench_options *options);

/* Returns nanoseconds of a monotonic clock. */
double bench_now(void);
/* Returns nanoseconds for which this thread has run, without other load of the machine. */
double bench_now_of_thread(void);

/* Sorts `values` and returns a percentile. `fraction` 0.5 is the median, and 1 the maximum. */
double bench_percentile(double *values, size_t count, double fraction);

#endif
