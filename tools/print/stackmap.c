/*
 * cairn stackmap: all stack maps of an ELF file, as text, with the records of each function; or as
 * JSON, with one line for each function and each record.
 *
 * Everything is read and checked before the first line is printed. Invalid input gives an error
 * message and no other output.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/print/stackmap.h"

#include "record/declarations.h"

#include "tools/print/record.h"

#include <stdlib.h>

static const char help[] =
    "usage: cairn stackmap [--json] [--disassemble [--bytes N]] [--debug-file PATH] FILE\n"
    "\n"
    "Prints the stack maps of an ELF object, executable, shared library or archive: each function\n"
    "with its frame size, and its records with ID, address, and the locations of live values.\n"
    "If FILE is '-', standard input is read.\n"
    "\n"
    "  --json    print an array of maps\n"
    "              map:      {version, functions, constants, records}\n"
    "              function: {address, symbol, stack_size, record_count}\n"
    "              record:   {id, function, offset, locations, liveouts}\n"
    "              location: {kind, dwarf, size, offset, value}\n"
    "              liveout:  {dwarf, size}\n"
    "            Integers above 2^53 - 1 are strings of decimal digits, because a double cannot\n"
    "            hold them. cairn-json(5) explains all fields.\n"
    "  -d, --disassemble\n"
    "            also print the instructions at each record, for any architecture, and how Cairn\n"
    "            would use them as a patch point: the bytes as emitted and as armed, or the\n"
    "            reason why they are not a patch point. A record does not contain its size: the\n"
    "            instructions that LLVM emits for a patch point and the following no-ops are\n"
    "            taken, up to 128 bytes; of other code, 4 instructions are printed\n"
    "  --bytes N with --disassemble: the size of every site is N bytes\n" FILE_HELP "\n"
    "Without --debug-file, the debug file of a stripped FILE is searched for by its build ID in\n"
    "/usr/lib/debug and by its .gnu_debuglink, as debuggers do.\n";

enum { SITE_BYTES_MAX = 1 << 20 };
#define BYTES_NEEDS "a number from 1 to 1048576"

/* A record's place, and the record that follows it. */
struct record_place {
    uint32_t function;
    uint32_t code_offset;
    uint32_t next; /* number of the function's next record at a higher offset, or the number of
                      records */
};

/* A map with its origin. */
struct mapped {
    const struct input *input;
    struct listing *listing; /* NULL if sites are not shown */
    const struct cairn_object_section *section;
    struct cairn_stackmap map;
    size_t number;               /* number among the file's maps, from 0 */
    struct record_place *places; /* places of the map's records, if there is a listing */
};

/* ---- Functions and records ---- */

static size_t function_offset(const struct cairn_stackmap *map, uint32_t index)
{
    return map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
           index * cairn_stackmap_function_bytes(map->version);
}

/* Returns function number `index` of a map, with its name. */
static struct cairn_object_function mapped_function(const struct mapped *mapped, uint32_t index)
{
    return cairn_object_function(mapped->input->object, mapped->section,
                                 function_offset(&mapped->map, index));
}

/* Whether the map contains how many records each function has. Maps of version 1 do not, unless
 * they have only one function. */
static bool has_record_counts(const struct mapped *mapped)
{
    return mapped->map.version > 1 || mapped->map.function_count == 1;
}

/* Finds the places of all records, and for each the next record of its function at a higher offset,
 * which limits the bytes of a record. LLVM writes a function's records in the order of addresses.
 * The second loop runs from the last record to the first and follows the `next` of records that
 * were found before, which takes linear time in total. False without memory, after an error
 * message. */
static bool find_places(struct mapped *mapped)
{
    uint32_t count = mapped->map.record_count;
    struct cairn_stackmap_record record = {0};
    struct record_place *places = calloc((size_t)count + 1, sizeof *places);
    if (places == NULL)
        return complain("%s: no memory for %u records", mapped->input->name, count);
    while (cairn_stackmap_next(&mapped->map, &record))
        places[record.index] =
            (struct record_place){.function = record.function, .code_offset = record.code_offset};
    for (uint32_t i = count; i-- > 0;) {
        uint32_t next = i + 1;
        while (next < count && places[next].function == places[i].function &&
               places[next].code_offset <= places[i].code_offset)
            next = places[next].next;
        bool is_found = next < count && places[next].function == places[i].function;
        places[i].next = is_found ? next : count;
    }
    mapped->places = places;
    return true;
}

/* Returns a record in the form that listings take. */
static struct listed_record listed(const struct mapped *mapped,
                                   const struct cairn_stackmap_record *record,
                                   const struct cairn_object_function *function)
{
    uint32_t next = mapped->places[record->index].next;
    return (struct listed_record){
        .id = record->id,
        .function = *function,
        .code_offset = record->code_offset,
        .next_offset =
            next < mapped->map.record_count ? mapped->places[next].code_offset : UINT64_MAX,
    };
}

/* ---- Text ---- */

static void write_function_text(struct output *output, const struct mapped *mapped, uint32_t index)
{
    struct cairn_stackmap_function function = cairn_stackmap_function(&mapped->map, index);
    struct cairn_object_function found = mapped_function(mapped, index);
    output_format(output, "\n  function " NAME "%s" PLAIN " at 0x%jx", found.name,
                  function.address);
    if (found.entry != function.address)
        output_format(output, " (a descriptor; its code is at 0x%jx)", found.entry);
    output_text(output, ", ");
    write_frame(output, function.stack_size);
    if (has_record_counts(mapped))
        output_format(output, ", %ju record%s", function.record_count,
                      plural(function.record_count));
    output_character(output, '\n');
}

static void write_record_text(struct output *output, const struct mapped *mapped,
                              const struct cairn_stackmap_record *record,
                              const struct cairn_object_function *function)
{
    enum cairn_architecture architecture = cairn_object_header(mapped->input->object).architecture;
    const struct cairn_declaration *declaration = listing_declaration(mapped->listing, record->id);
    struct cairn_statepoint statepoint;
    output_text(output, "    ");
    if (declaration != NULL)
        output_format(output, "%s ", record_kind_name(declaration->kind));
    output_format(output, "ID " NUMBER "%ju" PLAIN, record->id);
    if (function != NULL)
        output_format(output, " at 0x%jx = " NAME "%s" PLAIN " + 0x%x\n",
                      function->entry + record->code_offset, function->name, record->code_offset);
    else
        output_format(output, " at an unknown function + 0x%x\n", record->code_offset);
    bool is_statepoint =
        cairn_stackmap_statepoint(&mapped->map, record, &statepoint, NULL) == CAIRN_OK;
    struct location_types types = find_location_types(declaration, record->location_count,
                                                      is_statepoint ? &statepoint : NULL);
    for (uint16_t i = 0; i < record->location_count; i++) {
        output_text(output, "      ");
        write_location(output, architecture, i, cairn_stackmap_location(&mapped->map, record, i));
        write_location_type(output, &types, i);
        output_character(output, '\n');
    }
    if (record->liveout_count > 0)
        output_text(output, "      ");
    for (uint16_t i = 0; i < record->liveout_count; i++)
        write_liveout(output, architecture, i, cairn_stackmap_liveout(&mapped->map, record, i));
    if (record->liveout_count > 0)
        output_character(output, '\n');
    if (mapped->listing == NULL || function == NULL)
        return;
    struct listed_record item = listed(mapped, record, function);
    write_listed_text(mapped->listing, &item, output);
}

/* Writes a map. A function is written before its first record, so that functions without records,
 * and those whose records are unknown, also appear once and in order. */
static void write_map_text(struct output *output, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    struct cairn_object_function function = {0};
    struct cairn_stackmap_record record = {0};
    uint32_t written = 0;
    /* A line break in an argument of output_format would be escaped. */
    output_text(output, mapped->number > 0 ? "\n" : "");
    output_format(output,
                  HEADING "stack map %zu" PLAIN
                          ": version %u, %s, %u function%s, %u large constant%s, %u record%s\n",
                  mapped->number, map->version,
                  cairn_architecture_name(cairn_object_header(mapped->input->object).architecture),
                  map->function_count, plural(map->function_count), map->constant_count,
                  plural(map->constant_count), map->record_count, plural(map->record_count));
    while (cairn_stackmap_next(map, &record)) {
        bool is_known = record.function != CAIRN_STACKMAP_NO_FUNCTION;
        uint32_t end = is_known ? record.function + 1 : map->function_count;
        for (; written < end; written++) {
            write_function_text(output, mapped, written);
            function = mapped_function(mapped, written);
        }
        write_record_text(output, mapped, &record, is_known ? &function : NULL);
    }
    for (; written < map->function_count; written++)
        write_function_text(output, mapped, written);
}

/* ---- JSON ---- */

static void write_record_json(struct json *json, const struct mapped *mapped,
                              const struct cairn_stackmap_record *record)
{
    const struct cairn_stackmap *map = &mapped->map;
    bool has_function = record->function != CAIRN_STACKMAP_NO_FUNCTION;
    json_line(json, 4);
    json_begin_object(json, NULL);
    json_fields(json, "id %ju", record->id);
    json_optional(json, "function", has_function, record->function);
    json_fields(json, "offset %u", record->code_offset);
    json_begin_array(json, "locations");
    for (uint16_t i = 0; i < record->location_count; i++)
        write_location_json(json, cairn_stackmap_location(map, record, i));
    json_end_array(json);
    json_begin_array(json, "liveouts");
    for (uint16_t i = 0; i < record->liveout_count; i++)
        write_liveout_json(json, cairn_stackmap_liveout(map, record, i));
    json_end_array(json);
    if (mapped->listing != NULL && !has_function) {
        json_optional(json, "site", false, 0);
    } else if (mapped->listing != NULL) {
        struct cairn_object_function function = mapped_function(mapped, record->function);
        struct listed_record item = listed(mapped, record, &function);
        json_key(json, "site");
        write_listed_json(mapped->listing, &item, json);
    }
    json_end_object(json);
}

static void write_map_json(struct json *json, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    struct cairn_stackmap_record record = {0};
    json_line(json, 0);
    json_begin_object(json, NULL);
    json_fields(json, "version %u", map->version);
    json_line(json, 1);
    json_begin_array(json, "functions");
    for (uint32_t i = 0; i < map->function_count; i++) {
        struct cairn_stackmap_function function = cairn_stackmap_function(map, i);
        json_line(json, 4);
        json_begin_object(json, NULL);
        json_fields(json, "address %ju symbol %s stack_size %ju", function.address,
                    mapped_function(mapped, i).name, function.stack_size);
        json_optional(json, "record_count", has_record_counts(mapped), function.record_count);
        json_end_object(json);
    }
    json_end_array(json);
    json_line(json, 1);
    json_begin_array(json, "constants");
    for (uint32_t i = 0; i < map->constant_count; i++)
        json_unsigned(json, cairn_stackmap_constant(map, i));
    json_end_array(json);
    json_line(json, 1);
    json_begin_array(json, "records");
    while (cairn_stackmap_next(map, &record))
        write_record_json(json, mapped, &record);
    json_end_array(json);
    json_end_object(json);
}

/* ---- All maps ---- */

/* `user` is a struct map_check. After the first invalid map, nothing is read. */
static bool check_map_section(const struct input *input, const struct cairn_object_section *section,
                              void *user)
{
    struct map_check *check = user;
    struct cairn_error error = {.status = CAIRN_OK};
    struct cairn_stackmap map;
    bool is_good = check->is_valid;
    check->section_count += check->is_valid;
    for (size_t offset = 0; offset < section->contents.size && check->is_valid;) {
        struct lost_addresses lost = {0};
        error.status = cairn_stackmap_read(&section->contents, &offset, &map, &error);
        check->is_valid = error.status == CAIRN_OK;
        for (uint32_t i = 0; check->is_valid && i < map.function_count; i++)
            check_address(input->object, section, function_offset(&map, i), &lost);
        is_good = check_section(input, section, &lost, &error) && is_good;
    }
    return is_good;
}

struct map_check check_maps(const struct input *input)
{
    struct map_check check = {.is_valid = true};
    check.is_good = visit_named_sections(input, CAIRN_OBJECT_STACKMAPS,
                                         CAIRN_OBJECT_STACKMAPS_DARWIN, check_map_section, &check);
    return check;
}

static bool write_section(const struct input *input, const struct cairn_object_section *section,
                          void *user)
{
    struct mapped *mapped = user;
    struct cairn_error error;
    mapped->section = section;
    for (size_t offset = 0; offset < section->contents.size; mapped->number++) {
        if (cairn_stackmap_read(&section->contents, &offset, &mapped->map, &error) != CAIRN_OK ||
            (mapped->listing != NULL && !find_places(mapped)))
            return false;
        if (input->printer->is_json)
            write_map_json(&input->printer->json, mapped);
        else
            write_map_text(&input->printer->output, mapped);
        free(mapped->places);
        mapped->places = NULL;
    }
    return true;
}

void write_maps(const struct input *input, struct listing *listing)
{
    struct mapped mapped = {.input = input, .listing = listing};
    visit_named_sections(input, CAIRN_OBJECT_STACKMAPS, CAIRN_OBJECT_STACKMAPS_DARWIN,
                         write_section, &mapped);
}

/* ---- The command ---- */

struct options {
    uint32_t byte_count; /* number of bytes of each site; 0 if unknown */
    bool disassemble;
};

/* Members of an archive may have no maps. */
static bool print_object(const struct input *input, void *user)
{
    const struct options *options = user;
    struct listing *listing = NULL;
    struct map_check check = check_maps(input);
    if (!check.is_valid || check.section_count == 0)
        return check.is_valid && check.is_good;
    if (options->disassemble) {
        listing = listing_create(input->object, input->name, NULL, options->byte_count);
        if (listing == NULL)
            return false;
    }
    input->printer->has_output = true;
    if (!input->printer->is_json)
        write_member(input);
    write_maps(input, listing);
    listing_destroy(listing);
    return check.is_good;
}

enum exit_status command_stackmap(int argc, char **argv)
{
    struct options options = {.byte_count = 0};
    const char *byte_count = NULL;
    const struct option known[] = {
        {.name = "--bytes", .value = &byte_count, .needs = BYTES_NEEDS},
        {.name = "--disassemble", .letter = "-d", .flag = &options.disassemble},
    };
    struct command_line line = {.command = "stackmap",
                                .help = help,
                                .options = known,
                                .option_count = 2,
                                .operand_limit = 1};
    enum exit_status status;
    char *end;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    unsigned long value = byte_count != NULL ? strtoul(byte_count, &end, 0) : 0;
    options.byte_count = (uint32_t)value;
    if (byte_count != NULL && !options.disassemble)
        complain("stackmap: --bytes needs --disassemble, which is not given");
    else if (byte_count != NULL &&
             (value == 0 || value > SITE_BYTES_MAX || *end != '\0' || byte_count[0] == '-'))
        complain("stackmap: --bytes needs " BYTES_NEEDS);
    else
        return print_file(&line.file, print_object, &options, NO_STACKMAPS);
    return EXIT_BAD_USAGE;
}
