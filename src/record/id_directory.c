/*
 * The directory of IDs: finds the few records that may have an ID.
 *
 * IDs that ascend with the addresses are distributed over buckets by their distance from the lowest
 * ID, and the records of a bucket are consecutive. Other IDs are distributed by a hash, and the
 * table keeps the record numbers in the order of their buckets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/builder.h"
#include "record/sort.h"

#include <string.h>

/* ---- All IDs ---- */

/* The data needed to read IDs, in a separate struct: as far as the compiler knows, writes to the
 * table's arrays might change the table itself. */
struct ids {
    const uint32_t *low;
    const uint32_t *high; /* NULL if all are `high_bits` */
    uint64_t high_bits;
    uint32_t count;
};

static inline struct ids ids_of(const cairn_table *table)
{
    return (struct ids){table->ids_low, table->ids_high, (uint64_t)table->id_high << 32,
                        table->record_count};
}

static inline uint64_t id_at(const struct ids *ids, uint32_t index)
{
    uint64_t high = ids->high == NULL ? ids->high_bits : (uint64_t)ids->high[index] << 32;
    return high | ids->low[index];
}

static void find_id_range(cairn_table *table)
{
    const struct ids ids = ids_of(table);
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint32_t i = 0; i < ids.count; i++) {
        uint64_t id = id_at(&ids, i);
        least = id < least ? id : least;
        most = id > most ? id : most;
    }
    table->id_min = least;
    table->id_max = most;
}

static uint8_t bits_of(uint64_t value)
{
    return value == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(value));
}

static uint8_t wanted_bits(const cairn_table *table)
{
    uint32_t wanted = table->record_count / RECORDS_PER_BUCKET;
    return wanted < 2 ? 1 : (uint8_t)(bits_of(wanted) - 1);
}

/* ---- IDs that ascend ---- */

static bool ids_ascend(const cairn_table *table)
{
    const struct ids ids = ids_of(table);
    for (uint32_t i = 1; i < ids.count; i++)
        if (id_at(&ids, i) < id_at(&ids, i - 1))
            return false;
    return true;
}

static void choose_ascending_buckets(cairn_table *table)
{
    uint32_t count = table->record_count;
    table->id_min = count == 0 ? 0 : table_id(table, 0);
    table->id_max = count == 0 ? 0 : table_id(table, count - 1);
    uint64_t range = table->id_max - table->id_min;
    uint8_t range_bits = bits_of(range);
    uint8_t wanted = wanted_bits(table);
    table->id_shift = range_bits > wanted ? (uint8_t)(range_bits - wanted) : 0;
    table->id_bucket_count = (uint32_t)(range >> table->id_shift) + 1;
}

static void fill_ascending_buckets(const cairn_table *table)
{
    const struct ids ids = ids_of(table);
    uint32_t *starts = table->id_buckets;
    uint64_t id_min = table->id_min;
    uint8_t shift = table->id_shift;
    uint32_t bucket_count = table->id_bucket_count;
    uint32_t next = 0;
    for (uint32_t i = 0; i < ids.count; i++) {
        uint32_t bucket = (uint32_t)((id_at(&ids, i) - id_min) >> shift);
        /* Entries after the bucket are overwritten later. */
        starts[next] = i;
        while (__builtin_expect(next < bucket, 0))
            starts[++next] = i;
        next = bucket + 1;
    }
    while (next <= bucket_count)
        starts[next++] = ids.count;
}

static void make_ascending_directory(struct builder *builder)
{
    cairn_table *table = builder->table;
    choose_ascending_buckets(table);
    table->id_buckets = builder_take_words(builder, (size_t)table->id_bucket_count + 1);
    fill_ascending_buckets(table);
}

/* ---- Other IDs ---- */

/* Sorts the records by bucket with a counting sort. While record numbers are put in their places,
 * starts[b + 1] is the place of the next one of bucket b. So at the end it is where bucket b + 1
 * begins. */
static void order_by_bucket(const cairn_table *table)
{
    const struct ids ids = ids_of(table);
    uint32_t *starts = table->id_buckets;
    uint32_t *order = table->id_order;
    uint32_t bucket_count = table->id_bucket_count;
    uint8_t shift = table->id_shift;
    memset(starts, 0, ((size_t)bucket_count + 2) * sizeof *starts);
    for (uint32_t i = 0; i < ids.count; i++)
        starts[(id_at(&ids, i) * ID_MULTIPLIER >> shift) + 2]++;
    for (uint32_t b = 1; b < bucket_count; b++)
        starts[b + 1] += starts[b];
    for (uint32_t i = 0; i < ids.count; i++)
        order[starts[(id_at(&ids, i) * ID_MULTIPLIER >> shift) + 1]++] = i;
}

static void sort_large_buckets(const cairn_table *table)
{
    const uint32_t *starts = table->id_buckets;
    for (uint32_t b = 0; b < table->id_bucket_count; b++) {
        uint32_t size = starts[b + 1] - starts[b];
        if (size > ID_BUCKET_SCAN)
            sort_by_id(table->id_order + starts[b], size, table);
    }
}

static void make_hashed_directory(struct builder *builder)
{
    cairn_table *table = builder->table;
    find_id_range(table);
    uint8_t bits = wanted_bits(table);
    table->id_shift = (uint8_t)(64 - bits);
    table->id_bucket_count = UINT32_C(1) << bits;
    table->id_order = builder_take_words(builder, table->record_count);
    /* One entry more than the table keeps, for order_by_bucket. */
    table->id_buckets = builder_take_words(builder, (size_t)table->id_bucket_count + 1);
    order_by_bucket(table);
    sort_large_buckets(table);
}

void builder_finish_ids(struct builder *builder)
{
    cairn_table *table = builder->table;
    if (builder->id_high == IDS_DIFFER_ABOVE) {
        table->ids_high = builder_take_words(builder, table->record_count);
        memcpy(table->ids_high, builder->ids_high, table->record_count * sizeof(uint32_t));
    }
    table->ids_ascend = ids_ascend(table);
    if (table->ids_ascend)
        make_ascending_directory(builder);
    else
        make_hashed_directory(builder);
}
