/*
 * cairn stackmap --json: one line for each function and each record.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/stackmap.h"
#include "tools/words.h"

static void write_function(struct json *json, const struct mapped *mapped, uint32_t index)
{
    struct cairn_stackmap_function function = cairn_stackmap_function(&mapped->map, index);
    const char *symbol = mapped_function(mapped, index).name;
    json_line(json, 4);
    json_begin_object(json);
    json_key(json, "address");
    json_unsigned(json, function.address);
    json_key(json, "symbol");
    write_json_name(json, symbol);
    json_key(json, "stack_size");
    json_unsigned(json, function.stack_size);
    json_key(json, "record_count");
    if (mapped_has_record_counts(mapped))
        json_unsigned(json, function.record_count);
    else
        json_null(json);
    json_end_object(json);
}

static void write_value(struct json *json, struct cairn_location location)
{
    json_key(json, "value");
    if (location.kind == CAIRN_LOCATION_CONSTANT)
        json_signed(json, location.offset);
    else if (location.kind == CAIRN_LOCATION_CONSTANT_INDEX)
        json_unsigned(json, location.constant);
    else
        json_null(json);
}

void write_location_object(struct json *json, struct cairn_location location)
{
    json_begin_object(json);
    json_key(json, "kind");
    json_string(json, cairn_location_kind_name(location.kind));
    json_key(json, "dwarf");
    json_unsigned(json, location.dwarf);
    json_key(json, "size");
    json_unsigned(json, location.size);
    json_key(json, "offset");
    json_signed(json, location.offset);
    write_value(json, location);
    json_end_object(json);
}

void write_liveout_object(struct json *json, struct cairn_liveout liveout)
{
    json_begin_object(json);
    json_key(json, "dwarf");
    json_unsigned(json, liveout.dwarf);
    json_key(json, "size");
    json_unsigned(json, liveout.size);
    json_end_object(json);
}

/* Writes the site, or null if the function of the record is unknown. */
static void write_site(struct json *json, const struct mapped *mapped,
                       const struct cairn_stackmap_record *record)
{
    json_key(json, "site");
    if (record->function == CAIRN_STACKMAP_NO_FUNCTION) {
        json_null(json);
        return;
    }
    struct cairn_object_function function = mapped_function(mapped, record->function);
    struct listed_record listed = mapped_record(mapped, record, &function);
    write_listed_json(mapped->listing, &listed, json);
}

static void write_record(struct json *json, const struct mapped *mapped,
                         const struct cairn_stackmap_record *record)
{
    const struct cairn_stackmap *map = &mapped->map;
    json_line(json, 4);
    json_begin_object(json);
    json_key(json, "id");
    json_unsigned(json, record->id);
    json_key(json, "function");
    if (record->function == CAIRN_STACKMAP_NO_FUNCTION)
        json_null(json);
    else
        json_unsigned(json, record->function);
    json_key(json, "offset");
    json_unsigned(json, record->code_offset);
    json_key(json, "locations");
    json_begin_array(json);
    for (uint16_t i = 0; i < record->location_count; i++)
        write_location_object(json, cairn_stackmap_location(map, record, i));
    json_end_array(json);
    json_key(json, "liveouts");
    json_begin_array(json);
    for (uint16_t i = 0; i < record->liveout_count; i++)
        write_liveout_object(json, cairn_stackmap_liveout(map, record, i));
    json_end_array(json);
    if (mapped->listing != NULL)
        write_site(json, mapped, record);
    json_end_object(json);
}

void write_map_json(struct json *json, const struct mapped *mapped)
{
    const struct cairn_stackmap *map = &mapped->map;
    json_line(json, 0);
    json_begin_object(json);
    json_key(json, "version");
    json_unsigned(json, map->version);

    json_line(json, 1);
    json_key(json, "functions");
    json_begin_array(json);
    for (uint32_t i = 0; i < map->function_count; i++)
        write_function(json, mapped, i);
    json_end_array(json);

    json_line(json, 1);
    json_key(json, "constants");
    json_begin_array(json);
    for (uint32_t i = 0; i < map->constant_count; i++)
        json_unsigned(json, cairn_stackmap_constant(map, i));
    json_end_array(json);

    json_line(json, 1);
    json_key(json, "records");
    json_begin_array(json);
    struct cairn_stackmap_record record;
    for (bool more = cairn_stackmap_first(map, &record); more;
         more = cairn_stackmap_next(map, &record))
        write_record(json, mapped, &record);
    json_end_array(json);
    json_end_object(json);
}
