/*
 * tools/samples/branches.h - branches of samples, counted by the blocks that they leave and enter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SAMPLES_BRANCHES_H
#define TOOLS_SAMPLES_BRANCHES_H

#include "tools/cli/keyed.h"
#include "tools/samples/edge.h"
#include "tools/samples/samples.h"

/* Blocks have their numbers in the profile's order. */
struct branch_counts {
    struct keyed_list edges; /* struct edge, by its blocks */
    size_t edge_limit;
    /* Differences of the numbers of executions of each block, and of falling through to it, to
     * those of the block before it. */
    uint64_t *executed_steps;
    uint64_t *fallen_steps;
    uint64_t record_count;  /* branches */
    uint64_t inside_count;  /* branches that begin or end in a block */
    uint64_t broken_count;  /* pairs of branches between which control cannot have fallen through */
    uint64_t dropped_count; /* branches beyond the limit of different ones */
};

/* False without memory, after an error message. The caller releases it in either case. */
bool branch_counts_create(struct branch_counts *counts, const struct profile *profile);
void branch_counts_release(struct branch_counts *counts);

/* Counts the branches of one line, the newest of which is first. False without memory, after an
 * error message. */
bool branch_counts_add(struct profile *profile, struct branch_text text);

#endif
