/*
 * tools/propeller/propeller.h - cairn profile --propeller: from a profile to directives for the
 * compiler, in which order the basic blocks of functions follow each other, and for the linker, in
 * which order the functions do.
 *
 *     samples ── samples/branches.c, samples/flow.c ──→ counts of blocks and edges
 *             ── layout.c, ext_tsp.c ──→ order of blocks and functions
 *             ── propeller.c ──→ DIR/cc_profile.txt, DIR/ld_profile.txt
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROPELLER_PROPELLER_H
#define TOOLS_PROPELLER_PROPELLER_H

#include "tools/samples/flow.h"

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
