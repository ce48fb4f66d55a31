/*
 * cairn bbmap, as text: functions, and the blocks of each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/bbmap.h"

static void write_flags(struct output *output, uint8_t flags)
{
    static const struct {
        enum cairn_bbmap_flag flag;
        const char *text;
    } texts[] = {
        {CAIRN_BBMAP_IS_EH_PAD, ", landing pad"},
        {CAIRN_BBMAP_CAN_FALL_THROUGH, ", can fall through"},
        {CAIRN_BBMAP_HAS_INDIRECT_BRANCH, ", indirect branch"},
        {CAIRN_BBMAP_HAS_TAIL_CALL, ", tail call"},
        {CAIRN_BBMAP_HAS_RETURN, ", return"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if ((flags & texts[i].flag) != 0)
            output_text(output, texts[i].text);
}

static void write_profile(struct output *output, const struct cairn_bbmap_function *function,
                          const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_successor successor;
    unsigned features = function->features;
    bool has_post_link = (features & CAIRN_BBMAP_POST_LINK) != 0;
    const char *prefix = ", then";
    if ((features & CAIRN_BBMAP_FREQUENCIES) != 0)
        output_format(output, ", frequency %ju", block->frequency);
    if (has_post_link && (features & (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES)) != 0)
        output_format(output, ", after linking %ju", block->post_link_frequency);
    for (bool more = cairn_bbmap_first_successor(function, block, &successor); more;
         more = cairn_bbmap_next_successor(function, &successor)) {
        output_format(output, "%s %u (%.1f %%", prefix, successor.id,
                      successor.probability * 100.0 / 2147483648.0);
        if (has_post_link)
            output_format(output, ", after linking %ju", successor.post_link_frequency);
        output_character(output, ')');
        prefix = " or";
    }
}

static void write_block(struct output *output, const struct cairn_bbmap_function *function,
                        const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_callsite callsite;
    const char *prefix = ", calls return to";
    uint64_t address = block->base + block->offset;
    output_format(output, "  block " NUMBER "%u" PLAIN " at 0x%jx, %u byte%s", block->id, address,
                  block->size, plural(block->size));
    write_flags(output, block->flags);
    for (bool more = cairn_bbmap_first_callsite(function, block, &callsite); more;
         more = cairn_bbmap_next_callsite(function, &callsite)) {
        output_format(output, "%s 0x%jx", prefix, address + callsite.end_offset);
        prefix = " and";
    }
    if ((function->features & CAIRN_BBMAP_HASHES) != 0)
        output_format(output, ", hash 0x%jx", block->hash);
    write_profile(output, function, block);
    output_character(output, '\n');
}

void write_bbmap_text(struct output *output, const struct cairn_bbmap_function *function,
                      const char *name)
{
    struct cairn_bbmap_block block;
    uint32_t range = 0;
    uint64_t count = function->block_count + function->omitted_count;
    bool omits = (function->features & CAIRN_BBMAP_OMITTED_BLOCKS) != 0;
    output_format(output, "function " NAME "%s" PLAIN " at 0x%jx, %ju block%s%s", name,
                  function->address, count, plural(count),
                  omits ? " that the map does not list" : "");
    if (function->range_count > 1)
        output_format(output, " in %u ranges", function->range_count);
    if ((function->features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
        output_format(output, ", entered %ju time%s", function->entry_count,
                      plural(function->entry_count));
    output_character(output, '\n');
    for (bool more = cairn_bbmap_first(function, &block); more;
         more = cairn_bbmap_next(function, &block)) {
        if (block.range != range)
            output_format(output, "  range at 0x%jx\n", block.base);
        range = block.range;
        write_block(output, function, &block);
    }
}
