/*
 * Tests the layout of basic blocks, in comparison with all possible orders of small functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/propeller/ext_tsp.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS_MAX = 8, EDGES_MAX = 24, GRAPHS = 300 };

/* ---- Random numbers ---- */

static uint64_t random_state;

/* Returns a number below `bound` (xorshift64*). */
static uint32_t below(uint32_t bound)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545F4914F6CDD1DU) >> 32) % bound;
}

/* ---- All orders ---- */

struct best {
    const struct ext_tsp_graph *graph;
    uint32_t order[BLOCKS_MAX];
    double score;
};

/* Tries all orders of the blocks from number `at` on. */
static void permute(struct best *best, uint32_t at)
{
    uint64_t starts[BLOCKS_MAX];
    if (at == best->graph->block_count) {
        double score = ext_tsp_score(best->graph, best->order, starts);
        best->score = score > best->score ? score : best->score;
        return;
    }
    for (uint32_t i = at; i < best->graph->block_count; i++) {
        uint32_t kept = best->order[at];
        best->order[at] = best->order[i];
        best->order[i] = kept;
        permute(best, at + 1);
        best->order[i] = best->order[at];
        best->order[at] = kept;
    }
}

static double best_score(const struct ext_tsp_graph *graph)
{
    struct best best = {.graph = graph, .score = 0};
    for (uint32_t i = 0; i < graph->block_count; i++)
        best.order[i] = i;
    permute(&best, 1);
    return best.score;
}

/* ---- Graphs ---- */

static bool is_order(const uint32_t *order, uint32_t count)
{
    bool *is_seen = calloc(count, sizeof *is_seen);
    bool is_good = is_seen != NULL && order[0] == 0;
    for (uint32_t i = 0; is_good && i < count; i++) {
        is_good = order[i] < count && !is_seen[order[i]];
        if (is_good)
            is_seen[order[i]] = true;
    }
    free(is_seen);
    return is_good;
}

/* Makes a function whose counts are those of random walks from the entry. */
static struct ext_tsp_graph make_graph(struct ext_tsp_block *blocks, struct edge *edges)
{
    uint32_t count = 2 + below(BLOCKS_MAX - 1);
    struct ext_tsp_graph graph = {.blocks = blocks, .block_count = count, .edges = edges};
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = (struct ext_tsp_block){.size = 1 + below(200)};
        for (uint32_t j = 0, last = below(3); j <= last && graph.edge_count < EDGES_MAX; j++)
            edges[graph.edge_count++] = (struct edge){.from = i, .to = below(count)};
    }
    for (int walk = 0; walk < 50; walk++) {
        uint32_t at = 0;
        for (int step = 0; step < 20; step++) {
            size_t edge = below((uint32_t)graph.edge_count);
            blocks[at].count++;
            if (edges[edge].from != at)
                continue;
            edges[edge].count++;
            at = edges[edge].to;
        }
    }
    return graph;
}

START_TEST(random_functions_are_ordered_almost_as_well_as_possible)
{
    struct ext_tsp_block blocks[BLOCKS_MAX];
    struct edge edges[EDGES_MAX];
    uint32_t order[BLOCKS_MAX];
    uint64_t starts[BLOCKS_MAX];
    double sum = 0;
    double best_sum = 0;
    for (int i = 0; i < GRAPHS; i++) {
        struct ext_tsp_graph graph = make_graph(blocks, edges);
        ck_assert(ext_tsp_order(&graph, order));
        ck_assert(is_order(order, graph.block_count));
        double score = ext_tsp_score(&graph, order, starts);
        double best = best_score(&graph);
        ck_assert_double_le(score, best + 1e-6);
        ck_assert_double_ge(score, 0.75 * best);
        sum += score;
        best_sum += best;
    }
    ck_assert_double_ge(sum, 0.97 * best_sum);
}
END_TEST

START_TEST(the_hot_path_falls_through)
{
    /* 0 → 1 (cold) → 3, 0 → 2 (hot) → 3. */
    const struct ext_tsp_block blocks[] = {{16, 100}, {16, 1}, {16, 99}, {16, 100}};
    const struct edge edges[] = {{0, 1, 1}, {0, 2, 99}, {1, 3, 1}, {2, 3, 99}};
    const uint32_t expected[] = {0, 2, 3, 1};
    const struct ext_tsp_graph graph = {blocks, 4, edges, 4};
    uint32_t order[4];
    ck_assert(ext_tsp_order(&graph, order));
    ck_assert_mem_eq(order, expected, sizeof expected);
}
END_TEST

START_TEST(a_loop_is_rotated_so_that_its_branch_back_is_the_only_one)
{
    /* 0 enters the loop at 2, which leaves it for 3; 1 is the body. */
    const struct ext_tsp_block blocks[] = {{8, 1}, {32, 1000}, {8, 1001}, {8, 1}};
    const struct edge edges[] = {{0, 2, 1}, {2, 1, 1000}, {1, 2, 1000}, {2, 3, 1}};
    const struct ext_tsp_graph graph = {blocks, 4, edges, 4};
    uint32_t order[4];
    uint64_t starts[4];
    ck_assert(ext_tsp_order(&graph, order));
    ck_assert_double_ge(ext_tsp_score(&graph, order, starts), best_score(&graph) - 1e-6);
}
END_TEST

START_TEST(the_entry_stays_first_even_if_it_is_cold)
{
    const struct ext_tsp_block blocks[] = {{8, 0}, {8, 1000}, {8, 1000}};
    const struct edge edges[] = {{2, 0, 900}, {1, 2, 1000}, {2, 1, 1000}};
    const struct ext_tsp_graph graph = {blocks, 3, edges, 3};
    uint32_t order[3];
    ck_assert(ext_tsp_order(&graph, order));
    ck_assert(is_order(order, 3));
}
END_TEST

START_TEST(no_edges_and_greatest_counts_are_ordered)
{
    struct ext_tsp_block blocks[] = {{0, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {0, 0}, {1, 7}};
    const struct edge edges[] = {
        {0, 0, UINT64_MAX}, {1, 2, UINT64_MAX}, {2, 1, UINT64_MAX}, {3, 0, 0}};
    const struct ext_tsp_graph none = {blocks, 4, NULL, 0};
    const struct ext_tsp_graph one = {blocks, 1, NULL, 0};
    const struct ext_tsp_graph graph = {blocks, 4, edges, 4};
    uint32_t order[4];
    ck_assert(ext_tsp_order(&none, order) && is_order(order, 4));
    ck_assert(ext_tsp_order(&one, order) && is_order(order, 1));
    ck_assert(ext_tsp_order(&graph, order) && is_order(order, 4));
}
END_TEST

/* Returns the seconds that a function of `count` blocks takes, in which every block is also
 * connected to block 1 and to a random one. */
static double seconds_for(uint32_t count)
{
    struct ext_tsp_block *blocks = calloc(count, sizeof *blocks);
    struct edge *edges = calloc((size_t)3 * count, sizeof *edges);
    uint32_t *order = calloc(count, sizeof *order);
    struct ext_tsp_graph graph = {.blocks = blocks, .block_count = count, .edges = edges};
    ck_assert(blocks != NULL && edges != NULL && order != NULL);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t weight = 1 + below(1000);
        blocks[i] = (struct ext_tsp_block){.size = 20, .count = weight};
        edges[graph.edge_count++] = (struct edge){i, (i + 1) % count, weight};
        edges[graph.edge_count++] = (struct edge){1, i, 2 * weight};
        edges[graph.edge_count++] = (struct edge){i, below(count), weight};
    }
    clock_t before = clock();
    ck_assert(ext_tsp_order(&graph, order));
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    ck_assert(is_order(order, count));
    free(blocks);
    free(edges);
    free(order);
    return seconds;
}

START_TEST(time_grows_with_the_size_of_a_function_and_not_faster)
{
    double few = seconds_for(500);
    double many = seconds_for(4000);
    ck_assert_double_lt(many, 24 * (few + 0.02));
}
END_TEST

int main(void)
{
    const char *text = getenv("CAIRN_TEST_SEED");
    unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
    fprintf(stderr, "seed %u (CAIRN_TEST_SEED repeats it)\n", seed);
    random_state = seed + 1;
    Suite *suite = suite_create("ext_tsp");
    TCase *tests = tcase_create("order");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, random_functions_are_ordered_almost_as_well_as_possible);
    tcase_add_test(tests, the_hot_path_falls_through);
    tcase_add_test(tests, a_loop_is_rotated_so_that_its_branch_back_is_the_only_one);
    tcase_add_test(tests, the_entry_stays_first_even_if_it_is_cold);
    tcase_add_test(tests, no_edges_and_greatest_counts_are_ordered);
    tcase_add_test(tests, time_grows_with_the_size_of_a_function_and_not_faster);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
