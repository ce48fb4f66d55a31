/*
 * cairn sanmd: the metadata that clang's -fexperimental-sanitize-metadata has written to a file.
 *
 * All sections of an object are read, and functions and accesses are sorted. Then each function is
 * printed with the accesses in it. Everything that precedes an invalid part of a section is
 * printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/sanmd_read.h"

static const char help[] =
    "usage: cairn sanmd [--json] [--debug-file PATH] FILE\n"
    "\n"
    "Prints what clang's -fexperimental-sanitize-metadata left in an ELF object, executable,\n"
    "shared library, or archive of objects: the functions that were compiled with it, what is "
    "known about\n"
    "each, and the instructions in it that are atomic accesses. FILE - is standard input.\n"
    "\n"
    "  --json    for machines: an array of functions\n"
    "              {address, section, symbol, size, features, stack_argument_bytes, atomics}\n"
    "            section:  number of the section of the addresses, which are offsets in it, in\n"
    "                      relocatable objects; otherwise null\n"
    "            features: of \"atomics\", \"use-after-return\", \"stack arguments\"\n"
    "            atomics:  addresses\n"
    "            Accesses in none of the functions are in an element whose address is null. In an\n"
    "            archive each element also has \"file\". cairn(1) has the details.\n" FILE_HELP;

/* What is being printed. */
struct printing {
    struct printer printer;
    const struct input *input;
    struct sanmd_contents contents;
    size_t section_count;
};

static const uint32_t all_features[] = {CAIRN_SANMD_FEATURE_ATOMICS,
                                        CAIRN_SANMD_FEATURE_USE_AFTER_RETURN,
                                        CAIRN_SANMD_FEATURE_STACK_ARGUMENTS};
enum { FEATURE_COUNT = sizeof all_features / sizeof *all_features };

static const char *name_of(const struct printing *printing, const struct sanmd_function *function)
{
    return cairn_object_symbol(printing->input->object, function->place.section,
                               function->place.address);
}

/* ---- Text ---- */

static void write_place(struct output *output, const struct sanmd_place *place)
{
    output_hexadecimal(output, place->address);
    if (place->section != 0)
        output_format(output, " of section %u", place->section);
}

/* Writes a function, such as "f at 0x1140, 21 bytes, atomics". */
static void write_function(struct printing *printing, const struct sanmd_function *function)
{
    struct output *output = &printing->printer.output;
    const struct cairn_sanmd_entry *covered = &function->covered;
    output_format(output, NAME "%s" PLAIN " at ", name_of(printing, function));
    write_place(output, &function->place);
    output_format(output, ", %u byte%s%s", covered->size, plural(covered->size),
                  covered->features == 0 ? ", no features" : "");
    for (unsigned i = 0; i < FEATURE_COUNT; i++) {
        uint32_t feature = covered->features & all_features[i];
        /* The size of the arguments is printed instead. */
        if (feature != 0 && feature != CAIRN_SANMD_FEATURE_STACK_ARGUMENTS)
            output_format(output, ", %s", cairn_sanmd_feature_name(feature));
    }
    if (covered->stack_argument_bytes != 0)
        output_format(output, ", %u byte%s of stack arguments", covered->stack_argument_bytes,
                      plural(covered->stack_argument_bytes));
    output_character(output, '\n');
}

/* Writes an access, such as " atomic access at 0x1146, f + 0x6". */
static void write_atomic(struct printing *printing, const struct sanmd_place *place,
                         const struct sanmd_function *function)
{
    struct output *output = &printing->printer.output;
    output_text(output, "  atomic access at ");
    write_place(output, place);
    if (function != NULL)
        output_format(output, ", " NAME "%s" PLAIN " + 0x%jx\n", name_of(printing, function),
                      place->address - function->place.address);
    else
        output_text(output, ", in no covered function\n");
}

/* ---- JSON ---- */

/* Begins an element for a function; if it is NULL, for accesses in `section` that are in no
 * function. */
static void begin_json(struct printing *printing, const struct sanmd_function *function,
                       uint32_t section)
{
    struct json *json = &printing->printer.json;
    json_line(json, 2);
    json_begin_object(json, NULL);
    write_json_member(json, printing->input);
    json_optional(json, "address", function != NULL,
                  function != NULL ? function->place.address : 0);
    json_optional(json, "section", section != 0, section);
    json_name(json, "symbol", function != NULL ? name_of(printing, function) : NULL);
    if (function != NULL) {
        json_fields(json, "size %u", function->covered.size);
        json_begin_array(json, "features");
        for (unsigned i = 0; i < FEATURE_COUNT; i++)
            if ((function->covered.features & all_features[i]) != 0)
                json_string(json, cairn_sanmd_feature_name(all_features[i]));
        json_end_array(json);
        json_fields(json, "stack_argument_bytes %u", function->covered.stack_argument_bytes);
    } else {
        json_optional(json, "size", false, 0);
        json_optional(json, "features", false, 0);
        json_optional(json, "stack_argument_bytes", false, 0);
    }
    json_begin_array(json, "atomics");
}

static void end_json(struct printing *printing)
{
    json_end_array(&printing->printer.json);
    json_end_object(&printing->printer.json);
}

/* ---- All functions and accesses ---- */

static void print_atomic(struct printing *printing, const struct sanmd_place *place,
                         const struct sanmd_function *function)
{
    if (printing->printer.is_json)
        json_unsigned(&printing->printer.json, place->address);
    else
        write_atomic(printing, place, function);
}

/* Prints the accesses from number `next` on that precede `function`, and so are in no function; all
 * remaining ones if `function` is NULL. Returns the number of the first access that was not
 * printed. */
static size_t print_strays(struct printing *printing, size_t next,
                           const struct sanmd_function *function)
{
    const struct sanmd_place *places = printing->contents.atomics.items;
    bool is_json = printing->printer.is_json;
    size_t first = next;
    for (; next < printing->contents.atomics.count; next++) {
        if (function != NULL && sanmd_compare_places(&places[next], &function->place) >= 0)
            break;
        bool is_new = next == first || places[next].section != places[next - 1].section;
        if (is_json && is_new && next > first)
            end_json(printing);
        if (is_json && is_new)
            begin_json(printing, NULL, places[next].section);
        print_atomic(printing, &places[next], NULL);
    }
    if (is_json && next > first)
        end_json(printing);
    return next;
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    struct sanmd_contents *contents = &printing->contents;
    bool is_json = printing->printer.is_json;
    printing->input = input;
    bool is_good = sanmd_read(input, contents);
    const struct sanmd_function *functions = contents->functions.items;
    const struct sanmd_place *places = contents->atomics.items;
    size_t next = 0;
    output_allow_names(&printing->printer.output, input->size);
    if (!is_json && contents->section_count > 0)
        write_member(&printing->printer.output, input);
    for (size_t i = 0; i < contents->functions.count; i++) {
        const struct sanmd_function *function = &functions[i];
        next = print_strays(printing, next, function);
        if (is_json)
            begin_json(printing, function, function->place.section);
        else
            write_function(printing, function);
        for (; next < contents->atomics.count && places[next].section == function->place.section &&
               places[next].address - function->place.address < function->covered.size;
             next++)
            print_atomic(printing, &places[next], function);
        if (is_json)
            end_json(printing);
    }
    print_strays(printing, next, NULL);
    printing->section_count += contents->section_count;
    sanmd_release(contents);
    return is_good;
}

enum exit_status command_sanmd(int argc, char **argv)
{
    static struct printing printing;
    struct file_options options = {0};
    struct command_line line = {
        .command = "sanmd", .help = help, .operand_limit = 1, .file = &options};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    printer_open(&printing.printer, options.json);
    bool is_good = visit_file(&options, print_object, &printing);
    if (is_good && printing.section_count == 0)
        is_good = complain("%s: there is no section " CAIRN_SANMD_PREFIX
                           "…: no code was compiled with -fexperimental-sanitize-metadata",
                           options.path);
    return printer_finish(&printing.printer, is_good);
}
