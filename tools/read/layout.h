/*
 * tools/read/layout.h - one address space for the code of linked files and of relocatable objects.
 *
 * In a relocatable object, the addresses of each section start at 0. The layout places the code
 * sections one after another, from LAYOUT_BEGIN on, so that one number identifies a place there
 * too. Such an address is synthetic and must not be shown. Linked files keep their addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_LAYOUT_H
#define TOOLS_READ_LAYOUT_H

#include "tools/read/files.h"

#include <cairn/object.h>

#define LAYOUT_BEGIN (UINT64_C(1) << 40)

struct code_section {
    uint64_t address; /* synthetic in relocatable objects; first, for first_above */
    uint64_t size;
    uint32_t index; /* index in the file's section table */
    const char *name;
};

/* A section of code by its name. */
struct named_section {
    const char *name;
    size_t number; /* index in the layout's `sections` */
};

struct layout {
    cairn_object *object;
    bool is_made_up;
    struct code_section *sections; /* sorted by address */
    struct named_section *by_name; /* sorted by name, then by number */
    size_t count;
};

/* A place in an object's code, as it is shown to the user and passed to the object. */
struct place {
    const struct code_section *section; /* NULL in a linked file, where the address is sufficient */
    uint64_t address; /* in a relocatable object, an offset from the start of the section */
};

/* Creates the layout, which must be destroyed before the object. False after an error message. */
bool layout_create(const struct input *input, struct layout *layout);
void layout_destroy(struct layout *layout);

/* Returns the address of `offset` in the section with index `section`; 0 if that is not a section
 * of code. In a linked file `offset` is the address. */
uint64_t layout_address(const struct layout *layout, uint32_t section, uint64_t offset);

/* Returns the section of code that contains `address`, or NULL. */
const struct code_section *layout_section(const struct layout *layout, uint64_t address);

/* Finds a section of code by its name, the first `length` bytes of `name`; NULL if not found.
 * Sets `*is_only` to whether it is the only one with this name. */
const struct code_section *layout_find_name(const struct layout *layout, const char *name,
                                            size_t length, bool *is_only);

struct place layout_place(const struct layout *layout, uint64_t address);

/* Returns the name of the place's section, or NULL. */
const char *place_section_name(const struct place *place);
/* Writes the place, such as ".text:0x10" or "0x401136". */
void write_place(struct output *output, const struct place *place);

/* Finds the function that contains `address`; false if none is known. Its `entry` is an address as
 * in struct place. */
bool layout_function(const struct layout *layout, uint64_t address,
                     struct cairn_object_function *function);

#endif
