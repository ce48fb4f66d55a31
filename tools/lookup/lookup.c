/*
 * cairn lookup: all that a file contains about addresses of its code.
 *
 * The tables are created once. Each address is answered when it is read, and the output is flushed
 * before the command waits for the next line. So another program can write one line at a time and
 * read the answer to it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup/lookup.h"

#include "tools/read/addresses.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn lookup FILE [ADDRESS...] [--json] [--base ADDRESS]\n"
    "                    [--section NAME --schema SCHEMA]...\n"
    "\n"
    "Prints all that an ELF object, executable or shared library contains about addresses of its\n"
    "code: the function (symbol table); the source line (.debug_line of a linked file or of its\n"
    "separate debug file); the basic block (address maps); the frame size, and the records at the\n"
    "address or of a call that returns to it (stack maps); the handler of a fault, and the faults\n"
    "that the address handles (fault maps); sanitizer metadata; the stack size of the function\n"
    "(.stack_sizes); coverage points (__sancov_pcs); and entries of PC sections.\n"
    "Sections that the file does not have are ignored.\n"
    "\n"
    "  ADDRESS   a hexadecimal address, with or without 0x; or FUNCTION, FUNCTION+OFFSET or\n"
    "            SECTION:ADDRESS. A function whose name is a hexadecimal number, such as 'add',\n"
    "            is written 'add+0'.\n"
    "            In a relocatable file, addresses are offsets in a section: SECTION:ADDRESS or\n"
    "            SECTION+OFFSET; without a section, they are offsets in .text.\n"
    "            Without an ADDRESS, addresses are read from standard input, one or several on a\n"
    "            line, or as 'perf script -F ip' prints them. Each line is answered at once. An\n"
    "            invalid line gives an error message, and the exit status is 1 at the end\n"
    "  --base ADDRESS\n"
    "            the address at which a position-independent file was loaded: it is subtracted\n"
    "            from each address\n"
    "  --section NAME --schema SCHEMA\n"
    "            also print entries of this PC section; see 'cairn pcsections --help'. May be\n"
    "            given several times\n"
    "  --json    print an array, with a line for each address\n"
    "              {address, section, symbol, offset, source_file, source_line, block,\n"
    "               stack_size, records, returning_from, fault, handles, covered, atomic,\n"
    "               coverage, entries}\n"
    "            Unknown values are null. Each line begins with '[' or ',' and is complete\n"
    "            before the next address is read. cairn-json(5) explains all fields.\n" FILE_HELP;

struct lookup {
    char **words; /* addresses that were given */
    size_t word_count;
    struct wanted_sections wanted;
    uint64_t base;
    bool has_base;
    struct tables tables;
    struct printer *printer; /* NULL until the first object is visited */
    struct line_reader reader;
    struct progress progress;
    bool is_good;     /* whether all questions could be answered */
    bool is_stripped; /* whether the object has no symbol table, and the message about that was not
                         yet printed */
};

/* ---- Answers ---- */

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
    static struct answer answer;
    const struct tables *tables = &lookup->tables;
    char complaint[TARGET_COMPLAINT_BYTES];
    struct target target;
    if (!find_target(tables, lookup->base, word, &target, complaint)) {
        refuse(lookup, line, complaint);
        return;
    }
    find_answer(tables, &target, &answer);
    /* The message appears once and only when an answer lacks a name. */
    if (!answer.has_function && lookup->is_stripped &&
        layout_section(&tables->layout, target.address) != NULL) {
        lookup->is_stripped = false;
        progress_end(&lookup->progress);
        complain("%s: the file was stripped: without a symbol table, functions may have no names",
                 tables->input->name);
    }
    if (lookup->printer->is_json)
        write_answer_json(&lookup->printer->json, &answer, lookup->has_base);
    else
        write_answer_text(&lookup->printer->output, &answer, lookup->has_base);
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

/* Answers a line. A line with several addresses is not from perf, which prints one address on each
 * line. Words that are neither perf's nor addresses may be names of functions. */
static void answer_line(struct lookup *lookup, const char *text, size_t length)
{
    char word[WORD_BYTES];
    struct address_line line;
    uint64_t address;
    uint64_t number = lookup->reader.line_number;
    const char *end = text + length;
    const char *at = text;
    bool has_only_addresses = true;
    parse_address_line(text, length, &line);
    if (line.kind == ADDRESS_LINE_EMPTY || line.kind == ADDRESS_LINE_MAPPING ||
        line.kind == ADDRESS_LINE_BUILD_ID)
        return;
    while (has_only_addresses && next_word(&at, end, word) > 0)
        has_only_addresses = parse_address(word, &address);
    if (memchr(text, '\0', length) != NULL) {
        refuse(lookup, number, "the line has bytes that are not text");
    } else if (line.kind != ADDRESS_LINE_ADDRESS || has_only_addresses) {
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
    struct output *output = &lookup->printer->output;
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
    complain("cannot read standard input: %s", strerror(lookup->reader.system_error));
    lookup->is_good = false;
}

/* ---- The command ---- */

static bool visit_object(const struct input *input, void *user)
{
    struct lookup *lookup = user;
    struct cairn_object_function function;
    struct cairn_error error;
    if (input->is_member && lookup->printer != NULL)
        return false;
    lookup->printer = input->printer;
    if (input->is_member)
        return complain("%s: the file is a member of an archive: extract it with 'ar x', because "
                        "addresses in several members are equal",
                        input->name);
    enum cairn_status status = cairn_object_find_function(input->object, 0, 0, &function, &error);
    lookup->is_good = status == CAIRN_OK || status == CAIRN_ERROR_NOT_FOUND ||
                      complain("%s: the names of functions: %s", input->name, error.message);
    lookup->is_good = tables_read(input, &lookup->wanted, &lookup->tables) && lookup->is_good;
    lookup->is_stripped = !has_symbol_table(input->object);
    input->printer->has_output = true;
    for (size_t i = 0; i < lookup->word_count; i++)
        answer_word(lookup, 0, lookup->words[i]);
    if (lookup->word_count == 0)
        answer_input(lookup);
    tables_release(&lookup->tables);
    return lookup->is_good;
}

enum exit_status command_lookup(int argc, char **argv)
{
    static struct lookup lookup;
    const char *base = NULL;
    struct section_options sections = {.names.count = 0};
    const struct option known[] = {
        {.name = "--base", .value = &base, .needs = "an address"},
        SECTION_OPTIONS(&sections),
    };
    struct command_line line = {
        .command = "lookup", .help = help, .options = known, .option_count = 3};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    lookup.words = line.operands + 1;
    lookup.word_count = line.operand_count - 1;
    lookup.has_base = base != NULL;
    bool is_usable = true;
    if (sections.names.count == 0 && sections.schemas.count > 0)
        is_usable = complain("lookup: --schema needs --section, which is not given");
    else if (base != NULL && !parse_address(base, &lookup.base))
        is_usable = complain("lookup: --base needs an address in hexadecimal, not '%s'", base);
    else if (lookup.word_count == 0 && strcmp(line.file.path, "-") == 0)
        is_usable = complain("lookup: standard input cannot be both the file and the addresses");
    if (!is_usable || !parse_wanted_sections("lookup", &sections, &lookup.wanted))
        return EXIT_BAD_USAGE;
    return print_file(&line.file, visit_object, &lookup, "the archive has no members");
}
