/* SPDX-License-Identifier: MIT */
#include "unwind/functions.h"

#include "base/error.h"

/* ---- Making ---- */

static size_t size_of(size_t count)
{
    return sizeof(struct functions) + count * sizeof(struct eh_frame_function);
}

enum cairn_status functions_create(const struct function_list *list, struct functions **functions,
                                   struct cairn_error *error)
{
    *functions = NULL;
    if (list->count == 0)
        return CAIRN_OK;
    struct functions *created = memory_new(&list->allocator, 1, size_of(list->count));
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the ranges of %zu functions",
                         list->count);
    created->allocator = list->allocator;
    created->count = list->count;
    for (size_t i = 0; i < list->count; i++)
        created->entries[i] = list->entries[i].function;
    *functions = created;
    return CAIRN_OK;
}

void functions_destroy(struct functions *functions)
{
    if (functions == NULL)
        return;
    struct cairn_allocator allocator = functions->allocator;
    memory_free(&allocator, functions, size_of(functions->count));
}

size_t functions_size_bytes(const struct functions *functions)
{
    return functions == NULL ? 0 : size_of(functions->count);
}

/* ---- Finding ---- */

/* Returns the last entry that begins at or before `pc`, or NULL. */
static const struct eh_frame_function *last_before(const struct functions *functions, uint64_t pc)
{
    size_t begin = 0;
    size_t end = functions == NULL ? 0 : functions->count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (functions->entries[middle].address <= pc)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin == 0 ? NULL : &functions->entries[begin - 1];
}

bool functions_find(const struct functions *functions, const cairn_table *table, uint64_t pc,
                    struct cairn_function *function)
{
    struct cairn_function recorded = {0};
    bool has_recorded = cairn_table_find_function(table, pc, &recorded);
    const struct eh_frame_function *known = last_before(functions, pc);
    if (known == NULL || (has_recorded && recorded.address > known->address)) {
        *function = recorded;
        return has_recorded;
    }
    if (pc - known->address >= known->size)
        return false;
    *function = recorded;
    if (has_recorded && recorded.address == known->address)
        return true;
    function->address = known->address;
    function->stack_size = CAIRN_STACK_SIZE_DYNAMIC;
    function->first_record = recorded.first_record + recorded.record_count;
    function->record_count = 0;
    return true;
}
