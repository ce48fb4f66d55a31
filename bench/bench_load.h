/*
 * bench/bench_load.h - loading a module, compared with building its table of records.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_BENCH_LOAD_H
#define BENCH_BENCH_LOAD_H

#include "bench/report.h"

/* Prints the figures. False if a module could not be loaded. */
bool bench_load(const struct bench_options *options);

#endif
