/*
 * cairn bbmap --json. A large program has millions of blocks, whose texts differ in three numbers
 * and five words only. The constant parts between them are copied unchanged.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/bbmap.h"

#include <string.h>

/* The text of a flag that is clear or set. All 32 bytes are copied at once, and `size` of them
 * count. */
struct flag_text {
    char text[32];
    uint8_t size;
};

/* Indexed by bit. */
static const struct flag_text flag_texts[][2] = {
    {{",\"has_return\":false", 19}, {",\"has_return\":true", 18}},
    {{",\"has_tail_call\":false", 22}, {",\"has_tail_call\":true", 21}},
    {{",\"is_eh_pad\":false", 18}, {",\"is_eh_pad\":true", 17}},
    {{",\"can_fall_through\":false", 25}, {",\"can_fall_through\":true", 24}},
    {{",\"has_indirect_branch\":false", 28}, {",\"has_indirect_branch\":true", 27}},
};
enum { FLAG_COUNT = sizeof flag_texts / sizeof *flag_texts };
_Static_assert(1 << (FLAG_COUNT - 1) == CAIRN_BBMAP_HAS_INDIRECT_BRANCH, "one for each flag");

/* Space for a block without its profile: the texts, and three numbers of up to 10 digits. */
enum { BLOCK_TEXT_MAX = 256 };

/* Features that add something to each block. */
enum {
    BLOCK_FEATURES = CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES | CAIRN_BBMAP_CALLSITES |
                     CAIRN_BBMAP_HASHES
};

static void write_successors(struct json *json, const struct cairn_bbmap_function *function,
                             const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_successor successor;
    json_begin_array(json, "successors");
    for (bool more = cairn_bbmap_first_successor(function, block, &successor); more;
         more = cairn_bbmap_next_successor(function, &successor)) {
        json_begin_object(json, NULL);
        json_fields(json, "id %u probability %u", successor.id, successor.probability);
        if ((function->features & CAIRN_BBMAP_POST_LINK) != 0)
            json_fields(json, "post_link_frequency %ju", successor.post_link_frequency);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_callsites(struct json *json, const struct cairn_bbmap_function *function,
                            const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_callsite callsite;
    json_begin_array(json, "callsite_end_offsets");
    for (bool more = cairn_bbmap_first_callsite(function, block, &callsite); more;
         more = cairn_bbmap_next_callsite(function, &callsite))
        json_unsigned(json, callsite.end_offset);
    json_end_array(json);
}

/* Writes the fields that only some features add. A map has a profile of the linked program only
 * together with one of the other two profiles. */
static void write_features(struct json *json, const struct cairn_bbmap_function *function,
                           const struct cairn_bbmap_block *block)
{
    unsigned features = function->features;
    json->needs_comma = true;
    if ((features & CAIRN_BBMAP_CALLSITES) != 0)
        write_callsites(json, function, block);
    if ((features & CAIRN_BBMAP_HASHES) != 0)
        json_fields(json, "hash %ju", block->hash);
    if ((features & CAIRN_BBMAP_FREQUENCIES) != 0)
        json_fields(json, "frequency %ju", block->frequency);
    if ((features & CAIRN_BBMAP_POST_LINK) != 0 &&
        (features & (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES)) != 0)
        json_fields(json, "post_link_frequency %ju", block->post_link_frequency);
    if ((features & CAIRN_BBMAP_PROBABILITIES) != 0)
        write_successors(json, function, block);
}

static void write_block(struct json *json, const struct cairn_bbmap_function *function,
                        const struct cairn_bbmap_block *block)
{
    char *text = output_space(json->output, BLOCK_TEXT_MAX);
    char *at = stpcpy(text, json->needs_comma ? ",{\"id\":" : "{\"id\":");
    at = put_digits(at, block->id);
    at = stpcpy(at, ",\"offset\":");
    at = put_digits(at, block->offset);
    at = stpcpy(at, ",\"size\":");
    at = put_digits(at, block->size);
    for (unsigned i = 0; i < FLAG_COUNT; i++) {
        const struct flag_text *flag = &flag_texts[i][block->flags >> i & 1];
        memcpy(at, flag->text, sizeof flag->text);
        at += flag->size;
    }
    output_taken(json->output, at);
    if ((function->features & BLOCK_FEATURES) != 0)
        write_features(json, function, block);
    json_end_object(json);
}

void write_bbmap_json(struct json *json, const struct cairn_bbmap_function *function,
                      const char *name)
{
    struct cairn_bbmap_range range;
    struct cairn_bbmap_block block;
    json_line(json, 0);
    json_begin_object(json, NULL);
    json_fields(json, "address %ju symbol %s", function->address, name);
    if ((function->features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
        json_fields(json, "entry_count %ju", function->entry_count);
    json_begin_array(json, "ranges");
    (void)cairn_bbmap_first(function, &block);
    cairn_bbmap_first_range(function, &range);
    do {
        json_begin_object(json, NULL);
        json_fields(json, "base %ju", range.base);
        if ((function->features & CAIRN_BBMAP_OMITTED_BLOCKS) != 0)
            json_fields(json, "omitted_block_count %u", range.omitted_count);
        json_begin_array(json, "blocks");
        for (uint32_t i = 0; i < range.block_count; i++) {
            write_block(json, function, &block);
            (void)cairn_bbmap_next(function, &block);
        }
        json_end_array(json);
        json_end_object(json);
    } while (cairn_bbmap_next_range(function, &range));
    json_end_array(json);
    json_end_object(json);
}
