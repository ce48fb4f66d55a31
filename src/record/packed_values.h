/*
 * record/packed_values.h - how one location is packed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_PACKED_VALUES_H
#define RECORD_PACKED_VALUES_H

#include "format/four.h"
#include "record/layout.h"

#include <string.h>

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
    COMPACT_SIZE_NONE = 0x80,
    COMPACT_NEVER = 0x10000, /* above every register */
    WIDE_SIZE_MAX = (1 << 13) - 1
};

/* Parameters for packing a kind of location without a branch. An offset fits if offset + bias is at
 * most `largest`. The register's bits in `no_register` must be 0. A multiplication moves the offset
 * into its place. */
struct compact_kind {
    uint32_t bias;
    uint32_t largest;
    uint32_t multiplier;
    uint32_t no_register;
    uint32_t added; /* to the offset, when it is known to fit */
};

/* The constants of a map that the compact form can refer to, and the number that is added to their
 * indices: in a table, the constants of a map follow those of the maps before it. */
struct compact_constants {
    uint32_t count;
    uint32_t first;
};

static inline struct compact_constants compact_constants_of(uint32_t count, uint32_t first)
{
    uint32_t end = UINT32_C(1) << (COMPACT_CONSTANT_BITS - 1);
    uint32_t room = first < end ? end - first : 0;
    return (struct compact_constants){.count = count < room ? count : room, .first = first};
}

static inline void compact_prepare(struct compact_kind kinds[8],
                                   const struct compact_constants *constants)
{
    static const uint32_t offset_bias = UINT32_C(1) << (COMPACT_OFFSET_BITS - 1);
    static const uint32_t constant_bias = UINT32_C(1) << (COMPACT_CONSTANT_BITS - 1);
    const struct compact_kind memory = {offset_bias, 2 * offset_bias - 1,
                                        UINT32_C(1) << COMPACT_OFFSET_SHIFT, 0xFF00, 0};
    const struct compact_kind constant = {constant_bias, 2 * constant_bias - 1,
                                          UINT32_C(1) << COMPACT_CONSTANT_SHIFT, 0xFFFF, 0};
    const struct compact_kind index = {
        0, constants->count - 1, UINT32_C(1) << COMPACT_CONSTANT_SHIFT, 0xFFFF, constants->first};
    const struct compact_kind none = {0, 0, 0, COMPACT_NEVER, 0};
    for (unsigned kind = 0; kind < 8; kind++)
        kinds[kind] = none;
    kinds[CAIRN_LOCATION_REGISTER] = memory;
    kinds[CAIRN_LOCATION_DIRECT] = memory;
    kinds[CAIRN_LOCATION_INDIRECT] = memory;
    kinds[CAIRN_LOCATION_CONSTANT] = constant;
    kinds[CAIRN_LOCATION_CONSTANT_INDEX] = constants->count > 0 ? index : none;
}

/* Logarithms of the sizes that have one of at most 7. */
extern const uint8_t compact_sizes[256];

/* Packs a location. Returns 0 if it fits the compact form and is valid. Otherwise the word is
 * unspecified. */
static inline __attribute__((always_inline)) uint32_t compact_pack(
    const struct compact_kind kinds[8], unsigned kind, unsigned size, unsigned dwarf,
    uint32_t offset, uint32_t *word)
{
    const struct compact_kind *how = &kinds[kind & COMPACT_KIND_MASK];
    uint32_t code = compact_sizes[size & 0xFF];
    uint32_t too_large = (uint32_t)(offset + how->bias > how->largest);
    *word = kind + (code << COMPACT_SIZE_SHIFT) + (dwarf << COMPACT_REGISTER_SHIFT) +
            (offset + how->added) * how->multiplier;
    return too_large | ((dwarf | COMPACT_NEVER) & how->no_register) |
           (kind & ~(unsigned)COMPACT_KIND_MASK) | (code & COMPACT_SIZE_NONE) | (size & 0xFF00);
}

/* ---- Four locations at once: version 3, little-endian ---- */

/* Converts the result of a vector comparison to words: all bits are set where the condition
 * holds. */
static inline __attribute__((always_inline)) four_words four_mask(four_integers condition)
{
    return (four_words)condition;
}

/* Returns a nonzero lane for each location of the constants' kinds that does not fit or is
 * invalid. */
static inline __attribute__((always_inline)) four_words compact_constant_misfit(
    four_integers kind, four_words dwarf, four_words offset, uint32_t constant_count)
{
    four_words bias = (four_words){0} + (UINT32_C(1) << (COMPACT_CONSTANT_BITS - 1));
    four_integers index = (four_integers)offset;
    four_words is_index = four_mask(kind == CAIRN_LOCATION_CONSTANT_INDEX);
    four_words no_index = four_mask((index < 0) | (index >= (int32_t)constant_count));
    return dwarf | (offset + bias) >> COMPACT_CONSTANT_BITS | (is_index & no_index);
}

/* Does the same as compact_pack for four locations. The logarithm of a size is its exponent as a
 * float, and a power of two has no mantissa. Returns zeros for locations that fit and are valid. */
static inline __attribute__((always_inline)) four_words compact_pack_four(
    const struct four_locations *locations, const struct compact_constants *constants,
    four_words *packed)
{
    four_integers kind = (four_integers)(locations->kind_and_size & 0xFF);
    four_integers size = (four_integers)(locations->kind_and_size >> 16);
    four_words dwarf = locations->dwarf & 0xFFFF;
    four_words offset = locations->offset;
    four_words as_float = (four_words) __builtin_convertvector(size, four_floats);
    four_integers exponent = (four_integers)(as_float >> 23) - 127;
    four_words is_register = four_mask(kind <= CAIRN_LOCATION_INDIRECT);
    four_words is_index = four_mask(kind == CAIRN_LOCATION_CONSTANT_INDEX);

    four_words register_bits = dwarf << COMPACT_REGISTER_SHIFT | offset << COMPACT_OFFSET_SHIFT;
    four_words constant_bits = (offset + (is_index & constants->first)) << COMPACT_CONSTANT_SHIFT;
    *packed = (four_words)kind | (four_words)exponent << COMPACT_SIZE_SHIFT |
              (is_register & register_bits) | (~is_register & constant_bits);

    four_words bias = (four_words){0} + (UINT32_C(1) << (COMPACT_OFFSET_BITS - 1));
    four_words register_misfit = dwarf >> 8 | (offset + bias) >> COMPACT_OFFSET_BITS;
    four_words constant_misfit = compact_constant_misfit(kind, dwarf, offset, constants->count);
    four_words no_kind =
        four_mask((kind < CAIRN_LOCATION_REGISTER) | (kind > CAIRN_LOCATION_CONSTANT_INDEX));
    four_words no_size = (as_float & 0x7FFFFF) | four_mask((exponent < 0) | (exponent > 7));
    return (is_register & register_misfit) | (~is_register & constant_misfit) | no_kind | no_size;
}

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
