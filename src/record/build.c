/*
 * Builds a table: adds the records in the fast way, or in the general way if the input requires it,
 * makes the parts that need all records, and shrinks the table to its size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "record/builder.h"
#include "record/table.h"

#include <string.h>

/* Copies `size` bytes to their final place, with the alignment of the largest type in a table. */
static void *keep(struct builder *builder, const void *bytes, size_t size)
{
    if ((uintptr_t)builder->next_word % _Alignof(uint64_t) != 0)
        builder_take_words(builder, 1);
    return memcpy(builder_take_words(builder, size / sizeof(uint32_t)), bytes, size);
}

#define MOVED(pointer) ((pointer) == NULL ? NULL : (void *)((uintptr_t)(pointer) + distance))

static void relocate(cairn_table *table, uintptr_t distance)
{
    table->ids_low = MOVED(table->ids_low);
    table->ids_high = MOVED(table->ids_high);
    table->constants = MOVED(table->constants);
    table->stack_sizes = MOVED(table->stack_sizes);
    table->wide_stack_sizes = MOVED(table->wide_stack_sizes);
    table->record_owners = MOVED(table->record_owners);
    table->owners = MOVED(table->owners);
    table->value_starts = MOVED(table->value_starts);
    table->address_buckets = MOVED(table->address_buckets);
    table->id_buckets = MOVED(table->id_buckets);
    table->id_order = MOVED(table->id_order);
    table->functions = MOVED(table->functions);
    table->low = MOVED(table->low);
    table->return_deltas = MOVED(table->return_deltas);
    table->values = MOVED(table->values);
}

/* Shrinks the table. Small tables get a new allocation, so that they do not each keep whole pages.
 * Large ones are shrunk in place. */
static enum cairn_status cut_to_size(struct builder *builder, struct cairn_error *error)
{
    enum { SMALL = 256 << 10 };
    cairn_table *table = builder->table;
    const struct cairn_allocator allocator = table->allocator;
    const size_t size = table->size_bytes;
    const bool is_small = size <= SMALL;
    const uintptr_t before = (uintptr_t)table;
    cairn_table *cut = is_small ? memory_resize(&allocator, NULL, 0, size)
                                : memory_resize(&allocator, table, builder->capacity_bytes, size);
    if (cut == NULL && !is_small) /* allocators must not fail here, but the block is still valid */
        return CAIRN_OK;
    if (cut == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu bytes", size);
    if (is_small) {
        memcpy(cut, table, size);
        memory_free(&allocator, table, builder->capacity_bytes);
    }
    relocate(cut, (uintptr_t)cut - before);
    builder->table = cut;
    return CAIRN_OK;
}

static enum cairn_status finish(struct builder *builder, struct cairn_error *error)
{
    cairn_table *table = builder->table;
    table->record_count = builder->record_count;
    table->function_count = builder->function_count;
    size_t words = (size_t)(builder->next_word - table->values);
    if (words > VALUE_WORD_MASK)
        return error_set(error, CAIRN_ERROR_RANGE, 0,
                         "the records hold more than %u words of locations", VALUE_WORD_MASK);
    table->value_starts[table->record_count] = (uint32_t)words;
    table->value_bytes = words * 4 + (size_t)builder->constant_count * 8;
    memset(table->return_deltas, RETURN_UNKNOWN, table->record_count);
    builder_finish_addresses(builder);
    builder_finish_ids(builder);
    if (builder->stack_sizes_are_wide)
        table->wide_stack_sizes = keep(builder, builder->wide_stack_sizes,
                                       table->function_count * sizeof *table->wide_stack_sizes);
    if (builder->record_owners != NULL) {
        table->record_owners = keep(builder, builder->record_owners,
                                    table->record_count * sizeof *table->record_owners);
        table->owners =
            keep(builder, builder->owners, builder->owner_count * sizeof *table->owners);
    }
    builder_free_owners(builder);
    table->size_bytes = (size_t)((uint8_t *)builder->next_word - (uint8_t *)table);
    return cut_to_size(builder, error);
}

enum cairn_status table_create(const struct cairn_section *sections, size_t section_count,
                               const struct cairn_allocator *allocator, bool zeros_may_follow,
                               cairn_table **table, struct cairn_error *error)
{
    if (table == NULL || (sections == NULL && section_count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_table_create: `%s` is NULL",
                         table == NULL ? "table" : "sections");
    struct builder builder = {.sections = sections,
                              .section_count = section_count,
                              .allocator = memory_allocator(allocator),
                              .zeros_may_follow = zeros_may_follow};
    enum cairn_status status = builder_add_sections(&builder, error);
    if (status == BUILDER_NEEDS_SORTING) {
        builder_discard(&builder);
        status = builder_add_sorted(&builder, error);
    }
    if (status == CAIRN_OK)
        status = finish(&builder, error);
    if (status == CAIRN_OK)
        *table = builder.table;
    else
        builder_discard(&builder);
    return status;
}

enum cairn_status cairn_table_create(const struct cairn_section *sections, size_t section_count,
                                     const struct cairn_allocator *allocator, cairn_table **table,
                                     struct cairn_error *error)
{
    return table_create(sections, section_count, allocator, false, table, error);
}

void cairn_table_destroy(cairn_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size_bytes);
}
