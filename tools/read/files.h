/*
 * tools/read/files.h - opening the objects in a file that a command was given.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_FILES_H
#define TOOLS_READ_FILES_H

#include "tools/cli/command.h"
#include "tools/cli/json.h"
#include "tools/cli/list.h"

#include <cairn/object.h>
#include <stdbool.h>

/* The standard output of a command, as text or as JSON. */
struct printer {
    struct output output;
    struct json json;
    bool is_json;
    bool has_output; /* whether there is anything to print, even if it is an empty list */
};

/* An object of a file that a command was given. */
struct input {
    const char *name; /* for error messages: "file", or "archive(member)" */
    cairn_object *object;
    uint64_t size;  /* bytes of the file or member, and of its debug file */
    bool is_member; /* whether the object is a member of an archive */
    struct printer *printer;
};

/* A callback that processes an object. False if it has printed an error message. `user` is passed
 * through. */
typedef bool visit_input(const struct input *input, void *user);

/* Opens the file ("-" is standard input) and visits its object, or the members of an archive in
 * turn, also after an invalid one. Without a debug path, a debug file of an object without symbols
 * or without source lines is searched for in the places where debuggers search. The memory limit
 * applies to each object, and to the bytes read from standard input. False if anything was invalid,
 * after an error message. */
bool visit_file(const struct file_options *options, struct printer *printer, visit_input *visit,
                void *user);

/* Visits the file, in JSON inside an array, and writes the output. EXIT_BAD_INPUT if anything was
 * invalid, and, without output, if no visit has set `has_output` of the printer. In this case
 * `missing` is the error message, unless there was another one. */
enum exit_status print_file(const struct file_options *options, visit_input *visit, void *user,
                            const char *missing);

/* Calls print_file for a command that has no other options than those of struct file_options. */
enum exit_status print_command(int argc, char **argv, struct command_line *line, visit_input *visit,
                               void *user, const char *missing);

/* Whether the object has symbols of functions that are not exported. A stripped file has none. */
bool has_symbol_table(const cairn_object *object);

/* Writes the name of an archive's member: a line before the text for it, or in JSON a field with
 * the key "file". Writes nothing for other objects. */
void write_member(const struct input *input);

/* A callback that processes a section. False if it has printed an error message. */
typedef bool visit_section(const struct input *input, const struct cairn_object_section *section,
                           void *user);

/* Visits the sections that match the filter, also after an invalid one. `title` names them in error
 * messages. False if anything was invalid, after an error message. */
bool visit_sections(const struct input *input, const struct cairn_object_filter *filter,
                    const char *title, visit_section *visit, void *user);

/* Visits the sections with either name, first those with `name`. */
bool visit_named_sections(const struct input *input, const char *name, const char *other_name,
                          visit_section *visit, void *user);

/* Addresses in a section of a relocatable object that have no relocation to a section, so that the
 * sections they are in are unknown. */
struct lost_addresses {
    size_t count;
    size_t first; /* offset of the first one in the section */
};

/* Counts the address at `offset` of a section if it is such an address. */
void check_address(const cairn_object *object, const struct cairn_object_section *section,
                   size_t offset, struct lost_addresses *lost);

/* Prints an error message if `error` is one, about the bytes at its offset in the section, and one
 * if there are lost addresses. True if neither is the case. */
bool check_section(const struct input *input, const struct cairn_object_section *section,
                   const struct lost_addresses *lost, const struct cairn_error *error);

#endif
