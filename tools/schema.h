/*
 * tools/schema.h - PC sections of a file: those that were asked for, with their schemas, and their
 * entries.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SCHEMA_H
#define TOOLS_SCHEMA_H

#include "tools/layout.h"
#include "tools/options.h"

#include <cairn/pcsection.h>

/* Sections by name, each with its schema. */
struct wanted_section {
    const char *name;
    const char *text; /* of the schema */
    struct cairn_pcsection_schema schema;
};

struct wanted_sections {
    struct wanted_section sections[OPTION_VALUES_MAX];
    size_t count;
};

/* Pairs names and schemas in their order; one schema alone is for all sections. No names are
 * no sections, whatever the schemas. False: complained, in the name of `command`. */
bool parse_wanted_sections(const char *command, const struct option_values *names,
                           const struct option_values *schemas, struct wanted_sections *wanted);

/* A section while it is read. */
struct entry_reader {
    const struct input *input;
    const struct layout *layout;
    const struct wanted_section *wanted;
    struct cairn_object_section section;
    size_t offset;    /* of the next entry */
    size_t run_begin; /* of the addresses that share constants, the one that comes next */
    size_t run_end;   /* behind the last of them */
    struct cairn_pcsection_entry run; /* the last of them, with the constants of all */
};

/* One address with what is said about it. */
struct section_entry {
    struct cairn_pcsection_entry value; /* its address is the layout's */
    struct place place;
};

void entry_reader_open(struct entry_reader *reader, const struct input *input,
                       const struct layout *layout, const struct wanted_section *wanted,
                       const struct cairn_object_section *section);

/* The next entry. False at the end, and behind one that is no good: `error->status` is then not
 * CAIRN_OK. */
bool entry_reader_next(struct entry_reader *reader, struct section_entry *entry,
                       struct cairn_error *error);

/* Complains of the entry that was no good. */
void entry_reader_complain(const struct entry_reader *reader, const struct cairn_error *error);

#endif
