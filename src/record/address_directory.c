/*
 * The directory of addresses: finds the few records that may have an address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/builder.h"

#include <string.h>

enum { BUCKET_SHIFT_MIN = 2, EXTRAPOLATION_MAX = 8 };

static bool is_too_fine(uint64_t span, uint8_t shift, uint64_t record_count)
{
    return shift < BUCKET_SHIFT_MAX && span >> shift > record_count / RECORDS_PER_BUCKET;
}

static void set_shift(struct address_directory *directory, uint8_t shift)
{
    uint64_t limit = ((uint64_t)directory->capacity << shift) - 1;
    directory->shift = shift;
    directory->reach = (uint64_t)DIRECTORY_SLACK << shift;
    directory->limit = limit < UINT32_MAX ? limit : UINT32_MAX;
}

void directory_begin(struct address_directory *directory, uint64_t span, uint64_t record_count)
{
    uint8_t shift = BUCKET_SHIFT_MIN;
    while (is_too_fine(span, shift, record_count))
        shift++;
    set_shift(directory, shift);
    directory->starts[0] = 0;
}

/* Returns the bucket after that of the last record. */
static uint32_t next_bucket(const struct address_directory *directory)
{
    return (uint32_t)(directory->last_offset >> directory->shift) + 1;
}

/* Merges each bucket with its neighbours. */
static void widen(struct address_directory *directory, uint8_t shift)
{
    uint8_t by = shift - directory->shift;
    set_shift(directory, shift);
    for (uint32_t b = 1; b < next_bucket(directory); b++)
        directory->starts[b] = directory->starts[b << by];
}

void directory_advance(struct builder *builder, uint32_t index, uint64_t offset)
{
    struct address_directory *directory = &builder->directory;
    if (offset >> directory->shift >= directory->capacity) {
        /* Extrapolates the last record's offset from the records so far. */
        uint64_t factor = builder->record_capacity / (index + UINT64_C(1)) + 1;
        uint64_t end = offset * (factor < EXTRAPOLATION_MAX ? factor : EXTRAPOLATION_MAX);
        uint8_t shift = directory->shift;
        while (shift < BUCKET_SHIFT_MAX && end >> shift >= directory->capacity)
            shift++;
        widen(directory, shift);
    }
    uint32_t bucket = (uint32_t)(offset >> directory->shift);
    for (uint32_t b = next_bucket(directory); b < bucket; b++)
        directory->starts[b] = index;
    if (bucket >= next_bucket(directory))
        directory->last_offset = (uint64_t)(bucket - 1) << directory->shift;
}

uint32_t directory_first_record(const struct builder *builder, uint32_t offset)
{
    const struct address_directory *directory = &builder->directory;
    uint32_t bucket = offset >> directory->shift;
    uint32_t next = next_bucket(directory);
    if (bucket >= next)
        return builder->record_count;
    uint32_t end = bucket + 1 < next ? directory->starts[bucket + 1] : builder->record_count;
    return table_lower_bound(builder->table, directory->starts[bucket], end, (uint16_t)offset);
}

void builder_finish_addresses(struct builder *builder)
{
    cairn_table *table = builder->table;
    struct address_directory *directory = &builder->directory;
    uint8_t shift = directory->shift;
    table->span = (uint32_t)directory->last_offset;
    while (is_too_fine(table->span, shift, table->record_count))
        shift++;
    widen(directory, shift);
    table->bucket_shift = shift;
    table->bucket_count = next_bucket(directory);
    table->address_buckets = builder_take_words(builder, (size_t)table->bucket_count + 1);
    memcpy(table->address_buckets, directory->starts, table->bucket_count * sizeof(uint32_t));
    table->address_buckets[table->bucket_count] = table->record_count;
    memset(table->low + table->record_count, 0, LOW_PADDING * sizeof *table->low);
}
