/* SPDX-License-Identifier: MIT */
#include "base/hash_set.h"

#include <string.h>

bool hash_set_init(struct hash_set *set, const struct cairn_allocator *allocator, size_t count)
{
    *set = (struct hash_set){.key = hash_key_create(), .place_count = 16};
    while (set->place_count < 2 * count)
        set->place_count *= 2;
    set->places = memory_new(allocator, set->place_count, sizeof *set->places);
    return set->places != NULL;
}

void hash_set_put(struct hash_set *set, uint32_t hash, uint32_t number)
{
    struct hash_place *place = hash_set_first(set, hash);
    while (place->number != 0)
        place = hash_set_next(set, place);
    *place = (struct hash_place){hash, number + 1};
    set->count++;
}

bool hash_set_add(struct hash_set *set, const struct cairn_allocator *allocator, uint32_t hash,
                  uint32_t number)
{
    if (2 * (set->count + 1) > set->place_count) {
        struct hash_set grown = {.key = set->key, .place_count = 2 * set->place_count};
        grown.places = memory_new(allocator, grown.place_count, sizeof *grown.places);
        if (grown.places == NULL)
            return false;
        for (size_t i = 0; i < set->place_count; i++)
            if (set->places[i].number != 0)
                hash_set_put(&grown, set->places[i].hash, set->places[i].number - 1);
        hash_set_release(set, allocator);
        *set = grown;
    }
    hash_set_put(set, hash, number);
    return true;
}

void hash_set_clear(struct hash_set *set)
{
    memset(set->places, 0, set->place_count * sizeof *set->places);
    set->count = 0;
}

void hash_set_release(const struct hash_set *set, const struct cairn_allocator *allocator)
{
    memory_free(allocator, set->places, set->place_count * sizeof *set->places);
}
