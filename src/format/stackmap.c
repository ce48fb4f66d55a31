/*
 * Reads stack maps. One pass checks everything that later functions rely on.
 *
 * Counts are checked against the remaining bytes before they are used, and sums are computed so
 * that they cannot overflow. Reserved fields are ignored, because LLVM has given some of them a
 * meaning between versions (a location's size was one of them), and other readers ignore them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/record.h"

#include <cairn/stackmap.h>

/* ---- Header, functions, constants ---- */

/* Checks that the part of a map at `at` has `size` bytes, of the `available` bytes of the map. */
static enum cairn_status check_part(const struct cairn_stackmap *map, size_t available, size_t at,
                                    size_t size, const char *part, struct cairn_error *error)
{
    if (size <= available - at)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_TRUNCATED, map->section_offset + at,
                     "the section ends inside the stack map's %s: %zu bytes are left of the %zu "
                     "that they take",
                     part, available - at, size);
}

static enum cairn_status check_record_counts(const struct cairn_stackmap *map,
                                             struct cairn_error *error)
{
    uint64_t left = map->record_count;
    for (uint32_t i = 0; i < map->function_count && map->version > 1; i++) {
        uint64_t count = cairn_stackmap_function(map, i).record_count;
        size_t offset = map->section_offset + CAIRN_STACKMAP_HEADER_BYTES +
                        (size_t)i * CAIRN_STACKMAP_FUNCTION_BYTES + 16;
        if (count > left)
            return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                             "function %u has %llu records; the map has %llu left", i,
                             (unsigned long long)count, (unsigned long long)left);
        left -= count;
    }
    if (left > 0 && map->version > 1)
        return error_set(error, CAIRN_ERROR_CORRUPT, map->section_offset + 12,
                         "%llu of the map's %u records belong to no function",
                         (unsigned long long)left, map->record_count);
    return CAIRN_OK;
}

enum cairn_status stackmap_open(const struct cairn_section *section, size_t offset,
                                struct cairn_stackmap *map, struct cairn_error *error)
{
    const size_t available = section->size - offset;
    const uint8_t *bytes = section->bytes + offset;
    *map = (struct cairn_stackmap){
        .bytes = bytes, .section_offset = offset, .byte_order = section->byte_order};
    enum cairn_status status =
        check_part(map, available, 0, CAIRN_STACKMAP_HEADER_BYTES, "header", error);
    if (status != CAIRN_OK)
        return status;
    map->version = bytes[0];
    if (map->version < 1 || map->version > 3)
        return error_set(error, CAIRN_ERROR_VERSION, offset,
                         "stack map version %u: Cairn reads versions 1, 2 and 3", map->version);
    map->function_count = cairn_load_u32(bytes + 4, map->byte_order);
    map->constant_count = cairn_load_u32(bytes + 8, map->byte_order);
    map->record_count = cairn_load_u32(bytes + 12, map->byte_order);
    const struct {
        const char *name;
        size_t size;
    } parts[] = {
        {"functions", map->function_count * cairn_stackmap_function_bytes(map->version)},
        {"constants", (size_t)map->constant_count * CAIRN_STACKMAP_CONSTANT_BYTES},
        {"records", (size_t)map->record_count * RECORD_BYTES_MIN},
    };
    size_t at = CAIRN_STACKMAP_HEADER_BYTES;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        status = check_part(map, available, at, parts[i].size, parts[i].name, error);
        if (status != CAIRN_OK)
            return status;
        at += parts[i].size;
    }
    map->constants_offset = CAIRN_STACKMAP_HEADER_BYTES + parts[0].size;
    map->records_offset = map->constants_offset + parts[1].size;
    return check_record_counts(map, error);
}

/* ---- Records ---- */

enum cairn_status stackmap_record_truncated(const struct cairn_stackmap *map, size_t offset,
                                            uint32_t index, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_TRUNCATED, map->section_offset + offset,
                     "the section ends inside record %u of %u", index, map->record_count);
}

enum cairn_status stackmap_check_locations(const struct cairn_stackmap *map, size_t offset,
                                           uint32_t index, struct cairn_error *error)
{
    size_t stride = cairn_stackmap_location_bytes(map->version);
    uint32_t count = cairn_load_u16(map->bytes + offset + 14, map->byte_order);
    for (uint32_t i = 0; i < count; i++) {
        size_t at = offset + CAIRN_STACKMAP_RECORD_HEADER_BYTES + i * stride;
        const uint8_t *bytes = map->bytes + at;
        size_t location_offset = map->section_offset + at;
        if (!record_is_kind(bytes[0]))
            return error_set(error, CAIRN_ERROR_CORRUPT, location_offset,
                             "location %u of record %u has kind %u; kinds are 1 to 5", i, index,
                             bytes[0]);
        uint32_t constant = cairn_load_u32(bytes + stride - 4, map->byte_order);
        if (bytes[0] == CAIRN_LOCATION_CONSTANT_INDEX && constant >= map->constant_count)
            return error_set(error, CAIRN_ERROR_CORRUPT, location_offset + stride - 4,
                             "location %u of record %u names constant %d; the map has %u", i, index,
                             (int32_t)constant, map->constant_count);
    }
    return CAIRN_OK;
}

/* ---- Checking all records ---- */

/* The first invalid offset for each kind: with it, a location is checked by one comparison. */
struct limits {
    uint64_t of_kind[UINT8_MAX + 1];
};

static inline __attribute__((always_inline)) bool listed_are_valid(const struct limits *limits,
                                                                   const struct location_list *list,
                                                                   size_t stride,
                                                                   enum cairn_byte_order byte_order)
{
    unsigned invalid = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint8_t *location = list->base + list->offsets[i];
        invalid +=
            cairn_load_u32(location + stride - 4, byte_order) >= limits->of_kind[location[0]];
    }
    return invalid == 0;
}

/* Checks the locations of the records from number `first` at `offset` up to number `end`. */
static enum cairn_status check_each(const struct cairn_stackmap *map, size_t offset, uint32_t first,
                                    uint32_t end, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    struct cairn_stackmap_record record = {.offset = offset};
    for (uint32_t i = first; i < end && status == CAIRN_OK; i++) {
        status = stackmap_check_locations(map, record.offset, i, error);
        cairn_stackmap_load_record(map, &record);
        record.offset = record.end_offset;
    }
    return status;
}

/* Checks all records, of which `available` bytes from the map's start can be read, and sets the
 * size of the map. Inlined, so that the compiler specialises it for constants. */
static inline __attribute__((always_inline)) enum cairn_status check_records(
    struct cairn_stackmap *map, size_t available, size_t stride, enum cairn_byte_order byte_order,
    struct cairn_error *error)
{
    static const uint64_t any = UINT64_C(1) << 32;
    const struct limits limits = {{
        [CAIRN_LOCATION_REGISTER] = any,
        [CAIRN_LOCATION_DIRECT] = any,
        [CAIRN_LOCATION_INDIRECT] = any,
        [CAIRN_LOCATION_CONSTANT] = any,
        [CAIRN_LOCATION_CONSTANT_INDEX] = map->constant_count,
    }};
    const uint8_t *const end = map->bytes + available;
    const uint8_t *at = map->bytes + map->records_offset;
    bool is_truncated = false;
    for (uint32_t index = 0; index < map->record_count;) {
        const size_t offset = (size_t)(at - map->bytes);
        const uint32_t first = index;
        struct location_list list;
        struct record_parts record = {.end = at};
        list.base = at;
        list.count = 0;
        for (; index < map->record_count; index++) {
            is_truncated = !record_split(at, (size_t)(end - at), stride, byte_order,
                                         RECORD_PREFETCH_BYTES, &record);
            if (is_truncated || !location_list_append(&list, &record, stride))
                break;
            at = record.end;
        }
        const bool is_large = index == first && !is_truncated;
        if (is_large) {
            at = record.end;
            index++;
        }
        enum cairn_status status = CAIRN_OK;
        if (is_large || !listed_are_valid(&limits, &list, stride, byte_order))
            status = check_each(map, offset, first, index, error);
        if (status == CAIRN_OK && is_truncated)
            status = stackmap_record_truncated(map, (size_t)(at - map->bytes), index, error);
        if (status != CAIRN_OK)
            return status;
    }
    map->size = (size_t)(at - map->bytes);
    return CAIRN_OK;
}

/* ---- Version 1: the functions of records ---- */

/* Relies on two facts: each function in the map has at least one record, and the offsets of a
 * function's records ascend. The records are assigned to functions if only one assignment satisfies
 * both. */
static enum cairn_stackmap_functions infer_functions(const struct cairn_stackmap *map)
{
    if (map->version > 1 || map->function_count == 1 || map->record_count == 0)
        return CAIRN_STACKMAP_FUNCTIONS_COUNTED;
    if (map->function_count == map->record_count)
        return CAIRN_STACKMAP_FUNCTIONS_EACH;
    struct cairn_stackmap unknown = *map;
    unknown.functions = CAIRN_STACKMAP_FUNCTIONS_UNKNOWN;
    struct cairn_stackmap_record record = {0};
    uint32_t descents = 0;
    cairn_stackmap_next(&unknown, &record);
    uint32_t previous = record.code_offset;
    while (cairn_stackmap_next(&unknown, &record)) {
        descents += record.code_offset < previous;
        previous = record.code_offset;
    }
    return descents + 1 == map->function_count ? CAIRN_STACKMAP_FUNCTIONS_DESCENDING
                                               : CAIRN_STACKMAP_FUNCTIONS_UNKNOWN;
}

/* ---- Maps ---- */

size_t stackmap_skip_padding(const struct cairn_section *section, size_t offset)
{
    size_t remaining = section->size - offset;
    if (remaining >= 8)
        return offset;
    for (size_t i = 0; i < remaining; i++)
        if (section->bytes[offset + i] != 0)
            return offset;
    return section->size;
}

enum cairn_status cairn_stackmap_read(const struct cairn_section *section, size_t *offset,
                                      struct cairn_stackmap *map, struct cairn_error *error)
{
    if (section == NULL || offset == NULL || map == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_stackmap_read: `%s` is NULL",
                         section == NULL  ? "section"
                         : offset == NULL ? "offset"
                                          : "map");
    if (section->bytes == NULL && section->size > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_stackmap_read: `section->bytes` is NULL");
    if (*offset > section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "cairn_stackmap_read: `*offset` is %zu, and the section has %zu bytes",
                         *offset, section->size);
    struct cairn_stackmap read;
    enum cairn_status status = stackmap_open(section, *offset, &read, error);
    if (status != CAIRN_OK)
        return status;
    size_t available = section->size - *offset;
    if (read.version == 3 && read.byte_order == CAIRN_BYTE_ORDER_NATIVE)
        status = check_records(&read, available, CAIRN_STACKMAP_LOCATION_BYTES,
                               CAIRN_BYTE_ORDER_NATIVE, error);
    else
        status = check_records(&read, available, cairn_stackmap_location_bytes(read.version),
                               read.byte_order, error);
    if (status != CAIRN_OK)
        return status;
    read.functions = infer_functions(&read);
    *offset = stackmap_skip_padding(section, *offset + read.size);
    *map = read;
    return CAIRN_OK;
}

const char *location_kind_name(enum cairn_location_kind kind)
{
    static const char *const names[] = {
        [CAIRN_LOCATION_REGISTER] = "Register",
        [CAIRN_LOCATION_DIRECT] = "Direct",
        [CAIRN_LOCATION_INDIRECT] = "Indirect",
        [CAIRN_LOCATION_CONSTANT] = "Constant",
        [CAIRN_LOCATION_CONSTANT_INDEX] = "ConstantIndex",
    };
    if (!record_is_kind((unsigned)kind))
        return "unknown";
    return names[kind];
}
