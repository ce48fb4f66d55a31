/*
 * object/name_index.h - numbers by name, for names that stand in a string table.
 *
 * Names may overlap in the table, so that all of them together can be far longer than it is. Making
 * an index nevertheless takes one pass over the table, and O(n log n) steps for n names.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_NAME_INDEX_H
#define OBJECT_NAME_INDEX_H

#include "object/file.h"

#include <cairn/allocator.h>
#include <stddef.h>
#include <stdint.h>

struct name_entry {
    uint64_t hash;   /* of the name */
    uint64_t offset; /* of the name in the table; beyond its end, the name is empty */
    uint32_t number; /* what is looked for */
};

struct name_index {
    struct file_bytes strings;
    struct name_entry *entries; /* by hash, those of one hash by number */
    size_t count;
    size_t capacity;
};

/* An empty index with space for `capacity` names of `strings`; false without memory. */
bool name_index_create(struct name_index *index, struct file_bytes strings, size_t capacity,
                       const struct cairn_allocator *allocator);

/* Adds one; at most `capacity` times, before name_index_sort. */
void name_index_add(struct name_index *index, uint64_t offset, uint32_t number);

/* Makes the hashes and sorts the entries: to be done once. */
void name_index_sort(struct name_index *index);

/* The name's entry with the lowest number; NULL if there is none. */
const struct name_entry *name_index_find(const struct name_index *index, const char *name);

/* The same for the name of an entry of another index. Names that agree in NAME_COMPARED_MAX bytes
 * and in their hashes are taken to be equal. */
enum { NAME_COMPARED_MAX = 4096 };
const struct name_entry *name_index_find_entry(const struct name_index *index,
                                               const struct name_index *other,
                                               const struct name_entry *entry);

void name_index_release(struct name_index *index, const struct cairn_allocator *allocator);

#endif
