/*
 * The functions of unwind tables: the list while a module is loaded, and the table to search.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/functions.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>

/* ---- The list ---- */

static enum cairn_status no_memory(const struct function_list *list, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to list more than %zu functions",
                     list->count);
}

/* Reads the common information up to the first invalid entry. That entry's error is reported when
 * functions are read. */
static enum cairn_status read_commons(struct function_list *list, size_t table,
                                      struct cairn_error *error)
{
    const struct eh_frame *frame = &list->tables[table];
    struct eh_frame_commons *commons = &list->commons[table];
    struct eh_frame_common common;
    size_t offset = 0;
    size_t count = 0;
    bool found = true;
    while (eh_frame_next_common(frame, &offset, &common, &found, NULL) == CAIRN_OK && found)
        count++;
    if (count == 0)
        return CAIRN_OK;
    struct eh_frame_common *entries = memory_new(&list->allocator, count, sizeof *entries);
    if (entries == NULL)
        return no_memory(list, error);
    commons->entries = entries;
    offset = 0;
    while (commons->count < count &&
           eh_frame_next_common(frame, &offset, &entries[commons->count], &found, NULL) == CAIRN_OK)
        commons->count++;
    return CAIRN_OK;
}

static enum cairn_status read_table(struct function_list *list, size_t table,
                                    struct cairn_error *error)
{
    enum cairn_status read = read_commons(list, table, error);
    if (read != CAIRN_OK)
        return read;
    struct eh_frame_description description = {.commons = &list->commons[table]};
    size_t offset = 0;
    for (;;) {
        bool found;
        enum cairn_status status =
            eh_frame_next(&list->tables[table], &offset, &description, &found, error);
        if (status != CAIRN_OK || !found)
            return status;
        if (description.function.size == 0)
            continue;
        struct listed_function *entries = array_reserve(
            &list->allocator, list->entries, list->count, 1, &list->capacity, sizeof *entries);
        if (entries == NULL)
            return no_memory(list, error);
        list->entries = entries;
        list->entries[list->count++] = (struct listed_function){.function = description.function,
                                                                .offset = description.offset,
                                                                .common = description.common.offset,
                                                                .table = table};
    }
}

static int compare(const void *left, const void *right)
{
    const struct listed_function *a = left;
    const struct listed_function *b = right;
    if (a->function.address != b->function.address)
        return a->function.address < b->function.address ? -1 : 1;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

enum cairn_status function_list_read(const struct eh_frame *tables, size_t table_count,
                                     const struct cairn_allocator *allocator,
                                     struct function_list *list, struct cairn_error *error)
{
    *list = (struct function_list){
        .tables = tables, .table_count = table_count, .allocator = *allocator};
    if (table_count == 0)
        return CAIRN_OK;
    list->commons = memory_new(allocator, table_count, sizeof *list->commons);
    if (list->commons == NULL)
        return no_memory(list, error);
    for (size_t i = 0; i < table_count; i++) {
        enum cairn_status status = read_table(list, i, error);
        if (status != CAIRN_OK) {
            function_list_release(list);
            return status;
        }
    }
    bool ascends = true; /* as it does in LLVM's output */
    for (size_t i = 1; i < list->count; i++)
        ascends =
            ascends && list->entries[i - 1].function.address <= list->entries[i].function.address;
    if (!ascends)
        qsort(list->entries, list->count, sizeof *list->entries, compare);
    return CAIRN_OK;
}

void function_list_release(struct function_list *list)
{
    for (size_t i = 0; list->commons != NULL && i < list->table_count; i++) {
        struct eh_frame_commons *commons = &list->commons[i];
        memory_free(&list->allocator, (void *)(uintptr_t)commons->entries,
                    commons->count * sizeof *commons->entries);
    }
    memory_free(&list->allocator, list->commons, list->table_count * sizeof *list->commons);
    memory_free(&list->allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct function_list){0};
}

/* ---- The table ---- */

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
    created->count = list->count;
    for (size_t i = 0; i < list->count; i++)
        created->entries[i] = list->entries[i].function;
    *functions = created;
    return CAIRN_OK;
}

void functions_destroy(struct functions *functions, const struct cairn_allocator *allocator)
{
    memory_free(allocator, functions, functions_size_bytes(functions));
}

size_t functions_size_bytes(const struct functions *functions)
{
    return functions == NULL ? 0 : size_of(functions->count);
}

/* Returns the number of functions that begin at or before `pc`. */
static size_t count_up_to(const struct functions *functions, uint64_t pc)
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
    return begin;
}

bool functions_find(const struct functions *functions, const cairn_table *table, uint64_t pc,
                    struct cairn_function *function)
{
    struct cairn_function recorded = {0};
    bool has_recorded = cairn_table_find_function(table, pc, &recorded);
    size_t count = count_up_to(functions, pc);
    const struct eh_frame_function *known = count == 0 ? NULL : &functions->entries[count - 1];
    bool is_known = known != NULL && !(has_recorded && recorded.address > known->address);
    if (is_known ? pc - known->address >= known->size : !has_recorded)
        return false;
    *function = recorded;
    if (is_known && !(has_recorded && recorded.address == known->address)) {
        function->address = known->address;
        function->stack_size = CAIRN_STACK_SIZE_DYNAMIC;
        function->first_record = recorded.first_record + recorded.record_count;
        function->record_count = 0;
    }
    return true;
}

uint64_t functions_next_change(const struct functions *functions, uint64_t pc)
{
    const size_t count = count_up_to(functions, pc);
    uint64_t change = UINT64_MAX;
    if (functions == NULL)
        return change;
    const struct eh_frame_function *entries = functions->entries;
    if (count < functions->count)
        change = entries[count].address;
    if (count > 0) {
        uint64_t end = entries[count - 1].address + entries[count - 1].size;
        change = end > pc && end < change ? end : change;
    }
    return change;
}
