/*
 * The index of a published module, which is all that lookups by address read of it: its functions
 * are listed once, and the list is in the runtime's pools.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module_index.h"

#include "base/array.h"
#include "base/error.h"
#include "record/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Listing the functions of a module ---- */

struct range_list {
    const struct cairn_allocator *allocator;
    uint64_t base;
    struct function_range *ranges;
    size_t count;
    size_t capacity;
    bool ascends;
    bool is_exact; /* whether ranges have all that is known of their functions */
};

static uint64_t next_change(const cairn_module *module, uint64_t pc)
{
    const uint64_t changes[] = {
        module_symbols_next_change(module->symbols, pc),
        functions_next_change(module->functions, pc),
        table_next_function(module->table, pc),
    };
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        first = changes[i] < first ? changes[i] : first;
    return first;
}

/* Describes the PCs from `begin` up to `end`, for which `function` is found. */
static struct function_range range_of(struct range_list *list, uint64_t begin, uint64_t end,
                                      const struct cairn_function *function)
{
    bool is_dynamic = function->stack_size == CAIRN_STACK_SIZE_DYNAMIC;
    list->is_exact = list->is_exact && begin - function->address <= INT32_MAX &&
                     (is_dynamic || function->stack_size < RANGE_STACK_DYNAMIC);
    return (struct function_range){
        .begin = (uint32_t)(begin - list->base),
        .size = (uint32_t)(end - begin),
        .function = (uint32_t)(function->address - list->base),
        .first_record = function->first_record,
        .record_count = function->record_count,
        .stack_size = is_dynamic ? RANGE_STACK_DYNAMIC : (uint32_t)function->stack_size,
        .name = function->name,
    };
}

/* Whether `next` follows `range` without a gap, and has the same function. */
static bool continues(const struct function_range *range, const struct function_range *next)
{
    return range->begin + range->size == next->begin && range->function == next->function &&
           range->first_record == next->first_record && range->name == next->name;
}

static bool add_range(struct range_list *list, struct function_range range)
{
    struct function_range *last = list->count == 0 ? NULL : &list->ranges[list->count - 1];
    if (last != NULL && continues(last, &range)) {
        last->size += range.size;
        return true;
    }
    list->ascends = list->ascends && (last == NULL || last->begin < range.begin);
    struct function_range *ranges = array_reserve(list->allocator, list->ranges, list->count, 1,
                                                  &list->capacity, sizeof *ranges);
    if (ranges == NULL)
        return false;
    list->ranges = ranges;
    ranges[list->count++] = range;
    return true;
}

/* Adds the functions of the code from `begin` up to `end`. */
static bool list_code(const cairn_module *module, uint64_t begin, uint64_t end,
                      struct range_list *list)
{
    struct cairn_function function;
    for (uint64_t pc = begin; pc < end;) {
        uint64_t change = next_change(module, pc);
        if (change > end)
            change = end;
        if (module_search_function(module, pc, &function) &&
            !add_range(list, range_of(list, pc, change, &function)))
            return false;
        pc = change;
    }
    return true;
}

static int compare_ranges(const void *one, const void *other)
{
    const struct function_range *a = one;
    const struct function_range *b = other;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static bool list_functions(const cairn_module *module, struct range_list *list)
{
    struct memory_range memory;
    list->base = UINT64_MAX;
    for (uint32_t i = 0; module_memory_range(module, i, &memory); i++)
        if (memory.executable && memory.address < list->base)
            list->base = memory.address;
    for (uint32_t i = 0; module_memory_range(module, i, &memory); i++)
        if (memory.executable &&
            !list_code(module, memory.address,
                       code_block_code_end(module_block(module), memory.address), list))
            return false;
    if (!list->ascends)
        qsort(list->ranges, list->count, sizeof *list->ranges, compare_ranges);
    return true;
}

/* ---- Creating and freeing ---- */

/* A free index of a group begins with the pointer to the next one. */
static void give_index(cairn_runtime *runtime, struct address_index *index)
{
    *(struct address_index **)(void *)index = runtime->free_index;
    runtime->free_index = index;
}

static struct address_index *take_index(cairn_runtime *runtime)
{
    struct address_index *index = runtime->free_index;
    if (index != NULL) {
        runtime->free_index = *(struct address_index **)(void *)index;
        return index;
    }
    struct index_group *group = pool_take(&runtime->indexes, 1);
    if (group == NULL)
        return NULL;
    for (size_t i = INDEX_GROUP_SIZE; i-- > 1;)
        give_index(runtime, &group->addresses[i]);
    return &group->addresses[0];
}

static struct function_index *functions_of(const struct address_index *index)
{
    return (struct function_index *)(uintptr_t)index_functions(index);
}

/* Fills in the index of functions; takes memory for the ranges if they do not fit it. */
static bool add_functions(cairn_runtime *runtime, struct function_index *functions,
                          const struct range_list *list)
{
    if (!list->is_exact) {
        *functions = (struct function_index){.record_count = FUNCTIONS_SEARCHED};
        return true;
    }
    if (!function_index_init(functions, list->base, list->ranges, list->count))
        return true;
    struct function_range *ranges = pool_take(&runtime->ranges, list->count);
    if (ranges == NULL)
        return false;
    assert(list->ranges != NULL); /* there are several */
    memcpy(ranges, list->ranges, list->count * sizeof *ranges);
    functions->ranges = ranges;
    return true;
}

/* Takes memory for the index of a module whose functions are listed, and fills it in. */
static struct address_index *create(const cairn_module *module, const struct range_list *list)
{
    cairn_runtime *runtime = module->runtime;
    struct address_index *index = take_index(runtime);
    if (index == NULL)
        return NULL;
    address_index_init(index, module->table);
    if (!add_functions(runtime, functions_of(index), list)) {
        give_index(runtime, index);
        return NULL;
    }
    functions_of(index)->owner = (void *)(uintptr_t)module;
    return index;
}

enum cairn_status module_index_create(const cairn_module *module, struct address_index **index,
                                      struct cairn_error *error)
{
    cairn_runtime *runtime = module->runtime;
    struct range_list list = {.allocator = &runtime->allocator, .ascends = true, .is_exact = true};
    bool is_listed = list_functions(module, &list);
    runtime_lock(runtime);
    *index = is_listed ? create(module, &list) : NULL;
    runtime_unlock(runtime);
    memory_free(list.allocator, list.ranges, list.capacity * sizeof *list.ranges);
    return *index != NULL
               ? CAIRN_OK
               : error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to publish a module");
}

void module_index_free(cairn_runtime *runtime, struct address_index *index)
{
    if (index == NULL)
        return;
    runtime_lock(runtime);
    const struct function_index *functions = index_functions(index);
    if (functions->record_count == FUNCTIONS_LISTED)
        pool_give(&runtime->ranges, (void *)(uintptr_t)functions->ranges, functions->count);
    give_index(runtime, index);
    runtime_unlock(runtime);
}

size_t module_index_bytes(const struct address_index *index)
{
    if (index == NULL)
        return 0;
    const struct function_index *functions = index_functions(index);
    size_t listed = functions->record_count == FUNCTIONS_LISTED ? functions->count : 0;
    return sizeof *index + sizeof *functions + listed * sizeof(struct function_range);
}
