/*
 * record/symbol_table.h - from a name to its definitions in all published modules.
 *
 * The definitions of a name are in a list, newest first. Adding and removing a module's symbols and
 * finding a name take expected O(1) time for each symbol, also if many modules define the same
 * name.
 *
 * Names come from input, so the hash has a secret key (base/hash.h). All functions are called with
 * the runtime's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_SYMBOL_TABLE_H
#define RECORD_SYMBOL_TABLE_H

#include "record/module_symbols.h"

/* Invariants: a slot holds the newest definition of a name, or NULL. It is at or after the place of
 * its hash, with no empty slot in between. `used` is the number of names, at most three quarters of
 * the slots. */
struct symbol_table {
    struct hash_key key;
    struct definition **slots; /* NULL while no symbols were added */
    size_t slot_count;         /* a power of two, or 0 */
    size_t used;
};

void symbol_table_init(struct symbol_table *table);
void symbol_table_release(struct symbol_table *table, const struct cairn_allocator *allocator);

size_t symbol_table_size_bytes(const struct symbol_table *table);

/* Makes space for the definitions, so that symbol_table_add cannot fail. Errors: MEMORY. */
CAIRN_MUST_CHECK enum cairn_status symbol_table_reserve(struct symbol_table *table,
                                                        const struct cairn_allocator *allocator,
                                                        const struct module_symbols *symbols,
                                                        struct cairn_error *error);

/* Adds the definitions of a module, which become the newest ones of their names. */
void symbol_table_add(struct symbol_table *table, struct module_symbols *symbols);

/* Removes definitions that were added. */
void symbol_table_remove(struct symbol_table *table, struct module_symbols *symbols);

/* Returns the newest definition of a name, or NULL. */
const struct definition *symbol_table_find(const struct symbol_table *table, const char *name);

#endif
