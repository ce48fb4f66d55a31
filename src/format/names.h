/*
 * format/names.h - the section `.cairn.names` of an object: symbolic constants.
 *
 * The section is a sequence of entries in the object's byte order: the value, which is 0 in the
 * file and which code loads; the number of the name's bytes; and these bytes, filled with zeros to
 * a multiple of 8. Other parts of an object (frame states, bindings of sites) refer to a name by
 * its ID, which does not change when LLVM links modules.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_NAMES_H
#define FORMAT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAMES_SECTION ".cairn.names"

enum { NAME_VALUE_BYTES = 8, NAME_HEADER_BYTES = 16, NAME_ALIGNMENT = 8 };

static inline size_t name_padded_size(size_t size)
{
    return (size + NAME_ALIGNMENT - 1) / NAME_ALIGNMENT * NAME_ALIGNMENT;
}

/* Returns the ID of a name: FNV-1a, of 64 bits. Input can construct two names with one ID, so
 * loaders compare the names of equal IDs. */
static inline uint64_t name_id(const void *bytes, size_t size)
{
    uint64_t id = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < size; i++)
        id = (id ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001B3);
    return id;
}

#endif
