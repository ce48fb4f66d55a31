/*
 * file/function_ranges.h - finds the function whose code contains an address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_FUNCTION_RANGES_H
#define FILE_FUNCTION_RANGES_H

#include "file/code.h"
#include "file/symbols.h"

/* The start of a function's code, or of the part of it that follows a nested function. */
struct extent {
    uint64_t start;
    uint32_t section; /* see struct symbol */
    uint32_t symbol;  /* index in the list of symbols */
};

struct extent_list {
    struct extent *extents; /* sorted by section and start */
    size_t count;
    size_t capacity;
};

/* The symbols and sections of code in which functions are found. */
struct extent_source {
    const struct symbol_list *symbols; /* sorted */
    const struct code_ranges *ranges;
};

/* Builds the list of extents. The caller must release the list even on failure. Errors: MEMORY. */
enum cairn_status extents_read(const struct extent_source *source,
                               const struct cairn_allocator *allocator, struct extent_list *list,
                               struct cairn_error *error);

/* Returns the function whose code contains `address`; NULL if none is known. `section` is a section
 * number in relocatable objects and 0 in linked files. */
const struct symbol *extents_find(const struct extent_list *list,
                                  const struct extent_source *source, uint32_t section,
                                  uint64_t address);

void extents_release(struct extent_list *list, const struct cairn_allocator *allocator);

#endif
