/*
 * tools/samples/edge.h - edges of the flow of control.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SAMPLES_EDGE_H
#define TOOLS_SAMPLES_EDGE_H

#include <stdint.h>

/* How often control passed from one block or function to another, by their numbers. */
struct edge {
    uint32_t from;
    uint32_t to;
    uint64_t count;
};

/* Adds counts. UINT64_MAX if the sum is larger. */
static inline uint64_t add_counts(uint64_t left, uint64_t right)
{
    uint64_t sum;
    return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

#endif
