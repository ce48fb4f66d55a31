/*
 * format/check_records.h - the loop that checks all records of a map.
 *
 * It is compiled once for each kind of map and each way of checking locations: `stride`,
 * `byte_order` and `are_good` are constants in every caller.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_CHECK_RECORDS_H
#define FORMAT_CHECK_RECORDS_H

#include "format/four.h"
#include "format/record.h"

#define CHECK_INLINE static inline __attribute__((always_inline))

enum check_result { CHECK_GOOD, CHECK_TRUNCATED, CHECK_CORRUPT };

/* The position of a check. */
struct check_place {
    const uint8_t *at; /* next record */
    uint32_t index;    /* number of the next record */
    /* Array that receives the valid records, without their functions; or NULL. */
    struct cairn_stackmap_record *kept;
};

/* Checks the records from `place` to number `last` - 1, which must end before `end`. Moves `place`
 * past them, or to the first invalid record. */
typedef enum check_result record_checker(const struct cairn_stackmap *map, const uint8_t *end,
                                         uint32_t last, struct check_place *place);

/* Returns the fastest checker for this map. */
record_checker *stackmap_checker(const struct cairn_stackmap *map);

/* Sets `error` to the reason why the record at `place` is invalid. */
enum cairn_status stackmap_explain(const struct cairn_stackmap *map, enum check_result result,
                                   const struct check_place *place, struct cairn_error *error);

/* Returns a checker that runs on all processors, for any map. */
record_checker *stackmap_portable_checker(const struct cairn_stackmap *map);

/* Returns a checker for version 3 in the host's byte order that checks sixteen locations at once.
 * NULL if the processor does not support it. */
record_checker *stackmap_sixteen_checker(void);

/* ---- Checking locations on all processors ---- */

/* Whether all locations are valid. `room` bytes are readable from the first one on. Each
 * implementation defines the type of `context`. */
typedef bool locations_check(const void *context, const uint8_t *locations, uint32_t count,
                             size_t room);

/* Returns a nonzero lane for each invalid location. `constants_end` is the number of constants with
 * its highest bit inverted, because unsigned numbers are compared as signed ones. */
CHECK_INLINE four_words four_faults(const struct four_locations *locations, uint32_t constants_end)
{
    four_integers kind = (four_integers)(locations->kind_and_size & 0xFF);
    four_integers offset = (four_integers)(locations->offset ^ UINT32_C(0x80000000));
    four_integers no_kind =
        (kind < CAIRN_LOCATION_REGISTER) | (kind > CAIRN_LOCATION_CONSTANT_INDEX);
    four_integers no_constant =
        (kind == CAIRN_LOCATION_CONSTANT_INDEX) & (offset >= (int32_t)constants_end);
    return (four_words)(no_kind | no_constant);
}

/* Checks four locations at a time. Ignores the lanes after the last location. */
CHECK_INLINE bool fours_are_good(uint32_t constant_count, const uint8_t *locations, uint32_t count)
{
    const four_integers lanes = {0, 1, 2, 3};
    four_words faults = {0};
    for (int32_t left = (int32_t)count; left > 0; left -= 4) {
        const struct four_locations four = four_load(locations);
        faults |=
            four_faults(&four, constant_count ^ UINT32_C(0x80000000)) & (four_words)(lanes < left);
        locations += sizeof four;
    }
    return four_or(faults) == 0;
}

CHECK_INLINE bool locations_are_good(const void *context, const uint8_t *locations, uint32_t count,
                                     size_t room, size_t stride, enum cairn_byte_order byte_order)
{
    const struct record_limits *limits = context;
    if (four_applies(stride, byte_order) && (count + 3) / 4 * sizeof(struct four_locations) <= room)
        return fours_are_good((uint32_t)limits->offsets[CAIRN_LOCATION_CONSTANT_INDEX], locations,
                              count);
    unsigned bad = 0;
    for (uint32_t i = 0; i < count; i++, locations += stride)
        bad |= record_location_is_bad(limits, locations, stride, byte_order);
    return bad == 0;
}

/* ---- Records ---- */

CHECK_INLINE void keep_record(struct cairn_stackmap_record *record,
                              const struct cairn_stackmap *map, const uint8_t *at, uint32_t index,
                              const struct record_parts *parts)
{
    record->id = parts->id;
    record->code_offset = parts->code_offset;
    record->location_count = parts->location_count;
    record->liveout_count = parts->liveout_count;
    record->index = index;
    record->offset = (size_t)(at - map->bytes);
    record->locations_offset = (size_t)(parts->locations - map->bytes);
    record->liveouts_offset = (size_t)(parts->liveouts - map->bytes);
    record->end_offset = (size_t)(parts->end - map->bytes);
}

CHECK_INLINE enum check_result check_records_with(const struct cairn_stackmap *map,
                                                  const uint8_t *end, uint32_t last,
                                                  struct check_place *place, size_t stride,
                                                  enum cairn_byte_order byte_order,
                                                  locations_check *are_good, const void *context)
{
    const uint8_t *at = place->at;
    uint32_t index = place->index;
    struct cairn_stackmap_record *kept = place->kept;
    enum check_result result = CHECK_GOOD;
    for (; index < last; index++) {
        struct record_parts parts;
        if (!record_split(at, (size_t)(end - at), stride, byte_order, RECORD_PREFETCH_BYTES,
                          &parts)) {
            result = CHECK_TRUNCATED;
            break;
        }
        size_t room = (size_t)(end - parts.locations);
        if (!are_good(context, parts.locations, parts.location_count, room)) {
            result = CHECK_CORRUPT;
            break;
        }
        if (kept != NULL)
            keep_record(kept++, map, at, index, &parts);
        at = parts.end;
    }
    place->at = at;
    place->index = index;
    return result;
}

#endif
