/*
 * tools/print/stackmap.h - the stack maps of an object as text and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PRINT_STACKMAP_H
#define TOOLS_PRINT_STACKMAP_H

#include "tools/read/files.h"
#include "tools/site/listing.h"

#include <cairn/stackmap.h>

/* The result of checking the stack maps of an object. */
struct map_check {
    size_t section_count;
    bool is_valid; /* whether all maps can be written */
    bool is_good;  /* whether no error message was printed */
};

/* Checks all maps and the addresses of functions. Prints an error message for each section with an
 * error. */
struct map_check check_maps(const struct input *input);

/* Writes all maps of the object, as text or JSON. check_maps must have found them valid. `listing`
 * may be NULL; sites are then not shown. */
void write_maps(const struct input *input, struct listing *listing);

#define NO_STACKMAPS                                                                               \
    "there is no section " CAIRN_OBJECT_STACKMAPS                                                  \
    ": the code was compiled without stack maps, or "                                              \
    "linking (--gc-sections) or strip removed the section"

#endif
