/*
 * file/name_index.h - finds numbers by name, for names in a string table.
 *
 * Names may overlap in the string table, so that their total length can be much larger than the
 * table. Even so, building an index takes only one pass over the table and O(n log n) steps for n
 * names. The hashes have a random key, so that finding a name takes expected O(log n) steps
 * whatever the names are.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_NAME_INDEX_H
#define FILE_NAME_INDEX_H

#include "base/hash.h"
#include "file/elf_file.h"

struct name_entry {
    uint64_t hash;   /* hash of the name */
    uint64_t offset; /* offset of the name in the table; a name beyond its end is empty */
    uint32_t number; /* number that belongs to the name */
};

struct name_index {
    struct file_bytes strings;
    struct name_entry *entries; /* sorted by hash, then by number */
    size_t count;
    size_t capacity;
    uint64_t factor; /* key of the hashes */
    uint64_t start;
};

/* Creates an empty index with space for `capacity` names of `strings`. `key` should be random.
 * Returns false if there is no memory. */
bool name_index_create(struct name_index *index, struct file_bytes strings, size_t capacity,
                       const struct hash_key *key, const struct cairn_allocator *allocator);

/* Adds a name. May be called at most `capacity` times, and only before name_index_sort. */
void name_index_add(struct name_index *index, uint64_t offset, uint32_t number);

/* Computes the hashes and sorts the entries. Must be called exactly once, before searching. */
void name_index_sort(struct name_index *index);

/* Returns the entry of `name` with the lowest number; NULL if the index has no such name. */
const struct name_entry *name_index_find(const struct name_index *index, const char *name);

/* Returns the first entry with the name of an entry of another index, which must have the same key;
 * NULL if the index has no such name. Two names are considered equal if their hashes and their
 * first NAME_COMPARED_MAX bytes are equal. */
enum { NAME_COMPARED_MAX = 4096 };
const struct name_entry *name_index_find_entry(const struct name_index *index,
                                               const struct name_index *other,
                                               const struct name_entry *entry);

void name_index_release(struct name_index *index, const struct cairn_allocator *allocator);

#endif
