/*
 * record/record_values.h - the packed locations and live-outs of a record, and how to read them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_RECORD_VALUES_H
#define RECORD_RECORD_VALUES_H

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

/* The values of a record; valid as long as the table. */
struct record_values {
    const cairn_table *table;
    const uint32_t *liveouts;
    uint32_t liveout_count;
    const uint32_t *locations;
    uint32_t location_words;
    enum value_form form;
};

static inline struct record_values record_values_of(struct cairn_record record)
{
    const cairn_table *table = record.table;
    uint32_t start = table->value_starts[record.index];
    const uint32_t *word = table->values + (start & VALUE_WORD_MASK);
    const uint32_t *end = table->values + (table->value_starts[record.index + 1] & VALUE_WORD_MASK);
    struct record_values values;
    values.table = table;
    values.form = (enum value_form)(start >> VALUE_FORM_SHIFT);
    values.liveouts = NULL;
    values.liveout_count = 0;
    if ((start & VALUE_HAS_LIVEOUTS) != 0) {
        values.liveout_count = *word++;
        values.liveouts = word;
        word += values.liveout_count;
    }
    values.locations = word;
    values.location_words = (uint32_t)(end - word);
    return values;
}

static inline uint32_t record_values_location_count(const struct record_values *values)
{
    /* A division by the number of words in the form would take longer than the remaining work. */
    if (values->form == VALUES_COMPACT)
        return values->location_words;
    return values->form == VALUES_WIDE ? values->location_words / 2 : values->location_words / 3;
}

/* Returns a location. `index` must be below record_values_location_count. */
static inline struct cairn_location record_values_location(const struct record_values *values,
                                                           uint32_t index)
{
    const uint32_t *words = values->locations + (size_t)index * ((size_t)values->form + 1);
    struct cairn_location location;
    if (values->form == VALUES_COMPACT) {
        location = compact_unpack(words[0]);
    } else {
        const bool is_wide = values->form == VALUES_WIDE;
        location = (struct cairn_location){
            .kind = (enum cairn_location_kind)(words[0] & 7),
            .size = (uint16_t)(is_wide ? (words[0] >> 3) & WIDE_SIZE_MAX : words[1] & 0xFFFF),
            .dwarf = (uint16_t)(words[is_wide ? 0 : 1] >> 16),
            .offset = (int32_t)words[is_wide ? 1 : 2],
        };
    }
    if (location.kind == CAIRN_LOCATION_CONSTANT)
        location.constant = (uint64_t)(int64_t)location.offset;
    else if (location.kind == CAIRN_LOCATION_CONSTANT_INDEX)
        location.constant = values->table->constants[location.offset];
    return location;
}

#endif
