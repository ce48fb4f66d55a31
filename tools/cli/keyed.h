/*
 * tools/cli/keyed.h - lists whose items are found by a key in expected O(1) time.
 *
 * Keys are hashed with a number that the input cannot know. Items keep their order and their
 * indices.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_KEYED_H
#define TOOLS_CLI_KEYED_H

#include "base/hash_set.h"
#include "tools/cli/list.h"

/* Each item begins with a key of `key_words` numbers. */
struct keyed_list {
    struct list list;
    struct hash_set set;
    unsigned key_words;
    unsigned item_bytes;
};

/* False without memory. The caller releases the list in either case. */
bool keyed_create(struct keyed_list *keyed, unsigned key_words, size_t item_bytes);
void keyed_release(struct keyed_list *keyed);

/* Returns the item with the key, or NULL. */
void *keyed_find(const struct keyed_list *keyed, const uint64_t *key);

/* Returns the item with the key, which is a new one with zeros after the key if there was none;
 * `*is_new` may be NULL. NULL without memory. */
void *keyed_obtain(struct keyed_list *keyed, const uint64_t *key, bool *is_new);

#endif
