/* SPDX-License-Identifier: MIT */
#include <cairn/stack_sizes.h>

#include "base/error.h"
#include "format/pointer.h"
#include "format/uleb128.h"

enum cairn_status cairn_stack_size_read(const struct cairn_section *section, unsigned address_bytes,
                                        size_t *offset, struct cairn_stack_size *entry,
                                        struct cairn_error *error)
{
    enum cairn_status status = pointer_check(section, address_bytes, *offset, error);
    if (status != CAIRN_OK)
        return status;
    const uint8_t *at = section->bytes + *offset;
    const uint8_t *end = section->bytes + section->size;
    if ((size_t)(end - at) < address_bytes)
        return error_set(error, CAIRN_ERROR_TRUNCATED, *offset,
                         "the stack size at byte %zu: its function's address (%u bytes) goes "
                         "beyond the section's end",
                         *offset, address_bytes);
    uint64_t address = pointer_load(at, address_bytes, section->byte_order);
    uint64_t size;
    const uint8_t *next = uleb128_read(at + address_bytes, end, &size);
    if (next == NULL)
        return error_set(error, size == 0 ? CAIRN_ERROR_TRUNCATED : CAIRN_ERROR_CORRUPT,
                         *offset + address_bytes,
                         "the stack size at byte %zu, of the function 0x%llx: the number (ULEB128) "
                         "%s",
                         *offset, (unsigned long long)address,
                         size == 0 ? "goes beyond the section's end" : "has more than 64 bits");
    *entry = (struct cairn_stack_size){.offset = *offset, .address = address, .size = size};
    *offset = (size_t)(next - section->bytes);
    return CAIRN_OK;
}
