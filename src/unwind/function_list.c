/* SPDX-License-Identifier: MIT */
#include "unwind/function_list.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>

static enum cairn_status no_memory(const struct function_list *list, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to list more than %zu functions",
                     list->count);
}

static size_t count_commons(const struct eh_frame *frame)
{
    struct eh_frame_common common;
    size_t offset = 0;
    size_t count = 0;
    bool found = true;
    while (eh_frame_next_common(frame, &offset, &common, &found, NULL) == CAIRN_OK && found)
        count++;
    return count;
}

/* Reads the common information up to the first invalid entry. That entry's error is reported when
 * functions are read. */
static enum cairn_status read_commons(struct function_list *list, size_t table,
                                      struct cairn_error *error)
{
    struct eh_frame_commons *commons = &list->commons[table];
    size_t count = count_commons(&list->tables[table]);
    if (count == 0)
        return CAIRN_OK;
    struct eh_frame_common *entries = memory_new(&list->allocator, count, sizeof *entries);
    if (entries == NULL)
        return no_memory(list, error);
    commons->entries = entries;
    size_t offset = 0;
    bool found = true;
    while (commons->count < count &&
           eh_frame_next_common(&list->tables[table], &offset, &entries[commons->count], &found,
                                NULL) == CAIRN_OK)
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

static bool ascends(const struct function_list *list)
{
    for (size_t i = 1; i < list->count; i++)
        if (list->entries[i].function.address < list->entries[i - 1].function.address)
            return false;
    return true;
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
    if (!ascends(list)) /* they ascend in LLVM's output */
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
    list->commons = NULL;
    list->entries = NULL;
    list->count = 0;
    list->capacity = 0;
}
