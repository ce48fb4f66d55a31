/*
 * bench/peer_throw.h - the peer for leaving frames: C++ exceptions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_PEER_THROW_H
#define BENCH_PEER_THROW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls a function that throws a 64-bit integer, and catches it, so that one frame is unwound.
 * Returns the integer. */
int64_t peer_throw_and_catch(int64_t value);

#ifdef __cplusplus
}
#endif
#endif
