/*
 * The new order of blocks and functions. Blocks that were executed are ordered by ext_tsp.h. The
 * others are left to the compiler, which moves them away from the function.
 *
 * Functions are ordered as in Ottoni and Maher, "Optimizing Function Placement for Large-Scale
 * Data-Center Applications" (2017): a function follows the one that calls it most often, and groups
 * that are executed more often for their size come first.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/propeller/propeller.h"

#include "tools/propeller/ext_tsp.h"

#include <stdlib.h>

#define NO_MEMORY "profile: no memory for the order of blocks"
#define NONE UINT32_MAX

/* ---- Blocks ---- */

/* Memory for the function with the most blocks, and for all edges. */
struct scratch {
    struct ext_tsp_block *blocks;
    struct edge *edges;
    uint32_t *indices; /* of the hot blocks in their function */
    uint32_t *numbers; /* of the function's blocks among the hot ones, or NONE */
    uint32_t *order;
};

static bool scratch_create(struct scratch *scratch, const struct profile *profile,
                           const struct flow *flow)
{
    uint32_t functions = cairn_block_table_counts(profile->table).functions;
    size_t most = 1;
    for (uint32_t i = 0; i < functions; i++) {
        uint32_t count = profile->first_blocks[i + 1] - profile->first_blocks[i];
        most = count > most ? count : most;
    }
    scratch->blocks = calloc(most, sizeof *scratch->blocks);
    scratch->edges = calloc(flow->jump_count + 1, sizeof *scratch->edges);
    scratch->indices = calloc(most, sizeof *scratch->indices);
    scratch->numbers = calloc(most, sizeof *scratch->numbers);
    scratch->order = calloc(most, sizeof *scratch->order);
    return scratch->blocks != NULL && scratch->edges != NULL && scratch->indices != NULL &&
           scratch->numbers != NULL && scratch->order != NULL;
}

static void scratch_release(struct scratch *scratch)
{
    free(scratch->blocks);
    free(scratch->edges);
    free(scratch->indices);
    free(scratch->numbers);
    free(scratch->order);
}

/* Collects the function's executed blocks, and its entry in any case. */
static uint32_t take_blocks(struct scratch *scratch, const struct profile *profile,
                            const struct flow *flow, struct placed_function *placed)
{
    uint32_t first = profile->first_blocks[placed->index];
    uint32_t count = profile->first_blocks[placed->index + 1] - first;
    uint32_t hot = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_block block = {.size = 0};
        scratch->numbers[i] = NONE;
        if (i > 0 && flow->counts[first + i] == 0)
            continue;
        cairn_block_table_block(profile->table, placed->index, i, &block);
        scratch->blocks[hot] = (struct ext_tsp_block){block.size, flow->counts[first + i]};
        scratch->indices[hot] = i;
        scratch->numbers[i] = hot++;
        placed->size += block.size;
        placed->count = add_counts(placed->count, flow->counts[first + i]);
    }
    return hot;
}

/* Orders the blocks of a function, whose edges are `jumps`. Without branches there is no edge, and
 * the blocks keep their order. */
static bool place_blocks(struct placement *placement, struct scratch *scratch,
                         const struct profile *profile, const struct flow *flow,
                         struct placed_function *placed, const struct edge *jumps,
                         size_t jump_count)
{
    struct ext_tsp_graph graph = {.blocks = scratch->blocks, .edges = scratch->edges};
    uint32_t first = profile->first_blocks[placed->index];
    graph.block_count = take_blocks(scratch, profile, flow, placed);
    for (size_t i = 0; i < jump_count; i++) {
        uint32_t from = scratch->numbers[jumps[i].from - first];
        uint32_t to = scratch->numbers[jumps[i].to - first];
        if (from != NONE && to != NONE)
            scratch->edges[graph.edge_count++] = (struct edge){from, to, jumps[i].count};
    }
    for (uint32_t i = 0; i < graph.block_count; i++)
        scratch->order[i] = i;
    if (profile->branches->record_count > 0 && !ext_tsp_order(&graph, scratch->order))
        return false;
    for (uint32_t i = 0; i < graph.block_count; i++)
        placement->blocks[placed->first + i] = scratch->indices[scratch->order[i]];
    placed->block_count = graph.block_count;
    return true;
}

static bool is_executed(const struct profile *profile, const struct flow *flow, uint32_t function)
{
    for (uint32_t i = profile->first_blocks[function]; i < profile->first_blocks[function + 1]; i++)
        if (flow->counts[i] > 0)
            return true;
    return false;
}

static bool place_functions(struct placement *placement, struct scratch *scratch,
                            const struct profile *profile, const struct flow *flow)
{
    uint32_t functions = cairn_block_table_counts(profile->table).functions;
    size_t jump = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < functions; i++) {
        size_t first_jump = jump;
        while (jump < flow->jump_count && flow->jumps[jump].from < profile->first_blocks[i + 1])
            jump++;
        if (!is_executed(profile, flow, i))
            continue;
        struct placed_function *placed = &placement->functions[placement->function_count++];
        *placed = (struct placed_function){.index = i, .first = next};
        if (!place_blocks(placement, scratch, profile, flow, placed, flow->jumps + first_jump,
                          jump - first_jump))
            return false;
        next += placed->block_count;
    }
    return true;
}

/* ---- Functions ---- */

/* A group of functions that follow each other. It has the number of one of them. */
struct group {
    uint32_t parent; /* the group that it was merged into, or itself */
    uint32_t tail;
    uint32_t next;   /* function that follows, or NONE */
    uint32_t caller; /* the function that calls it most often, or NONE */
    uint64_t calls;
    uint64_t size;
    double count;
};

enum { GROUP_BYTES_MAX = 1 << 20 };
#define DENSITY_LOSS_MAX 8.0

static uint32_t find_group(struct group *groups, uint32_t number)
{
    while (groups[number].parent != number) {
        groups[number].parent = groups[groups[number].parent].parent;
        number = groups[number].parent;
    }
    return number;
}

static double density(uint64_t size, double count) { return count / (size > 0 ? (double)size : 1); }

/* Merges the function's group into that of its caller, unless that makes the latter too large or
 * much less dense. */
static void follow_caller(struct group *groups, uint32_t number)
{
    if (groups[number].caller == NONE)
        return;
    uint32_t into = find_group(groups, groups[number].caller);
    uint32_t own = find_group(groups, number);
    struct group *group = &groups[into];
    uint64_t size = group->size + groups[own].size;
    double count = group->count + groups[own].count;
    if (into == own || own != number || size > GROUP_BYTES_MAX ||
        density(size, count) * DENSITY_LOSS_MAX < density(group->size, group->count))
        return;
    groups[group->tail].next = own;
    group->tail = groups[own].tail;
    group->size = size;
    group->count = count;
    groups[own].parent = into;
}

struct ranked {
    double rank;
    uint32_t number;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->rank > b->rank || a->rank < b->rank)
        return a->rank > b->rank ? -1 : 1;
    return compare_numbers(a->number, b->number);
}

/* Numbers the placed functions, and finds the most frequent caller of each. `numbers` is by the
 * functions' numbers in the table. */
static void find_callers(const struct placement *placement, const struct flow *flow,
                         struct group *groups, uint32_t *numbers, uint32_t functions)
{
    for (uint32_t i = 0; i < functions; i++)
        numbers[i] = NONE;
    for (uint32_t i = 0; i < placement->function_count; i++) {
        const struct placed_function *placed = &placement->functions[i];
        numbers[placed->index] = i;
        groups[i] = (struct group){.parent = i,
                                   .tail = i,
                                   .next = NONE,
                                   .caller = NONE,
                                   .size = placed->size,
                                   .count = (double)placed->count};
    }
    for (size_t i = 0; i < flow->call_count; i++) {
        uint32_t from = numbers[flow->calls[i].from];
        uint32_t to = numbers[flow->calls[i].to];
        if (from == NONE || to == NONE || flow->calls[i].count <= groups[to].calls)
            continue;
        groups[to].caller = from;
        groups[to].calls = flow->calls[i].count;
    }
}

/* Writes the functions to `ordered`: the densest group first. `ranked` is scratch memory. */
static void write_groups(const struct placement *placement, struct group *groups,
                         struct ranked *ranked, struct placed_function *ordered)
{
    size_t count = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < placement->function_count; i++)
        if (groups[i].parent == i)
            ranked[count++] = (struct ranked){density(groups[i].size, groups[i].count), i};
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < count; i++)
        for (uint32_t number = ranked[i].number; number != NONE; number = groups[number].next)
            ordered[at++] = placement->functions[number];
}

static bool order_functions(struct placement *placement, const struct profile *profile,
                            const struct flow *flow)
{
    uint32_t functions = cairn_block_table_counts(profile->table).functions;
    size_t count = placement->function_count;
    struct group *groups = calloc(count + 1, sizeof *groups);
    struct ranked *ranked = calloc(count + 1, sizeof *ranked);
    uint32_t *numbers = calloc((size_t)functions + 1, sizeof *numbers);
    struct placed_function *ordered = calloc(count + 1, sizeof *ordered);
    bool is_good = groups != NULL && ranked != NULL && numbers != NULL && ordered != NULL;
    if (is_good) {
        find_callers(placement, flow, groups, numbers, functions);
        for (uint32_t i = 0; i < count; i++)
            ranked[i] = (struct ranked){groups[i].count, i};
        qsort(ranked, count, sizeof *ranked, compare_ranked);
        for (size_t i = 0; i < count; i++)
            follow_caller(groups, ranked[i].number);
        write_groups(placement, groups, ranked, ordered);
        free(placement->functions);
        placement->functions = ordered;
        ordered = NULL;
    }
    free(groups);
    free(ranked);
    free(numbers);
    free(ordered);
    return is_good;
}

/* ---- Placements ---- */

bool placement_create(struct placement *placement, const struct profile *profile,
                      const struct flow *flow)
{
    const struct cairn_block_table_counts counts = cairn_block_table_counts(profile->table);
    struct scratch scratch;
    *placement = (struct placement){
        .functions = calloc((size_t)counts.functions + 1, sizeof *placement->functions),
        .blocks = calloc((size_t)counts.blocks + 1, sizeof *placement->blocks),
    };
    bool is_good = scratch_create(&scratch, profile, flow) && placement->functions != NULL &&
                   placement->blocks != NULL &&
                   place_functions(placement, &scratch, profile, flow) &&
                   order_functions(placement, profile, flow);
    scratch_release(&scratch);
    return is_good || complain(NO_MEMORY);
}

void placement_release(struct placement *placement)
{
    free(placement->functions);
    free(placement->blocks);
}
