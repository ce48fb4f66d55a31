/*
 * cairn lookup --json: one line for each address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/blocks.h"
#include "tools/lookup.h"
#include "tools/stackmap.h"

/* Returns an address as it is shown; in a relocatable object, as an offset from the start of its
 * section. */
static uint64_t shown(const struct answer *answer, uint64_t address)
{
    return layout_place(&answer->facts->layout, address).address;
}

/* Ends an array, and writes how many of `count` items are not in it, if any. */
static void end_items(struct json *json, const char *more, size_t count)
{
    json_end_array(json);
    if (count > LOOKUP_ITEMS_MAX)
        json_optional(json, more, true, count - LOOKUP_ITEMS_MAX);
}

static void write_block(struct json *json, const struct answer *answer)
{
    const cairn_block_table *blocks = answer->facts->blocks;
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

/* ---- Records ---- */

static void write_record(struct json *json, const struct answer *answer, struct cairn_record record,
                         struct values_left *left)
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

static void write_records(struct json *json, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    uint64_t address = answer->target.address;
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    uint64_t stack_size = 0;
    struct cairn_record record;
    bool has_frame = facts_find_frame(facts, address,
                                      answer->has_function ? &answer->function : NULL, &stack_size);
    uint32_t count = facts_find_records(facts, address, &record);
    json_optional(json, "stack_size", has_frame, stack_size);
    json_begin_array(json, "records");
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++, record.index++) {
        json_begin_object(json, NULL);
        write_record(json, answer, record, &left);
    }
    end_items(json, "more_records", count);
    if (facts_find_call(facts, address, &record)) {
        json_begin_object(json, "returning_from");
        write_record(json, answer, record, &left);
    } else {
        json_optional(json, "returning_from", false, 0);
    }
}

/* ---- Faults ---- */

static void write_fault(struct json *json, const char *key, const struct answer *answer,
                        struct cairn_fault_entry fault)
{
    json_begin_object(json, key);
    json_fields(json, "kind %s faulting_address %ju handler_address %ju",
                cairn_fault_kind_name(fault.kind), shown(answer, fault.address),
                shown(answer, fault.handler_address));
    json_end_object(json);
}

static void write_faults(struct json *json, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    uint64_t address = answer->target.address;
    struct cairn_fault_entry fault;
    uint32_t number;
    if (cairn_fault_table_find(facts->faults, address, &fault))
        write_fault(json, "fault", answer, fault);
    else
        json_optional(json, "fault", false, 0);
    json_begin_array(json, "handles");
    uint32_t count = facts_find_handled(facts, address, &number);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++)
        write_fault(json, NULL, answer, facts_handled(facts, number + i));
    end_items(json, "more_handles", count);
}

/* ---- Sanitizer metadata and PC sections ---- */

static void write_covered(struct json *json, const struct answer *answer)
{
    uint64_t address = 0;
    const struct cairn_sanmd_covered *covered =
        facts_find_covered(answer->facts, answer->target.address, &address);
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

static void write_entries(struct json *json, const struct answer *answer)
{
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t count = cairn_pc_table_find(answer->facts->entries, answer->target.address, entries,
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

/* ---- Answers ---- */

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
    write_block(json, answer);
    write_records(json, answer);
    write_faults(json, answer);
    write_covered(json, answer);
    json_fields(json, "atomic %d", facts_is_atomic(answer->facts, answer->target.address));
    write_entries(json, answer);
    json_end_object(json);
    output_character(json->output, '\n');
}
