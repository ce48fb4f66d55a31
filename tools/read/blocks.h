/*
 * tools/read/blocks.h - basic blocks: their flags as text and JSON, and a table of all basic-block
 * address maps of an object, by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_BLOCKS_H
#define TOOLS_READ_BLOCKS_H

#include "tools/read/layout.h"

#include <cairn/block_table.h>

/* Writes `prefix` and the flags of a block (enum cairn_bbmap_flag), such as "landing pad, returns".
 * Writes nothing if no flag is set. */
void write_block_flags(struct output *output, const char *prefix, uint8_t flags);
/* Writes a field for each flag, which is true or false. */
void write_json_block_flags(struct json *json, uint8_t flags);

#define NO_BLOCK_MAPS                                                                              \
    "there are no basic-block address maps: compile with clang -fbasic-block-address-map (before " \
    "version 19 -fbasic-block-sections=labels), and keep the maps when linking and stripping"

/* Visits all sections of maps, as visit_sections does. */
bool visit_block_maps(const struct input *input, visit_section *visit, void *user);

/* Creates the table, with the layout's addresses. The caller destroys it. `*table` becomes NULL if
 * the object has no such maps. False if a section is invalid, after an error message; the table
 * then holds the maps before the error, and those of the other sections. */
bool blocks_create(const struct input *input, const struct layout *layout,
                   cairn_block_table **table);

#endif
