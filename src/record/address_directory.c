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

void directory_begin(struct address_directory *directory, uint64_t span, uint64_t record_count)
{
    directory->shift = BUCKET_SHIFT_MIN;
    while (is_too_fine(span, directory->shift, record_count))
        directory->shift++;
    directory->starts[0] = 0;
    directory->next = 1;
}

static bool has_bucket(const struct address_directory *directory, uint64_t offset)
{
    return offset >> directory->shift < directory->capacity;
}

/* Merges each bucket with its neighbours. */
static void widen(struct address_directory *directory, uint8_t shift)
{
    uint8_t by = shift - directory->shift;
    uint32_t last = (directory->next - 1) >> by;
    for (uint32_t b = 1; b <= last; b++)
        directory->starts[b] = directory->starts[b << by];
    directory->next = last + 1;
    directory->shift = shift;
}

uint64_t directory_advance(struct builder *builder, uint64_t offset, uint32_t index)
{
    struct address_directory *directory = &builder->directory;
    if (!has_bucket(directory, offset)) {
        /* Extrapolates the last record's offset from the records so far. */
        uint64_t factor = builder->record_capacity / (index + UINT64_C(1)) + 1;
        uint64_t end = offset * (factor < EXTRAPOLATION_MAX ? factor : EXTRAPOLATION_MAX);
        uint8_t shift = directory->shift;
        while (shift < BUCKET_SHIFT_MAX && end >> shift >= directory->capacity)
            shift++;
        widen(directory, shift);
    }
    uint32_t bucket = (uint32_t)(offset >> directory->shift);
    while (directory->next < bucket)
        directory->starts[directory->next++] = index;
    return (uint64_t)(directory->next - 1) << directory->shift;
}

uint32_t directory_first_record(const struct builder *builder, uint32_t offset)
{
    const struct address_directory *directory = &builder->directory;
    const uint16_t *low = builder->table->low;
    uint32_t bucket = offset >> directory->shift;
    if (bucket >= directory->next)
        return builder->record_count;
    uint32_t begin = directory->starts[bucket];
    uint32_t end =
        bucket + 1 < directory->next ? directory->starts[bucket + 1] : builder->record_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (low[middle] < (uint16_t)offset)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

void builder_finish_addresses(struct builder *builder)
{
    cairn_table *table = builder->table;
    struct address_directory *directory = &builder->directory;
    uint8_t shift = directory->shift;
    table->span = (uint32_t)builder->last_offset;
    while (is_too_fine(table->span, shift, table->record_count))
        shift++;
    widen(directory, shift);
    table->bucket_shift = shift;
    table->bucket_count = directory->next;
    table->address_buckets = builder_take_words(builder, (size_t)table->bucket_count + 1);
    memcpy(table->address_buckets, directory->starts, table->bucket_count * sizeof(uint32_t));
    table->address_buckets[table->bucket_count] = table->record_count;
    memset(table->low + table->record_count, 0, LOW_PADDING * sizeof *table->low);
}
