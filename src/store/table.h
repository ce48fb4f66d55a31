/*
 * store/table.h - the index of a store's file: from keys to records, without locks for readers.
 *
 * A place is one word, which is 0 if it is empty: the upper half of the key's hash, the offset of
 * its newest record, and what is known of the record's object. A place is used for one key for
 * ever. Hashes have a key of their own (base/hash.h), so no file can put many keys at one place.
 *
 *  (A) Only the process's thread that has the folder's lock adds records. It stores a place after
 *      the record is in the mapping.
 *  (B) A full table is replaced by a larger copy. The old one stays, because readers may be in it,
 *      until the file is closed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORE_TABLE_H
#define STORE_TABLE_H

#include "base/hash.h"
#include "base/memory.h"
#include "store/record.h"

#include <stdatomic.h>
#include <stdbool.h>

struct store_table {
    struct store_table *previous; /* replaced by this one */
    size_t place_count;           /* a power of two */
    _Atomic size_t count;         /* of keys; at most half of the places */
    _Atomic uint64_t places[];
};

enum store_state {
    STORE_UNKNOWN = 0, /* the checksum was not compared yet */
    STORE_INTACT = 1,
    STORE_BAD = 2,
};

/* Returns the parts of a place that is not empty. */
static inline size_t store_place_offset(uint64_t place)
{
    return (size_t)((uint32_t)place >> 2) * STORE_ALIGNMENT;
}

static inline enum store_state store_place_state(uint64_t place)
{
    return (enum store_state)(place & 3);
}

/* Returns an empty table, or NULL if memory runs out. */
struct store_table *store_table_create(const struct cairn_allocator *allocator, size_t place_count);

/* Frees a table and those that it has replaced. NULL is allowed. */
void store_table_destroy(const struct cairn_allocator *allocator, struct store_table *table);

/* Returns a table with space for one more key: this one, or a larger copy. NULL if memory runs
 * out. */
struct store_table *store_table_reserve(const struct cairn_allocator *allocator,
                                        struct store_table *table);

/* Returns the place of a key, which is empty if the table does not have it. `file` is the mapping
 * that the offsets are in. */
_Atomic uint64_t *store_table_find(struct store_table *table, const struct hash_key *hash_key,
                                   struct store_bytes file, struct store_bytes key);

/* Makes the record at `offset` the newest of its key. The table must have space for it. */
void store_table_put(struct store_table *table, const struct hash_key *hash_key,
                     struct store_bytes file, struct store_bytes key, size_t offset);

/* Sets what is known of a record, unless its key has a newer one meanwhile. */
void store_place_set_state(_Atomic uint64_t *place, uint64_t expected, enum store_state state);

#endif
