/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_STACKMAP_H
#define BENCH_BENCH_STACKMAP_H

#include "bench/report.h"

#include <cairn/stackmap.h>

/* Decoding, building a table, and looking up. The section has been checked. False if there was
 * not enough memory. */
bool bench_stackmap(const struct bench_options *options, const struct cairn_section *section);

#endif
