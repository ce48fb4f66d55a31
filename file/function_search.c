/*
 * Finds functions by name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "file/object.h"

static enum cairn_status make_index(cairn_object *object, struct cairn_error *error)
{
    const struct symbol_list *symbols = &object->symbols;
    struct name_index *index = &object->by_name;
    if (object->has_by_name)
        return CAIRN_OK;
    struct hash_key key = hash_key_create();
    if (!name_index_create(index, symbols->table.strings, symbols->count, &key, &object->allocator))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the names of %zu symbols",
                         symbols->count);
    for (size_t i = 0; i < symbols->count; i++) {
        uint32_t name = symbol_table_read(&symbols->table, symbols->entries[i].index).name;
        if (name < symbols->table.strings.size)
            name_index_add(index, name, (uint32_t)i);
    }
    name_index_sort(index);
    object->has_by_name = true;
    return CAIRN_OK;
}

enum cairn_status cairn_object_find_name(cairn_object *object, const char *name,
                                         struct cairn_object_function *function,
                                         struct cairn_error *error)
{
    if (object == NULL || name == NULL || function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_find_name needs an object, a name and a place for the "
                         "function");
    enum cairn_status status = names_read(object, error);
    if (status == CAIRN_OK)
        status = make_index(object, error);
    if (status != CAIRN_OK)
        return budget_explain(&object->budget, "the index of names", status, error);
    /* If several source files have local functions with this name, the first one is returned. */
    const struct name_entry *entry = name_index_find(&object->by_name, name);
    if (entry == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no function '%.200s'", name);
    const struct symbol *symbol = &object->symbols.entries[entry->number];
    struct symbol code;
    if (names_find_code(object, symbol, &code))
        symbol = &code;
    *function = (struct cairn_object_function){
        .name = symbols_name(&object->symbols, symbol),
        .entry = symbol->value,
        .section = symbol->section,
        .size = symbols_size(&object->symbols, symbol),
    };
    return CAIRN_OK;
}
