/*
 * cairn stackmap: maps as text, with the records of each function; and as JSON, with one line for
 * each function and each record.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/record_text.h"
#include "tools/stackmap.h"

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
    if (mapped_has_record_counts(mapped))
        output_format(output, ", %ju record%s", function.record_count,
                      plural(function.record_count));
    output_character(output, '\n');
}

static void write_record_text(struct output *output, const struct mapped *mapped,
                              const struct cairn_stackmap_record *record,
                              const struct cairn_object_function *function)
{
    enum cairn_architecture architecture = cairn_object_architecture(mapped->input->object);
    const struct cairn_declaration *declaration = listing_declaration(mapped->listing, record->id);
    struct cairn_statepoint statepoint;
    output_text(output, "    ");
    if (declaration != NULL)
        output_format(output, "%s ", cairn_record_kind_name(declaration->kind));
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
    struct listed_record listed = mapped_record(mapped, record, function);
    write_listed_text(mapped->listing, &listed, output);
}

/* Writes a map. A function is written before its first record, so that functions without records,
 * and those whose records are unknown, also appear once and in order. */
void write_map_text(struct output *output, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    struct cairn_object_function function = {0};
    struct cairn_stackmap_record record = {0};
    uint32_t written = 0;
    output_format(output,
                  "%s" HEADING "stack map %zu" PLAIN
                  ": version %u, %s, %u function%s, %u large constant%s, %u record%s\n",
                  mapped->number > 0 ? "\n" : "", mapped->number, map->version,
                  cairn_architecture_name(cairn_object_architecture(mapped->input->object)),
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

void write_location_json(struct json *json, struct cairn_location location)
{
    json_begin_object(json, NULL);
    json_fields(json, "kind %s dwarf %u size %u offset %i", cairn_location_kind_name(location.kind),
                location.dwarf, location.size, location.offset);
    if (location.kind == CAIRN_LOCATION_CONSTANT)
        json_fields(json, "value %i", location.offset);
    else
        json_optional(json, "value", location.kind == CAIRN_LOCATION_CONSTANT_INDEX,
                      location.constant);
    json_end_object(json);
}

void write_liveout_json(struct json *json, struct cairn_liveout liveout)
{
    json_begin_object(json, NULL);
    json_fields(json, "dwarf %u size %u", liveout.dwarf, liveout.size);
    json_end_object(json);
}

static void write_function_json(struct json *json, const struct mapped *mapped, uint32_t index)
{
    struct cairn_stackmap_function function = cairn_stackmap_function(&mapped->map, index);
    json_line(json, 4);
    json_begin_object(json, NULL);
    json_fields(json, "address %ju symbol %s stack_size %ju", function.address,
                mapped_function(mapped, index).name, function.stack_size);
    json_optional(json, "record_count", mapped_has_record_counts(mapped), function.record_count);
    json_end_object(json);
}

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
        struct listed_record listed = mapped_record(mapped, record, &function);
        json_key(json, "site");
        write_listed_json(mapped->listing, &listed, json);
    }
    json_end_object(json);
}

void write_map_json(struct json *json, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    struct cairn_stackmap_record record = {0};
    json_line(json, 0);
    json_begin_object(json, NULL);
    json_fields(json, "version %u", map->version);
    json_line(json, 1);
    json_begin_array(json, "functions");
    for (uint32_t i = 0; i < map->function_count; i++)
        write_function_json(json, mapped, i);
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
