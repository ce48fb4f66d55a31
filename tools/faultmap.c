/*
 * cairn faultmap: all fault maps of an ELF file.
 *
 * Everything that precedes an invalid part is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/command.h"
#include "tools/files.h"
#include "tools/options.h"
#include "tools/words.h"

#include <cairn/faultmap.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn faultmap [--json] [--debug-file PATH] FILE\n"
    "\n"
    "Prints the fault maps of an ELF object, executable or shared library: functions with "
    "implicit\n"
    "null checks, and for each of their instructions that may fault instead of a check where it "
    "is\n"
    "and where the code goes on if it does. FILE - is standard input.\n"
    "\n"
    "  --json    for machines: an array of maps\n"
    "              {version, functions}, of an archive's member also file\n"
    "            functions: {address, symbol, faults}\n"
    "            faults:    {kind, faulting_address, faulting_offset, handler_address,\n"
    "                        handler_offset}\n"
    "            kind is \"load\", \"store\" or \"load and store\"; offsets count from the\n"
    "            function's begin. Integers above 2^53 - 1 are strings of decimal digits\n"
    "  --debug-file PATH\n"
    "            names come from this file\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n";

/* A map with its origin. */
struct mapped {
    const struct input *input;
    struct cairn_object_section section;
    struct cairn_faultmap map;
};

struct printing {
    struct output *output;
    struct json *json; /* NULL for text */
    size_t map_count;
    bool has_section;
};

static struct cairn_object_function find_function(const struct mapped *mapped,
                                                  const struct cairn_faultmap_function *function)
{
    size_t offset = mapped->map.section_offset + function->offset;
    return cairn_object_function(mapped->input->object, &mapped->section, offset);
}

/* ---- Text ---- */

static void write_place(struct output *output, const struct cairn_object_function *function,
                        uint32_t offset)
{
    output_hexadecimal(output, function->entry + offset);
    output_text(output, " = ");
    write_name_offset(output, function->name, offset);
}

static void write_function_text(struct output *output, const struct mapped *mapped,
                                const struct cairn_faultmap_function *function)
{
    struct cairn_object_function found = find_function(mapped, function);
    output_text(output, "\n  function ");
    write_name(output, found.name);
    output_text(output, " at ");
    output_hexadecimal(output, found.entry);
    output_text(output, ", ");
    write_count(output, function->fault_count, "fault", "faults");
    output_character(output, '\n');
    for (uint32_t i = 0; i < function->fault_count; i++) {
        struct cairn_fault fault = cairn_faultmap_fault(&mapped->map, function, i);
        output_text(output, "    ");
        output_text(output, cairn_fault_kind_name(fault.kind));
        output_text(output, " at ");
        write_place(output, &found, fault.faulting_offset);
        output_text(output, ", handler at ");
        write_place(output, &found, fault.handler_offset);
        output_character(output, '\n');
    }
}

static void write_heading(struct output *output, const struct mapped *mapped, size_t number)
{
    if (number > 0)
        output_character(output, '\n');
    write_member(output, mapped->input);
    output_style(output, STYLE_HEADING);
    output_text(output, "fault map ");
    output_unsigned(output, number);
    output_style(output, STYLE_PLAIN);
    output_text(output, ": version ");
    output_unsigned(output, mapped->map.version);
    output_text(output, ", ");
    output_text(output, cairn_architecture_name(cairn_object_architecture(mapped->input->object)));
    output_text(output, ", ");
    write_count(output, mapped->map.function_count, "function", "functions");
    output_character(output, '\n');
}

/* ---- JSON ---- */

static void write_fault_json(struct json *json, uint64_t entry, struct cairn_fault fault)
{
    json_begin_object(json);
    json_key(json, "kind");
    json_string(json, cairn_fault_kind_name(fault.kind));
    json_key(json, "faulting_address");
    json_unsigned(json, entry + fault.faulting_offset);
    json_key(json, "faulting_offset");
    json_unsigned(json, fault.faulting_offset);
    json_key(json, "handler_address");
    json_unsigned(json, entry + fault.handler_offset);
    json_key(json, "handler_offset");
    json_unsigned(json, fault.handler_offset);
    json_end_object(json);
}

static void write_function_json(struct json *json, const struct mapped *mapped,
                                const struct cairn_faultmap_function *function)
{
    struct cairn_object_function found = find_function(mapped, function);
    json_line(json, 2);
    json_begin_object(json);
    json_key(json, "address");
    json_unsigned(json, found.entry);
    json_key(json, "symbol");
    write_json_name(json, found.name);
    json_key(json, "faults");
    json_begin_array(json);
    for (uint32_t i = 0; i < function->fault_count; i++)
        write_fault_json(json, found.entry, cairn_faultmap_fault(&mapped->map, function, i));
    json_end_array(json);
    json_end_object(json);
}

static void begin_map_json(struct json *json, const struct mapped *mapped)
{
    json_line(json, 0);
    json_begin_object(json);
    write_json_member(json, mapped->input);
    json_key(json, "version");
    json_unsigned(json, mapped->map.version);
    json_key(json, "functions");
    json_begin_array(json);
}

static void end_map_json(struct json *json)
{
    json_end_array(json);
    json_end_object(json);
}

/* ---- Visiting the file ---- */

static void print_map(const struct mapped *mapped, struct printing *printing,
                      struct lost_addresses *lost)
{
    struct json *json = printing->json;
    struct cairn_faultmap_function function;
    if (json != NULL)
        begin_map_json(json, mapped);
    else
        write_heading(printing->output, mapped, printing->map_count);
    printing->map_count++;
    for (bool more = cairn_faultmap_first(&mapped->map, &function); more;
         more = cairn_faultmap_next(&mapped->map, &function)) {
        check_address(mapped->input->object, &mapped->section,
                      mapped->map.section_offset + function.offset, lost);
        if (json != NULL)
            write_function_json(json, mapped, &function);
        else
            write_function_text(printing->output, mapped, &function);
    }
    if (json != NULL)
        end_map_json(json);
}

static bool print_section(struct mapped *mapped, struct printing *printing)
{
    const struct cairn_section *contents = &mapped->section.contents;
    size_t offset = 0;
    struct cairn_error error;
    struct lost_addresses lost = {0};
    while (offset < contents->size) {
        enum cairn_status status = cairn_faultmap_read(contents, &offset, &mapped->map, &error);
        if (status == CAIRN_OK || mapped->map.function_count > 0)
            print_map(mapped, printing, &lost);
        if (status == CAIRN_OK)
            continue;
        complain_of_section(mapped->input, &mapped->section, &error);
        (void)complain_of_lost(mapped->input->name, &mapped->section, &lost);
        return false;
    }
    return complain_of_lost(mapped->input->name, &mapped->section, &lost);
}

static bool print_sections(const struct input *input, const char *name, struct printing *printing)
{
    bool is_good = true;
    struct mapped mapped = {.input = input};
    struct cairn_error error = {0};
    while (cairn_object_next_section(input->object, name, &mapped.section, &error) == CAIRN_OK) {
        printing->has_section = true;
        is_good = print_section(&mapped, printing) && is_good;
    }
    if (error.status == CAIRN_ERROR_NOT_FOUND)
        return is_good;
    complain("%s: %s: %s", input->name, name, error.message);
    return false;
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    output_allow_names(printing->output, input->size);
    bool is_good = print_sections(input, CAIRN_FAULTMAP_SECTION, printing);
    return print_sections(input, CAIRN_FAULTMAP_SECTION_DARWIN, printing) && is_good;
}

static enum exit_status print_file(const struct file_options *options)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    struct json json = {.output = &output};
    struct printing printing = {.output = &output, .json = options->json ? &json : NULL};
    if (options->json)
        json_begin_array(&json);
    bool is_good = visit_file(options->path, options->debug_path, options->memory_limit,
                              print_object, &printing);
    if (is_good && !printing.has_section) {
        complain("%s: there is no section " CAIRN_FAULTMAP_SECTION ": the code was compiled "
                 "without implicit null checks, or the linker dropped them (--gc-sections, strip)",
                 options->path);
        return EXIT_BAD_INPUT;
    }
    if (!is_good && printing.map_count == 0)
        return EXIT_BAD_INPUT;
    if (options->json) {
        json_end_array(&json);
        output_character(&output, '\n');
    }
    enum exit_status status = finish_output(&output);
    return is_good ? status : EXIT_BAD_INPUT;
}

/* ---- The command ---- */

enum exit_status command_faultmap(int argc, char **argv)
{
    return print_file_with(argc, argv, "faultmap", help, print_file);
}
