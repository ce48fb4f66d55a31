/*
 * cairn run --sites: each record, and its site in the loaded code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/sites.h"

#include "tools/code.h"
#include "tools/command.h"
#include "tools/meaning.h"

/* ---- Records ---- */

static void write_place(struct output *output, struct cairn_record record,
                        const struct program_names *names)
{
    uint64_t address = cairn_record_address(record);
    uint64_t function = cairn_record_function(record).address;
    const char *name = program_names_find(names, function);
    output_hexadecimal(output, address);
    output_text(output, " = ");
    output_style(output, STYLE_NAME);
    if (name != NULL)
        output_name(output, name);
    else
        output_hexadecimal(output, function);
    output_style(output, STYLE_PLAIN);
    output_text(output, " + ");
    output_hexadecimal(output, address - function);
}

static void write_heading(struct output *output, struct cairn_record record,
                          const struct program_names *names)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    enum cairn_record_kind kind = declaration == NULL ? CAIRN_RECORD_UNDECLARED : declaration->kind;
    output_style(output, STYLE_HEADING);
    output_text(output, cairn_record_kind_name(kind));
    output_style(output, STYLE_PLAIN);
    output_text(output, " ID ");
    output_style(output, STYLE_NUMBER);
    output_unsigned(output, cairn_record_id(record));
    output_style(output, STYLE_PLAIN);
    output_text(output, " at ");
    write_place(output, record, names);
    output_character(output, '\n');
}

static struct location_meanings meanings_of(struct cairn_record record)
{
    struct cairn_statepoint statepoint;
    bool is_statepoint = cairn_record_statepoint(record, &statepoint, NULL) == CAIRN_OK;
    return find_location_meanings(cairn_record_declaration(record),
                                  cairn_record_location_count(record),
                                  is_statepoint ? &statepoint : NULL);
}

static void write_locations(struct output *output, struct cairn_record record)
{
    struct location_meanings meanings = meanings_of(record);
    uint32_t count = cairn_record_location_count(record);
    for (uint32_t i = 0; i < count; i++) {
        output_text(output, "  ");
        output_unsigned(output, i);
        output_text(output, ": ");
        write_location(output, cairn_architecture_host(), cairn_record_location(record, i));
        write_location_meaning(output, &meanings, i);
        output_character(output, '\n');
    }
}

static void write_liveouts(struct output *output, struct cairn_record record)
{
    struct cairn_liveout liveout;
    uint32_t count = 0;
    for (uint32_t i = 0; cairn_record_liveout(record, i, &liveout); i++, count++) {
        output_text(output, i == 0 ? "  live across: " : ", ");
        write_register(output, cairn_architecture_host(), liveout.dwarf);
        output_format(output, " %u byte%s", liveout.size, liveout.size == 1 ? "" : "s");
    }
    if (count > 0)
        output_character(output, '\n');
}

/* ---- Sites ---- */

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
    write_locations(output, record);
    write_liveouts(output, record);
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
    output_format(output, "%u record%s, %u site%s\n", count, count == 1 ? "" : "s",
                  cairn_module_site_count(module), cairn_module_site_count(module) == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++) {
        output_character(output, '\n');
        write_record(output, (struct cairn_record){table, i}, names, &writer);
    }
    if (count > 0)
        output_character(output, '\n');
}
