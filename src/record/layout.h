/*
 * record/layout.h - the memory layout of a table.
 *
 * A table is one allocation: the header, followed by the arrays below. With n records:
 *
 *     bytes a record   content
 *     4                lower halves of the IDs, by address
 *     4                start of the record's values, and their form
 *     2                low 16 bits of the address's distance from the base
 *     1                distance from the address to the return address of the record's call
 *     1                directory of the address buckets (one for four to eight records)
 *     1                directory of the ID buckets (the same)
 *     4                order by ID: absent if IDs ascend with addresses
 *     4                upper halves of the IDs: absent if all are the same
 *     10 a function    functions, by address; 8 more if a stack size does not fit 16 bits
 *     4                owner of each record: only if functions overlap; 16 a function for owners
 *
 * Invariants:
 *  - Records are sorted by address, stably. Functions are sorted by address, without duplicates.
 *  - A bucket has 2^bucket_shift bytes of code, at most 2^16. So `low[i]` ascends within a bucket.
 *    `low` has LOW_PADDING readable entries after the last one.
 *  - `address_buckets[b]` is the number of the first record in bucket b or a later one. The array
 *    has one entry more than there are buckets. `id_buckets` is the same for places in the ID
 *    order.
 *  - Records with one ID are sorted by address in the ID order. ID buckets of more than
 *    ID_BUCKET_SCAN records are sorted by ID. So a lookup takes linear time only in the number of
 *    records that it finds, for any input.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_LAYOUT_H
#define RECORD_LAYOUT_H

#include "base/memory.h"

#include <cairn/table.h>

enum {
    LOW_PADDING = 16,
    BUCKET_SHIFT_MAX = 16,
    RECORDS_PER_BUCKET = 4,
    ID_BUCKET_SCAN = 64,
    RETURN_UNKNOWN = 255
};

/* ---- Values: locations and live-outs, in words of 4 bytes ---- */

/*
 * `value_start` of a record: the index of its first word, with the form of its locations in the
 * upper bits. Its words end where the next record's begin. If the record has live-outs, the first
 * word is their count, the live-outs follow, and then the locations.
 */
enum value_form {
    VALUES_COMPACT = 0, /* one word each; see compact_pack in values.h */
    VALUES_WIDE = 1,    /* two words: 3 bits kind, 13 bits size, 16 bits register; offset */
    VALUES_FULL = 2     /* three words, for sizes that do not fit the other forms */
};

#define VALUE_FORM_SHIFT 30
#define VALUE_HAS_LIVEOUTS (UINT32_C(1) << 29)
#define VALUE_WORD_MASK (VALUE_HAS_LIVEOUTS - 1)

struct table_function {
    uint32_t code_offset; /* from the table's base */
    uint32_t first_record;
};

/* The function of some records: its address, and the stack size that was recorded with it. Several
 * owners may have one address. */
struct table_owner {
    uint64_t stack_size;
    uint32_t function;
};

/* Values of 16-bit stack sizes with a special meaning. */
enum { STACK_SIZE_WIDE = UINT16_MAX - 1, STACK_SIZE_DYNAMIC = UINT16_MAX };

/* Returns the stack size of a function. `wide` is used only if the 16 bits are STACK_SIZE_WIDE. */
static inline uint64_t table_stack_size(const uint16_t *sizes, const uint64_t *wide, uint32_t index)
{
    if (sizes[index] == STACK_SIZE_WIDE)
        return wide[index];
    return sizes[index] == STACK_SIZE_DYNAMIC ? CAIRN_STACK_SIZE_DYNAMIC : sizes[index];
}

struct cairn_table {
    struct cairn_allocator allocator;
    size_t size_bytes;
    size_t value_bytes;

    uint64_t id_min; /* lower and upper limit of all IDs */
    uint64_t id_max;
    uint32_t id_bucket_count;
    uint32_t id_high; /* upper half of all IDs if `ids_high` is NULL */

    uint32_t *ids_low;
    uint32_t *ids_high; /* NULL if all are `id_high` */
    uint64_t *constants;
    uint16_t *stack_sizes;
    uint64_t *wide_stack_sizes; /* for functions with STACK_SIZE_WIDE; or NULL */
    /* The number of each record's owner. NULL if the function of every record is the last one that
     * begins at or before it, which holds if functions do not overlap. */
    uint32_t *record_owners;
    struct table_owner *owners;
    uint32_t *value_starts; /* one more than there are records */
    uint32_t *id_buckets;
    uint32_t *id_order; /* NULL if `ids_ascend` */
    struct table_function *functions;
    uint32_t *values;

    /* What lookups by address read. It is at the end, because `low` is the first array: of a small
     * table, all of it is in one or two cache lines, so that a lookup in one of very many tables
     * takes few cache misses. */
    void *owner;
    uint64_t base; /* address of the first function */
    uint32_t span; /* offset of the last record's address from the base */
    uint32_t record_count;
    uint32_t function_count;
    uint32_t bucket_count;
    uint8_t bucket_shift;
    uint8_t id_shift;
    uint8_t return_delta_max;
    bool ids_ascend;
    uint8_t *return_deltas;
    uint32_t *address_buckets;
    uint16_t *low;
    uint32_t only_bucket[2]; /* `address_buckets` of a table with one bucket */
};

/* ---- Addresses ---- */

/* Returns the offset of a record in the bucket, from the table's base. */
static inline uint32_t table_record_offset(const cairn_table *table, uint32_t bucket,
                                           uint32_t index)
{
    return ((bucket << table->bucket_shift) & ~UINT32_C(0xFFFF)) | table->low[index];
}

/* Returns the number of the first record from `begin` up to `end`, which are in one bucket, whose
 * `low` is not less than `wanted`; otherwise `end`. */
static inline uint32_t table_lower_bound(const cairn_table *table, uint32_t begin, uint32_t end,
                                         uint16_t wanted)
{
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->low[middle] < wanted)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* ---- IDs ---- */

static inline uint64_t table_id(const cairn_table *table, uint32_t index)
{
    uint32_t high = table->ids_high == NULL ? table->id_high : table->ids_high[index];
    return (uint64_t)high << 32 | table->ids_low[index];
}

/* Multiplier for Fibonacci hashing, which distributes both adjacent and random IDs. */
#define ID_MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)

#endif
