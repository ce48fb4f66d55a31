/*
 * cairn/stackmap.h - decoding LLVM's stack map section.
 *
 * Views point into the caller's bytes; nothing is allocated and nothing is
 * copied, so the bytes must outlive the views. Versions 1, 2 and 3, either byte
 * order, and several maps one after the other (a linked program has one per
 * object file) are read.
 *
 * The usual loop:
 *
 *     struct cairn_stackmap map;
 *     struct cairn_stackmap_record record;
 *     size_t offset = 0;
 *     while (offset < section.size) {
 *         if (cairn_stackmap_read(&section, &offset, &map, &error) != CAIRN_OK)
 *             return complain(&error);
 *         for (bool more = cairn_stackmap_first(&map, &record); more;
 *              more = cairn_stackmap_next(&map, &record))
 *             use(&map, &record);
 *     }
 *
 * All functions here are thread-safe and async-signal-safe: they touch only
 * their arguments.
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format;
 * versions 2 and 3: llvm/lib/CodeGen/StackMaps.cpp.
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

/** How it is known to which function a record belongs: a version 1 map does not say it. */
enum cairn_stackmap_functions {
    /** Each function says how many records it has (versions 2 and 3; or there is one function). */
    CAIRN_STACKMAP_FUNCTIONS_COUNTED = 0,
    /** Where the records' offsets descend, the next function begins. */
    CAIRN_STACKMAP_FUNCTIONS_DESCENDING = 1,
    /** Each function has one record. */
    CAIRN_STACKMAP_FUNCTIONS_EACH = 2,
    /** It is not known. */
    CAIRN_STACKMAP_FUNCTIONS_UNKNOWN = 3
};

/** One map of a section, checked from its first to its last byte. */
struct cairn_stackmap {
    const uint8_t *bytes;  /**< the map's first byte, its header */
    size_t size;           /**< its length in bytes, padding included */
    size_t section_offset; /**< where it begins in its section */
    enum cairn_byte_order byte_order;
    uint8_t version; /**< 1, 2 or 3 */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t record_count;
    size_t constants_offset; /**< from `bytes` */
    size_t records_offset;   /**< from `bytes` */
    enum cairn_stackmap_functions functions;
};

struct cairn_stackmap_function {
    uint64_t address;
    /** Bytes of the fixed frame; CAIRN_STACK_SIZE_DYNAMIC where LLVM does not know. */
    uint64_t stack_size;
    /** Version 1 does not say: 0, unless the map has only one function. Records of a function
     *  follow each other, in the order of the functions. */
    uint64_t record_count;
};

/** LLVM's mark for dynamic allocas and realigned stacks. */
#define CAIRN_STACK_SIZE_DYNAMIC UINT64_MAX

/** A record inside a map. Plain values; copy it freely. */
struct cairn_stackmap_record {
    uint64_t id;
    /** Index into the map's functions. Version 1 has no counts: where several functions leave
     *  more than one way to share the records out, CAIRN_STACKMAP_NO_FUNCTION. */
    uint32_t function;
    /** Records of `function` that come after this one. Used by cairn_stackmap_next. */
    uint64_t records_left_in_function;
    /** Bytes from the function's first instruction. */
    uint32_t code_offset;
    uint16_t location_count;
    uint16_t liveout_count;
    uint32_t index;          /**< of the map's records */
    size_t offset;           /**< of the record, from the map's first byte */
    size_t locations_offset; /**< from the map's first byte */
    size_t liveouts_offset;  /**< from the map's first byte */
    size_t end_offset;       /**< of the next record */
};

#define CAIRN_STACKMAP_NO_FUNCTION UINT32_MAX

/** As LLVM numbers and names them. */
enum cairn_location_kind {
    CAIRN_LOCATION_REGISTER = 1, /**< the value is in the register */
    CAIRN_LOCATION_DIRECT = 2,   /**< the value is register + offset (an alloca's address) */
    CAIRN_LOCATION_INDIRECT = 3, /**< the value is in memory at register + offset */
    CAIRN_LOCATION_CONSTANT = 4, /**< the value is `offset`, sign-extended */
    CAIRN_LOCATION_CONSTANT_INDEX =
        5 /**< the value is `constant`, number `offset` of the map's constants */
};

/** Where one live value is. */
struct cairn_location {
    enum cairn_location_kind kind;
    /** Bytes, as recorded: a float in an XMM register says 16. */
    uint16_t size;
    uint16_t dwarf;
    /** Offset, small constant or index, by kind. */
    int32_t offset;
    /** Constant: `offset` sign-extended; ConstantIndex: the large constant; otherwise 0. */
    uint64_t constant;
};

/** A register that lives across the record's address. */
struct cairn_liveout {
    uint16_t dwarf;
    uint8_t size; /**< bytes */
};

/**
 * Reads and checks the whole map at `*offset` of the section, and moves
 * `*offset` to the next one, or to the section's end. Nothing is written to
 * `*offset` and `*map` on failure; `error->offset` counts from the section's
 * first byte.
 *
 * TRUNCATED, VERSION, CORRUPT, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_stackmap_read(
    const struct cairn_section *section, size_t *offset, struct cairn_stackmap *map,
    struct cairn_error *error);

/*
 * Reading from a map that cairn_stackmap_read accepted. These are inline, and check nothing that
 * it has checked: indices must be below the counts.
 */

/** Function number `index`. */
static inline struct cairn_stackmap_function cairn_stackmap_function(
    const struct cairn_stackmap *map, uint32_t index);

/** Large constant number `index`. */
static inline uint64_t cairn_stackmap_constant(const struct cairn_stackmap *map, uint32_t index);

/** The first record; false if the map has none. */
static inline bool cairn_stackmap_first(const struct cairn_stackmap *map,
                                        struct cairn_stackmap_record *record);

/** Moves on to the next record; false at the end. */
static inline bool cairn_stackmap_next(const struct cairn_stackmap *map,
                                       struct cairn_stackmap_record *record);

/** Location number `index` of a record. */
static inline struct cairn_location cairn_stackmap_location(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record, uint32_t index);

/** Live-out number `index` of a record. */
static inline struct cairn_liveout cairn_stackmap_liveout(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record, uint32_t index);

/** "Register", "Direct", "Indirect", "Constant", "ConstantIndex", as LLVM names them; static. */
CAIRN_API const char *cairn_location_kind_name(enum cairn_location_kind kind);

/* ---- The inline functions ---- */

enum {
    CAIRN_STACKMAP_HEADER_BYTES = 16,
    CAIRN_STACKMAP_FUNCTION_V1_BYTES = 16,
    CAIRN_STACKMAP_FUNCTION_BYTES = 24, /* versions 2 and 3 */
    CAIRN_STACKMAP_CONSTANT_BYTES = 8,
    CAIRN_STACKMAP_RECORD_HEADER_BYTES = 16,
    CAIRN_STACKMAP_LOCATION_V1_BYTES = 8, /* versions 1 and 2 */
    CAIRN_STACKMAP_LOCATION_BYTES = 12,   /* version 3 */
    CAIRN_STACKMAP_LIVEOUTS_HEADER_BYTES = 4,
    CAIRN_STACKMAP_LIVEOUT_BYTES = 4
};

static inline size_t cairn_stackmap_function_bytes(uint8_t version)
{
    return version == 1 ? CAIRN_STACKMAP_FUNCTION_V1_BYTES : CAIRN_STACKMAP_FUNCTION_BYTES;
}

static inline size_t cairn_stackmap_location_bytes(uint8_t version)
{
    size_t more = CAIRN_STACKMAP_LOCATION_BYTES - CAIRN_STACKMAP_LOCATION_V1_BYTES;
    return CAIRN_STACKMAP_LOCATION_V1_BYTES + (version == 3) * more;
}

static inline struct cairn_stackmap_function cairn_stackmap_function(
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

static inline uint64_t cairn_stackmap_constant(const struct cairn_stackmap *map, uint32_t index)
{
    return cairn_load_u64(map->bytes + map->constants_offset +
                              (size_t)index * CAIRN_STACKMAP_CONSTANT_BYTES,
                          map->byte_order);
}

/* Reads the record at `record->offset`, all but its function and its index. */
static inline void cairn_stackmap_load_record(const struct cairn_stackmap *map,
                                              struct cairn_stackmap_record *record)
{
    const uint8_t *bytes = map->bytes + record->offset;
    /* Each record tells where the next one begins, so the processor cannot run ahead by itself. */
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

/* Moves `function` on to one that has records. There is one: the counts were checked. */
static inline void cairn_stackmap_enter_function(const struct cairn_stackmap *map,
                                                 struct cairn_stackmap_record *record)
{
    uint64_t count = cairn_stackmap_function(map, record->function).record_count;
    while (count == 0)
        count = cairn_stackmap_function(map, ++record->function).record_count;
    record->records_left_in_function = count - 1;
}

/* The function of a first record. */
static inline void cairn_stackmap_begin_function(const struct cairn_stackmap *map,
                                                 struct cairn_stackmap_record *record)
{
    record->function = 0;
    record->records_left_in_function = 0;
    if (map->functions == CAIRN_STACKMAP_FUNCTIONS_COUNTED)
        cairn_stackmap_enter_function(map, record);
    else if (map->functions == CAIRN_STACKMAP_FUNCTIONS_UNKNOWN)
        record->function = CAIRN_STACKMAP_NO_FUNCTION;
}

/* The function of the record behind one with `previous_code_offset`. */
static inline void cairn_stackmap_follow_function(const struct cairn_stackmap *map,
                                                  struct cairn_stackmap_record *record,
                                                  uint32_t previous_code_offset)
{
    if (map->functions == CAIRN_STACKMAP_FUNCTIONS_COUNTED) {
        if (record->records_left_in_function-- > 0)
            return;
        record->function++;
        cairn_stackmap_enter_function(map, record);
    } else if (map->functions == CAIRN_STACKMAP_FUNCTIONS_EACH ||
               (map->functions == CAIRN_STACKMAP_FUNCTIONS_DESCENDING &&
                record->code_offset < previous_code_offset)) {
        record->function++;
    }
}

static inline bool cairn_stackmap_first(const struct cairn_stackmap *map,
                                        struct cairn_stackmap_record *record)
{
    if (map->record_count == 0)
        return false;
    record->index = 0;
    record->offset = map->records_offset;
    cairn_stackmap_load_record(map, record);
    cairn_stackmap_begin_function(map, record);
    return true;
}

static inline bool cairn_stackmap_next(const struct cairn_stackmap *map,
                                       struct cairn_stackmap_record *record)
{
    if (record->index + 1 >= map->record_count)
        return false;
    uint32_t code_offset = record->code_offset;
    record->index++;
    record->offset = record->end_offset;
    cairn_stackmap_load_record(map, record);
    cairn_stackmap_follow_function(map, record, code_offset);
    return true;
}

static inline struct cairn_location cairn_stackmap_location(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record, uint32_t index)
{
    /* The register and the offset lie in the middle and at the end, in all versions: found so, a
     * loop over locations has no branch on the version. */
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

static inline struct cairn_liveout cairn_stackmap_liveout(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record, uint32_t index)
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
