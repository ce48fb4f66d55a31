/*
 * cairn profile --json.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/json.h"
#include "tools/profile.h"
#include "tools/words.h"

#include <stdlib.h>

static void write_number(struct json *json, const char *key, uint64_t value)
{
    json_key(json, key);
    json_unsigned(json, value);
}

static void write_flag(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_boolean(json, value);
}

static void write_shares(struct json *json, const struct profile *profile, uint64_t samples,
                         uint64_t sum)
{
    write_number(json, "samples", samples);
    json_key(json, "share");
    json_fraction(json, profile_percent(profile, samples) / 100);
    json_key(json, "cumulative_share");
    json_fraction(json, profile_percent(profile, sum) / 100);
}

static void write_symbol(struct json *json, const struct profile *profile, uint64_t address)
{
    json_key(json, "symbol");
    write_json_name(json, profile_function_name(profile, address));
}

/* ---- Totals ---- */

static void write_base(struct json *json, const struct profile *profile)
{
    json_key(json, "bases");
    json_begin_array(json);
    if (profile->has_base)
        json_unsigned(json, profile->base);
    size_t count = 0;
    uint64_t *bases = profile_bases(profile, &count);
    for (size_t i = 0; bases != NULL && i < count; i++)
        json_unsigned(json, bases[i]);
    free(bases);
    json_end_array(json);
}

static void write_totals(struct json *json, const struct profile *profile)
{
    json_key(json, "file");
    json_string(json, profile->input->name);
    write_base(json, profile);
    write_number(json, "samples", profile->sample_count);
    write_number(json, "in_blocks", profile->block_sample_count);
    write_number(json, "in_other_code", profile->code_sample_count);
    write_number(json, "elsewhere", profile_elsewhere_count(profile));
    write_number(json, "callers", profile->caller_count);
    write_number(json, "unreadable_lines", profile->junk_count);
    json_key(json, "first_unreadable_line");
    if (profile->junk_count > 0)
        json_unsigned(json, profile->first_junk_line);
    else
        json_null(json);
}

/* ---- Ranking ---- */

static void write_function(struct json *json, const struct profile *profile,
                           const struct hot_function *hot, uint64_t sum)
{
    struct cairn_block_function function = {0};
    cairn_block_table_function(profile->table, hot->index, &function);
    json_begin_object(json);
    write_number(json, "address", function.address);
    write_symbol(json, profile, function.address);
    write_shares(json, profile, hot->samples, sum);
    write_number(json, "sampled_block_count", hot->sampled_blocks);
    write_number(json, "block_count", function.block_count);
    if ((function.features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
        write_number(json, "entry_count", function.entry_count);
    json_end_object(json);
}

/* Writes the flags with the names that `cairn bbmap --json` gives them. */
static void write_flags(struct json *json, uint8_t flags)
{
    write_flag(json, "has_return", (flags & CAIRN_BBMAP_HAS_RETURN) != 0);
    write_flag(json, "has_tail_call", (flags & CAIRN_BBMAP_HAS_TAIL_CALL) != 0);
    write_flag(json, "is_eh_pad", (flags & CAIRN_BBMAP_IS_EH_PAD) != 0);
    write_flag(json, "can_fall_through", (flags & CAIRN_BBMAP_CAN_FALL_THROUGH) != 0);
    write_flag(json, "has_indirect_branch", (flags & CAIRN_BBMAP_HAS_INDIRECT_BRANCH) != 0);
}

static void write_block(struct json *json, const struct profile *profile,
                        const struct hot_block *hot, uint64_t sum)
{
    struct cairn_block block = {0};
    struct cairn_block_function function = {0};
    cairn_block_table_block(profile->table, hot->function, hot->index, &block);
    cairn_block_table_function(profile->table, hot->function, &function);
    json_begin_object(json);
    write_number(json, "function", block.function_address);
    write_symbol(json, profile, block.function_address);
    write_number(json, "range", block.range);
    write_number(json, "id", block.id);
    write_number(json, "address", block.address);
    write_number(json, "offset", block.address - block.range_address);
    write_number(json, "size", block.size);
    write_shares(json, profile, hot->samples, sum);
    write_flags(json, block.flags);
    if ((function.features & CAIRN_BBMAP_FREQUENCIES) != 0)
        write_number(json, "frequency", block.frequency);
    struct cairn_block_details details = {0};
    (void)cairn_block_table_details(profile->table, hot->function, hot->index, &details);
    if ((function.features & CAIRN_BBMAP_POST_LINK) != 0)
        write_number(json, "post_link_frequency", details.post_link_frequency);
    if ((function.features & CAIRN_BBMAP_HASHES) != 0)
        write_number(json, "hash", details.hash);
    json_end_object(json);
}

static void write_functions(struct json *json, const struct profile *profile,
                            const struct ranking *ranking, size_t limit)
{
    uint64_t sum = 0;
    json_key(json, "functions");
    json_begin_array(json);
    for (size_t i = 0; i < ranking->function_count && i < limit; i++) {
        sum += ranking->functions[i].samples;
        json_line(json, 2);
        write_function(json, profile, &ranking->functions[i], sum);
    }
    json_end_array(json);
}

static void write_blocks(struct json *json, const struct profile *profile,
                         const struct ranking *ranking, size_t limit)
{
    uint64_t sum = 0;
    json_key(json, "blocks");
    json_begin_array(json);
    for (size_t i = 0; i < ranking->block_count && i < limit; i++) {
        sum += ranking->blocks[i].samples;
        json_line(json, 2);
        write_block(json, profile, &ranking->blocks[i], sum);
    }
    json_end_array(json);
}

void write_profile_json(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit)
{
    struct json json = {.output = output};
    json_begin_object(&json);
    write_totals(&json, profile);
    json_line(&json, 1);
    write_functions(&json, profile, ranking, limit);
    json_line(&json, 1);
    write_blocks(&json, profile, ranking, limit);
    json_end_object(&json);
    output_character(output, '\n');
}
