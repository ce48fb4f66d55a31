/*
 * tools/blocks.h - all basic-block address maps of an object, by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_BLOCKS_H
#define TOOLS_BLOCKS_H

#include "tools/layout.h"

#include <cairn/block_table.h>

/* Addresses are the layout's. `*table` becomes NULL where the object has no such maps; it is to be
 * destroyed. False: something was no good, and complained of; what stands before it in its section,
 * and other sections, are in the table all the same. */
bool blocks_create(const struct input *input, const struct layout *layout,
                   cairn_block_table **table);

#endif
