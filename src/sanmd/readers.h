/*
 * sanmd/readers.h - knowing when no query of before runs any more, without making queries wait or
 * making anything wait for them.
 *
 * A query adds one to a counter of the present phase, and takes it away again at its end. A change
 * of phase is possible once no query of the other phase runs: new ones count in the present phase,
 * so the other drains. What was taken out of reach before two changes of phase (the queries that
 * can hold it count in the one or in the other) is in nobody's hands after them.
 *
 * All orders are sequentially consistent. A query counts before it loads what is published; a
 * writer publishes something else before it looks at the counters: so a query that the writer does
 * not see counted finds what is new.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_READERS_H
#define SANMD_READERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { READERS_PHASES = 2, READERS_STRIPES = 64, READERS_LINE_BYTES = 64 };

/* Threads count in different lines, as a rule. */
struct readers_stripe {
    _Alignas(READERS_LINE_BYTES) atomic_uint_fast64_t running[READERS_PHASES];
};

/* Zeros are a good beginning. */
struct readers {
    struct readers_stripe stripes[READERS_STRIPES];
    /* Changes of phase since the start; the lowest bit is the phase. */
    atomic_uint_fast64_t changes;
};

/* Threads' stacks lie apart, so the address of a frame tells threads apart: there need not be a
 * variable of the thread's, whose first use could allocate. */
static inline struct readers_stripe *readers_stripe(struct readers *readers)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const int beyond_frames = 16;
    const int index_bits = 6;
    _Static_assert(READERS_STRIPES == 1 << 6, "as many as the bits can tell apart");
    uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    return &readers->stripes[(stack >> beyond_frames) * golden >> (64 - index_bits)];
}

/* Begins a query; returns what its end is told. */
static inline atomic_uint_fast64_t *readers_enter(struct readers *readers)
{
    uint64_t phase = atomic_load(&readers->changes) % READERS_PHASES;
    atomic_uint_fast64_t *running = &readers_stripe(readers)->running[phase];
    atomic_fetch_add(running, 1);
    return running;
}

static inline void readers_leave(atomic_uint_fast64_t *running) { atomic_fetch_sub(running, 1); }

/* The rest is for writers, who have a lock. */

/* What is out of reach by now may be given back when readers_changes has reached this. */
uint64_t readers_deadline(const struct readers *readers);

uint64_t readers_changes(const struct readers *readers);

/* Changes the phase as often as running queries allow, up to twice. */
void readers_advance(struct readers *readers);

#endif
