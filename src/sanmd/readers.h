/*
 * sanmd/readers.h - determines when a grace period ends, after which all queries that were running
 * at its start have ended. Neither queries nor writers wait.
 *
 * A query increments a counter of the current phase when it begins, and decrements the same counter
 * when it ends. The phase can change as soon as no query of the other phase is running. New queries
 * are counted in the current phase, so the number of queries in the other phase falls to 0. When
 * data is unpublished, each query that may still use it is counted in one of the two phases. After
 * two more changes of the phase, all of these queries have ended.
 *
 * All atomic operations are sequentially consistent. A query increments its counter before it loads
 * the published data, and a writer publishes new data before it reads the counters. Therefore, a
 * query that the writer does not see in the counters finds the new data.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_READERS_H
#define SANMD_READERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { READERS_PHASES = 2, READERS_STRIPES = 64, READERS_LINE_BYTES = 64 };

/* Counters in a separate cache line. Different threads usually use different lines. */
struct readers_stripe {
    _Alignas(READERS_LINE_BYTES) atomic_uint_fast64_t running[READERS_PHASES];
};

/* All-zero memory is a valid initial state. */
struct readers {
    struct readers_stripe stripes[READERS_STRIPES];
    /* Number of phase changes so far; the lowest bit is the phase. */
    atomic_uint_fast64_t changes;
};

/* Returns the counters for the calling thread. The stacks of threads are far apart, so the address
 * of a call frame identifies the thread. A thread-local variable might allocate memory at its first
 * use. */
static inline struct readers_stripe *readers_stripe(struct readers *readers)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const int beyond_frames = 16;
    const int index_bits = 6;
    _Static_assert(READERS_STRIPES == 1 << 6, "as many as the bits can tell apart");
    uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    return &readers->stripes[(stack >> beyond_frames) * golden >> (64 - index_bits)];
}

/* Begins a query. Returns the argument of readers_leave. */
static inline atomic_uint_fast64_t *readers_enter(struct readers *readers)
{
    uint64_t phase = atomic_load(&readers->changes) % READERS_PHASES;
    atomic_uint_fast64_t *running = &readers_stripe(readers)->running[phase];
    atomic_fetch_add(running, 1);
    return running;
}

static inline void readers_leave(atomic_uint_fast64_t *running) { atomic_fetch_sub(running, 1); }

/* The following functions are for writers, which hold a lock. */

/* Returns the value of readers_changes at which memory that was unpublished before this call may be
 * released. */
uint64_t readers_deadline(const struct readers *readers);

uint64_t readers_changes(const struct readers *readers);

/* Changes the phase up to twice, as far as running queries allow it. */
void readers_advance(struct readers *readers);

#endif
