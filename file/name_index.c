/*
 * Finds names by hash.
 *
 * The hash of a name is a polynomial of its bytes modulo the prime 2^61 - 1, with a random factor
 * and a random start. Two different names of at most n bytes have the same hash with a probability
 * of at most n / 2^60, so that no file can be constructed whose names have the same hash. A hash is
 * computed from the last byte to the first, so that one pass over a string yields the hashes of all
 * its suffixes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/name_index.h"

#include "base/memory.h"
#include "file/sorted.h"

#include <string.h>

#define PRIME ((UINT64_C(1) << 61) - 1)

/* Returns a number less than 2^61 that is congruent to `number`, which is less than 2^122. */
static uint64_t reduce(hash_wide number)
{
    uint64_t sum = (uint64_t)(number & PRIME) + (uint64_t)(number >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

/* Returns the hash of a string from its first byte and the hash of the remaining bytes. */
static uint64_t extend(const struct name_index *index, uint64_t hash, uint8_t byte)
{
    return byte == 0 ? index->start : reduce((hash_wide)hash * index->factor + byte);
}

bool name_index_create(struct name_index *index, struct file_bytes strings, size_t capacity,
                       const struct hash_key *key, const struct cairn_allocator *allocator)
{
    *index = (struct name_index){
        .strings = strings,
        .capacity = capacity,
        .factor = reduce(key->multiplier_low),
        .start = reduce(key->added_low),
    };
    if (capacity == 0)
        return true;
    index->entries = memory_new(allocator, capacity, sizeof *index->entries);
    if (index->entries == NULL)
        index->capacity = 0;
    return index->entries != NULL;
}

void name_index_add(struct name_index *index, uint64_t offset, uint32_t number)
{
    index->entries[index->count++] = (struct name_entry){.offset = offset, .number = number};
}

static int compare_offsets(const void *left, const void *right)
{
    const struct name_entry *a = left;
    const struct name_entry *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int compare_hashes(const void *left, const void *right)
{
    const struct name_entry *a = left;
    const struct name_entry *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

void name_index_sort(struct name_index *index)
{
    sorted_make(index->entries, index->count, sizeof *index->entries, compare_offsets);
    uint64_t hash = index->start;
    uint64_t place = index->strings.size;
    for (size_t i = index->count; i-- > 0;) {
        while (place > index->entries[i].offset)
            hash = extend(index, hash, index->strings.bytes[--place]);
        index->entries[i].hash = hash;
    }
    sorted_make(index->entries, index->count, sizeof *index->entries, compare_hashes);
}

static const char *name_of(const struct name_index *index, const struct name_entry *entry)
{
    const char *name = file_string(&index->strings, entry->offset);
    return name == NULL ? "" : name;
}

static const struct name_entry *find(const struct name_index *index, uint64_t hash,
                                     const char *name, size_t compared)
{
    struct name_entry key = {.hash = hash};
    size_t at = sorted_lower_bound(index->entries, index->count, sizeof key, &key, compare_hashes);
    for (; at < index->count && index->entries[at].hash == hash; at++)
        if (strncmp(name_of(index, &index->entries[at]), name, compared) == 0)
            return &index->entries[at];
    return NULL;
}

const struct name_entry *name_index_find(const struct name_index *index, const char *name)
{
    uint64_t hash = index->start;
    for (size_t i = strlen(name); i-- > 0;)
        hash = extend(index, hash, (uint8_t)name[i]);
    return find(index, hash, name, SIZE_MAX);
}

const struct name_entry *name_index_find_entry(const struct name_index *index,
                                               const struct name_index *other,
                                               const struct name_entry *entry)
{
    return find(index, entry->hash, name_of(other, entry), NAME_COMPARED_MAX);
}

void name_index_release(struct name_index *index, const struct cairn_allocator *allocator)
{
    memory_free(allocator, index->entries, index->capacity * sizeof *index->entries);
    *index = (struct name_index){0};
}
