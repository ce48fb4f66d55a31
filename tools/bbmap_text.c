/*
 * cairn bbmap, as text: functions, and the blocks of each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/bbmap.h"

#include "tools/words.h"

static void write_heading(struct output *output, const struct cairn_bbmap_function *function,
                          const char *name)
{
    output_text(output, "function ");
    write_name(output, name);
    output_text(output, " at ");
    output_hexadecimal(output, function->address);
    output_text(output, ", ");
    write_count(output, function->block_count + function->omitted_count, "block", "blocks");
    if ((function->features & CAIRN_BBMAP_OMITTED_BLOCKS) != 0)
        output_text(output, " that the map does not list");
    if (function->range_count > 1) {
        output_text(output, " in ");
        write_count(output, function->range_count, "range", "ranges");
    }
    if ((function->features & CAIRN_BBMAP_ENTRY_COUNT) != 0) {
        output_text(output, ", entered ");
        write_count(output, function->entry_count, "time", "times");
    }
    output_character(output, '\n');
}

static void write_flags(struct output *output, uint8_t flags)
{
    static const struct {
        enum cairn_bbmap_flag flag;
        const char *words;
    } words[] = {
        {CAIRN_BBMAP_IS_EH_PAD, "landing pad"},
        {CAIRN_BBMAP_CAN_FALL_THROUGH, "can fall through"},
        {CAIRN_BBMAP_HAS_INDIRECT_BRANCH, "indirect branch"},
        {CAIRN_BBMAP_HAS_TAIL_CALL, "tail call"},
        {CAIRN_BBMAP_HAS_RETURN, "return"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((flags & words[i].flag) == 0)
            continue;
        output_text(output, ", ");
        output_text(output, words[i].words);
    }
}

static void write_number(struct output *output, const char *prefix, uint64_t number)
{
    output_text(output, prefix);
    output_unsigned(output, number);
}

static bool function_has_profile(const struct cairn_bbmap_function *function)
{
    return (function->features & (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES)) != 0;
}

static void write_profile(struct output *output, const struct cairn_bbmap_function *function,
                          const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_successor successor;
    bool has_post_link = (function->features & CAIRN_BBMAP_POST_LINK) != 0;
    const char *prefix = ", then ";
    if ((function->features & CAIRN_BBMAP_FREQUENCIES) != 0)
        write_number(output, ", frequency ", block->frequency);
    if (has_post_link && function_has_profile(function))
        write_number(output, ", after linking ", block->post_link_frequency);
    for (bool more = cairn_bbmap_first_successor(function, block, &successor); more;
         more = cairn_bbmap_next_successor(function, &successor)) {
        write_number(output, prefix, successor.id);
        output_format(output, " (%.1f %%", successor.probability * 100.0 / 2147483648.0);
        if (has_post_link)
            write_number(output, ", after linking ", successor.post_link_frequency);
        output_character(output, ')');
        prefix = " or ";
    }
}

static void write_callsites(struct output *output, const struct cairn_bbmap_function *function,
                            const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_callsite callsite;
    const char *prefix = ", calls return to ";
    for (bool more = cairn_bbmap_first_callsite(function, block, &callsite); more;
         more = cairn_bbmap_next_callsite(function, &callsite)) {
        output_text(output, prefix);
        output_hexadecimal(output, block->base + block->offset + callsite.end_offset);
        prefix = " and ";
    }
}

static void write_block(struct output *output, const struct cairn_bbmap_function *function,
                        const struct cairn_bbmap_block *block)
{
    output_text(output, "  block ");
    output_style(output, STYLE_NUMBER);
    output_unsigned(output, block->id);
    output_style(output, STYLE_PLAIN);
    output_text(output, " at ");
    output_hexadecimal(output, block->base + block->offset);
    output_text(output, ", ");
    write_count(output, block->size, "byte", "bytes");
    write_flags(output, block->flags);
    write_callsites(output, function, block);
    if ((function->features & CAIRN_BBMAP_HASHES) != 0) {
        output_text(output, ", hash ");
        output_hexadecimal(output, block->hash);
    }
    write_profile(output, function, block);
    output_character(output, '\n');
}

void write_bbmap_text(struct output *output, const struct cairn_bbmap_function *function,
                      const char *name)
{
    struct cairn_bbmap_block block;
    uint32_t range = 0;
    write_heading(output, function, name);
    for (bool more = cairn_bbmap_first(function, &block); more;
         more = cairn_bbmap_next(function, &block)) {
        if (block.range != range) {
            output_text(output, "  range at ");
            output_hexadecimal(output, block.base);
            output_character(output, '\n');
            range = block.range;
        }
        write_block(output, function, &block);
    }
}
