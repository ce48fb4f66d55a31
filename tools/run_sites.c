/*
 * cairn run --sites: each record, and its site in the loaded code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/run_sites.h"

#include "tools/record_text.h"
#include "tools/site_text.h"

static void write_heading(struct output *output, struct cairn_record record,
                          const struct program_names *names)
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
}

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
    write_heading(output, record, names);
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

void write_sites(struct output *output, const cairn_module *module, struct program_names *names,
                 struct disassembler *disassembler)
{
    const cairn_table *table = cairn_module_table(module);
    uint32_t count = cairn_table_record_count(table);
    const struct code_writer writer = {
        .output = output,
        .indentation = 2,
        .columns = code_columns(cairn_architecture_host()),
        .disassembler = disassembler,
        .find_name = find_target_name,
        .user = names,
    };
    uint32_t site_count = cairn_module_site_count(module);
    output_format(output, "%u record%s, %u site%s\n", count, plural(count), site_count,
                  plural(site_count));
    for (uint32_t i = 0; i < count; i++) {
        output_character(output, '\n');
        write_record(output, (struct cairn_record){table, i}, names, &writer);
    }
    if (count > 0)
        output_character(output, '\n');
}
