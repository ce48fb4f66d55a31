/*
 * object/line_table.h - source lines of an object's code, from its section .debug_line.
 *
 * Reads versions 2 to 5 of the 32-bit and 64-bit formats. All input is hostile: a table that is
 * truncated or not understood ends the table; what was read before it was reported. Takes O(n) time
 * and memory for n bytes.
 *
 * Source: DWARF Debugging Information Format, version 5, section 6.2.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_LINE_TABLE_H
#define OBJECT_LINE_TABLE_H

#include "base/memory.h"

#include <cairn/section.h>
#include <stdbool.h>
#include <stdint.h>

struct line_row {
    uint64_t address;
    /* The file's path has three parts, of which an absolute one makes the parts before it
     * meaningless: the folder of compilation, the file's folder, and its name. "" where unknown. */
    const char *compilation;
    const char *folder;
    const char *name;
    uint32_t line;
    uint32_t discriminator;
    bool is_end; /* the first address after a sequence of rows, which has no line */
};

typedef void line_visitor(const struct line_row *row, void *user);

/* The sections of an object, of which those of strings may be empty. */
struct line_sections {
    struct cairn_section lines;        /* .debug_line */
    struct cairn_section line_strings; /* .debug_line_str */
    struct cairn_section strings;      /* .debug_str */
};

/* Visits the rows of sections, in their order. Addresses are those in the section. */
void line_table_read(const struct line_sections *sections, const struct cairn_allocator *allocator,
                     line_visitor *visit, void *user);

/* Visits the rows of a kept object, in the order of the section. Addresses are those in the
 * section, which must be relocated. */
void line_table_visit(const uint8_t *object, size_t size, const struct cairn_allocator *allocator,
                      line_visitor *visit, void *user);

#endif
