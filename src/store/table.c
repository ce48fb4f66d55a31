/* SPDX-License-Identifier: MIT */
#include "store/table.h"

#include <string.h>

static size_t table_bytes(size_t place_count)
{
    return sizeof(struct store_table) + place_count * sizeof(uint64_t);
}

struct store_table *store_table_create(const struct cairn_allocator *allocator, size_t place_count)
{
    struct store_table *table = memory_new(allocator, 1, table_bytes(place_count));
    if (table != NULL)
        table->place_count = place_count;
    return table;
}

void store_table_destroy(const struct cairn_allocator *allocator, struct store_table *table)
{
    while (table != NULL) {
        struct store_table *previous = table->previous;
        memory_free(allocator, table, table_bytes(table->place_count));
        table = previous;
    }
}

static size_t first_place(const struct store_table *table, uint32_t hash)
{
    return hash & (table->place_count - 1);
}

static size_t next_place(const struct store_table *table, size_t place)
{
    return (place + 1) & (table->place_count - 1);
}

static void copy_place(struct store_table *table, uint64_t place)
{
    size_t i = first_place(table, (uint32_t)(place >> 32));
    while (atomic_load_explicit(&table->places[i], memory_order_relaxed) != 0)
        i = next_place(table, i);
    atomic_store_explicit(&table->places[i], place, memory_order_relaxed);
}

struct store_table *store_table_reserve(const struct cairn_allocator *allocator,
                                        struct store_table *table)
{
    size_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    if (count < table->place_count / 2)
        return table;
    struct store_table *larger = store_table_create(allocator, 2 * table->place_count);
    if (larger == NULL)
        return NULL;
    for (size_t i = 0; i < table->place_count; i++) {
        uint64_t place = atomic_load_explicit(&table->places[i], memory_order_relaxed);
        if (place != 0)
            copy_place(larger, place);
    }
    atomic_store_explicit(&larger->count, count, memory_order_relaxed);
    larger->previous = table;
    return larger;
}

static bool has_key(struct store_bytes file, size_t offset, struct store_bytes key)
{
    struct store_record record;
    return store_decode_record(file.bytes, file.size, offset, &record) == STORE_RECORD &&
           record.key.size == key.size && memcmp(record.key.bytes, key.bytes, key.size) == 0;
}

static uint32_t hash_of(const struct hash_key *hash_key, struct store_bytes key)
{
    return (uint32_t)(hash_text(hash_key, key.bytes, key.size) >> 32);
}

static _Atomic uint64_t *find(struct store_table *table, uint32_t hash, struct store_bytes file,
                              struct store_bytes key)
{
    for (size_t i = first_place(table, hash);; i = next_place(table, i)) {
        uint64_t place = atomic_load_explicit(&table->places[i], memory_order_acquire);
        if (place == 0 || (place >> 32 == hash && has_key(file, store_place_offset(place), key)))
            return &table->places[i];
    }
}

_Atomic uint64_t *store_table_find(struct store_table *table, const struct hash_key *hash_key,
                                   struct store_bytes file, struct store_bytes key)
{
    return find(table, hash_of(hash_key, key), file, key);
}

void store_table_put(struct store_table *table, const struct hash_key *hash_key,
                     struct store_bytes file, struct store_bytes key, size_t offset)
{
    uint32_t hash = hash_of(hash_key, key);
    _Atomic uint64_t *place = find(table, hash, file, key);
    if (atomic_load_explicit(place, memory_order_relaxed) == 0)
        atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    uint64_t word = (uint64_t)hash << 32 | offset / STORE_ALIGNMENT << 2 | STORE_UNKNOWN;
    atomic_store_explicit(place, word, memory_order_release);
}

void store_place_set_state(_Atomic uint64_t *place, uint64_t expected, enum store_state state)
{
    atomic_compare_exchange_strong_explicit(place, &expected, (expected & ~UINT64_C(3)) | state,
                                            memory_order_release, memory_order_relaxed);
}
