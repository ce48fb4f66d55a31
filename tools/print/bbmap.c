/*
 * cairn bbmap: all basic-block address maps of a file.
 *
 * Functions are written as soon as they are read, because a map of a large program has millions of
 * blocks. If a function is invalid, those before it have been written, and the other sections
 * follow.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/blocks.h"

#include <cairn/bbmap.h>
#include <string.h>

static const char help[] =
    "usage: cairn bbmap [--json] [--debug-file PATH] FILE\n"
    "\n"
    "Prints the basic-block address maps of an ELF object, executable, shared library or archive:\n"
    "each function with its blocks, and for each block its ID, address, size and flags. clang\n"
    "writes the maps with -fbasic-block-sections=labels (14 to 18) or -fbasic-block-address-map\n"
    "(19 and later). Maps of versions 1 to 5 and maps without a version are read.\n"
    "If FILE is '-', standard input is read.\n"
    "\n"
    "  --json    print an array of functions\n"
    "              function:  {address, symbol, ranges}; with a profile also entry_count\n"
    "              range:     {base, blocks}; if the map lists no blocks, also\n"
    "                         omitted_block_count\n"
    "              block:     {id, offset, size, has_return, has_tail_call, is_eh_pad,\n"
    "                         can_fall_through, has_indirect_branch}; if the map has them,\n"
    "                         also callsite_end_offsets (bytes from the start of the block to\n"
    "                         the end of each call), hash, frequency, post_link_frequency (in\n"
    "                         the linked program), successors\n"
    "              successor: {id, probability} in units of 2^-31; if the map has it, also\n"
    "                         post_link_frequency\n"
    "            Integers above 2^53 - 1 are strings of decimal digits.\n" FILE_HELP;

/* ---- Text ---- */

static void write_profile(struct output *output, const struct cairn_bbmap_function *function,
                          const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_successor successor = {0};
    unsigned features = function->features;
    bool has_post_link = (features & CAIRN_BBMAP_POST_LINK) != 0;
    const char *prefix = ", then";
    if ((features & CAIRN_BBMAP_FREQUENCIES) != 0)
        output_format(output, ", frequency %ju", block->frequency);
    if (has_post_link && (features & (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES)) != 0)
        output_format(output, ", after linking %ju", block->post_link_frequency);
    while (cairn_bbmap_next_successor(function, block, &successor)) {
        output_format(output, "%s %u (%.1f %%", prefix, successor.id,
                      successor.probability * 100.0 / 2147483648.0);
        if (has_post_link)
            output_format(output, ", after linking %ju", successor.post_link_frequency);
        output_character(output, ')');
        prefix = " or";
    }
}

static void write_block_text(struct output *output, const struct cairn_bbmap_function *function,
                             const struct cairn_bbmap_block *block)
{
    struct cairn_bbmap_callsite callsite = {0};
    const char *prefix = ", calls return to";
    uint64_t address = block->base + block->offset;
    output_format(output, "  block " NUMBER "%u" PLAIN " at 0x%jx, %u byte%s", block->id, address,
                  block->size, plural(block->size));
    write_block_flags(output, ", ", block->flags);
    while (cairn_bbmap_next_callsite(function, block, &callsite)) {
        output_format(output, "%s 0x%jx", prefix, address + callsite.end_offset);
        prefix = " and";
    }
    if ((function->features & CAIRN_BBMAP_HASHES) != 0)
        output_format(output, ", hash 0x%jx", block->hash);
    write_profile(output, function, block);
    output_character(output, '\n');
}

static void write_function_text(struct output *output, const struct cairn_bbmap_function *function,
                                const char *name)
{
    struct cairn_bbmap_block block = {0};
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
    while (cairn_bbmap_next(function, &block)) {
        if (block.range != range)
            output_format(output, "  range at 0x%jx\n", block.base);
        range = block.range;
        write_block_text(output, function, &block);
    }
}

/* ---- JSON. A large program has millions of blocks, whose texts differ in three numbers and five
 * words only. The constant parts between them are copied unchanged. ---- */

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

/* Writes the fields that only some features add. A map has a profile of the linked program only
 * together with one of the other two profiles. */
static void write_features(struct json *json, const struct cairn_bbmap_function *function,
                           const struct cairn_bbmap_block *block)
{
    unsigned features = function->features;
    struct cairn_bbmap_callsite callsite = {0};
    json->needs_comma = true;
    if ((features & CAIRN_BBMAP_CALLSITES) != 0) {
        json_begin_array(json, "callsite_end_offsets");
        while (cairn_bbmap_next_callsite(function, block, &callsite))
            json_unsigned(json, callsite.end_offset);
        json_end_array(json);
    }
    if ((features & CAIRN_BBMAP_HASHES) != 0)
        json_fields(json, "hash %ju", block->hash);
    if ((features & CAIRN_BBMAP_FREQUENCIES) != 0)
        json_fields(json, "frequency %ju", block->frequency);
    if ((features & CAIRN_BBMAP_POST_LINK) != 0 &&
        (features & (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_PROBABILITIES)) != 0)
        json_fields(json, "post_link_frequency %ju", block->post_link_frequency);
    if ((features & CAIRN_BBMAP_PROBABILITIES) == 0)
        return;
    struct cairn_bbmap_successor successor = {0};
    json_begin_array(json, "successors");
    while (cairn_bbmap_next_successor(function, block, &successor)) {
        json_begin_object(json, NULL);
        json_fields(json, "id %u probability %u", successor.id, successor.probability);
        if ((features & CAIRN_BBMAP_POST_LINK) != 0)
            json_fields(json, "post_link_frequency %ju", successor.post_link_frequency);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_block_json(struct json *json, const struct cairn_bbmap_function *function,
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

static void write_function_json(struct json *json, const struct cairn_bbmap_function *function,
                                const char *name)
{
    struct cairn_bbmap_range range = {0};
    struct cairn_bbmap_block block = {0};
    json_line(json, 0);
    json_begin_object(json, NULL);
    json_fields(json, "address %ju symbol %s", function->address, name);
    if ((function->features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
        json_fields(json, "entry_count %ju", function->entry_count);
    json_begin_array(json, "ranges");
    while (cairn_bbmap_next_range(function, &range)) {
        json_begin_object(json, NULL);
        json_fields(json, "base %ju", range.base);
        if ((function->features & CAIRN_BBMAP_OMITTED_BLOCKS) != 0)
            json_fields(json, "omitted_block_count %u", range.omitted_count);
        json_begin_array(json, "blocks");
        for (uint32_t i = 0; i < range.block_count && cairn_bbmap_next(function, &block); i++)
            write_block_json(json, function, &block);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* ---- The command ---- */

static bool print_section(const struct input *input, const struct cairn_object_section *section,
                          void *user)
{
    struct printer *printer = input->printer;
    enum cairn_bbmap_encoding encoding =
        section->type == CAIRN_BBMAP_SECTION_TYPE_V0 ? CAIRN_BBMAP_V0 : CAIRN_BBMAP_VERSIONED;
    struct progress progress;
    struct cairn_error error = {0};
    struct lost_addresses lost = {0};
    struct cairn_bbmap_function function;
    (void)user;
    printer->has_output = true;
    progress_begin(&progress, &printer->output, "bytes", section->contents.size);
    for (size_t offset = 0; offset < section->contents.size; progress_move(&progress, offset)) {
        struct cairn_bbmap_range range = {0};
        if (cairn_bbmap_read(&section->contents, encoding, &offset, &function, &error) != CAIRN_OK)
            break;
        const char *name = NULL;
        while (cairn_bbmap_next_range(&function, &range)) {
            check_address(input->object, section, range.offset, &lost);
            if (range.index == 0)
                name = cairn_object_function(input->object, section, range.offset).name;
        }
        if (printer->is_json)
            write_function_json(&printer->json, &function, name);
        else
            write_function_text(&printer->output, &function, name);
    }
    progress_end(&progress);
    return check_section(input, section, &lost, &error);
}

static bool print_input(const struct input *input, void *user)
{
    return visit_block_maps(input, print_section, user);
}

enum exit_status command_bbmap(int argc, char **argv)
{
    struct command_line line = {.command = "bbmap", .help = help, .operand_limit = 1};
    return print_command(argc, argv, &line, print_input, NULL, NO_BLOCK_MAPS);
}
