/*
 * cairn bbmap --json. A large program has millions of blocks, each of which is the same text but
 * for three numbers and five words: so what lies between is copied as it stands.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/bbmap.h"

#include <string.h>

/* What stands behind a block's size, for each set of flags. */
#define YES(name) ",\"" name "\":true"
#define NO(name) ",\"" name "\":false"
#define RETURN "has_return"
#define TAIL_CALL "has_tail_call"
#define EH_PAD "is_eh_pad"
#define FALL_THROUGH "can_fall_through"
#define INDIRECT "has_indirect_branch"
#define TWO(rest) NO(RETURN) rest, YES(RETURN) rest
#define FOUR(rest) TWO(NO(TAIL_CALL) rest), TWO(YES(TAIL_CALL) rest)
#define EIGHT(rest) FOUR(NO(EH_PAD) rest), FOUR(YES(EH_PAD) rest)
#define SIXTEEN(rest) EIGHT(NO(FALL_THROUGH) rest), EIGHT(YES(FALL_THROUGH) rest)

static const char *const flag_texts[] = {SIXTEEN(NO(INDIRECT)), SIXTEEN(YES(INDIRECT))};
_Static_assert(sizeof flag_texts / sizeof *flag_texts == 2 * CAIRN_BBMAP_HAS_INDIRECT_BRANCH,
               "a text for each set of flags");

/* Room for a block without its profile: the texts, and three numbers of 10 digits. */
enum { BLOCK_TEXT_MAX = 256 };

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
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
    char *at = put_text(text, json->needs_comma ? ",{\"id\":" : "{\"id\":");
    at = put_digits(at, block->id);
    at = put_text(at, ",\"offset\":");
    at = put_digits(at, block->offset);
    at = put_text(at, ",\"size\":");
    at = put_digits(at, block->size);
    at = put_text(at, flag_texts[block->flags]);
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
    if (name != NULL)
        json_string(json, name);
    else
        json_null(json);
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
