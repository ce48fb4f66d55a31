/*
 * tools/files.h - opening the objects in a file that a command was given.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include "tools/json.h"
#include "tools/output.h"

#include <cairn/object.h>
#include <stdbool.h>

/* An object, with its name in error messages: "file", or "archive(member)". */
struct input {
    const char *name;
    cairn_object *object;
    uint64_t size;  /* bytes of the file or member, and of its debug file */
    bool is_member; /* whether the object is a member of an archive */
};

/* A callback that processes an object. False if it has printed an error message. `user` is passed
 * through. */
typedef bool visit_input(const struct input *input, void *user);

/* Opens the file at `path` ("-" is standard input) and visits its object, or the members of an
 * archive in turn, also after an invalid one. `debug_path` names a separate debug file; if it is
 * NULL and the object has no symbols, a debug file is searched for in the places where debuggers
 * search. `memory_limit` applies to each object, and to the bytes read from standard input; 0 is
 * the default. False if anything was invalid, after an error message. */
bool visit_file(const char *path, const char *debug_path, uint64_t memory_limit, visit_input *visit,
                void *user);

/* Whether the object has symbols of functions that are not exported. A stripped file has none. */
bool has_symbol_table(const cairn_object *object);

/* Writes a line with the name of an archive's member, before the output for it. Writes nothing for
 * other objects. */
void write_member(struct output *output, const struct input *input);

/* Writes that name into a JSON object, with the key "file". */
void write_json_member(struct json *json, const struct input *input);

/* Addresses in a section of a relocatable object that have no relocation to a section, so that the
 * sections they are in are unknown. */
struct lost_addresses {
    size_t count;
    size_t first; /* offset of the first one in the section */
};

/* Counts the address at `offset` of a section if it is such an address. */
void check_address(const cairn_object *object, const struct cairn_object_section *section,
                   size_t offset, struct lost_addresses *lost);

/* Prints an error message if there are such addresses. True if there are none. */
bool complain_of_lost(const char *path, const struct cairn_object_section *section,
                      const struct lost_addresses *lost);

/* Prints an error message about the bytes at `error->offset` of a section. */
void complain_of_section(const struct input *input, const struct cairn_object_section *section,
                         const struct cairn_error *error);

#endif
