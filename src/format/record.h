/*
 * format/record.h - reads and checks one record, for code that reads a map before it is checked.
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

/* The parts of a record in memory. */
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
 * Reads the record at `bytes`, and returns whether it ends within `left` bytes. It does not check
 * the locations. Records begin at multiples of 8 bytes from the start of the map, so that fields
 * aligned in the map are aligned in the record. `stride` is the size of a location.
 *
 * The end of a record determines the start of the next one, so the processor cannot load records in
 * advance by itself. Two measures help. The cache lines `ahead` bytes after the record are
 * prefetched. The case without live-outs is a separate branch, which the processor can predict, so
 * that the end of the record does not depend on the number of live-outs.
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
    /* At most 65535 locations of 12 bytes, so no sum overflows. */
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

/*
 * The locations of consecutive records, as offsets from `base`. The processor mispredicts the end
 * of nearly every loop over the locations of one record. A loop over the list of many records has
 * one end. For the same reason the list is filled LISTED_AT_ONCE offsets at a time: those after a
 * record's last location are overwritten by the next record's.
 */
enum { LISTED_AT_ONCE = 16, LISTED_MAX = 256 };

struct location_list {
    const uint8_t *base;
    uint32_t count;
    uint32_t offsets[LISTED_MAX + LISTED_AT_ONCE];
};

/* Appends the locations of a record. Returns false, and leaves the list unchanged, if there are too
 * many. */
static inline __attribute__((always_inline)) bool location_list_append(
    struct location_list *list, const struct record_parts *record, size_t stride)
{
    const size_t distance = (size_t)(record->locations - list->base);
    if (record->location_count > LISTED_MAX - list->count || distance > UINT32_MAX / 2)
        return false;
    for (uint32_t i = 0; i < record->location_count; i += LISTED_AT_ONCE) {
        const uint32_t offset = (uint32_t)(distance + i * stride);
        uint32_t *offsets = list->offsets + list->count + i;
        for (uint32_t k = 0; k < LISTED_AT_ONCE; k++)
            offsets[k] = offset + k * (uint32_t)stride;
    }
    list->count += record->location_count;
    return true;
}

/* Reads and checks the header, functions and constants of the map at `offset`, not its records. */
enum cairn_status stackmap_open(const struct cairn_section *section, size_t offset,
                                struct cairn_stackmap *map, struct cairn_error *error);

/* Checks the locations of record number `index` at `offset`, which must not be truncated. Errors:
 * CORRUPT, at the first invalid location. */
enum cairn_status stackmap_check_locations(const struct cairn_stackmap *map, size_t offset,
                                           uint32_t index, struct cairn_error *error);

enum cairn_status stackmap_record_truncated(const struct cairn_stackmap *map, size_t offset,
                                            uint32_t index, struct cairn_error *error);

/* Returns `offset`, or the end of the section if only padding is left. */
size_t stackmap_skip_padding(const struct cairn_section *section, size_t offset);

/* Returns LLVM's name of a kind: "Register", "Direct", "Indirect", "Constant" or "ConstantIndex",
 * or "unknown"; a static string. */
const char *location_kind_name(enum cairn_location_kind kind);

#endif
