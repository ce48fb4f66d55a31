/*
 * cairn lookup --json: one line for each address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup.h"
#include "tools/stackmap.h"
#include "tools/words.h"

#include <cairn/sanmd.h>

/* Writes an address as it is shown; in a relocatable object, as an offset from the start of its
 * section. */
static void write_address(struct json *json, const struct facts *facts, const char *key,
                          uint64_t address)
{
    json_key(json, key);
    json_unsigned(json, layout_place(&facts->layout, address).address);
}

static void write_flag(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_boolean(json, value);
}

/* Writes how many of `count` items are not in the array, if any. */
static void write_more(struct json *json, const char *key, size_t count, size_t shown)
{
    if (count <= shown)
        return;
    json_key(json, key);
    json_unsigned(json, count - shown);
}

/* ---- Blocks ---- */

static void write_frequency(struct json *json, const struct cairn_block_function *function,
                            const struct cairn_block *block)
{
    json_key(json, "frequency");
    if ((function->features & CAIRN_BBMAP_FREQUENCIES) != 0)
        json_unsigned(json, block->frequency);
    else
        json_null(json);
}

static void write_details(struct json *json, const struct facts *facts,
                          const struct cairn_block_function *function,
                          const struct cairn_block *block)
{
    struct cairn_block_details details = {0};
    (void)cairn_block_table_details(facts->blocks, block->function, block->index, &details);
    if ((function->features & CAIRN_BBMAP_POST_LINK) != 0) {
        json_key(json, "post_link_frequency");
        json_unsigned(json, details.post_link_frequency);
    }
    if ((function->features & CAIRN_BBMAP_HASHES) != 0) {
        json_key(json, "hash");
        json_unsigned(json, details.hash);
    }
}

static void write_block(struct json *json, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    struct cairn_block block;
    json_key(json, "block");
    if (facts->blocks == NULL ||
        !cairn_block_table_find(facts->blocks, answer->target.address, &block)) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_key(json, "id");
    json_unsigned(json, block.id);
    write_address(json, facts, "address", block.address);
    json_key(json, "size");
    json_unsigned(json, block.size);
    json_key(json, "offset");
    json_unsigned(json, answer->target.address - block.address);
    write_flag(json, "has_return", (block.flags & CAIRN_BBMAP_HAS_RETURN) != 0);
    write_flag(json, "has_tail_call", (block.flags & CAIRN_BBMAP_HAS_TAIL_CALL) != 0);
    write_flag(json, "is_eh_pad", (block.flags & CAIRN_BBMAP_IS_EH_PAD) != 0);
    write_flag(json, "can_fall_through", (block.flags & CAIRN_BBMAP_CAN_FALL_THROUGH) != 0);
    write_flag(json, "has_indirect_branch", (block.flags & CAIRN_BBMAP_HAS_INDIRECT_BRANCH) != 0);
    struct cairn_block_function function = {0};
    (void)cairn_block_table_function(facts->blocks, block.function, &function);
    write_frequency(json, &function, &block);
    write_details(json, facts, &function, &block);
    json_end_object(json);
}

/* ---- Records ---- */

/* What the records of an answer may still have. */
struct values_left {
    uint32_t locations;
    uint32_t liveouts;
};

static void write_record(struct json *json, const struct answer *answer, struct cairn_record record,
                         struct values_left *left)
{
    uint32_t location_count = cairn_record_location_count(record);
    uint32_t locations = lookup_take_values(&left->locations, location_count);
    json_begin_object(json);
    json_key(json, "id");
    json_unsigned(json, cairn_record_id(record));
    write_address(json, answer->facts, "address", cairn_record_address(record));
    json_key(json, "locations");
    json_begin_array(json);
    for (uint32_t i = 0; i < locations; i++)
        write_location_object(json, cairn_record_location(record, i));
    json_end_array(json);
    json_key(json, "liveouts");
    json_begin_array(json);
    struct cairn_liveout liveout;
    uint32_t liveouts = 0;
    for (; liveouts < left->liveouts && cairn_record_liveout(record, liveouts, &liveout);
         liveouts++)
        write_liveout_object(json, liveout);
    json_end_array(json);
    write_more(json, "more_locations", location_count, locations);
    if (cairn_record_liveout(record, liveouts, &liveout))
        write_flag(json, "more_liveouts", true);
    left->liveouts -= liveouts;
    json_end_object(json);
}

static void write_records(struct json *json, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    uint64_t address = answer->target.address;
    const struct cairn_object_function *function = answer->has_function ? &answer->function : NULL;
    uint64_t stack_size;
    struct cairn_record record;
    json_key(json, "stack_size");
    if (facts_find_frame(facts, address, function, &stack_size))
        json_unsigned(json, stack_size);
    else
        json_null(json);
    json_key(json, "records");
    json_begin_array(json);
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    uint32_t count = facts_find_records(facts, address, &record);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++, record.index++)
        write_record(json, answer, record, &left);
    json_end_array(json);
    write_more(json, "more_records", count, LOOKUP_ITEMS_MAX);
    json_key(json, "returning_from");
    if (facts_find_call(facts, address, &record))
        write_record(json, answer, record, &left);
    else
        json_null(json);
}

/* ---- Faults ---- */

static void write_fault(struct json *json, const struct facts *facts,
                        const struct cairn_fault_entry *fault)
{
    json_begin_object(json);
    json_key(json, "kind");
    json_string(json, cairn_fault_kind_name(fault->kind));
    write_address(json, facts, "faulting_address", fault->address);
    write_address(json, facts, "handler_address", fault->handler_address);
    json_end_object(json);
}

static void write_faults(struct json *json, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    uint64_t address = answer->target.address;
    struct cairn_fault_entry fault;
    uint32_t number;
    json_key(json, "fault");
    if (cairn_fault_table_find(facts->faults, address, &fault))
        write_fault(json, facts, &fault);
    else
        json_null(json);
    json_key(json, "handles");
    json_begin_array(json);
    uint32_t count = facts_find_handled(facts, address, &number);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++) {
        fault = facts_handled(facts, number + i);
        write_fault(json, facts, &fault);
    }
    json_end_array(json);
    write_more(json, "more_handles", count, LOOKUP_ITEMS_MAX);
}

/* ---- Sanitizer metadata and PC sections ---- */

static void write_covered(struct json *json, const struct answer *answer)
{
    const struct covered_function *covered =
        facts_find_covered(answer->facts, answer->target.address);
    json_key(json, "covered");
    if (covered == NULL) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    write_address(json, answer->facts, "address", covered->address);
    json_key(json, "size");
    json_unsigned(json, covered->size);
    json_key(json, "features");
    json_begin_array(json);
    for (uint32_t feature = 1; feature != 0; feature <<= 1)
        if ((covered->features & feature) != 0 && cairn_sanmd_feature_name(feature) != NULL)
            json_string(json, cairn_sanmd_feature_name(feature));
    json_end_array(json);
    json_key(json, "stack_argument_bytes");
    json_unsigned(json, covered->stack_argument_bytes);
    json_end_object(json);
}

static void write_entry(struct json *json, const struct facts *facts,
                        const struct cairn_pc_table_entry *entry)
{
    json_begin_object(json);
    json_key(json, "section");
    json_string(json, entry->section->name);
    write_address(json, facts, "address", entry->value.address);
    json_key(json, "size");
    if (entry->section->schema.has_size)
        json_unsigned(json, entry->value.size);
    else
        json_null(json);
    json_key(json, "constants");
    json_begin_array(json);
    for (uint8_t i = 0; i < entry->section->schema.constant_count; i++)
        json_unsigned(json, entry->value.constants[i]);
    json_end_array(json);
    json_end_object(json);
}

static void write_entries(struct json *json, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t count =
        cairn_pc_table_find(facts->entries, answer->target.address, entries, LOOKUP_ITEMS_MAX);
    json_key(json, "entries");
    json_begin_array(json);
    for (size_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++)
        write_entry(json, facts, &entries[i]);
    json_end_array(json);
    write_more(json, "more_entries", count, LOOKUP_ITEMS_MAX);
}

/* ---- Answers ---- */

static void write_function(struct json *json, const struct answer *answer)
{
    json_key(json, "symbol");
    write_json_name(json, answer->has_function ? answer->function.name : NULL);
    json_key(json, "offset");
    if (answer->has_function)
        json_unsigned(json, answer->place.address - answer->function.entry);
    else
        json_null(json);
}

/* The comma is written at the start of a line and not at the end of the previous one, so that each
 * line is complete when it is flushed. */
void write_answer_json(struct json *json, const struct answer *answer)
{
    json_begin_object(json);
    json_key(json, "address");
    json_unsigned(json, answer->place.address);
    json_key(json, "section");
    write_json_name(json, answer->place.section == NULL ? NULL : answer->place.section->name);
    if (answer->has_base) {
        json_key(json, "loaded_address");
        json_unsigned(json, answer->target.loaded);
    }
    write_function(json, answer);
    write_block(json, answer);
    write_records(json, answer);
    write_faults(json, answer);
    write_covered(json, answer);
    write_flag(json, "atomic", facts_is_atomic(answer->facts, answer->target.address));
    write_entries(json, answer);
    json_end_object(json);
    output_character(json->output, '\n');
}
