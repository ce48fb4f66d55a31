/*
 * format/pointer.h - numbers in a section that have the size of the target's pointers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_POINTER_H
#define FORMAT_POINTER_H

#include "base/error.h"

#include <cairn/section.h>

/* Checks the arguments of a decoder: the size of pointers, and that `offset` is in the section. */
static inline enum cairn_status pointer_check(const struct cairn_section *section,
                                              unsigned address_bytes, size_t offset,
                                              struct cairn_error *error)
{
    if (address_bytes != 4 && address_bytes != 8)
        return error_set(error, CAIRN_ERROR_ARGUMENT, offset, "pointers have 4 or 8 bytes, not %u",
                         address_bytes);
    if (offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, offset,
                         "offset %zu is out of range: the section has %zu bytes", offset,
                         section->size);
    return CAIRN_OK;
}

static inline uint64_t pointer_load(const uint8_t *bytes, unsigned size,
                                    enum cairn_byte_order byte_order)
{
    return size == 8 ? cairn_load_u64(bytes, byte_order) : cairn_load_u32(bytes, byte_order);
}

#endif
