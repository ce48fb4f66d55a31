/*
 * Adds functions to a future table of blocks.
 *
 * Each list grows before anything is appended to it. If a function fails, its elements are removed
 * by restoring the lists' counts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/block_builder.h"

#include "base/error.h"
#include "base/memory.h"

/* Positions have 32 bits, and a block takes at most one line. */
#define COUNT_MAX (UINT32_MAX / LINE_BLOCKS - 1)

enum { FIRST_CAPACITY = 64 };

/* ORDER COLUMNS */
static const uint16_t column_features[] = {
    [COLUMN_FREQUENCY] = CAIRN_BBMAP_FREQUENCIES,
    [COLUMN_POST_LINK_FREQUENCY] = CAIRN_BBMAP_POST_LINK,
    [COLUMN_HASH] = CAIRN_BBMAP_HASHES,
};
_Static_assert(sizeof column_features / sizeof *column_features == COLUMN_COUNT,
               "one feature for each column");

/* ---- Lists ---- */

static enum cairn_status reserve(struct cairn_block_builder *builder, struct added_list *list,
                                 size_t more, size_t item_bytes, struct cairn_error *error)
{
    if (list->capacity - list->count >= more)
        return CAIRN_OK;
    size_t capacity = list->capacity + list->capacity / 2 + FIRST_CAPACITY;
    if (capacity - list->count < more)
        capacity = list->count + more;
    void *items = memory_resize(&builder->allocator, list->items, list->capacity * item_bytes,
                                capacity * item_bytes);
    if (items == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu blocks",
                         builder->blocks.count);
    list->items = items;
    list->capacity = capacity;
    return CAIRN_OK;
}

static void release(struct cairn_block_builder *builder, struct added_list *list, size_t item_bytes)
{
    memory_free(&builder->allocator, list->items, list->capacity * item_bytes);
}

static enum cairn_status reserve_for(struct cairn_block_builder *builder,
                                     const struct cairn_bbmap_function *function,
                                     struct cairn_error *error)
{
    size_t blocks = (size_t)function->block_count;
    enum cairn_status status =
        reserve(builder, &builder->functions, 1, sizeof(struct added_function), error);
    if (status == CAIRN_OK)
        status = reserve(builder, &builder->ranges, function->range_count,
                         sizeof(struct added_range), error);
    if (status == CAIRN_OK)
        status = reserve(builder, &builder->blocks, blocks, sizeof(struct added_block), error);
    for (unsigned i = 0; i < COLUMN_COUNT && status == CAIRN_OK; i++) {
        size_t missing = builder->blocks.count - builder->columns[i].count;
        if ((function->features & column_features[i]) != 0)
            status =
                reserve(builder, &builder->columns[i], missing + blocks, sizeof(uint64_t), error);
    }
    return status;
}

/* ---- Adding a function ---- */

static enum cairn_status check_counts(const struct cairn_block_builder *builder,
                                      const struct cairn_bbmap_function *function,
                                      struct cairn_error *error)
{
    if (function->block_count > FUNCTION_BLOCKS_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, function->offset,
                         "the map of the function at 0x%llx has more than %d blocks",
                         (unsigned long long)function->address, FUNCTION_BLOCKS_MAX);
    if (function->block_count <= COUNT_MAX - builder->blocks.count &&
        function->range_count <= COUNT_MAX - builder->ranges.count)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, function->offset,
                     "a table cannot have more than %u blocks or ranges", COUNT_MAX);
}

static enum cairn_status add_block(struct cairn_block_builder *builder,
                                   const struct cairn_bbmap_function *function,
                                   const struct cairn_bbmap_block *block, struct added_range *range,
                                   struct cairn_error *error)
{
    if (block->offset < range->end)
        return error_set(error, CAIRN_ERROR_CORRUPT, function->offset,
                         "the map of the function at 0x%llx, block %llu: it begins before the end "
                         "of the one before it",
                         (unsigned long long)function->address, (unsigned long long)block->index);
    struct added_block *blocks = builder->blocks.items;
    blocks[builder->blocks.count++] = (struct added_block){
        .offset = block->offset, .size = block->size, .id = block->id, .flags = block->flags};
    range->end = block->offset + block->size;
    return CAIRN_OK;
}

/* Adds a number of the block that was added last. */
static void add_to_column(struct cairn_block_builder *builder, struct added_list *column,
                          uint64_t number)
{
    uint64_t *numbers = column->items;
    while (column->count + 1 < builder->blocks.count)
        numbers[column->count++] = 0;
    numbers[column->count++] = number;
}

static void add_columns(struct cairn_block_builder *builder, uint16_t features,
                        const struct cairn_bbmap_block *block)
{
    const uint64_t numbers[COLUMN_COUNT] = {
        [COLUMN_FREQUENCY] = block->frequency,
        [COLUMN_POST_LINK_FREQUENCY] = block->post_link_frequency,
        [COLUMN_HASH] = block->hash,
    };
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        if ((features & column_features[i]) != 0)
            add_to_column(builder, &builder->columns[i], numbers[i]);
}

/* The state while a function is added. */
struct adding {
    const struct cairn_bbmap_function *function;
    cairn_block_place *place;
    void *user;
    struct cairn_bbmap_block block;
    uint32_t index; /* of the next block */
};

static enum cairn_status add_range(struct cairn_block_builder *builder, struct adding *adding,
                                   const struct cairn_bbmap_range *range, struct cairn_error *error)
{
    const struct cairn_bbmap_function *function = adding->function;
    uint64_t base = adding->place == NULL ? range->base
                                          : adding->place(adding->user, range->offset, range->base);
    struct added_range added = {
        .base = base,
        .first_block = (uint32_t)builder->blocks.count,
        .block_count = range->block_count,
        .function = (uint32_t)builder->functions.count,
        .number = range->index,
        .first_index = adding->index,
    };
    for (uint32_t i = 0; i < range->block_count; i++) {
        enum cairn_status status = add_block(builder, function, &adding->block, &added, error);
        if (status != CAIRN_OK)
            return status;
        if ((function->features &
             (CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_POST_LINK | CAIRN_BBMAP_HASHES)) != 0)
            add_columns(builder, function->features, &adding->block);
        (void)cairn_bbmap_next(function, &adding->block);
    }
    adding->index += range->block_count;
    ((struct added_range *)builder->ranges.items)[builder->ranges.count++] = added;
    return CAIRN_OK;
}

static enum cairn_status add_ranges(struct cairn_block_builder *builder, struct adding *adding,
                                    struct cairn_error *error)
{
    struct cairn_bbmap_range range;
    (void)cairn_bbmap_first(adding->function, &adding->block);
    cairn_bbmap_first_range(adding->function, &range);
    do {
        enum cairn_status status = add_range(builder, adding, &range, error);
        if (status != CAIRN_OK)
            return status;
    } while (cairn_bbmap_next_range(adding->function, &range));
    return CAIRN_OK;
}

static void add_function(struct cairn_block_builder *builder,
                         const struct cairn_bbmap_function *function)
{
    const struct added_range *ranges = builder->ranges.items;
    uint32_t first_range = (uint32_t)(builder->ranges.count - function->range_count);
    struct added_function *functions = builder->functions.items;
    functions[builder->functions.count++] = (struct added_function){
        .function = {.address = ranges[first_range].base,
                     .range_count = function->range_count,
                     .block_count = (uint32_t)function->block_count,
                     .features = function->features,
                     .entry_count = function->entry_count},
        .first_range = first_range,
    };
}

enum cairn_status cairn_block_builder_add(cairn_block_builder *builder,
                                          const struct cairn_bbmap_function *function,
                                          cairn_block_place *place, void *user,
                                          struct cairn_error *error)
{
    if (builder == NULL || function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_block_builder_add needs a builder and a function");
    enum cairn_status status = check_counts(builder, function, error);
    if (status == CAIRN_OK)
        status = reserve_for(builder, function, error);
    if (status != CAIRN_OK)
        return status;
    size_t range_count = builder->ranges.count;
    size_t block_count = builder->blocks.count;
    size_t column_counts[COLUMN_COUNT];
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        column_counts[i] = builder->columns[i].count;
    struct adding adding = {.function = function, .place = place, .user = user};
    status = add_ranges(builder, &adding, error);
    if (status == CAIRN_OK) {
        add_function(builder, function);
        return CAIRN_OK;
    }
    builder->ranges.count = range_count;
    builder->blocks.count = block_count;
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        builder->columns[i].count = column_counts[i];
    return status;
}

enum cairn_status cairn_block_builder_add_section(cairn_block_builder *builder,
                                                  const struct cairn_section *section,
                                                  enum cairn_bbmap_encoding encoding,
                                                  cairn_block_place *place, void *user,
                                                  struct cairn_error *error)
{
    if (builder == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_block_builder_add_section needs a builder and a section");
    size_t offset = 0;
    while (offset < section->size) {
        struct cairn_bbmap_function function;
        enum cairn_status status = cairn_bbmap_read(section, encoding, &offset, &function, error);
        if (status == CAIRN_OK)
            status = cairn_block_builder_add(builder, &function, place, user, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- The builder ---- */

enum cairn_status cairn_block_builder_create(const struct cairn_allocator *allocator,
                                             cairn_block_builder **builder,
                                             struct cairn_error *error)
{
    if (builder == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_block_builder_create needs a place for the builder");
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_block_builder *created = memory_new(&chosen, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a builder of blocks");
    created->allocator = chosen;
    *builder = created;
    return CAIRN_OK;
}

void cairn_block_builder_destroy(cairn_block_builder *builder)
{
    if (builder == NULL)
        return;
    release(builder, &builder->functions, sizeof(struct added_function));
    release(builder, &builder->ranges, sizeof(struct added_range));
    release(builder, &builder->blocks, sizeof(struct added_block));
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        release(builder, &builder->columns[i], sizeof(uint64_t));
    struct cairn_allocator allocator = builder->allocator;
    memory_free(&allocator, builder, sizeof *builder);
}
