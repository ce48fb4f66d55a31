/*
 * cairn profile, as text: where the samples are, the hottest functions, and the hottest blocks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/block_words.h"
#include "tools/profile.h"
#include "tools/words.h"

#include <stdio.h>

enum { NUMBER_BYTES = 48 };

/* ---- Totals ---- */

static void write_part(struct output *output, const struct profile *profile, uint64_t samples,
                       const char *where)
{
    if (samples == 0)
        return;
    output_format(output, "  %7.2f %%  %11llu  %s\n", profile_percent(profile, samples),
                  (unsigned long long)samples, where);
}

static void write_totals(struct output *output, const struct profile *profile)
{
    output_style(output, STYLE_HEADING);
    write_count(output, profile->sample_count, "sample", "samples");
    output_style(output, STYLE_PLAIN);
    output_text(output, " of ");
    output_name(output, profile->input->name);
    output_character(output, '\n');
    write_part(output, profile, profile->block_sample_count, "in basic blocks");
    write_part(output, profile, profile->code_sample_count,
               "in code whose blocks no map describes");
    write_part(output, profile, profile_elsewhere_count(profile), "elsewhere");
}

/* ---- Ranking ---- */

static void write_heading(struct output *output, const char *what, size_t shown, size_t count)
{
    output_character(output, '\n');
    output_style(output, STYLE_HEADING);
    output_text(output, what);
    output_style(output, STYLE_PLAIN);
    if (shown < count)
        output_format(output, ", %zu of %zu", shown, count);
    output_character(output, '\n');
}

/* Writes the first columns of both tables: share, cumulative share, and samples. */
static void write_share(struct output *output, const struct profile *profile, uint64_t samples,
                        uint64_t sum)
{
    output_text(output, "  ");
    output_style(output, STYLE_NUMBER);
    output_format(output, "%7.2f %%", profile_percent(profile, samples));
    output_style(output, STYLE_PLAIN);
    output_format(output, "  %7.2f %%  %11llu  ", profile_percent(profile, sum),
                  (unsigned long long)samples);
}

static void write_function_name(struct output *output, const struct profile *profile,
                                uint64_t address)
{
    write_name(output, profile_function_name(profile, address));
}

static void write_function(struct output *output, const struct profile *profile,
                           const struct hot_function *hot, uint64_t sum)
{
    struct cairn_block_function function = {0};
    cairn_block_table_function(profile->table, hot->index, &function);
    write_share(output, profile, hot->samples, sum);
    write_function_name(output, profile, function.address);
    output_text(output, " at ");
    output_hexadecimal(output, function.address);
    output_format(output, ", %u of ", hot->sampled_blocks);
    write_count(output, function.block_count, "block", "blocks");
    if ((function.features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
        output_format(output, ", entered %llu times by its map",
                      (unsigned long long)function.entry_count);
    output_character(output, '\n');
}

static void write_functions(struct output *output, const struct profile *profile,
                            const struct ranking *ranking, size_t limit)
{
    size_t shown = ranking->function_count < limit ? ranking->function_count : limit;
    uint64_t sum = 0;
    write_heading(output, "hottest functions", shown, ranking->function_count);
    output_text(output, "      share        sum      samples  function\n");
    for (size_t i = 0; i < shown; i++) {
        sum += ranking->functions[i].samples;
        write_function(output, profile, &ranking->functions[i], sum);
    }
}

/* Formats a block as "0x401136-0x401150", with the address after its last byte as the end. */
static int format_range(char text[NUMBER_BYTES], const struct cairn_block *block)
{
    unsigned long long begin = block->address;
    unsigned long long end = begin + block->size;
    return snprintf(text, NUMBER_BYTES, "0x%llx-0x%llx", begin, end);
}

static struct cairn_block find_block(const struct profile *profile, const struct hot_block *hot)
{
    struct cairn_block block = {0};
    cairn_block_table_block(profile->table, hot->function, hot->index, &block);
    return block;
}

static void write_block(struct output *output, const struct profile *profile,
                        const struct cairn_block *block, int range_width)
{
    char range[NUMBER_BYTES];
    struct cairn_block_function function = {0};
    cairn_block_table_function(profile->table, block->function, &function);
    format_range(range, block);
    output_format(output, "%-*s  %6u  ", range_width, range, block->size);
    write_function_name(output, profile, block->function_address);
    output_format(output, " block %u", block->id);
    if (function.range_count > 1)
        output_format(output, " of range %u", block->range);
    write_block_words(output, ": ", block->flags);
    if ((function.features & CAIRN_BBMAP_FREQUENCIES) != 0)
        output_format(output, " (frequency %llu)", (unsigned long long)block->frequency);
    struct cairn_block_details details = {0};
    (void)cairn_block_table_details(profile->table, block->function, block->index, &details);
    if ((function.features & CAIRN_BBMAP_POST_LINK) != 0)
        output_format(output, " (after linking %llu)",
                      (unsigned long long)details.post_link_frequency);
    output_character(output, '\n');
}

static int widest_range(const struct profile *profile, const struct ranking *ranking, size_t shown)
{
    char range[NUMBER_BYTES];
    int widest = 0;
    for (size_t i = 0; i < shown; i++) {
        struct cairn_block block = find_block(profile, &ranking->blocks[i]);
        int width = format_range(range, &block);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void write_blocks(struct output *output, const struct profile *profile,
                         const struct ranking *ranking, size_t limit)
{
    size_t shown = ranking->block_count < limit ? ranking->block_count : limit;
    int range_width = widest_range(profile, ranking, shown);
    uint64_t sum = 0;
    write_heading(output, "hottest blocks", shown, ranking->block_count);
    output_format(output, "      share        sum      samples  %-*s   bytes  block\n", range_width,
                  "addresses");
    for (size_t i = 0; i < shown; i++) {
        struct cairn_block block = find_block(profile, &ranking->blocks[i]);
        sum += ranking->blocks[i].samples;
        write_share(output, profile, ranking->blocks[i].samples, sum);
        write_block(output, profile, &block, range_width);
    }
}

void write_profile_text(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit)
{
    write_totals(output, profile);
    if (ranking->block_count == 0)
        return;
    write_functions(output, profile, ranking, limit);
    write_blocks(output, profile, ranking, limit);
}
