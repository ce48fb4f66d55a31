/*
 * cairn lookup, as text, with a line for each address, followed by what is known about it; and as
 * JSON, with one line for each address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup/lookup.h"
#include "tools/print/record.h"
#include "tools/read/blocks.h"

#include "format/sanmd.h"
#include "record/table.h"

/* How many locations and live-outs the records of an answer may still have. */
struct values_left {
    uint32_t locations;
    uint32_t liveouts;
};

/* Takes up to `count` of the values that an answer may still have. Returns how many. */
static uint32_t take_values(uint32_t *left, uint32_t count)
{
    uint32_t taken = count < *left ? count : *left;
    *left -= taken;
    return taken;
}

/* Returns the fault number `i` of those whose handler is the address of the answer. */
static struct cairn_fault_entry handled_fault(const struct answer *answer, size_t i)
{
    struct cairn_fault_entry fault = {0};
    (void)cairn_fault_table_entry(answer->tables->faults, answer->handled[i].fault, &fault);
    return fault;
}

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
        output_format(output, "  and %zu more %s\n", count - LOOKUP_ITEMS_MAX, items);
}

static void write_block(struct output *output, const struct answer *answer)
{
    const struct cairn_block *block = &answer->block;
    struct place place = layout_place(&answer->tables->layout, block->address);
    output_format(output, "  block " NUMBER "%u" PLAIN " at ", block->id);
    write_place(output, &place);
    output_format(output, " + 0x%jx, %u byte%s", answer->target.address - block->address,
                  block->size, plural(block->size));
    write_block_flags(output, ", ", block->flags);
    if ((answer->block_features & CAIRN_BBMAP_FREQUENCIES) != 0)
        output_format(output, ", frequency %ju", block->frequency);
    if ((answer->block_features & CAIRN_BBMAP_POST_LINK) != 0)
        output_format(output, ", after linking %ju", answer->block_details.post_link_frequency);
    if ((answer->block_features & CAIRN_BBMAP_HASHES) != 0)
        output_format(output, ", hash 0x%jx", answer->block_details.hash);
    output_character(output, '\n');
}

static void write_record(struct output *output, const struct answer *answer, const char *before,
                         struct cairn_record record, struct values_left *left)
{
    enum cairn_architecture architecture =
        cairn_object_header(answer->tables->input->object).architecture;
    uint32_t location_count = cairn_record_location_count(record);
    uint32_t locations = take_values(&left->locations, location_count);
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
        output_format(output, "    and %u more locations\n", location_count - locations);
    for (; liveouts < left->liveouts && record_liveout(record, liveouts, &liveout); liveouts++) {
        output_text(output, liveouts == 0 ? "    " : "");
        write_liveout(output, architecture, liveouts, liveout);
    }
    bool has_more = record_liveout(record, liveouts, &liveout);
    if (has_more)
        output_text(output, liveouts == 0 ? "    live across: more" : ", and more");
    if (has_more || liveouts > 0)
        output_character(output, '\n');
    left->liveouts -= liveouts;
}

static void write_records(struct output *output, const struct answer *answer)
{
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    struct cairn_record record = answer->record;
    if (answer->declared_frame != NULL)
        output_format(output, "  stack size of %ju byte%s\n", answer->declared_frame->size,
                      plural(answer->declared_frame->size));
    if (answer->has_frame) {
        output_text(output, "  ");
        write_frame(output, answer->stack_size);
        output_character(output, '\n');
    }
    for (uint32_t i = 0; i < answer->record_count && i < LOOKUP_ITEMS_MAX; i++, record.index++)
        write_record(output, answer, "record", record, &left);
    write_more(output, answer->record_count, "records");
    if (answer->has_call)
        write_record(output, answer, "return address of the call of record", answer->call, &left);
}

static void write_faults(struct output *output, const struct answer *answer)
{
    if (answer->has_fault) {
        output_format(output, "  %s may fault: handler at ",
                      cairn_fault_kind_name(answer->fault.kind));
        write_address(output, answer, answer->fault.handler_address);
        output_character(output, '\n');
    }
    for (size_t i = 0; i < answer->handled_count && i < LOOKUP_ITEMS_MAX; i++) {
        struct cairn_fault_entry fault = handled_fault(answer, i);
        output_format(output, "  handler of a %s at ", cairn_fault_kind_name(fault.kind));
        write_address(output, answer, fault.address);
        output_character(output, '\n');
    }
    write_more(output, answer->handled_count, "faults");
}

static void write_metadata(struct output *output, const struct answer *answer)
{
    const struct cairn_sanmd_entry *covered = answer->covered;
    const char *before = ": ";
    if (covered != NULL) {
        output_text(output, "  covered by sanitizer metadata");
        for (uint32_t feature = 1; feature != 0; feature <<= 1) {
            const char *name = sanmd_feature_name(feature);
            if ((covered->features & feature) == 0 || name == NULL)
                continue;
            output_format(output, "%s%s", before, name);
            before = ", ";
        }
        if (covered->stack_argument_bytes > 0)
            output_format(output, "%s%u byte%s of stack arguments", before,
                          covered->stack_argument_bytes, plural(covered->stack_argument_bytes));
        output_character(output, '\n');
    }
    if (answer->is_atomic)
        output_text(output, "  atomic access\n");
}

static void write_points(struct output *output, const struct answer *answer)
{
    for (size_t i = 0; i < answer->point_count && i < LOOKUP_ITEMS_MAX; i++) {
        const struct cairn_sancov_point *point = &answer->points[i];
        uint64_t unknown = point->flags & ~(uint64_t)CAIRN_SANCOV_FUNCTION_ENTRY;
        output_format(output, "  coverage point " NUMBER "%ju" PLAIN, point->index);
        if ((point->flags & CAIRN_SANCOV_FUNCTION_ENTRY) != 0)
            output_text(output, ", function entry");
        if (unknown != 0)
            output_format(output, ", unknown flags 0x%jx", unknown);
        output_character(output, '\n');
    }
    write_more(output, answer->point_count, "coverage points");
}

static void write_entries(struct output *output, const struct answer *answer)
{
    for (size_t i = 0; i < answer->entry_count && i < LOOKUP_ITEMS_MAX; i++) {
        const struct cairn_pcsection_schema *schema = &answer->entries[i].section->schema;
        const struct cairn_pcsection_entry *value = &answer->entries[i].value;
        output_format(output, "  %s: %s", answer->entries[i].section->name,
                      schema->has_size ? "function at " : "instruction");
        if (schema->has_size) {
            write_address(output, answer, value->address);
            output_format(output, ", %ju byte%s", value->size, plural(value->size));
        }
        write_constants(output, schema, value);
        output_character(output, '\n');
    }
    write_more(output, answer->entry_count, "entries");
}

static void write_line(struct output *output, const struct answer *answer)
{
    char path[SOURCE_PATH_BYTES];
    if (!answer->has_line)
        return;
    source_line_path(&answer->line, path);
    output_format(output, "  at %s:%u\n", path, answer->line.line);
}

void write_answer_text(struct output *output, const struct answer *answer, bool has_base)
{
    if (has_base)
        output_format(output, HEADING "0x%jx" PLAIN ", in the file ", answer->target.loaded);
    else
        output_format(output, HEADING);
    write_place(output, &answer->place);
    if (!has_base)
        output_format(output, PLAIN);
    if (answer->has_function)
        output_format(output, " = " NAME "%s" PLAIN " + 0x%jx", answer->function.name,
                      answer->place.address - answer->function.entry);
    output_character(output, '\n');
    write_line(output, answer);
    if (answer->has_block)
        write_block(output, answer);
    write_records(output, answer);
    write_faults(output, answer);
    write_metadata(output, answer);
    write_points(output, answer);
    write_entries(output, answer);
    if (!answer->has_function && !answer->has_line && !answer->has_block && !answer->has_frame &&
        !answer->has_call && !answer->has_fault && answer->covered == NULL && !answer->is_atomic &&
        answer->declared_frame == NULL &&
        answer->record_count + answer->handled_count + answer->point_count + answer->entry_count ==
            0)
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
    const struct cairn_block *block = &answer->block;
    if (!answer->has_block) {
        json_name(json, "block", NULL);
        return;
    }
    json_begin_object(json, "block");
    json_fields(json, "id %u address %ju size %u offset %ju", block->id,
                shown(answer, block->address), block->size,
                answer->target.address - block->address);
    write_json_block_flags(json, block->flags);
    json_optional(json, "frequency", (answer->block_features & CAIRN_BBMAP_FREQUENCIES) != 0,
                  block->frequency);
    if ((answer->block_features & CAIRN_BBMAP_POST_LINK) != 0)
        json_fields(json, "post_link_frequency %ju", answer->block_details.post_link_frequency);
    if ((answer->block_features & CAIRN_BBMAP_HASHES) != 0)
        json_fields(json, "hash %ju", answer->block_details.hash);
    json_end_object(json);
}

static void write_record_json(struct json *json, const struct answer *answer,
                              struct cairn_record record, struct values_left *left)
{
    uint32_t location_count = cairn_record_location_count(record);
    uint32_t locations = take_values(&left->locations, location_count);
    struct cairn_liveout liveout;
    uint32_t liveouts = 0;
    json_fields(json, "id %ju address %ju", cairn_record_id(record),
                shown(answer, cairn_record_address(record)));
    json_begin_array(json, "locations");
    for (uint32_t i = 0; i < locations; i++)
        write_location_json(json, cairn_record_location(record, i));
    json_end_array(json);
    json_begin_array(json, "liveouts");
    while (liveouts < left->liveouts && record_liveout(record, liveouts, &liveout)) {
        write_liveout_json(json, liveout);
        liveouts++;
    }
    json_end_array(json);
    if (locations < location_count)
        json_fields(json, "more_locations %u", location_count - locations);
    if (record_liveout(record, liveouts, &liveout))
        json_fields(json, "more_liveouts %d", true);
    left->liveouts -= liveouts;
    json_end_object(json);
}

static void write_records_json(struct json *json, const struct answer *answer)
{
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    struct cairn_record record = answer->record;
    /* Both sections have the same number, but stack maps also tell frames of dynamic size. */
    uint64_t declared = answer->declared_frame != NULL ? answer->declared_frame->size : 0;
    json_optional(json, "stack_size", answer->has_frame || answer->declared_frame != NULL,
                  answer->has_frame ? answer->stack_size : declared);
    json_begin_array(json, "records");
    for (uint32_t i = 0; i < answer->record_count && i < LOOKUP_ITEMS_MAX; i++, record.index++) {
        json_begin_object(json, NULL);
        write_record_json(json, answer, record, &left);
    }
    end_items(json, "more_records", answer->record_count);
    if (answer->has_call) {
        json_begin_object(json, "returning_from");
        write_record_json(json, answer, answer->call, &left);
    } else {
        json_name(json, "returning_from", NULL);
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

static void write_covered(struct json *json, const struct answer *answer)
{
    const struct cairn_sanmd_entry *covered = answer->covered;
    if (covered == NULL) {
        json_name(json, "covered", NULL);
        return;
    }
    json_begin_object(json, "covered");
    json_fields(json, "address %ju size %u", shown(answer, answer->covered_address), covered->size);
    write_json_features(json, covered->features);
    json_fields(json, "stack_argument_bytes %u", covered->stack_argument_bytes);
    json_end_object(json);
}

static void write_points_json(struct json *json, const struct answer *answer)
{
    json_begin_array(json, "coverage");
    for (size_t i = 0; i < answer->point_count && i < LOOKUP_ITEMS_MAX; i++) {
        const struct cairn_sancov_point *point = &answer->points[i];
        json_begin_object(json, NULL);
        json_fields(json, "point %ju function_entry %d flags %ju", point->index,
                    (point->flags & CAIRN_SANCOV_FUNCTION_ENTRY) != 0, point->flags);
        json_end_object(json);
    }
    end_items(json, "more_coverage", answer->point_count);
}

static void write_entries_json(struct json *json, const struct answer *answer)
{
    json_begin_array(json, "entries");
    for (size_t i = 0; i < answer->entry_count && i < LOOKUP_ITEMS_MAX; i++) {
        const struct cairn_pc_table_entry *entry = &answer->entries[i];
        const struct cairn_pcsection_schema *schema = &entry->section->schema;
        json_begin_object(json, NULL);
        json_fields(json, "section %s address %ju", entry->section->name,
                    shown(answer, entry->value.address));
        json_optional(json, "size", schema->has_size, entry->value.size);
        write_json_constants(json, schema, &entry->value);
        json_end_object(json);
    }
    end_items(json, "more_entries", answer->entry_count);
}

/* The comma is written at the start of a line and not at the end of the previous one, so that each
 * line is complete when it is flushed. */
/* Most files have no lines. */
static void write_line_json(struct json *json, const struct answer *answer)
{
    char path[SOURCE_PATH_BYTES];
    if (!answer->has_line)
        return;
    source_line_path(&answer->line, path);
    json_name(json, "source_file", path);
    json_fields(json, "source_line %u", answer->line.line);
}

void write_answer_json(struct json *json, const struct answer *answer, bool has_base)
{
    json_begin_object(json, NULL);
    json_fields(json, "address %ju", answer->place.address);
    json_name(json, "section", place_section_name(&answer->place));
    if (has_base)
        json_fields(json, "loaded_address %ju", answer->target.loaded);
    json_name(json, "symbol", answer->has_function ? answer->function.name : NULL);
    json_optional(json, "offset", answer->has_function,
                  answer->place.address - answer->function.entry);
    write_line_json(json, answer);
    write_block_json(json, answer);
    write_records_json(json, answer);
    if (answer->has_fault)
        write_fault(json, "fault", answer, answer->fault);
    else
        json_name(json, "fault", NULL);
    json_begin_array(json, "handles");
    for (size_t i = 0; i < answer->handled_count && i < LOOKUP_ITEMS_MAX; i++)
        write_fault(json, NULL, answer, handled_fault(answer, i));
    end_items(json, "more_handles", answer->handled_count);
    write_covered(json, answer);
    json_fields(json, "atomic %d", answer->is_atomic);
    write_points_json(json, answer);
    write_entries_json(json, answer);
    json_end_object(json);
    output_character(json->output, '\n');
}
