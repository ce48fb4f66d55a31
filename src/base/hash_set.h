/*
 * base/hash_set.h - a seeded hash set of the elements of an array.
 *
 * The set holds numbers of elements by their hashes; the caller compares the elements:
 *
 *     for (const struct hash_place *place = hash_set_first(&set, hash); place->number != 0;
 *          place = hash_set_next(&set, place))
 *         if (entries[place->number - 1].id == id)
 *             return &entries[place->number - 1];
 *
 * Invariants: an element is at or after the place of its hash, with no empty place in between. At
 * least half of the places are empty.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_HASH_SET_H
#define BASE_HASH_SET_H

#include "base/hash.h"
#include "base/memory.h"

#include <stdbool.h>

struct hash_place {
    uint32_t hash;
    uint32_t number; /* of an element plus 1; 0 if the place is empty */
};

struct hash_set {
    struct hash_key key;
    struct hash_place *places;
    size_t place_count; /* a power of two */
    size_t count;       /* of elements */
};

/* Initialises an empty set with space for `count` elements. Returns false if memory runs out; the
 * set may then be released. */
bool hash_set_init(struct hash_set *set, const struct cairn_allocator *allocator, size_t count);

/* Adds an element, and more places if necessary. Returns false, and leaves the set unchanged, if
 * memory runs out. */
bool hash_set_add(struct hash_set *set, const struct cairn_allocator *allocator, uint32_t hash,
                  uint32_t number);

/* Adds an element to a set that has space for it. */
void hash_set_put(struct hash_set *set, uint32_t hash, uint32_t number);

/* Removes all elements, and keeps the space. */
void hash_set_clear(struct hash_set *set);

/* Frees the places. */
void hash_set_release(const struct hash_set *set, const struct cairn_allocator *allocator);

/* Return the first place for a hash, and the next place to look at. */
static inline struct hash_place *hash_set_first(const struct hash_set *set, uint32_t hash)
{
    return &set->places[hash & (set->place_count - 1)];
}

static inline struct hash_place *hash_set_next(const struct hash_set *set,
                                               const struct hash_place *place)
{
    return &set->places[(size_t)(place + 1 - set->places) & (set->place_count - 1)];
}

#endif
