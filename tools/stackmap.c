/*
 * cairn stackmap: all stack maps of an ELF file.
 *
 * Everything is read and checked before the first line is printed. Invalid input gives an error
 * message and no other output.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/stackmap.h"

#include <stdlib.h>

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
    "            armed, or why it is not one. A record does not say how many bytes belong to it: "
    "as\n"
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

/* ---- Records ---- */

static size_t function_offset(const struct cairn_stackmap *map, uint32_t index)
{
    return map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
           index * cairn_stackmap_function_bytes(map->version);
}

struct cairn_object_function mapped_function(const struct mapped *mapped, uint32_t index)
{
    return cairn_object_function(mapped->input->object, mapped->section,
                                 function_offset(&mapped->map, index));
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

struct listed_record mapped_record(const struct mapped *mapped,
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

bool mapped_has_record_counts(const struct mapped *mapped)
{
    return mapped->map.version > 1 || mapped->map.function_count == 1;
}

/* ---- Maps ---- */

/* The state of the first pass over the maps, which checks them and writes nothing. */
struct checking {
    size_t section_count;
    bool is_valid;
};

/* Checks that the maps of a section are valid, and that the addresses of functions have
 * relocations. */
static bool check_map_section(const struct input *input, const struct cairn_object_section *section,
                              void *user)
{
    struct checking *checking = user;
    struct cairn_error error = {.status = CAIRN_OK};
    struct cairn_stackmap map;
    bool is_good = true;
    if (!checking->is_valid)
        return false;
    checking->section_count++;
    for (size_t offset = 0; offset < section->contents.size && checking->is_valid;) {
        struct lost_addresses lost = {0};
        error.status = cairn_stackmap_read(&section->contents, &offset, &map, &error);
        checking->is_valid = error.status == CAIRN_OK;
        for (uint32_t i = 0; checking->is_valid && i < map.function_count; i++)
            check_address(input->object, section, function_offset(&map, i), &lost);
        is_good = check_section(input, section, &lost, &error) && is_good;
    }
    return is_good;
}

size_t check_maps(const struct input *input, bool *is_valid, bool *is_good)
{
    struct checking checking = {.is_valid = true};
    *is_good = visit_named_sections(input, CAIRN_OBJECT_STACKMAPS, CAIRN_OBJECT_STACKMAPS_DARWIN,
                                    check_map_section, &checking);
    *is_valid = checking.is_valid;
    return checking.section_count;
}

/* The state of the second pass. */
struct writing {
    struct mapped mapped;
    struct output *output;
    struct json *json; /* NULL for text */
};

static bool write_section(const struct input *input, const struct cairn_object_section *section,
                          void *user)
{
    struct writing *writing = user;
    struct mapped *mapped = &writing->mapped;
    struct cairn_error error;
    mapped->input = input;
    mapped->section = section;
    for (size_t offset = 0; offset < section->contents.size; mapped->number++) {
        if (cairn_stackmap_read(&section->contents, &offset, &mapped->map, &error) != CAIRN_OK ||
            (mapped->listing != NULL && !find_places(mapped)))
            return false;
        if (writing->json != NULL)
            write_map_json(writing->json, mapped);
        else
            write_map_text(writing->output, mapped);
        free(mapped->places);
        mapped->places = NULL;
    }
    return true;
}

void write_maps(const struct input *input, struct listing *listing, struct output *output,
                struct json *json)
{
    struct writing writing = {.mapped = {.listing = listing}, .output = output, .json = json};
    visit_named_sections(input, CAIRN_OBJECT_STACKMAPS, CAIRN_OBJECT_STACKMAPS_DARWIN,
                         write_section, &writing);
}

/* ---- The command ---- */

struct options {
    struct file_options file;
    uint32_t byte_count; /* number of bytes of each site; 0 if unknown */
    bool disassemble;
};

/* The state of printing a file. It prints the maps of all members of an archive, of which some may
 * have none. */
struct printing {
    const struct options *options;
    struct printer printer;
    size_t section_count;
    bool has_begun; /* whether the maps of an object were printed */
};

bool complain_of_no_maps(const char *path)
{
    return complain("%s: there is no section " CAIRN_OBJECT_STACKMAPS
                    ": the code was compiled without stack maps, or the linker dropped them "
                    "(--gc-sections, strip)",
                    path);
}

static bool print_object(const struct input *input, void *user)
{
    struct printing *printing = user;
    const struct options *options = printing->options;
    struct printer *printer = &printing->printer;
    struct listing *listing = NULL;
    bool is_valid;
    bool is_good;
    size_t section_count = check_maps(input, &is_valid, &is_good);
    if (!is_valid)
        return false;
    printing->section_count += section_count;
    output_allow_names(&printer->output, input->size);
    if (section_count == 0)
        return is_good;
    if (options->disassemble) {
        listing = listing_create(input->object, input->name, NULL, options->byte_count);
        if (listing == NULL)
            return false;
    }
    if (!printer->is_json)
        write_member(&printer->output, input);
    write_maps(input, listing, &printer->output, printer->is_json ? &printer->json : NULL);
    printing->has_begun = true;
    listing_destroy(listing);
    return is_good;
}

static enum exit_status print_file(const struct options *options)
{
    static struct printing printing;
    printing.options = options;
    printer_open(&printing.printer, options->file.json);
    bool is_good = visit_file(&options->file, print_object, &printing);
    if (is_good && printing.section_count == 0)
        is_good = complain_of_no_maps(options->file.path);
    return printing.has_begun ? printer_finish(&printing.printer, is_good) : EXIT_BAD_INPUT;
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
                                .operand_limit = 1,
                                .file = &options.file};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    if (byte_count == NULL)
        return print_file(&options);
    char *end;
    unsigned long value = strtoul(byte_count, &end, 0);
    options.byte_count = (uint32_t)value;
    if (!options.disassemble)
        complain("stackmap: --bytes is for --disassemble, which is not given");
    else if (value == 0 || value > SITE_BYTES_MAX || *end != '\0' || byte_count[0] == '-')
        complain("stackmap: --bytes needs " BYTES_NEEDS);
    else
        return print_file(&options);
    return EXIT_BAD_USAGE;
}
