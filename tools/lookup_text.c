/*
 * cairn lookup, as text: a line for each address, followed by what is known about it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/blocks.h"
#include "tools/lookup.h"
#include "tools/record_text.h"

/* Writes an address of the layout, as in "0x1136 = main + 0x6". */
static void write_address(struct output *output, const struct answer *answer, uint64_t address)
{
    struct place place = layout_place(&answer->facts->layout, address);
    struct cairn_object_function function;
    write_place(output, &place);
    if (layout_function(&answer->facts->layout, address, &function))
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
    const cairn_block_table *blocks = answer->facts->blocks;
    struct cairn_block block;
    struct cairn_block_function function = {0};
    struct cairn_block_details details = {0};
    if (blocks == NULL || !cairn_block_table_find(blocks, answer->target.address, &block))
        return false;
    struct place place = layout_place(&answer->facts->layout, block.address);
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

/* ---- Records ---- */

static void write_record(struct output *output, const struct answer *answer, const char *before,
                         struct cairn_record record, struct values_left *left)
{
    enum cairn_architecture architecture = cairn_object_architecture(answer->facts->input->object);
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
    const struct facts *facts = answer->facts;
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    uint64_t stack_size;
    struct cairn_record record;
    bool has_frame = facts_find_frame(facts, answer->target.address,
                                      answer->has_function ? &answer->function : NULL, &stack_size);
    if (has_frame) {
        output_text(output, "  ");
        write_frame(output, stack_size);
        output_character(output, '\n');
    }
    uint32_t count = facts_find_records(facts, answer->target.address, &record);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++, record.index++)
        write_record(output, answer, "record", record, &left);
    write_more(output, count, "records");
    bool has_call = facts_find_call(facts, answer->target.address, &record);
    if (has_call)
        write_record(output, answer, "the call returns here of record", record, &left);
    return has_frame || count > 0 || has_call;
}

/* ---- Faults ---- */

static bool write_faults(struct output *output, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    struct cairn_fault_entry fault;
    uint32_t number;
    bool has_fault = cairn_fault_table_find(facts->faults, answer->target.address, &fault);
    if (has_fault) {
        output_format(output, "  %s may fault: goes on at ", cairn_fault_kind_name(fault.kind));
        write_address(output, answer, fault.handler_address);
        output_character(output, '\n');
    }
    uint32_t count = facts_find_handled(facts, answer->target.address, &number);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++) {
        fault = facts_handled(facts, number + i);
        output_format(output, "  goes on here if a %s faults at ",
                      cairn_fault_kind_name(fault.kind));
        write_address(output, answer, fault.address);
        output_character(output, '\n');
    }
    write_more(output, count, "faults");
    return has_fault || count > 0;
}

/* ---- Sanitizer metadata and PC sections ---- */

static bool write_metadata(struct output *output, const struct answer *answer)
{
    uint64_t address;
    const struct cairn_sanmd_covered *covered =
        facts_find_covered(answer->facts, answer->target.address, &address);
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
    bool is_atomic = facts_is_atomic(answer->facts, answer->target.address);
    if (is_atomic)
        output_text(output, "  atomic access\n");
    return covered != NULL || is_atomic;
}

static bool write_entries(struct output *output, const struct answer *answer)
{
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t count = cairn_pc_table_find(answer->facts->entries, answer->target.address, entries,
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

/* ---- Answers ---- */

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
