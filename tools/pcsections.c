/*
 * cairn pcsections: the entries of PC sections, by their schema.
 *
 * Everything that precedes an invalid part is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/pcsection_entries.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: cairn pcsections FILE --section NAME --schema SCHEMA [--json]\n"
    "\n"
    "Prints PC sections of an ELF object, executable or shared library: what the metadata\n"
    "!pcsections says about functions or instructions. The format of entries is not in the\n"
    "file, so the schema has to be given. FILE - is standard input.\n"
    "\n"
    "  --section NAME   the section; of several with this name all are printed\n"
    "  --schema SCHEMA  what its entries are like, in words:\n"
    "              function or instruction   what entries are about; a function has its size\n"
    "              4 or 8                    bytes of an address: 4 in the small code model\n"
    "              u8, u16 … u64             each constant, by its bits\n"
    "              !C                        the size, and constants of more than 8 bits, are\n"
    "                                        ULEB128 numbers\n"
    "            such as 'instruction 4', 'function 4 u32 !C'. Unless they are ULEB128 numbers,\n"
    "            LLVM takes 4 bytes for 24 bits, and 8 for 40, 48 and 56, followed by zeros:\n"
    "            that is u24 u8, u40 u24, u48 u16, u56 u8\n"
    "            Both options may be given several times, in pairs, or with one schema for all\n"
    "  --json    for machines: an array of sections\n"
    "              {name, code, schema, entries}, of an archive's member also file\n"
    "            entries:  {address, section, symbol, offset, size, constants}\n"
    "            size is null unless it is a function's; section is null unless the file is\n"
    "            relocatable: address is then an offset in that section.\n"
    "            Integers above 2^53 - 1 are strings of decimal digits\n" FILE_HELP "\n"
    "Instructions of one function that share their metadata have one entry with all of their\n"
    "addresses: each is printed by itself, with the constants of all.\n";

struct options {
    struct file_options file;
    struct wanted_sections wanted;
};

struct printing {
    const struct options *options;
    struct printer printer;
    struct layout layout;
    size_t section_count;
};

/* ---- Sections ---- */

static void begin_section(struct printing *printing, const struct entry_reader *reader)
{
    struct printer *printer = &printing->printer;
    struct output *output = &printer->output;
    struct json *json = &printer->json;
    cairn_object *object = reader->input->object;
    struct cairn_object_section_header code;
    if (printer->is_json) {
        bool has_code = cairn_object_section_header(object, reader->section.linked_section, &code);
        json_line(json, 0);
        json_begin_object(json, NULL);
        write_json_member(json, reader->input);
        json_fields(json, "name %s", reader->section.name);
        json_name(json, "code", has_code ? code.name : NULL);
        json_fields(json, "schema %s", reader->wanted->text);
        json_begin_array(json, "entries");
        return;
    }
    output_text(output, printing->section_count > 0 ? "\n" : "");
    write_member(output, reader->input);
    output_format(output, HEADING "section %s" PLAIN ": %s, %s, %zu byte%s\n", reader->section.name,
                  reader->wanted->text, cairn_architecture_name(cairn_object_architecture(object)),
                  reader->section.contents.size, plural(reader->section.contents.size));
}

static void print_entry(struct printing *printing, const struct entry_reader *reader,
                        const struct section_entry *entry)
{
    struct output *output = &printing->printer.output;
    struct json *json = &printing->printer.json;
    const struct cairn_pcsection_schema *schema = &reader->wanted->schema;
    struct cairn_object_function function = {.name = NULL};
    bool is_known = layout_function(&printing->layout, entry->value.address, &function);
    uint64_t offset = entry->place.address - function.entry;
    if (printing->printer.is_json) {
        json_line(json, 1);
        json_begin_object(json, NULL);
        json_fields(json, "address %ju", entry->place.address);
        json_name(json, "section", place_section_name(&entry->place));
        json_name(json, "symbol", is_known ? function.name : NULL);
        json_optional(json, "offset", is_known, offset);
        json_optional(json, "size", schema->has_size, entry->value.size);
        write_json_constants(json, schema, &entry->value);
        json_end_object(json);
        return;
    }
    output_text(output, "  ");
    write_place(output, &entry->place);
    output_format(output, " = " NAME "%s" PLAIN, is_known ? function.name : "(no symbol)");
    if (is_known)
        output_format(output, " + 0x%jx", offset);
    if (schema->has_size)
        output_format(output, ", %ju byte%s", entry->value.size, plural(entry->value.size));
    write_constants(output, schema, &entry->value);
    output_character(output, '\n');
}

static bool print_section(struct printing *printing, const struct wanted_section *wanted,
                          const struct input *input, const struct cairn_object_section *section)
{
    struct entry_reader reader;
    struct section_entry entry;
    struct cairn_error error;
    entry_reader_open(&reader, input, &printing->layout, wanted, section);
    begin_section(printing, &reader);
    printing->section_count++;
    while (entry_reader_next(&reader, &entry, &error))
        print_entry(printing, &reader, &entry);
    if (printing->printer.is_json) {
        json_end_array(&printing->printer.json);
        json_end_object(&printing->printer.json);
    }
    return error.status == CAIRN_OK || entry_reader_complain(&reader, &error);
}

/* ---- Sections that were not found ---- */

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
    size_t left = LIST_BYTES - candidates->used;
    size_t length = strnlen(name, LIST_BYTES);
    if (length + 3 > left || candidates->count == LISTED_MAX)
        return false;
    candidates->used += (size_t)snprintf(candidates->text + candidates->used, left, "%s%s",
                                         candidates->count > 0 ? ", " : "", name);
    candidates->names[candidates->count++] = name;
    return true;
}

static bool complain_of_candidates(const struct input *input, const char *wrong)
{
    struct candidates candidates = {.used = 0};
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(input->object, i, &header); i++)
        if (is_candidate(&header) && !is_listed(&candidates, header.name) &&
            !list_name(&candidates, header.name))
            break;
    if (candidates.count > 0)
        return complain("%s: %s; these may be PC sections: %s", input->name, wrong,
                        candidates.text);
    return complain("%s: %s, and no section looks like a PC section", input->name, wrong);
}

static bool print_wanted(struct printing *printing, const struct input *input,
                         const struct wanted_section *wanted)
{
    bool is_good = true;
    struct cairn_error error = {0};
    struct cairn_object_section section = {0};
    const struct cairn_object_filter filter = {.name = wanted->name};
    while (cairn_object_next_section(input->object, &filter, &section, &error) == CAIRN_OK)
        is_good = print_section(printing, wanted, input, &section) && is_good;
    if (error.status != CAIRN_ERROR_NOT_FOUND)
        return complain("%s: %s: %s", input->name, wanted->name, error.message);
    /* A member of an archive need not have the section. */
    return section.index != 0 || input->is_member ? is_good
                                                  : complain_of_candidates(input, error.message);
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    const struct wanted_sections *wanted = &printing->options->wanted;
    if (wanted->count == 0)
        return complain_of_candidates(input, "no section is asked for");
    if (!layout_create(input, &printing->layout))
        return false;
    output_allow_names(&printing->printer.output, input->size);
    bool is_good = true;
    for (size_t i = 0; i < wanted->count; i++)
        is_good = print_wanted(printing, input, &wanted->sections[i]) && is_good;
    layout_destroy(&printing->layout);
    return is_good;
}

enum exit_status command_pcsections(int argc, char **argv)
{
    static struct printing printing;
    struct options options = {.wanted = {.count = 0}};
    struct option_values names = {.count = 0};
    struct option_values schemas = {.count = 0};
    const struct option known[] = {SECTION_OPTIONS(&names, &schemas)};
    struct command_line line = {.command = "pcsections",
                                .help = help,
                                .options = known,
                                .option_count = 2,
                                .operand_limit = 1,
                                .file = &options.file};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    if (!parse_wanted_sections("pcsections", &names, &schemas, &options.wanted))
        return EXIT_BAD_USAGE;
    printing.options = &options;
    printer_open(&printing.printer, options.file.json);
    bool is_good = visit_file(&options.file, print_object, &printing);
    if (options.wanted.count == 0)
        return EXIT_BAD_USAGE;
    if (printing.section_count > 0)
        return printer_finish(&printing.printer, is_good);
    if (is_good)
        complain("%s: no member has a section of such a name", options.file.path);
    return EXIT_BAD_INPUT;
}
