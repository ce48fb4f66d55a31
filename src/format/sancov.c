/* SPDX-License-Identifier: MIT */
#include <cairn/sancov.h>

#include "base/error.h"
#include "format/pointer.h"

enum cairn_status cairn_sancov_read(const struct cairn_section *section, unsigned address_bytes,
                                    size_t *offset, struct cairn_sancov_point *point,
                                    struct cairn_error *error)
{
    enum cairn_status status = pointer_check(section, address_bytes, *offset, error);
    if (status != CAIRN_OK)
        return status;
    const size_t entry_bytes = 2 * (size_t)address_bytes;
    if (*offset % entry_bytes != 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "byte %zu is inside a coverage point, which has %zu bytes", *offset,
                         entry_bytes);
    if (section->size - *offset < entry_bytes)
        return error_set(error, CAIRN_ERROR_TRUNCATED, *offset,
                         "the section ends inside coverage point %zu: %zu bytes are left of %zu",
                         *offset / entry_bytes, section->size - *offset, entry_bytes);
    const uint8_t *at = section->bytes + *offset;
    *point = (struct cairn_sancov_point){
        .index = *offset / entry_bytes,
        .address = pointer_load(at, address_bytes, section->byte_order),
        .flags = pointer_load(at + address_bytes, address_bytes, section->byte_order),
    };
    *offset += entry_bytes;
    return CAIRN_OK;
}
