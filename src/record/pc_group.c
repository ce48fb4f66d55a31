/*
 * Reads PC sections as LLVM writes them: entries in which several addresses share the constants
 * that follow them (the RUNS of cairn/pc_table.h), and zeros at the end.
 *
 * The end of a run is not marked. Its addresses ascend, because the code does. So a value that
 * leads to code after the last address is assumed to be the next address, as long as the constants
 * then still fit: they are followed by an address of code, the section's end, or only zeros.
 * Constants that lead from their place to code after their entry's would be mistaken for addresses.
 *
 * Each byte is read a bounded number of times. If the constants begin before the end of the
 * apparent addresses of a run, they begin at most VALUE_BYTES_MAX bytes before it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/pcsection.h"
#include "record/pc_table.h"

enum { VALUE_BYTES_MAX = CAIRN_PCSECTION_CONSTANTS_MAX * CAIRN_PCSECTION_CONSTANT_BYTES_MAX };

/* Reports the error in `*reason`, with the section and the entry that it belongs to. */
static enum cairn_status complain(const struct pc_group_reader *reader,
                                  const struct cairn_error *reason)
{
    return error_set(reader->error, reason->status, reason->offset,
                     "PC section '%.60s', entry %u: %s", reader->section->name, reader->number,
                     reason->message);
}

static bool is_code(const struct pc_group_reader *reader, uint64_t address)
{
    const struct cairn_pc_table_options *options = reader->options;
    /* If the code generator has left out the end of the code, the address before is still code. */
    return options->is_code(address, options->user) || options->is_code(address - 1, options->user);
}

static bool leads_to_code(const struct pc_group_reader *reader, size_t offset, uint64_t *address)
{
    const struct cairn_pc_table_section *section = reader->section;
    return pcsection_read_address(&section->section, section->address,
                                  section->schema.address_bytes, offset, address) &&
           is_code(reader, *address);
}

static enum cairn_status say_not_code(const struct pc_group_reader *reader, size_t offset)
{
    const struct cairn_pc_table_section *section = reader->section;
    uint64_t address;
    struct cairn_error reason = {0};
    if (!pcsection_read_address(&section->section, section->address, section->schema.address_bytes,
                                offset, &address))
        error_set(&reason, CAIRN_ERROR_TRUNCATED, offset,
                  "at byte %zu, the section ends inside an address of %u bytes: is the schema this "
                  "section's?",
                  offset, section->schema.address_bytes);
    else
        error_set(
            &reason, CAIRN_ERROR_CORRUPT, offset,
            "at byte %zu, an address of %u bytes was expected, and 0x%llx is not one of code: "
            "is the schema this section's?",
            offset, section->schema.address_bytes, (unsigned long long)address);
    return complain(reader, &reason);
}

static enum cairn_status read_values(const struct pc_group_reader *reader, size_t values,
                                     struct pc_group *group, struct cairn_error *error)
{
    const struct cairn_pc_table_section *section = reader->section;
    struct cairn_pcsection_entry entry = {.offset = group->offset};
    size_t end;
    enum cairn_status status =
        pcsection_read_values(&section->section, &section->schema, values, &entry, &end, error);
    if (status != CAIRN_OK)
        return status;
    group->values = values;
    group->end = end;
    group->size = entry.size;
    return CAIRN_OK;
}

/* Reads a run. Its constants begin after its addresses, or some words earlier if they look like
 * addresses. */
static enum cairn_status read_run(const struct pc_group_reader *reader, struct pc_group *group,
                                  struct cairn_error *error)
{
    size_t width = reader->section->schema.address_bytes;
    size_t last = group->offset + width;
    uint64_t address = group->address;
    uint64_t next;
    for (; leads_to_code(reader, last, &next) && next >= address; last += width)
        address = next;
    for (size_t at = last; at > group->offset && last - at <= VALUE_BYTES_MAX; at -= width) {
        struct pc_group candidate = *group;
        if (read_values(reader, at, &candidate, NULL) != CAIRN_OK ||
            (!leads_to_code(reader, candidate.end, &next) && candidate.end < reader->blank))
            continue;
        *group = candidate;
        return CAIRN_OK;
    }
    /* An error in what follows is reported when that is read. */
    return read_values(reader, last, group, error);
}

/* Reads a group if the code is known. */
static enum cairn_status read_group(const struct pc_group_reader *reader, struct pc_group *group)
{
    const struct cairn_pcsection_schema *schema = &reader->section->schema;
    bool may_be_run = schema->constant_count > 0 && !schema->has_size;
    struct cairn_error reason = {0};
    if (!leads_to_code(reader, group->offset, &group->address))
        return say_not_code(reader, group->offset);
    enum cairn_status status =
        may_be_run ? read_run(reader, group, &reason)
                   : read_values(reader, group->offset + schema->address_bytes, group, &reason);
    return status == CAIRN_OK ? CAIRN_OK : complain(reader, &reason);
}

/* Reads a group if the code is not known. */
static enum cairn_status read_single(const struct pc_group_reader *reader, struct pc_group *group)
{
    const struct cairn_pc_table_section *section = reader->section;
    struct cairn_pcsection_entry entry;
    struct cairn_error reason = {0};
    size_t end = group->offset;
    enum cairn_status status = cairn_pcsection_read(&section->section, section->address,
                                                    &section->schema, &end, &entry, &reason);
    if (status != CAIRN_OK)
        return complain(reader, &reason);
    group->values = group->offset + section->schema.address_bytes;
    group->end = end;
    group->address = entry.address;
    group->size = entry.size;
    return CAIRN_OK;
}

struct pc_group_reader pc_group_reader_of(const struct cairn_pc_table_section *section,
                                          const struct cairn_pc_table_options *options,
                                          struct cairn_error *error)
{
    size_t blank = section->section.size;
    while (blank > 0 && section->section.bytes[blank - 1] == 0)
        blank--;
    return (struct pc_group_reader){
        .section = section, .options = options, .blank = blank, .error = error};
}

enum cairn_status pc_group_next(struct pc_group_reader *reader, struct pc_group *group, bool *found)
{
    bool knows_code = reader->options->is_code != NULL;
    *group = (struct pc_group){.offset = reader->offset};
    *found = reader->offset < (knows_code ? reader->blank : reader->section->section.size);
    if (!*found)
        return CAIRN_OK;
    enum cairn_status status = knows_code ? read_group(reader, group) : read_single(reader, group);
    if (status != CAIRN_OK)
        return status;
    reader->offset = group->end;
    reader->number += pc_group_count(reader->section, group);
    return CAIRN_OK;
}
