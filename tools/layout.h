/*
 * tools/layout.h - addresses of code in linked files and in objects alike.
 *
 * In a relocatable object addresses count from the begin of a section each. So that one number
 * tells a place there too, its sections of code are laid out one behind the other, from
 * LAYOUT_BEGIN on: such an address is a made-up one, and not to be shown. A linked file's addresses
 * are their own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LAYOUT_H
#define TOOLS_LAYOUT_H

#include "tools/files.h"

#include <cairn/object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_BEGIN (UINT64_C(1) << 40)

struct code_section {
    uint64_t address; /* made up, if the object is relocatable */
    uint64_t size;
    uint32_t index; /* in the file's section table */
    const char *name;
};

/* A section of code by its name. */
struct named_section {
    const char *name;
    size_t number; /* among the layout's sections */
};

struct layout {
    cairn_object *object;
    bool is_made_up;
    struct code_section *sections; /* by address */
    struct named_section *by_name; /* by name, and those of one name by number */
    size_t count;
};

/* A place in an object's code as it is shown, and asked for at the object. */
struct place {
    const struct code_section *section; /* NULL: in a linked file, the address alone tells it */
    uint64_t address;                   /* in a relocatable object, from the section's begin on */
};

/* False: complained. The layout lives as long as the object. */
bool layout_create(const struct input *input, struct layout *layout);
void layout_destroy(struct layout *layout);

/* The address of `offset` in section number `section`; of a linked file `offset` itself. Where the
 * section is none of code, 0. */
uint64_t layout_address(const struct layout *layout, uint32_t section, uint64_t offset);

/* The section of code that `address` is in; or NULL. */
const struct code_section *layout_section(const struct layout *layout, uint64_t address);

/* The section of code with the name in the first `length` bytes of `name`; NULL if there is none.
 * `*is_only` is whether there is just one. */
const struct code_section *layout_find_name(const struct layout *layout, const char *name,
                                            size_t length, bool *is_only);

struct place layout_place(const struct layout *layout, uint64_t address);

/* The function that `address` is in; false if none is known. Its `entry` is as `place` has it. */
bool layout_function(const struct layout *layout, uint64_t address,
                     struct cairn_object_function *function);

#endif
