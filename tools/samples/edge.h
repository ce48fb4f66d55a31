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

#endif
