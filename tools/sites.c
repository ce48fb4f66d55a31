/*
 * cairn run --sites: each record, and what Cairn made of its site.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/sites.h"

#include "tools/command.h"

#include <stdio.h>
#include <string.h>

/* x86-64's longest instruction has 15 bytes; those in a site are shorter. */
enum { SHORT_TEXT = 128, BYTES_PER_LINE = 13 };

static void write_type(struct output *output, struct cairn_type type)
{
    char text[SHORT_TEXT];
    cairn_type_format(type, text, sizeof text);
    output_text(output, text);
}

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

/* What the record's locations are: of which types, where there is one location for each value that
 * was declared; and a statepoint's parts. */
struct location_meanings {
    const struct cairn_declaration *declaration;
    bool has_result;  /* it is the first location */
    uint32_t skipped; /* of the declaration's types */
    bool is_statepoint;
    struct cairn_statepoint statepoint;
};

static struct location_meanings find_statepoint_meanings(struct cairn_record record)
{
    struct location_meanings meanings = {.declaration = cairn_record_declaration(record)};
    meanings.is_statepoint =
        cairn_record_statepoint(record, &meanings.statepoint, NULL) == CAIRN_OK;
    return meanings;
}

static struct location_meanings find_location_meanings(struct cairn_record record)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    struct location_meanings meanings = {.declaration = declaration};
    if (declaration == NULL)
        return meanings;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT)
        return find_statepoint_meanings(record);
    bool is_anyreg = declaration->kind == CAIRN_RECORD_PATCHPOINT &&
                     declaration->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    meanings.has_result = is_anyreg && declaration->result.kind != CAIRN_TYPE_VOID;
    meanings.skipped = is_anyreg ? 0 : declaration->argument_count;
    uint32_t expected = (meanings.has_result ? 1u : 0u) + declaration->argument_count +
                        declaration->live_value_count - meanings.skipped;
    if (expected != cairn_record_location_count(record))
        return (struct location_meanings){0};
    return meanings;
}

/* Inlining and lowering may split deopt values: their types are known where their number is that of
 * the IR. */
static void write_deopt(struct output *output, const struct location_meanings *meanings,
                        uint32_t number)
{
    const struct cairn_declaration *declaration = meanings->declaration;
    if (meanings->statepoint.deopt_count <= declaration->live_value_count) {
        output_text(output, ", ");
        write_type(output, declaration->types[declaration->argument_count + number]);
    }
    output_format(output, " (deopt value %u)", number);
}

static void write_statepoint_meaning(struct output *output,
                                     const struct location_meanings *meanings, uint32_t index)
{
    static const char *const heads[] = {"calling convention", "flags", "number of deopt values"};
    const struct cairn_statepoint *parts = &meanings->statepoint;
    if (index < sizeof heads / sizeof *heads)
        output_format(output, " (%s)", heads[index]);
    else if (index - parts->first_deopt < parts->deopt_count)
        write_deopt(output, meanings, index - parts->first_deopt);
    else if (index - parts->first_pair < 2 * parts->pair_count)
        output_format(output, " (%s of pointer %u)",
                      (index - parts->first_pair) % 2 == 0 ? "base" : "derived",
                      (index - parts->first_pair) / 2);
    else
        output_format(output, " (alloca %u)", index - parts->first_alloca);
}

static void write_location_meaning(struct output *output, const struct location_meanings *meanings,
                                   uint32_t index)
{
    if (meanings->is_statepoint) {
        write_statepoint_meaning(output, meanings, index);
        return;
    }
    if (meanings->declaration == NULL || meanings->declaration->kind == CAIRN_RECORD_STATEPOINT)
        return;
    output_text(output, ", ");
    if (meanings->has_result && index == 0) {
        write_type(output, meanings->declaration->result);
        output_text(output, " (the result)");
        return;
    }
    uint32_t place = index - (meanings->has_result ? 1u : 0u);
    write_type(output, meanings->declaration->types[place + meanings->skipped]);
    if (meanings->skipped == 0 && place < meanings->declaration->argument_count)
        output_text(output, " (an argument)");
}

static void write_locations(struct output *output, struct cairn_record record)
{
    struct location_meanings meanings = find_location_meanings(record);
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
    uint32_t count = cairn_record_liveout_count(record);
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_liveout liveout = cairn_record_liveout(record, i);
        output_text(output, i == 0 ? "  live across: " : ", ");
        write_register(output, cairn_architecture_host(), liveout.dwarf);
        output_format(output, " %u byte%s", liveout.size, liveout.size == 1 ? "" : "s");
    }
    if (count > 0)
        output_character(output, '\n');
}

/* ---- Sites ---- */

static void write_state(struct output *output, const struct cairn_site_description *site,
                        const struct program_names *names)
{
    const char *name = program_names_find(names, site->target);
    output_text(output, cairn_site_state_name(site->state));
    if (site->target != 0) {
        output_text(output, " to ");
        output_hexadecimal(output, site->target);
    }
    if (site->target != 0 && name != NULL) {
        output_text(output, " = ");
        output_style(output, STYLE_NAME);
        output_name(output, name);
        output_style(output, STYLE_PLAIN);
    }
    if (site->uses_veneer)
        output_text(output, " by a veneer");
}

static void write_summary(struct output *output, const struct cairn_site_description *site,
                          const struct program_names *names)
{
    output_format(output, "  %u byte%s at ", site->byte_count, site->byte_count == 1 ? "" : "s");
    output_hexadecimal(output, site->address);
    output_text(output, ", state: ");
    write_state(output, site, names);
    output_character(output, '\n');
    if (!site->live) {
        output_style(output, STYLE_WARNING);
        output_text(output, "  cannot be patched while threads run: ");
        output_name(output, site->reason);
        output_style(output, STYLE_PLAIN);
        output_character(output, '\n');
        return;
    }
    output_text(output, "  can be patched while threads run: the instruction at ");
    output_hexadecimal(output, site->instruction_address);
    if (site->return_address != 0) {
        output_text(output, "; calls return to ");
        output_hexadecimal(output, site->return_address);
    }
    output_character(output, '\n');
}

static void write_instruction(struct output *output, const uint8_t *bytes, size_t length,
                              uint64_t address, const char *text)
{
    output_text(output, "    ");
    output_hexadecimal(output, address);
    output_style(output, STYLE_FAINT);
    for (size_t i = 0; i < length; i++)
        output_format(output, " %02x", bytes[i]);
    output_style(output, STYLE_PLAIN);
    for (size_t i = length; i < BYTES_PER_LINE; i++)
        output_text(output, "   ");
    output_character(output, ' ');
    output_text(output, text);
    output_character(output, '\n');
}

/* Bytes of the line at `bytes`; `text` is the instruction, if they are one. */
static size_t next_line(const uint8_t *bytes, size_t size, uint64_t address,
                        struct disassembler *disassembler, char *text, size_t text_size)
{
    size_t length = 0;
    if (disassembler != NULL)
        length = disassembler_next(disassembler, bytes, size, address, text, text_size);
    if (length > 0)
        return length;
    /* No disassembler; or a shadow's end, which may lie inside an instruction. */
    snprintf(text, text_size, "%s", disassembler == NULL ? "" : "(not a whole instruction)");
    return size < BYTES_PER_LINE ? size : BYTES_PER_LINE;
}

static void write_code(struct output *output, const char *title, const uint8_t *bytes, size_t size,
                       uint64_t address, struct disassembler *disassembler)
{
    output_format(output, "  %s:\n", title);
    for (size_t offset = 0; offset < size;) {
        char text[SHORT_TEXT];
        size_t length = next_line(bytes + offset, size - offset, address + offset, disassembler,
                                  text, sizeof text);
        write_instruction(output, bytes + offset, length, address + offset, text);
        offset += length;
    }
}

static void write_bytes(struct output *output, const struct cairn_site_description *site,
                        struct disassembler *disassembler)
{
    if (site->bytes == NULL || site->byte_count == 0)
        return;
    write_code(output, "as LLVM emitted it", site->original_bytes, site->byte_count, site->address,
               disassembler);
    if (memcmp(site->original_bytes, site->bytes, site->byte_count) == 0)
        output_text(output, "  now: the same\n");
    else
        write_code(output, "armed", site->bytes, site->byte_count, site->address, disassembler);
}

static void write_record(struct output *output, struct cairn_record record,
                         const struct program_names *names, struct disassembler *disassembler)
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
    write_summary(output, &description, names);
    write_bytes(output, &description, disassembler);
}

void write_sites(struct output *output, const cairn_module *module,
                 const struct program_names *names, struct disassembler *disassembler)
{
    const cairn_table *table = cairn_module_table(module);
    uint32_t count = cairn_table_record_count(table);
    output_format(output, "%u record%s, %u site%s\n", count, count == 1 ? "" : "s",
                  cairn_module_site_count(module), cairn_module_site_count(module) == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++) {
        output_character(output, '\n');
        write_record(output, (struct cairn_record){table, i}, names, disassembler);
    }
    if (count > 0)
        output_character(output, '\n');
}
