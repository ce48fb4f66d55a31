/*
 * cairn stackmap, as text: functions, and the records of each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/command.h"
#include "tools/meaning.h"
#include "tools/stackmap.h"
#include "tools/words.h"

static void write_function(struct output *output, const struct mapped *mapped, uint32_t index)
{
    struct cairn_stackmap_function function = cairn_stackmap_function(&mapped->map, index);
    struct cairn_object_function found = mapped_function(mapped, index);
    output_text(output, "\n  function ");
    write_name(output, found.name);
    output_text(output, " at ");
    output_hexadecimal(output, function.address);
    if (found.entry != function.address) {
        output_text(output, " (a descriptor; its code is at ");
        output_hexadecimal(output, found.entry);
        output_character(output, ')');
    }
    output_text(output, ", ");
    write_frame(output, function.stack_size);
    if (mapped_has_record_counts(mapped)) {
        output_text(output, ", ");
        write_count(output, function.record_count, "record", "records");
    }
    output_character(output, '\n');
}

static void write_place(struct output *output, const struct cairn_object_function *function,
                        uint32_t code_offset)
{
    output_text(output, " at ");
    output_hexadecimal(output, function->entry + code_offset);
    output_text(output, " = ");
    write_name_offset(output, function->name, code_offset);
}

static void write_locations(struct output *output, const struct mapped *mapped,
                            const struct cairn_stackmap_record *record,
                            const struct cairn_declaration *declaration)
{
    struct cairn_statepoint statepoint;
    bool is_statepoint =
        cairn_stackmap_statepoint(&mapped->map, record, &statepoint, NULL) == CAIRN_OK;
    struct location_meanings meanings = find_location_meanings(declaration, record->location_count,
                                                               is_statepoint ? &statepoint : NULL);
    for (uint16_t i = 0; i < record->location_count; i++) {
        output_text(output, "      ");
        output_unsigned(output, i);
        output_text(output, ": ");
        write_location(output, cairn_object_architecture(mapped->object),
                       cairn_stackmap_location(&mapped->map, record, i));
        write_location_meaning(output, &meanings, i);
        output_character(output, '\n');
    }
}

static void write_liveouts(struct output *output, const struct mapped *mapped,
                           const struct cairn_stackmap_record *record)
{
    if (record->liveout_count == 0)
        return;
    output_text(output, "      live across:");
    for (uint16_t i = 0; i < record->liveout_count; i++) {
        struct cairn_liveout liveout = cairn_stackmap_liveout(&mapped->map, record, i);
        output_text(output, i == 0 ? " " : ", ");
        write_register(output, cairn_object_architecture(mapped->object), liveout.dwarf);
        output_character(output, ' ');
        write_count(output, liveout.size, "byte", "bytes");
    }
    output_character(output, '\n');
}

static void write_record(struct output *output, const struct mapped *mapped,
                         const struct cairn_stackmap_record *record,
                         const struct cairn_object_function *function)
{
    const struct cairn_declaration *declaration = listing_declaration(mapped->listing, record->id);
    output_text(output, "    ");
    if (declaration != NULL)
        output_format(output, "%s ", cairn_record_kind_name(declaration->kind));
    output_text(output, "ID ");
    output_style(output, STYLE_NUMBER);
    output_unsigned(output, record->id);
    output_style(output, STYLE_PLAIN);
    if (function != NULL) {
        write_place(output, function, record->code_offset);
    } else {
        output_text(output, " at an unknown function + ");
        output_hexadecimal(output, record->code_offset);
    }
    output_character(output, '\n');
    write_locations(output, mapped, record, declaration);
    write_liveouts(output, mapped, record);
    if (mapped->listing == NULL || function == NULL)
        return;
    struct listed_record listed = mapped_record(mapped, record, function);
    write_listed_text(mapped->listing, &listed, output);
}

static void write_heading(struct output *output, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    if (mapped->number > 0)
        output_character(output, '\n');
    output_style(output, STYLE_HEADING);
    output_text(output, "stack map ");
    output_unsigned(output, mapped->number);
    output_style(output, STYLE_PLAIN);
    output_text(output, ": version ");
    output_unsigned(output, map->version);
    output_text(output, ", ");
    output_text(output, cairn_architecture_name(cairn_object_architecture(mapped->object)));
    output_text(output, ", ");
    write_count(output, map->function_count, "function", "functions");
    output_text(output, ", ");
    write_count(output, map->constant_count, "large constant", "large constants");
    output_text(output, ", ");
    write_count(output, map->record_count, "record", "records");
    output_character(output, '\n');
}

/* Writes a map. A function is written before its first record, so that functions without records,
 * and those whose records are unknown, also appear once and in order. */
void write_map_text(struct output *output, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    struct cairn_object_function function = {0};
    struct cairn_stackmap_record record;
    uint32_t written = 0;
    write_heading(output, mapped);
    for (bool more = cairn_stackmap_first(map, &record); more;
         more = cairn_stackmap_next(map, &record)) {
        bool is_known = record.function != CAIRN_STACKMAP_NO_FUNCTION;
        uint32_t end = is_known ? record.function + 1 : map->function_count;
        for (; written < end; written++) {
            write_function(output, mapped, written);
            function = mapped_function(mapped, written);
        }
        write_record(output, mapped, &record, is_known ? &function : NULL);
    }
    for (; written < map->function_count; written++)
        write_function(output, mapped, written);
}
