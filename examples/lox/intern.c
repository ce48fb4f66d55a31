/*
 * Strings, which are all in one set, so that two with the same bytes are the same object. The set
 * does not keep them alive. They are old: programs compare and keep strings more often than they
 * make them, and caches and compiled code may contain their addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 256, STRING_SIZE_MAX = 1 << 30 };

/* The place of a removed string: lookups go on past it. */
static struct string removed;

static uint32_t hash_of(const char *bytes, size_t size)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = size * factor;
    uint64_t word = 0;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, bytes, size);
    hash = (hash ^ word) * factor;
    return (uint32_t)(hash >> 32);
}

/* Returns the place of the string with these bytes, or the free place where it belongs. */
static struct string **find_place(const struct string_set *set, const struct string *string)
{
    for (size_t at = string->hash;; at++) {
        struct string **place = &set->places[at & (set->capacity - 1)];
        const struct string *found = *place;
        if (found == NULL || (found->hash == string->hash && found != &removed &&
                              found->object.count == string->object.count &&
                              memcmp(found->bytes, string->bytes, found->object.count) == 0))
            return place;
    }
}

/* Makes sure that the set has a place for one more string and is at most half full. */
static bool set_reserve(struct string_set *set)
{
    struct string_set grown = {.capacity = CAPACITY_MIN};
    if (2 * (set->used + 1) <= set->capacity)
        return true;
    for (size_t i = 0; i < set->capacity; i++)
        grown.used += set->places[i] != NULL && set->places[i] != &removed;
    while (grown.capacity < 3 * (grown.used + 1))
        grown.capacity *= 2;
    grown.places = calloc(grown.capacity, sizeof *grown.places);
    if (grown.places == NULL)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->places[i] != NULL && set->places[i] != &removed)
            *find_place(&grown, set->places[i]) = set->places[i];
    free(set->places);
    *set = grown;
    return true;
}

static struct string *string_new(struct heap *heap, size_t size)
{
    struct string *string = NULL;
    if (size <= STRING_SIZE_MAX)
        string = heap_new_old(heap, KIND_STRING, sizeof *string + size + 1);
    if (string != NULL)
        string->object.count = (uint32_t)size;
    return string;
}

/* Returns the string in the set that has the bytes of a new one, which it may be. */
static struct string *intern(struct heap *heap, struct string *string)
{
    if (string == NULL || !set_reserve(&heap->strings))
        return NULL;
    string->hash = hash_of(string->bytes, string->object.count);
    struct string **place = find_place(&heap->strings, string);
    if (*place != NULL) {
        heap_give_back(heap, &string->object);
        return *place;
    }
    heap->strings.used++;
    *place = string;
    return string;
}

struct string *string_intern(struct heap *heap, const char *bytes, size_t size)
{
    struct string *string = string_new(heap, size);
    if (string != NULL)
        memcpy(string->bytes, bytes, size);
    return intern(heap, string);
}

struct string *string_join(struct heap *heap, const struct string *left, const struct string *right)
{
    size_t left_size = left->object.count;
    struct string *joined = string_new(heap, left_size + right->object.count);
    if (joined != NULL) {
        memcpy(joined->bytes, left->bytes, left_size);
        memcpy(joined->bytes + left_size, right->bytes, right->object.count);
    }
    return intern(heap, joined);
}

void strings_before_sweep(struct heap *heap)
{
    struct string_set *set = &heap->strings;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->places[i] != NULL && !(set->places[i]->object.flags & FLAG_MARKED))
            set->places[i] = &removed;
}
