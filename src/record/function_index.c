/* SPDX-License-Identifier: MIT */
#include "record/function_index.h"

#include "base/sort.h"
#include "record/layout.h"

_Static_assert(sizeof(struct function_range) <= 32, "a range is half a cache line");

/* Whether the index itself has space for the only range of a module. */
static bool fits_index(const struct function_range *range)
{
    return range->function == range->begin && range->first_record == 0 &&
           range->record_count < FUNCTIONS_SEARCHED &&
           (range->stack_size < STACK_SIZE_WIDE || range->stack_size == RANGE_STACK_DYNAMIC);
}

bool function_index_init(struct function_index *index, uint64_t base,
                         const struct function_range *ranges, size_t count)
{
    *index = (struct function_index){.base = base};
    if (count == 0)
        return false;
    if (count > 1 || !fits_index(ranges)) {
        index->ranges = ranges;
        index->count = (uint32_t)count;
        index->record_count = FUNCTIONS_LISTED;
        return true;
    }
    index->base = base + ranges->begin;
    index->name = ranges->name;
    index->size = ranges->size;
    index->record_count = (uint16_t)ranges->record_count;
    index->stack_size = ranges->stack_size == RANGE_STACK_DYNAMIC ? STACK_SIZE_DYNAMIC
                                                                  : (uint16_t)ranges->stack_size;
    return false;
}

static bool find_in_list(const struct function_index *index, uint64_t pc,
                         struct cairn_function *function)
{
    uint64_t offset = pc - index->base;
    uint32_t next =
        search_u32(index->ranges, sizeof *index->ranges, 0, index->count, offset + UINT64_C(1));
    if (pc < index->base || next == 0)
        return false;
    const struct function_range *range = &index->ranges[next - 1];
    if (offset - range->begin >= range->size)
        return false;
    *function = (struct cairn_function){
        .address = index->base + (uint64_t)(int32_t)range->function,
        .stack_size =
            range->stack_size == RANGE_STACK_DYNAMIC ? CAIRN_STACK_SIZE_DYNAMIC : range->stack_size,
        .first_record = range->first_record,
        .record_count = range->record_count,
        .name = range->name,
    };
    return true;
}

bool function_index_find(const struct function_index *index, uint64_t pc,
                         struct cairn_function *function)
{
    if (index->record_count == FUNCTIONS_LISTED)
        return find_in_list(index, pc, function);
    if (pc - index->base >= index->size)
        return false;
    *function = (struct cairn_function){
        .address = index->base,
        .stack_size =
            index->stack_size == STACK_SIZE_DYNAMIC ? CAIRN_STACK_SIZE_DYNAMIC : index->stack_size,
        .record_count = index->record_count,
        .name = index->name,
    };
    return true;
}
