/* SPDX-License-Identifier: MIT */
#include "tools/run_listing.h"

#include "tools/record_text.h"
#include "tools/site_text.h"
#include "tools/stackmap.h"
#include "llvm/scan.h"

#include <cairn/cairn.h>

/* ---- Error messages ---- */

void complain_about_finding(const struct cairn_finding *finding, void *user)
{
    struct findings *findings = user;
    complain("%s: %s", findings->path, finding->sentence);
    findings->any = true;
}

enum exit_status complain_about(const struct findings *findings, const struct cairn_error *error)
{
    if (error->status == CAIRN_ERROR_CONFLICT)
        complain("%s: %s: use '--id-conflicts renumber' or '--id-conflicts undeclared'",
                 findings->path, error->message);
    else if (error->status != CAIRN_ERROR_LLVM || !findings->any)
        complain("%s: %s", findings->path, error->message);
    return EXIT_BAD_INPUT;
}

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
    for (; cairn_record_liveout(record, liveouts, &liveout); liveouts++) {
        output_text(output, liveouts == 0 ? "  " : "");
        write_liveout(output, cairn_architecture_host(), liveouts, liveout);
    }
    if (liveouts > 0)
        output_character(output, '\n');
}

static const char *find_target_name(void *user, enum code_form form, uint64_t address,
                                    const struct instruction *instruction)
{
    (void)form;
    (void)address;
    return instruction->has_target ? program_names_find(user, instruction->target) : NULL;
}

static void write_record(struct output *output, struct cairn_record record,
                         const struct program_names *names, const struct code_writer *writer)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    enum cairn_record_kind kind = declaration == NULL ? CAIRN_RECORD_UNDECLARED : declaration->kind;
    uint64_t address = cairn_record_address(record);
    uint64_t function = cairn_record_function(record).address;
    const char *name = program_names_find(names, function);
    output_format(output, HEADING "%s" PLAIN " ID " NUMBER "%ju" PLAIN " at 0x%jx = " NAME,
                  cairn_record_kind_name(kind), cairn_record_id(record), address);
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
    write_site_summary(writer, "", &description, program_names_find(names, description.target));
    write_site_code(writer, &description, "armed", "now: the same");
}

enum exit_status list_module(const cairn_module *module, struct program *program,
                             cairn_engine *engine, const char *path, struct output *output)
{
    const struct findings findings = {.path = path};
    struct cairn_error error;
    struct program_names names;
    uint32_t count = module == NULL ? 0 : cairn_table_record_count(cairn_module_table(module));
    uint32_t site_count = module == NULL ? 0 : cairn_module_site_count(module);
    struct code_writer writer = {
        .output = output,
        .indentation = 2,
        .columns = code_columns(cairn_architecture_host()),
        .find_name = find_target_name,
        .user = &names,
    };
    if (module != NULL && program_names_read(program, engine, &names, &error) != CAIRN_OK)
        return complain_about(&findings, &error);
    if (disassembler_create(cairn_architecture_host(), cairn_byte_order_host(),
                            &writer.disassembler, &error) != CAIRN_OK)
        writer.disassembler = NULL; /* only bytes are shown */
    output_format(output, "%u record%s, %u site%s\n", count, plural(count), site_count,
                  plural(site_count));
    for (uint32_t i = 0; i < count; i++) {
        output_character(output, '\n');
        write_record(output, (struct cairn_record){cairn_module_table(module), i}, &names, &writer);
    }
    if (count > 0)
        output_character(output, '\n');
    disassembler_destroy(writer.disassembler);
    if (module != NULL)
        program_names_release(&names);
    return finish_output(output);
}

/* ---- Objects and programs for other architectures ---- */

/* Lists the object's records. Destroys the object. */
static enum exit_status list(cairn_object *object, const char *path,
                             const cairn_declarations *declarations, struct printer *printer)
{
    const struct input input = {.name = path, .object = object, .printer = printer};
    enum exit_status status = EXIT_BAD_INPUT;
    struct map_check check = check_maps(&input);
    struct listing *listing = NULL;
    if (check.is_good && check.section_count == 0 && declarations != NULL) {
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
    cairn_object_destroy(object);
    return status;
}

enum exit_status list_object(const char *path, struct printer *printer)
{
    const struct findings findings = {.path = path};
    cairn_object *object;
    struct cairn_error error;
    if (cairn_object_open(path, NULL, &object, &error) != CAIRN_OK)
        return complain_about(&findings, &error);
    return list(object, path, NULL, printer);
}

enum exit_status list_program(struct program *program, const char *path,
                              unsigned optimisation_level, enum cairn_id_conflicts id_conflicts,
                              struct printer *printer)
{
    struct findings findings = {.path = path};
    const struct cairn_check_options options = {
        .optimisation_level = optimisation_level,
        .is_verified = true, /* program_read has verified the module */
        .finding = complain_about_finding,
        .user = &findings,
    };
    cairn_declarations *declarations = NULL;
    struct compiled compiled = {0};
    struct pending_list pending;
    cairn_object *object;
    struct cairn_error error;
    enum exit_status result;
    pending_init(&pending, NULL, id_conflicts);
    enum cairn_status status = cairn_declarations_create(NULL, &declarations, &error);
    /* The module is checked before code generation, which changes it. */
    if (status == CAIRN_OK)
        status = cairn_check_module(program_module(program), &options, &error);
    if (status == CAIRN_OK)
        status = pending_scan(&pending, program_module(program), declarations, &error);
    if (status == CAIRN_OK)
        status = program_compile(program, optimisation_level, &compiled, &error);
    if (status != CAIRN_OK) {
        result = complain_about(&findings, &error);
    } else if (cairn_object_open_memory(compiled.bytes, compiled.size, NULL, &object, &error) ==
               CAIRN_OK) {
        result = list(object, path, declarations, printer);
    } else {
        complain("%s: cannot read the code that LLVM emits: %s: choose a target with ELF files, "
                 "such as Linux",
                 path, error.message);
        result = EXIT_BAD_INPUT;
    }
    compiled_release(&compiled);
    cairn_declarations_destroy(declarations);
    return result;
}
