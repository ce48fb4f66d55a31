/* SPDX-License-Identifier: MIT */
#include "tools/profile.h"

#include <stdlib.h>

/* ---- Orders ---- */

static int compare_numbers(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

/* Compares functions. Their numbers are in the order of addresses. */
static int compare_functions(const void *left, const void *right)
{
    const struct hot_function *a = left;
    const struct hot_function *b = right;
    int order = compare_numbers(b->samples, a->samples);
    return order != 0 ? order : compare_numbers(a->index, b->index);
}

static int compare_blocks(const void *left, const void *right)
{
    const struct hot_block *a = left;
    const struct hot_block *b = right;
    int order = compare_numbers(b->samples, a->samples);
    if (order == 0)
        order = compare_numbers(a->address, b->address);
    if (order == 0)
        order = compare_numbers(a->function, b->function);
    return order != 0 ? order : compare_numbers(a->index, b->index);
}

/* ---- Functions and blocks with samples ---- */

static void add_function(struct ranking *ranking, const struct profile *profile, uint32_t function)
{
    struct hot_function hot = {.index = function};
    uint32_t first = profile->first_blocks[function];
    uint32_t end = profile->first_blocks[function + 1];
    for (uint32_t i = first; i < end; i++) {
        struct cairn_block block = {0};
        if (profile->counts[i] == 0)
            continue;
        cairn_block_table_block(profile->table, function, i - first, &block);
        ranking->blocks[ranking->block_count++] = (struct hot_block){
            profile->counts[i], block.address, .function = function, .index = i - first};
        hot.samples += profile->counts[i];
        hot.sampled_blocks++;
    }
    if (hot.samples > 0)
        ranking->functions[ranking->function_count++] = hot;
}

bool ranking_create(struct ranking *ranking, const struct profile *profile)
{
    uint32_t function_count = cairn_block_table_function_count(profile->table);
    size_t sampled = 0;
    *ranking = (struct ranking){0};
    for (uint32_t i = 0; i < profile->first_blocks[function_count]; i++)
        sampled += profile->counts[i] > 0;
    size_t sampled_functions = sampled < function_count ? sampled : function_count;
    ranking->functions = calloc(sampled_functions + 1, sizeof *ranking->functions);
    ranking->blocks = calloc(sampled + 1, sizeof *ranking->blocks);
    if (ranking->functions == NULL || ranking->blocks == NULL)
        return complain("profile: no memory for the order of blocks");
    for (uint32_t i = 0; i < function_count; i++)
        add_function(ranking, profile, i);
    qsort(ranking->functions, ranking->function_count, sizeof *ranking->functions,
          compare_functions);
    qsort(ranking->blocks, ranking->block_count, sizeof *ranking->blocks, compare_blocks);
    return true;
}

void ranking_release(struct ranking *ranking)
{
    free(ranking->functions);
    free(ranking->blocks);
}
