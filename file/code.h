/*
 * file/code.h - finds the sections of code of a file by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_CODE_H
#define FILE_CODE_H

#include "file/elf_file.h"

/* A section of code. */
struct code_range {
    uint64_t address; /* 0 in relocatable objects */
    uint64_t size;
    uint32_t section;
};

struct code_ranges {
    bool are_relocatable;
    struct code_range *entries; /* sorted by address, in relocatable objects by section */
    size_t count;
    size_t capacity;
};

/* Finds all sections of code. Errors: MEMORY. */
enum cairn_status code_ranges_read(const struct file *file, const struct cairn_allocator *allocator,
                                   struct code_ranges *ranges, struct cairn_error *error);

/* Returns the section of code at `address`; NULL if no section contains it. In relocatable objects,
 * `address` is an offset in section `section`. */
const struct code_range *code_ranges_find(const struct code_ranges *ranges, uint32_t section,
                                          uint64_t address);

void code_ranges_release(struct code_ranges *ranges, const struct cairn_allocator *allocator);

#endif
