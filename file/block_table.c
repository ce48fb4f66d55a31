/*
 * Looks blocks up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/block_table.h"

#include "base/memory.h"
#include "file/sorted.h"

#include <string.h>

void cairn_block_table_destroy(cairn_block_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size);
}

struct cairn_block_table_counts cairn_block_table_counts(const cairn_block_table *table)
{
    return (struct cairn_block_table_counts){
        .functions = table->function_count,
        .blocks = table->block_count,
        .hidden_ranges = table->hidden_count,
        .size_bytes = table->size,
    };
}

/* ---- By PC ---- */

/* Returns the region that contains `pc`, or NULL. */
static inline const struct region *find_region(const cairn_block_table *table, uint64_t pc)
{
    const struct region *first = table->regions;
    uint32_t count = table->region_count;
    while (count > 1) {
        uint32_t half = count / 2;
        first += first[half].begin <= pc ? half : 0;
        count -= half;
    }
    /* If `pc` is before the first region, the difference wraps around to a large number. */
    return count == 1 && pc - first->begin < first->span ? first : NULL;
}

/* Returns the last of the lines from `first` to `last` that begins at or before `offset`. Line
 * `first` does. Lines that begin later, or the padding, follow the last line. */
static inline uint32_t find_line(const uint32_t *bases, uint32_t first, uint32_t last,
                                 uint32_t offset)
{
    while (__builtin_expect(last - first > BASES_PADDING, 0)) {
        uint32_t middle = first + (last - first + 1) / 2;
        if (bases[middle] <= offset)
            first = middle;
        else
            last = middle - 1;
    }
    const uint32_t *next = &bases[first + 1];
    _Static_assert(BASES_PADDING == 4, "as many comparisons");
    first += next[0] <= offset;
    first += next[1] <= offset;
    first += next[2] <= offset;
    first += next[3] <= offset;
    return first;
}

typedef uint16_t begins_vector __attribute__((vector_size(LINE_BLOCKS * sizeof(uint16_t))));
typedef uint64_t halves_vector __attribute__((vector_size(LINE_BLOCKS * sizeof(uint16_t))));

/* Returns the place of the last block in the line that begins at or before `offset`. Computations
 * that wait for the line use vectors, which have a separate queue in processors. */
static inline uint64_t find_place(const struct line *line, uint32_t offset)
{
    uint16_t end = (uint16_t)((offset < BEGIN_MAX ? offset : BEGIN_MAX) + 1);
    begins_vector begins;
    memcpy(&begins, line->begins, sizeof begins);
    /* Keeps only the sign bits: 1 for each block that begins at or before `offset`. */
    _Static_assert(BEGIN_NONE <= INT16_MAX, "differences have a sign");
    halves_vector ones =
        (halves_vector)((begins - (begins_vector){end, end, end, end, end, end, end, end}) >> 15);
    halves_vector sums = ones + (halves_vector){ones[1], ones[0]};
    /* The highest of the four numbers becomes the sum of all. */
    sums += sums << 32;
    sums += sums << 16;
    return (sums >> 48)[0] - 1;
}

static int compare_wide(const void *left, const void *right)
{
    uint32_t a = ((const struct wide_block *)left)->position;
    uint32_t b = ((const struct wide_block *)right)->position;
    return (a > b) - (a < b);
}

/* Returns the size and the ID of a block for which its line has no space. */
static const struct wide_block *find_wide(const cairn_block_table *table, uint32_t position)
{
    struct wide_block key = {.position = position};
    return &table->wide[sorted_lower_bound(table->wide, table->wide_count, sizeof key, &key,
                                           compare_wide)];
}

/* Reads the data of the block in one place of the line. */
static inline void read_place(const cairn_block_table *table, const struct line *line,
                              uint64_t place, uint64_t position, struct cairn_block *block)
{
    uint32_t size = line->sizes[place];
    block->flags = size & ((1 << SIZE_SHIFT) - 1);
    block->size = size >> SIZE_SHIFT;
    block->id = line->ids[place];
    const uint64_t *frequencies = table->columns[COLUMN_FREQUENCY];
    block->frequency = frequencies == NULL ? 0 : frequencies[position];
}

/* Masks for `begun`: the bits of the ranges that begin in a line up to each place. */
static const uint8_t begun_masks[LINE_BLOCKS] = {0x00, 0x01, 0x03, 0x07, 0x0F, 0x1F, 0x3F, 0x7F};

#define NEXT_4(n) (n), (n) + 1, (n) + 1, (n) + 2
#define NEXT_16(n) NEXT_4(n), NEXT_4((n) + 1), NEXT_4((n) + 1), NEXT_4((n) + 2)
#define NEXT_64(n) NEXT_16(n), NEXT_16((n) + 1), NEXT_16((n) + 1), NEXT_16((n) + 2)

/* For each masked value: the number of bits that are set, and the place in which the last of these
 * ranges begins. These are tables because a lookup that waits for its line delays other lookups by
 * its remaining computations. */
static const uint8_t begun_counts[128] = {NEXT_64(0), NEXT_64(1)};

#define TIMES_4(n) n, n, n, n
#define TIMES_16(n) TIMES_4(n), TIMES_4(n), TIMES_4(n), TIMES_4(n)
static const uint8_t begun_lasts[128] = {
    0,           1,           2,           2,           TIMES_4(3),  TIMES_4(4),  TIMES_4(4),
    TIMES_16(5), TIMES_16(6), TIMES_16(6), TIMES_16(7), TIMES_16(7), TIMES_16(7), TIMES_16(7)};

/* Completes a block in a piece; `block->function` holds the piece's number. Returns true. */
static __attribute__((noinline)) bool read_piece(const cairn_block_table *table, bool is_first,
                                                 struct cairn_block *block)
{
    const struct piece *piece = &table->pieces[block->function & ~OWNER_IS_PIECE];
    block->index += is_first ? 0 : piece->first_index;
    block->range = piece->range;
    block->function = piece->function;
    block->function_address = table->functions[piece->function].address;
    return true;
}

/* Finds the function, range and index of the block in `place` of the line, whose first block is at
 * `address`. These come from the last range that begins in the line at or before `place`, or from
 * the first block if there is no such range. Returns true. */
static inline bool read_owner(const cairn_block_table *table, const struct line *line,
                              uint64_t address, uint64_t place, struct cairn_block *block)
{
    uint32_t begun = line->index_and_begun & begun_masks[place];
    uint32_t last = begun_lasts[begun];
    uint32_t if_first = 0 - (uint32_t)(begun < 1);
    uint32_t owner = line->owner + begun_counts[begun];
    block->index = (uint32_t)place - last + (line->index_and_begun >> LINE_BLOCKS & if_first);
    block->range_address = address + line->begins[last] - (line->back & if_first);
    block->range = 0;
    block->function = owner;
    block->function_address = block->range_address;
    if (__builtin_expect((owner & OWNER_IS_PIECE) == 0, 1))
        return true;
    return read_piece(table, if_first != 0, block);
}

/* Completes a lookup whose PC is not in a block with a narrow size. */
static __attribute__((noinline)) bool end_wide(const cairn_block_table *table, uint64_t pc,
                                               uint32_t line_number, uint32_t offset,
                                               struct cairn_block *block)
{
    const struct line *line = &table->lines[line_number];
    uint32_t place = (uint32_t)find_place(line, offset);
    uint32_t position = line_number * LINE_BLOCKS + place;
    uint32_t inside = offset - line->begins[place];
    if (line->sizes[place] >> SIZE_SHIFT != SIZE_WIDE)
        return false;
    const struct wide_block *wide = find_wide(table, position);
    if (inside >= wide->size)
        return false;
    read_place(table, line, place, position, block);
    block->size = wide->size;
    block->id = wide->id;
    block->address = pc - inside;
    return read_owner(table, line, pc - offset, place, block);
}

/* Each step reads memory whose address the step before has found. */
bool cairn_block_table_find(const cairn_block_table *table, uint64_t pc, struct cairn_block *block)
{
    const struct region *region = find_region(table, pc);
    if (region == NULL)
        return false;
    uint32_t offset = (uint32_t)(pc - region->begin);
    const uint32_t *bucket = &table->buckets[region->first_bucket + (offset >> region->shift)];
    /* The line is usually one of these two. */
    __builtin_prefetch(&table->lines[bucket[0]]);
    __builtin_prefetch(&table->lines[bucket[1]]);
    const uint32_t *bases = table->bases + region->padding;
    uint32_t number = find_line(bases, bucket[0], bucket[1], offset);
    /* The line holds the same base, but is not in the cache yet. */
    offset -= bases[number];
    const struct line *line = &table->lines[number];
    uint64_t place = find_place(line, offset);
    uint32_t inside = offset - line->begins[place];
    uint32_t size = line->sizes[place];
    _Static_assert(SIZE_WIDE == 0, "no PC is in such a size");
    if (__builtin_expect(inside >= size >> SIZE_SHIFT, 0))
        return end_wide(table, pc, number, offset, block);
    read_place(table, line, place, (uint64_t)number * LINE_BLOCKS + place, block);
    block->address = pc - inside;
    return read_owner(table, line, pc - offset, place, block);
}

/* ---- Functions ---- */

bool cairn_block_table_function(const cairn_block_table *table, uint32_t index,
                                struct cairn_block_function *function)
{
    if (index >= table->function_count)
        return false;
    const struct packed_function *packed = &table->functions[index];
    *function = (struct cairn_block_function){
        .address = packed->address,
        .index = index,
        .range_count = packed->range_count,
        .block_count = packed->block_count,
        .features = packed->features,
        .entry_count = packed->entry_count,
    };
    return true;
}

/* Returns the last piece of the function whose first block is at or before block `index`, and the
 * block's position; NULL if there is no such block. */
static const struct piece *find_piece(const cairn_block_table *table, uint32_t function_number,
                                      uint32_t index, uint32_t *position)
{
    if (function_number >= table->function_count ||
        index >= table->functions[function_number].block_count)
        return NULL;
    const struct packed_function *function = &table->functions[function_number];
    const uint32_t *numbers = &table->function_pieces[function->first_piece];
    uint32_t count = function->piece_count;
    while (count > 1) {
        uint32_t half = count / 2;
        numbers += table->pieces[numbers[half]].first_index <= index ? half : 0;
        count -= half;
    }
    const struct piece *piece = &table->pieces[*numbers];
    *position = piece->position + (index - piece->first_index);
    return piece;
}

bool cairn_block_table_details(const cairn_block_table *table, uint32_t function, uint32_t index,
                               struct cairn_block_details *details)
{
    uint32_t position;
    if (find_piece(table, function, index, &position) == NULL)
        return false;
    const uint64_t *frequencies = table->columns[COLUMN_POST_LINK_FREQUENCY];
    const uint64_t *hashes = table->columns[COLUMN_HASH];
    *details = (struct cairn_block_details){
        .post_link_frequency = frequencies == NULL ? 0 : frequencies[position],
        .hash = hashes == NULL ? 0 : hashes[position],
    };
    return true;
}

/* Returns where a block begins, from its region's start or from 0. Differences within a piece are
 * correct. */
static uint32_t begin_at(const cairn_block_table *table, uint32_t position)
{
    const struct line *line = &table->lines[position / LINE_BLOCKS];
    return line->base + line->begins[position % LINE_BLOCKS];
}

bool cairn_block_table_block(const cairn_block_table *table, uint32_t function, uint32_t index,
                             struct cairn_block *block)
{
    uint32_t position;
    const struct piece *piece = find_piece(table, function, index, &position);
    if (piece == NULL)
        return false;
    uint32_t distance = begin_at(table, position) - begin_at(table, piece->position);
    const struct line *line = &table->lines[position / LINE_BLOCKS];
    read_place(table, line, position % LINE_BLOCKS, position, block);
    if (__builtin_expect(block->size == SIZE_WIDE, 0)) {
        const struct wide_block *wide = find_wide(table, position);
        block->size = wide->size;
        block->id = wide->id;
    }
    block->address = piece->base + piece->offset + distance;
    block->index = index;
    block->range = piece->range;
    block->function = function;
    block->range_address = piece->base;
    block->function_address = table->functions[function].address;
    return true;
}
