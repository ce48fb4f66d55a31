/*
 * cairn lookup, as text, with a line for each address, followed by what is known about it; and as
 * JSON, with one line for each address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/blocks.h"
#include "tools/lookup.h"
#include "tools/record_text.h"
#include "tools/stackmap.h"

/* ---- Text ---- */

/* Writes an address of the layout, as in "0x1136 = main + 0x6". */
static void write_address(struct output *output, const struct answer *answer, uint64_t address)
{
    struct place place = layout_place(&answer->tables->layout, address);
    struct cairn_object_function function;
    write_place(output, &place);
    if (layout_function(&answer->tables->layout, address, &function))
        output_format(output, " = " NAME "%s" PLAIN " + 0x%jx", function.name,
                      place.address - function.entry);
}

/* Writes how many of `count` items are not shown. */
static void write_more(struct output *output, size_t count, const char *items)
{
    if (count > LOOKUP_ITEMS_MAX)
        output_format(output, "  and %zu %s more\n", count - LOOKUP_ITEMS_MAX, items);
}

static bool write_block(struct output *output, const struct answer *answer)
{
    const cairn_block_table *blocks = answer->tables->blocks;
    struct cairn_block block;
    struct cairn_block_function function = {0};
    struct cairn_block_details details = {0};
    if (blocks == NULL || !cairn_block_table_find(blocks, answer->target.address, &block))
        return false;
    struct place place = layout_place(&answer->tables->layout, block.address);
    (void)cairn_block_table_function(blocks, block.function, &function);
    (void)cairn_block_table_details(blocks, block.function, block.index, &details);
    output_format(output, "  block " NUMBER "%u" PLAIN " at ", block.id);
    write_place(output, &place);
    output_format(output, " + 0x%jx, %u byte%s", answer->target.address - block.address, block.size,
                  plural(block.size));
    write_block_flags(output, ", ", block.flags);
    if ((function.features & CAIRN_BBMAP_FREQUENCIES) != 0)
        output_format(output, ", frequency %ju", block.frequency);
    if ((function.features & CAIRN_BBMAP_POST_LINK) != 0)
        output_format(output, ", after linking %ju", details.post_link_frequency);
    if ((function.features & CAIRN_BBMAP_HASHES) != 0)
        output_format(output, ", hash 0x%jx", details.hash);
    output_character(output, '\n');
    return true;
}

static void write_record(struct output *output, const struct answer *answer, const char *before,
                         struct cairn_record record, struct values_left *left)
{
    enum cairn_architecture architecture = cairn_object_architecture(answer->tables->input->object);
    uint32_t location_count = cairn_record_location_count(record);
    uint32_t locations = lookup_take_values(&left->locations, location_count);
    struct cairn_liveout liveout;
    uint32_t liveouts = 0;
    output_format(output, "  %s ID " NUMBER "%ju" PLAIN, before, cairn_record_id(record));
    if (cairn_record_address(record) != answer->target.address) {
        output_text(output, " at ");
        write_address(output, answer, cairn_record_address(record));
    }
    output_character(output, '\n');
    for (uint32_t i = 0; i < locations; i++) {
        output_text(output, "    ");
        write_location(output, architecture, i, cairn_record_location(record, i));
        output_character(output, '\n');
    }
    if (locations < location_count)
        output_format(output, "    and %u locations more\n", location_count - locations);
    for (; liveouts < left->liveouts && cairn_record_liveout(record, liveouts, &liveout);
         liveouts++) {
        output_text(output, liveouts == 0 ? "    " : "");
        write_liveout(output, architecture, liveouts, liveout);
    }
    bool has_more = cairn_record_liveout(record, liveouts, &liveout);
    if (has_more)
        output_text(output, liveouts == 0 ? "    live across: more" : ", and more");
    if (has_more || liveouts > 0)
        output_character(output, '\n');
    left->liveouts -= liveouts;
}

static bool write_records(struct output *output, const struct answer *answer)
{
    const struct tables *tables = answer->tables;
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    uint64_t stack_size;
    struct cairn_record record;
    bool has_frame =
        tables_find_frame(tables, answer->target.address,
                          answer->has_function ? &answer->function : NULL, &stack_size);
    if (has_frame) {
        output_text(output, "  ");
        write_frame(output, stack_size);
        output_character(output, '\n');
    }
    uint32_t count = tables_find_records(tables, answer->target.address, &record);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++, record.index++)
        write_record(output, answer, "record", record, &left);
    write_more(output, count, "records");
    bool has_call = tables_find_call(tables, answer->target.address, &record);
    if (has_call)
        write_record(output, answer, "the call returns here of record", record, &left);
    return has_frame || count > 0 || has_call;
}

static bool write_faults(struct output *output, const struct answer *answer)
{
    const struct tables *tables = answer->tables;
    struct cairn_fault_entry fault;
    uint32_t number;
    bool has_fault = cairn_fault_table_find(tables->faults, answer->target.address, &fault);
    if (has_fault) {
        output_format(output, "  %s may fault: goes on at ", cairn_fault_kind_name(fault.kind));
        write_address(output, answer, fault.handler_address);
        output_character(output, '\n');
    }
    uint32_t count = tables_find_handled(tables, answer->target.address, &number);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++) {
        fault = tables_handled(tables, number + i);
        output_format(output, "  goes on here if a %s faults at ",
                      cairn_fault_kind_name(fault.kind));
        write_address(output, answer, fault.address);
        output_character(output, '\n');
    }
    write_more(output, count, "faults");
    return has_fault || count > 0;
}

static bool write_metadata(struct output *output, const struct answer *answer)
{
    uint64_t address;
    const struct cairn_sanmd_entry *covered =
        tables_find_covered(answer->tables, answer->target.address, &address);
    const char *before = ": ";
    if (covered != NULL) {
        output_text(output, "  covered by sanitizers' metadata");
        for (uint32_t feature = 1; feature != 0; feature <<= 1) {
            const char *name = cairn_sanmd_feature_name(feature);
            if ((covered->features & feature) == 0 || name == NULL)
                continue;
            output_format(output, "%s%s", before, name);
            before = ", ";
        }
        if (covered->stack_argument_bytes > 0)
            output_format(output, "%s%u byte%s of arguments on the stack", before,
                          covered->stack_argument_bytes, plural(covered->stack_argument_bytes));
        output_character(output, '\n');
    }
    bool is_atomic = tables_is_atomic(answer->tables, answer->target.address);
    if (is_atomic)
        output_text(output, "  atomic access\n");
    return covered != NULL || is_atomic;
}

static bool write_entries(struct output *output, const struct answer *answer)
{
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t count = cairn_pc_table_find(answer->tables->entries, answer->target.address, entries,
                                       LOOKUP_ITEMS_MAX);
    for (size_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++) {
        const struct cairn_pcsection_schema *schema = &entries[i].section->schema;
        const struct cairn_pcsection_entry *value = &entries[i].value;
        output_format(output, "  %s: %s", entries[i].section->name,
                      schema->has_size ? "function at " : "instruction");
        if (schema->has_size) {
            write_address(output, answer, value->address);
            output_format(output, ", %ju byte%s", value->size, plural(value->size));
        }
        write_constants(output, schema, value);
        output_character(output, '\n');
    }
    write_more(output, count, "entries");
    return count > 0;
}

void write_answer_text(struct output *output, const struct answer *answer)
{
    if (answer->has_base)
        output_format(output, HEADING "0x%jx" PLAIN ", in the file ", answer->target.loaded);
    else
        output_format(output, HEADING);
    write_place(output, &answer->place);
    if (!answer->has_base)
        output_format(output, PLAIN);
    if (answer->has_function)
        output_format(output, " = " NAME "%s" PLAIN " + 0x%jx", answer->function.name,
                      answer->place.address - answer->function.entry);
    output_character(output, '\n');
    bool is_known = answer->has_function;
    is_known = write_block(output, answer) || is_known;
    is_known = write_records(output, answer) || is_known;
    is_known = write_faults(output, answer) || is_known;
    is_known = write_metadata(output, answer) || is_known;
    is_known = write_entries(output, answer) || is_known;
    if (!is_known)
        output_text(output, "  nothing is known\n");
}

/* ---- JSON ---- */

/* Returns an address as it is shown; in a relocatable object, as an offset from the start of its
 * section. */
static uint64_t shown(const struct answer *answer, uint64_t address)
{
    return layout_place(&answer->tables->layout, address).address;
}

/* Ends an array, and writes how many of `count` items are not in it, if any. */
static void end_items(struct json *json, const char *more, size_t count)
{
    json_end_array(json);
    if (count > LOOKUP_ITEMS_MAX)
        json_optional(json, more, true, count - LOOKUP_ITEMS_MAX);
}

static void write_block_json(struct json *json, const struct answer *answer)
{
    const cairn_block_table *blocks = answer->tables->blocks;
    struct cairn_block block;
    struct cairn_block_function function = {0};
    struct cairn_block_details details = {0};
    if (blocks == NULL || !cairn_block_table_find(blocks, answer->target.address, &block)) {
        json_optional(json, "block", false, 0);
        return;
    }
    (void)cairn_block_table_function(blocks, block.function, &function);
    (void)cairn_block_table_details(blocks, block.function, block.index, &details);
    json_begin_object(json, "block");
    json_fields(json, "id %u address %ju size %u offset %ju", block.id,
                shown(answer, block.address), block.size, answer->target.address - block.address);
    write_json_block_flags(json, block.flags);
    json_optional(json, "frequency", (function.features & CAIRN_BBMAP_FREQUENCIES) != 0,
                  block.frequency);
    if ((function.features & CAIRN_BBMAP_POST_LINK) != 0)
        json_fields(json, "post_link_frequency %ju", details.post_link_frequency);
    if ((function.features & CAIRN_BBMAP_HASHES) != 0)
        json_fields(json, "hash %ju", details.hash);
    json_end_object(json);
}

static void write_record_json(struct json *json, const struct answer *answer,
                              struct cairn_record record, struct values_left *left)
{
    uint32_t location_count = cairn_record_location_count(record);
    uint32_t locations = lookup_take_values(&left->locations, location_count);
    struct cairn_liveout liveout;
    uint32_t liveouts = 0;
    json_fields(json, "id %ju address %ju", cairn_record_id(record),
                shown(answer, cairn_record_address(record)));
    json_begin_array(json, "locations");
    for (uint32_t i = 0; i < locations; i++)
        write_location_json(json, cairn_record_location(record, i));
    json_end_array(json);
    json_begin_array(json, "liveouts");
    while (liveouts < left->liveouts && cairn_record_liveout(record, liveouts, &liveout)) {
        write_liveout_json(json, liveout);
        liveouts++;
    }
    json_end_array(json);
    if (locations < location_count)
        json_fields(json, "more_locations %u", location_count - locations);
    if (cairn_record_liveout(record, liveouts, &liveout))
        json_fields(json, "more_liveouts %d", true);
    left->liveouts -= liveouts;
    json_end_object(json);
}

static void write_records_json(struct json *json, const struct answer *answer)
{
    const struct tables *tables = answer->tables;
    uint64_t address = answer->target.address;
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    uint64_t stack_size = 0;
    struct cairn_record record;
    bool has_frame = tables_find_frame(
        tables, address, answer->has_function ? &answer->function : NULL, &stack_size);
    uint32_t count = tables_find_records(tables, address, &record);
    json_optional(json, "stack_size", has_frame, stack_size);
    json_begin_array(json, "records");
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++, record.index++) {
        json_begin_object(json, NULL);
        write_record_json(json, answer, record, &left);
    }
    end_items(json, "more_records", count);
    if (tables_find_call(tables, address, &record)) {
        json_begin_object(json, "returning_from");
        write_record_json(json, answer, record, &left);
    } else {
        json_optional(json, "returning_from", false, 0);
    }
}

static void write_fault(struct json *json, const char *key, const struct answer *answer,
                        struct cairn_fault_entry fault)
{
    json_begin_object(json, key);
    json_fields(json, "kind %s faulting_address %ju handler_address %ju",
                cairn_fault_kind_name(fault.kind), shown(answer, fault.address),
                shown(answer, fault.handler_address));
    json_end_object(json);
}

static void write_faults_json(struct json *json, const struct answer *answer)
{
    const struct tables *tables = answer->tables;
    uint64_t address = answer->target.address;
    struct cairn_fault_entry fault;
    uint32_t number;
    if (cairn_fault_table_find(tables->faults, address, &fault))
        write_fault(json, "fault", answer, fault);
    else
        json_optional(json, "fault", false, 0);
    json_begin_array(json, "handles");
    uint32_t count = tables_find_handled(tables, address, &number);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++)
        write_fault(json, NULL, answer, tables_handled(tables, number + i));
    end_items(json, "more_handles", count);
}

static void write_covered(struct json *json, const struct answer *answer)
{
    uint64_t address = 0;
    const struct cairn_sanmd_entry *covered =
        tables_find_covered(answer->tables, answer->target.address, &address);
    if (covered == NULL) {
        json_optional(json, "covered", false, 0);
        return;
    }
    json_begin_object(json, "covered");
    json_fields(json, "address %ju size %u", shown(answer, address), covered->size);
    json_begin_array(json, "features");
    for (uint32_t feature = 1; feature != 0; feature <<= 1)
        if ((covered->features & feature) != 0 && cairn_sanmd_feature_name(feature) != NULL)
            json_string(json, cairn_sanmd_feature_name(feature));
    json_end_array(json);
    json_fields(json, "stack_argument_bytes %u", covered->stack_argument_bytes);
    json_end_object(json);
}

static void write_entries_json(struct json *json, const struct answer *answer)
{
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t count = cairn_pc_table_find(answer->tables->entries, answer->target.address, entries,
                                       LOOKUP_ITEMS_MAX);
    json_begin_array(json, "entries");
    for (size_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++) {
        const struct cairn_pc_table_section *section = entries[i].section;
        json_begin_object(json, NULL);
        json_fields(json, "section %s address %ju", section->name,
                    shown(answer, entries[i].value.address));
        json_optional(json, "size", section->schema.has_size, entries[i].value.size);
        write_json_constants(json, &section->schema, &entries[i].value);
        json_end_object(json);
    }
    end_items(json, "more_entries", count);
}

/* The comma is written at the start of a line and not at the end of the previous one, so that each
 * line is complete when it is flushed. */
void write_answer_json(struct json *json, const struct answer *answer)
{
    json_begin_object(json, NULL);
    json_fields(json, "address %ju", answer->place.address);
    json_name(json, "section", place_section_name(&answer->place));
    if (answer->has_base)
        json_fields(json, "loaded_address %ju", answer->target.loaded);
    json_name(json, "symbol", answer->has_function ? answer->function.name : NULL);
    json_optional(json, "offset", answer->has_function,
                  answer->place.address - answer->function.entry);
    write_block_json(json, answer);
    write_records_json(json, answer);
    write_faults_json(json, answer);
    write_covered(json, answer);
    json_fields(json, "atomic %d", tables_is_atomic(answer->tables, answer->target.address));
    write_entries_json(json, answer);
    json_end_object(json);
    output_character(json->output, '\n');
}
