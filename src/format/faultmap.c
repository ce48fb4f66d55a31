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

static enum cairn_status read_header(const struct cairn_section *section, size_t offset,
                                     struct cairn_faultmap *map, struct cairn_error *error)
{
    const uint8_t *bytes = section->bytes + offset;
    size_t left = section->size - offset;
    if (left < HEADER_BYTES)
        return error_set(error, CAIRN_ERROR_TRUNCATED, offset,
                         "the section ends inside a fault map's header: %zu bytes are left of %d",
                         left, HEADER_BYTES);
    if (bytes[0] != 1)
        return error_set(error, CAIRN_ERROR_VERSION, offset,
                         "fault map version %u: Cairn reads version 1", bytes[0]);
    *map = (struct cairn_faultmap){
        .bytes = bytes,
        .section_offset = offset,
        .byte_order = section->byte_order,
        .version = bytes[0],
        .function_count = cairn_load_u32(bytes + COUNT_OFFSET, section->byte_order),
    };
    return CAIRN_OK;
}

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

static enum cairn_status say_truncated(const struct cairn_faultmap *map, size_t offset,
                                       uint32_t index, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_TRUNCATED, map->section_offset + offset,
                     "the section ends inside function %u of the fault map's %u", index,
                     map->function_count);
}

static enum cairn_status check_faults(const struct cairn_faultmap *map,
                                      const struct cairn_faultmap_function *function,
                                      struct cairn_error *error)
{
    for (uint32_t i = 0; i < function->fault_count; i++) {
        struct cairn_fault fault = cairn_faultmap_fault(map, function, i);
        if (fault.kind >= CAIRN_FAULT_LOAD && fault.kind <= CAIRN_FAULT_STORE)
            continue;
        return error_set(
            error, CAIRN_ERROR_CORRUPT,
            map->section_offset + function->offset + FUNCTION_BYTES + (size_t)i * FAULT_BYTES,
            "function %u at 0x%llx, fault %u: there is no kind of fault number %u", function->index,
            (unsigned long long)function->address, i, (unsigned)fault.kind);
    }
    return CAIRN_OK;
}

/* Checks the function at `*at`, and moves `*at` to the next one. */
static enum cairn_status check_function(const struct cairn_faultmap *map, size_t size,
                                        uint32_t index, size_t *at, struct cairn_error *error)
{
    if (size - *at < FUNCTION_BYTES)
        return say_truncated(map, *at, index, error);
    struct cairn_faultmap_function function = function_at(map, *at, index);
    if ((size - *at - FUNCTION_BYTES) / FAULT_BYTES < function.fault_count)
        return say_truncated(map, *at, index, error);
    *at += FUNCTION_BYTES + (size_t)function.fault_count * FAULT_BYTES;
    return check_faults(map, &function, error);
}

/* Checks all functions. On an error, `*map` contains only the valid functions before it. */
static enum cairn_status check_functions(struct cairn_faultmap *map, size_t size,
                                         struct cairn_error *error)
{
    uint32_t count = 0;
    enum cairn_status status = CAIRN_OK;
    size_t at = HEADER_BYTES;
    map->size = at;
    while (status == CAIRN_OK && count < map->function_count) {
        status = check_function(map, size, count, &at, error);
        if (status != CAIRN_OK)
            break;
        map->size = at;
        count++;
    }
    map->function_count = count;
    return status;
}

enum cairn_status cairn_faultmap_read(const struct cairn_section *section, size_t *offset,
                                      struct cairn_faultmap *map, struct cairn_error *error)
{
    if (*offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "there is no byte %zu in a section of %zu bytes", *offset, section->size);
    *map = (struct cairn_faultmap){0};
    enum cairn_status status = read_header(section, *offset, map, error);
    if (status == CAIRN_OK)
        status = check_functions(map, section->size - *offset, error);
    if (status == CAIRN_OK)
        *offset += map->size;
    return status;
}

/* ---- Reading checked maps ---- */

bool cairn_faultmap_first(const struct cairn_faultmap *map,
                          struct cairn_faultmap_function *function)
{
    if (map->function_count == 0)
        return false;
    *function = function_at(map, HEADER_BYTES, 0);
    return true;
}

bool cairn_faultmap_next(const struct cairn_faultmap *map, struct cairn_faultmap_function *function)
{
    if (function->index + 1 == map->function_count)
        return false;
    size_t offset = function->offset + FUNCTION_BYTES + (size_t)function->fault_count * FAULT_BYTES;
    *function = function_at(map, offset, function->index + 1);
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
