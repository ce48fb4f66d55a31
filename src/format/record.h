/*
 * format/record.h - the checks on one record, for whoever walks a map that is not checked yet.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_RECORD_H
#define FORMAT_RECORD_H

#include <cairn/stackmap.h>

enum { RECORD_BYTES_MIN = 24, RECORD_PREFETCH_BYTES = 6144 };

static inline bool record_is_kind(unsigned kind)
{
    return kind - CAIRN_LOCATION_REGISTER <=
           CAIRN_LOCATION_CONSTANT_INDEX - CAIRN_LOCATION_REGISTER;
}

/* A record, wherever it stands. */
struct record_parts {
    uint64_t id;
    uint32_t code_offset;
    uint16_t location_count;
    uint16_t liveout_count;
    const uint8_t *locations;
    const uint8_t *liveouts;
    const uint8_t *end;
};

/*
 * Reads the record at `bytes` and says whether it ends within `left` bytes. Its locations are not
 * checked. Records begin at multiples of 8 of their map, so that what is aligned in the map is
 * aligned in the record. `stride` and `byte_order` are the map's, given as constants so that each
 * caller's loop is compiled for them.
 *
 * Each record tells where the next one begins, so the processor cannot run ahead by itself: the
 * bytes `ahead` of the record, which are soon to be read, are asked for early; and that a record
 * has no live-outs is a branch, which it can guess.
 */
static inline __attribute__((always_inline)) bool record_split(const uint8_t *bytes, size_t left,
                                                               size_t stride,
                                                               enum cairn_byte_order byte_order,
                                                               ptrdiff_t ahead,
                                                               struct record_parts *parts)
{
    if (left < RECORD_BYTES_MIN)
        return false;
    uintptr_t soon = (uintptr_t)bytes + (uintptr_t)ahead;
    __builtin_prefetch((const void *)soon);
    __builtin_prefetch((const void *)(soon + 64));
    parts->id = cairn_load_u64(bytes, byte_order);
    parts->code_offset = cairn_load_u32(bytes + 8, byte_order);
    parts->location_count = cairn_load_u16(bytes + 14, byte_order);
    parts->locations = bytes + CAIRN_STACKMAP_RECORD_HEADER_BYTES;
    /* At most 65535 locations of 12 bytes: no sum here comes near overflowing. */
    size_t locations_size = (parts->location_count * stride + 7) & ~(size_t)7;
    if (locations_size + RECORD_BYTES_MIN > left)
        return false;
    const uint8_t *liveouts = parts->locations + locations_size;
    parts->liveout_count = cairn_load_u16(liveouts + 2, byte_order);
    parts->liveouts = liveouts + CAIRN_STACKMAP_LIVEOUTS_HEADER_BYTES;
    parts->end = liveouts + 8;
    if (__builtin_expect(parts->liveout_count == 0, 1))
        return true;
    size_t liveouts_size = (CAIRN_STACKMAP_LIVEOUTS_HEADER_BYTES +
                            (size_t)parts->liveout_count * CAIRN_STACKMAP_LIVEOUT_BYTES + 7) &
                           ~(size_t)7;
    parts->end = liveouts + liveouts_size;
    return CAIRN_STACKMAP_RECORD_HEADER_BYTES + locations_size + liveouts_size <= left;
}

/* By kind, the first offset that is not valid; so checking a location takes no branch. */
struct record_limits {
    uint64_t offsets[8];
};

static inline struct record_limits record_limits_of(const struct cairn_stackmap *map)
{
    const uint64_t any = UINT64_C(1) << 32;
    return (struct record_limits){{
        [CAIRN_LOCATION_REGISTER] = any,
        [CAIRN_LOCATION_DIRECT] = any,
        [CAIRN_LOCATION_INDIRECT] = any,
        [CAIRN_LOCATION_CONSTANT] = any,
        [CAIRN_LOCATION_CONSTANT_INDEX] = map->constant_count,
    }};
}

/* Not 0 if the kind is none, or if it is ConstantIndex and there is no such constant. */
static inline __attribute__((always_inline)) unsigned record_location_is_bad(
    const struct record_limits *limits, const uint8_t *location, size_t stride,
    enum cairn_byte_order byte_order)
{
    unsigned kind = location[0];
    uint32_t offset = cairn_load_u32(location + stride - 4, byte_order);
    return (kind & ~7u) | (unsigned)(offset >= limits->offsets[kind & 7]);
}

/* Header, functions and constants of the map at `offset`; its records are not looked at. */
enum cairn_status stackmap_open(const struct cairn_section *section, size_t offset,
                                struct cairn_stackmap *map, struct cairn_error *error);

/* Of record number `index`, at `offset`, which is not truncated: which of its locations is bad, and
 * how. */
enum cairn_status stackmap_location_corrupt(const struct cairn_stackmap *map, size_t offset,
                                            uint32_t index, struct cairn_error *error);

enum cairn_status stackmap_record_truncated(const struct cairn_stackmap *map, size_t offset,
                                            uint32_t index, struct cairn_error *error);

/* How a map's records are shared out among its functions. All records were checked. */
enum cairn_stackmap_functions stackmap_infer_functions(const struct cairn_stackmap *map);

/* `offset`, or the section's end if only padding is left. */
size_t stackmap_skip_padding(const struct cairn_section *section, size_t offset);

#endif
