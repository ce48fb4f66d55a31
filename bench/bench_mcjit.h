/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_MCJIT_H
#define BENCH_BENCH_MCJIT_H

#include "bench/report.h"

/* Measures compiling and loading with Cairn's memory manager and with LLVM's own. */
bool bench_mcjit(const struct bench_options *options);

#endif
