/*
 * The flow of control: from counts of branches, or estimated from samples.
 *
 * A sample shows where time was spent, not how control got there. So without branches there are no
 * edges: hot blocks stay in the order of the compiler, and only blocks that are surely cold are
 * moved away. Moving others makes programs slower, because they are executed after all.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/samples/flow.h"

#include <stdlib.h>

#define NO_MEMORY "profile: no memory for the edges of blocks"

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left;
    const struct edge *b = right;
    int order = compare_numbers(a->from, b->from);
    return order != 0 ? order : compare_numbers(a->to, b->to);
}

/* Returns the number of the function that has the block. */
static uint32_t function_of(const struct profile *profile, uint32_t block)
{
    uint32_t low = 0;
    uint32_t high = cairn_block_table_counts(profile->table).functions;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (profile->first_blocks[middle + 1] <= block)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- From branches ---- */

/* Takes the counted edges: jumps inside of functions and calls of others. A branch to the
 * entry of the same function is a recursive call. */
static void take_edges(struct flow *flow, const struct profile *profile)
{
    const struct branch_counts *counts = profile->branches;
    for (size_t i = 0; i < counts->edges.list.count; i++) {
        const struct edge *edge = (const struct edge *)counts->edges.list.items + i;
        uint32_t from = function_of(profile, edge->from);
        uint32_t to = function_of(profile, edge->to);
        if (from != to)
            flow->calls[flow->call_count++] = (struct edge){from, to, edge->count};
        else if (edge->to != profile->first_blocks[to])
            flow->jumps[flow->jump_count++] = (struct edge){edge->from, edge->to, edge->count};
    }
}

/* Sums the differences. A block that was the source or the target of more branches than were seen
 * to pass through it was executed that often. */
static bool take_counts(struct flow *flow, const struct profile *profile)
{
    const struct branch_counts *counts = profile->branches;
    uint32_t blocks = cairn_block_table_counts(profile->table).blocks;
    uint64_t *left = calloc((size_t)blocks + 1, sizeof *left);
    uint64_t *entered = calloc((size_t)blocks + 1, sizeof *entered);
    uint64_t executed = 0;
    uint64_t fallen = 0;
    bool is_good = left != NULL && entered != NULL;
    for (size_t i = 0; is_good && i < counts->edges.list.count; i++) {
        const struct edge *edge = (const struct edge *)counts->edges.list.items + i;
        left[edge->from] += edge->to != edge->from ? edge->count : 0;
        entered[edge->to] += edge->count;
    }
    for (uint32_t i = 0; is_good && i < blocks; i++) {
        executed += counts->executed_steps[i];
        fallen += counts->fallen_steps[i];
        uint64_t seen = entered[i] > left[i] ? entered[i] : left[i];
        flow->counts[i] = executed > seen ? executed : seen;
        if (fallen > 0 && i > 0)
            flow->jumps[flow->jump_count++] = (struct edge){i - 1, i, fallen};
    }
    free(left);
    free(entered);
    return is_good || complain(NO_MEMORY);
}

/* ---- From samples ---- */

enum {
    RATE_SCALE = 256,    /* rates are samples in so many bytes */
    SAMPLES_MISSED = 16, /* a block that could have had fewer samples may have none by chance */
    SAMPLES_LEAST = 1024 /* samples of a function whose blocks without samples may be cold */
};

static uint64_t rate_of(uint64_t samples, uint64_t size)
{
    uint64_t rate;
    if (__builtin_mul_overflow(samples, (uint64_t)RATE_SCALE, &rate))
        rate = UINT64_MAX;
    return samples == 0 || size == 0 ? 0 : rate / size + 1;
}

/* Whether a block of this size, executed at this rate, could have had no samples by chance. */
static bool is_missed(uint64_t rate, uint32_t size)
{
    uint64_t expected;
    return !__builtin_mul_overflow(rate, (uint64_t)size, &expected) &&
           expected / RATE_SCALE < SAMPLES_MISSED;
}

/* Returns the size of a block of the function. */
static uint32_t size_of(const struct profile *profile, uint32_t function, uint32_t i)
{
    struct cairn_block block = {.size = 0};
    cairn_block_table_block(profile->table, function, i, &block);
    return block.size;
}

/* Estimates how often the blocks of a function were executed. A block without samples counts as
 * executed once, unless the function has so many that it must be colder than the others. */
static void estimate_function(struct flow *flow, const struct profile *profile, uint32_t function)
{
    uint32_t first = profile->first_blocks[function];
    uint32_t count = profile->first_blocks[function + 1] - first;
    uint64_t *rates = flow->counts + first;
    uint64_t samples = 0;
    uint64_t sampled_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = size_of(profile, function, i);
        rates[i] = rate_of(profile->counts[first + i], size);
        samples = add_counts(samples, profile->counts[first + i]);
        sampled_bytes += profile->counts[first + i] > 0 ? size : 0;
    }
    uint64_t rate = rate_of(samples, sampled_bytes);
    for (uint32_t i = 0; i < count; i++)
        if (rates[i] == 0 && samples > 0 &&
            (samples < SAMPLES_LEAST || is_missed(rate, size_of(profile, function, i))))
            rates[i] = 1;
}

/* ---- Flows ---- */

static void merge_calls(struct flow *flow)
{
    size_t kept = 0;
    for (size_t i = 0; i < flow->call_count; i++) {
        struct edge *last = kept > 0 ? &flow->calls[kept - 1] : NULL;
        if (last != NULL && compare_edges(last, &flow->calls[i]) == 0)
            last->count = add_counts(last->count, flow->calls[i].count);
        else
            flow->calls[kept++] = flow->calls[i];
    }
    flow->call_count = kept;
}

bool flow_create(struct flow *flow, const struct profile *profile)
{
    const struct cairn_block_table_counts counts = cairn_block_table_counts(profile->table);
    size_t edges = profile->branches->edges.list.count;
    *flow = (struct flow){
        .counts = calloc((size_t)counts.blocks + 1, sizeof *flow->counts),
        .jumps = calloc((size_t)counts.blocks + edges + 1, sizeof *flow->jumps),
        .calls = calloc(edges + 1, sizeof *flow->calls),
    };
    if (flow->counts == NULL || flow->jumps == NULL || flow->calls == NULL)
        return complain(NO_MEMORY);
    if (profile->branches->record_count == 0) {
        for (uint32_t i = 0; i < counts.functions; i++)
            estimate_function(flow, profile, i);
        return true;
    }
    take_edges(flow, profile);
    if (!take_counts(flow, profile))
        return false;
    qsort(flow->jumps, flow->jump_count, sizeof *flow->jumps, compare_edges);
    qsort(flow->calls, flow->call_count, sizeof *flow->calls, compare_edges);
    merge_calls(flow);
    return true;
}

void flow_release(struct flow *flow)
{
    free(flow->counts);
    free(flow->jumps);
    free(flow->calls);
}
