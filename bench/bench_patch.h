/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_PATCH_H
#define BENCH_BENCH_PATCH_H

#include "bench/report.h"

/* Measures retargeting patch points. False, with a message on standard error, if they cannot be
 * created. */
bool bench_patch(const struct bench_options *options);

#endif
