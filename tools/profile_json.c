/*
 * cairn profile --json.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile.h"

#include <stdlib.h>

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

static void write_function(struct json *json, const struct profile *profile,
                           const struct hot_function *hot, uint64_t sum)
{
    struct cairn_block_function function = {0};
    cairn_block_table_function(profile->table, hot->index, &function);
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

static void write_block(struct json *json, const struct profile *profile,
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

void write_profile_json(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit)
{
    struct json json = {.output = output};
    uint64_t sum = 0;
    json_begin_object(&json, NULL);
    write_totals(&json, profile);
    json_line(&json, 1);
    json_begin_array(&json, "functions");
    for (size_t i = 0; i < ranking->function_count && i < limit; i++) {
        sum += ranking->functions[i].samples;
        json_line(&json, 2);
        write_function(&json, profile, &ranking->functions[i], sum);
    }
    json_end_array(&json);
    json_line(&json, 1);
    json_begin_array(&json, "blocks");
    sum = 0;
    for (size_t i = 0; i < ranking->block_count && i < limit; i++) {
        sum += ranking->blocks[i].samples;
        json_line(&json, 2);
        write_block(&json, profile, &ranking->blocks[i], sum);
    }
    json_end_array(&json);
    json_end_object(&json);
    output_character(output, '\n');
}
