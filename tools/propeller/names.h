/*
 * tools/propeller/names.h - all names of functions at given addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROPELLER_NAMES_H
#define TOOLS_PROPELLER_NAMES_H

#include "tools/read/files.h"

/* A name of the function at `address`. */
struct function_name {
    uint64_t address;
    const char *name;
    bool is_shared; /* whether another of the functions has the same name */
};

/* Names, sorted by address, then by their places in the file's strings. */
struct function_names {
    struct function_name *items;
    size_t count;
};

/* Finds the names of the functions at `addresses`, which are sorted. Names that cannot be written
 * as a word are left out. False without memory or if the symbols cannot be read, after an error
 * message. The caller frees `items` in either case. */
bool function_names_create(struct function_names *names, const struct input *input,
                           const uint64_t *addresses, size_t count);

/* Returns the index of the first name at `address` or above. */
size_t function_names_find(const struct function_names *names, uint64_t address);

#endif
