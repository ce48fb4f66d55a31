/* SPDX-License-Identifier: MIT */
#include "record/pack.h"

#include "format/record.h"

struct packing packing_of(const struct cairn_stackmap *map, uint32_t first_constant)
{
    struct packing packing = {.constants =
                                  compact_constants_of(map->constant_count, first_constant)};
    compact_prepare(packing.kinds, &packing.constants);
    return packing;
}

/* ---- The wide form, four locations at a time ---- */

/* Bits that are set if a location so far is invalid, or too large. */
struct four_findings {
    four_words bad;
    four_words large;
};

static void pack_four_wide(const struct four_locations *locations, uint32_t constant_count,
                           uint32_t first_constant, uint32_t *words, struct four_findings *findings)
{
    four_words kind = locations->kind_and_size & 0xFF;
    four_words size = locations->kind_and_size >> 16;
    four_words is_index = (four_words)(kind == CAIRN_LOCATION_CONSTANT_INDEX);
    four_words no_kind = (four_words)(kind - CAIRN_LOCATION_REGISTER >
                                      CAIRN_LOCATION_CONSTANT_INDEX - CAIRN_LOCATION_REGISTER);
    four_words no_constant = (four_words)(locations->offset >= constant_count);
    findings->bad |= no_kind | (is_index & no_constant);
    findings->large |= size & ~(uint32_t)WIDE_SIZE_MAX;
    four_words first = kind | size << 3 | locations->dwarf << 16;
    four_words second = locations->offset + (is_index & first_constant);
    four_words low = __builtin_shufflevector(first, second, 0, 4, 1, 5);
    four_words high = __builtin_shufflevector(first, second, 2, 6, 3, 7);
    memcpy(words, &low, sizeof low);
    memcpy(words + 4, &high, sizeof high);
}

/* Packs at least four locations. The last four overlap those before them. */
static struct four_findings pack_wide_by_fours(const struct cairn_stackmap *map,
                                               uint32_t first_constant, const uint8_t *bytes,
                                               uint32_t count, uint32_t *words)
{
    struct four_findings findings = {.bad = {0}};
    for (uint32_t i = 0;; i = i + 8 <= count ? i + 4 : count - 4) {
        const struct four_locations locations =
            four_load(bytes + (size_t)i * CAIRN_STACKMAP_LOCATION_BYTES);
        pack_four_wide(&locations, map->constant_count, first_constant, words + 2 * (size_t)i,
                       &findings);
        if (i + 4 == count)
            return findings;
    }
}

/* ---- Single locations ---- */

static uint32_t table_offset(const struct raw_location *location, uint32_t first_constant)
{
    uint32_t offset = (uint32_t)location->offset;
    return location->kind == CAIRN_LOCATION_CONSTANT_INDEX ? offset + first_constant : offset;
}

static void pack_one_large(const struct raw_location *location, enum value_form form,
                           uint32_t first_constant, uint32_t *words)
{
    if (form == VALUES_FULL) {
        *words++ = location->kind;
        *words++ = location->size | location->dwarf << 16;
    } else {
        *words++ = wide_pack(location->kind, location->size, location->dwarf);
    }
    *words = table_offset(location, first_constant);
}

struct packed pack_large(const struct cairn_stackmap *map, uint32_t first_constant,
                         const uint8_t *locations, uint32_t count, uint32_t *words)
{
    size_t stride = cairn_stackmap_location_bytes(map->version);
    if (four_applies(stride, map->byte_order) && count >= 4) {
        struct four_findings findings =
            pack_wide_by_fours(map, first_constant, locations, count, words);
        if (four_or(findings.bad) != 0)
            return (struct packed){.word_count = 0};
        if (four_or(findings.large) == 0)
            return (struct packed){2 * count, VALUES_WIDE};
    }
    const struct record_limits limits = record_limits_of(map);
    enum value_form form = VALUES_WIDE;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *bytes = locations + i * stride;
        if (record_location_is_bad(&limits, bytes, stride, map->byte_order))
            return (struct packed){.word_count = 0};
        if (raw_location_load(bytes, stride, map->byte_order).size > WIDE_SIZE_MAX)
            form = VALUES_FULL;
    }
    uint32_t words_each = (uint32_t)form + 1;
    for (uint32_t i = 0; i < count; i++) {
        struct raw_location location =
            raw_location_load(locations + i * stride, stride, map->byte_order);
        pack_one_large(&location, form, first_constant, words + (size_t)i * words_each);
    }
    return (struct packed){count * words_each, form};
}
