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

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The bytes of a section. Cairn never writes to them. No alignment is needed. */
struct cairn_section {
    const uint8_t *bytes;
    size_t size;
    enum cairn_byte_order byte_order;
};

/** One map of a section, checked from its first to its last byte. */
struct cairn_stackmap {
    const uint8_t *bytes;   /**< the map's first byte, its header */
    size_t size;            /**< its length in bytes, padding included */
    size_t section_offset;  /**< where it begins in its section */
    enum cairn_byte_order byte_order;
    uint8_t version;        /**< 1, 2 or 3 */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t record_count;
    size_t constants_offset; /**< from `bytes` */
    size_t records_offset;   /**< from `bytes` */
};

struct cairn_stackmap_function {
    uint64_t address;
    /** Bytes of the fixed frame; CAIRN_STACK_SIZE_DYNAMIC where LLVM does not know. */
    uint64_t stack_size;
    /** Version 1 does not say: 0, unless the map has only one function. */
    uint64_t record_count;
};

/** LLVM's mark for dynamic allocas and realigned stacks. */
#define CAIRN_STACK_SIZE_DYNAMIC UINT64_MAX

/** A record inside a map. Plain values; copy it freely. */
struct cairn_stackmap_record {
    uint64_t id;
    /** Index into the map's functions, or CAIRN_STACKMAP_NO_FUNCTION (version 1, several functions). */
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
    CAIRN_LOCATION_REGISTER = 1,      /**< the value is in the register */
    CAIRN_LOCATION_DIRECT = 2,        /**< the value is register + offset (an alloca's address) */
    CAIRN_LOCATION_INDIRECT = 3,      /**< the value is in memory at register + offset */
    CAIRN_LOCATION_CONSTANT = 4,      /**< the value is `offset`, sign-extended */
    CAIRN_LOCATION_CONSTANT_INDEX = 5 /**< the value is `constant`, number `offset` of the map's constants */
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
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_stackmap_read(const struct cairn_section *section,
                                                                 size_t *offset,
                                                                 struct cairn_stackmap *map,
                                                                 struct cairn_error *error);

/** Function number `index`, which must be below `function_count`. */
CAIRN_API struct cairn_stackmap_function
cairn_stackmap_function(const struct cairn_stackmap *map, uint32_t index);

/** Large constant number `index`, which must be below `constant_count`. */
CAIRN_API uint64_t cairn_stackmap_constant(const struct cairn_stackmap *map, uint32_t index);

/** The first record of a map that cairn_stackmap_read accepted; false if it has none. */
CAIRN_API bool cairn_stackmap_first(const struct cairn_stackmap *map,
                                    struct cairn_stackmap_record *record);

/** Moves on to the next record; false at the end. */
CAIRN_API bool cairn_stackmap_next(const struct cairn_stackmap *map,
                                   struct cairn_stackmap_record *record);

/** Location number `index`, which must be below `location_count`. */
CAIRN_API struct cairn_location cairn_stackmap_location(const struct cairn_stackmap *map,
                                                        const struct cairn_stackmap_record *record,
                                                        uint16_t index);

/** Live-out number `index`, which must be below `liveout_count`. */
CAIRN_API struct cairn_liveout cairn_stackmap_liveout(const struct cairn_stackmap *map,
                                                      const struct cairn_stackmap_record *record,
                                                      uint16_t index);

/** "Register", "Direct", "Indirect", "Constant", "ConstantIndex", as LLVM names them; static. */
CAIRN_API const char *cairn_location_kind_name(enum cairn_location_kind kind);

#ifdef __cplusplus
}
#endif
#endif
