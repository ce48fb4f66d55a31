/*
 * record/offset_directory.h - rows of a table that are sorted by an offset, and a directory that
 * finds the first row at or after an address in a step or two.
 *
 * Invariants: rows begin with their offset from `base`, and the offsets ascend. `buckets[b]` is the
 * number of the first row in bucket b or a later one. The bucket after the last row's has an entry,
 * too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_OFFSET_DIRECTORY_H
#define RECORD_OFFSET_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

struct offsets {
    uint64_t base;
    const unsigned char *rows;
    uint32_t stride; /* size of a row in bytes */
    uint32_t count;
    uint32_t shift; /* a bucket has 1 << shift bytes */
    uint32_t bucket_count;
    uint32_t *buckets;
};

/* Upper limit of offsets, exclusive. Rows at a larger distance from the base do not fit a table. */
#define OFFSETS_SPAN_MAX UINT32_MAX

/* Sets `shift` and `bucket_count` for `count` rows up to `last`. Returns how many buckets must be
 * allocated. */
uint32_t offsets_plan(struct offsets *offsets, uint32_t count, uint32_t last);

/* Fills in the buckets, which the caller has allocated. */
void offsets_fill(struct offsets *offsets);

/* Returns the number of the first row at or after `address`; `count` if all are before it. */
uint32_t offsets_first(const struct offsets *offsets, uint64_t address);

#endif
