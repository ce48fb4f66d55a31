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
#include "tools/command.h"
#include "tools/files.h"
#include "tools/options.h"
#include "tools/progress.h"

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
    "            In a file that is not linked, addresses count from the begin of a section:\n"
    "            SECTION:ADDRESS or SECTION+OFFSET; alone they are in .text.\n"
    "            Without any, they are read from standard input, one or several on a line, and\n"
    "            answered line by line; lines of 'perf script -F ip' are taken, too. Lines that\n"
    "            are no good are complained of, and the status is 1 at the end\n"
    "  --base ADDRESS\n"
    "            where a position-independent file was loaded: addresses are the process's\n"
    "  --section NAME --schema SCHEMA\n"
    "            entries of this PC section, too: see 'cairn pcsections --help'. May be given\n"
    "            several times\n"
    "  --json    for machines: an array, with a line for each address\n"
    "              {address, section, symbol, offset, block, stack_size, records,\n"
    "               returning_from, fault, handles, covered, atomic, entries}\n"
    "            cairn(1) says what they are. What is not known is null. The first character of\n"
    "            each line is '[' or ',': what follows it is whole, before the next is asked for\n"
    "  --debug-file PATH\n"
    "            names come from this file\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n";

struct options {
    const char *path;
    const char *debug_path;
    uint64_t memory_limit; /* 0 for the default */
    char **words;
    size_t word_count;
    struct wanted_sections wanted;
    uint64_t base;
    bool has_base;
    bool json;
    bool help;
};

struct lookup {
    const struct options *options;
    struct facts facts;
    struct output output;
    struct json json;
    struct line_reader reader;
    struct progress progress;
    bool is_good;     /* whether all questions could be answered */
    bool is_stripped; /* whether the object has no symbol table, and the message about that was not
                         yet printed */
    bool was_visited; /* whether the first object was visited */
};

/* ---- Answers ---- */

/* Prints the message, which appears once and only when an answer lacks a name. */
static void complain_of_stripped(struct lookup *lookup)
{
    lookup->is_stripped = false;
    progress_end(&lookup->progress);
    complain("%s: there is no symbol table, so functions may have no names: the file was stripped",
             lookup->facts.input->name);
}

static void answer(struct lookup *lookup, struct target target)
{
    struct answer answer = {
        .facts = &lookup->facts,
        .target = target,
        .place = layout_place(&lookup->facts.layout, target.address),
        .has_base = lookup->options->has_base,
    };
    answer.has_function = layout_function(&lookup->facts.layout, target.address, &answer.function);
    if (!answer.has_function && lookup->is_stripped &&
        layout_section(&lookup->facts.layout, target.address) != NULL)
        complain_of_stripped(lookup);
    if (lookup->options->json)
        write_answer_json(&lookup->json, &answer);
    else
        write_answer_text(&lookup->output, &answer);
}

/* Prints an error message. `line` is 0 for a word of the command line. */
static void refuse(struct lookup *lookup, uint64_t line, const char *complaint)
{
    lookup->is_good = false;
    progress_end(&lookup->progress);
    if (line == 0)
        complain("%s: %s", lookup->facts.input->name, complaint);
    else
        complain("%s: line %llu: %s", lookup->facts.input->name, (unsigned long long)line,
                 complaint);
}

static void answer_word(struct lookup *lookup, uint64_t line, const char *word)
{
    char complaint[TARGET_COMPLAINT_BYTES];
    struct target target;
    if (find_target(&lookup->facts, lookup->options->base, word, &target, complaint))
        answer(lookup, target);
    else
        refuse(lookup, line, complaint);
}

static void answer_address(struct lookup *lookup, uint64_t line, uint64_t address)
{
    char complaint[TARGET_COMPLAINT_BYTES];
    struct target target;
    if (find_address_target(&lookup->facts, lookup->options->base, address, &target, complaint))
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

static void answer_words(struct lookup *lookup, const char *text, const char *end)
{
    char word[WORD_BYTES];
    while (next_word(&text, end, word) > 0)
        answer_word(lookup, lookup->reader.line_number, word);
}

/* Answers a line. A line with several addresses is not from perf, which prints one address on each
 * line. Words that are neither perf's nor addresses may be names of functions. */
static void answer_line(struct lookup *lookup, const char *text, size_t length)
{
    struct address_line line;
    parse_address_line(text, length, &line);
    if (line.kind == ADDRESS_LINE_EMPTY || line.kind == ADDRESS_LINE_MAPPING)
        return;
    const char *end = text + length;
    if (memchr(text, '\0', length) != NULL)
        refuse(lookup, lookup->reader.line_number, "the line has bytes that are no text");
    else if (line.kind == ADDRESS_LINE_JUNK || holds_only_addresses(text, end))
        answer_words(lookup, text, end);
    else
        answer_address(lookup, lookup->reader.line_number, line.address);
}

static void answer_input(struct lookup *lookup)
{
    const char *text;
    size_t length;
    line_reader_open(&lookup->reader, STDIN_FILENO);
    progress_begin_beside(&lookup->progress, &lookup->output, "lines", 0);
    while (lookup->output.system_error == 0 && line_reader_next(&lookup->reader, &text, &length)) {
        answer_line(lookup, text, length);
        progress_move(&lookup->progress, lookup->reader.line_number);
        if (!line_reader_has_line(&lookup->reader))
            output_flush(&lookup->output);
    }
    progress_end(&lookup->progress);
    if (lookup->reader.system_error == 0)
        return;
    complain("standard input cannot be read: %s", strerror(lookup->reader.system_error));
    lookup->is_good = false;
}

/* ---- The object ---- */

/* Checks the symbol table. False, after an error message, if it is invalid. */
static bool check_symbols(const struct input *input)
{
    struct cairn_object_function function;
    struct cairn_error error;
    enum cairn_status status = cairn_object_find_function(input->object, 0, 0, &function, &error);
    if (status == CAIRN_OK || status == CAIRN_ERROR_NOT_FOUND)
        return true;
    complain("%s: the names of functions: %s", input->name, error.message);
    return false;
}

static void answer_all(struct lookup *lookup)
{
    const struct options *options = lookup->options;
    if (options->json)
        json_begin_array(&lookup->json);
    for (size_t i = 0; i < options->word_count; i++)
        answer_word(lookup, 0, options->words[i]);
    if (options->word_count == 0)
        answer_input(lookup);
    if (!options->json)
        return;
    json_end_array(&lookup->json);
    output_character(&lookup->output, '\n');
}

static bool visit_object(const struct input *input, void *user)
{
    struct lookup *lookup = user;
    if (input->is_member && lookup->was_visited)
        return false;
    lookup->was_visited = true;
    if (input->is_member) {
        complain("%s: this is an archive, with addresses of many objects: extract its members with "
                 "'ar x' and give one of them",
                 lookup->options->path);
        return false;
    }
    output_allow_names(&lookup->output, input->size);
    lookup->is_good = check_symbols(input);
    lookup->is_good =
        facts_read(input, &lookup->options->wanted, &lookup->facts) && lookup->is_good;
    lookup->is_stripped = !has_symbol_table(input->object);
    answer_all(lookup);
    facts_release(&lookup->facts);
    return lookup->is_good;
}

static enum exit_status print_file(const struct options *options)
{
    static struct lookup lookup;
    lookup.options = options;
    output_open(&lookup.output, STDOUT_FILENO);
    lookup.json.output = &lookup.output;
    bool is_good = visit_file(options->path, options->debug_path, options->memory_limit,
                              visit_object, &lookup);
    enum exit_status status = finish_output(&lookup.output);
    return is_good ? status : EXIT_BAD_INPUT;
}

/* ---- The command ---- */

static bool check_options(const struct command_line *line, const char *base,
                          struct options *options)
{
    if (line->operand_count == 0) {
        complain("lookup: no file is given; see 'cairn lookup --help'");
        return false;
    }
    options->path = line->operands[0];
    options->words = line->operands + 1;
    options->word_count = line->operand_count - 1;
    options->has_base = base != NULL;
    if (base != NULL && !parse_address(base, &options->base)) {
        complain("lookup: --base needs an address in hexadecimal digits");
        return false;
    }
    if (options->word_count > 0 || strcmp(options->path, "-") != 0)
        return true;
    complain("lookup: standard input cannot be both the file and the addresses");
    return false;
}

static bool parse(int argc, char **argv, struct options *options)
{
    const char *base = NULL;
    struct option_values names = {.count = 0};
    struct option_values schemas = {.count = 0};
    const struct option known[] = {
        {.name = "--base", .value = &base, .needs = "an address"},
        {.name = "--debug-file", .value = &options->debug_path, .needs = "a file"},
        {.name = "--memory", .size = &options->memory_limit, .needs = MEMORY_NEEDS},
        {.name = "--json", .flag = &options->json},
        {.name = "--schema", .values = &schemas, .needs = "a schema, such as 'instruction 4 u32'"},
        {.name = "--section", .values = &names, .needs = "a section's name"},
    };
    struct command_line line = {.command = "lookup", .options = known, .option_count = 6};
    if (!parse_command_line(argc, argv, &line))
        return false;
    options->help = line.help;
    if (line.help)
        return true;
    if (names.count == 0 && schemas.count > 0) {
        complain("lookup: --schema is for --section, which is not given");
        return false;
    }
    return check_options(&line, base, options) &&
           parse_wanted_sections("lookup", &names, &schemas, &options->wanted);
}

enum exit_status command_lookup(int argc, char **argv)
{
    struct options options = {0};
    if (!parse(argc, argv, &options))
        return EXIT_BAD_USAGE;
    return options.help ? print_text(help) : print_file(&options);
}
