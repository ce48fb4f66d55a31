/*
 * The directories of addresses and IDs, which find the few records that may have an address or an
 * ID.
 *
 * Addresses are distributed over buckets of 2^shift bytes of code.
 *
 * IDs that ascend with the addresses are distributed over buckets by their distance from the lowest
 * ID, and the records of a bucket are consecutive. Other IDs are distributed by a hash, and the
 * table keeps the record numbers in the order of their buckets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/builder.h"

#include <string.h>

/* ---- Addresses ---- */

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
    table->address_buckets = table->bucket_count == 1
                                 ? table->only_bucket
                                 : builder_take_words(builder, (size_t)table->bucket_count + 1);
    memcpy(table->address_buckets, directory->starts, table->bucket_count * sizeof(uint32_t));
    table->address_buckets[table->bucket_count] = table->record_count;
    memset(table->low + table->record_count, 0, LOW_PADDING * sizeof *table->low);
}

/* ---- IDs ---- */

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

static uint8_t bits_of(uint64_t value)
{
    return value == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(value));
}

static void make_ascending_directory(struct builder *builder, uint8_t wanted_bits)
{
    cairn_table *table = builder->table;
    const struct ids ids = ids_of(table);
    uint64_t id_min = table->id_min;
    uint64_t range = table->id_max - id_min;
    uint8_t shift = bits_of(range) > wanted_bits ? (uint8_t)(bits_of(range) - wanted_bits) : 0;
    uint32_t bucket_count = (uint32_t)(range >> shift) + 1;
    uint32_t *starts = builder_take_words(builder, (size_t)bucket_count + 1);
    uint32_t next = 0;
    table->id_shift = shift;
    table->id_bucket_count = bucket_count;
    table->id_buckets = starts;
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

/* Sorts the record numbers of a large bucket by ID, and those of one ID by number. They are sorted
 * by number, and usually have one ID. */
static void sort_bucket(const struct ids *ids, uint32_t *numbers, uint32_t count,
                        struct sort_key *keys)
{
    bool is_sorted = true;
    for (uint32_t i = 1; i < count && is_sorted; i++)
        is_sorted = id_at(ids, numbers[i - 1]) <= id_at(ids, numbers[i]);
    for (int shift = 0; shift < 64 && !is_sorted; shift += 32) {
        for (uint32_t i = 0; i < count; i++)
            keys[i] = (struct sort_key){(uint32_t)(id_at(ids, numbers[i]) >> shift), numbers[i]};
        sort_keys(keys, keys + count, count);
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = keys[i].number;
    }
}

/* Sorts the records by bucket with a counting sort. While record numbers are put in their places,
 * starts[b + 1] is the place of the next one of bucket b. So at the end it is where bucket b + 1
 * begins. */
static void make_hashed_directory(struct builder *builder, uint8_t bits)
{
    cairn_table *table = builder->table;
    const struct ids ids = ids_of(table);
    uint32_t bucket_count = UINT32_C(1) << bits;
    uint8_t shift = (uint8_t)(64 - bits);
    uint32_t *order = builder_take_words(builder, ids.count);
    uint32_t *starts = builder_take_words(builder, (size_t)bucket_count + 1);
    table->id_shift = shift;
    table->id_bucket_count = bucket_count;
    table->id_order = order;
    table->id_buckets = starts;
    /* One entry more than the table keeps. */
    memset(starts, 0, ((size_t)bucket_count + 2) * sizeof *starts);
    for (uint32_t i = 0; i < ids.count; i++)
        starts[(id_at(&ids, i) * ID_MULTIPLIER >> shift) + 2]++;
    for (uint32_t b = 1; b < bucket_count; b++)
        starts[b + 1] += starts[b];
    for (uint32_t i = 0; i < ids.count; i++)
        order[starts[(id_at(&ids, i) * ID_MULTIPLIER >> shift) + 1]++] = i;
    for (uint32_t b = 0; b < bucket_count; b++)
        if (starts[b + 1] - starts[b] > ID_BUCKET_SCAN)
            sort_bucket(&ids, order + starts[b], starts[b + 1] - starts[b], builder->sort_space);
}

void builder_finish_ids(struct builder *builder)
{
    cairn_table *table = builder->table;
    uint32_t wanted = table->record_count / RECORDS_PER_BUCKET;
    uint8_t bits = wanted < 2 ? 1 : (uint8_t)(bits_of(wanted) - 1);
    if (builder->id_high == IDS_DIFFER_ABOVE) {
        table->ids_high = builder_take_words(builder, table->record_count);
        memcpy(table->ids_high, builder->ids_high, table->record_count * sizeof(uint32_t));
    }
    const struct ids ids = ids_of(table);
    uint64_t least = ids.count == 0 ? 0 : UINT64_MAX;
    uint64_t most = 0;
    bool ascend = true;
    for (uint32_t i = 0; i < ids.count; i++) {
        uint64_t id = id_at(&ids, i);
        ascend = ascend && id >= most;
        least = id < least ? id : least;
        most = id > most ? id : most;
    }
    table->ids_ascend = ascend;
    table->id_min = least;
    table->id_max = most;
    if (ascend)
        make_ascending_directory(builder, bits);
    else
        make_hashed_directory(builder, bits);
}
