/*
 * tools/propeller.h - cairn profile --propeller: from a profile to directives for the compiler, in
 * which order the basic blocks of functions follow each other, and for the linker, in which order
 * the functions do.
 *
 *     samples ── propeller_branches.c ──→ counts of blocks and edges
 *             ── propeller_layout.c, ext_tsp.c ──→ order of blocks and functions
 *             ── propeller.c ──→ DIR/cc_profile.txt, DIR/ld_profile.txt
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROPELLER_H
#define TOOLS_PROPELLER_H

#include "tools/ext_tsp.h"
#include "tools/profile.h"

/* ---- Counts of branches ---- */

/* A branch between two blocks, by their numbers in the profile's order. */
struct edge_count {
    uint32_t from;
    uint32_t to;
    uint64_t count; /* 0 in an empty slot */
};

struct branch_counts {
    struct edge_count *edges; /* hash table */
    size_t edge_capacity;     /* a power of 2 */
    size_t edge_count;
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

/* ---- Flow ---- */

/* How often blocks were executed, and edges between them taken. */
struct flow {
    uint64_t *counts;           /* of each block, in the profile's order */
    struct ext_tsp_edge *jumps; /* edges inside of functions, by number of the first block; blocks
                                   have the profile's numbers */
    size_t jump_count;
    struct ext_tsp_edge *calls; /* edges between functions, which are numbered as in the table */
    size_t call_count;
};

/* Computes the flow, from branches if there are any, otherwise from samples. False without memory,
 * after an error message. The caller releases it in either case. */
bool flow_create(struct flow *flow, const struct profile *profile);
void flow_release(struct flow *flow);

/* ---- Layout ---- */

/* A function with executed blocks. */
struct placed_function {
    uint32_t index;       /* number in the table */
    uint32_t first;       /* index in `blocks` of the first hot block */
    uint32_t block_count; /* number of hot blocks */
    uint64_t size;        /* bytes of hot blocks */
    uint64_t count;       /* executions of all blocks */
};

struct placement {
    struct placed_function *functions; /* in the order in which the linker should place them */
    size_t function_count;
    uint32_t *blocks; /* numbers of hot blocks in their functions, in their new order */
};

bool placement_create(struct placement *placement, const struct profile *profile,
                      const struct flow *flow);
void placement_release(struct placement *placement);

/* ---- Output ---- */

/* Versions of the compiler's directives: LLVM 14 to 17 read only the first. */
enum propeller_version { PROPELLER_BY_MAP = -1, PROPELLER_V0 = 0, PROPELLER_V1 = 1 };

/* Writes both files to the folder, which is created if it does not exist. False after an error
 * message. */
bool write_propeller(const char *folder, const struct profile *profile,
                     enum propeller_version version);

#endif
