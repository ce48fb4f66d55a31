/*
 * cairn stackmap: all stack maps of an ELF file.
 *
 * Everything is read and checked before the first line is printed. Invalid input gives an error
 * message and no other output.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/stackmap.h"

#include "tools/command.h"
#include "tools/files.h"
#include "tools/options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn stackmap [--json] [--disassemble [--bytes N]] [--debug-file PATH] FILE\n"
    "\n"
    "Prints the stack maps of an ELF object, executable, shared library or archive: functions "
    "with\n"
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
    "  -d, --disassemble\n"
    "            for each record also the instructions of its site, whatever machine they are\n"
    "            for, and what Cairn would make of it as a patch point: its bytes as they are and\n"
    "            armed, or why it is none. A record does not say how many bytes belong to it: as\n"
    "            many are shown as LLVM's sequence and the no-ops after it take, up to 128,\n"
    "            and 4 instructions of other code\n"
    "  --bytes N with --disassemble: each site has N bytes\n"
    "  --debug-file PATH\n"
    "            the separate debug file with the symbols of a stripped FILE; without, it is "
    "looked\n"
    "            for where debuggers do: by build ID below /usr/lib/debug, and by .gnu_debuglink\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n";

enum { SITE_BYTES_MAX = 1 << 20 };
#define BYTES_NEEDS "a number from 1 to 1048576"

struct options {
    const char *path;
    const char *debug_path;
    uint64_t memory_limit; /* 0 for the default */
    uint32_t byte_count;   /* number of bytes of each site; 0 if unknown */
    bool disassemble;
    bool json;
    bool help;
};

static size_t function_offset(const struct cairn_stackmap *map, uint32_t index)
{
    return map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
           index * cairn_stackmap_function_bytes(map->version);
}

struct cairn_object_function mapped_function(const struct mapped *mapped, uint32_t index)
{
    return cairn_object_function(mapped->object, &mapped->section,
                                 function_offset(&mapped->map, index));
}

/* Finds the next record of the function at a higher offset, which limits the bytes of a record.
 * LLVM writes a function's records in the order of addresses. The loop runs from the last record to
 * the first and follows the `next` of records that were found before, which takes linear time in
 * total. */
static void find_next_records(struct record_place *places, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        uint32_t next = i + 1;
        while (next < count && places[next].function == places[i].function &&
               places[next].code_offset <= places[i].code_offset)
            next = places[next].next;
        bool is_found = next < count && places[next].function == places[i].function;
        places[i].next = is_found ? next : count;
    }
}

/* Finds the places of all records. False without memory, after an error message. */
static bool find_places(struct mapped *mapped, const char *path)
{
    struct cairn_stackmap_record record = {0};
    mapped->places = calloc((size_t)mapped->map.record_count + 1, sizeof *mapped->places);
    if (mapped->places == NULL) {
        complain("%s: no memory for %u records", path, mapped->map.record_count);
        return false;
    }
    for (bool more = cairn_stackmap_first(&mapped->map, &record); more;
         more = cairn_stackmap_next(&mapped->map, &record))
        mapped->places[record.index] =
            (struct record_place){.function = record.function, .code_offset = record.code_offset};
    find_next_records(mapped->places, mapped->map.record_count);
    return true;
}

static uint64_t find_next_offset(const struct mapped *mapped,
                                 const struct cairn_stackmap_record *record)
{
    uint32_t next = mapped->places[record->index].next;
    return next < mapped->map.record_count ? mapped->places[next].code_offset : UINT64_MAX;
}

struct listed_record mapped_record(const struct mapped *mapped,
                                   const struct cairn_stackmap_record *record,
                                   const struct cairn_object_function *function)
{
    return (struct listed_record){
        .id = record->id,
        .function = *function,
        .code_offset = record->code_offset,
        .next_offset = find_next_offset(mapped, record),
    };
}

bool mapped_has_record_counts(const struct mapped *mapped)
{
    return mapped->map.version > 1 || mapped->map.function_count == 1;
}

/* ---- Visiting the file ---- */

static const char *const section_names[] = {CAIRN_OBJECT_STACKMAPS, CAIRN_OBJECT_STACKMAPS_DARWIN};

/* A callback for each map. `user` is passed through. */
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
        if (mapped->listing != NULL && !find_places(mapped, path))
            return false;
        visit(mapped, user);
        free(mapped->places);
        mapped->places = NULL;
        mapped->number++;
    }
    return true;
}

static bool visit_sections(cairn_object *object, const char *path, struct listing *listing,
                           visit_map *visit, void *user, size_t *section_count)
{
    struct mapped mapped = {.object = object, .listing = listing};
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

/* The state of the first pass over the maps, which checks them and writes nothing. */
struct checking {
    const char *path;
    bool is_good;
};

/* Prints an error message about functions whose addresses have no relocations. */
static void visit_functions(const struct mapped *mapped, void *user)
{
    struct checking *checking = user;
    struct lost_addresses lost = {0};
    for (uint32_t i = 0; i < mapped->map.function_count; i++)
        check_address(mapped->object, &mapped->section, function_offset(&mapped->map, i), &lost);
    checking->is_good =
        complain_of_lost(checking->path, &mapped->section, &lost) && checking->is_good;
}

static void visit_text(const struct mapped *mapped, void *user) { write_map_text(user, mapped); }

static void visit_json(const struct mapped *mapped, void *user) { write_map_json(user, mapped); }

/* ---- The command ---- */

static void complain_of_no_maps(const char *path)
{
    complain("%s: there is no section " CAIRN_OBJECT_STACKMAPS ": the code was compiled without "
             "stack maps, or the linker dropped them (--gc-sections, strip)",
             path);
}

bool check_maps(cairn_object *object, const char *path)
{
    size_t section_count = 0;
    struct checking checking = {.path = path, .is_good = true};
    if (!visit_sections(object, path, NULL, visit_functions, &checking, &section_count))
        return false;
    if (section_count == 0)
        complain_of_no_maps(path);
    return section_count > 0;
}

void write_maps_text(cairn_object *object, const char *path, struct listing *listing,
                     struct output *output)
{
    size_t section_count = 0;
    visit_sections(object, path, listing, visit_text, output, &section_count);
}

/* The state of printing a file. It prints the maps of all members of an archive, of which some may
 * have none. */
struct printing {
    const struct options *options;
    struct output output;
    struct json json;
    size_t section_count;
    bool has_begun; /* whether the maps of an object were printed */
};

static void print_maps(struct printing *printing, const struct input *input,
                       struct listing *listing)
{
    size_t section_count = 0;
    if (!printing->options->json) {
        write_member(&printing->output, input);
        write_maps_text(input->object, input->name, listing, &printing->output);
        return;
    }
    if (!printing->has_begun)
        json_begin_array(&printing->json);
    visit_sections(input->object, input->name, listing, visit_json, &printing->json,
                   &section_count);
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    const struct options *options = printing->options;
    struct listing *listing = NULL;
    size_t section_count = 0;
    struct checking checking = {.path = input->name, .is_good = true};
    if (!visit_sections(input->object, input->name, NULL, visit_functions, &checking,
                        &section_count))
        return false;
    printing->section_count += section_count;
    output_allow_names(&printing->output, input->size);
    if (section_count == 0)
        return true;
    if (options->disassemble) {
        listing = listing_create(input->object, input->name, NULL, options->byte_count);
        if (listing == NULL)
            return false;
    }
    print_maps(printing, input, listing);
    printing->has_begun = true;
    listing_destroy(listing);
    return checking.is_good;
}

static enum exit_status print_file(const struct options *options)
{
    static struct printing printing;
    printing.options = options;
    output_open(&printing.output, STDOUT_FILENO);
    printing.json.output = &printing.output;
    bool is_good = visit_file(options->path, options->debug_path, options->memory_limit,
                              print_object, &printing);
    if (is_good && printing.section_count == 0) {
        complain_of_no_maps(options->path);
        return EXIT_BAD_INPUT;
    }
    if (options->json && printing.has_begun) {
        json_end_array(&printing.json);
        output_character(&printing.output, '\n');
    }
    enum exit_status status = finish_output(&printing.output);
    return is_good ? status : EXIT_BAD_INPUT;
}

static bool parse_byte_count(const char *word, struct options *options)
{
    char *end;
    unsigned long value = strtoul(word, &end, 0);
    if (value == 0 || value > SITE_BYTES_MAX || *end != '\0' || word[0] == '-') {
        complain("stackmap: --bytes needs " BYTES_NEEDS);
        return false;
    }
    options->byte_count = (uint32_t)value;
    return true;
}

static bool check_options(const struct command_line *line, const char *byte_count,
                          struct options *options)
{
    if (line->help)
        return true;
    if (line->operand_count == 0)
        complain("stackmap: no file is given; see 'cairn stackmap --help'");
    else if (byte_count != NULL && !options->disassemble)
        complain("stackmap: --bytes is for --disassemble, which is not given");
    else
        return byte_count == NULL || parse_byte_count(byte_count, options);
    return false;
}

static bool parse(int argc, char **argv, struct options *options)
{
    const char *byte_count = NULL;
    const struct option known[] = {
        {.name = "--bytes", .value = &byte_count, .needs = BYTES_NEEDS},
        {.name = "--debug-file", .value = &options->debug_path, .needs = "a file"},
        {.name = "--memory", .size = &options->memory_limit, .needs = MEMORY_NEEDS},
        {.name = "--disassemble", .letter = "-d", .flag = &options->disassemble},
        {.name = "--json", .flag = &options->json},
    };
    struct command_line line = {
        .command = "stackmap", .options = known, .option_count = 5, .operand_limit = 1};
    if (!parse_command_line(argc, argv, &line) || !check_options(&line, byte_count, options))
        return false;
    options->help = line.help;
    options->path = line.operands[0];
    return true;
}

enum exit_status command_stackmap(int argc, char **argv)
{
    struct options options = {0};
    if (!parse(argc, argv, &options))
        return EXIT_BAD_USAGE;
    return options.help ? print_text(help) : print_file(&options);
}
