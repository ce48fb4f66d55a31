/* SPDX-License-Identifier: MIT */
#include "tools/run/listing.h"

#include "base/adapter.h"
#include "record/declarations.h"
#include "record/table.h"

#include "base/memory.h"
#include "format/manifest.h"
#include "tools/print/record.h"
#include "tools/print/stackmap.h"
#include "tools/site/text.h"

#include <cairn/cairn.h>

/* ---- Loaded modules ---- */

static void write_values(struct output *output, struct cairn_record record)
{
    struct cairn_statepoint statepoint;
    bool is_statepoint = cairn_record_statepoint(record, &statepoint, NULL) == CAIRN_OK;
    uint32_t count = cairn_record_location_count(record);
    struct location_types types = find_location_types(cairn_record_declaration(record), count,
                                                      is_statepoint ? &statepoint : NULL);
    struct cairn_liveout liveout;
    for (uint32_t i = 0; i < count; i++) {
        output_text(output, "  ");
        write_location(output, cairn_architecture_host(), i, cairn_record_location(record, i));
        write_location_type(output, &types, i);
        output_character(output, '\n');
    }
    uint32_t liveouts = 0;
    for (; record_liveout(record, liveouts, &liveout); liveouts++) {
        output_text(output, liveouts == 0 ? "  " : "");
        write_liveout(output, cairn_architecture_host(), liveouts, liveout);
    }
    if (liveouts > 0)
        output_character(output, '\n');
}

/* Returns the name of the function that begins at the address, or NULL. */
static const char *find_name(const cairn_runtime *runtime, uint64_t address)
{
    struct cairn_function function;
    return cairn_runtime_find_function(runtime, address, &function) && function.address == address
               ? function.name
               : NULL;
}

static const char *find_target_name(void *user, enum code_form form, uint64_t address,
                                    const struct instruction *instruction)
{
    (void)form;
    (void)address;
    return instruction->has_target ? find_name(user, instruction->target) : NULL;
}

static void write_record(struct output *output, struct cairn_record record,
                         const cairn_runtime *runtime, const struct code_writer *writer)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    enum cairn_record_kind kind = declaration == NULL ? CAIRN_RECORD_UNDECLARED : declaration->kind;
    uint64_t address = cairn_record_address(record);
    uint64_t function = record_function(record).address;
    const char *name = find_name(runtime, function);
    output_format(output, HEADING "%s" PLAIN " ID " NUMBER "%ju" PLAIN " at 0x%jx = " NAME,
                  record_kind_name(kind), cairn_record_id(record), address);
    if (name != NULL)
        output_name(output, name);
    else
        output_hexadecimal(output, function);
    output_format(output, PLAIN " + 0x%jx\n", address - function);
    write_values(output, record);
    cairn_site *site = cairn_record_site(record);
    if (site == NULL) {
        output_text(output, "  no site: no bytes are reserved here\n");
        return;
    }
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    write_site_summary(writer, "", &description, find_name(runtime, description.target));
    write_site_code(writer, &description, "armed", "now: the same");
}

enum exit_status list_module(const cairn_runtime *runtime, const cairn_module *module,
                             struct output *output)
{
    struct cairn_error error;
    uint32_t count = cairn_table_record_count(cairn_module_table(module));
    uint32_t site_count = 0;
    struct code_writer writer = {
        .output = output,
        .indentation = 2,
        .columns = code_columns(cairn_architecture_host()),
        .find_name = find_target_name,
        .user = (void *)(uintptr_t)runtime,
    };
    if (disassembler_create(cairn_architecture_host(), CAIRN_BYTE_ORDER_NATIVE,
                            &writer.disassembler, &error) != CAIRN_OK)
        writer.disassembler = NULL; /* only bytes are shown */
    while (cairn_module_site(module, site_count) != NULL)
        site_count++;
    output_format(output, "%u record%s, %u site%s\n", count, plural(count), site_count,
                  plural(site_count));
    for (uint32_t i = 0; i < count; i++) {
        output_character(output, '\n');
        write_record(output, (struct cairn_record){cairn_module_table(module), i}, runtime,
                     &writer);
    }
    if (count > 0)
        output_character(output, '\n');
    disassembler_destroy(writer.disassembler);
    return finish_output(output);
}

/* ---- Objects that are not loaded ---- */

static const struct cairn_object_filter manifests = {.name = MANIFEST_SECTION};

bool has_manifest(cairn_object *object)
{
    struct cairn_object_section section = {0};
    return cairn_object_next_section(object, &manifests, &section, NULL) == CAIRN_OK;
}

/* Adds the declarations of a manifest to the set. */
static enum cairn_status read_manifest(const struct cairn_section *section,
                                       cairn_declarations *declarations, struct cairn_error *error)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    struct manifest_reader reader;
    struct manifest_target target;
    struct manifest_pc_section pc_section;
    struct cairn_declaration declaration;
    enum cairn_status status = CAIRN_OK;
    manifest_reader_init(&reader, section->bytes, section->size, &allocator);
    while (status == CAIRN_OK && reader.offset < reader.size) {
        status = manifest_read_unit(&reader, &target, error);
        while (status == CAIRN_OK && reader.pc_sections_left > 0)
            status = manifest_read_pc_section(&reader, &pc_section, error);
        while (status == CAIRN_OK && reader.declarations_left > 0) {
            status = manifest_read_declaration(&reader, &declaration, error);
            if (status == CAIRN_OK)
                status = cairn_declarations_add(declarations, &declaration, error);
        }
    }
    manifest_reader_release(&reader);
    return status;
}

/* Creates the set of an object's declarations; `*declarations` is NULL if it has no manifest. */
static enum cairn_status read_declarations(cairn_object *object, cairn_declarations **declarations,
                                           struct cairn_error *error)
{
    struct cairn_object_section section = {0};
    *declarations = NULL;
    if (!has_manifest(object))
        return CAIRN_OK;
    enum cairn_status status = cairn_declarations_create(NULL, declarations, error);
    while (status == CAIRN_OK &&
           (status = cairn_object_next_section(object, &manifests, &section, error)) == CAIRN_OK)
        status = read_manifest(&section.contents, *declarations, error);
    return status == CAIRN_ERROR_NOT_FOUND ? CAIRN_OK : status;
}

enum exit_status list_object(cairn_object *object, const char *path, struct printer *printer)
{
    const struct input input = {.name = path, .object = object, .printer = printer};
    enum exit_status status = EXIT_BAD_INPUT;
    struct listing *listing = NULL;
    cairn_declarations *declarations;
    struct cairn_error error;
    struct map_check check = check_maps(&input);
    if (read_declarations(object, &declarations, &error) != CAIRN_OK) {
        complain("%s: %s", path, error.message);
    } else if (check.is_good && check.section_count == 0 && declarations != NULL) {
        output_text(&printer->output, "0 records, 0 sites\n");
        status = finish_output(&printer->output);
    } else if (check.is_valid && check.section_count == 0) {
        complain("%s: " NO_STACKMAPS, path);
    } else if (check.is_valid) {
        listing = listing_create(object, path, declarations, 0);
    }
    if (listing != NULL) {
        write_maps(&input, listing);
        status = finish_output(&printer->output);
    }
    listing_destroy(listing);
    cairn_declarations_destroy(declarations);
    return status;
}
