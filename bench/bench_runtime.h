/*
 * bench/bench_runtime.h - creating and destroying a runtime that is not used.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_BENCH_RUNTIME_H
#define BENCH_BENCH_RUNTIME_H

#include "bench/report.h"

/* Prints the figures. False if a runtime could not be created. */
bool bench_runtime(const struct bench_options *options);

#endif
