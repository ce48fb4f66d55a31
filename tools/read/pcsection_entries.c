/*
 * Reading the entries of PC sections.
 *
 * LLVM writes one entry for all instructions of a function that share a metadata node, or that were
 * made from one instruction. Such a run has the addresses one after another, and then the constants
 * once. The section does not tell which values are addresses. In a relocatable object, addresses
 * are the places that have relocations. In a linked file, a value is an address if it leads to
 * code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/pcsection_entries.h"

#include <stdio.h>

/* ---- Command lines ---- */

bool parse_wanted_sections(const char *command, const struct section_options *options,
                           struct wanted_sections *wanted)
{
    const struct option_values *names = &options->names;
    const struct option_values *schemas = &options->schemas;
    if (names->count > 0 && schemas->count != names->count && schemas->count != 1)
        return complain("%s: --section is given %zu times and --schema %zu times: give one schema "
                        "for each section, or one for all; see 'cairn %s --help'",
                        command, names->count, schemas->count, command);
    wanted->count = names->count;
    for (size_t i = 0; i < names->count; i++) {
        struct cairn_error error;
        struct wanted_section *section = &wanted->sections[i];
        section->name = names->values[i];
        section->text = schemas->values[schemas->count == 1 ? 0 : i];
        if (cairn_pcsection_parse_schema(section->text, &section->schema, &error) != CAIRN_OK)
            return complain("%s: %s", command, error.message);
    }
    return true;
}

/* ---- Entries ---- */

void entry_reader_open(struct entry_reader *reader, const struct input *input,
                       const struct layout *layout, const struct wanted_section *wanted,
                       const struct cairn_object_section *section)
{
    *reader = (struct entry_reader){
        .input = input, .layout = layout, .wanted = wanted, .section = *section};
}

/* Reads the address at `offset`, as an address of the layout. False if the bytes are not an
 * address. */
static bool read_address(const struct entry_reader *reader, size_t offset, uint64_t *address)
{
    const struct cairn_object_section *section = &reader->section;
    const struct cairn_pcsection_schema bare = {.address_bytes =
                                                    reader->wanted->schema.address_bytes};
    struct cairn_pcsection_entry entry;
    if (offset >= section->contents.size ||
        cairn_pcsection_read(&section->contents, section->address, &bare, &offset, &entry, NULL) !=
            CAIRN_OK)
        return false;
    *address = entry.address;
    if (reader->layout->is_made_up) {
        uint32_t target = cairn_object_target_section(reader->input->object, section, entry.offset);
        *address = layout_address(reader->layout, target, entry.address);
    }
    return layout_section(reader->layout, *address) != NULL;
}

static enum cairn_status refuse(const struct entry_reader *reader, const char *reason,
                                struct cairn_error *error)
{
    error->offset = reader->offset;
    snprintf(error->message, sizeof error->message,
             "the entry at byte %zu does not fit the schema: %s", reader->offset, reason);
    return error->status = CAIRN_ERROR_CORRUPT;
}

/* Checks that in a relocatable object all addresses have relocations, and constants have none. */
static enum cairn_status check_relocations(const struct entry_reader *reader, size_t last,
                                           size_t next, struct cairn_error *error)
{
    uint8_t address_bytes = reader->wanted->schema.address_bytes;
    char reason[100];
    for (size_t at = reader->offset; at < next && reader->layout->is_made_up; at++) {
        bool is_address = at <= last && (at - reader->offset) % address_bytes == 0;
        if (is_address ||
            cairn_object_target_section(reader->input->object, &reader->section, at) == 0)
            continue;
        snprintf(reason, sizeof reason,
                 "byte %zu has a relocation, so it is an address and not a constant", at);
        return refuse(reader, reason, error);
    }
    return CAIRN_OK;
}

static enum cairn_status read_run(struct entry_reader *reader, struct cairn_error *error)
{
    uint64_t address;
    const struct cairn_object_section *section = &reader->section;
    const struct cairn_pcsection_schema *schema = &reader->wanted->schema;
    size_t last = reader->offset;
    if (section->contents.size - last >= schema->address_bytes &&
        !read_address(reader, last, &address))
        return refuse(reader, "its address does not lead to code", error);
    if (!schema->has_size && schema->constant_count > 0)
        while (read_address(reader, last + schema->address_bytes, &address))
            last += schema->address_bytes;
    size_t next = last;
    enum cairn_status status = cairn_pcsection_read(&section->contents, section->address, schema,
                                                    &next, &reader->run, error);
    if (status == CAIRN_OK)
        status = check_relocations(reader, last, next, error);
    if (status != CAIRN_OK)
        return status;
    reader->run_begin = reader->offset;
    reader->run_end = last + schema->address_bytes;
    reader->offset = next;
    return CAIRN_OK;
}

bool entry_reader_next(struct entry_reader *reader, struct section_entry *entry,
                       struct cairn_error *error)
{
    error->status = CAIRN_OK;
    if (reader->run_begin == reader->run_end) {
        if (reader->offset >= reader->section.contents.size)
            return false;
        error->status = read_run(reader, error);
        if (error->status != CAIRN_OK)
            return false;
    }
    entry->value = reader->run;
    entry->value.offset = reader->run_begin;
    read_address(reader, reader->run_begin, &entry->value.address);
    entry->place = layout_place(reader->layout, entry->value.address);
    reader->run_begin += reader->wanted->schema.address_bytes;
    return true;
}

bool entry_reader_complain(const struct entry_reader *reader, const struct cairn_error *error)
{
    uint64_t address;
    struct cairn_object_function function;
    const char *name = NULL;
    if (read_address(reader, reader->offset, &address) &&
        layout_function(reader->layout, address, &function))
        name = function.name;
    return complain("%s: %s, byte %llu: %s%s%s; the schema is '%s'", reader->input->name,
                    reader->section.name, (unsigned long long)error->offset, error->message,
                    name == NULL ? "" : "; it is about ", name == NULL ? "" : name,
                    reader->wanted->text);
}

/* ---- Constants ---- */

void write_constants(struct output *output, const struct cairn_pcsection_schema *schema,
                     const struct cairn_pcsection_entry *entry)
{
    for (uint8_t i = 0; i < schema->constant_count; i++)
        output_format(output, "%s%ju (0x%jx)", i == 0 ? ": " : ", ", entry->constants[i],
                      entry->constants[i]);
}

void write_json_constants(struct json *json, const struct cairn_pcsection_schema *schema,
                          const struct cairn_pcsection_entry *entry)
{
    json_begin_array(json, "constants");
    for (uint8_t i = 0; i < schema->constant_count; i++)
        json_unsigned(json, entry->constants[i]);
    json_end_array(json);
}
