/*
 * record/pack.h - packing the locations and live-outs of one record.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_PACK_H
#define RECORD_PACK_H

#include "format/record.h"
#include "record/packed_values.h"

/* Parameters for packing a map's locations in the compact form. */
struct packing {
    struct compact_constants constants;
    struct compact_kind kinds[8];
};

struct packing packing_of(const struct cairn_stackmap *map, uint32_t first_constant);

/* Packs locations in the compact form. `room` bytes are readable at `locations`. Returns whether
 * they fit; if so, they are also valid. May write VALUE_SLACK_WORDS after the last word. `context`
 * is the packing, or what the function has computed from it. */
typedef bool pack_function(const void *context, const uint8_t *locations, uint32_t count,
                           size_t room, uint32_t *words);

/* The result of packing locations that do not fit the compact form. `word_count` is 0 if a location
 * is invalid. */
struct packed {
    uint32_t word_count;
    enum value_form form;
};
struct packed pack_large(const struct cairn_stackmap *map, uint32_t first_constant,
                         const uint8_t *locations, uint32_t count, uint32_t *words);

/* ---- Portable compact packing ---- */

struct raw_location {
    unsigned kind;
    unsigned size;
    unsigned dwarf;
    int32_t offset;
};

static inline __attribute__((always_inline)) struct raw_location raw_location_load(
    const uint8_t *bytes, size_t stride, enum cairn_byte_order byte_order)
{
    struct raw_location location = {.kind = bytes[0]};
    if (stride == CAIRN_STACKMAP_LOCATION_BYTES) {
        location.size = cairn_load_u16(bytes + 2, byte_order);
        location.dwarf = cairn_load_u16(bytes + 4, byte_order);
    } else {
        location.size = bytes[1];
        location.dwarf = cairn_load_u16(bytes + 2, byte_order);
    }
    location.offset = (int32_t)cairn_load_u32(bytes + stride - 4, byte_order);
    return location;
}

static inline __attribute__((always_inline)) bool pack_one_by_one(const struct packing *packing,
                                                                  const uint8_t *bytes,
                                                                  uint32_t count, size_t stride,
                                                                  enum cairn_byte_order byte_order,
                                                                  uint32_t *words)
{
    uint32_t misfits = 0;
    for (uint32_t i = 0; i < count; i++, bytes += stride) {
        struct raw_location location = raw_location_load(bytes, stride, byte_order);
        misfits |= compact_pack(packing->kinds, location.kind, location.size, location.dwarf,
                                (uint32_t)location.offset, &words[i]);
    }
    return misfits == 0;
}

/* Packs four locations at a time. There may be fewer at the end; what is read for the others is
 * ignored. */
static inline __attribute__((always_inline)) bool pack_by_fours(const struct packing *packing,
                                                                const uint8_t *bytes,
                                                                uint32_t count, uint32_t *words)
{
    const four_integers lanes = {0, 1, 2, 3};
    four_words misfits = {0};
    for (int32_t left = (int32_t)count; left > 0; left -= 4) {
        const struct four_locations locations = four_load(bytes);
        four_words packed;
        four_words misfit = compact_pack_four(&locations, &packing->constants, &packed);
        misfits |= misfit & four_mask(lanes < left);
        memcpy(words, &packed, sizeof packed);
        bytes += sizeof locations;
        words += 4;
    }
    return four_or(misfits) == 0;
}

static inline __attribute__((always_inline)) bool pack_compact(const struct packing *packing,
                                                               const uint8_t *bytes, uint32_t count,
                                                               size_t room, size_t stride,
                                                               enum cairn_byte_order byte_order,
                                                               uint32_t *words)
{
    if (four_applies(stride, byte_order) && (count + 3) / 4 * sizeof(struct four_locations) <= room)
        return pack_by_fours(packing, bytes, count, words);
    return pack_one_by_one(packing, bytes, count, stride, byte_order, words);
}

/* ---- Live-outs ---- */

enum { USUAL_LIVEOUTS = 12, USUAL_LIVEOUTS_BYTES = USUAL_LIVEOUTS * CAIRN_STACKMAP_LIVEOUT_BYTES };

static inline __attribute__((always_inline)) void pack_four_liveouts(const uint8_t *liveouts,
                                                                     uint32_t *words)
{
    four_words four;
    memcpy(&four, liveouts, sizeof four);
    four = (four & 0xFFFF) | (four >> 8 & 0xFF0000);
    memcpy(words, &four, sizeof four);
}

/* Writes the count of the live-outs and the live-outs. Returns the number of words. `end` is the
 * end of the readable bytes. May write VALUE_SLACK_WORDS after the last word. */
static inline __attribute__((always_inline)) uint32_t pack_liveouts(
    enum cairn_byte_order byte_order, const struct record_parts *record, const uint8_t *end,
    uint32_t *words)
{
    uint32_t count = record->liveout_count;
    size_t room = (size_t)(end - record->liveouts);
    *words = count;
    /* Pack the usual number of live-outs, without a branch that depends on their number. */
    if (four_applies(CAIRN_STACKMAP_LOCATION_BYTES, byte_order) && count <= USUAL_LIVEOUTS &&
        room >= USUAL_LIVEOUTS_BYTES) {
        for (size_t i = 0; i < USUAL_LIVEOUTS; i += 4)
            pack_four_liveouts(record->liveouts + i * CAIRN_STACKMAP_LIVEOUT_BYTES, words + 1 + i);
        return count + 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *liveout = record->liveouts + (size_t)i * CAIRN_STACKMAP_LIVEOUT_BYTES;
        words[i + 1] = cairn_load_u16(liveout, byte_order) | (uint32_t)liveout[3] << 16;
    }
    return count + 1;
}

#endif
