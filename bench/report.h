/*
 * bench/report.h - one line per figure, and the arithmetic of timing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

/* A figure; what is not there is NULL or 0. */
struct bench_figure {
    const char *name;
    double value;
    const char *unit;
    /* The same thing done by a peer in the same run, in the same unit. */
    const char *peer;
    double peer_value;
    /* What it has to reach: value <= limit, or value / peer_value <= ratio_limit. */
    double limit;
    double ratio_limit;
};

struct bench_options {
    bool json;
    const char *only; /* prefix of names; NULL: all */
};

/* Whether figures whose names begin like that are wanted. */
bool bench_wants(const struct bench_options *options, const char *name);
void bench_begin(const struct bench_options *options);
void bench_print(const struct bench_options *options, const struct bench_figure *figure);
/* A line for what could not be measured. */
void bench_print_missing(const struct bench_options *options, const char *name, const char *why);
void bench_end(const struct bench_options *options);

/* Nanoseconds of a clock that only goes forward. */
double bench_now(void);
/* Nanoseconds that this thread has run: what else the machine does is not in it. */
double bench_now_of_thread(void);

/* Sorts `values`. `fraction` 0.5 is the median, 1 the largest. */
double bench_percentile(double *values, size_t count, double fraction);

#endif
