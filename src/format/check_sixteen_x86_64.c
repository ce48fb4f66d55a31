/* SPDX-License-Identifier: MIT */
#include "format/check_records.h"
#include "format/sixteen_x86_64.h"

/* What is the same for all records of a map, in registers. */
struct checking {
    const struct record_limits *limits;
    const struct checking *in_memory; /* the same, for a function that is called */
    struct sixteen_field kind;
    struct sixteen_field offset;
    __m512i low_byte;
    __m512i first_kind;
    __m512i kind_count;
    __m512i index_kind;
    __m512i constants_end;
};

SIXTEEN_INLINE struct checking checking_of(const struct record_limits *limits)
{
    return (struct checking){
        .limits = limits,
        .kind = sixteen_field_of(0),
        .offset = sixteen_field_of(2),
        .low_byte = sixteen_all(0xFF),
        .first_kind = sixteen_all(CAIRN_LOCATION_REGISTER),
        .kind_count = sixteen_all(CAIRN_LOCATION_CONSTANT_INDEX - CAIRN_LOCATION_REGISTER + 1),
        .index_kind = sixteen_all(CAIRN_LOCATION_CONSTANT_INDEX),
        .constants_end = sixteen_all((uint32_t)limits->offsets[CAIRN_LOCATION_CONSTANT_INDEX]),
    };
}

/* Of the locations in `lanes`, those that are not valid. */
SIXTEEN_INLINE __mmask16 faults(const struct checking *how, const uint8_t *locations,
                                __mmask16 lanes)
{
    const struct sixteen_words words = sixteen_load(locations);
    const __m512i kind = _mm512_and_si512(sixteen_take(&words, &how->kind), how->low_byte);
    const __m512i offset = sixteen_take(&words, &how->offset);
    const __mmask16 no_kind = _mm512_mask_cmpge_epu32_mask(
        lanes, _mm512_sub_epi32(kind, how->first_kind), how->kind_count);
    const __mmask16 is_index = _mm512_mask_cmpeq_epi32_mask(lanes, kind, how->index_kind);
    return no_kind | _mm512_mask_cmpge_epu32_mask(is_index, offset, how->constants_end);
}

static __attribute__((noinline)) SIXTEEN_TARGET bool others_are_good(const struct checking *how,
                                                                     const uint8_t *locations,
                                                                     uint32_t count, size_t room)
{
    while (count > 16) {
        sixteen_prefetch(locations);
        if (faults(how, locations, sixteen_lanes(16)) != 0)
            return false;
        locations += SIXTEEN_BYTES;
        count -= 16;
        room -= SIXTEEN_BYTES;
    }
    return locations_are_good(how->limits, locations, count, room, CAIRN_STACKMAP_LOCATION_BYTES,
                              CAIRN_BYTE_ORDER_NATIVE);
}

SIXTEEN_INLINE bool sixteen_are_good(const void *context, const uint8_t *locations, uint32_t count,
                                     size_t room)
{
    const struct checking *how = context;
    if (__builtin_expect(count > 16 || room < SIXTEEN_BYTES, 0))
        return others_are_good(how->in_memory, locations, count, room);
    return faults(how, locations, sixteen_lanes(count)) == 0;
}

static SIXTEEN_TARGET enum check_result check_by_sixteens(const struct cairn_stackmap *map,
                                                          const uint8_t *end, uint32_t last,
                                                          struct check_place *place)
{
    const struct record_limits limits = record_limits_of(map);
    const struct checking in_memory = checking_of(&limits);
    struct checking how = in_memory;
    how.in_memory = &in_memory;
    return check_records_with(map, end, last, place, CAIRN_STACKMAP_LOCATION_BYTES,
                              CAIRN_BYTE_ORDER_NATIVE, sixteen_are_good, &how);
}

record_checker *stackmap_sixteen_checker(void)
{
    return sixteen_is_available() ? check_by_sixteens : NULL;
}
