/*
 * Builds tables of blocks. A builder collects functions, ranges and blocks in the order in which
 * they are added. Building a table sorts the ranges, separates those that overlap, and then lays
 * out the blocks: once to count, and once to write.
 *
 * The builder's lists grow before a function is added. If the function fails, its elements are
 * removed by restoring the lists' counts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "file/block_table.h"
#include "file/sorted.h"

#include <string.h>

/* Positions have 32 bits, and a block takes at most one line. */
#define COUNT_MAX (UINT32_MAX / LINE_BLOCKS - 1)

/* A wider gap between ranges begins a new region. */
#define GAP_MAX UINT64_C(0x10000)

enum { SHIFT_MIN = 4 };

/* ORDER COLUMNS */
static const uint16_t column_features[] = {
    [COLUMN_FREQUENCY] = CAIRN_BBMAP_FREQUENCIES,
    [COLUMN_POST_LINK_FREQUENCY] = CAIRN_BBMAP_POST_LINK,
    [COLUMN_HASH] = CAIRN_BBMAP_HASHES,
};
_Static_assert(sizeof column_features / sizeof *column_features == COLUMN_COUNT,
               "one feature for each column");
enum { COLUMN_FEATURES = CAIRN_BBMAP_FREQUENCIES | CAIRN_BBMAP_POST_LINK | CAIRN_BBMAP_HASHES };

/* An added block. */
struct added_block {
    uint32_t offset; /* from the range's base */
    uint32_t size;
    uint32_t id;
    uint8_t flags;
};

/* A range of blocks. The blocks of a range are adjacent and in ascending order, and so are the
 * ranges of a function. */
struct added_range {
    uint64_t base;
    uint32_t first_block;
    uint32_t block_count;
    uint32_t function;
    uint32_t number;      /* among the function's ranges */
    uint32_t first_index; /* of its first block, among the function's blocks */
    uint32_t end;         /* end of its last block, from the base */
};

struct added_function {
    struct cairn_block_function function; /* without `index` */
    uint32_t first_range;
};

/* An array that grows. */
struct added_list {
    void *items;
    size_t item_bytes;
    size_t capacity;
    size_t count;
};

struct cairn_block_builder {
    struct cairn_allocator allocator;
    struct added_list functions;             /* struct added_function */
    struct added_list ranges;                /* struct added_range */
    struct added_list blocks;                /* struct added_block */
    struct added_list columns[COLUMN_COUNT]; /* uint64_t; blocks after the last entry have 0 */
};

/* ---- The builder ---- */

enum cairn_status cairn_block_builder_create(const struct cairn_allocator *allocator,
                                             cairn_block_builder **builder,
                                             struct cairn_error *error)
{
    if (builder == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_block_builder_create: `builder` is NULL");
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_block_builder *created = memory_new(&chosen, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a builder of blocks");
    created->allocator = chosen;
    created->functions.item_bytes = sizeof(struct added_function);
    created->ranges.item_bytes = sizeof(struct added_range);
    created->blocks.item_bytes = sizeof(struct added_block);
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        created->columns[i].item_bytes = sizeof(uint64_t);
    *builder = created;
    return CAIRN_OK;
}

static void release(const struct cairn_allocator *allocator, const struct added_list *list)
{
    memory_free(allocator, list->items, list->capacity * list->item_bytes);
}

void cairn_block_builder_destroy(cairn_block_builder *builder)
{
    if (builder == NULL)
        return;
    struct cairn_allocator allocator = builder->allocator;
    release(&allocator, &builder->functions);
    release(&allocator, &builder->ranges);
    release(&allocator, &builder->blocks);
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        release(&allocator, &builder->columns[i]);
    memory_free(&allocator, builder, sizeof *builder);
}

/* ---- Adding a function ---- */

static bool reserve(const struct cairn_block_builder *builder, struct added_list *list, size_t more)
{
    if (more == 0)
        return true;
    void *items = array_reserve(&builder->allocator, list->items, list->count, more,
                                &list->capacity, list->item_bytes);
    if (items != NULL)
        list->items = items;
    return items != NULL;
}

static enum cairn_status reserve_for(struct cairn_block_builder *builder,
                                     const struct cairn_bbmap_function *function,
                                     struct cairn_error *error)
{
    if (function->block_count > FUNCTION_BLOCKS_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, function->offset,
                         "the map of the function at 0x%llx has more than %d blocks",
                         (unsigned long long)function->address, FUNCTION_BLOCKS_MAX);
    if (function->block_count > COUNT_MAX - builder->blocks.count ||
        function->range_count > COUNT_MAX - builder->ranges.count)
        return error_set(error, CAIRN_ERROR_RANGE, function->offset,
                         "a table cannot have more than %u blocks or ranges", COUNT_MAX);
    size_t blocks = (size_t)function->block_count;
    bool is_reserved = reserve(builder, &builder->functions, 1) &&
                       reserve(builder, &builder->ranges, function->range_count) &&
                       reserve(builder, &builder->blocks, blocks);
    for (unsigned i = 0; i < COLUMN_COUNT && is_reserved; i++) {
        size_t missing = builder->blocks.count - builder->columns[i].count;
        if ((function->features & column_features[i]) != 0)
            is_reserved = reserve(builder, &builder->columns[i], missing + blocks);
    }
    if (is_reserved)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu blocks",
                     builder->blocks.count);
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
    if ((function->features & COLUMN_FEATURES) == 0)
        return CAIRN_OK;
    const uint64_t numbers[COLUMN_COUNT] = {
        [COLUMN_FREQUENCY] = block->frequency,
        [COLUMN_POST_LINK_FREQUENCY] = block->post_link_frequency,
        [COLUMN_HASH] = block->hash,
    };
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        struct added_list *column = &builder->columns[i];
        uint64_t *items = column->items;
        if ((function->features & column_features[i]) == 0)
            continue;
        while (column->count + 1 < builder->blocks.count)
            items[column->count++] = 0;
        items[column->count++] = numbers[i];
    }
    return CAIRN_OK;
}

static enum cairn_status add_ranges(struct cairn_block_builder *builder,
                                    const struct cairn_bbmap_function *function,
                                    cairn_block_place *place, void *user, struct cairn_error *error)
{
    struct added_range *ranges = builder->ranges.items;
    struct cairn_bbmap_block block = {0};
    struct cairn_bbmap_range range = {0};
    uint32_t index = 0;
    while (cairn_bbmap_next_range(function, &range)) {
        struct added_range added = {
            .base = place == NULL ? range.base : place(user, range.offset, range.base),
            .first_block = (uint32_t)builder->blocks.count,
            .block_count = range.block_count,
            .function = (uint32_t)builder->functions.count,
            .number = range.index,
            .first_index = index,
        };
        for (uint32_t i = 0; i < range.block_count && cairn_bbmap_next(function, &block); i++) {
            enum cairn_status status = add_block(builder, function, &block, &added, error);
            if (status != CAIRN_OK)
                return status;
        }
        index += range.block_count;
        ranges[builder->ranges.count++] = added;
    }
    return CAIRN_OK;
}

static enum cairn_status add_function(struct cairn_block_builder *builder,
                                      const struct cairn_bbmap_function *function,
                                      cairn_block_place *place, void *user,
                                      struct cairn_error *error)
{
    enum cairn_status status = reserve_for(builder, function, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_block_builder before = *builder;
    status = add_ranges(builder, function, place, user, error);
    if (status != CAIRN_OK) {
        *builder = before;
        return status;
    }
    const struct added_range *first =
        (const struct added_range *)before.ranges.items + before.ranges.count;
    struct added_function *functions = builder->functions.items;
    functions[builder->functions.count++] = (struct added_function){
        .function = {.address = first->base,
                     .range_count = function->range_count,
                     .block_count = (uint32_t)function->block_count,
                     .features = function->features,
                     .entry_count = function->entry_count},
        .first_range = (uint32_t)before.ranges.count,
    };
    return CAIRN_OK;
}

enum cairn_status cairn_block_builder_add(cairn_block_builder *builder,
                                          const struct cairn_section *section,
                                          enum cairn_bbmap_encoding encoding,
                                          cairn_block_place *place, void *user,
                                          struct cairn_error *error)
{
    if (builder == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_block_builder_add: `%s` is NULL",
                         builder == NULL ? "builder" : "section");
    size_t offset = 0;
    enum cairn_status status = CAIRN_OK;
    while (offset < section->size && status == CAIRN_OK) {
        struct cairn_bbmap_function function;
        status = cairn_bbmap_read(section, encoding, &offset, &function, error);
        if (status == CAIRN_OK)
            status = add_function(builder, &function, place, user, error);
    }
    return status;
}

/* ---- Sorting ---- */

/* An address, and the number of the element that was added for it. */
struct placed {
    uint64_t address;
    uint32_t number;
};

/* Temporary data of the build. */
struct work {
    const struct cairn_block_builder *builder;
    const struct added_function *functions;
    const struct added_range *ranges;
    const struct added_block *blocks;
    uint32_t range_count;
    uint32_t function_count;
    struct placed *range_places; /* sorted; ranges that lookups do not find come last */
    struct placed *other_places; /* space for `sort_all` */
    struct placed *function_places;
    uint32_t *function_numbers; /* from the number of the added function to that in the table */
    uint32_t *first_pieces;     /* for each range with blocks, once they are laid out */
    uint32_t shown_count;
    uint32_t hidden_count;
};

static int compare(const void *left, const void *right)
{
    const struct placed *a = left;
    const struct placed *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Sorts functions and ranges, and moves the ranges that lookups do not find after the others. Both
 * parts stay sorted. */
static void sort_all(struct work *work)
{
    for (uint32_t i = 0; i < work->function_count; i++)
        work->function_places[i] = (struct placed){work->functions[i].function.address, i};
    sorted_make(work->function_places, work->function_count, sizeof(struct placed), compare);
    for (uint32_t i = 0; i < work->function_count; i++)
        work->function_numbers[work->function_places[i].number] = i;
    for (uint32_t i = 0; i < work->range_count; i++)
        work->range_places[i] = (struct placed){work->ranges[i].base, i};
    sorted_make(work->range_places, work->range_count, sizeof(struct placed), compare);
    uint64_t end = 0; /* of the ranges that lookups find */
    uint32_t other_count = 0;
    for (uint32_t i = 0; i < work->range_count; i++) {
        struct placed place = work->range_places[i];
        const struct added_range *range = &work->ranges[place.number];
        if (range->end == 0 || range->base < end || range->base > UINT64_MAX - range->end) {
            work->other_places[other_count++] = place;
            work->hidden_count += range->end > 0;
        } else {
            work->range_places[work->shown_count++] = place;
            end = range->base + range->end;
        }
    }
    if (other_count > 0)
        memcpy(work->range_places + work->shown_count, work->other_places,
               other_count * sizeof *work->other_places);
}

static const struct added_range *placed_range(const struct work *work, uint32_t place)
{
    return &work->ranges[work->range_places[place].number];
}

/* ---- Lines ---- */

struct counts {
    uint32_t lines;
    uint32_t shown_lines;
    uint32_t regions;
    uint32_t pieces;
    uint32_t wide;
    size_t buckets;
};

/* Lays out blocks in lines: first without a table, to count them, and then with the table. */
struct layout {
    const struct work *work;
    cairn_block_table *table; /* NULL while only counting */
    struct counts counts;
    uint64_t origin;      /* address that the bases of lines are relative to */
    uint32_t place;       /* of the next block in the last line; LINE_BLOCKS if it begins a new
                           * line */
    uint32_t base;        /* of the last line */
    bool line_has_pieces; /* whether the last line's owner is a piece */
    uint32_t function;    /* of the last block */
};

static void begin_line(struct layout *layout, const struct added_range *range, uint32_t index,
                       uint32_t base)
{
    layout->place = 0;
    layout->base = base;
    layout->line_has_pieces = range->number != 0;
    uint32_t number = layout->counts.lines++;
    if (layout->table == NULL)
        return;
    layout->table->lines[number] = (struct line){
        .base = base,
        .owner = layout->line_has_pieces ? (layout->counts.pieces - 1) | OWNER_IS_PIECE
                                         : layout->work->function_numbers[range->function],
        .back = layout->work->blocks[range->first_block + index].offset,
        .index_and_begun = (range->first_index + index) << LINE_BLOCKS,
        .begins = {BEGIN_NONE, BEGIN_NONE, BEGIN_NONE, BEGIN_NONE, BEGIN_NONE, BEGIN_NONE,
                   BEGIN_NONE, BEGIN_NONE},
    };
}

static void begin_piece(struct layout *layout, const struct added_range *range, uint32_t index,
                        uint32_t position)
{
    uint32_t number = layout->counts.pieces++;
    if (index == 0)
        layout->work->first_pieces[range - layout->work->ranges] = number;
    if (layout->table == NULL)
        return;
    layout->table->pieces[number] = (struct piece){
        .base = range->base,
        .offset = layout->work->blocks[range->first_block + index].offset,
        .position = position,
        .first_index = range->first_index + index,
        .function = layout->work->function_numbers[range->function],
        .range = range->number,
    };
}

static bool is_wide(const struct added_block *block)
{
    return block->size == 0 || block->size > SIZE_MAX_NARROW || block->id > ID_MAX_NARROW;
}

/* Writes block `number` of those that were added to the last line. */
static void write_block(const struct layout *layout, uint32_t number, uint32_t begin)
{
    cairn_block_table *table = layout->table;
    const struct added_block *block = &layout->work->blocks[number];
    uint32_t place = layout->place;
    struct line *line = &table->lines[layout->counts.lines - 1];
    uint32_t position = (layout->counts.lines - 1) * LINE_BLOCKS + place;
    uint32_t size = is_wide(block) ? SIZE_WIDE : block->size;
    line->begins[place] = (uint16_t)begin;
    line->ids[place] = (uint16_t)block->id;
    line->sizes[place] = (uint16_t)(size << SIZE_SHIFT | block->flags);
    if (is_wide(block))
        table->wide[layout->counts.wide] = (struct wide_block){position, block->size, block->id};
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        const struct added_list *added = &layout->work->builder->columns[i];
        if (number < added->count)
            table->columns[i][position] = ((const uint64_t *)added->items)[number];
    }
}

static void add_range(struct layout *layout, const struct added_range *range)
{
    uint32_t function = layout->work->function_numbers[range->function];
    for (uint32_t index = 0; index < range->block_count; index++) {
        uint32_t number = range->first_block + index;
        const struct added_block *block = &layout->work->blocks[number];
        uint32_t base = (uint32_t)(range->base + block->offset - layout->origin);
        /* A range can begin in the middle of a line if its function or piece has the next number
         * after the line's owners. */
        bool may_join =
            block->offset == 0 &&
            (layout->line_has_pieces || (range->number == 0 && function == layout->function + 1));
        /* A cut begins a new line although the last one has space; within a range, it also begins a
         * new piece. */
        bool is_full = layout->place == LINE_BLOCKS;
        bool is_cut = !is_full && (base - layout->base > BEGIN_MAX || (index == 0 && !may_join));
        bool is_new_line = is_full || is_cut;
        uint32_t next_position = layout->counts.lines * LINE_BLOCKS;
        if (index == 0 || is_cut)
            begin_piece(layout, range, index,
                        is_new_line ? next_position : next_position - LINE_BLOCKS + layout->place);
        if (is_new_line)
            begin_line(layout, range, index, base);
        else if (index == 0 && layout->table != NULL)
            layout->table->lines[layout->counts.lines - 1].index_and_begun |=
                UINT32_C(1) << (layout->place - 1);
        if (layout->table != NULL)
            write_block(layout, number, base - layout->base);
        layout->counts.wide += is_wide(block);
        layout->function = function;
        layout->place++;
    }
}

/* ---- Regions ---- */

static void write_region(const struct layout *layout, const struct region *region,
                         uint32_t first_line, uint32_t bucket_count)
{
    const cairn_block_table *table = layout->table;
    uint32_t end_line = layout->counts.lines;
    uint32_t *bases = table->bases + region->padding;
    uint32_t *buckets = table->buckets + region->first_bucket;
    table->regions[layout->counts.regions] = *region;
    for (uint32_t i = first_line; i < end_line; i++)
        bases[i] = table->lines[i].base;
    for (uint32_t i = 0; i < BASES_PADDING; i++)
        bases[end_line + i] = UINT32_MAX;
    uint32_t line = first_line;
    for (uint32_t i = 0; i + 1 < bucket_count; i++) {
        uint64_t begin = (uint64_t)i << region->shift;
        while (line + 1 < end_line && bases[line + 1] <= begin)
            line++;
        buckets[i] = line;
    }
    buckets[bucket_count - 1] = end_line - 1;
}

/* Lays out the ranges of one region, from `place` on. Returns the place of the next region. */
static uint32_t add_region(struct layout *layout, uint32_t place)
{
    const struct work *work = layout->work;
    const struct added_range *range = placed_range(work, place);
    uint32_t first_line = layout->counts.lines;
    uint64_t begin = range->base;
    uint64_t end;
    layout->origin = begin;
    layout->place = LINE_BLOCKS;
    do {
        add_range(layout, range);
        end = range->base + range->end;
        if (++place == work->shown_count)
            break;
        range = placed_range(work, place);
    } while (range->base - end <= GAP_MAX && range->base + range->end - begin <= UINT32_MAX);
    struct region region = {
        .begin = begin,
        .span = (uint32_t)(end - begin),
        .shift = SHIFT_MIN,
        .first_bucket = (uint32_t)layout->counts.buckets,
        .padding = layout->counts.regions * BASES_PADDING,
    };
    /* There are about as many buckets as lines. */
    while (region.span >> region.shift > layout->counts.lines - first_line)
        region.shift++;
    uint32_t bucket_count = ((region.span - 1) >> region.shift) + 2;
    if (layout->table != NULL)
        write_region(layout, &region, first_line, bucket_count);
    layout->counts.buckets += bucket_count;
    layout->counts.regions++;
    return place;
}

static struct counts lay_out(const struct work *work, cairn_block_table *table)
{
    struct layout layout = {.work = work, .table = table, .place = LINE_BLOCKS};
    uint32_t place = 0;
    while (place < work->shown_count)
        place = add_region(&layout, place);
    layout.counts.shown_lines = layout.counts.lines;
    layout.origin = 0;
    layout.place = LINE_BLOCKS;
    for (; place < work->range_count; place++)
        add_range(&layout, placed_range(work, place));
    return layout.counts;
}

/* ---- Functions ---- */

/* Writes the functions, and lists the pieces of each in the order of its blocks. This is the order
 * in which its ranges were added, one after the other. The pieces of a range are consecutive. */
static void write_functions(const struct work *work, cairn_block_table *table, uint32_t piece_count)
{
    uint32_t end = 0; /* number of pieces that are listed */
    for (uint32_t i = 0; i < work->function_count; i++) {
        const struct added_function *added = &work->functions[work->function_places[i].number];
        const struct added_range *ranges = &work->ranges[added->first_range];
        uint32_t first_piece = end;
        for (uint32_t k = 0; k < added->function.range_count; k++) {
            uint32_t piece = work->first_pieces[added->first_range + k];
            if (ranges[k].block_count == 0)
                continue;
            do
                table->function_pieces[end++] = piece++;
            while (piece < piece_count && table->pieces[piece].function == i &&
                   table->pieces[piece].range == k);
        }
        table->functions[i] = (struct packed_function){
            .address = added->function.address,
            .entry_count = added->function.entry_count,
            .first_piece = first_piece,
            .piece_count = end - first_piece,
            .range_count = added->function.range_count,
            .block_count = added->function.block_count,
            .features = added->function.features,
        };
    }
}

/* ---- The allocations ---- */

/* Memory that is handed out in parts. With a NULL `base`, only the size is computed. */
struct space {
    uint8_t *base;
    size_t used;
};

static void *take(struct space *space, size_t count, size_t size)
{
    void *taken = space->base == NULL ? NULL : space->base + space->used;
    space->used += count * size;
    return taken;
}

/* Takes the arrays of the table. The lines come first, then arrays that must be aligned to eight
 * bytes, then the others. */
static void take_arrays(const struct work *work, const struct counts *counts, struct space *space,
                        cairn_block_table *table)
{
    size_t positions = (size_t)counts->lines * LINE_BLOCKS;
    size_t bases = counts->shown_lines + (size_t)counts->regions * BASES_PADDING;
    table->lines = take(space, counts->lines, sizeof *table->lines);
    table->regions = take(space, counts->regions, sizeof *table->regions);
    table->functions = take(space, work->function_count, sizeof *table->functions);
    table->pieces = take(space, counts->pieces, sizeof *table->pieces);
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        if (work->builder->columns[i].count > 0)
            table->columns[i] = take(space, positions, sizeof *table->columns[i]);
    table->buckets = take(space, counts->buckets, sizeof *table->buckets);
    table->bases = take(space, bases, sizeof *table->bases);
    table->function_pieces = take(space, counts->pieces, sizeof *table->function_pieces);
    table->wide = take(space, counts->wide, sizeof *table->wide);
}

static enum cairn_status make_table(const struct work *work, cairn_block_table **table,
                                    struct cairn_error *error)
{
    struct counts counts = lay_out(work, NULL);
    struct cairn_block_table made = {
        .allocator = work->builder->allocator,
        .region_count = counts.regions,
        .function_count = work->function_count,
        .block_count = (uint32_t)work->builder->blocks.count,
        .hidden_count = work->hidden_count,
        .wide_count = counts.wide,
    };
    struct space space = {.used = sizeof made + LINE_BYTES};
    take_arrays(work, &counts, &space, &made);
    made.size = space.used;
    space.base = memory_new(&made.allocator, 1, made.size);
    if (space.base == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %u blocks",
                         made.block_count);
    space.used = sizeof made + (-((uintptr_t)space.base + sizeof made) & (LINE_BYTES - 1));
    take_arrays(work, &counts, &space, &made);
    *table = (cairn_block_table *)space.base;
    **table = made;
    lay_out(work, *table);
    write_functions(work, *table, counts.pieces);
    return CAIRN_OK;
}

static void take_work(struct work *work, struct space *space)
{
    work->range_places = take(space, work->range_count, sizeof(struct placed));
    work->other_places = take(space, work->range_count, sizeof(struct placed));
    work->function_places = take(space, work->function_count, sizeof(struct placed));
    work->function_numbers = take(space, work->function_count, sizeof(uint32_t));
    work->first_pieces = take(space, work->range_count, sizeof(uint32_t));
}

enum cairn_status cairn_block_builder_finish(cairn_block_builder *builder,
                                             cairn_block_table **table, struct cairn_error *error)
{
    if (builder == NULL || table == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_block_builder_finish: `%s` is NULL",
                         builder == NULL ? "builder" : "table");
    struct work work = {
        .builder = builder,
        .functions = builder->functions.items,
        .ranges = builder->ranges.items,
        .blocks = builder->blocks.items,
        .range_count = (uint32_t)builder->ranges.count,
        .function_count = (uint32_t)builder->functions.count,
    };
    struct space space = {0};
    take_work(&work, &space);
    if (space.used == 0)
        return make_table(&work, table, error);
    size_t size = space.used;
    space = (struct space){.base = memory_new(&builder->allocator, 1, size)};
    if (space.base == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %u ranges",
                         work.range_count);
    take_work(&work, &space);
    sort_all(&work);
    enum cairn_status status = make_table(&work, table, error);
    memory_free(&builder->allocator, space.base, size);
    return status;
}
