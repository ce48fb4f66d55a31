/* SPDX-License-Identifier: MIT */
#include "record/pack.h"

/* ---- The compact form ---- */

#define POWER(logarithm) (COMPACT_SIZE_KNOWN | (logarithm) << COMPACT_SIZE_SHIFT)
const uint8_t compact_sizes[UINT8_MAX + 1] = {
    [1] = POWER(0),  [2] = POWER(1),  [4] = POWER(2),  [8] = POWER(3),
    [16] = POWER(4), [32] = POWER(5), [64] = POWER(6), [128] = POWER(7),
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

uint32_t *pack_large(const struct packing *packing, const uint8_t *locations, uint32_t count,
                     uint32_t *words, uint32_t *flags)
{
    const enum cairn_byte_order byte_order = packing->map->byte_order;
    const uint8_t *const end = locations + count * packing->stride;
    enum value_form form = VALUES_WIDE;
    for (const uint8_t *at = locations; at != end; at += packing->stride) {
        struct location location = location_load(at, packing->stride, byte_order);
        const bool is_index = location.kind == CAIRN_LOCATION_CONSTANT_INDEX;
        if (!record_is_kind(location.kind) ||
            (is_index && location.offset >= packing->map->constant_count))
            return NULL;
        if (location.size > WIDE_SIZE_MAX)
            form = VALUES_FULL;
    }
    for (const uint8_t *at = locations; at != end; at += packing->stride) {
        struct location location = location_load(at, packing->stride, byte_order);
        if (form == VALUES_FULL) {
            *words++ = location.kind;
            *words++ = location.size | (uint32_t)location.dwarf << 16;
        } else {
            *words++ =
                location.kind | (uint32_t)location.size << 3 | (uint32_t)location.dwarf << 16;
        }
        bool is_index = location.kind == CAIRN_LOCATION_CONSTANT_INDEX;
        *words++ = location.offset + (is_index ? packing->first_constant : 0);
    }
    *flags |= (uint32_t)form << VALUE_FORM_SHIFT;
    return words;
}

/* ---- Live-outs ---- */

uint32_t *pack_liveouts(const uint8_t *liveouts, uint32_t count, enum cairn_byte_order byte_order,
                        uint32_t *words)
{
    *words++ = count;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *liveout = liveouts + i * CAIRN_STACKMAP_LIVEOUT_BYTES;
        *words++ = cairn_load_u16(liveout, byte_order) | (uint32_t)liveout[3] << 16;
    }
    return words;
}
