/*
 * Strings. Young strings have a set of their own, so that a minor collection looks at young strings
 * only: those that were moved enter the set of old strings, and the set of young ones is emptied.
 *
 * SPDX-License-Identifier: MIT
 */
#include "intern.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 256 };

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

static struct string *set_find(const struct string_set *set, const char *bytes, size_t size,
                               uint32_t hash)
{
    if (set->capacity == 0)
        return NULL;
    for (size_t at = hash;; at++) {
        struct string *string = set->places[at & (set->capacity - 1)];
        if (string == NULL)
            return NULL;
        if (string->hash == hash && string->object.count == size &&
            memcmp(string->bytes, bytes, size) == 0 && string != &removed)
            return string;
    }
}

/* The set must have a free place. */
static void set_add(struct string_set *set, struct string *string)
{
    size_t at = string->hash;
    while (set->places[at & (set->capacity - 1)] != NULL)
        at++;
    set->places[at & (set->capacity - 1)] = string;
    set->used++;
}

/* Makes sure that the set has places for `count` more strings and is at most half full. */
static bool set_reserve(struct string_set *set, size_t count)
{
    if (2 * (set->used + count) <= set->capacity)
        return true;
    struct string_set grown = {.capacity = CAPACITY_MIN};
    size_t live = 0;
    for (size_t i = 0; i < set->capacity; i++)
        live += set->places[i] != NULL && set->places[i] != &removed;
    while (grown.capacity < 3 * (live + count))
        grown.capacity *= 2;
    grown.places = calloc(grown.capacity, sizeof *grown.places);
    if (grown.places == NULL)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->places[i] != NULL && set->places[i] != &removed)
            set_add(&grown, set->places[i]);
    free(set->places);
    *set = grown;
    return true;
}

static struct string *find(const struct heap *heap, const char *bytes, size_t size, uint32_t hash)
{
    struct string *string = set_find(&heap->old_strings, bytes, size, hash);
    return string != NULL ? string : set_find(&heap->young_strings, bytes, size, hash);
}

/* ---- Making strings ---- */

struct string *string_intern_old(struct heap *heap, const char *bytes, size_t size)
{
    uint32_t hash = hash_of(bytes, size);
    assert(heap->young_strings.used == 0);
    if (size > STRING_SIZE_MAX || !set_reserve(&heap->old_strings, 1))
        return NULL;
    struct string *string = set_find(&heap->old_strings, bytes, size, hash);
    if (string != NULL)
        return string;
    string = heap_new_old(heap, KIND_STRING, sizeof *string + size + 1);
    if (string == NULL)
        return NULL;
    memcpy(string->bytes, bytes, size);
    string->object.count = (uint32_t)size;
    string->hash = hash;
    set_add(&heap->old_strings, string);
    return string;
}

/* Gives the bytes of a string back that was not needed. It must be the newest object. */
static void discard(struct heap *heap, struct string *string, size_t size)
{
    if (heap_is_young(heap, string) && !heap->is_stressed)
        heap->next -= (size + UNIT - 1) & ~(size_t)(UNIT - 1);
}

struct string *string_join(struct heap *heap, const lox_value *left, const lox_value *right)
{
    size_t left_size = as_object(*left)->count;
    size_t right_size = as_object(*right)->count;
    size_t size = left_size + right_size;
    if (size > STRING_SIZE_MAX)
        return NULL;
    struct string *joined = heap_new(heap, KIND_STRING, sizeof *joined + size + 1);
    if (joined == NULL)
        return NULL;
    joined->object.count = (uint32_t)size;
    if (!set_reserve(&heap->young_strings, 1) || !set_reserve(&heap->old_strings, 1))
        return NULL;
    memcpy(joined->bytes, as_string(*left)->bytes, left_size);
    memcpy(joined->bytes + left_size, as_string(*right)->bytes, right_size);
    joined->bytes[size] = '\0';
    joined->hash = hash_of(joined->bytes, size);
    struct string *found = find(heap, joined->bytes, size, joined->hash);
    if (found != NULL) {
        discard(heap, joined, sizeof *joined + size + 1);
        return found;
    }
    set_add(heap_is_young(heap, joined) ? &heap->young_strings : &heap->old_strings, joined);
    return joined;
}

/* ---- Collections ---- */

bool strings_reserve_for_minor(struct heap *heap)
{
    return set_reserve(&heap->old_strings, heap->young_strings.used);
}

void strings_after_minor(struct heap *heap)
{
    struct string_set *young = &heap->young_strings;
    if (young->used == 0)
        return;
    for (size_t i = 0; i < young->capacity; i++) {
        struct string *string = young->places[i];
        if (string != NULL && string->object.flags & FLAG_MOVED)
            set_add(&heap->old_strings, string->object.identity);
        young->places[i] = NULL;
    }
    young->used = 0;
}

void strings_before_sweep(struct heap *heap)
{
    struct string_set *old = &heap->old_strings;
    for (size_t i = 0; i < old->capacity; i++)
        if (old->places[i] != NULL && !(old->places[i]->object.flags & FLAG_MARKED))
            old->places[i] = &removed;
}
