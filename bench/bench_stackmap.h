/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_STACKMAP_H
#define BENCH_BENCH_STACKMAP_H

#include "bench/report.h"

#include <cairn/section.h>

/* Measures decoding, building a table, and lookups. The section must be valid. False without
 * memory. */
bool bench_stackmap(const struct bench_options *options, const struct cairn_section *section);

#endif
