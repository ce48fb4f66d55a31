/*
 * Finds names by hash.
 *
 * The hash of a name is computed from its last byte to its first, so that one pass over a string
 * yields the hashes of all its suffixes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/name_index.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define HASH_EMPTY UINT64_C(0x9e3779b97f4a7c15)
#define HASH_FACTOR UINT64_C(0xd1342543de82ef95)

/* Returns the hash of a string from its first byte and the hash of the remaining bytes. */
static uint64_t extend(uint64_t hash, uint8_t byte)
{
    return byte == 0 ? HASH_EMPTY : hash * HASH_FACTOR + byte;
}

static uint64_t hash_name(const char *name)
{
    uint64_t hash = HASH_EMPTY;
    for (size_t i = strlen(name); i-- > 0;)
        hash = extend(hash, (uint8_t)name[i]);
    return hash;
}

bool name_index_create(struct name_index *index, struct file_bytes strings, size_t capacity,
                       const struct cairn_allocator *allocator)
{
    *index = (struct name_index){.strings = strings, .capacity = capacity};
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

/* ---- Sorting ---- */

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
    if (index->count == 0)
        return;
    qsort(index->entries, index->count, sizeof *index->entries, compare_offsets);
    uint64_t hash = HASH_EMPTY;
    uint64_t place = index->strings.size;
    for (size_t i = index->count; i-- > 0;) {
        while (place > index->entries[i].offset)
            hash = extend(hash, index->strings.bytes[--place]);
        index->entries[i].hash = hash;
    }
    qsort(index->entries, index->count, sizeof *index->entries, compare_hashes);
}

/* ---- Looking up ---- */

static const char *name_of(const struct name_index *index, const struct name_entry *entry)
{
    const char *name = file_string(&index->strings, entry->offset);
    return name == NULL ? "" : name;
}

static const struct name_entry *find(const struct name_index *index, uint64_t hash,
                                     const char *name, size_t compared)
{
    size_t low = 0;
    size_t high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->entries[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < index->count && index->entries[low].hash == hash; low++)
        if (strncmp(name_of(index, &index->entries[low]), name, compared) == 0)
            return &index->entries[low];
    return NULL;
}

const struct name_entry *name_index_find(const struct name_index *index, const char *name)
{
    return find(index, hash_name(name), name, SIZE_MAX);
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
