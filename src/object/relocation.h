/*
 * object/relocation.h - the relocations of one section.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_RELOCATION_H
#define OBJECT_RELOCATION_H

#include "base/memory.h"
#include "object/file.h"
#include "object/symbols.h"

#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a relocated address, or distance from its own place, points to. */
struct relocation {
    uint64_t offset;  /* of the place, from the section's first byte */
    uint64_t value;   /* what stands there now; of a distance in 4 bytes, the low half counts */
    const char *name; /* of the symbol, if the address is just the symbol's; or NULL */
    uint32_t section; /* that the address counts from the start of; 0 in linked files, and where
                       * the difference of two labels is no address */
    uint8_t width;    /* bytes: 4 or 8 */
    bool is_address;  /* no distance */
};

/* By offset. */
struct relocation_list {
    struct relocation *entries;
    size_t count;
    size_t capacity;
};

/* Where a dynamic relocation stands. */
struct loaded_relocation {
    uint64_t address; /* that it changes */
    uint32_t source;  /* number of its section */
    uint32_t entry;   /* its number there */
};

/* Which relocation sections are about which section of a file. */
struct relocation_sources {
    const struct file *file;
    uint32_t
        *first;     /* by section: its first one, or 0; those of linked files are all at number 0 */
    uint32_t *next; /* by relocation section: the next one about the same, or 0 */
    /* Of linked files: all dynamic relocations by address. */
    struct loaded_relocation *loaded;
    size_t loaded_count;
    size_t applied_count; /* how many of them were applied, to all sections */
    bool is_sorted;       /* `loaded` is filled in */
};

/* To be done once for a file, before anything is relocated. MEMORY. */
enum cairn_status relocation_sources_read(const struct file *file,
                                          const struct cairn_allocator *allocator,
                                          struct relocation_sources *sources,
                                          struct cairn_error *error);

/* To be done before sections that are loaded are relocated; does nothing the second time, and for
 * relocatable objects. CORRUPT, MEMORY. */
enum cairn_status relocation_sources_sort(struct relocation_sources *sources,
                                          const struct cairn_allocator *allocator,
                                          struct cairn_error *error);

void relocation_sources_release(struct relocation_sources *sources,
                                const struct cairn_allocator *allocator);

/* A section of which relocations are looked for. */
struct relocation_target {
    struct relocation_sources *sources;
    uint32_t section;
    uint64_t address;
    size_t size;
    bool is_loaded; /* SHF_ALLOC: dynamic relocations reach no other sections */
};

/* Whether anything would be applied: then the bytes must be a copy. */
bool relocation_is_needed(const struct relocation_target *target);

/* Applies them to `bytes` (target->size of them) and notes the addresses in `list`, which is
 * empty before. CORRUPT, UNSUPPORTED, MEMORY; what is in the list then is still to be released. */
enum cairn_status relocation_apply(const struct relocation_target *target, uint8_t *bytes,
                                   const struct cairn_allocator *allocator,
                                   struct relocation_list *list, struct cairn_error *error);

/* Notes the places in the section whose symbols have names, and applies nothing; so the kinds of
 * relocation, and what `value` and `section` would be, do not matter. For relocatable
 * objects, whose code no linker has seen yet: there are none in others. CORRUPT, MEMORY; what is in
 * the list then is still to be released. */
enum cairn_status relocation_note_names(const struct relocation_target *target,
                                        const struct cairn_allocator *allocator,
                                        struct relocation_list *list, struct cairn_error *error);

/* The first one from `offset` on that begins within `size` bytes, in a list of
 * relocation_note_names; or NULL. */
const struct relocation *relocation_find_name(const struct relocation_list *list, uint64_t offset,
                                              uint64_t size);

/* What was relocated at `offset`, or NULL if nothing was. */
const struct relocation *relocation_find(const struct relocation_list *list, uint64_t offset);

void relocation_list_release(struct relocation_list *list, const struct cairn_allocator *allocator);

#endif
