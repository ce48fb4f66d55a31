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

#include "tools/blocks.h"
#include "tools/progress.h"

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
    "                        block's start to the end of each call), hash, frequency,\n"
    "                        post_link_frequency (of the linked program), successors\n"
    "            successors: {id, probability}, in units of 2^-31, where the map has it also\n"
    "                        post_link_frequency\n"
    "            Integers above 2^53 - 1 are strings of decimal digits.\n"
    "  --debug-file FILE\n"
    "            where the names of functions are, if not in FILE itself\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n";

struct printing {
    struct printer printer;
    bool has_section;
};

static bool print_section(const struct input *input, const struct cairn_object_section *section,
                          void *user)
{
    struct printing *printing = user;
    struct printer *printer = &printing->printer;
    enum cairn_bbmap_encoding encoding =
        section->type == CAIRN_BBMAP_SECTION_TYPE_V0 ? CAIRN_BBMAP_V0 : CAIRN_BBMAP_VERSIONED;
    struct progress progress;
    struct cairn_error error = {0};
    struct lost_addresses lost = {0};
    struct cairn_bbmap_function function;
    printing->has_section = true;
    progress_begin(&progress, &printer->output, "bytes", section->contents.size);
    for (size_t offset = 0; offset < section->contents.size; progress_move(&progress, offset)) {
        struct cairn_bbmap_range first;
        struct cairn_bbmap_range range;
        if (cairn_bbmap_read(&section->contents, encoding, &offset, &function, &error) != CAIRN_OK)
            break;
        cairn_bbmap_first_range(&function, &first);
        range = first;
        do
            check_address(input->object, section, range.offset, &lost);
        while (cairn_bbmap_next_range(&function, &range));
        const char *name = cairn_object_function(input->object, section, first.offset).name;
        if (printer->is_json)
            write_bbmap_json(&printer->json, &function, name);
        else
            write_bbmap_text(&printer->output, &function, name);
    }
    progress_end(&progress);
    return check_section(input, section, &lost, &error);
}

static bool print_input(const struct input *input, void *user)
{
    struct printing *printing = user;
    output_allow_names(&printing->printer.output, input->size);
    return visit_block_maps(input, print_section, user);
}

enum exit_status command_bbmap(int argc, char **argv)
{
    static struct printing printing;
    struct file_options options = {0};
    struct command_line line = {
        .command = "bbmap", .help = help, .operand_limit = 1, .file = &options};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    printer_open(&printing.printer, options.json);
    bool is_good = visit_file(&options, print_input, &printing);
    if (printing.has_section)
        return printer_finish(&printing.printer, is_good);
    if (is_good)
        complain("%s: there are no " BLOCK_MAPS ": the code was compiled without them "
                 "(clang: -fbasic-block-address-map, before 19 -fbasic-block-sections=labels), or "
                 "the linker or strip dropped them",
                 options.path);
    return EXIT_BAD_INPUT;
}
