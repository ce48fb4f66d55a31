/*
 * cairn/stackmap.h - decoding of LLVM's stack map section.
 *
 * The section of a linked program holds the stack maps of all its object files, one after the
 * other, in version 1, 2 or 3 and in either byte order.
 *
 *     struct cairn_stackmap map;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_stackmap_read(&section, &offset, &map, &error) != CAIRN_OK)
 *             return complain(&error);
 *         struct cairn_stackmap_record record = {0};
 *         while (cairn_stackmap_next(&map, &record))
 *             for (uint32_t i = 0; i < record.location_count; i++)
 *                 use(cairn_stackmap_location(&map, &record, i));
 *     }
 *
 * cairn_stackmap_read checks a whole map. The inline functions check nothing again: an index must
 * be less than its count, and the section's bytes must stay valid and unchanged.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format; versions 2 and 3:
 * llvm/lib/CodeGen/StackMaps.cpp.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_STACKMAP_H
#define CAIRN_STACKMAP_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes of the parts of a map, in bytes. */
enum {
    CAIRN_STACKMAP_HEADER_BYTES = 16,
    CAIRN_STACKMAP_FUNCTION_V1_BYTES = 16,
    CAIRN_STACKMAP_FUNCTION_BYTES = 24, /**< in versions 2 and 3 */
    CAIRN_STACKMAP_CONSTANT_BYTES = 8,
    CAIRN_STACKMAP_RECORD_HEADER_BYTES = 16,
    CAIRN_STACKMAP_LOCATION_V1_BYTES = 8, /**< in versions 1 and 2 */
    CAIRN_STACKMAP_LOCATION_BYTES = 12,   /**< in version 3 */
    CAIRN_STACKMAP_LIVEOUTS_HEADER_BYTES = 4,
    CAIRN_STACKMAP_LIVEOUT_BYTES = 4
};

/** How records are assigned to functions. A map of version 1 has no record counts. */
enum cairn_stackmap_functions {
    /** Each function has a count of records (versions 2 and 3), or there is only one function. */
    CAIRN_STACKMAP_FUNCTIONS_COUNTED = 0,
    /** A function's records have ascending offsets; the next function begins where they descend. */
    CAIRN_STACKMAP_FUNCTIONS_DESCENDING = 1,
    /** Each function has one record. */
    CAIRN_STACKMAP_FUNCTIONS_EACH = 2,
    /** More than one assignment is possible. */
    CAIRN_STACKMAP_FUNCTIONS_UNKNOWN = 3
};

/** A map of a section. All of its bytes have been checked. */
struct cairn_stackmap {
    const uint8_t *bytes;
    size_t size;           /**< in bytes, including padding */
    size_t section_offset; /**< bytes from the start of the section */
    enum cairn_byte_order byte_order;
    uint8_t version; /**< 1, 2 or 3 */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t record_count;
    size_t constants_offset; /**< bytes from the start of the map */
    size_t records_offset;   /**< bytes from the start of the map */
    enum cairn_stackmap_functions functions;
};

/** The stack size of a function with dynamic allocas or a realigned stack. */
#define CAIRN_STACK_SIZE_DYNAMIC UINT64_MAX

/** A function of a map. */
struct cairn_stackmap_function {
    uint64_t address;
    uint64_t stack_size; /**< size of the fixed frame in bytes, or CAIRN_STACK_SIZE_DYNAMIC */
    /** Number of the function's records, which are adjacent and in the order of the functions.
     *  0 in version 1, unless the map has only one function. */
    uint64_t record_count;
};

/** The function of a record if CAIRN_STACKMAP_FUNCTIONS_UNKNOWN. */
#define CAIRN_STACKMAP_NO_FUNCTION UINT32_MAX

/** A record of a map. A plain value, which may be copied. All offsets are in bytes from the start
 * of the map, unless another start is given. */
struct cairn_stackmap_record {
    uint64_t id;
    uint32_t function;                 /**< index in the map, or CAIRN_STACKMAP_NO_FUNCTION */
    uint64_t records_left_in_function; /**< number of the function's records after this one */
    uint32_t code_offset;              /**< bytes from the start of the function */
    uint16_t location_count;
    uint16_t liveout_count;
    uint32_t index; /**< number of the record in the map, from 0 */
    size_t offset;
    size_t locations_offset;
    size_t liveouts_offset;
    size_t end_offset; /**< offset of the next record */
};

/** The kind of a location, with LLVM's numbers and names. */
enum cairn_location_kind {
    CAIRN_LOCATION_REGISTER = 1,      /**< the value is in the register */
    CAIRN_LOCATION_DIRECT = 2,        /**< the value is register + offset (an alloca's address) */
    CAIRN_LOCATION_INDIRECT = 3,      /**< the value is in memory at register + offset */
    CAIRN_LOCATION_CONSTANT = 4,      /**< the value is `offset`, sign-extended */
    CAIRN_LOCATION_CONSTANT_INDEX = 5 /**< the value is large constant number `offset` of the map */
};

/** The location of a live value. */
struct cairn_location {
    enum cairn_location_kind kind;
    uint16_t size;     /**< in bytes, as LLVM recorded it: 16 for a float in an XMM register */
    uint16_t dwarf;    /**< DWARF number of the register */
    int32_t offset;    /**< offset, small constant or index, depending on the kind */
    uint64_t constant; /**< value of a Constant or ConstantIndex; otherwise 0 */
};

/** A register that is live after the call. */
struct cairn_liveout {
    uint16_t dwarf; /**< DWARF number of the register */
    uint8_t size;   /**< in bytes */
};

/**
 * Reads and checks the map at `*offset` of the section, and advances `*offset` to the next map, or
 * to the end of the section.
 *
 * Errors: TRUNCATED, VERSION, CORRUPT, ARGUMENT. `error->offset` is the place in the section.
 * `*offset` and `*map` are unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_stackmap_read(
    const struct cairn_section *section, size_t *offset, struct cairn_stackmap *map,
    struct cairn_error *error);

/** Returns the size of a function in a map of this version, in bytes. */
CAIRN_INLINE size_t cairn_stackmap_function_bytes(uint8_t version)
{
    return version == 1 ? CAIRN_STACKMAP_FUNCTION_V1_BYTES : CAIRN_STACKMAP_FUNCTION_BYTES;
}

/** Returns the size of a location in a map of this version, in bytes. */
CAIRN_INLINE size_t cairn_stackmap_location_bytes(uint8_t version)
{
    size_t more = CAIRN_STACKMAP_LOCATION_BYTES - CAIRN_STACKMAP_LOCATION_V1_BYTES;
    return CAIRN_STACKMAP_LOCATION_V1_BYTES + (version == 3) * more;
}

/** Returns function number `index`. */
CAIRN_INLINE struct cairn_stackmap_function cairn_stackmap_function(
    const struct cairn_stackmap *map, uint32_t index)
{
    const uint8_t *bytes = map->bytes + CAIRN_STACKMAP_HEADER_BYTES +
                           index * cairn_stackmap_function_bytes(map->version);
    struct cairn_stackmap_function function;
    function.address = cairn_load_u64(bytes, map->byte_order);
    function.stack_size = cairn_load_u64(bytes + 8, map->byte_order);
    function.record_count = 0;
    if (map->version > 1)
        function.record_count = cairn_load_u64(bytes + 16, map->byte_order);
    else if (map->function_count == 1)
        function.record_count = map->record_count;
    return function;
}

/** Returns large constant number `index`. */
CAIRN_INLINE uint64_t cairn_stackmap_constant(const struct cairn_stackmap *map, uint32_t index)
{
    return cairn_load_u64(map->bytes + map->constants_offset +
                              (size_t)index * CAIRN_STACKMAP_CONSTANT_BYTES,
                          map->byte_order);
}

/** Reads the record at `record->offset`: all members except those about its function and index. */
CAIRN_INLINE void cairn_stackmap_load_record(const struct cairn_stackmap *map,
                                             struct cairn_stackmap_record *record)
{
    const uint8_t *bytes = map->bytes + record->offset;
    /* The end of a record determines the start of the next one, so the processor cannot load
     * records in advance by itself. */
    __builtin_prefetch(bytes + 1024);
    __builtin_prefetch(bytes + 1088);
    record->id = cairn_load_u64(bytes, map->byte_order);
    record->code_offset = cairn_load_u32(bytes + 8, map->byte_order);
    record->location_count = cairn_load_u16(bytes + 14, map->byte_order);
    record->locations_offset = record->offset + CAIRN_STACKMAP_RECORD_HEADER_BYTES;
    size_t locations_end = record->locations_offset +
                           record->location_count * cairn_stackmap_location_bytes(map->version);
    size_t liveouts = (locations_end + 7) & ~(size_t)7;
    record->liveout_count = cairn_load_u16(map->bytes + liveouts + 2, map->byte_order);
    record->liveouts_offset = liveouts + CAIRN_STACKMAP_LIVEOUTS_HEADER_BYTES;
    size_t end =
        record->liveouts_offset + (size_t)record->liveout_count * CAIRN_STACKMAP_LIVEOUT_BYTES;
    record->end_offset = (end + 7) & ~(size_t)7;
}

/** Advances `*record` to the next record; to the first one if `*record` is all zero. Returns false
 *  after the last one, and `*record` is then unchanged. */
CAIRN_INLINE bool cairn_stackmap_next(const struct cairn_stackmap *map,
                                      struct cairn_stackmap_record *record)
{
    if (record->records_left_in_function > 0) {
        record->records_left_in_function--;
        record->index++;
        record->offset = record->end_offset;
        cairn_stackmap_load_record(map, record);
        return true;
    }
    const bool is_first = record->end_offset == 0;
    const uint32_t index = is_first ? 0 : record->index + 1;
    const uint32_t previous_code_offset = record->code_offset;
    if (index >= map->record_count)
        return false;
    record->index = index;
    record->offset = is_first ? map->records_offset : record->end_offset;
    cairn_stackmap_load_record(map, record);
    if (map->functions == CAIRN_STACKMAP_FUNCTIONS_COUNTED) {
        /* Some functions have no records. The counts were checked, so a later one has records. */
        uint32_t function = is_first ? 0 : record->function + 1;
        while (cairn_stackmap_function(map, function).record_count == 0)
            function++;
        record->function = function;
        record->records_left_in_function = cairn_stackmap_function(map, function).record_count - 1;
    } else if (map->functions == CAIRN_STACKMAP_FUNCTIONS_UNKNOWN) {
        record->function = CAIRN_STACKMAP_NO_FUNCTION;
    } else if (!is_first && (map->functions == CAIRN_STACKMAP_FUNCTIONS_EACH ||
                             record->code_offset < previous_code_offset)) {
        record->function++;
    }
    return true;
}

/** Returns location number `index` of a record. */
CAIRN_INLINE struct cairn_location cairn_stackmap_location(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record, uint32_t index)
{
    /* In all versions, the register is in the middle and the offset at the end. With their
     * positions computed in this way, a loop over locations has no branch on the version. */
    size_t location_bytes = cairn_stackmap_location_bytes(map->version);
    const uint8_t *bytes = map->bytes + record->locations_offset + index * location_bytes;
    struct cairn_location location;
    location.kind = (enum cairn_location_kind)bytes[0];
    location.size = map->version == 3 ? cairn_load_u16(bytes + 2, map->byte_order) : bytes[1];
    location.dwarf = cairn_load_u16(bytes + (location_bytes - 4) / 2, map->byte_order);
    location.offset = (int32_t)cairn_load_u32(bytes + location_bytes - 4, map->byte_order);
    location.constant = 0;
    if (location.kind == CAIRN_LOCATION_CONSTANT)
        location.constant = (uint64_t)(int64_t)location.offset;
    else if (location.kind == CAIRN_LOCATION_CONSTANT_INDEX)
        location.constant = cairn_stackmap_constant(map, (uint32_t)location.offset);
    return location;
}

/** Returns live-out number `index` of a record. */
CAIRN_INLINE struct cairn_liveout cairn_stackmap_liveout(const struct cairn_stackmap *map,
                                                         const struct cairn_stackmap_record *record,
                                                         uint32_t index)
{
    const uint8_t *bytes =
        map->bytes + record->liveouts_offset + (size_t)index * CAIRN_STACKMAP_LIVEOUT_BYTES;
    struct cairn_liveout liveout;
    liveout.dwarf = cairn_load_u16(bytes, map->byte_order);
    liveout.size = bytes[3];
    return liveout;
}

#ifdef __cplusplus
}
#endif
#endif
