/*
 * Counting branches. Each is an edge between two blocks. Between the target of a branch and the
 * source of the next one, control has fallen through all blocks: they are counted by their first
 * and last block, as differences to the neighbours, in constant time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/samples/branches.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NO_MEMORY "profile: no memory for the counts of branches"

enum { EDGES_PER_BLOCK = 16, EDGES_LEAST = 1 << 16 };

bool branch_counts_create(struct branch_counts *counts, const struct profile *profile)
{
    size_t blocks = cairn_block_table_counts(profile->table).blocks;
    *counts = (struct branch_counts){
        .edge_limit = EDGES_PER_BLOCK * blocks + EDGES_LEAST,
        .executed_steps = calloc(blocks + 1, sizeof *counts->executed_steps),
        .fallen_steps = calloc(blocks + 1, sizeof *counts->fallen_steps),
    };
    return (keyed_create(&counts->edges, 1, sizeof(struct edge)) &&
            counts->executed_steps != NULL && counts->fallen_steps != NULL) ||
           complain(NO_MEMORY);
}

void branch_counts_release(struct branch_counts *counts)
{
    keyed_release(&counts->edges);
    free(counts->executed_steps);
    free(counts->fallen_steps);
}

/* ---- Edges ---- */

_Static_assert(offsetof(struct edge, count) == sizeof(uint64_t), "both blocks are the key");

/* The number of different edges is limited, so that memory depends on the number of blocks. */
static bool count_edge(struct branch_counts *counts, uint32_t from, uint32_t to)
{
    const struct edge wanted = {.from = from, .to = to};
    uint64_t key;
    memcpy(&key, &wanted, sizeof key);
    struct edge *edge = keyed_find(&counts->edges, &key);
    if (edge == NULL && counts->edges.list.count >= counts->edge_limit) {
        counts->dropped_count++;
        return true;
    }
    if (edge == NULL)
        edge = keyed_obtain(&counts->edges, &key, NULL);
    if (edge == NULL)
        return complain(NO_MEMORY);
    edge->count++;
    return true;
}

/* ---- Branches ---- */

/* An address in a block. */
struct place_in_block {
    bool is_known;
    struct cairn_block block;
    uint32_t number; /* of the block, in the profile's order */
    uint64_t address;
};

static struct place_in_block find_place(struct profile *profile, uint64_t address)
{
    struct place_in_block place = {.address = address};
    place.is_known = profile_file_address(profile, &place.address) &&
                     cairn_block_table_find(profile->table, place.address, &place.block);
    if (place.is_known)
        place.number = profile->first_blocks[place.block.function] + place.block.index;
    return place;
}

static bool is_block_start(const struct place_in_block *place)
{
    return place->address == place->block.address;
}

/* Counts the blocks from `begin`, the target of a branch, to `end`, the source of the next one. The
 * first block counts as executed if it was entered at its start; otherwise a call returned into
 * it. */
static void count_fall_through(struct branch_counts *counts, const struct place_in_block *begin,
                               const struct place_in_block *end)
{
    if (!begin->is_known || !end->is_known)
        return;
    if (begin->block.function != end->block.function || begin->block.range != end->block.range ||
        begin->address > end->address) {
        counts->broken_count++;
        return;
    }
    counts->executed_steps[begin->number + !is_block_start(begin)]++;
    counts->executed_steps[end->number + 1]--;
    if (begin->number == end->number)
        return;
    counts->fallen_steps[begin->number + 1]++;
    counts->fallen_steps[end->number + 1]--;
}

/* A call that ends a block returns to the start of the next one, as if it fell through. Other
 * returns end inside of a block, and are not edges. */
static bool count_branch(struct branch_counts *counts, const struct place_in_block *from,
                         const struct place_in_block *to)
{
    counts->inside_count += from->is_known || to->is_known;
    if (!to->is_known || !is_block_start(to))
        return true;
    bool is_entry = to->address == to->block.function_address;
    if (from->is_known && (is_entry || from->block.function == to->block.function))
        return count_edge(counts, from->number, to->number);
    if (!is_entry && to->block.index > 0 && to->address != to->block.range_address) {
        counts->fallen_steps[to->number]++;
        counts->fallen_steps[to->number + 1]--;
    }
    return true;
}

bool branch_counts_add(struct profile *profile, struct branch_text text)
{
    struct branch_counts *counts = profile->branches;
    struct place_in_block newer_source = {.is_known = false};
    struct branch branch;
    while (next_branch(&text, &branch)) {
        struct place_in_block from = find_place(profile, branch.from);
        struct place_in_block to = find_place(profile, branch.to);
        counts->record_count++;
        if (!count_branch(counts, &from, &to))
            return false;
        count_fall_through(counts, &to, &newer_source);
        newer_source = from;
    }
    return true;
}
