/*
 * runtime/captured.h - the PC sections of a loader, until its module has a table of them.
 *
 * Their bytes lie in the module's read-only data, and stay there: the table reads from them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_CAPTURED_H
#define RUNTIME_CAPTURED_H

#include "code/space.h"

#include <cairn/pc_table.h>

struct captured {
    struct cairn_pc_table_section *sections;
    size_t count;
    size_t capacity;
};

/* Adds a section without bytes, with a copy of the name; NULL as schema: its entries are not read.
 * ARGUMENT, MEMORY. */
enum cairn_status captured_add(struct captured *captured, const struct cairn_allocator *allocator,
                               const char *name, const struct cairn_pcsection_schema *schema,
                               struct cairn_error *error);

/* Gives the bytes of the section that was added last. */
void captured_place(struct captured *captured, const uint8_t *bytes, size_t size);

/* `*table` is NULL if there is no section. What cairn_pc_table_create gives. */
enum cairn_status captured_build(const struct captured *captured,
                                 const struct cairn_allocator *allocator,
                                 const struct code_block *block, cairn_pc_table **table,
                                 struct cairn_error *error);

void captured_release(struct captured *captured, const struct cairn_allocator *allocator);

#endif
