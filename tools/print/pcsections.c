/*
 * cairn pcsections: the entries of PC sections, by their schema.
 *
 * Everything that precedes an invalid part is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/pcsection_entries.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: cairn pcsections FILE --section NAME --schema SCHEMA [--json]\n"
    "\n"
    "Prints PC sections of an ELF object, executable, shared library or archive: the constants "
    "that\n"
    "!pcsections metadata attaches to functions and instructions. If FILE is '-', standard input\n"
    "is read.\n"
    "\n"
    "  --section NAME   print all sections with this name\n"
    "  --schema SCHEMA  the format of the entries, which the file does not contain, in words:\n"
    "              function or instruction   what entries are about; an entry for a function\n"
    "                                        contains its size\n"
    "              4 or 8                    bytes of an address: 4 in the small code model\n"
    "              u8, u16, ... u64          each constant, by its number of bits\n"
    "              !C                        the size, and constants of more than 8 bits, are\n"
    "                                        ULEB128 numbers\n"
    "            For example: 'instruction 4', 'function 4 u32 !C'. Constants that are not\n"
    "            ULEB128 numbers have 4 bytes for 24 bits, and 8 bytes for 40, 48 and 56 bits,\n"
    "            with trailing zeros: write u24 u8, u40 u24, u48 u16, u56 u8\n"
    "            Both options may be given several times, in pairs, or with one schema for all\n"
    "  --json    print an array of sections\n"
    "              section: {name, code, schema, entries}; in archives also file, the member\n"
    "              entry:   {address, section, symbol, offset, size, constants}\n"
    "            size is null for instructions. section is null unless the file is relocatable;\n"
    "            address is then an offset in that section.\n"
    "            Integers above 2^53 - 1 are strings of decimal digits.\n" FILE_HELP "\n"
    "Instructions of one function that share their metadata have one entry with all of their\n"
    "addresses. Each address is printed on its own line, with the constants.\n";

struct printing {
    struct wanted_sections wanted;
    struct layout layout;
    size_t section_count;
};

/* ---- Sections ---- */

static void begin_section(struct printing *printing, const struct entry_reader *reader)
{
    struct printer *printer = reader->input->printer;
    struct output *output = &printer->output;
    struct json *json = &printer->json;
    cairn_object *object = reader->input->object;
    struct cairn_object_section_header code;
    if (printer->is_json) {
        bool has_code = cairn_object_section_header(object, reader->section.linked_section, &code);
        json_line(json, 0);
        json_begin_object(json, NULL);
        write_member(reader->input);
        json_fields(json, "name %s", reader->section.name);
        json_name(json, "code", has_code ? code.name : NULL);
        json_fields(json, "schema %s", reader->wanted->text);
        json_begin_array(json, "entries");
        return;
    }
    output_text(output, printing->section_count > 0 ? "\n" : "");
    write_member(reader->input);
    output_format(output, HEADING "section %s" PLAIN ": %s, %s, %zu byte%s\n", reader->section.name,
                  reader->wanted->text,
                  cairn_architecture_name(cairn_object_header(object).architecture),
                  reader->section.contents.size, plural(reader->section.contents.size));
}

static void print_entry(const struct entry_reader *reader, const struct section_entry *entry)
{
    struct output *output = &reader->input->printer->output;
    struct json *json = &reader->input->printer->json;
    const struct cairn_pcsection_schema *schema = &reader->wanted->schema;
    struct cairn_object_function function = {.name = NULL};
    bool is_known = layout_function(reader->layout, entry->value.address, &function);
    uint64_t offset = entry->place.address - function.entry;
    if (reader->input->printer->is_json) {
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
    input->printer->has_output = true;
    while (entry_reader_next(&reader, &entry, &error))
        print_entry(&reader, &entry);
    if (input->printer->is_json) {
        json_end_array(&input->printer->json);
        json_end_object(&input->printer->json);
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

/* Prints an error message with the names that may be wanted, as many as fit. Each takes at least
 * three bytes of the text. */
static bool complain_of_candidates(const struct input *input, const char *wrong)
{
    enum { LIST_BYTES = 1000, LISTED_MAX = LIST_BYTES / 3 };
    struct cairn_object_section_header header;
    char text[LIST_BYTES]; /* such as "a, b, c" */
    const char *names[LISTED_MAX];
    size_t used = 0;
    size_t count = 0;
    for (uint32_t i = 1; cairn_object_section_header(input->object, i, &header); i++) {
        size_t listed = 0;
        while (listed < count && strcmp(names[listed], header.name) != 0)
            listed++;
        if (listed < count || !is_candidate(&header))
            continue;
        if (strnlen(header.name, LIST_BYTES) + 3 > LIST_BYTES - used || count == LISTED_MAX)
            break;
        used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%s", count > 0 ? ", " : "",
                                 header.name);
        names[count++] = header.name;
    }
    if (count > 0)
        return complain("%s: %s; these may be PC sections: %s", input->name, wrong, text);
    return complain("%s: %s, and no section looks like a PC section", input->name, wrong);
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    bool is_good = true;
    if (printing->wanted.count == 0)
        return complain_of_candidates(input, "--section is not given");
    if (!layout_create(input, &printing->layout))
        return false;
    for (size_t i = 0; i < printing->wanted.count; i++) {
        const struct wanted_section *wanted = &printing->wanted.sections[i];
        struct cairn_error error = {0};
        const struct cairn_object_filter filter = {.name = wanted->name};
        struct cairn_object_section section = {0};
        while (cairn_object_next_section(input->object, &filter, &section, &error) == CAIRN_OK)
            is_good = print_section(printing, wanted, input, &section) && is_good;
        if (error.status != CAIRN_ERROR_NOT_FOUND)
            is_good = complain("%s: %s: %s", input->name, wanted->name, error.message);
        else if (section.index == 0 && !input->is_member) /* a member need not have the section */
            is_good = complain_of_candidates(input, error.message);
    }
    layout_destroy(&printing->layout);
    return is_good;
}

enum exit_status command_pcsections(int argc, char **argv)
{
    struct printing printing = {.section_count = 0};
    struct section_options sections = {.names.count = 0};
    const struct option known[] = {SECTION_OPTIONS(&sections)};
    struct command_line line = {.command = "pcsections",
                                .help = help,
                                .options = known,
                                .option_count = 2,
                                .operand_limit = 1};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    if (!parse_wanted_sections("pcsections", &sections, &printing.wanted))
        return EXIT_BAD_USAGE;
    status =
        print_file(&line.file, print_object, &printing, "no member has a section of this name");
    return printing.wanted.count == 0 ? EXIT_BAD_USAGE : status;
}
