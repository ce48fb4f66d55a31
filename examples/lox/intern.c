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
        if (found == NULL || (found->hash == hash && found->object.count == size &&
                              memcmp(found->bytes, bytes, size) == 0))
            return place;
    }
}

/* Moves all strings, or those that are marked, to new places. */
static void set_rebuild(struct string_set *set, size_t capacity, bool is_sweep)
{
    struct string_set old = *set;
    *set = (struct string_set){heap_zeroed(capacity * sizeof *set->places), capacity, 0};
    for (size_t i = 0; i < old.capacity; i++) {
        struct string *string = old.places[i];
        if (string == NULL || (is_sweep && !(string->object.flags & FLAG_MARKED)))
            continue;
        *find_place(set, string->hash, string->bytes, string->object.count) = string;
        set->used++;
    }
    free(old.places);
}

struct string *string_intern(struct heap *heap, const char *bytes, size_t size)
{
    struct string_set *set = &heap->strings;
    uint32_t hash = hash_of(bytes, size);
    if (size > STRING_SIZE_MAX)
        return NULL;
    if (2 * (set->used + 1) > set->capacity)
        set_rebuild(set, set->capacity == 0 ? CAPACITY_MIN : 2 * set->capacity, false);
    struct string *string = *find_place(set, hash, bytes, size);
    if (string != NULL)
        return string;
    string = heap_new_old(heap, KIND_STRING, sizeof *string + size + 1);
    if (string == NULL)
        return NULL;
    memcpy(string->bytes, bytes, size);
    string->object.count = (uint32_t)size;
    string->hash = hash;
    *find_place(set, hash, bytes, size) = string; /* a collection can have rebuilt the set */
    set->used++;
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
    set_rebuild(&heap->strings, heap->strings.capacity, true);
}
