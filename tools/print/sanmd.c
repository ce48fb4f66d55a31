/*
 * cairn sanmd: the metadata that clang's -fexperimental-sanitize-metadata writes.
 *
 * All sections of an object are read, and functions and accesses are sorted. Then each function is
 * printed with the accesses in it. Everything that precedes an invalid part of a section is
 * printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/sanmd.h"

#include "file/object.h"
#include "format/sanmd.h"

static const char help[] =
    "usage: cairn sanmd [--json] [--debug-file PATH] FILE\n"
    "\n"
    "Prints the sanitizer metadata of an ELF object, executable, shared library or archive, which\n"
    "clang writes with -fexperimental-sanitize-metadata: each function that was compiled with it,\n"
    "its features, and its atomic accesses. If FILE is '-', standard input is read.\n"
    "\n"
    "  --json    print an array of functions\n"
    "              {address, section, symbol, size, features, stack_argument_bytes, atomics}\n"
    "            section:  in relocatable objects, the number of the section in which addresses\n"
    "                      are offsets; otherwise null\n"
    "            features: any of \"atomics\", \"use-after-return\", \"stack arguments\"\n"
    "            atomics:  addresses of atomic accesses\n"
    "            Accesses outside all functions are in an element whose address is null. In\n"
    "            archives, each element also has file, the member.\n" FILE_HELP;

static const char *name_of(const struct input *input, const struct sanmd_function *function)
{
    return object_symbol(input->object, function->place.section, function->place.address);
}

static void write_place(struct output *output, const struct sanmd_place *place)
{
    output_hexadecimal(output, place->address);
    if (place->section != 0)
        output_format(output, " of section %u", place->section);
}

/* Writes a function, such as "f at 0x1140, 21 bytes, atomics". */
static void write_function(const struct input *input, const struct sanmd_function *function)
{
    struct output *output = &input->printer->output;
    const struct cairn_sanmd_entry *covered = &function->covered;
    output_format(output, NAME "%s" PLAIN " at ", name_of(input, function));
    write_place(output, &function->place);
    output_format(output, ", %u byte%s%s", covered->size, plural(covered->size),
                  covered->features == 0 ? ", no features" : "");
    for (unsigned i = 0; i < SANMD_FEATURE_COUNT; i++) {
        uint32_t feature = covered->features & sanmd_features[i];
        /* The size of the arguments is printed instead. */
        if (feature != 0 && feature != CAIRN_SANMD_FEATURE_STACK_ARGUMENTS)
            output_format(output, ", %s", sanmd_feature_name(feature));
    }
    if (covered->stack_argument_bytes != 0)
        output_format(output, ", %u byte%s of stack arguments", covered->stack_argument_bytes,
                      plural(covered->stack_argument_bytes));
    output_character(output, '\n');
}

/* Begins a JSON element for a function; if it is NULL, for accesses in `section` that are in no
 * function. */
static void begin_json(const struct input *input, const struct sanmd_function *function,
                       uint32_t section)
{
    struct json *json = &input->printer->json;
    const struct sanmd_function none = {0};
    const struct sanmd_function *shown = function != NULL ? function : &none;
    json_line(json, 2);
    json_begin_object(json, NULL);
    write_member(input);
    json_optional(json, "address", function != NULL, shown->place.address);
    json_optional(json, "section", section != 0, section);
    json_name(json, "symbol", function != NULL ? name_of(input, function) : NULL);
    json_optional(json, "size", function != NULL, shown->covered.size);
    if (function != NULL)
        write_json_features(json, shown->covered.features);
    else
        json_name(json, "features", NULL);
    json_optional(json, "stack_argument_bytes", function != NULL,
                  shown->covered.stack_argument_bytes);
    json_begin_array(json, "atomics");
}

static void end_json(const struct input *input)
{
    json_end_array(&input->printer->json);
    json_end_object(&input->printer->json);
}

/* Prints an access, such as " atomic access at 0x1146, f + 0x6". */
static void print_atomic(const struct input *input, const struct sanmd_place *place,
                         const struct sanmd_function *function)
{
    struct output *output = &input->printer->output;
    if (input->printer->is_json) {
        json_unsigned(&input->printer->json, place->address);
        return;
    }
    output_text(output, "  atomic access at ");
    write_place(output, place);
    if (function != NULL)
        output_format(output, ", " NAME "%s" PLAIN " + 0x%jx\n", name_of(input, function),
                      place->address - function->place.address);
    else
        output_text(output, ", in no covered function\n");
}

/* Prints the accesses from number `next` on that precede `function`, and so are in no function; all
 * remaining ones if `function` is NULL. Returns the number of the first access that was not
 * printed. */
static size_t print_strays(const struct input *input, const struct sanmd_contents *contents,
                           size_t next, const struct sanmd_function *function)
{
    const struct sanmd_place *places = contents->atomics.items;
    bool is_json = input->printer->is_json;
    size_t first = next;
    for (; next < contents->atomics.count; next++) {
        if (function != NULL && sanmd_compare_places(&places[next], &function->place) >= 0)
            break;
        bool is_new = next == first || places[next].section != places[next - 1].section;
        if (is_json && is_new && next > first)
            end_json(input);
        if (is_json && is_new)
            begin_json(input, NULL, places[next].section);
        print_atomic(input, &places[next], NULL);
    }
    if (is_json && next > first)
        end_json(input);
    return next;
}

static bool print_object(const struct input *input, void *user)
{
    struct sanmd_contents contents;
    bool is_json = input->printer->is_json;
    bool is_good = sanmd_read(input, &contents);
    const struct sanmd_function *functions = contents.functions.items;
    const struct sanmd_place *places = contents.atomics.items;
    size_t next = 0;
    (void)user;
    input->printer->has_output |= contents.section_count > 0;
    if (!is_json && contents.section_count > 0)
        write_member(input);
    for (size_t i = 0; i < contents.functions.count; i++) {
        const struct sanmd_function *function = &functions[i];
        next = print_strays(input, &contents, next, function);
        if (is_json)
            begin_json(input, function, function->place.section);
        else
            write_function(input, function);
        for (; next < contents.atomics.count && places[next].section == function->place.section &&
               places[next].address - function->place.address < function->covered.size;
             next++)
            print_atomic(input, &places[next], function);
        if (is_json)
            end_json(input);
    }
    print_strays(input, &contents, next, NULL);
    sanmd_release(&contents);
    return is_good;
}

enum exit_status command_sanmd(int argc, char **argv)
{
    struct command_line line = {.command = "sanmd", .help = help, .operand_limit = 1};
    return print_command(argc, argv, &line, print_object, NULL,
                         "there are no sections " CAIRN_SANMD_PREFIX
                         "*: no code was compiled with -fexperimental-sanitize-metadata");
}
