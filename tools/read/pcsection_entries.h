/*
 * tools/read/pcsection_entries.h - the entries of the PC sections that were given to a command,
 * with their schemas.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_PCSECTION_ENTRIES_H
#define TOOLS_READ_PCSECTION_ENTRIES_H

#include "tools/read/layout.h"

#include <cairn/pcsection.h>

/* A section's name and its schema. */
struct wanted_section {
    const char *name;
    const char *text; /* the schema as text */
    struct cairn_pcsection_schema schema;
};

struct wanted_sections {
    struct wanted_section sections[OPTION_VALUES_MAX];
    size_t count;
};

/* The options that give names and schemas. */
struct section_options {
    struct option_values names;
    struct option_values schemas;
};

#define SECTION_OPTIONS(OPTIONS)                                                                   \
    {.name = "--section", .values = &(OPTIONS)->names, .needs = "the name of a section"},          \
    {                                                                                              \
        .name = "--schema", .values = &(OPTIONS)->schemas,                                         \
        .needs = "a schema, such as 'instruction 4 u32'"                                           \
    }

/* Pairs names and schemas in order. A single schema applies to all names. Without names there are
 * no sections. False, after an error message that begins with `command`. */
bool parse_wanted_sections(const char *command, const struct section_options *options,
                           struct wanted_sections *wanted);

/* The state of reading a section. */
struct entry_reader {
    const struct input *input;
    const struct layout *layout;
    const struct wanted_section *wanted;
    struct cairn_object_section section;
    size_t offset;    /* offset of the next entry */
    size_t run_begin; /* offset of the next one of the addresses that share constants */
    size_t run_end;   /* end of these addresses */
    struct cairn_pcsection_entry run; /* entry of the last of these addresses, with the constants */
};

/* An entry for one address. */
struct section_entry {
    struct cairn_pcsection_entry value; /* with an address of the layout */
    struct place place;
};

void entry_reader_open(struct entry_reader *reader, const struct input *input,
                       const struct layout *layout, const struct wanted_section *wanted,
                       const struct cairn_object_section *section);

/* Reads the next entry. False at the end, and after an invalid entry, for which `error->status` is
 * not CAIRN_OK. */
bool entry_reader_next(struct entry_reader *reader, struct section_entry *entry,
                       struct cairn_error *error);

/* Prints an error message about the invalid entry. Returns false. */
bool entry_reader_complain(const struct entry_reader *reader, const struct cairn_error *error);

/* Writes constants, as in ": 7 (0x7), 8 (0x8)". */
void write_constants(struct output *output, const struct cairn_pcsection_schema *schema,
                     const struct cairn_pcsection_entry *entry);
/* Writes them as an array with the key "constants". */
void write_json_constants(struct json *json, const struct cairn_pcsection_schema *schema,
                          const struct cairn_pcsection_entry *entry);

#endif
