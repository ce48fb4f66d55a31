/*
 * cairn pcsections: the entries of PC sections, by their schema.
 *
 * Everything that precedes an invalid part is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/command.h"
#include "tools/files.h"
#include "tools/options.h"
#include "tools/schema.h"
#include "tools/words.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn pcsections FILE --section NAME --schema SCHEMA [--json]\n"
    "\n"
    "Prints PC sections of an ELF object, executable or shared library: what the metadata\n"
    "!pcsections says about functions or instructions. Their entries do not say what they are, so\n"
    "the schema has to. FILE - is standard input.\n"
    "\n"
    "  --section NAME   the section; of several with this name all are printed\n"
    "  --schema SCHEMA  what its entries are like, in words:\n"
    "              function or instruction   what entries are about; a function has its size\n"
    "              4 or 8                    bytes of an address: 4 in the small code model\n"
    "              u8, u16 … u64             each constant, by its bits\n"
    "              !C                        the size, and constants of more than 8 bits, are\n"
    "                                        ULEB128 numbers\n"
    "            such as 'instruction 4', 'function 4 u32 !C'. Unless they are ULEB128 numbers,\n"
    "            LLVM takes 4 bytes for 24 bits, and 8 for 40, 48 and 56, with zeros behind:\n"
    "            that is u24 u8, u40 u24, u48 u16, u56 u8\n"
    "            Both options may be given several times, in pairs, or with one schema for all\n"
    "  --json    for machines: an array of sections\n"
    "              {name, code, schema, entries}, of an archive's member also file\n"
    "            entries:  {address, section, symbol, offset, size, constants}\n"
    "            size is null unless it is a function's; section is null unless the file is\n"
    "            relocatable: address then counts from the begin of that section.\n"
    "            Integers above 2^53 - 1 are strings of decimal digits\n"
    "  --debug-file PATH\n"
    "            names come from this file\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n"
    "\n"
    "Instructions of one function that share their metadata have one entry with all of their\n"
    "addresses: each is printed by itself, with the constants of all.\n";

struct options {
    const char *path;
    const char *debug_path;
    uint64_t memory_limit; /* 0 for the default */
    struct wanted_sections wanted;
    bool json;
    bool help;
};

struct printing {
    const struct options *options;
    struct output *output;
    struct json *json; /* NULL for text */
    struct layout layout;
    size_t section_count;
};

/* ---- Text ---- */

static void write_heading(struct printing *printing, const struct entry_reader *reader)
{
    struct output *output = printing->output;
    if (printing->section_count > 0)
        output_character(output, '\n');
    write_member(output, reader->input);
    output_style(output, STYLE_HEADING);
    output_text(output, "section ");
    output_name(output, reader->section.name);
    output_style(output, STYLE_PLAIN);
    output_text(output, ": ");
    output_text(output, reader->wanted->text);
    output_text(output, ", ");
    output_text(output, cairn_architecture_name(cairn_object_architecture(reader->input->object)));
    output_text(output, ", ");
    write_count(output, reader->section.contents.size, "byte", "bytes");
    output_character(output, '\n');
}

static void write_address(struct output *output, const struct place *place)
{
    if (place->section != NULL) {
        output_name(output, place->section->name);
        output_character(output, ':');
    }
    output_hexadecimal(output, place->address);
}

static void write_constants(struct output *output, const struct entry_reader *reader,
                            const struct cairn_pcsection_entry *value)
{
    for (uint8_t i = 0; i < reader->wanted->schema.constant_count; i++) {
        output_text(output, i == 0 ? ": " : ", ");
        output_unsigned(output, value->constants[i]);
        output_text(output, " (");
        output_hexadecimal(output, value->constants[i]);
        output_character(output, ')');
    }
}

static void write_entry_text(struct output *output, const struct entry_reader *reader,
                             const struct section_entry *entry,
                             const struct cairn_object_function *function)
{
    output_text(output, "  ");
    write_address(output, &entry->place);
    output_text(output, " = ");
    if (function != NULL)
        write_name_offset(output, function->name, entry->place.address - function->entry);
    else
        write_name(output, NULL);
    if (reader->wanted->schema.has_size) {
        output_text(output, ", ");
        write_count(output, entry->value.size, "byte", "bytes");
    }
    write_constants(output, reader, &entry->value);
    output_character(output, '\n');
}

/* ---- JSON ---- */

static void begin_section_json(struct json *json, const struct entry_reader *reader)
{
    struct cairn_object_section_header code;
    json_line(json, 0);
    json_begin_object(json);
    write_json_member(json, reader->input);
    json_key(json, "name");
    json_string(json, reader->section.name);
    json_key(json, "code");
    if (cairn_object_section_header(reader->input->object, reader->section.linked_section, &code))
        json_string(json, code.name);
    else
        json_null(json);
    json_key(json, "schema");
    json_string(json, reader->wanted->text);
    json_key(json, "entries");
    json_begin_array(json);
}

static void write_entry_json(struct json *json, const struct entry_reader *reader,
                             const struct section_entry *entry,
                             const struct cairn_object_function *function)
{
    json_line(json, 1);
    json_begin_object(json);
    json_key(json, "address");
    json_unsigned(json, entry->place.address);
    json_key(json, "section");
    write_json_name(json, entry->place.section == NULL ? NULL : entry->place.section->name);
    json_key(json, "symbol");
    write_json_name(json, function == NULL ? NULL : function->name);
    json_key(json, "offset");
    if (function != NULL)
        json_unsigned(json, entry->place.address - function->entry);
    else
        json_null(json);
    json_key(json, "size");
    if (reader->wanted->schema.has_size)
        json_unsigned(json, entry->value.size);
    else
        json_null(json);
    json_key(json, "constants");
    json_begin_array(json);
    for (uint8_t i = 0; i < reader->wanted->schema.constant_count; i++)
        json_unsigned(json, entry->value.constants[i]);
    json_end_array(json);
    json_end_object(json);
}

/* ---- Visiting the file ---- */

static void print_entry(struct printing *printing, const struct entry_reader *reader,
                        const struct section_entry *entry)
{
    struct cairn_object_function found;
    bool is_known = layout_function(&printing->layout, entry->value.address, &found);
    const struct cairn_object_function *function = is_known ? &found : NULL;
    if (printing->json != NULL)
        write_entry_json(printing->json, reader, entry, function);
    else
        write_entry_text(printing->output, reader, entry, function);
}

static bool print_section(struct printing *printing, struct entry_reader *reader)
{
    struct section_entry entry;
    struct cairn_error error;
    if (printing->json != NULL)
        begin_section_json(printing->json, reader);
    else
        write_heading(printing, reader);
    printing->section_count++;
    while (entry_reader_next(reader, &entry, &error))
        print_entry(printing, reader, &entry);
    if (printing->json != NULL) {
        json_end_array(printing->json);
        json_end_object(printing->json);
    }
    if (error.status == CAIRN_OK)
        return true;
    entry_reader_complain(reader, &error);
    return false;
}

/* Whether a section looks like a PC section. */
static bool is_candidate(const struct cairn_object_section_header *header)
{
    static const char *const others[] = {"__patchable_function_entries", ".stack_sizes", "__llvm_",
                                         "xray_"};
    if ((header->flags & SHF_LINK_ORDER) == 0 || header->type != SHT_PROGBITS)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(header->name, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

/* Limits of the list of names. Each name takes at least three bytes of the text. */
enum { LIST_BYTES = 1000, LISTED_MAX = LIST_BYTES / 3 };

struct candidates {
    char text[LIST_BYTES]; /* such as "a, b, c" */
    size_t used;
    const char *names[LISTED_MAX];
    size_t count;
};

static bool is_listed(const struct candidates *candidates, const char *name)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (strcmp(candidates->names[i], name) == 0)
            return true;
    return false;
}

/* Adds a name to the list. False if it does not fit. */
static bool list_name(struct candidates *candidates, const char *name)
{
    size_t length = strnlen(name, LIST_BYTES);
    if (length + 3 > LIST_BYTES - candidates->used || candidates->count == LISTED_MAX)
        return false;
    if (candidates->count > 0) {
        memcpy(candidates->text + candidates->used, ", ", 2);
        candidates->used += 2;
    }
    memcpy(candidates->text + candidates->used, name, length);
    candidates->used += length;
    candidates->names[candidates->count++] = name;
    return true;
}

static void list_candidates(const cairn_object *object, struct candidates *candidates)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        if (is_candidate(&header) && !is_listed(candidates, header.name) &&
            !list_name(candidates, header.name))
            return;
}

static void complain_of_candidates(const struct input *input, const char *wrong)
{
    struct candidates candidates = {.used = 0};
    list_candidates(input->object, &candidates);
    if (candidates.count > 0)
        complain("%s: %s; these may be PC sections: %s", input->name, wrong, candidates.text);
    else
        complain("%s: %s, and none that looks like a PC section", input->name, wrong);
}

static bool print_wanted(struct printing *printing, const struct input *input,
                         const struct wanted_section *wanted)
{
    bool is_good = true;
    struct cairn_error error = {0};
    struct cairn_object_section section = {0};
    while (cairn_object_next_section(input->object, wanted->name, &section, &error) == CAIRN_OK) {
        struct entry_reader reader;
        entry_reader_open(&reader, input, &printing->layout, wanted, &section);
        is_good = print_section(printing, &reader) && is_good;
    }
    if (error.status != CAIRN_ERROR_NOT_FOUND) {
        complain("%s: %s: %s", input->name, wanted->name, error.message);
        return false;
    }
    /* A member of an archive need not have the section. */
    if (section.index != 0 || input->is_member)
        return is_good;
    complain_of_candidates(input, error.message);
    return false;
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    const struct wanted_sections *wanted = &printing->options->wanted;
    if (wanted->count == 0) {
        complain_of_candidates(input, "no section is asked for");
        return false;
    }
    if (!layout_create(input, &printing->layout))
        return false;
    output_allow_names(printing->output, input->size);
    bool is_good = true;
    for (size_t i = 0; i < wanted->count; i++)
        is_good = print_wanted(printing, input, &wanted->sections[i]) && is_good;
    layout_destroy(&printing->layout);
    return is_good;
}

static enum exit_status print_file(const struct options *options)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    struct json json = {.output = &output};
    struct printing printing = {
        .options = options, .output = &output, .json = options->json ? &json : NULL};
    if (options->json)
        json_begin_array(&json);
    bool is_good = visit_file(options->path, options->debug_path, options->memory_limit,
                              print_object, &printing);
    if (options->wanted.count == 0)
        return EXIT_BAD_USAGE;
    if (printing.section_count == 0) {
        if (is_good)
            complain("%s: no member has a section of such a name", options->path);
        return EXIT_BAD_INPUT;
    }
    if (options->json) {
        json_end_array(&json);
        output_character(&output, '\n');
    }
    enum exit_status status = finish_output(&output);
    return is_good ? status : EXIT_BAD_INPUT;
}

/* ---- The command ---- */

static bool parse(int argc, char **argv, struct options *options)
{
    struct option_values names = {.count = 0};
    struct option_values schemas = {.count = 0};
    const struct option known[] = {
        {.name = "--debug-file", .value = &options->debug_path, .needs = "a file"},
        {.name = "--memory", .size = &options->memory_limit, .needs = MEMORY_NEEDS},
        {.name = "--json", .flag = &options->json},
        {.name = "--schema", .values = &schemas, .needs = "a schema, such as 'instruction 4 u32'"},
        {.name = "--section", .values = &names, .needs = "a section's name"},
    };
    struct command_line line = {
        .command = "pcsections", .options = known, .option_count = 5, .operand_limit = 1};
    if (!parse_command_line(argc, argv, &line))
        return false;
    options->help = line.help;
    if (line.help)
        return true;
    if (line.operand_count == 0) {
        complain("pcsections: no file is given; see 'cairn pcsections --help'");
        return false;
    }
    options->path = line.operands[0];
    return parse_wanted_sections("pcsections", &names, &schemas, &options->wanted);
}

enum exit_status command_pcsections(int argc, char **argv)
{
    struct options options = {0};
    if (!parse(argc, argv, &options))
        return EXIT_BAD_USAGE;
    return options.help ? print_text(help) : print_file(&options);
}
