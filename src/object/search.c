/*
 * Functions by name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "object/object.h"

#include <string.h>

/* Several files may have local functions of that name: the first is as good as the others. */
static const struct symbol *find(const struct symbol_list *symbols, const char *name)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->entries[i];
        const char *other = symbols_name(symbols, symbol);
        if (other != NULL && strcmp(other, name) == 0)
            return symbol;
    }
    return NULL;
}

/* A descriptor's symbol stands there twice: for the descriptor, and for its code. */
static const struct symbol *find_code(const struct symbol_list *symbols,
                                      const struct symbol *descriptor)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->entries[i];
        if (symbol->is_of_descriptor && symbol->index == descriptor->index)
            return symbol;
    }
    return descriptor;
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
    if (status != CAIRN_OK)
        return status;
    const struct symbol *symbol = find(&object->symbols, name);
    if (symbol == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no function '%.200s'", name);
    if (object->descriptors != NULL && !symbol->is_of_descriptor)
        symbol = find_code(&object->symbols, symbol);
    *function = (struct cairn_object_function){
        .name = symbols_name(&object->symbols, symbol),
        .entry = symbol->value,
        .section = symbol->section,
        .size = symbols_size(&object->symbols, symbol),
    };
    return CAIRN_OK;
}
