/*
 * The greedy search for the ext-TSP order. At first, each block is a chain. The pair of chains
 * whose merging gains most is merged, until no pair gains anything. In a merge, one chain follows
 * the other, or is placed inside of it.
 *
 * Gains are in a heap. Merging changes the gains of the pairs of the new chain: they are computed
 * again, and entries of chains that have changed since are dropped when they reach the top.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/propeller/ext_tsp.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPLIT_BLOCKS_MAX = 128, /* longer chains are not split */
    SPLITS_MAX = 32,        /* places at which a chain is split for one pair */
    WORK_PER_ITEM = 4096,   /* visits of edges for each block and edge of the graph */
};
#define FORWARD_BYTES 1024.0
#define BACKWARD_BYTES 640.0
#define BRANCH_SHARE 0.1
#define GAIN_LEAST 1e-8
#define NO_BLOCK UINT32_MAX

/* ---- The score ---- */

static double edge_score(uint64_t source_end, uint64_t target, double weight)
{
    if (target == source_end)
        return weight;
    if (target > source_end) {
        double distance = (double)(target - source_end);
        return distance < FORWARD_BYTES ? weight * BRANCH_SHARE * (1 - distance / FORWARD_BYTES)
                                        : 0;
    }
    double distance = (double)(source_end - target);
    return distance < BACKWARD_BYTES ? weight * BRANCH_SHARE * (1 - distance / BACKWARD_BYTES) : 0;
}

double ext_tsp_score(const struct ext_tsp_graph *graph, const uint32_t *order, uint64_t *starts)
{
    uint64_t next = 0;
    double sum = 0;
    for (uint32_t i = 0; i < graph->block_count; i++) {
        starts[order[i]] = next;
        next += graph->blocks[order[i]].size;
    }
    for (size_t i = 0; i < graph->edge_count; i++) {
        const struct edge *edge = &graph->edges[i];
        sum += edge_score(starts[edge->from] + graph->blocks[edge->from].size, starts[edge->to],
                          (double)edge->count);
    }
    return sum;
}

/* ---- Chains ---- */

/* A chain has the number of one of its blocks, and is a list of blocks. */
struct chain {
    uint32_t head;
    uint32_t tail;
    uint32_t block_count; /* 0 if the chain was merged into another one */
    uint32_t stamp;       /* grows with each merge */
    uint64_t size;
    double count; /* of all blocks */
};

struct node {
    uint32_t chain;
    uint32_t next;     /* in the chain, or NO_BLOCK */
    uint32_t position; /* number in the chain; used only in chains that may be split */
    uint32_t first_link;
    uint32_t link_count;
    uint64_t start; /* bytes from the start of the chain */
};

/* An edge, as a neighbour of each of its blocks. */
struct link {
    uint32_t edge;
    uint32_t other;
};

/* How a chain is merged with another, which is split into two parts unless it comes first. */
enum shape {
    SHAPE_AFTER,       /* first second */
    SHAPE_INSIDE,      /* first_1 second first_2 */
    SHAPE_SECOND_TURN, /* second first_2 first_1 */
    SHAPE_TURN_SECOND, /* first_2 first_1 second */
    SHAPE_COUNT
};

struct merge {
    double gain;
    uint32_t first;
    uint32_t second;
    uint32_t first_stamp;
    uint32_t second_stamp;
    uint32_t split;
    enum shape shape;
};

struct search {
    const struct ext_tsp_graph *graph;
    struct chain *chains;
    struct node *nodes;
    struct link *links;
    uint32_t *marks; /* for each chain: the last round in which it was visited */
    uint32_t round;
    struct merge *heap;
    size_t heap_count;
    size_t heap_capacity;
    uint64_t work_left;
    bool is_without_memory;
};

static uint64_t block_size(const struct search *search, uint32_t block)
{
    return search->graph->blocks[block].size;
}

/* ---- The heap ---- */

/* Whether `left` is merged before `right`. Equal gains are ordered, so that the result depends on
 * the graph alone. */
static bool precedes(const struct merge *left, const struct merge *right)
{
    if (left->gain > right->gain || left->gain < right->gain)
        return left->gain > right->gain;
    return left->first != right->first ? left->first < right->first : left->second < right->second;
}

static void push(struct search *search, const struct merge *merge)
{
    if (search->heap_count == search->heap_capacity) {
        size_t capacity = 2 * search->heap_capacity + 64;
        struct merge *heap = realloc(search->heap, capacity * sizeof *heap);
        if (heap == NULL) {
            search->is_without_memory = true;
            return;
        }
        search->heap = heap;
        search->heap_capacity = capacity;
    }
    size_t at = search->heap_count++;
    for (; at > 0 && precedes(merge, &search->heap[(at - 1) / 2]); at = (at - 1) / 2)
        search->heap[at] = search->heap[(at - 1) / 2];
    search->heap[at] = *merge;
}

static struct merge pop(struct search *search)
{
    struct merge top = search->heap[0];
    struct merge last = search->heap[--search->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < search->heap_count &&
            precedes(&search->heap[child + 1], &search->heap[child]))
            child++;
        if (child >= search->heap_count || !precedes(&search->heap[child], &last))
            break;
        search->heap[at] = search->heap[child];
        at = child;
    }
    search->heap[at] = last;
    return top;
}

/* ---- Gains ---- */

/* Where the parts of a merge begin in the new chain. The part of `first` before `split` begins at
 * `low`, the one from it on at `high`, which counts from the start of `first`. */
struct placing {
    const struct search *search;
    uint32_t first;
    uint32_t second;
    uint32_t split;
    uint64_t low;
    uint64_t high;
    uint64_t other;
};

/* Returns the bytes of the chain's blocks before number `split`. */
static uint64_t split_offset(const struct search *search, uint32_t chain, uint32_t split)
{
    uint32_t block = search->chains[chain].head;
    while (block != NO_BLOCK && search->nodes[block].position < split)
        block = search->nodes[block].next;
    return block == NO_BLOCK ? search->chains[chain].size : search->nodes[block].start;
}

/* Sums modulo 2^64 are intended: `high` may be less than the start of the split. */
static struct placing place(const struct search *search, const struct merge *merge)
{
    struct placing placing = {
        .search = search, .first = merge->first, .second = merge->second, .split = merge->split};
    uint64_t first_size = search->chains[merge->first].size;
    uint64_t second_size = search->chains[merge->second].size;
    placing.other = first_size;
    if (merge->shape == SHAPE_AFTER)
        return placing;
    uint64_t low_size = split_offset(search, merge->first, merge->split);
    uint64_t high_size = first_size - low_size;
    if (merge->shape == SHAPE_INSIDE) {
        placing.other = low_size;
        placing.high = second_size;
    } else if (merge->shape == SHAPE_SECOND_TURN) {
        placing.other = 0;
        placing.high = second_size - low_size;
        placing.low = second_size + high_size;
    } else {
        placing.high = 0 - low_size;
        placing.low = high_size;
    }
    return placing;
}

static uint64_t placed_start(const struct placing *placing, uint32_t block)
{
    const struct node *node = &placing->search->nodes[block];
    if (node->chain == placing->second)
        return node->start + placing->other;
    if (placing->split == 0)
        return node->start + placing->low;
    return node->start + (node->position < placing->split ? placing->low : placing->high);
}

static double placed_score(const struct placing *placing, const struct edge *edge)
{
    uint64_t end = placed_start(placing, edge->from) + block_size(placing->search, edge->from);
    return edge_score(end, placed_start(placing, edge->to), (double)edge->count);
}

static double present_score(const struct search *search, const struct edge *edge)
{
    const struct node *from = &search->nodes[edge->from];
    return edge_score(from->start + block_size(search, edge->from), search->nodes[edge->to].start,
                      (double)edge->count);
}

/* Returns the score of edges between the chains when `second` follows `first`. The blocks of
 * `walked`, which is either, are visited. */
static double concatenation_gain(struct search *search, const struct merge *merge, uint32_t walked)
{
    struct placing placing = place(search, merge);
    uint32_t opposite = walked == merge->first ? merge->second : merge->first;
    double gain = 0;
    for (uint32_t block = search->chains[walked].head; block != NO_BLOCK;
         block = search->nodes[block].next) {
        const struct node *node = &search->nodes[block];
        for (uint32_t i = 0; i < node->link_count; i++) {
            const struct link *link = &search->links[node->first_link + i];
            if (search->nodes[link->other].chain == opposite)
                gain += placed_score(&placing, &search->graph->edges[link->edge]);
        }
    }
    return gain;
}

/* Returns the gain when `first` is split: edges inside of it count, too. */
static double split_gain(struct search *search, const struct merge *merge)
{
    struct placing placing = place(search, merge);
    double gain = 0;
    for (uint32_t block = search->chains[merge->first].head; block != NO_BLOCK;
         block = search->nodes[block].next) {
        const struct node *node = &search->nodes[block];
        for (uint32_t i = 0; i < node->link_count; i++) {
            const struct link *link = &search->links[node->first_link + i];
            const struct edge *edge = &search->graph->edges[link->edge];
            uint32_t other = search->nodes[link->other].chain;
            if (other == merge->second)
                gain += placed_score(&placing, edge);
            else if (other == merge->first && edge->from == block)
                gain += placed_score(&placing, edge) - present_score(search, edge);
        }
    }
    return gain;
}

/* Counts the edges that a visit of the chain's blocks sees. */
static uint64_t chain_work(const struct search *search, uint32_t chain)
{
    uint64_t work = 1;
    for (uint32_t block = search->chains[chain].head; block != NO_BLOCK;
         block = search->nodes[block].next)
        work += 1 + search->nodes[block].link_count;
    return work;
}

static bool spend(struct search *search, uint64_t work)
{
    bool is_enough = work <= search->work_left;
    search->work_left = is_enough ? search->work_left - work : 0;
    return is_enough;
}

/* Whether the entry stays first in the new chain. */
static bool keeps_entry(const struct search *search, const struct merge *merge)
{
    uint32_t entry = search->nodes[0].chain;
    if (entry == merge->second)
        return merge->shape == SHAPE_SECOND_TURN;
    return entry != merge->first || merge->shape == SHAPE_AFTER || merge->shape == SHAPE_INSIDE;
}

/* ---- Pairs ---- */

/* Compares a merge with the best one so far. */
static void consider(struct search *search, struct merge *best, const struct merge *merge,
                     uint64_t work)
{
    struct merge tried = *merge;
    if (!keeps_entry(search, merge) || !spend(search, work))
        return;
    tried.gain = split_gain(search, merge);
    if (tried.gain > best->gain + GAIN_LEAST)
        *best = tried;
}

/* Tries to place `second` at the places of `first` where an edge between them begins or ends. */
static void try_splits(struct search *search, struct merge *best, uint32_t first, uint32_t second)
{
    uint64_t work = chain_work(search, first);
    uint32_t last_split = 0;
    uint32_t splits = 0;
    for (uint32_t block = search->chains[first].head; block != NO_BLOCK;
         block = search->nodes[block].next) {
        const struct node *node = &search->nodes[block];
        for (uint32_t i = 0; i < node->link_count && splits < SPLITS_MAX; i++) {
            const struct link *link = &search->links[node->first_link + i];
            if (search->nodes[link->other].chain != second)
                continue;
            bool is_source = search->graph->edges[link->edge].from == block;
            struct merge merge = {
                .first = first, .second = second, .split = node->position + is_source};
            if (merge.split == 0 || merge.split == last_split ||
                merge.split >= search->chains[first].block_count)
                continue;
            last_split = merge.split;
            splits++;
            for (int shape = SHAPE_INSIDE; shape < SHAPE_COUNT; shape++) {
                merge.shape = (enum shape)shape;
                consider(search, best, &merge, work);
            }
        }
    }
}

static void try_concatenation(struct search *search, struct merge *best, uint32_t first,
                              uint32_t second)
{
    struct merge merge = {.first = first, .second = second, .shape = SHAPE_AFTER};
    bool is_first_shorter = search->chains[first].block_count < search->chains[second].block_count;
    uint32_t walked = is_first_shorter ? first : second;
    if (!keeps_entry(search, &merge) || !spend(search, search->chains[walked].block_count))
        return;
    merge.gain = concatenation_gain(search, &merge, walked);
    if (merge.gain > best->gain + GAIN_LEAST)
        *best = merge;
}

/* Pushes the best merge of two chains, if any gains something. */
static void push_pair(struct search *search, uint32_t left, uint32_t right)
{
    struct merge best = {.gain = 0};
    try_concatenation(search, &best, left, right);
    try_concatenation(search, &best, right, left);
    if (search->chains[left].block_count <= SPLIT_BLOCKS_MAX)
        try_splits(search, &best, left, right);
    if (search->chains[right].block_count <= SPLIT_BLOCKS_MAX)
        try_splits(search, &best, right, left);
    if (best.gain <= GAIN_LEAST)
        return;
    best.first_stamp = search->chains[best.first].stamp;
    best.second_stamp = search->chains[best.second].stamp;
    push(search, &best);
}

/* Pushes the pairs of the chain with its neighbours; with `is_first`, only those with greater
 * numbers, because the others push them. */
static void push_neighbours(struct search *search, uint32_t chain, bool is_first)
{
    search->round++;
    search->marks[chain] = search->round;
    if (!spend(search, chain_work(search, chain)))
        return;
    for (uint32_t block = search->chains[chain].head; block != NO_BLOCK;
         block = search->nodes[block].next) {
        const struct node *node = &search->nodes[block];
        for (uint32_t i = 0; i < node->link_count; i++) {
            uint32_t other = search->nodes[search->links[node->first_link + i].other].chain;
            if (search->marks[other] == search->round || (is_first && other < chain))
                continue;
            search->marks[other] = search->round;
            push_pair(search, chain, other);
        }
    }
}

/* ---- Merging ---- */

/* Cuts the first `split` blocks off a list. Returns the last of them. */
static uint32_t cut(struct search *search, uint32_t head, uint32_t split, uint32_t *rest)
{
    uint32_t last = head;
    for (uint32_t i = 1; i < split; i++)
        last = search->nodes[last].next;
    *rest = search->nodes[last].next;
    search->nodes[last].next = NO_BLOCK;
    return last;
}

/* Links up to three lists to one. Returns its last block. */
static uint32_t concatenate(struct search *search, const uint32_t heads[3], const uint32_t tails[3],
                            size_t count)
{
    for (size_t i = 1; i < count; i++)
        search->nodes[tails[i - 1]].next = heads[i];
    return tails[count - 1];
}

/* Merges `second` into `first`, whose number the new chain gets. */
static void merge_chains(struct search *search, const struct merge *merge)
{
    struct chain *first = &search->chains[merge->first];
    struct chain *second = &search->chains[merge->second];
    if (merge->shape == SHAPE_AFTER) {
        search->nodes[first->tail].next = second->head;
        first->tail = second->tail;
    } else {
        uint32_t high;
        uint32_t low = first->head;
        uint32_t low_tail = cut(search, low, merge->split, &high);
        const uint32_t heads[SHAPE_COUNT][3] = {
            [SHAPE_INSIDE] = {low, second->head, high},
            [SHAPE_SECOND_TURN] = {second->head, high, low},
            [SHAPE_TURN_SECOND] = {high, low, second->head},
        };
        const uint32_t tails[SHAPE_COUNT][3] = {
            [SHAPE_INSIDE] = {low_tail, second->tail, first->tail},
            [SHAPE_SECOND_TURN] = {second->tail, first->tail, low_tail},
            [SHAPE_TURN_SECOND] = {first->tail, low_tail, second->tail},
        };
        first->head = heads[merge->shape][0];
        first->tail = concatenate(search, heads[merge->shape], tails[merge->shape], 3);
    }
    first->size += second->size;
    first->count += second->count;
    first->block_count += second->block_count;
    first->stamp++;
    second->stamp++;
    second->block_count = 0;
}

static void number_blocks(struct search *search, uint32_t chain)
{
    uint64_t start = 0;
    uint32_t position = 0;
    for (uint32_t block = search->chains[chain].head; block != NO_BLOCK;
         block = search->nodes[block].next) {
        search->nodes[block].chain = chain;
        search->nodes[block].start = start;
        search->nodes[block].position = position++;
        start += block_size(search, block);
    }
}

/* Merges pairs in the order of gains, until none is left or the work is done. */
static void merge_by_gain(struct search *search)
{
    for (uint32_t i = 0; i < search->graph->block_count; i++)
        push_neighbours(search, i, true);
    while (search->heap_count > 0 && search->work_left > 0 && !search->is_without_memory) {
        struct merge merge = pop(search);
        if (search->chains[merge.first].stamp != merge.first_stamp ||
            search->chains[merge.second].stamp != merge.second_stamp)
            continue;
        merge_chains(search, &merge);
        (void)spend(search, search->chains[merge.first].block_count);
        number_blocks(search, merge.first);
        push_neighbours(search, merge.first, false);
    }
}

static int compare_edges(const void *left, const void *right)
{
    const struct edge *const *a = left;
    const struct edge *const *b = right;
    if ((*a)->count != (*b)->count)
        return (*a)->count > (*b)->count ? -1 : 1;
    return (*a > *b) - (*a < *b);
}

/* Returns the chain of a block, while blocks of merged chains are not numbered again: the chain of
 * the block that gave the chain its number is followed, and the path is shortened on the way. */
static uint32_t find_chain(struct search *search, uint32_t block)
{
    uint32_t chain = search->nodes[block].chain;
    while (search->nodes[chain].chain != chain) {
        search->nodes[chain].chain = search->nodes[search->nodes[chain].chain].chain;
        chain = search->nodes[chain].chain;
    }
    search->nodes[block].chain = chain;
    return chain;
}

/* Merges chains at whose ends an edge leads from one to the other, the heaviest edges first. Takes
 * O(e log e) time, for graphs that are too large for gains. */
static bool merge_by_count(struct search *search)
{
    size_t count = search->graph->edge_count;
    const struct edge **edges = malloc((count + 1) * sizeof *edges);
    if (edges == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        edges[i] = &search->graph->edges[i];
    qsort(edges, count, sizeof *edges, compare_edges);
    for (size_t i = 0; i < count; i++) {
        uint32_t from = find_chain(search, edges[i]->from);
        uint32_t to = find_chain(search, edges[i]->to);
        struct merge merge = {.first = from, .second = to, .shape = SHAPE_AFTER};
        if (from == to || edges[i]->count == 0 || search->chains[from].tail != edges[i]->from ||
            search->chains[to].head != edges[i]->to || find_chain(search, 0) == to)
            continue;
        merge_chains(search, &merge);
        search->nodes[to].chain = from;
    }
    free(edges);
    return true;
}

/* ---- The order ---- */

struct ranked_chain {
    bool is_entry;
    double density; /* executions for each byte */
    uint32_t head;
};

static int compare_chains(const void *left, const void *right)
{
    const struct ranked_chain *a = left;
    const struct ranked_chain *b = right;
    if (a->is_entry != b->is_entry)
        return a->is_entry ? -1 : 1;
    if (a->density > b->density || a->density < b->density)
        return a->density > b->density ? -1 : 1;
    return (a->head > b->head) - (a->head < b->head);
}

/* Writes the chains: first that of the entry, then those whose blocks are executed more often. */
static bool write_order(struct search *search, uint32_t *order)
{
    struct ranked_chain *ranked = calloc(search->graph->block_count, sizeof *ranked);
    uint32_t entry = find_chain(search, 0);
    size_t count = 0;
    size_t at = 0;
    if (ranked == NULL)
        return false;
    for (uint32_t i = 0; i < search->graph->block_count; i++) {
        const struct chain *chain = &search->chains[i];
        if (chain->block_count == 0)
            continue;
        double size = chain->size > 0 ? (double)chain->size : 1;
        ranked[count++] = (struct ranked_chain){i == entry, chain->count / size, chain->head};
    }
    qsort(ranked, count, sizeof *ranked, compare_chains);
    for (size_t i = 0; i < count; i++)
        for (uint32_t block = ranked[i].head; block != NO_BLOCK; block = search->nodes[block].next)
            order[at++] = block;
    free(ranked);
    return true;
}

/* ---- Graphs ---- */

/* Whether the edge can be a neighbour: a loop of one block has the same score in every order. */
static bool is_used(const struct edge *edge) { return edge->from != edge->to && edge->count > 0; }

static void link_blocks(struct search *search)
{
    const struct ext_tsp_graph *graph = search->graph;
    uint32_t next = 0;
    for (size_t i = 0; i < graph->edge_count; i++) {
        search->nodes[graph->edges[i].from].link_count += is_used(&graph->edges[i]);
        search->nodes[graph->edges[i].to].link_count += is_used(&graph->edges[i]);
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        search->nodes[i].first_link = next;
        next += search->nodes[i].link_count;
        search->nodes[i].link_count = 0;
    }
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        const struct edge *edge = &graph->edges[i];
        if (!is_used(edge))
            continue;
        struct node *from = &search->nodes[edge->from];
        struct node *to = &search->nodes[edge->to];
        search->links[from->first_link + from->link_count++] = (struct link){i, edge->to};
        search->links[to->first_link + to->link_count++] = (struct link){i, edge->from};
    }
}

static bool create_search(struct search *search, const struct ext_tsp_graph *graph)
{
    size_t count = graph->block_count;
    *search = (struct search){
        .graph = graph,
        .chains = calloc(count, sizeof *search->chains),
        .nodes = calloc(count, sizeof *search->nodes),
        .links = calloc(2 * graph->edge_count + 1, sizeof *search->links),
        .marks = calloc(count, sizeof *search->marks),
        .work_left = WORK_PER_ITEM * (uint64_t)(count + graph->edge_count),
    };
    if (search->chains == NULL || search->nodes == NULL || search->links == NULL ||
        search->marks == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        search->nodes[i] = (struct node){.chain = i, .next = NO_BLOCK};
        search->chains[i] = (struct chain){.head = i,
                                           .tail = i,
                                           .block_count = 1,
                                           .size = graph->blocks[i].size,
                                           .count = (double)graph->blocks[i].count};
    }
    link_blocks(search);
    return true;
}

bool ext_tsp_order(const struct ext_tsp_graph *graph, uint32_t *order)
{
    struct search search;
    if (graph->block_count == 0)
        return true;
    bool is_good = create_search(&search, graph);
    if (is_good) {
        merge_by_gain(&search);
        is_good =
            !search.is_without_memory && merge_by_count(&search) && write_order(&search, order);
    }
    free(search.chains);
    free(search.nodes);
    free(search.links);
    free(search.marks);
    free(search.heap);
    return is_good;
}
