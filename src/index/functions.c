/* SPDX-License-Identifier: MIT */
#include "index/functions.h"

#include "base/error.h"

#include <stdlib.h>

/* ---- Making ---- */

/* Reads all unwind tables; `entries` NULL only counts. */
static enum cairn_status read_all(const struct eh_frame *frames, size_t frame_count,
                                  struct eh_frame_function *entries, size_t *count,
                                  struct cairn_error *error)
{
    *count = 0;
    for (size_t i = 0; i < frame_count; i++) {
        size_t offset = 0;
        bool found = true;
        while (found) {
            struct eh_frame_function function;
            enum cairn_status status = eh_frame_next(&frames[i], &offset, &function, &found, error);
            if (status != CAIRN_OK)
                return status;
            if (!found || function.size == 0)
                continue;
            if (entries != NULL)
                entries[*count] = function;
            (*count)++;
        }
    }
    return CAIRN_OK;
}

static int compare(const void *left, const void *right)
{
    const struct eh_frame_function *a = left;
    const struct eh_frame_function *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static bool ascend(const struct eh_frame_function *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (entries[i].address < entries[i - 1].address)
            return false;
    return true;
}

static size_t size_of(size_t count)
{
    return sizeof(struct functions) + count * sizeof(struct eh_frame_function);
}

enum cairn_status functions_create(const struct eh_frame *frames, size_t frame_count,
                                   const struct cairn_allocator *allocator,
                                   struct functions **functions, struct cairn_error *error)
{
    size_t count;
    enum cairn_status status = read_all(frames, frame_count, NULL, &count, error);
    *functions = NULL;
    if (status != CAIRN_OK || count == 0)
        return status;
    struct functions *created = memory_new(allocator, 1, size_of(count));
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the ranges of %zu functions",
                         count);
    created->allocator = *allocator;
    created->count = count;
    status = read_all(frames, frame_count, created->entries, &count, error);
    if (!ascend(created->entries, count)) /* they do as LLVM writes them */
        qsort(created->entries, count, sizeof *created->entries, compare);
    *functions = created;
    return status;
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

/* The last entry that begins at or before `pc`; NULL if there is none. */
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
