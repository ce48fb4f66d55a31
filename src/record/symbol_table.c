/* A hash table with linear probing of the definitions of all modules. SPDX-License-Identifier: MIT
 */
#include "record/symbol_table.h"

#include "base/error.h"

#include <string.h>

enum { SLOT_COUNT_MIN = 16 };

void symbol_table_init(struct symbol_table *table)
{
    *table = (struct symbol_table){.key = hash_key_create()};
}

void symbol_table_release(struct symbol_table *table, const struct cairn_allocator *allocator)
{
    memory_free(allocator, table->slots, table->slot_count * sizeof *table->slots);
}

size_t symbol_table_size_bytes(const struct symbol_table *table)
{
    return table->slot_count * sizeof(struct definition *);
}

/* Returns the slot of a name, or the empty slot where it belongs. */
static struct definition **find_slot(const struct symbol_table *table, uint32_t hash,
                                     const char *name)
{
    size_t mask = table->slot_count - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct definition *newest = table->slots[at];
        if (newest == NULL || (newest->hash == hash && strcmp(definition_name(newest), name) == 0))
            return &table->slots[at];
    }
}

/* The new slots are at most three eighths full, so this takes O(1) time on average. */
enum cairn_status symbol_table_reserve(struct symbol_table *table,
                                       const struct cairn_allocator *allocator,
                                       const struct module_symbols *symbols,
                                       struct cairn_error *error)
{
    size_t count = table->used + (symbols == NULL ? 0 : symbols->definition_count);
    if (count <= table->slot_count / 4 * 3)
        return CAIRN_OK;
    struct symbol_table larger = {.key = table->key, .slot_count = SLOT_COUNT_MIN};
    while (larger.slot_count / 8 * 3 < count)
        larger.slot_count *= 2;
    larger.slots = memory_new(allocator, larger.slot_count, sizeof *larger.slots);
    if (larger.slots == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to publish %zu symbols", count);
    for (size_t i = 0; i < table->slot_count; i++) {
        struct definition *newest = table->slots[i];
        if (newest != NULL)
            *find_slot(&larger, newest->hash, definition_name(newest)) = newest;
    }
    larger.used = table->used;
    symbol_table_release(table, allocator);
    *table = larger;
    return CAIRN_OK;
}

void symbol_table_add(struct symbol_table *table, struct module_symbols *symbols)
{
    for (uint32_t i = 0; symbols != NULL && i < symbols->definition_count; i++) {
        struct definition *added = &symbols->definitions[i];
        struct definition **slot = find_slot(table, added->hash, definition_name(added));
        added->older = *slot;
        if (*slot != NULL)
            (*slot)->newer = added;
        else
            table->used++;
        *slot = added;
    }
}

/* Empties a slot. Moves back each of the definitions that follow it without a gap and whose place
 * is not after the empty slot. */
static void empty_slot(struct symbol_table *table, size_t empty)
{
    size_t mask = table->slot_count - 1;
    for (size_t at = (empty + 1) & mask; table->slots[at] != NULL; at = (at + 1) & mask) {
        size_t distance = (at - table->slots[at]->hash) & mask;
        if (distance < ((at - empty) & mask))
            continue;
        table->slots[empty] = table->slots[at];
        empty = at;
    }
    table->slots[empty] = NULL;
    table->used--;
}

void symbol_table_remove(struct symbol_table *table, struct module_symbols *symbols)
{
    for (uint32_t i = 0; symbols != NULL && i < symbols->definition_count; i++) {
        struct definition *removed = &symbols->definitions[i];
        if (removed->older != NULL)
            removed->older->newer = removed->newer;
        if (removed->newer != NULL) {
            removed->newer->older = removed->older;
        } else {
            struct definition **slot = find_slot(table, removed->hash, definition_name(removed));
            *slot = removed->older;
            if (removed->older == NULL)
                empty_slot(table, (size_t)(slot - table->slots));
        }
        removed->newer = removed->older = NULL;
    }
}

const struct definition *symbol_table_find(const struct symbol_table *table, const char *name)
{
    if (table->used == 0)
        return NULL;
    return *find_slot(table, definition_hash(&table->key, name), name);
}
