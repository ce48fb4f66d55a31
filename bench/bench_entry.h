/*
 * bench/bench_entry.h - figures of entries of functions with versions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_ENTRY_H
#define BENCH_ENTRY_H

#include "bench/report.h"

/* Returns false if there is an error, which it prints. */
bool bench_entry(const struct bench_options *options);

#endif
