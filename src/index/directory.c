/*
 * The directories: from an address, or an ID, to the few records that may have it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/four.h"
#include "index/builder.h"
#include "index/sort.h"

#include <string.h>

/* ---- Addresses ---- */

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

/* Each bucket becomes one with its neighbours. */
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
        /* If it goes on like this, so far will the last one be. */
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

/* ---- IDs ---- */

static uint8_t bits_of(uint64_t value)
{
    return value == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(value));
}

/* The lowest and the highest, for IDs in any order. */
static void find_id_range(cairn_table *table)
{
    table->id_min = UINT64_MAX;
    table->id_max = 0;
    for (uint32_t i = 0; i < table->record_count; i++) {
        uint64_t id = table_id(table, i);
        table->id_min = id < table->id_min ? id : table->id_min;
        table->id_max = id > table->id_max ? id : table->id_max;
    }
}

/* IDs that ascend are spread by their distance from the lowest, others by a hash. */
static void choose_id_buckets(cairn_table *table)
{
    uint32_t wanted = table->record_count / RECORDS_PER_BUCKET;
    uint8_t wanted_bits = wanted < 2 ? 1 : (uint8_t)(bits_of(wanted) - 1);
    if (!table->ids_ascend) {
        table->id_shift = (uint8_t)(64 - wanted_bits);
        table->id_bucket_count = UINT32_C(1) << wanted_bits;
        return;
    }
    uint64_t range = table->record_count == 0 ? 0 : table->id_max - table->id_min;
    uint8_t range_bits = bits_of(range);
    table->id_shift = range_bits > wanted_bits ? (uint8_t)(range_bits - wanted_bits) : 0;
    table->id_bucket_count = (uint32_t)(range >> table->id_shift) + 1;
}

static bool ids_ascend(const cairn_table *table)
{
    const uint32_t *low = table->ids_low;
    uint32_t descents = 0;
    if (table->ids_high == NULL) {
        for (uint32_t i = 1; i < table->record_count; i++) {
            descents += low[i] < low[i - 1];
            if (i % 4096 == 0 && descents != 0)
                return false;
        }
        return descents == 0;
    }
    for (uint32_t i = 1; i < table->record_count; i++)
        if (table_id(table, i) < table_id(table, i - 1))
            return false;
    return true;
}

/* The IDs ascend: the records of a bucket follow each other. */
static inline __attribute__((always_inline)) void fill_ascending_buckets(const cairn_table *table,
                                                                         const uint32_t *ids_high)
{
    uint32_t *starts = table->id_buckets;
    uint32_t next = 0;
    uint32_t count = table->record_count;
    uint8_t shift = table->id_shift;
    uint64_t id_min = table->id_min;
    uint64_t high = (uint64_t)table->id_high << 32;
    const uint32_t *ids_low = table->ids_low;
    for (uint32_t i = 0; i < count; i++) {
        if (ids_high != NULL)
            high = (uint64_t)ids_high[i] << 32;
        uint32_t bucket = (uint32_t)(((high | ids_low[i]) - id_min) >> shift);
        /* What is written behind the bucket is written again. */
        starts[next] = i;
        while (__builtin_expect(next < bucket, 0))
            starts[++next] = i;
        next = bucket + 1;
    }
    while (next <= table->id_bucket_count)
        starts[next++] = count;
}

static void count_id_buckets(cairn_table *table)
{
    uint32_t *starts = table->id_buckets;
    memset(starts, 0, ((size_t)table->id_bucket_count + 1) * sizeof *starts);
    for (uint32_t i = 0; i < table->record_count; i++)
        starts[table_id_bucket(table, table_id(table, i)) + 1]++;
    for (uint32_t b = 0; b < table->id_bucket_count; b++)
        starts[b + 1] += starts[b];
}

/* Counting sort; starts[b] is left at the end of bucket b and then moved back by one. */
static void order_by_id(cairn_table *table)
{
    uint32_t *starts = table->id_buckets;
    for (uint32_t i = 0; i < table->record_count; i++)
        table->id_order[starts[table_id_bucket(table, table_id(table, i))]++] = i;
    for (uint32_t b = table->id_bucket_count; b > 0; b--)
        starts[b] = starts[b - 1];
    starts[0] = 0;
    for (uint32_t b = 0; b < table->id_bucket_count; b++) {
        uint32_t size = starts[b + 1] - starts[b];
        if (size > ID_BUCKET_SCAN)
            sort_by_id(table->id_order + starts[b], size, table);
    }
}

static bool make_ascending_directory(struct builder *builder)
{
    cairn_table *table = builder->table;
    uint32_t count = table->record_count;
    table->id_min = count == 0 ? 0 : table_id(table, 0);
    table->id_max = count == 0 ? 0 : table_id(table, count - 1);
    table->ids_ascend = ids_ascend(table);
    if (!table->ids_ascend)
        return false;
    choose_id_buckets(table);
    table->id_buckets = builder_take_words(builder, (size_t)table->id_bucket_count + 1);
    if (table->ids_high == NULL)
        fill_ascending_buckets(table, NULL);
    else
        fill_ascending_buckets(table, table->ids_high);
    return true;
}

static void make_hashed_directory(struct builder *builder)
{
    cairn_table *table = builder->table;
    find_id_range(table);
    choose_id_buckets(table);
    table->id_buckets = builder_take_words(builder, (size_t)table->id_bucket_count + 1);
    count_id_buckets(table);
    table->id_order = builder_take_words(builder, table->record_count);
    order_by_id(table);
}

void builder_finish_ids(struct builder *builder)
{
    cairn_table *table = builder->table;
    if (builder->ids_differ_above) {
        table->ids_high = builder_take_words(builder, table->record_count);
        memcpy(table->ids_high, builder->ids_high, table->record_count * sizeof(uint32_t));
    }
    if (!make_ascending_directory(builder))
        make_hashed_directory(builder);
}
