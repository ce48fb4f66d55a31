/*
 * file/relocation.h - applies the relocations of one section.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_RELOCATION_H
#define FILE_RELOCATION_H

#include "file/symbols.h"

/* The address, or distance from the place itself, that a relocation has stored. */
struct relocation {
    uint64_t offset;  /* of the place, from the start of the section */
    uint64_t value;   /* stored value; only the low half is valid for a distance in 4 bytes */
    const char *name; /* name of the symbol, if the address is that of the symbol itself; or NULL */
    uint32_t section; /* section that the address is an offset in; 0 in linked files, and for a
                       * difference of two labels that is not an address */
    uint8_t width;    /* bytes: 4 or 8 */
    bool is_address;  /* false for a distance */
};

/* The relocations of a section, sorted by offset. */
struct relocation_list {
    struct relocation *entries;
    size_t count;
    size_t capacity;
};

/* The location of a dynamic relocation. */
struct loaded_relocation {
    uint64_t address; /* address that it changes */
    uint32_t source;  /* number of the relocation section */
    uint32_t entry;   /* index in that section */
};

/* The relocation sections of each section in a file. */
struct relocation_sources {
    const struct file *file;
    struct cairn_allocator allocator;
    uint32_t *first; /* by section: its first relocation section, or 0; in linked files, entry 0 has
                      * all of them */
    uint32_t *next;  /* by relocation section: the next one of the same section, or 0 */
    /* All dynamic relocations of a linked file, sorted by address. */
    struct loaded_relocation *loaded;
    size_t loaded_count;
    size_t loaded_capacity;
    size_t applied_count; /* number of relocations applied to all sections so far */
    bool is_sorted;       /* whether `loaded` is complete */
};

/* Finds the relocation sections of a file. Must be called once for each file, before any section is
 * relocated. Errors: MEMORY; `sources` is then all zero. */
enum cairn_status relocation_sources_read(const struct file *file,
                                          const struct cairn_allocator *allocator,
                                          struct relocation_sources *sources,
                                          struct cairn_error *error);

/* Sorts the dynamic relocations. Must be called before loaded sections are relocated; does nothing
 * when called again or for relocatable objects. Errors: CORRUPT, MEMORY. */
enum cairn_status relocation_sources_sort(struct relocation_sources *sources,
                                          struct cairn_error *error);

void relocation_sources_release(struct relocation_sources *sources);

/* A section to relocate. */
struct relocation_target {
    struct relocation_sources *sources;
    uint32_t section;
    uint64_t address;
    size_t size;
    bool is_loaded; /* SHF_ALLOC; dynamic relocations apply only to loaded sections */
    uint8_t *bytes; /* a copy of the section, which is relocated; or NULL */
};

/* Whether there may be relocations to apply. If so, relocation_apply needs a copy of the bytes. */
bool relocation_is_needed(const struct relocation_target *target);

/* Applies the relocations to the target's bytes, and adds the addresses to `list`, which must be
 * empty.
 *
 * If the target has no bytes, adds all places in the section whose relocations have a named symbol,
 * of all types; `value` and `section` are 0. The list is then empty for linked files, whose code
 * the linker has relocated already.
 *
 * The caller must release the list even on failure. Errors: CORRUPT, UNSUPPORTED, MEMORY. */
enum cairn_status relocation_apply(const struct relocation_target *target,
                                   struct relocation_list *list, struct cairn_error *error);

/* Returns the first relocation at an offset of at least `offset` and less than `offset` + `size`;
 * NULL if no relocation is in this range. */
const struct relocation *relocation_find(const struct relocation_list *list, uint64_t offset,
                                         uint64_t size);

void relocation_list_release(struct relocation_list *list, const struct cairn_allocator *allocator);

#endif
