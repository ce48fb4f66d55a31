/* SPDX-License-Identifier: MIT */
#include <cairn/faultmap.h>

#include "base/error.h"

enum { HEADER_BYTES = 8, FUNCTION_BYTES = 16, FAULT_BYTES = 12, COUNT_OFFSET = 4 };

const char *cairn_fault_kind_name(enum cairn_fault_kind kind)
{
    static const char *const names[] = {
        [CAIRN_FAULT_LOAD] = "load",
        [CAIRN_FAULT_LOAD_STORE] = "load and store",
        [CAIRN_FAULT_STORE] = "store",
    };
    bool is_known = kind >= CAIRN_FAULT_LOAD && kind <= CAIRN_FAULT_STORE;
    return is_known ? names[kind] : "unknown";
}

/* ---- Checking ---- */

static struct cairn_faultmap_function function_at(const struct cairn_faultmap *map, size_t offset,
                                                  uint32_t index)
{
    const uint8_t *bytes = map->bytes + offset;
    return (struct cairn_faultmap_function){
        .address = cairn_load_u64(bytes, map->byte_order),
        .fault_count = cairn_load_u32(bytes + 8, map->byte_order),
        .index = index,
        .offset = offset,
    };
}

/* Checks function number `index`, which is at the end of the map, and adds it to the map. */
static enum cairn_status check_function(struct cairn_faultmap *map, size_t available,
                                        uint32_t index, struct cairn_error *error)
{
    size_t left = available - map->size;
    struct cairn_faultmap_function function = {0};
    if (left >= FUNCTION_BYTES)
        function = function_at(map, map->size, index);
    if (left < FUNCTION_BYTES || (left - FUNCTION_BYTES) / FAULT_BYTES < function.fault_count)
        return error_set(error, CAIRN_ERROR_TRUNCATED, map->section_offset + map->size,
                         "the section ends inside function %u of the fault map's %u", index,
                         map->function_count);
    size_t at = map->size + FUNCTION_BYTES;
    for (uint32_t i = 0; i < function.fault_count; i++, at += FAULT_BYTES) {
        struct cairn_fault fault = cairn_faultmap_fault(map, &function, i);
        if (fault.kind < CAIRN_FAULT_LOAD || fault.kind > CAIRN_FAULT_STORE)
            return error_set(error, CAIRN_ERROR_CORRUPT, map->section_offset + at,
                             "function %u at 0x%llx, fault %u: unknown kind of fault %u", index,
                             (unsigned long long)function.address, i, (unsigned)fault.kind);
    }
    map->size = at;
    return CAIRN_OK;
}

enum cairn_status cairn_faultmap_read(const struct cairn_section *section, size_t *offset,
                                      struct cairn_faultmap *map, struct cairn_error *error)
{
    if (*offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "offset %zu is out of range: the section has %zu bytes", *offset,
                         section->size);
    const uint8_t *bytes = section->bytes + *offset;
    size_t left = section->size - *offset;
    *map = (struct cairn_faultmap){0};
    if (left < HEADER_BYTES)
        return error_set(error, CAIRN_ERROR_TRUNCATED, *offset,
                         "the section ends inside a fault map's header: %zu bytes are left of %d",
                         left, HEADER_BYTES);
    if (bytes[0] != 1)
        return error_set(error, CAIRN_ERROR_VERSION, *offset,
                         "fault map version %u: Cairn reads version 1", bytes[0]);
    *map = (struct cairn_faultmap){
        .bytes = bytes,
        .size = HEADER_BYTES,
        .section_offset = *offset,
        .byte_order = section->byte_order,
        .version = bytes[0],
        .function_count = cairn_load_u32(bytes + COUNT_OFFSET, section->byte_order),
    };
    for (uint32_t i = 0; i < map->function_count; i++) {
        enum cairn_status status = check_function(map, left, i, error);
        if (status != CAIRN_OK) {
            map->function_count = i;
            return status;
        }
    }
    *offset += map->size;
    return CAIRN_OK;
}

/* ---- Reading checked maps ---- */

bool cairn_faultmap_next(const struct cairn_faultmap *map, struct cairn_faultmap_function *function)
{
    const bool is_first = function->offset == 0;
    const uint32_t index = is_first ? 0 : function->index + 1;
    if (index == map->function_count)
        return false;
    size_t offset = function->offset + FUNCTION_BYTES + (size_t)function->fault_count * FAULT_BYTES;
    *function = function_at(map, is_first ? HEADER_BYTES : offset, index);
    return true;
}

struct cairn_fault cairn_faultmap_fault(const struct cairn_faultmap *map,
                                        const struct cairn_faultmap_function *function,
                                        uint32_t index)
{
    const uint8_t *bytes =
        map->bytes + function->offset + FUNCTION_BYTES + (size_t)index * FAULT_BYTES;
    return (struct cairn_fault){
        .kind = (enum cairn_fault_kind)cairn_load_u32(bytes, map->byte_order),
        .faulting_offset = cairn_load_u32(bytes + 4, map->byte_order),
        .handler_offset = cairn_load_u32(bytes + 8, map->byte_order),
    };
}
