/*
 * cairn lookup, as text: a line for each address, followed by what is known about it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/command.h"
#include "tools/lookup.h"
#include "tools/words.h"

#include <cairn/sanmd.h>

static void write_place(struct output *output, const struct place *place)
{
    if (place->section != NULL) {
        output_name(output, place->section->name);
        output_character(output, ':');
    }
    output_hexadecimal(output, place->address);
}

/* Writes an address of the layout, as in "0x1136 = main + 0x6". */
static void write_address(struct output *output, const struct facts *facts, uint64_t address)
{
    struct place place = layout_place(&facts->layout, address);
    struct cairn_object_function function;
    write_place(output, &place);
    if (!layout_function(&facts->layout, address, &function))
        return;
    output_text(output, " = ");
    write_name_offset(output, function.name, place.address - function.entry);
}

/* ---- Blocks ---- */

static void write_flags(struct output *output, uint8_t flags)
{
    static const struct {
        uint8_t flag;
        const char *words;
    } names[] = {
        {CAIRN_BBMAP_IS_EH_PAD, "landing pad"},
        {CAIRN_BBMAP_HAS_RETURN, "returns"},
        {CAIRN_BBMAP_HAS_TAIL_CALL, "tail call"},
        {CAIRN_BBMAP_HAS_INDIRECT_BRANCH, "indirect branch"},
        {CAIRN_BBMAP_CAN_FALL_THROUGH, "can fall through"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((flags & names[i].flag) == 0)
            continue;
        output_text(output, ", ");
        output_text(output, names[i].words);
    }
}

static void write_profile(struct output *output, const struct facts *facts,
                          const struct cairn_block *block)
{
    struct cairn_block_function function = {0};
    struct cairn_block_details details = {0};
    (void)cairn_block_table_function(facts->blocks, block->function, &function);
    (void)cairn_block_table_details(facts->blocks, block->function, block->index, &details);
    if ((function.features & CAIRN_BBMAP_FREQUENCIES) != 0) {
        output_text(output, ", frequency ");
        output_unsigned(output, block->frequency);
    }
    if ((function.features & CAIRN_BBMAP_POST_LINK) != 0) {
        output_text(output, ", after linking ");
        output_unsigned(output, details.post_link_frequency);
    }
    if ((function.features & CAIRN_BBMAP_HASHES) != 0) {
        output_text(output, ", hash ");
        output_hexadecimal(output, details.hash);
    }
}

static bool write_block(struct output *output, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    struct cairn_block block;
    if (facts->blocks == NULL ||
        !cairn_block_table_find(facts->blocks, answer->target.address, &block))
        return false;
    struct place place = layout_place(&facts->layout, block.address);
    output_text(output, "  block ");
    output_style(output, STYLE_NUMBER);
    output_unsigned(output, block.id);
    output_style(output, STYLE_PLAIN);
    output_text(output, " at ");
    write_place(output, &place);
    output_text(output, " + ");
    output_hexadecimal(output, answer->target.address - block.address);
    output_text(output, ", ");
    write_count(output, block.size, "byte", "bytes");
    write_flags(output, block.flags);
    write_profile(output, facts, &block);
    output_character(output, '\n');
    return true;
}

/* ---- Records ---- */

/* What the records of an answer may still have. */
struct values_left {
    uint32_t locations;
    uint32_t liveouts;
};

static void write_values(struct output *output, const struct answer *answer,
                         struct cairn_record record, struct values_left *left)
{
    uint32_t location_count = cairn_record_location_count(record);
    uint32_t locations = lookup_take_values(&left->locations, location_count);
    enum cairn_architecture architecture = cairn_object_architecture(answer->facts->input->object);
    for (uint32_t i = 0; i < locations; i++) {
        output_text(output, "    ");
        output_unsigned(output, i);
        output_text(output, ": ");
        write_location(output, architecture, cairn_record_location(record, i));
        output_character(output, '\n');
    }
    if (locations < location_count)
        output_format(output, "    and %u locations more\n", location_count - locations);
    struct cairn_liveout liveout;
    uint32_t i = 0;
    for (; i < left->liveouts && cairn_record_liveout(record, i, &liveout); i++) {
        output_text(output, i == 0 ? "    live across: " : ", ");
        write_register(output, architecture, liveout.dwarf);
        output_character(output, ' ');
        write_count(output, liveout.size, "byte", "bytes");
    }
    bool has_more = cairn_record_liveout(record, i, &liveout);
    if (has_more)
        output_text(output, i == 0 ? "    live across: more" : ", and more");
    if (has_more || i > 0)
        output_character(output, '\n');
    left->liveouts -= i;
}

static void write_record(struct output *output, const struct answer *answer, const char *before,
                         struct cairn_record record, struct values_left *left)
{
    output_text(output, before);
    output_text(output, " ID ");
    output_style(output, STYLE_NUMBER);
    output_unsigned(output, cairn_record_id(record));
    output_style(output, STYLE_PLAIN);
    if (cairn_record_address(record) != answer->target.address) {
        output_text(output, " at ");
        write_address(output, answer->facts, cairn_record_address(record));
    }
    output_character(output, '\n');
    write_values(output, answer, record, left);
}

/* Writes how many of `count` items are not shown. */
static void write_more(struct output *output, size_t count, const char *items)
{
    if (count > LOOKUP_ITEMS_MAX)
        output_format(output, "  and %zu %s more\n", count - LOOKUP_ITEMS_MAX, items);
}

static bool write_records(struct output *output, const struct answer *answer)
{
    const struct facts *facts = answer->facts;
    uint64_t stack_size;
    struct cairn_record record;
    bool has_frame = facts_find_frame(facts, answer->target.address,
                                      answer->has_function ? &answer->function : NULL, &stack_size);
    if (has_frame) {
        output_text(output, "  ");
        write_frame(output, stack_size);
        output_character(output, '\n');
    }
    struct values_left left = {LOOKUP_VALUES_MAX, LOOKUP_VALUES_MAX};
    uint32_t count = facts_find_records(facts, answer->target.address, &record);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++, record.index++)
        write_record(output, answer, "  record", record, &left);
    write_more(output, count, "records");
    bool has_call = facts_find_call(facts, answer->target.address, &record);
    if (has_call)
        write_record(output, answer, "  the call returns here of record", record, &left);
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
        write_address(output, facts, fault.handler_address);
        output_character(output, '\n');
    }
    uint32_t count = facts_find_handled(facts, answer->target.address, &number);
    for (uint32_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++) {
        fault = facts_handled(facts, number + i);
        output_format(output, "  goes on here if a %s faults at ",
                      cairn_fault_kind_name(fault.kind));
        write_address(output, facts, fault.address);
        output_character(output, '\n');
    }
    write_more(output, count, "faults");
    return has_fault || count > 0;
}

/* ---- Sanitizer metadata and PC sections ---- */

static void write_covered(struct output *output, const struct covered_function *covered)
{
    const char *before = ": ";
    output_text(output, "  covered by sanitizers' metadata");
    for (uint32_t feature = 1; feature != 0; feature <<= 1) {
        const char *name = cairn_sanmd_feature_name(feature);
        if ((covered->features & feature) == 0 || name == NULL)
            continue;
        output_text(output, before);
        output_text(output, name);
        before = ", ";
    }
    if (covered->stack_argument_bytes > 0) {
        output_text(output, before);
        write_count(output, covered->stack_argument_bytes, "byte", "bytes");
        output_text(output, " of arguments on the stack");
    }
    output_character(output, '\n');
}

static bool write_metadata(struct output *output, const struct answer *answer)
{
    const struct covered_function *covered =
        facts_find_covered(answer->facts, answer->target.address);
    bool is_atomic = facts_is_atomic(answer->facts, answer->target.address);
    if (covered != NULL)
        write_covered(output, covered);
    if (is_atomic)
        output_text(output, "  atomic access\n");
    return covered != NULL || is_atomic;
}

static void write_entry(struct output *output, const struct answer *answer,
                        const struct cairn_pc_table_entry *entry)
{
    const struct cairn_pcsection_schema *schema = &entry->section->schema;
    output_text(output, "  ");
    output_name(output, entry->section->name);
    if (schema->has_size) {
        output_text(output, ": function at ");
        write_address(output, answer->facts, entry->value.address);
        output_text(output, ", ");
        write_count(output, entry->value.size, "byte", "bytes");
    } else {
        output_text(output, ": instruction");
    }
    for (uint8_t i = 0; i < schema->constant_count; i++) {
        output_text(output, i == 0 ? ": " : ", ");
        output_unsigned(output, entry->value.constants[i]);
        output_text(output, " (");
        output_hexadecimal(output, entry->value.constants[i]);
        output_character(output, ')');
    }
    output_character(output, '\n');
}

static bool write_entries(struct output *output, const struct answer *answer)
{
    struct cairn_pc_table_entry entries[LOOKUP_ITEMS_MAX];
    size_t count = cairn_pc_table_find(answer->facts->entries, answer->target.address, entries,
                                       LOOKUP_ITEMS_MAX);
    for (size_t i = 0; i < count && i < LOOKUP_ITEMS_MAX; i++)
        write_entry(output, answer, &entries[i]);
    write_more(output, count, "entries");
    return count > 0;
}

/* ---- Answers ---- */

static void write_heading(struct output *output, const struct answer *answer)
{
    output_style(output, STYLE_HEADING);
    if (answer->has_base)
        output_hexadecimal(output, answer->target.loaded);
    else
        write_place(output, &answer->place);
    output_style(output, STYLE_PLAIN);
    if (answer->has_base) {
        output_text(output, ", in the file ");
        write_place(output, &answer->place);
    }
    if (answer->has_function) {
        output_text(output, " = ");
        write_name_offset(output, answer->function.name,
                          answer->place.address - answer->function.entry);
    }
    output_character(output, '\n');
}

void write_answer_text(struct output *output, const struct answer *answer)
{
    write_heading(output, answer);
    bool is_known = answer->has_function;
    is_known = write_block(output, answer) || is_known;
    is_known = write_records(output, answer) || is_known;
    is_known = write_faults(output, answer) || is_known;
    is_known = write_metadata(output, answer) || is_known;
    is_known = write_entries(output, answer) || is_known;
    if (!is_known)
        output_text(output, "  nothing is known\n");
}
