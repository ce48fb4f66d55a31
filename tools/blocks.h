/*
 * tools/blocks.h - a table of all basic-block address maps of an object, by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_BLOCKS_H
#define TOOLS_BLOCKS_H

#include "tools/layout.h"

#include <cairn/block_table.h>

/* Creates the table, with the layout's addresses. The caller destroys it. `*table` becomes NULL if
 * the object has no such maps. False if a section is invalid, after an error message; the table
 * then holds the maps before the error, and those of the other sections. */
bool blocks_create(const struct input *input, const struct layout *layout,
                   cairn_block_table **table);

#endif
