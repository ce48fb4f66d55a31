/*
 * Builds a table: the fast way, or the general way if the input requires it. Then makes the parts
 * that need all records, and shrinks the table to its size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "record/builder.h"
#include "record/table.h"

#include <string.h>

/* ---- Finishing ---- */

static void keep_wide_stack_sizes(struct builder *builder)
{
    cairn_table *table = builder->table;
    if (!builder->stack_sizes_are_wide)
        return;
    if ((uintptr_t)builder->next_word % sizeof *table->wide_stack_sizes != 0)
        builder_take_words(builder, 1);
    size_t size = table->function_count * sizeof *table->wide_stack_sizes;
    table->wide_stack_sizes =
        (uint64_t *)(void *)builder_take_words(builder, size / sizeof(uint32_t));
    memcpy(table->wide_stack_sizes, builder->wide_stack_sizes, size);
}

static void keep_owners(struct builder *builder)
{
    cairn_table *table = builder->table;
    if (builder->record_owners == NULL)
        return;
    table->record_owners = builder_take_words(builder, table->record_count);
    memcpy(table->record_owners, builder->record_owners,
           table->record_count * sizeof *table->record_owners);
    if ((uintptr_t)builder->next_word % _Alignof(struct table_owner) != 0)
        builder_take_words(builder, 1);
    size_t size = builder->owner_count * sizeof *table->owners;
    table->owners =
        (struct table_owner *)(void *)builder_take_words(builder, size / sizeof(uint32_t));
    memcpy(table->owners, builder->owners, size);
}

#define MOVED(pointer) ((void *)((uintptr_t)(pointer) + distance))

static void relocate(cairn_table *table, uintptr_t distance)
{
    table->ids_low = MOVED(table->ids_low);
    table->ids_high = table->ids_high == NULL ? NULL : MOVED(table->ids_high);
    table->constants = MOVED(table->constants);
    table->stack_sizes = MOVED(table->stack_sizes);
    table->wide_stack_sizes =
        table->wide_stack_sizes == NULL ? NULL : MOVED(table->wide_stack_sizes);
    table->record_owners = table->record_owners == NULL ? NULL : MOVED(table->record_owners);
    table->owners = table->owners == NULL ? NULL : MOVED(table->owners);
    table->value_starts = MOVED(table->value_starts);
    table->address_buckets = MOVED(table->address_buckets);
    table->id_buckets = MOVED(table->id_buckets);
    table->id_order = table->id_order == NULL ? NULL : MOVED(table->id_order);
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
    struct cairn_allocator allocator = table->allocator;
    cairn_table *cut;
    if (table->size_bytes > SMALL) {
        uintptr_t before = (uintptr_t)table;
        cut = memory_resize(&allocator, table, builder->capacity_bytes, table->size_bytes);
        if (cut == NULL) /* allocators must not fail here, but the old block is still valid */
            return CAIRN_OK;
        relocate(cut, (uintptr_t)cut - before);
        builder->table = cut;
        return CAIRN_OK;
    }
    cut = memory_resize(&allocator, NULL, 0, table->size_bytes);
    if (cut == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu bytes",
                         table->size_bytes);
    memcpy(cut, table, table->size_bytes);
    relocate(cut, (uintptr_t)cut - (uintptr_t)table);
    memory_free(&allocator, table, builder->capacity_bytes);
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
    keep_wide_stack_sizes(builder);
    keep_owners(builder);
    builder_free_owners(builder);
    table->size_bytes = (size_t)((uint8_t *)builder->next_word - (uint8_t *)table);
    return cut_to_size(builder, error);
}

static enum cairn_status build(struct builder builder, cairn_table **table,
                               struct cairn_error *error)
{
    if (table == NULL || (builder.sections == NULL && builder.section_count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_table_create needs sections and a place for the table");
    enum cairn_status status = builder_add_sections(&builder, error);
    if (status == BUILDER_NEEDS_SORTING) {
        builder_discard(&builder);
        status = builder_add_sorted(&builder, error);
    }
    if (status == CAIRN_OK)
        status = finish(&builder, error);
    if (status != CAIRN_OK) {
        builder_discard(&builder);
        return status;
    }
    *table = builder.table;
    return CAIRN_OK;
}

enum cairn_status table_create_padded(const struct cairn_section *sections, size_t section_count,
                                      const struct cairn_allocator *allocator, cairn_table **table,
                                      struct cairn_error *error)
{
    return build((struct builder){.sections = sections,
                                  .section_count = section_count,
                                  .allocator = memory_allocator(allocator),
                                  .zeros_may_follow = true},
                 table, error);
}

enum cairn_status cairn_table_create(const struct cairn_section *sections, size_t section_count,
                                     const struct cairn_allocator *allocator, cairn_table **table,
                                     struct cairn_error *error)
{
    return build((struct builder){.sections = sections,
                                  .section_count = section_count,
                                  .allocator = memory_allocator(allocator)},
                 table, error);
}

void cairn_table_destroy(cairn_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size_bytes);
}
