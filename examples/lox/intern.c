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
static struct string **find_place(const struct string_set *set, uint32_t hash, const char *bytes,
                                  size_t size)
{
    for (size_t at = hash;; at++) {
        struct string **place = &set->places[at & (set->capacity - 1)];
        const struct string *found = *place;
        if (found == NULL ||
            (found->hash == hash && found != &removed && found->object.count == size &&
             memcmp(found->bytes, bytes, size) == 0))
            return place;
    }
}

/* Makes sure that the set has a place for one more string and is at most half full. */
static void set_reserve(struct string_set *set)
{
    struct string_set grown = {.capacity = CAPACITY_MIN};
    if (2 * (set->used + 1) <= set->capacity)
        return;
    for (size_t i = 0; i < set->capacity; i++)
        grown.used += set->places[i] != NULL && set->places[i] != &removed;
    while (grown.capacity < 3 * (grown.used + 1))
        grown.capacity *= 2;
    grown.places = heap_zeroed(grown.capacity * sizeof *grown.places);
    for (size_t i = 0; i < set->capacity; i++) {
        struct string *kept = set->places[i];
        if (kept != NULL && kept != &removed)
            *find_place(&grown, kept->hash, kept->bytes, kept->object.count) = kept;
    }
    free(set->places);
    *set = grown;
}

/* A free place stays free while a new string is allocated: a collection only removes strings. */
struct string *string_intern(struct heap *heap, const char *bytes, size_t size)
{
    uint32_t hash = hash_of(bytes, size);
    if (size > STRING_SIZE_MAX)
        return NULL;
    set_reserve(&heap->strings);
    struct string **place = find_place(&heap->strings, hash, bytes, size);
    if (*place != NULL)
        return *place;
    struct string *string = heap_new_old(heap, KIND_STRING, sizeof *string + size + 1);
    if (string == NULL)
        return NULL;
    memcpy(string->bytes, bytes, size);
    string->object.count = (uint32_t)size;
    string->hash = hash;
    heap->strings.used++;
    *place = string;
    return string;
}

struct string *string_join(struct heap *heap, const struct string *left, const struct string *right)
{
    size_t left_size = left->object.count;
    size_t size = left_size + right->object.count;
    char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, left->bytes, left_size);
    memcpy(bytes + left_size, right->bytes, right->object.count);
    struct string *joined = string_intern(heap, bytes, size);
    free(bytes);
    return joined;
}

void strings_before_sweep(struct heap *heap)
{
    struct string_set *set = &heap->strings;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->places[i] != NULL && !(set->places[i]->object.flags & FLAG_MARKED))
            set->places[i] = &removed;
}
