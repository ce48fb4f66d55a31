/* SPDX-License-Identifier: MIT */
#include "record/pack.h"

/* ---- The compact form ---- */

#define SIZE_BITS(logarithm)                                                                       \
    [1 << (logarithm)] = COMPACT_SIZE_KNOWN | (logarithm) << COMPACT_SIZE_SHIFT
const uint8_t compact_sizes[UINT8_MAX + 1] = {
    SIZE_BITS(0), SIZE_BITS(1), SIZE_BITS(2), SIZE_BITS(3),
    SIZE_BITS(4), SIZE_BITS(5), SIZE_BITS(6), SIZE_BITS(7),
};

static void set_rule(struct packing *packing, enum cairn_location_kind kind, unsigned register_bits,
                     unsigned offset_shift)
{
    const uint64_t no_kind = 0xFF & ~(uint64_t)COMPACT_KIND_MASK;
    const uint64_t no_size = UINT64_C(0xFF00) << 16;
    const uint64_t no_register = (uint64_t)(0xFFFF >> register_bits << register_bits) << 32;
    const unsigned offset_bits = 32 - offset_shift;
    packing->forbidden[kind] = no_kind | no_size | no_register;
    packing->bias[kind] = UINT32_C(1) << (offset_bits - 1);
    packing->limit[kind] = UINT32_C(1) << offset_bits;
    packing->multiplier[kind] = UINT32_C(1) << offset_shift;
    packing->base[kind] = (uint32_t)kind - COMPACT_SIZE_KNOWN;
}

struct packing packing_of(const struct cairn_stackmap *map, uint32_t first_constant)
{
    struct packing packing = {
        .map = map,
        .stride = cairn_stackmap_location_bytes(map->version),
        .first_constant = first_constant,
    };
    set_rule(&packing, CAIRN_LOCATION_REGISTER, 8, COMPACT_OFFSET_SHIFT);
    set_rule(&packing, CAIRN_LOCATION_DIRECT, 8, COMPACT_OFFSET_SHIFT);
    set_rule(&packing, CAIRN_LOCATION_INDIRECT, 8, COMPACT_OFFSET_SHIFT);
    set_rule(&packing, CAIRN_LOCATION_CONSTANT, 0, COMPACT_CONSTANT_SHIFT);
    set_rule(&packing, CAIRN_LOCATION_CONSTANT_INDEX, 0, COMPACT_CONSTANT_SHIFT);
    /* Indices are not negative in the word either. */
    const uint32_t end = UINT32_C(1) << (COMPACT_CONSTANT_BITS - 1);
    const uint32_t space = first_constant < end ? end - first_constant : 0;
    packing.bias[CAIRN_LOCATION_CONSTANT_INDEX] = 0;
    packing.limit[CAIRN_LOCATION_CONSTANT_INDEX] =
        map->constant_count < space ? map->constant_count : space;
    packing.base[CAIRN_LOCATION_CONSTANT_INDEX] += first_constant << COMPACT_CONSTANT_SHIFT;
    return packing;
}

/* ---- Larger forms ---- */

static bool is_valid(const struct packing *packing, struct location location)
{
    return record_is_kind(location.kind) && (location.kind != CAIRN_LOCATION_CONSTANT_INDEX ||
                                             location.offset < packing->map->constant_count);
}

static struct packed pack_large(const struct packing *packing, const struct record_parts *record,
                                uint32_t *words)
{
    const enum cairn_byte_order byte_order = packing->map->byte_order;
    enum value_form form = VALUES_WIDE;
    for (size_t i = 0; i < record->location_count; i++) {
        struct location location =
            location_load(record->locations + i * packing->stride, packing->stride, byte_order);
        if (!is_valid(packing, location))
            return (struct packed){.flags = PACKED_INVALID};
        if (location.size > WIDE_SIZE_MAX)
            form = VALUES_FULL;
    }
    for (size_t i = 0; i < record->location_count; i++) {
        struct location location =
            location_load(record->locations + i * packing->stride, packing->stride, byte_order);
        if (form == VALUES_FULL) {
            *words++ = location.kind;
            *words++ = location.size | location.dwarf << 16;
        } else {
            *words++ = location.kind | location.size << 3 | location.dwarf << 16;
        }
        bool is_index = location.kind == CAIRN_LOCATION_CONSTANT_INDEX;
        *words++ = location.offset + (is_index ? packing->first_constant : 0);
    }
    return (struct packed){.word_count = record->location_count * ((uint32_t)form + 1),
                           .flags = (uint32_t)form << VALUE_FORM_SHIFT};
}

/* ---- Records ---- */

/* Packs the count of the live-outs and the live-outs. Returns the number of words. */
static uint32_t pack_liveouts(const struct packing *packing, const struct record_parts *record,
                              uint32_t *words)
{
    *words++ = record->liveout_count;
    for (size_t i = 0; i < record->liveout_count; i++) {
        const uint8_t *liveout = record->liveouts + i * CAIRN_STACKMAP_LIVEOUT_BYTES;
        *words++ = cairn_load_u16(liveout, packing->map->byte_order) | (uint32_t)liveout[3] << 16;
    }
    return record->liveout_count + UINT32_C(1);
}

struct packed pack_values(const struct packing *packing, const struct record_parts *record,
                          uint32_t *words)
{
    uint32_t liveout_words = 0;
    if (record->liveout_count > 0)
        liveout_words = pack_liveouts(packing, record, words);
    words += liveout_words;
    struct packed packed = {.word_count = record->location_count};
    if (!pack_compact(packing, record, packing->stride, packing->map->byte_order, words))
        packed = pack_large(packing, record, words);
    if (liveout_words > 0 && packed.flags != PACKED_INVALID) {
        packed.word_count += liveout_words;
        packed.flags |= VALUE_HAS_LIVEOUTS;
    }
    return packed;
}
