/*
 * Builds a table of blocks: sorts the ranges, separates those that overlap, and then lays out the
 * blocks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "file/block_builder.h"

#include <stdlib.h>
#include <string.h>

/* A wider gap between ranges begins a new region. */
#define GAP_MAX UINT64_C(0x10000)

enum { SHIFT_MIN = 4 };

/* An address, and the number of the element that was added for it. */
struct placed {
    uint64_t address;
    uint32_t number;
};

/* Temporary data of the build. */
struct work {
    const struct cairn_block_builder *builder;
    const struct added_range *ranges;
    uint32_t range_count;
    uint32_t function_count;
    struct placed *range_places; /* sorted; ranges that lookups do not find come last */
    struct placed *function_places;
    uint32_t *function_numbers; /* from the number of the added function to that in the table */
    uint32_t *first_pieces;     /* for each range with blocks, once they are laid out */
    uint32_t shown_count;
    uint32_t hidden_count;
};

/* ---- Sorting ---- */

static int compare(const void *left, const void *right)
{
    const struct placed *a = left;
    const struct placed *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Sorts the places. Linkers mostly leave them sorted. */
static void sort(struct placed *places, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare(&places[i - 1], &places[i]) > 0) {
            qsort(places, count, sizeof *places, compare);
            return;
        }
}

static void sort_all(struct work *work)
{
    const struct added_function *functions = work->builder->functions.items;
    for (uint32_t i = 0; i < work->range_count; i++)
        work->range_places[i] = (struct placed){work->ranges[i].base, i};
    sort(work->range_places, work->range_count);
    for (uint32_t i = 0; i < work->function_count; i++)
        work->function_places[i] = (struct placed){functions[i].function.address, i};
    sort(work->function_places, work->function_count);
    for (uint32_t i = 0; i < work->function_count; i++)
        work->function_numbers[work->function_places[i].number] = i;
}

/* ---- The ranges that lookups find ---- */

/* Whether lookups find the range. `end` is the end of the ranges before it. */
static bool is_shown(const struct added_range *range, uint64_t end)
{
    return range->end > 0 && range->base >= end && range->base <= UINT64_MAX - range->end;
}

/* Moves the ranges that lookups do not find after the others. Both parts stay sorted. */
static void split(struct work *work, struct placed *space)
{
    uint64_t end = 0;
    uint32_t other_count = 0;
    for (uint32_t i = 0; i < work->range_count; i++) {
        struct placed place = work->range_places[i];
        const struct added_range *range = &work->ranges[place.number];
        if (!is_shown(range, end)) {
            space[other_count++] = place;
            work->hidden_count += range->end > 0;
            continue;
        }
        end = range->base + range->end;
        work->range_places[work->shown_count++] = place;
    }
    if (other_count > 0)
        memcpy(work->range_places + work->shown_count, space, other_count * sizeof *space);
}

/* ---- Lines ---- */

/* The targets of a table's pointers while it is written; NULL while its size is computed. */
struct parts {
    struct line *lines;
    struct region *regions;
    struct packed_function *functions;
    struct piece *pieces;
    uint64_t *columns[COLUMN_COUNT];
    bool has_columns; /* whether any was added */
    uint32_t *buckets;
    uint32_t *bases;
    uint32_t *function_pieces;
    struct wide_block *wide;
};

struct counts {
    uint32_t lines;
    uint32_t shown_lines;
    uint32_t regions;
    uint32_t pieces;
    uint32_t wide;
    size_t buckets;
};

/* Lays out blocks in lines: first without `parts`, to count them, and then with `parts`. */
struct layout {
    const struct work *work;
    const struct parts *parts; /* NULL while only counting */
    struct counts counts;
    uint64_t origin;      /* address that the bases of lines are relative to */
    uint32_t place;       /* of the next block in the last line; LINE_BLOCKS if it begins a new
                           * line */
    uint32_t base;        /* of the last line */
    bool line_has_pieces; /* whether the last line's owner is a piece */
    uint32_t function;    /* of the last block */
};

static struct line *last_line(const struct layout *layout)
{
    return &layout->parts->lines[layout->counts.lines - 1];
}

static uint32_t function_number(const struct layout *layout, const struct added_range *range)
{
    return layout->work->function_numbers[range->function];
}

/* Whether a range can begin in the middle of a line. Its function or piece must have the next
 * number after the line's owners. */
static bool may_join(const struct layout *layout, const struct added_range *range,
                     const struct added_block *block)
{
    if (block->offset != 0)
        return false;
    return layout->line_has_pieces ||
           (range->number == 0 && function_number(layout, range) == layout->function + 1);
}

static void begin_line(struct layout *layout, const struct added_range *range, uint32_t index,
                       uint32_t base)
{
    const struct added_block *block =
        (struct added_block *)layout->work->builder->blocks.items + range->first_block + index;
    layout->counts.lines++;
    layout->place = 0;
    layout->base = base;
    layout->line_has_pieces = range->number != 0;
    if (layout->parts == NULL)
        return;
    *last_line(layout) = (struct line){
        .base = base,
        .owner = layout->line_has_pieces ? (layout->counts.pieces - 1) | OWNER_IS_PIECE
                                         : function_number(layout, range),
        .back = block->offset,
        .index_and_begun = (range->first_index + index) << LINE_BLOCKS,
        .begins = {BEGIN_NONE, BEGIN_NONE, BEGIN_NONE, BEGIN_NONE, BEGIN_NONE, BEGIN_NONE,
                   BEGIN_NONE, BEGIN_NONE},
    };
}

static void begin_piece(struct layout *layout, const struct added_range *range, uint32_t index,
                        uint32_t offset, uint32_t position)
{
    uint32_t number = layout->counts.pieces++;
    if (index == 0)
        layout->work->first_pieces[range - layout->work->ranges] = number;
    if (layout->parts == NULL)
        return;
    layout->parts->pieces[number] = (struct piece){
        .base = range->base,
        .offset = offset,
        .position = position,
        .first_index = range->first_index + index,
        .function = function_number(layout, range),
        .range = range->number,
    };
}

static bool is_wide(const struct added_block *block)
{
    return block->size == 0 || block->size > SIZE_MAX_NARROW || block->id > ID_MAX_NARROW;
}

/* Writes the numbers of the block; `number` is its index among those that were added. */
static void write_columns(const struct layout *layout, uint32_t position, size_t number)
{
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        const struct added_list *added = &layout->work->builder->columns[i];
        if (number < added->count)
            layout->parts->columns[i][position] = ((const uint64_t *)added->items)[number];
    }
}

static void write_block(const struct layout *layout, const struct added_block *block,
                        uint32_t begin, size_t number)
{
    struct line *line = last_line(layout);
    uint32_t position = (layout->counts.lines - 1) * LINE_BLOCKS + layout->place;
    line->begins[layout->place] = (uint16_t)begin;
    uint32_t size = is_wide(block) ? SIZE_WIDE : block->size;
    line->ids[layout->place] = (uint16_t)block->id;
    line->sizes[layout->place] = (uint16_t)(size << SIZE_SHIFT | block->flags);
    if (is_wide(block))
        layout->parts->wide[layout->counts.wide] =
            (struct wide_block){position, block->size, block->id};
    if (layout->parts->has_columns)
        write_columns(layout, position, number);
}

/* Whether the block must begin a new line although the last line has space. Within a range, this
 * begins a new piece. */
static bool is_cut(const struct layout *layout, const struct added_range *range, uint32_t index,
                   const struct added_block *block, uint32_t base)
{
    if (layout->place == LINE_BLOCKS)
        return false;
    return base - layout->base > BEGIN_MAX || (index == 0 && !may_join(layout, range, block));
}

static void add_block(struct layout *layout, const struct added_range *range, uint32_t index)
{
    size_t number = range->first_block + (size_t)index;
    const struct added_block *block =
        (const struct added_block *)layout->work->builder->blocks.items + number;
    uint32_t base = (uint32_t)(range->base + block->offset - layout->origin);
    bool cut = is_cut(layout, range, index, block, base);
    bool is_new_line = cut || layout->place == LINE_BLOCKS;
    if (index == 0 || cut) {
        uint32_t line = is_new_line ? layout->counts.lines : layout->counts.lines - 1;
        begin_piece(layout, range, index, block->offset,
                    line * LINE_BLOCKS + (is_new_line ? 0 : layout->place));
    }
    if (is_new_line)
        begin_line(layout, range, index, base);
    else if (index == 0 && layout->parts != NULL)
        last_line(layout)->index_and_begun |= UINT32_C(1) << (layout->place - 1);
    if (layout->parts != NULL)
        write_block(layout, block, base - layout->base, number);
    layout->counts.wide += is_wide(block);
    layout->function = function_number(layout, range);
    layout->place++;
}

static void add_blocks(struct layout *layout, const struct added_range *range)
{
    for (uint32_t i = 0; i < range->block_count; i++)
        add_block(layout, range, i);
}

/* ---- Regions ---- */

static const struct added_range *placed_range(const struct work *work, uint32_t place)
{
    return &work->ranges[work->range_places[place].number];
}

/* The range places of a region. */
struct stretch {
    uint32_t first;
    uint32_t end;
    uint64_t begin_address;
    uint64_t end_address;
};

static bool continues(const struct stretch *stretch, const struct added_range *range)
{
    return range->base - stretch->end_address <= GAP_MAX &&
           range->base + range->end - stretch->begin_address <= UINT32_MAX;
}

static struct stretch next_stretch(const struct work *work, uint32_t first)
{
    const struct added_range *range = placed_range(work, first);
    struct stretch stretch = {.first = first, .end = first, .begin_address = range->base};
    do {
        stretch.end_address = range->base + range->end;
        if (++stretch.end == work->shown_count)
            break;
        range = placed_range(work, stretch.end);
    } while (continues(&stretch, range));
    return stretch;
}

/* Returns the shift that makes about as many buckets as lines. */
static uint32_t shift_for(uint32_t span, uint32_t line_count)
{
    uint32_t shift = SHIFT_MIN;
    while (span >> shift > line_count)
        shift++;
    return shift;
}

static void fill_buckets(const struct layout *layout, const struct region *region,
                         uint32_t first_line, uint32_t bucket_count)
{
    const uint32_t *bases = layout->parts->bases + region->padding;
    uint32_t *buckets = layout->parts->buckets + region->first_bucket;
    uint32_t line = first_line;
    for (uint32_t i = 0; i + 1 < bucket_count; i++) {
        uint64_t begin = (uint64_t)i << region->shift;
        while (line + 1 < layout->counts.lines && bases[line + 1] <= begin)
            line++;
        buckets[i] = line;
    }
    buckets[bucket_count - 1] = layout->counts.lines - 1;
}

static void fill_region(const struct layout *layout, const struct region *region,
                        uint32_t first_line, uint32_t bucket_count)
{
    uint32_t *bases = layout->parts->bases + region->padding;
    for (uint32_t i = first_line; i < layout->counts.lines; i++)
        bases[i] = layout->parts->lines[i].base;
    for (uint32_t i = 0; i < BASES_PADDING; i++)
        bases[layout->counts.lines + i] = UINT32_MAX;
    layout->parts->regions[layout->counts.regions] = *region;
    fill_buckets(layout, region, first_line, bucket_count);
}

static void add_region(struct layout *layout, const struct stretch *stretch)
{
    uint32_t first_line = layout->counts.lines;
    layout->origin = stretch->begin_address;
    layout->place = LINE_BLOCKS;
    for (uint32_t i = stretch->first; i < stretch->end; i++)
        add_blocks(layout, placed_range(layout->work, i));
    struct region region = {
        .begin = stretch->begin_address,
        .span = (uint32_t)(stretch->end_address - stretch->begin_address),
        .first_bucket = (uint32_t)layout->counts.buckets,
        .padding = layout->counts.regions * BASES_PADDING,
    };
    region.shift = shift_for(region.span, layout->counts.lines - first_line);
    uint32_t bucket_count = ((region.span - 1) >> region.shift) + 2;
    if (layout->parts != NULL)
        fill_region(layout, &region, first_line, bucket_count);
    layout->counts.buckets += bucket_count;
    layout->counts.regions++;
}

static struct counts lay_out(const struct work *work, const struct parts *parts)
{
    struct layout layout = {.work = work, .parts = parts, .place = LINE_BLOCKS};
    for (uint32_t place = 0; place < work->shown_count;) {
        struct stretch stretch = next_stretch(work, place);
        add_region(&layout, &stretch);
        place = stretch.end;
    }
    layout.counts.shown_lines = layout.counts.lines;
    layout.origin = 0;
    layout.place = LINE_BLOCKS;
    for (uint32_t i = work->shown_count; i < work->range_count; i++)
        add_blocks(&layout, placed_range(work, i));
    return layout.counts;
}

/* ---- Functions ---- */

static void fill_functions(const struct work *work, struct packed_function *functions)
{
    const struct added_function *added = work->builder->functions.items;
    for (uint32_t i = 0; i < work->function_count; i++) {
        const struct cairn_block_function *function =
            &added[work->function_places[i].number].function;
        functions[i] = (struct packed_function){
            .address = function->address,
            .entry_count = function->entry_count,
            .range_count = function->range_count,
            .block_count = function->block_count,
            .features = function->features,
        };
    }
}

/* Appends the pieces of a range, which are consecutive, to its function's pieces. */
static void add_range_pieces(const struct work *work, const struct parts *parts, uint32_t range,
                             uint32_t piece_count, struct packed_function *function)
{
    const struct added_range *added = &work->ranges[range];
    uint32_t number = work->function_numbers[added->function];
    uint32_t piece = work->first_pieces[range];
    for (; piece < piece_count; piece++) {
        const struct piece *next = &parts->pieces[piece];
        if (next->function != number || next->range != added->number)
            break;
        parts->function_pieces[function->first_piece + function->piece_count++] = piece;
    }
}

/* Lists the pieces of each function in the order of its blocks. This is the order in which its
 * ranges were added, one after the other. */
static void fill_function_pieces(const struct work *work, const struct parts *parts,
                                 uint32_t piece_count)
{
    const struct added_function *added = work->builder->functions.items;
    uint32_t first = 0;
    for (uint32_t i = 0; i < work->function_count; i++) {
        const struct added_function *from = &added[work->function_places[i].number];
        struct packed_function *function = &parts->functions[i];
        function->first_piece = first;
        for (uint32_t k = 0; k < from->function.range_count; k++)
            if (work->ranges[from->first_range + k].block_count > 0)
                add_range_pieces(work, parts, from->first_range + k, piece_count, function);
        first += function->piece_count;
    }
}

/* ---- The allocation ---- */

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

/* Takes the parts. The lines come first, then arrays that must be aligned to eight bytes, then the
 * others. */
static void take_parts(const struct work *work, const struct counts *counts, struct space *space,
                       struct parts *parts)
{
    size_t positions = (size_t)counts->lines * LINE_BLOCKS;
    size_t bases = counts->shown_lines + (size_t)counts->regions * BASES_PADDING;
    parts->lines = take(space, counts->lines, sizeof *parts->lines);
    parts->regions = take(space, counts->regions, sizeof *parts->regions);
    parts->functions = take(space, work->function_count, sizeof *parts->functions);
    parts->pieces = take(space, counts->pieces, sizeof *parts->pieces);
    parts->has_columns = false;
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        bool is_added = work->builder->columns[i].count > 0;
        parts->columns[i] = is_added ? take(space, positions, sizeof *parts->columns[i]) : NULL;
        parts->has_columns |= is_added;
    }
    parts->buckets = take(space, counts->buckets, sizeof *parts->buckets);
    parts->bases = take(space, bases, sizeof *parts->bases);
    parts->function_pieces = take(space, counts->pieces, sizeof *parts->function_pieces);
    parts->wide = take(space, counts->wide, sizeof *parts->wide);
}

static void fill(const struct work *work, const struct parts *parts, cairn_block_table *table)
{
    fill_functions(work, parts->functions);
    struct counts counts = lay_out(work, parts);
    fill_function_pieces(work, parts, counts.pieces);
    table->region_count = counts.regions;
    table->function_count = work->function_count;
    table->block_count = (uint32_t)work->builder->blocks.count;
    table->hidden_count = work->hidden_count;
    table->wide_count = counts.wide;
    table->regions = parts->regions;
    table->buckets = parts->buckets;
    table->bases = parts->bases;
    table->lines = parts->lines;
    table->pieces = parts->pieces;
    table->functions = parts->functions;
    table->function_pieces = parts->function_pieces;
    table->wide = parts->wide;
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        table->columns[i] = parts->columns[i];
}

static enum cairn_status make_table(const struct work *work, cairn_block_table **table,
                                    struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &work->builder->allocator;
    struct counts counts = lay_out(work, NULL);
    struct parts parts;
    struct space space = {.used = sizeof **table + LINE_BYTES};
    take_parts(work, &counts, &space, &parts);
    size_t size = space.used;
    cairn_block_table *made = memory_new(allocator, 1, size);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu blocks",
                         work->builder->blocks.count);
    size_t lines = sizeof *made + (-((uintptr_t)made + sizeof *made) & (LINE_BYTES - 1));
    space = (struct space){.base = (uint8_t *)made, .used = lines};
    take_parts(work, &counts, &space, &parts);
    made->allocator = *allocator;
    made->size = size;
    fill(work, &parts, made);
    *table = made;
    return CAIRN_OK;
}

/* ---- Building ---- */

static struct placed *take_work(struct work *work, struct space *space)
{
    work->range_places = take(space, work->range_count, sizeof(struct placed));
    struct placed *others = take(space, work->range_count, sizeof(struct placed));
    work->function_places = take(space, work->function_count, sizeof(struct placed));
    work->function_numbers = take(space, work->function_count, sizeof(uint32_t));
    work->first_pieces = take(space, work->range_count, sizeof(uint32_t));
    return others;
}

enum cairn_status cairn_block_builder_finish(cairn_block_builder *builder,
                                             cairn_block_table **table, struct cairn_error *error)
{
    if (builder == NULL || table == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_block_builder_finish needs a builder and a place for the table");
    struct work work = {
        .builder = builder,
        .ranges = builder->ranges.items,
        .range_count = (uint32_t)builder->ranges.count,
        .function_count = (uint32_t)builder->functions.count,
    };
    struct space space = {0};
    (void)take_work(&work, &space);
    if (space.used == 0)
        return make_table(&work, table, error);
    size_t size = space.used;
    space = (struct space){.base = memory_new(&builder->allocator, 1, size)};
    if (space.base == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %u ranges",
                         work.range_count);
    struct placed *others = take_work(&work, &space);
    sort_all(&work);
    split(&work, others);
    enum cairn_status status = make_table(&work, table, error);
    memory_free(&builder->allocator, space.base, size);
    return status;
}
