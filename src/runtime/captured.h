/*
 * runtime/captured.h - the PC sections of a loader, until the table of its module is built.
 *
 * Their bytes are in the module's read-only data and stay there, because the table reads them.
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

/* Adds a section without bytes and copies the name. If `schema` is NULL, the section's entries are
 * not read. Errors: ARGUMENT, MEMORY. */
enum cairn_status captured_add(struct captured *captured, const struct cairn_allocator *allocator,
                               const char *name, const struct cairn_pcsection_schema *schema,
                               struct cairn_error *error);

/* Sets the bytes of the section that was added last. */
void captured_place(struct captured *captured, const uint8_t *bytes, size_t size);

/* Builds the table; leaves `*table` unchanged if there are no sections. Errors: as
 * cairn_pc_table_create. */
enum cairn_status captured_build(const struct captured *captured,
                                 const struct cairn_allocator *allocator,
                                 const struct code_block *block, cairn_pc_table **table,
                                 struct cairn_error *error);

void captured_release(struct captured *captured, const struct cairn_allocator *allocator);

#endif
