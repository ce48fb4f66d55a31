/*
 * cairn sanmd: the metadata that clang's -fexperimental-sanitize-metadata has written to a file.
 *
 * All sections of an object are read, and functions and accesses are sorted. Then each function is
 * printed with the accesses in it. Everything that precedes an invalid part of a section is
 * printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/command.h"
#include "tools/files.h"
#include "tools/json.h"
#include "tools/options.h"
#include "tools/sanmd_version.h"
#include "tools/words.h"

#include <cairn/sanmd.h>
#include <stdlib.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn sanmd [--json] [--debug-file PATH] FILE\n"
    "\n"
    "Prints what clang's -fexperimental-sanitize-metadata left in an ELF object, executable, "
    "shared\n"
    "library, or archive of objects: the functions that were compiled with it, what is known "
    "about\n"
    "each, and the instructions in it that are atomic accesses. FILE - is standard input.\n"
    "\n"
    "  --json    for machines: an array of functions\n"
    "              {address, section, symbol, size, features, stack_argument_bytes, atomics}\n"
    "            section:  number of the section that addresses count from, in relocatable "
    "objects;\n"
    "                      otherwise null\n"
    "            features: of \"atomics\", \"use-after-return\", \"stack arguments\"\n"
    "            atomics:  addresses\n"
    "            Accesses in none of the functions stand in an element whose address is null. In "
    "an\n"
    "            archive each element has \"file\" besides. cairn(1) has the details.\n"
    "  --debug-file PATH\n"
    "            names come from this file\n"
    "  --memory SIZE\n"
    "            how much memory the file may take, such as 500M\n"
    "  --help    this text\n";

/* ---- Contents of an object ---- */

/* An address, and the section that contains it in a relocatable object. */
struct place {
    uint32_t section;
    uint64_t address;
};

struct function {
    struct place place;
    struct cairn_sanmd_covered covered;
};

/* A growing array, which is sorted at the end. */
struct list {
    void *items;
    size_t count;
    size_t capacity;
};

struct contents {
    const struct input *input;
    struct list functions; /* items are struct function */
    struct list atomics;   /* items are struct place */
    size_t section_count;
};

static void *list_add(struct list *list, size_t item_bytes)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        void *items = realloc(list->items, capacity * item_bytes);
        if (items == NULL)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    return (char *)list->items + list->count++ * item_bytes;
}

static int compare_places(const void *left, const void *right)
{
    const struct place *one = left;
    const struct place *other = right;
    if (one->section != other->section)
        return one->section < other->section ? -1 : 1;
    return (one->address > other->address) - (one->address < other->address);
}

/* Compares functions. Empty functions come first among those at one address, so that accesses
 * belong to the last one. */
static int compare_functions(const void *left, const void *right)
{
    const struct function *one = left;
    const struct function *other = right;
    int order = compare_places(&one->place, &other->place);
    if (order != 0)
        return order;
    return (one->covered.size > other->covered.size) - (one->covered.size < other->covered.size);
}

static void sort(struct contents *contents)
{
    if (contents->functions.count > 0)
        qsort(contents->functions.items, contents->functions.count, sizeof(struct function),
              compare_functions);
    if (contents->atomics.count > 0)
        qsort(contents->atomics.items, contents->atomics.count, sizeof(struct place),
              compare_places);
}

/* ---- Reading ---- */

/* Returns the section of the address in an entry. If the relocation does not tell it (on RISC-V),
 * it is the section to which the metadata section is linked. */
static uint32_t section_of(const struct contents *contents,
                           const struct cairn_object_section *section, size_t offset)
{
    cairn_object *object = contents->input->object;
    uint32_t target = cairn_object_target_section(object, section, offset);
    if (target != 0 || !cairn_object_is_relocatable(object))
        return target;
    return section->linked_section;
}

static enum cairn_status read_function(struct contents *contents,
                                       const struct cairn_object_section *section, uint32_t version,
                                       size_t *offset, struct cairn_error *error)
{
    struct cairn_sanmd_covered covered;
    enum cairn_status status = cairn_sanmd_read_covered(&section->contents, section->address,
                                                        version, offset, &covered, error);
    if (status != CAIRN_OK)
        return status;
    struct function *function = list_add(&contents->functions, sizeof *function);
    if (function == NULL)
        return CAIRN_ERROR_MEMORY;
    *function = (struct function){{section_of(contents, section, covered.offset), covered.address},
                                  covered};
    return CAIRN_OK;
}

static enum cairn_status read_atomic(struct contents *contents,
                                     const struct cairn_object_section *section, uint32_t version,
                                     size_t *offset, struct cairn_error *error)
{
    struct cairn_sanmd_atomic atomic;
    enum cairn_status status = cairn_sanmd_read_atomic(&section->contents, section->address,
                                                       version, offset, &atomic, error);
    if (status != CAIRN_OK)
        return status;
    struct place *place = list_add(&contents->atomics, sizeof *place);
    if (place == NULL)
        return CAIRN_ERROR_MEMORY;
    *place = (struct place){section_of(contents, section, atomic.offset), atomic.address};
    return CAIRN_OK;
}

static bool read_section(struct contents *contents, const struct cairn_object_section *section)
{
    struct cairn_sanmd_format format;
    if (!cairn_sanmd_parse_name(section->name, &format))
        return true;
    contents->section_count++;
    uint32_t version = find_sanmd_version(contents->input->object, section, &format);
    for (size_t offset = 0; offset < section->contents.size;) {
        struct cairn_error error = {.offset = offset, .message = "there is not enough memory"};
        enum cairn_status status = format.kind == CAIRN_SANMD_COVERED
                                       ? read_function(contents, section, version, &offset, &error)
                                       : read_atomic(contents, section, version, &offset, &error);
        if (status == CAIRN_OK)
            continue;
        complain_of_section(contents->input, section, &error);
        return false;
    }
    return true;
}

/* Reads all sections, also after an invalid one. */
static bool read_sections(struct contents *contents)
{
    const struct cairn_object_filter filter = {.prefix = CAIRN_SANMD_PREFIX};
    struct cairn_object_section section = {0};
    struct cairn_error error;
    bool is_good = true;
    while (cairn_object_next_matching(contents->input->object, &filter, &section, &error) ==
           CAIRN_OK)
        is_good = read_section(contents, &section) && is_good;
    if (error.status == CAIRN_ERROR_NOT_FOUND)
        return is_good;
    complain("%s: %s", contents->input->name, error.message);
    return false;
}

/* ---- Printing ---- */

/* The destination of an object's functions, in either form. */
struct listing {
    bool is_json;
    size_t section_count;
    struct output *output;
    struct json json;
};

static const uint32_t all_features[] = {CAIRN_SANMD_FEATURE_ATOMICS,
                                        CAIRN_SANMD_FEATURE_USE_AFTER_RETURN,
                                        CAIRN_SANMD_FEATURE_STACK_ARGUMENTS};
enum { FEATURE_COUNT = sizeof all_features / sizeof *all_features };

static bool is_in(const struct place *place, const struct function *function)
{
    return place->section == function->place.section &&
           place->address - function->place.address < function->covered.size;
}

static const char *name_of(const struct contents *contents, const struct function *function)
{
    return cairn_object_symbol(contents->input->object, function->place.section,
                               function->place.address);
}

static void write_address(struct output *output, const struct place *place)
{
    output_hexadecimal(output, place->address);
    if (place->section != 0)
        output_format(output, " of section %u", place->section);
}

static void write_features(struct output *output, const struct cairn_sanmd_covered *covered)
{
    if (covered->features == 0)
        output_text(output, ", no features");
    for (unsigned i = 0; i < FEATURE_COUNT; i++) {
        uint32_t feature = covered->features & all_features[i];
        /* The size of the arguments is printed instead. */
        if (feature == 0 || feature == CAIRN_SANMD_FEATURE_STACK_ARGUMENTS)
            continue;
        output_text(output, ", ");
        output_text(output, cairn_sanmd_feature_name(feature));
    }
    if (covered->stack_argument_bytes == 0)
        return;
    output_text(output, ", ");
    write_count(output, covered->stack_argument_bytes, "byte", "bytes");
    output_text(output, " of stack arguments");
}

/* Writes a function, such as "f at 0x1140, 21 bytes, atomics". */
static void write_function(struct listing *listing, const struct contents *contents,
                           const struct function *function)
{
    write_name(listing->output, name_of(contents, function));
    output_text(listing->output, " at ");
    write_address(listing->output, &function->place);
    output_text(listing->output, ", ");
    write_count(listing->output, function->covered.size, "byte", "bytes");
    write_features(listing->output, &function->covered);
    output_character(listing->output, '\n');
}

/* Writes an access, such as " atomic access at 0x1146, f + 0x6". */
static void write_atomic(struct listing *listing, const struct contents *contents,
                         const struct place *place, const struct function *function)
{
    output_text(listing->output, "  atomic access at ");
    write_address(listing->output, place);
    output_text(listing->output, ", ");
    if (function != NULL)
        write_name_offset(listing->output, name_of(contents, function),
                          place->address - function->place.address);
    else
        output_text(listing->output, "in no covered function");
    output_character(listing->output, '\n');
}

static void begin_element(struct listing *listing, const struct contents *contents)
{
    json_line(&listing->json, 2);
    json_begin_object(&listing->json);
    if (!contents->input->is_member)
        return;
    json_key(&listing->json, "file");
    json_string(&listing->json, contents->input->name);
}

static void write_json_place(struct json *json, const struct place *place)
{
    json_key(json, "address");
    json_unsigned(json, place->address);
    json_key(json, "section");
    if (place->section != 0)
        json_unsigned(json, place->section);
    else
        json_null(json);
}

static void write_json_features(struct json *json, const struct cairn_sanmd_covered *covered)
{
    json_key(json, "features");
    json_begin_array(json);
    for (unsigned i = 0; i < FEATURE_COUNT; i++)
        if ((covered->features & all_features[i]) != 0)
            json_string(json, cairn_sanmd_feature_name(all_features[i]));
    json_end_array(json);
    json_key(json, "stack_argument_bytes");
    json_unsigned(json, covered->stack_argument_bytes);
}

static void write_json_function(struct listing *listing, const struct contents *contents,
                                const struct function *function)
{
    struct json *json = &listing->json;
    begin_element(listing, contents);
    write_json_place(json, &function->place);
    json_key(json, "symbol");
    write_json_name(json, name_of(contents, function));
    json_key(json, "size");
    json_unsigned(json, function->covered.size);
    write_json_features(json, &function->covered);
    json_key(json, "atomics");
    json_begin_array(json);
}

/* Writes the accesses of one section that are in no function. */
static void write_json_no_function(struct listing *listing, const struct contents *contents,
                                   const struct place *first)
{
    struct json *json = &listing->json;
    begin_element(listing, contents);
    json_key(json, "address");
    json_null(json);
    json_key(json, "section");
    if (first->section != 0)
        json_unsigned(json, first->section);
    else
        json_null(json);
    static const char *const nothing[] = {"symbol", "size", "features", "stack_argument_bytes"};
    for (unsigned i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        json_key(json, nothing[i]);
        json_null(json);
    }
    json_key(json, "atomics");
    json_begin_array(json);
}

static void end_element(struct listing *listing)
{
    json_end_array(&listing->json);
    json_end_object(&listing->json);
}

static void list_function(struct listing *listing, const struct contents *contents,
                          const struct function *function)
{
    if (listing->is_json)
        write_json_function(listing, contents, function);
    else
        write_function(listing, contents, function);
}

static void list_atomic(struct listing *listing, const struct contents *contents,
                        const struct place *place, const struct function *function)
{
    if (listing->is_json)
        json_unsigned(&listing->json, place->address);
    else
        write_atomic(listing, contents, place, function);
}

/* Lists the accesses from number `next` on that precede `function`, and so are in no function; all
 * remaining ones if `function` is NULL. Returns the number of the first access that was not
 * listed. */
static size_t list_strays(struct listing *listing, const struct contents *contents, size_t next,
                          const struct function *function)
{
    const struct place *places = contents->atomics.items;
    size_t first = next;
    for (; next < contents->atomics.count; next++) {
        if (function != NULL && compare_places(&places[next], &function->place) >= 0)
            break;
        bool is_new = next == first || places[next].section != places[next - 1].section;
        if (listing->is_json && is_new && next > first)
            end_element(listing);
        if (listing->is_json && is_new)
            write_json_no_function(listing, contents, &places[next]);
        list_atomic(listing, contents, &places[next], NULL);
    }
    if (listing->is_json && next > first)
        end_element(listing);
    return next;
}

static void list_all(struct listing *listing, const struct contents *contents)
{
    const struct function *functions = contents->functions.items;
    const struct place *places = contents->atomics.items;
    size_t next = 0;
    for (size_t i = 0; i < contents->functions.count; i++) {
        next = list_strays(listing, contents, next, &functions[i]);
        list_function(listing, contents, &functions[i]);
        for (; next < contents->atomics.count && is_in(&places[next], &functions[i]); next++)
            list_atomic(listing, contents, &places[next], &functions[i]);
        if (listing->is_json)
            end_element(listing);
    }
    list_strays(listing, contents, next, NULL);
}

/* ---- The command ---- */

static bool visit_object(const struct input *input, void *user)
{
    struct listing *listing = user;
    struct contents contents = {.input = input};
    bool is_good = read_sections(&contents);
    sort(&contents);
    output_allow_names(listing->output, input->size);
    if (!listing->is_json && contents.section_count > 0)
        write_member(listing->output, input);
    list_all(listing, &contents);
    listing->section_count += contents.section_count;
    free(contents.functions.items);
    free(contents.atomics.items);
    return is_good;
}

static enum exit_status print_file(const struct file_options *options)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    struct listing listing = {
        .is_json = options->json, .output = &output, .json = {.output = &output}};
    if (options->json)
        json_begin_array(&listing.json);
    bool is_good = visit_file(options->path, options->debug_path, options->memory_limit,
                              visit_object, &listing);
    if (options->json) {
        json_end_array(&listing.json);
        output_character(&output, '\n');
    }
    if (is_good && listing.section_count == 0) {
        complain("%s: there is no section " CAIRN_SANMD_PREFIX "…: no code was compiled with "
                 "-fexperimental-sanitize-metadata",
                 options->path);
        is_good = false;
    }
    enum exit_status status = finish_output(&output);
    return is_good ? status : EXIT_BAD_INPUT;
}

enum exit_status command_sanmd(int argc, char **argv)
{
    return print_file_with(argc, argv, "sanmd", help, print_file);
}
