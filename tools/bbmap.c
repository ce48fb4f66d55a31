/*
 * cairn bbmap: all basic-block address maps of a file.
 *
 * Functions are written as soon as they are read, because a map of a large program has millions of
 * blocks. If a function is invalid, those before it have been written, and the other sections
 * follow.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/bbmap.h"

#include "tools/command.h"
#include "tools/files.h"
#include "tools/options.h"
#include "tools/progress.h"

#include <unistd.h>

static const char help[] =
    "usage: cairn bbmap [--json] [--debug-file FILE] FILE\n"
    "\n"
    "Prints the basic-block address maps of an ELF object, executable, shared library or archive:\n"
    "functions, and under each its blocks with ID, address, size and what ends them. clang writes\n"
    "the maps with -fbasic-block-sections=labels (14 to 18) or -fbasic-block-address-map (19 and\n"
    "later); versions 1 to 5 and maps without a version are read.\n"
    "FILE - is standard input.\n"
    "\n"
    "  --json    for machines: an array of functions\n"
    "              {address, symbol, ranges}, with a profile also entry_count\n"
    "            ranges:     {base, blocks}, where the map lists no blocks also\n"
    "                        omitted_block_count\n"
    "            blocks:     {id, offset, size, has_return, has_tail_call, is_eh_pad,\n"
    "                         can_fall_through, has_indirect_branch},\n"
    "                        where the map has them also callsite_end_offsets (bytes from the\n"
    "                        block's begin to the end of each call), hash, frequency,\n"
    "                        post_link_frequency (of the linked program), successors\n"
    "            successors: {id, probability}, in units of 2^-31, where the map has it also\n"
    "                        post_link_frequency\n"
    "            Integers above 2^53 - 1 are strings of decimal digits.\n"
    "  --debug-file FILE\n"
    "            where the names of functions are, if not in FILE itself\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n";

/* The destination of the output, and its state. */
struct printing {
    struct output output;
    struct json json;
    bool is_json;
    bool is_begun; /* whether the JSON array was begun */
    bool is_empty; /* whether no section was found */
};

/* ---- Functions ---- */

static void begin(struct printing *printing)
{
    if (printing->is_json && !printing->is_begun)
        json_begin_array(&printing->json);
    printing->is_begun = true;
}

static void end(struct printing *printing)
{
    if (!printing->is_json || !printing->is_begun)
        return;
    json_end_array(&printing->json);
    output_character(&printing->output, '\n');
}

static void print_function(struct printing *printing, const struct input *input,
                           const struct cairn_object_section *section,
                           const struct cairn_bbmap_function *function, struct lost_addresses *lost)
{
    struct cairn_bbmap_range range;
    struct cairn_bbmap_range next;
    cairn_bbmap_first_range(function, &range);
    next = range;
    do
        check_address(input->object, section, next.offset, lost);
    while (cairn_bbmap_next_range(function, &next));
    const char *name = cairn_object_function(input->object, section, range.offset).name;
    if (printing->is_json)
        write_bbmap_json(&printing->json, function, name);
    else
        write_bbmap_text(&printing->output, function, name);
}

/* ---- Sections ---- */

static bool print_section(struct printing *printing, const struct input *input,
                          const struct cairn_object_section *section)
{
    enum cairn_bbmap_encoding encoding =
        section->type == CAIRN_BBMAP_SECTION_TYPE_V0 ? CAIRN_BBMAP_V0 : CAIRN_BBMAP_VERSIONED;
    struct progress progress;
    struct cairn_error error = {0};
    struct lost_addresses lost = {0};
    size_t offset = 0;
    progress_begin_beside(&progress, &printing->output, "bytes", section->contents.size);
    while (offset < section->contents.size) {
        struct cairn_bbmap_function function;
        if (cairn_bbmap_read(&section->contents, encoding, &offset, &function, &error) != CAIRN_OK)
            break;
        print_function(printing, input, section, &function, &lost);
        progress_move(&progress, offset);
    }
    progress_end(&progress);
    bool is_good = complain_of_lost(input->name, section, &lost);
    if (error.status == CAIRN_OK)
        return is_good;
    complain_of_section(input, section, &error);
    return false;
}

static bool print_sections(struct printing *printing, const struct input *input, uint32_t type)
{
    const struct cairn_object_filter filter = {.type = type};
    struct cairn_object_section section = {0};
    struct cairn_error error;
    bool is_good = true;
    while (cairn_object_next_matching(input->object, &filter, &section, &error) == CAIRN_OK) {
        printing->is_empty = false;
        begin(printing);
        is_good &= print_section(printing, input, &section);
    }
    if (error.status == CAIRN_ERROR_NOT_FOUND)
        return is_good;
    complain("%s: basic-block address maps: %s", input->name, error.message);
    return false;
}

static bool print_input(const struct input *input, void *user)
{
    struct printing *printing = user;
    output_allow_names(&printing->output, input->size);
    bool is_good = print_sections(printing, input, CAIRN_BBMAP_SECTION_TYPE_V0);
    return print_sections(printing, input, CAIRN_BBMAP_SECTION_TYPE) && is_good;
}

/* ---- The command ---- */

static enum exit_status print_file(const struct file_options *options)
{
    static struct printing printing;
    output_open(&printing.output, STDOUT_FILENO);
    printing.json.output = &printing.output;
    printing.is_json = options->json;
    printing.is_empty = true;
    bool is_good = visit_file(options->path, options->debug_path, options->memory_limit,
                              print_input, &printing);
    end(&printing);
    enum exit_status status = finish_output(&printing.output);
    if (is_good && printing.is_empty) {
        complain("%s: there are no basic-block address maps: the code was compiled without them "
                 "(clang: -fbasic-block-address-map, before 19 -fbasic-block-sections=labels), or "
                 "the linker or strip dropped them",
                 options->path);
        is_good = false;
    }
    return is_good ? status : EXIT_BAD_INPUT;
}

enum exit_status command_bbmap(int argc, char **argv)
{
    return print_file_with(argc, argv, "bbmap", help, print_file);
}
