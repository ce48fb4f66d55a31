/* The symbols of one module. SPDX-License-Identifier: MIT */
#include "record/module_symbols.h"

#include "base/error.h"
#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The offset is from `base`; the size is UINT32_MAX if it is not known. */
struct named_function {
    uint32_t offset;
    uint32_t size;
    uint32_t name;
};

_Static_assert(sizeof(struct module_symbols) % _Alignof(struct definition) == 0,
               "definitions follow the head without a gap (definition_symbols)");

static const struct named_function *functions_of(const struct module_symbols *symbols)
{
    return (const struct named_function *)(symbols->definitions + symbols->definition_count);
}

static const char *names_of(const struct module_symbols *symbols)
{
    return (const char *)(functions_of(symbols) + symbols->function_count);
}

const char *definition_name(const struct definition *definition)
{
    return names_of(definition_symbols(definition)) + definition->name;
}

/* Names that differ only in a number at their end, which compilers write, may have hashes in
 * arithmetic progression. The multiplication separates them, so that they make no runs of slots. */
uint32_t definition_hash(const struct hash_key *key, const char *name)
{
    uint64_t hash = hash_text(key, name, strlen(name));
    return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

size_t module_symbols_size_bytes(const struct module_symbols *symbols)
{
    if (symbols == NULL)
        return 0;
    return (size_t)(names_of(symbols) - (const char *)symbols) + symbols->name_bytes;
}

void module_symbols_destroy(struct module_symbols *symbols, const struct cairn_allocator *allocator)
{
    memory_free(allocator, symbols, module_symbols_size_bytes(symbols));
}

/* ---- Creating ---- */

/* Sorts by code. Of the functions at one address, the one whose name is to be kept comes first. */
static int compare_symbols(const void *one, const void *other)
{
    const struct symbol *a = one;
    const struct symbol *b = other;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    if (a->is_definition != b->is_definition)
        return a->is_definition ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_definitions(const void *one, const void *other)
{
    const struct definition *a = one;
    const struct definition *b = other;
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

/* Whether symbol number `index` of a sorted list is one that names a function by PC. */
static bool names_function(const struct symbol *list, size_t index)
{
    return list[index].code != 0 && (index == 0 || list[index - 1].code != list[index].code);
}

/* Counts what the symbols of a sorted list need. Returns false if there is too much of it. */
static bool measure(const struct symbol *list, size_t count, struct module_symbols *sizes)
{
    uint64_t name_bytes = 0;
    sizes->base = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        bool is_function = names_function(list, i);
        if (!is_function && !list[i].is_definition)
            continue;
        sizes->function_count += is_function;
        sizes->definition_count += list[i].is_definition;
        name_bytes += strlen(list[i].name) + 1;
        if (list[i].is_definition && list[i].address < sizes->base)
            sizes->base = list[i].address;
        if (is_function && list[i].code < sizes->base)
            sizes->base = list[i].code;
    }
    sizes->name_bytes = (uint32_t)name_bytes;
    return count <= UINT32_MAX && name_bytes <= UINT32_MAX;
}

static uint32_t offset_from(const struct module_symbols *symbols, uint64_t address)
{
    assert(address - symbols->base <= UINT32_MAX);
    return (uint32_t)(address - symbols->base);
}

/* Writes the symbols of a sorted list. */
static void fill(struct module_symbols *symbols, const struct symbol *list, size_t count,
                 const struct hash_key *key)
{
    struct named_function *function = (struct named_function *)(uintptr_t)functions_of(symbols);
    struct definition *definition = symbols->definitions;
    char *names = (char *)(uintptr_t)names_of(symbols);
    uint32_t name = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_function = names_function(list, i);
        if (!is_function && !list[i].is_definition)
            continue;
        if (is_function)
            *function++ = (struct named_function){
                .offset = offset_from(symbols, list[i].code),
                .size = list[i].size == 0 || list[i].size > UINT32_MAX ? UINT32_MAX
                                                                       : (uint32_t)list[i].size,
                .name = name};
        if (list[i].is_definition)
            *definition++ = (struct definition){.hash = definition_hash(key, list[i].name),
                                                .offset = offset_from(symbols, list[i].address),
                                                .name = name};
        size_t length = strlen(list[i].name) + 1;
        memcpy(names + name, list[i].name, length);
        name += (uint32_t)length;
    }
    if (symbols->definition_count > 1)
        qsort(symbols->definitions, symbols->definition_count, sizeof *symbols->definitions,
              compare_definitions);
    for (uint32_t i = 0; i < symbols->definition_count; i++)
        symbols->definitions[i].index = i;
}

enum cairn_status module_symbols_create(struct symbol *list, size_t count,
                                        const struct hash_key *key,
                                        const struct cairn_allocator *allocator,
                                        struct module_symbols **symbols, struct cairn_error *error)
{
    struct module_symbols sizes = {.owner = NULL};
    *symbols = NULL;
    if (count > 1)
        qsort(list, count, sizeof *list, compare_symbols);
    if (!measure(list, count, &sizes))
        return error_set(error, CAIRN_ERROR_RANGE, 0, "the names of %zu symbols are too long",
                         count);
    if (sizes.name_bytes == 0)
        return CAIRN_OK;
    struct module_symbols *created = memory_new(allocator, 1, module_symbols_size_bytes(&sizes));
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the names of %zu symbols",
                         count);
    *created = sizes;
    fill(created, list, count, key);
    *symbols = created;
    return CAIRN_OK;
}

/* ---- Lookups ---- */

const struct definition *module_symbols_find(const struct module_symbols *symbols,
                                             const struct hash_key *key, const char *name)
{
    if (symbols == NULL)
        return NULL;
    const struct definition *definitions = symbols->definitions;
    uint32_t hash = definition_hash(key, name);
    for (uint32_t i = search_u32(&definitions->hash, sizeof *definitions, 0,
                                 symbols->definition_count, hash);
         i < symbols->definition_count && definitions[i].hash == hash; i++)
        if (strcmp(definition_name(&definitions[i]), name) == 0)
            return &definitions[i];
    return NULL;
}

/* Returns the number of functions that begin at or before `pc`. */
static uint32_t functions_up_to(const struct module_symbols *symbols, uint64_t pc)
{
    const struct named_function *functions = functions_of(symbols);
    if (pc < symbols->base)
        return 0;
    return search_u32(&functions->offset, sizeof *functions, 0, symbols->function_count,
                      pc - symbols->base + 1);
}

bool module_symbols_find_function(const struct module_symbols *symbols, uint64_t pc,
                                  const char **name, uint64_t *address)
{
    const uint32_t next = symbols == NULL ? 0 : functions_up_to(symbols, pc);
    if (next == 0)
        return false;
    const struct named_function *found = &functions_of(symbols)[next - 1];
    const uint64_t offset = pc - symbols->base;
    if (found->size != UINT32_MAX && offset - found->offset >= found->size)
        return false;
    *name = names_of(symbols) + found->name;
    *address = symbols->base + found->offset;
    return true;
}

uint64_t module_symbols_next_change(const struct module_symbols *symbols, uint64_t pc)
{
    if (symbols == NULL)
        return UINT64_MAX;
    const struct named_function *functions = functions_of(symbols);
    const uint32_t next = functions_up_to(symbols, pc);
    uint64_t change = UINT64_MAX;
    if (next < symbols->function_count)
        change = symbols->base + functions[next].offset;
    if (next > 0 && functions[next - 1].size != UINT32_MAX) {
        uint64_t end = symbols->base + functions[next - 1].offset + functions[next - 1].size;
        change = end > pc && end < change ? end : change;
    }
    return change;
}

bool module_symbols_function_at(const struct module_symbols *symbols, uint32_t index,
                                const char **name, uint64_t *address, uint32_t *size)
{
    if (symbols == NULL || index >= symbols->function_count)
        return false;
    const struct named_function *function = &functions_of(symbols)[index];
    *name = names_of(symbols) + function->name;
    *address = symbols->base + function->offset;
    *size = function->size;
    return true;
}
