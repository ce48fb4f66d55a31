/*
 * record/packed_values.h - the forms of a packed location, and how to unpack it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_PACKED_VALUES_H
#define RECORD_PACKED_VALUES_H

#include "record/layout.h"

/*
 * The compact form, from the lowest bit: 3 bits kind, 3 bits size (its logarithm), then
 *   registers and memory: 8 bits register, 18 bits offset;
 *   constants: 26 bits.
 * If a location does not fit, all locations of its record have the wide form.
 */
enum {
    COMPACT_KIND_MASK = 7,
    COMPACT_SIZE_SHIFT = 3,
    COMPACT_REGISTER_SHIFT = 6,
    COMPACT_CONSTANT_SHIFT = 6,
    COMPACT_OFFSET_SHIFT = 14,
    COMPACT_OFFSET_BITS = 18,
    COMPACT_CONSTANT_BITS = 26,
    WIDE_SIZE_MAX = (1 << 13) - 1
};

static inline struct cairn_location compact_unpack(uint32_t word)
{
    unsigned kind = word & COMPACT_KIND_MASK;
    struct cairn_location location = {
        .kind = (enum cairn_location_kind)kind,
        .size = (uint16_t)(1u << ((word >> COMPACT_SIZE_SHIFT) & 7)),
    };
    if (kind > CAIRN_LOCATION_INDIRECT) {
        location.offset = (int32_t)word >> COMPACT_CONSTANT_SHIFT;
        return location;
    }
    location.dwarf = (word >> COMPACT_REGISTER_SHIFT) & 0xFF;
    location.offset = (int32_t)word >> COMPACT_OFFSET_SHIFT;
    return location;
}

static inline struct cairn_location wide_unpack(const uint32_t *words)
{
    return (struct cairn_location){
        .kind = (enum cairn_location_kind)(words[0] & 7),
        .size = (uint16_t)((words[0] >> 3) & WIDE_SIZE_MAX),
        .dwarf = (uint16_t)(words[0] >> 16),
        .offset = (int32_t)words[1],
    };
}

static inline struct cairn_location full_unpack(const uint32_t *words)
{
    return (struct cairn_location){
        .kind = (enum cairn_location_kind)words[0],
        .size = (uint16_t)(words[1] & 0xFFFF),
        .dwarf = (uint16_t)(words[1] >> 16),
        .offset = (int32_t)words[2],
    };
}

#endif
