/*
 * index/offsets.h - rows of a table that are sorted by an offset, and the directory by which the
 * first one at or behind an address is found in a step or two.
 *
 * What must stay true: rows begin with their offset from `base`, and the offsets ascend;
 * `buckets[b]` is the number of the first row in bucket b or behind it, and there is one bucket
 * more than the last row is in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_OFFSETS_H
#define INDEX_OFFSETS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct offsets {
    uint64_t base;
    const unsigned char *rows;
    uint32_t stride; /* bytes of a row */
    uint32_t count;
    uint32_t shift; /* 1 << shift bytes are a bucket */
    uint32_t bucket_count;
    uint32_t *buckets;
};

/* Offsets are below this; what is as far away from the base does not fit into a table. */
#define OFFSETS_SPAN_MAX UINT32_MAX

/* Sets `shift` and `bucket_count` for `count` rows up to `last`; returns how many buckets there has
 * to be room for. */
uint32_t offsets_plan(struct offsets *offsets, uint32_t count, uint32_t last);

/* Fills in the buckets, of which the caller has given the room. */
void offsets_fill(struct offsets *offsets);

static inline uint32_t offsets_at(const struct offsets *offsets, uint32_t row)
{
    uint32_t offset;
    memcpy(&offset, offsets->rows + (size_t)row * offsets->stride, sizeof offset);
    return offset;
}

/* The number of the first row that is at `address` or behind it; `count` if there is none. */
uint32_t offsets_first(const struct offsets *offsets, uint64_t address);

#endif
