/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_PATCH_H
#define BENCH_BENCH_PATCH_H

#include "bench/report.h"

/* Retargeting patch points. False, with a sentence on standard error, if they cannot be made. */
bool bench_patch(const struct bench_options *options);

#endif
