/*
 * cairn bbmap --json. A large program has millions of blocks, each of which is the same text but
 * for three numbers and five words: so what lies between is copied as it stands.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/bbmap.h"

#include "tools/words.h"

#include <string.h>

/* A flag's text, as it is and as it is not. Each is copied with all its bytes, because that many
 * are copied at once, and counts as many as it has. */
struct flag_text {
    char text[32];
    uint8_t size;
};

/* By bit. */
static const struct flag_text flag_texts[][2] = {
    {{",\"has_return\":false", 19}, {",\"has_return\":true", 18}},
    {{",\"has_tail_call\":false", 22}, {",\"has_tail_call\":true", 21}},
    {{",\"is_eh_pad\":false", 18}, {",\"is_eh_pad\":true", 17}},
    {{",\"can_fall_through\":false", 25}, {",\"can_fall_through\":true", 24}},
    {{",\"has_indirect_branch\":false", 28}, {",\"has_indirect_branch\":true", 27}},
};
enum { FLAG_COUNT = sizeof flag_texts / sizeof *flag_texts };
_Static_assert(1 << (FLAG_COUNT - 1) == CAIRN_BBMAP_HAS_INDIRECT_BRANCH, "one for each flag");

/* Room for a block without its profile: the texts, and three numbers of 10 digits. */
enum { BLOCK_TEXT_MAX = 256 };

static char *put_flags(char *at, uint8_t flags)
{
    for (unsigned i = 0; i < FLAG_COUNT; i++) {
        const struct flag_text *text = &flag_texts[i][flags >> i & 1];
        memcpy(at, text->text, sizeof text->text);
        at += text->size;
    }
    return at;
}

static void write_successors(struct json *json, const struct cairn_bbmap_function *function,
                             const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_successor successor;
    json_key(json, "successors");
    json_begin_array(json);
    for (uint64_t i = 0; cairn_bbmap_successor(function, block, i, &successor); i++) {
        json_begin_object(json);
        json_key(json, "id");
        json_unsigned(json, successor.id);
        json_key(json, "probability");
        json_unsigned(json, successor.probability);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_profile(struct json *json, const struct cairn_bbmap_function *function,
                          const struct cairn_bbmap_block *block)
{
    json->needs_comma = true;
    if ((function->features & CAIRN_BBMAP_FREQUENCIES) != 0) {
        json_key(json, "frequency");
        json_unsigned(json, block->frequency);
    }
    if ((function->features & CAIRN_BBMAP_PROBABILITIES) != 0)
        write_successors(json, function, block);
}

static void write_block(struct json *json, const struct cairn_bbmap_function *function,
                        const struct cairn_bbmap_block *block)
{
    char *text = output_room(json->output, BLOCK_TEXT_MAX);
    char *at = stpcpy(text, json->needs_comma ? ",{\"id\":" : "{\"id\":");
    at = put_digits(at, block->id);
    at = stpcpy(at, ",\"offset\":");
    at = put_digits(at, block->offset);
    at = stpcpy(at, ",\"size\":");
    at = put_digits(at, block->size);
    at = put_flags(at, block->flags);
    output_taken(json->output, at);
    if (function->features & (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES))
        write_profile(json, function, block);
    json_end_object(json);
}

/* `*block` is the range's first one, and moves on to what follows. */
static void write_range(struct json *json, const struct cairn_bbmap_function *function,
                        const struct cairn_bbmap_range *range, struct cairn_bbmap_block *block)
{
    json_begin_object(json);
    json_key(json, "base");
    json_unsigned(json, range->base);
    json_key(json, "blocks");
    json_begin_array(json);
    for (uint32_t i = 0; i < range->block_count; i++) {
        write_block(json, function, block);
        (void)cairn_bbmap_next(function, block);
    }
    json_end_array(json);
    json_end_object(json);
}

void write_bbmap_json(struct json *json, const struct cairn_bbmap_function *function,
                      const char *name)
{
    struct cairn_bbmap_range range;
    struct cairn_bbmap_block block;
    json_line(json, 0);
    json_begin_object(json);
    json_key(json, "address");
    json_unsigned(json, function->address);
    json_key(json, "symbol");
    write_json_name(json, name);
    if ((function->features & CAIRN_BBMAP_ENTRY_COUNT) != 0) {
        json_key(json, "entry_count");
        json_unsigned(json, function->entry_count);
    }
    json_key(json, "ranges");
    json_begin_array(json);
    (void)cairn_bbmap_first(function, &block);
    cairn_bbmap_first_range(function, &range);
    do {
        write_range(json, function, &range, &block);
    } while (cairn_bbmap_next_range(function, &range));
    json_end_array(json);
    json_end_object(json);
}
