/*
 * cairn faultmap: all fault maps of an ELF file.
 *
 * Everything that precedes an invalid part is printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/files.h"

#include <cairn/faultmap.h>

static const char help[] =
    "usage: cairn faultmap [--json] [--debug-file PATH] FILE\n"
    "\n"
    "Prints the fault maps of an ELF object, executable, shared library or archive: each function\n"
    "with implicit null checks, and each of its instructions that may fault in place of a check,\n"
    "with the address of the instruction and of the handler, where execution continues.\n"
    "If FILE is '-', standard input is read.\n"
    "\n"
    "  --json    print an array of maps\n"
    "              map:      {version, functions}; in archives also file, the member\n"
    "              function: {address, symbol, faults}\n"
    "              fault:    {kind, faulting_address, faulting_offset, handler_address,\n"
    "                        handler_offset}\n"
    "            kind is \"load\", \"store\" or \"load and store\". Offsets are from the start of\n"
    "            the function. Integers above 2^53 - 1 are strings of decimal digits.\n" FILE_HELP;

static void print_function(struct printer *printer, const struct cairn_faultmap *map,
                           const struct cairn_faultmap_function *function,
                           const struct cairn_object_function *found)
{
    struct output *output = &printer->output;
    struct json *json = &printer->json;
    if (printer->is_json) {
        json_line(json, 2);
        json_begin_object(json, NULL);
        json_fields(json, "address %ju symbol %s", found->entry, found->name);
        json_begin_array(json, "faults");
    } else {
        output_format(output, "\n  function " NAME "%s" PLAIN " at 0x%jx, %u fault%s\n",
                      found->name, found->entry, function->fault_count,
                      plural(function->fault_count));
    }
    for (uint32_t i = 0; i < function->fault_count; i++) {
        struct cairn_fault fault = cairn_faultmap_fault(map, function, i);
        const char *kind = cairn_fault_kind_name(fault.kind);
        uint64_t address = found->entry + fault.faulting_offset;
        uint64_t handler = found->entry + fault.handler_offset;
        if (printer->is_json) {
            json_begin_object(json, NULL);
            json_fields(json,
                        "kind %s faulting_address %ju faulting_offset %u handler_address %ju "
                        "handler_offset %u",
                        kind, address, fault.faulting_offset, handler, fault.handler_offset);
            json_end_object(json);
        } else {
            output_format(output,
                          "    %s at 0x%jx = " NAME "%s" PLAIN " + 0x%x, handler at 0x%jx = " NAME
                          "%s" PLAIN " + 0x%x\n",
                          kind, address, found->name, fault.faulting_offset, handler, found->name,
                          fault.handler_offset);
        }
    }
    if (printer->is_json) {
        json_end_array(json);
        json_end_object(json);
    }
}

static void print_map(const struct input *input, const struct cairn_object_section *section,
                      const struct cairn_faultmap *map, size_t number, struct lost_addresses *lost)
{
    struct printer *printer = input->printer;
    struct cairn_faultmap_function function = {0};
    if (printer->is_json) {
        json_line(&printer->json, 0);
        json_begin_object(&printer->json, NULL);
        write_member(input);
        json_fields(&printer->json, "version %u", map->version);
        json_begin_array(&printer->json, "functions");
    } else {
        output_text(&printer->output, number > 0 ? "\n" : "");
        write_member(input);
        output_format(&printer->output,
                      HEADING "fault map %zu" PLAIN ": version %u, %s, %u function%s\n", number,
                      map->version,
                      cairn_architecture_name(cairn_object_header(input->object).architecture),
                      map->function_count, plural(map->function_count));
    }
    while (cairn_faultmap_next(map, &function)) {
        size_t offset = map->section_offset + function.offset;
        struct cairn_object_function found = cairn_object_function(input->object, section, offset);
        check_address(input->object, section, offset, lost);
        print_function(printer, map, &function, &found);
    }
    if (printer->is_json) {
        json_end_array(&printer->json);
        json_end_object(&printer->json);
    }
}

/* `user` is the number of maps printed so far. */
static bool print_section(const struct input *input, const struct cairn_object_section *section,
                          void *user)
{
    size_t *map_count = user;
    struct cairn_error error = {.status = CAIRN_OK};
    struct lost_addresses lost = {0};
    for (size_t offset = 0; offset < section->contents.size && error.status == CAIRN_OK;) {
        struct cairn_faultmap map;
        error.status = cairn_faultmap_read(&section->contents, &offset, &map, &error);
        if (error.status == CAIRN_OK || map.function_count > 0)
            print_map(input, section, &map, (*map_count)++, &lost);
    }
    if (error.status == CAIRN_OK || *map_count > 0)
        input->printer->has_output = true;
    return check_section(input, section, &lost, &error);
}

static bool print_object(const struct input *input, void *user)
{
    return visit_named_sections(input, CAIRN_FAULTMAP_SECTION, CAIRN_FAULTMAP_SECTION_DARWIN,
                                print_section, user);
}

enum exit_status command_faultmap(int argc, char **argv)
{
    size_t map_count = 0;
    struct command_line line = {.command = "faultmap", .help = help, .operand_limit = 1};
    return print_command(argc, argv, &line, print_object, &map_count,
                         "there is no section " CAIRN_FAULTMAP_SECTION
                         ": the code was compiled without implicit null checks, or linking "
                         "(--gc-sections) or strip removed the section");
}
