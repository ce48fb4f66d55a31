/*
 * index/values.h - how one location is packed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_VALUES_H
#define INDEX_VALUES_H

#include "index/layout.h"

/*
 * The compact form, from the lowest bit: 3 bits kind, 3 bits size (its logarithm), then
 *   registers and memory: 9 bits register, 17 bits offset;
 *   constants: 26 bits.
 * PPC64's lower register halves, 1200 and up, have the register numbers from 256 up.
 */
enum {
    COMPACT_SIZE_SHIFT = 3,
    COMPACT_VALUE_SHIFT = 6,
    COMPACT_OFFSET_SHIFT = 15,
    COMPACT_OFFSET_BITS = 17,
    COMPACT_VALUE_BITS = 26,
    COMPACT_DIRECT_REGISTERS = 256,
    COMPACT_HALF_REGISTERS = 32,
    COMPACT_FIRST_HALF = 1200,
    WIDE_SIZE_MAX = (1 << 13) - 1
};

static inline bool compact_is_register_kind(unsigned kind)
{
    return kind <= CAIRN_LOCATION_INDIRECT;
}

/* False if the location does not fit. */
static inline __attribute__((always_inline)) bool compact_pack(unsigned kind, unsigned size,
                                                               unsigned dwarf, int32_t offset,
                                                               uint32_t *word)
{
    bool is_register = compact_is_register_kind(kind);
    unsigned half = dwarf - COMPACT_FIRST_HALF;
    unsigned number = dwarf < COMPACT_DIRECT_REGISTERS ? dwarf : COMPACT_DIRECT_REGISTERS + half;
    bool register_fits = dwarf < COMPACT_DIRECT_REGISTERS || half < COMPACT_HALF_REGISTERS;
    unsigned bits = is_register ? COMPACT_OFFSET_BITS : COMPACT_VALUE_BITS;
    bool offset_fits = (uint32_t)offset + (UINT32_C(1) << (bits - 1)) < UINT32_C(1) << bits;
    bool size_fits = size != 0 && (size & (size - 1)) == 0 && size <= 128;
    /* A constant's register is 0, or not worth a word of its own. */
    bool fits = offset_fits & size_fits & (is_register ? register_fits : dwarf == 0);
    uint32_t packed = kind | (uint32_t)__builtin_ctz(size | 0x100) << COMPACT_SIZE_SHIFT;
    packed |= is_register ? number << COMPACT_VALUE_SHIFT | (uint32_t)offset << COMPACT_OFFSET_SHIFT
                          : (uint32_t)offset << COMPACT_VALUE_SHIFT;
    *word = packed;
    return fits;
}

static inline struct cairn_location compact_unpack(uint32_t word)
{
    struct cairn_location location = {
        .kind = (enum cairn_location_kind)(word & 7),
        .size = (uint16_t)(1u << ((word >> COMPACT_SIZE_SHIFT) & 7)),
    };
    if (!compact_is_register_kind(word & 7)) {
        location.offset = (int32_t)word >> COMPACT_VALUE_SHIFT;
        return location;
    }
    unsigned number = (word >> COMPACT_VALUE_SHIFT) & 0x1FF;
    location.dwarf = (uint16_t)(number < COMPACT_DIRECT_REGISTERS
                                    ? number
                                    : COMPACT_FIRST_HALF + number - COMPACT_DIRECT_REGISTERS);
    location.offset = (int32_t)word >> COMPACT_OFFSET_SHIFT;
    return location;
}

static inline uint32_t wide_pack(unsigned kind, unsigned size, unsigned dwarf)
{
    return kind | size << 3 | dwarf << 16;
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
