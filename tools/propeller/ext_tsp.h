/*
 * tools/propeller/ext_tsp.h - an order of basic blocks in which branches are short.
 *
 * The order maximises the ext-TSP score of Newell and Pupyrev, "Improved Basic Block Reordering"
 * (2018): an edge to the next block in memory counts fully, a branch forwards over less than 1024
 * bytes and one backwards over less than 640 bytes counts up to a tenth, the shorter the more. The
 * maximum is NP-hard to find; this is the greedy search of that paper, which merges chains of
 * blocks.
 *
 * Time is O((blocks + edges) log(edges)) with a constant limit of work for each of them; what is
 * left at the limit is merged by the counts of edges alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROPELLER_EXT_TSP_H
#define TOOLS_PROPELLER_EXT_TSP_H

#include "tools/samples/edge.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ext_tsp_block {
    uint64_t size;  /* in bytes */
    uint64_t count; /* how often it was executed */
};

/* A function. Block 0 is its entry. There may be several edges between two blocks. */
struct ext_tsp_graph {
    const struct ext_tsp_block *blocks;
    uint32_t block_count;
    const struct edge *edges;
    size_t edge_count;
};

/* Writes the numbers of all blocks to `order`, block 0 first. The result depends on the graph
 * alone. False without memory. */
bool ext_tsp_order(const struct ext_tsp_graph *graph, uint32_t *order);

/* Returns the score of an order. `starts` has space for the address of each block. */
double ext_tsp_score(const struct ext_tsp_graph *graph, const uint32_t *order, uint64_t *starts);

#endif
