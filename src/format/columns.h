/*
 * format/columns.h - the loop that copies records' locations into columns.
 *
 * It is compiled once for each way of copying sixteen locations: `copy` is a constant in every
 * function below.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_COLUMNS_H
#define FORMAT_COLUMNS_H

#include <cairn/stackmap.h>

#define COLUMNS_INLINE static inline __attribute__((always_inline))

enum {
    COLUMN_CAPACITY = CAIRN_STACKMAP_COLUMN_LENGTH,
    COLUMN_SLACK = 16, /* what is copied may go so far beyond what is wanted */
    COLUMN_RECORDS = 64
};

struct columns {
    uint32_t count; /* locations so far, at most COLUMN_CAPACITY */
    uint32_t firsts[COLUMN_RECORDS + 1];
    uint32_t kinds[COLUMN_CAPACITY + COLUMN_SLACK];
    uint32_t sizes[COLUMN_CAPACITY + COLUMN_SLACK];
    uint32_t registers[COLUMN_CAPACITY + COLUMN_SLACK];
    int32_t offsets[COLUMN_CAPACITY + COLUMN_SLACK];
};

/* Copies the locations of the first records of at most COLUMN_RECORDS, as many records as there is
 * room for, and returns how many. The records were checked, and lie before `end`. */
typedef uint32_t columns_copier(struct columns *columns, const struct cairn_stackmap *map,
                                const uint8_t *end, const struct cairn_stackmap_record *records,
                                uint32_t count);

/* For version 3 in the host's order, if the processor can do sixteen locations at once; NULL if it
 * cannot. */
columns_copier *columns_sixteen_copier(void);

/* Sixteen locations from `bytes` to place `at`. `context` is the function's own. */
typedef void columns_copy_sixteen(const void *context, struct columns *columns, uint32_t at,
                                  const uint8_t *bytes);

/* Locations `first` to `first + count` of a record; there is room for them. */
static inline void columns_copy_one_by_one(struct columns *columns,
                                           const struct cairn_stackmap *map,
                                           const struct cairn_stackmap_record *record,
                                           uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, first + i);
        columns->kinds[columns->count + i] = location.kind;
        columns->sizes[columns->count + i] = location.size;
        columns->registers[columns->count + i] = location.dwarf;
        columns->offsets[columns->count + i] = location.offset;
    }
}

/* Most records have no more than sixteen, so there is no branch that depends on their number. */
COLUMNS_INLINE void columns_copy_record(struct columns *columns, const struct cairn_stackmap *map,
                                        const uint8_t *end,
                                        const struct cairn_stackmap_record *record,
                                        columns_copy_sixteen *copy, const void *context)
{
    enum { STEP = 16 * CAIRN_STACKMAP_LOCATION_BYTES };
    const uint8_t *bytes = map->bytes + record->locations_offset;
    uint32_t count = record->location_count;
    if (__builtin_expect((size_t)(end - bytes) < (size_t)(count / 16 + 1) * STEP, 0)) {
        columns_copy_one_by_one(columns, map, record, 0, count);
        return;
    }
    copy(context, columns, columns->count, bytes);
    for (uint32_t copied = 16; __builtin_expect(copied < count, 0); copied += 16)
        copy(context, columns, columns->count + copied, bytes += STEP);
}

COLUMNS_INLINE uint32_t columns_copy_with(struct columns *columns, const struct cairn_stackmap *map,
                                          const uint8_t *end,
                                          const struct cairn_stackmap_record *records,
                                          uint32_t count, columns_copy_sixteen *copy,
                                          const void *context)
{
    for (uint32_t i = 0; i < count; i++) {
        if (columns->count + records[i].location_count > COLUMN_CAPACITY)
            return i;
        columns->firsts[i] = columns->count;
        columns_copy_record(columns, map, end, &records[i], copy, context);
        columns->count += records[i].location_count;
    }
    return count;
}

#endif
