/*
 * object/layout.h - where sections, slots, stubs and common symbols are.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_LAYOUT_H
#define OBJECT_LAYOUT_H

#include "object/image.h"

/*
 * Allocates memory for everything that is loaded, and copies the contents. The code is followed by
 * the stubs. The read-only data begins with the slots and the objects' own tables of addresses
 * (`.got`, `.toc`), so that they are in reach of the table's base. Sections of one range are
 * adjacent. Sets the addresses of common symbols to their offsets in the area of data.
 *
 * Errors: RANGE (sizes or alignments that no memory has), and those of the host's `allocate`.
 */
CAIRN_MUST_CHECK enum cairn_status object_place(struct object_link *link,
                                                struct cairn_error *error);

#endif
