/*
 * tools/samples/flow.h - how often blocks were executed, and control passed between them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SAMPLES_FLOW_H
#define TOOLS_SAMPLES_FLOW_H

#include "tools/samples/branches.h"

/* How often blocks were executed, and edges between them taken. */
struct flow {
    uint64_t *counts;   /* of each block, in the profile's order */
    struct edge *jumps; /* edges inside of functions, by number of the first block; blocks
                                   have the profile's numbers */
    size_t jump_count;
    struct edge *calls; /* edges between functions, which are numbered as in the table */
    size_t call_count;
};

/* Computes the flow, from branches if there are any, otherwise from samples. False without memory,
 * after an error message. The caller releases it in either case. */
bool flow_create(struct flow *flow, const struct profile *profile);
void flow_release(struct flow *flow);

#endif
