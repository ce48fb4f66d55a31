/*
 * cairn profile, as text and JSON: where the samples are, the hottest functions, and the hottest
 * blocks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Text ---- */

static void write_part(struct output *output, const struct profile *profile, uint64_t samples,
                       const char *where)
{
    if (samples > 0)
        output_format(output, "  %7.2f %%  %11ju  %s\n", profile_percent(profile, samples), samples,
                      where);
}

static void write_heading(struct output *output, const char *what, size_t shown, size_t count)
{
    output_format(output, "\n" HEADING "%s" PLAIN, what);
    if (shown < count)
        output_format(output, ", %zu of %zu", shown, count);
    output_character(output, '\n');
}

/* Writes the first columns of both tables: share, cumulative share, and samples. */
static void write_share(struct output *output, const struct profile *profile, uint64_t samples,
                        uint64_t sum)
{
    output_format(output, "  " NUMBER "%7.2f %%" PLAIN "  %7.2f %%  %11ju  ",
                  profile_percent(profile, samples), profile_percent(profile, sum), samples);
}

static void write_functions(struct output *output, const struct profile *profile,
                            const struct ranking *ranking, size_t limit)
{
    size_t shown = ranking->function_count < limit ? ranking->function_count : limit;
    uint64_t sum = 0;
    write_heading(output, "hottest functions", shown, ranking->function_count);
    output_text(output, "      share        sum      samples  function\n");
    for (size_t i = 0; i < shown; i++) {
        const struct hot_function *hot = &ranking->functions[i];
        struct cairn_block_function function = {0};
        cairn_block_table_function(profile->table, hot->index, &function);
        sum += hot->samples;
        write_share(output, profile, hot->samples, sum);
        output_format(output, NAME "%s" PLAIN " at 0x%jx, %u of %u block%s",
                      profile_function_name(profile, function.address), function.address,
                      hot->sampled_blocks, function.block_count, plural(function.block_count));
        if ((function.features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
            output_format(output, ", entry count %ju", function.entry_count);
        output_character(output, '\n');
    }
}

enum { RANGE_BYTES = 48 };

/* Finds the block, and formats it as "0x401136-0x401150", with the address after its last byte as
 * the end. Returns the length of the text. */
static int format_block(const struct profile *profile, const struct hot_block *hot,
                        struct cairn_block *block, char text[RANGE_BYTES])
{
    *block = (struct cairn_block){0};
    cairn_block_table_block(profile->table, hot->function, hot->index, block);
    return snprintf(text, RANGE_BYTES, "0x%llx-0x%llx", (unsigned long long)block->address,
                    (unsigned long long)block->address + block->size);
}

static void write_blocks(struct output *output, const struct profile *profile,
                         const struct ranking *ranking, size_t limit)
{
    size_t shown = ranking->block_count < limit ? ranking->block_count : limit;
    uint64_t sum = 0;
    char range[RANGE_BYTES];
    struct cairn_block block;
    int width = 0;
    for (size_t i = 0; i < shown; i++) {
        int length = format_block(profile, &ranking->blocks[i], &block, range);
        width = length > width ? length : width;
    }
    write_heading(output, "hottest blocks", shown, ranking->block_count);
    output_format(output, "      share        sum      samples  %-*s   bytes  block\n", width,
                  "addresses");
    for (size_t i = 0; i < shown; i++) {
        format_block(profile, &ranking->blocks[i], &block, range);
        sum += ranking->blocks[i].samples;
        write_share(output, profile, ranking->blocks[i].samples, sum);
        output_format(output, "%-*s", width, range);
        struct cairn_block_function function = {0};
        struct cairn_block_details details = {0};
        cairn_block_table_function(profile->table, block.function, &function);
        (void)cairn_block_table_details(profile->table, block.function, block.index, &details);
        output_format(output, "  %6u  " NAME "%s" PLAIN " block %u", block.size,
                      profile_function_name(profile, block.function_address), block.id);
        if (function.range_count > 1)
            output_format(output, " of range %u", block.range);
        write_block_flags(output, ": ", profile_block_flags(&block));
        if ((function.features & CAIRN_BBMAP_FREQUENCIES) != 0)
            output_format(output, " (frequency %ju)", block.frequency);
        if ((function.features & CAIRN_BBMAP_POST_LINK) != 0)
            output_format(output, " (after linking %ju)", details.post_link_frequency);
        output_character(output, '\n');
    }
}

void write_profile_text(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit)
{
    output_format(output, HEADING "%ju sample%s" PLAIN " of %s\n", profile->sample_count,
                  plural(profile->sample_count), profile->input->name);
    write_part(output, profile, profile->block_sample_count, "in basic blocks");
    write_part(output, profile, profile->code_sample_count,
               "in code without a basic-block address map");
    write_part(output, profile, profile_elsewhere_count(profile), "elsewhere");
    if (ranking->block_count == 0)
        return;
    write_functions(output, profile, ranking, limit);
    write_blocks(output, profile, ranking, limit);
}

/* ---- JSON ---- */

static void write_shares(struct json *json, const struct profile *profile, uint64_t samples,
                         uint64_t sum)
{
    json_fields(json, "samples %ju share %f cumulative_share %f", samples,
                profile_percent(profile, samples) / 100, profile_percent(profile, sum) / 100);
}

static void write_totals(struct json *json, const struct profile *profile)
{
    size_t count = 0;
    uint64_t *bases = profile_bases(profile, &count);
    json_fields(json, "file %s", profile->input->name);
    json_begin_array(json, "bases");
    if (profile->has_base)
        json_unsigned(json, profile->base);
    for (size_t i = 0; bases != NULL && i < count; i++)
        json_unsigned(json, bases[i]);
    free(bases);
    json_end_array(json);
    json_fields(json, "samples %ju in_blocks %ju in_other_code %ju elsewhere %ju",
                profile->sample_count, profile->block_sample_count, profile->code_sample_count,
                profile_elsewhere_count(profile));
    json_fields(json, "callers %ju unreadable_lines %ju", profile->caller_count,
                profile->junk_count);
    json_optional(json, "first_unreadable_line", profile->junk_count > 0, profile->first_junk_line);
}

static void write_block_json(struct json *json, const struct profile *profile,
                             const struct hot_block *hot, uint64_t sum)
{
    struct cairn_block block = {0};
    struct cairn_block_function function = {0};
    struct cairn_block_details details = {0};
    cairn_block_table_block(profile->table, hot->function, hot->index, &block);
    cairn_block_table_function(profile->table, hot->function, &function);
    (void)cairn_block_table_details(profile->table, hot->function, hot->index, &details);
    json_begin_object(json, NULL);
    json_fields(json, "function %ju symbol %s range %u id %u address %ju offset %ju size %u",
                block.function_address, profile_function_name(profile, block.function_address),
                block.range, block.id, block.address, block.address - block.range_address,
                block.size);
    write_shares(json, profile, hot->samples, sum);
    write_json_block_flags(json, block.flags);
    if ((function.features & CAIRN_BBMAP_FREQUENCIES) != 0)
        json_fields(json, "frequency %ju", block.frequency);
    if ((function.features & CAIRN_BBMAP_POST_LINK) != 0)
        json_fields(json, "post_link_frequency %ju", details.post_link_frequency);
    if ((function.features & CAIRN_BBMAP_HASHES) != 0)
        json_fields(json, "hash %ju", details.hash);
    json_end_object(json);
}

void write_profile_json(struct json *json, const struct profile *profile,
                        const struct ranking *ranking, size_t limit)
{
    uint64_t sum = 0;
    json_begin_object(json, NULL);
    write_totals(json, profile);
    json_line(json, 1);
    json_begin_array(json, "functions");
    for (size_t i = 0; i < ranking->function_count && i < limit; i++) {
        const struct hot_function *hot = &ranking->functions[i];
        struct cairn_block_function function = {0};
        cairn_block_table_function(profile->table, hot->index, &function);
        sum += hot->samples;
        json_line(json, 2);
        json_begin_object(json, NULL);
        json_fields(json, "address %ju symbol %s", function.address,
                    profile_function_name(profile, function.address));
        write_shares(json, profile, hot->samples, sum);
        json_fields(json, "sampled_block_count %u block_count %u", hot->sampled_blocks,
                    function.block_count);
        if ((function.features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
            json_fields(json, "entry_count %ju", function.entry_count);
        json_end_object(json);
    }
    json_end_array(json);
    json_line(json, 1);
    json_begin_array(json, "blocks");
    sum = 0;
    for (size_t i = 0; i < ranking->block_count && i < limit; i++) {
        sum += ranking->blocks[i].samples;
        json_line(json, 2);
        write_block_json(json, profile, &ranking->blocks[i], sum);
    }
    json_end_array(json);
    json_end_object(json);
    output_character(json->output, '\n');
}
