/*
 * record/pack.h - packs the locations and live-outs of records.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_PACK_H
#define RECORD_PACK_H

#include "format/record.h"
#include "record/record_values.h"

enum { PACK_KINDS = 8 };

/*
 * How to pack the locations of a map. The arrays, indexed by kind, are the rules of the compact
 * form, by which a location is checked and packed without a branch on its kind. A kind that does
 * not exist, or that no location may have, has the limit 0.
 */
struct packing {
    const struct cairn_stackmap *map;
    size_t stride; /* size of a location in the map */
    /* Added to the indices of constants: a table has the constants of one map after those of the
     * maps before it. */
    uint32_t first_constant;

    uint64_t forbidden[PACK_KINDS]; /* bits of a location's head that must be 0 */
    uint32_t bias[PACK_KINDS];      /* an offset fits if offset + bias is below the limit */
    uint32_t limit[PACK_KINDS];
    uint32_t multiplier[PACK_KINDS]; /* moves the offset to its place in the word */
    uint32_t base[PACK_KINDS];       /* what is added to every word of this kind */
};

/* `map` must remain valid as long as the result is used. */
struct packing packing_of(const struct cairn_stackmap *map, uint32_t first_constant);

/* ---- Locations ---- */

struct location {
    /* Bits 0 to 7 are the kind, 16 to 31 the size, 32 to 47 the register: a location of version 3
     * begins so, in little-endian order. The other bits are unspecified. */
    uint64_t head;
    uint32_t offset;
    uint8_t kind;
    uint16_t size;
    uint16_t dwarf;
};

static inline __attribute__((always_inline)) struct location location_load(
    const uint8_t *bytes, size_t stride, enum cairn_byte_order byte_order)
{
    const bool is_wide = stride == CAIRN_STACKMAP_LOCATION_BYTES;
    struct location location = {
        .kind = bytes[0],
        .size = is_wide ? cairn_load_u16(bytes + 2, byte_order) : bytes[1],
        .dwarf = cairn_load_u16(bytes + (is_wide ? 4 : 2), byte_order),
        .offset = cairn_load_u32(bytes + stride - 4, byte_order),
    };
    if (is_wide && byte_order == CAIRN_LITTLE_ENDIAN)
        location.head = cairn_load_u64(bytes, byte_order);
    else
        location.head =
            location.kind | (uint64_t)location.size << 16 | (uint64_t)location.dwarf << 32;
    return location;
}

/* ---- The compact form ---- */

/* The bits of the sizes that have a logarithm of at most 7, and COMPACT_SIZE_KNOWN. 0 for others.
 */
enum { COMPACT_SIZE_KNOWN = 0x80 };
extern const uint8_t compact_sizes[UINT8_MAX + 1];

/* Packs a record's locations. Returns whether they are valid and fit the compact form; otherwise
 * the words are unspecified. Inlined, so that the compiler specialises it for constant arguments.
 */
static inline __attribute__((always_inline)) bool pack_compact(const struct packing *packing,
                                                               const struct record_parts *record,
                                                               size_t stride,
                                                               enum cairn_byte_order byte_order,
                                                               uint32_t *words)
{
    const uint8_t *bytes = record->locations;
    const uint8_t *end = bytes + record->location_count * stride;
    for (; bytes != end; bytes += stride) {
        const struct location location = location_load(bytes, stride, byte_order);
        unsigned kind = location.head & COMPACT_KIND_MASK;
        uint32_t size = compact_sizes[location.size & 0xFF];
        if ((location.head & packing->forbidden[kind]) != 0 || size == 0 ||
            location.offset + packing->bias[kind] >= packing->limit[kind])
            return false;
        *words++ = packing->base[kind] + size +
                   ((uint32_t)location.dwarf << COMPACT_REGISTER_SHIFT) +
                   location.offset * packing->multiplier[kind];
    }
    return true;
}

/* ---- Other values ---- */

/* Packs locations in the smallest form that fits them, and adds the form to `*flags`, the upper
 * bits of the record's `value_start`. Returns the end of the words; NULL if a location is invalid.
 */
uint32_t *pack_large(const struct packing *packing, const uint8_t *locations, uint32_t count,
                     uint32_t *words, uint32_t *flags);

/* Packs the count of live-outs and the live-outs. Returns the end of the words. */
uint32_t *pack_liveouts(const uint8_t *liveouts, uint32_t count, enum cairn_byte_order byte_order,
                        uint32_t *words);

#endif
