/*
 * record/module_symbols.h - the symbols of a module: the names of its functions by PC, and the
 * addresses of its definitions by name.
 *
 * A definition is a symbol that other modules may use. All of a module's symbols are in one
 * allocation, which never changes, except for the links of a table of all modules
 * (record/symbol_table.h). A module with one function and a short name takes 80 bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_MODULE_SYMBOLS_H
#define RECORD_MODULE_SYMBOLS_H

#include "base/hash.h"
#include "base/memory.h"

#include <cairn/status.h>
#include <stdbool.h>

/* A symbol of objects that are loaded. */
struct symbol {
    const char *name;
    uint64_t address; /* of a function: what a function pointer holds */
    uint64_t code;    /* the first byte of a function's code; 0 if it is not a function */
    uint64_t size;    /* of a function's code in bytes; 0 if it is not known */
    bool is_definition;
};

/* Invariants: `newer` and `older` are NULL if the definition is in no table. `index` is its own
 * index in struct module_symbols. */
struct definition {
    struct definition *newer; /* the next newer definition of this name */
    struct definition *older;
    uint32_t hash;
    uint32_t offset; /* of the address, from `base` */
    uint32_t name;   /* offset in the names */
    uint32_t index;
};

/* Invariants: `definitions` is sorted by hash. It is followed by the functions, which are sorted by
 * address, and the names. */
struct module_symbols {
    void *owner;   /* the module; NULL until its creator sets it */
    uint64_t base; /* the lowest address of a symbol */
    uint32_t definition_count;
    uint32_t function_count;
    uint32_t name_bytes;
    struct definition definitions[];
};

/*
 * Creates the symbols of a module from a list, which is changed: it is sorted. `key` is that of the
 * table of all modules. Symbols that are neither functions nor definitions are left out. Of several
 * functions at one address, one has its name kept for lookups by PC: a definition if there is one.
 * All addresses must be within 4 GiB. `*symbols` is NULL if nothing remains; all other functions
 * accept that. Errors: MEMORY, RANGE (4 GiB of names).
 */
CAIRN_MUST_CHECK enum cairn_status module_symbols_create(struct symbol *list, size_t count,
                                                         const struct hash_key *key,
                                                         const struct cairn_allocator *allocator,
                                                         struct module_symbols **symbols,
                                                         struct cairn_error *error);

void module_symbols_destroy(struct module_symbols *symbols,
                            const struct cairn_allocator *allocator);

size_t module_symbols_size_bytes(const struct module_symbols *symbols);

/* ---- Lookups: lock-free, async-signal-safe ---- */

/* Finds the definition of a name, or returns NULL. */
const struct definition *module_symbols_find(const struct module_symbols *symbols,
                                             const struct hash_key *key, const char *name);

/* Finds the function that contains `pc`. A function of unknown size extends to the next one. The
 * name is valid as long as the symbols. */
bool module_symbols_find_function(const struct module_symbols *symbols, uint64_t pc,
                                  const char **name, uint64_t *address);

/* Returns the lowest address after `pc` from which module_symbols_find_function may find something
 * else; UINT64_MAX if the answer does not change. */
uint64_t module_symbols_next_change(const struct module_symbols *symbols, uint64_t pc);

/* Sets the name, address and size of function number `index`, in order of address; false past the
 * last. The size is UINT32_MAX if it is unknown. */
bool module_symbols_function_at(const struct module_symbols *symbols, uint32_t index,
                                const char **name, uint64_t *address, uint32_t *size);

/* ---- Definitions ---- */

static inline const struct module_symbols *definition_symbols(const struct definition *definition)
{
    return (const struct module_symbols *)(const void *)((const char *)(definition -
                                                                        definition->index) -
                                                         sizeof(struct module_symbols));
}

static inline uint64_t definition_address(const struct definition *definition)
{
    return definition_symbols(definition)->base + definition->offset;
}

const char *definition_name(const struct definition *definition);

/* Returns the hash of a name in definitions. */
uint32_t definition_hash(const struct hash_key *key, const char *name);

#endif
