/*
 * object/extents.h - which function's code holds an address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_EXTENTS_H
#define OBJECT_EXTENTS_H

#include "object/ranges.h"
#include "object/symbols.h"

/* Where one function's code begins, or goes on behind that of another one inside of it. */
struct extent {
    uint64_t start;
    uint32_t section; /* as in struct symbol */
    uint32_t symbol;  /* number in the list of symbols */
};

struct extent_list {
    struct extent *extents; /* by section and start */
    size_t count;
    size_t capacity;
};

/* What functions are found by. */
struct extent_source {
    const struct symbol_list *symbols; /* sorted */
    const struct code_ranges *ranges;
};

/* MEMORY; on failure the list is still to be released. */
enum cairn_status extents_read(const struct extent_source *source,
                               const struct cairn_allocator *allocator, struct extent_list *list,
                               struct cairn_error *error);

/* The function whose code holds `address` (of section number `section`, in relocatable objects; 0
 * elsewhere); NULL if none is known. */
const struct symbol *extents_find(const struct extent_list *list,
                                  const struct extent_source *source, uint32_t section,
                                  uint64_t address);

void extents_release(struct extent_list *list, const struct cairn_allocator *allocator);

#endif
