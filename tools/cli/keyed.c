/* SPDX-License-Identifier: MIT */
#include "tools/cli/keyed.h"

#include <string.h>

bool keyed_create(struct keyed_list *keyed, unsigned key_words, size_t item_bytes)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    *keyed = (struct keyed_list){.key_words = key_words, .item_bytes = (unsigned)item_bytes};
    return hash_set_init(&keyed->set, &allocator, 0);
}

void keyed_release(struct keyed_list *keyed)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    list_release(&keyed->list);
    if (keyed->set.places != NULL)
        hash_set_release(&keyed->set, &allocator);
}

static uint32_t hash_of(const struct keyed_list *keyed, const uint64_t *key)
{
    return (uint32_t)(hash_words(&keyed->set.key, key, keyed->key_words * sizeof *key) >> 32);
}

static void *find_hashed(const struct keyed_list *keyed, const uint64_t *key, uint32_t hash)
{
    for (const struct hash_place *place = hash_set_first(&keyed->set, hash); place->number != 0;
         place = hash_set_next(&keyed->set, place)) {
        char *item = (char *)keyed->list.items + (size_t)(place->number - 1) * keyed->item_bytes;
        if (place->hash == hash && memcmp(item, key, keyed->key_words * sizeof *key) == 0)
            return item;
    }
    return NULL;
}

void *keyed_find(const struct keyed_list *keyed, const uint64_t *key)
{
    return find_hashed(keyed, key, hash_of(keyed, key));
}

void *keyed_obtain(struct keyed_list *keyed, const uint64_t *key, bool *is_new)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    uint32_t hash = hash_of(keyed, key);
    void *item = find_hashed(keyed, key, hash);
    if (is_new != NULL)
        *is_new = item == NULL;
    if (item != NULL)
        return item;
    item = keyed->list.count < UINT32_MAX ? list_add(&keyed->list, keyed->item_bytes) : NULL;
    if (item == NULL)
        return NULL;
    memcpy(item, key, keyed->key_words * sizeof *key);
    if (hash_set_add(&keyed->set, &allocator, hash, (uint32_t)(keyed->list.count - 1)))
        return item;
    keyed->list.count--;
    return NULL;
}
