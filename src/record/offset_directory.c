/* SPDX-License-Identifier: MIT */
#include "record/offset_directory.h"

#include "base/sort.h"

enum { ROWS_PER_BUCKET = 2, SHIFT_MAX = 31 };

uint32_t offsets_plan(struct offsets *offsets, uint32_t count, uint32_t last)
{
    offsets->count = count;
    offsets->shift = 0;
    while (offsets->shift < SHIFT_MAX && last >> offsets->shift > count / ROWS_PER_BUCKET)
        offsets->shift++;
    offsets->bucket_count = (last >> offsets->shift) + 1;
    return offsets->bucket_count + 1;
}

void offsets_fill(struct offsets *offsets)
{
    uint32_t bucket = 0;
    for (uint32_t row = 0; row < offsets->count; row++) {
        uint32_t offset;
        memcpy(&offset, offsets->rows + (size_t)row * offsets->stride, sizeof offset);
        while (bucket <= offset >> offsets->shift)
            offsets->buckets[bucket++] = row;
    }
    while (bucket <= offsets->bucket_count)
        offsets->buckets[bucket++] = offsets->count;
}

uint32_t offsets_first(const struct offsets *offsets, uint64_t address)
{
    if (offsets->count == 0 || address <= offsets->base)
        return 0;
    uint64_t offset = address - offsets->base;
    if (offset >> offsets->shift >= offsets->bucket_count)
        return offsets->count;
    const uint32_t *bucket = &offsets->buckets[offset >> offsets->shift];
    return search_u32(offsets->rows, offsets->stride, bucket[0], bucket[1], offset);
}
