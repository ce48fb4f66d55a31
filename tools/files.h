/*
 * tools/files.h - the objects of the file that a command was given.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include "tools/json.h"
#include "tools/output.h"

#include <cairn/object.h>
#include <stdbool.h>

/* An object, and what it is called in complaints: "file", or "archive(member)". */
struct input {
    const char *name;
    cairn_object *object;
    bool is_member; /* of an archive */
};

/* What a command does with an object; false: it has complained. `user` is the command's. */
typedef bool visit_input(const struct input *input, void *user);

/* Opens the file at `path` ("-" is standard input) and visits it, or if it is an archive each of
 * its members in turn, also behind one that is no good. `debug_path` names a separate debug file;
 * NULL: where the object has no symbols of its own, one is looked for where debuggers do.
 * `memory_limit` is that of each object, and of what is read from standard input; 0: the default.
 * False: something was no good, and complained of. */
bool visit_file(const char *path, const char *debug_path, uint64_t memory_limit, visit_input *visit,
                void *user);

/* Whether symbols of functions that are not exported are there: not in a file that was stripped. */
bool has_symbol_table(const cairn_object *object);

/* What stands above that which is printed of an archive's member: a line with its name. */
void write_member(struct output *output, const struct input *input);

/* The same in an object: the key "file", for an archive's member. */
void write_json_member(struct json *json, const struct input *input);

/* Addresses in a relocatable object's section that have no relocation to another one, without which
 * nobody knows where they are. */
struct lost_addresses {
    size_t count;
    size_t first; /* its offset in the section */
};

/* Counts the address at `offset` of a section if it is such a one. */
void check_address(const cairn_object *object, const struct cairn_object_section *section,
                   size_t offset, struct lost_addresses *lost);

/* Complains of them; true if there are none. */
bool complain_of_lost(const char *path, const struct cairn_object_section *section,
                      const struct lost_addresses *lost);

/* Complains of what is wrong at `error->offset` of a section. */
void complain_of_section(const struct input *input, const struct cairn_object_section *section,
                         const struct cairn_error *error);

#endif
