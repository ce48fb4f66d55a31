/*
 * cairn stackmap: all stack maps of an ELF file.
 *
 * Everything is read and checked before the first line is printed, so that bad input gives an
 * error and nothing else.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/stackmap.h"

#include "tools/command.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn stackmap [--json] FILE\n"
    "\n"
    "Prints the stack maps of an ELF object, executable or shared library: functions with\n"
    "their frames, and under each its records with ID, address and where the live values are.\n"
    "FILE - is standard input.\n"
    "\n"
    "  --json    for machines: an array of maps\n"
    "              {version, functions, constants, records}\n"
    "            functions: {address, symbol, stack_size, record_count}\n"
    "            records:   {id, function, offset, locations, liveouts}\n"
    "            locations: {kind, dwarf, size, offset, value}\n"
    "            liveouts:  {dwarf, size}\n"
    "            Integers above 2^53 - 1 are strings of decimal digits, because a double\n"
    "            cannot hold them; all smaller ones are numbers. cairn(1) has the details.\n"
    "  --help    this text\n";

struct options {
    const char *path;
    bool json;
    bool help;
};

struct cairn_object_function mapped_function(const struct mapped *mapped, uint32_t index)
{
    const struct cairn_stackmap *map = &mapped->map;
    size_t offset = map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                    index * cairn_stackmap_function_bytes(map->version);
    return cairn_object_function(mapped->object, &mapped->section, offset);
}

bool mapped_has_record_counts(const struct mapped *mapped)
{
    return mapped->map.version > 1 || mapped->map.function_count == 1;
}

/* ---- Going through the file ---- */

static const char *const section_names[] = {CAIRN_OBJECT_STACKMAPS, CAIRN_OBJECT_STACKMAPS_DARWIN};

/* What is done with each map; `user` is the visitor's. */
typedef void visit_map(const struct mapped *mapped, void *user);

static bool visit_section(struct mapped *mapped, const char *name, const char *path,
                          visit_map *visit, void *user)
{
    const struct cairn_section *contents = &mapped->section.contents;
    size_t offset = 0;
    struct cairn_error error;
    while (offset < contents->size) {
        if (cairn_stackmap_read(contents, &offset, &mapped->map, &error) != CAIRN_OK) {
            complain("%s: %s, byte %llu: %s", path, name, (unsigned long long)error.offset,
                     error.message);
            return false;
        }
        visit(mapped, user);
        mapped->number++;
    }
    return true;
}

static bool visit_sections(cairn_object *object, const char *path, visit_map *visit, void *user,
                           size_t *section_count)
{
    struct mapped mapped = {.object = object};
    struct cairn_error error = {0};
    for (size_t i = 0; i < sizeof section_names / sizeof *section_names; i++) {
        const char *name = section_names[i];
        mapped.section = (struct cairn_object_section){0};
        while (cairn_object_next_section(object, name, &mapped.section, &error) == CAIRN_OK) {
            ++*section_count;
            if (!visit_section(&mapped, name, path, visit, user))
                return false;
        }
        if (error.status != CAIRN_ERROR_NOT_FOUND) {
            complain("%s: %s: %s", path, name, error.message);
            return false;
        }
    }
    return true;
}

static void visit_nothing(const struct mapped *mapped, void *user)
{
    (void)mapped;
    (void)user;
}

static void visit_text(const struct mapped *mapped, void *user) { write_map_text(user, mapped); }

static void visit_json(const struct mapped *mapped, void *user) { write_map_json(user, mapped); }

/* ---- The command ---- */

static bool check(cairn_object *object, const char *path)
{
    size_t section_count = 0;
    if (!visit_sections(object, path, visit_nothing, NULL, &section_count))
        return false;
    if (section_count > 0)
        return true;
    complain("%s: there is no section " CAIRN_OBJECT_STACKMAPS ": the code was compiled without "
             "stack maps, or the linker dropped them (--gc-sections, strip)",
             path);
    return false;
}

static void print(cairn_object *object, const struct options *options, struct output *output)
{
    size_t section_count = 0;
    if (!options->json) {
        visit_sections(object, options->path, visit_text, output, &section_count);
        return;
    }
    struct json json = {.output = output};
    json_begin_array(&json);
    visit_sections(object, options->path, visit_json, &json, &section_count);
    json_end_array(&json);
    output_character(output, '\n');
}

static enum exit_status print_file(const struct options *options)
{
    static struct output output;
    bool is_standard_input = strcmp(options->path, "-") == 0;
    cairn_object *object;
    struct cairn_error error;
    if (cairn_object_open(is_standard_input ? "/dev/stdin" : options->path, NULL, &object,
                          &error) != CAIRN_OK) {
        complain("%s: %s", options->path, error.message);
        return EXIT_BAD_INPUT;
    }
    enum exit_status status = EXIT_BAD_INPUT;
    if (check(object, options->path)) {
        output_open(&output, STDOUT_FILENO);
        print(object, options, &output);
        status = finish_output(&output);
    }
    cairn_object_close(object);
    return status;
}

static bool parse(int argc, char **argv, struct options *options)
{
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool is_option = !options_end && word[0] == '-' && word[1] != '\0';
        if (is_option && strcmp(word, "--") == 0) {
            options_end = true;
        } else if (is_option && strcmp(word, "--json") == 0) {
            options->json = true;
        } else if (is_option && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            options->help = true;
        } else if (is_option) {
            complain("stackmap: unknown option '%s'; see 'cairn stackmap --help'", word);
            return false;
        } else if (options->path != NULL) {
            complain("stackmap: one file at a time: '%s' is a second one", word);
            return false;
        } else {
            options->path = word;
        }
    }
    if (options->path != NULL || options->help)
        return true;
    complain("stackmap: no file is given; see 'cairn stackmap --help'");
    return false;
}

enum exit_status command_stackmap(int argc, char **argv)
{
    struct options options = {0};
    if (!parse(argc, argv, &options))
        return EXIT_BAD_USAGE;
    if (!options.help)
        return print_file(&options);
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    output_text(&output, help);
    return finish_output(&output);
}
