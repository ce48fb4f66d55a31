/*
 * cairn lookup: everything that a file says about addresses of its code.
 *
 * The tables are created once. Each address is answered when it is read, and the output is flushed
 * before the command waits for the next line. So another program can write one line at a time and
 * read the answer to it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup.h"

#include "tools/addresses.h"
#include "tools/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn lookup FILE [ADDRESS…] [--json] [--base ADDRESS]\n"
    "                    [--section NAME --schema SCHEMA]…\n"
    "\n"
    "Says everything that an ELF object, executable or shared library says about addresses of its\n"
    "code: the function and the offset in it (symbol table); the basic block (address maps:\n"
    "-fbasic-block-address-map, or -fbasic-block-sections=labels before clang 19); the function's\n"
    "frame, and records there or of calls that return there (stack maps); where the code goes on\n"
    "after a fault (fault maps); what sanitizers' metadata covers, and atomic accesses; and\n"
    "entries of the PC sections that are named. What the file does not have is not looked for.\n"
    "\n"
    "  ADDRESS   hexadecimal, with 0x or without, as the file has them; or FUNCTION,\n"
    "            FUNCTION+OFFSET, SECTION:ADDRESS. 'add' is a number: the function is add+0.\n"
    "            In a file that is not linked, addresses are offsets in a section:\n"
    "            SECTION:ADDRESS or SECTION+OFFSET; alone they are in .text.\n"
    "            Without any, they are read from standard input, one or several on a line, and\n"
    "            answered line by line; lines of 'perf script -F ip' are taken, too. Invalid\n"
    "            lines give an error message, and the status is 1 at the end\n"
    "  --base ADDRESS\n"
    "            where a position-independent file was loaded: addresses are the process's\n"
    "  --section NAME --schema SCHEMA\n"
    "            entries of this PC section, too: see 'cairn pcsections --help'. May be given\n"
    "            several times\n"
    "  --json    for machines: an array, with a line for each address\n"
    "              {address, section, symbol, offset, block, stack_size, records,\n"
    "               returning_from, fault, handles, covered, atomic, entries}\n"
    "            cairn(1) says what they are. What is not known is null. The first character of\n"
    "            each line is '[' or ',': the rest of it is complete before the next is "
    "read\n" FILE_HELP;

struct options {
    struct file_options file;
    char **words;
    size_t word_count;
    struct wanted_sections wanted;
    uint64_t base;
    bool has_base;
};

struct lookup {
    const struct options *options;
    struct tables tables;
    struct printer printer;
    struct line_reader reader;
    struct progress progress;
    bool is_good;      /* whether all questions could be answered */
    bool is_stripped;  /* whether the object has no symbol table, and the message about that was not
                          yet printed */
    bool was_visited;  /* whether the first object was visited */
    bool was_answered; /* whether there may be answers */
};

/* ---- Answers ---- */

static void answer(struct lookup *lookup, struct target target)
{
    const struct tables *tables = &lookup->tables;
    struct answer answer = {
        .tables = tables,
        .target = target,
        .place = layout_place(&tables->layout, target.address),
        .has_base = lookup->options->has_base,
    };
    answer.has_function = layout_function(&tables->layout, target.address, &answer.function);
    /* The message appears once and only when an answer lacks a name. */
    if (!answer.has_function && lookup->is_stripped &&
        layout_section(&tables->layout, target.address) != NULL) {
        lookup->is_stripped = false;
        progress_end(&lookup->progress);
        complain("%s: there is no symbol table, so functions may have no names: the file was "
                 "stripped",
                 tables->input->name);
    }
    if (lookup->printer.is_json)
        write_answer_json(&lookup->printer.json, &answer);
    else
        write_answer_text(&lookup->printer.output, &answer);
}

/* Prints an error message. `line` is 0 for a word of the command line. */
static void refuse(struct lookup *lookup, uint64_t line, const char *complaint)
{
    lookup->is_good = false;
    progress_end(&lookup->progress);
    if (line == 0)
        complain("%s: %s", lookup->tables.input->name, complaint);
    else
        complain("%s: line %llu: %s", lookup->tables.input->name, (unsigned long long)line,
                 complaint);
}

static void answer_word(struct lookup *lookup, uint64_t line, const char *word)
{
    char complaint[TARGET_COMPLAINT_BYTES];
    struct target target;
    if (find_target(&lookup->tables, lookup->options->base, word, &target, complaint))
        answer(lookup, target);
    else
        refuse(lookup, line, complaint);
}

/* ---- Lines ---- */

enum { WORD_BYTES = 4096 };

/* Copies the next word from `*text` on, null-terminated. Returns its length in the line, of which
 * the copy may be only a part. */
static size_t next_word(const char **text, const char *end, char *word)
{
    const char *begin = *text;
    while (begin < end && (*begin == ' ' || *begin == '\t' || *begin == '\r'))
        begin++;
    const char *at = begin;
    while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
        at++;
    size_t length = (size_t)(at - begin);
    size_t kept = length < WORD_BYTES ? length : WORD_BYTES - 1;
    memcpy(word, begin, kept);
    word[kept] = '\0';
    *text = at;
    return length;
}

static bool holds_only_addresses(const char *text, const char *end)
{
    char word[WORD_BYTES];
    uint64_t address;
    while (next_word(&text, end, word) > 0)
        if (!parse_address(word, &address))
            return false;
    return true;
}

/* Answers a line. A line with several addresses is not from perf, which prints one address on each
 * line. Words that are neither perf's nor addresses may be names of functions. */
static void answer_line(struct lookup *lookup, const char *text, size_t length)
{
    char word[WORD_BYTES];
    struct address_line line;
    uint64_t number = lookup->reader.line_number;
    parse_address_line(text, length, &line);
    if (line.kind == ADDRESS_LINE_EMPTY || line.kind == ADDRESS_LINE_MAPPING)
        return;
    const char *end = text + length;
    if (memchr(text, '\0', length) != NULL) {
        refuse(lookup, number, "the line has bytes that are not text");
    } else if (line.kind == ADDRESS_LINE_JUNK || holds_only_addresses(text, end)) {
        while (next_word(&text, end, word) > 0)
            answer_word(lookup, number, word);
    } else {
        snprintf(word, sizeof word, "%llx", (unsigned long long)line.address);
        answer_word(lookup, number, word);
    }
}

static void answer_input(struct lookup *lookup)
{
    const char *text;
    size_t length;
    line_reader_open(&lookup->reader, STDIN_FILENO);
    struct output *output = &lookup->printer.output;
    progress_begin(&lookup->progress, output, "lines", 0);
    while (output->system_error == 0 && line_reader_next(&lookup->reader, &text, &length)) {
        answer_line(lookup, text, length);
        progress_move(&lookup->progress, lookup->reader.line_number);
        if (!line_reader_has_line(&lookup->reader))
            output_flush(output);
    }
    progress_end(&lookup->progress);
    if (lookup->reader.system_error == 0)
        return;
    complain("standard input cannot be read: %s", strerror(lookup->reader.system_error));
    lookup->is_good = false;
}

/* ---- The command ---- */

static bool visit_object(const struct input *input, void *user)
{
    struct lookup *lookup = user;
    const struct options *options = lookup->options;
    struct cairn_object_function function;
    struct cairn_error error;
    if (input->is_member && lookup->was_visited)
        return false;
    lookup->was_visited = true;
    if (input->is_member)
        return complain("%s: this is an archive, with addresses of many objects: extract its "
                        "members with 'ar x' and give one of them",
                        options->file.path);
    output_allow_names(&lookup->printer.output, input->size);
    enum cairn_status status = cairn_object_find_function(input->object, 0, 0, &function, &error);
    lookup->is_good = status == CAIRN_OK || status == CAIRN_ERROR_NOT_FOUND ||
                      complain("%s: the names of functions: %s", input->name, error.message);
    lookup->is_good = tables_read(input, &options->wanted, &lookup->tables) && lookup->is_good;
    lookup->is_stripped = !has_symbol_table(input->object);
    lookup->was_answered = true;
    for (size_t i = 0; i < options->word_count; i++)
        answer_word(lookup, 0, options->words[i]);
    if (options->word_count == 0)
        answer_input(lookup);
    tables_release(&lookup->tables);
    return lookup->is_good;
}

enum exit_status command_lookup(int argc, char **argv)
{
    static struct lookup lookup;
    struct options options = {.base = 0};
    const char *base = NULL;
    struct option_values names = {.count = 0};
    struct option_values schemas = {.count = 0};
    const struct option known[] = {
        {.name = "--base", .value = &base, .needs = "an address"},
        SECTION_OPTIONS(&names, &schemas),
    };
    struct command_line line = {.command = "lookup",
                                .help = help,
                                .options = known,
                                .option_count = 3,
                                .file = &options.file};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    options.words = line.operands + 1;
    options.word_count = line.operand_count - 1;
    options.has_base = base != NULL;
    bool is_usable = true;
    if (names.count == 0 && schemas.count > 0)
        is_usable = complain("lookup: --schema is for --section, which is not given");
    else if (base != NULL && !parse_address(base, &options.base))
        is_usable = complain("lookup: --base needs an address in hexadecimal digits");
    else if (options.word_count == 0 && strcmp(options.file.path, "-") == 0)
        is_usable = complain("lookup: standard input cannot be both the file and the addresses");
    if (!is_usable || !parse_wanted_sections("lookup", &names, &schemas, &options.wanted))
        return EXIT_BAD_USAGE;
    lookup.options = &options;
    printer_open(&lookup.printer, options.file.json);
    bool is_good = visit_file(&options.file, visit_object, &lookup);
    return lookup.was_answered ? printer_finish(&lookup.printer, is_good) : EXIT_BAD_INPUT;
}
