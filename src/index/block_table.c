/*
 * Lookups in a table of blocks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "index/block_table.h"

#include "base/memory.h"

enum { LOOKUPS_AT_ONCE = 32 };

void cairn_block_table_destroy(cairn_block_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size);
}

uint32_t cairn_block_table_function_count(const cairn_block_table *table)
{
    return table->function_count;
}

uint32_t cairn_block_table_block_count(const cairn_block_table *table)
{
    return table->block_count;
}

uint32_t cairn_block_table_hidden_count(const cairn_block_table *table)
{
    return table->hidden_count;
}

size_t cairn_block_table_size_bytes(const cairn_block_table *table) { return table->size; }

/* ---- By PC ---- */

/* The region that `pc` is in; NULL if there is none. */
static inline const struct region *find_region(const cairn_block_table *table, uint64_t pc)
{
    const struct region *first = table->regions;
    uint32_t count = table->region_count;
    while (count > 1) {
        uint32_t half = count / 2;
        first += first[half].begin <= pc ? half : 0;
        count -= half;
    }
    /* Before the first one's begin the difference is large. */
    return count == 1 && pc - first->begin < first->span ? first : NULL;
}

/* Of the lines from `first` to `last`, the first of which begins at or before `offset`, the last
 * one that does. Behind the last one come others that begin later, or the padding. */
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
    const uint32_t *behind = &bases[first + 1];
    uint32_t passed = 0;
    for (int i = 0; i < BASES_PADDING; i++)
        passed += behind[i] <= offset;
    return first + passed;
}

/* The last block of the line that begins at or before `offset`. */
static inline uint32_t find_place(const struct line *line, uint32_t offset)
{
    uint32_t reached = offset < BEGIN_MAX ? offset : BEGIN_MAX;
    uint32_t count = 0;
    for (int i = 0; i < LINE_BLOCKS; i++)
        count += line->begins[i] <= reached;
    return count - 1;
}

static __attribute__((noinline)) const struct wide_block *find_wide(const cairn_block_table *table,
                                                                    uint32_t position)
{
    uint32_t begin = 0;
    uint32_t end = table->wide_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->wide[middle].position < position)
            begin = middle + 1;
        else
            end = middle;
    }
    return &table->wide[begin];
}

static inline uint32_t size_of(const cairn_block_table *table, uint32_t position, uint32_t word)
{
    uint32_t size = word >> WORD_FLAG_BITS & WORD_SIZE_WIDE;
    return __builtin_expect(size == WORD_SIZE_WIDE, 0) ? find_wide(table, position)->size : size;
}

/* What a block's word says. */
static inline void read_word(const cairn_block_table *table, uint32_t position, uint32_t word,
                             struct cairn_block *block)
{
    block->flags = word & ((1 << WORD_FLAG_BITS) - 1);
    block->size = word >> WORD_FLAG_BITS & WORD_SIZE_WIDE;
    block->id = word >> WORD_ID_SHIFT;
    if (__builtin_expect(block->size == WORD_SIZE_WIDE, 0)) {
        const struct wide_block *wide = find_wide(table, position);
        block->size = wide->size;
        block->id = wide->id;
    }
    block->frequency = table->frequencies == NULL ? 0 : table->frequencies[position];
}

/* How many of eight bits are set. */
static inline uint32_t count_bits(uint32_t bits)
{
    bits -= bits >> 1 & 0x55;
    bits = (bits & 0x33) + (bits >> 2 & 0x33);
    return (bits + (bits >> 4)) & 0xF;
}

/* Which function, and which of its ranges and blocks: of the block in `place` of the line. Where no
 * range begins up to there it is the first block's, otherwise that of the last one that does. */
static inline void read_owner(const cairn_block_table *table, const struct region *region,
                              const struct line *line, uint32_t place, struct cairn_block *block)
{
    uint32_t begun = line->index_and_begins & ((UINT32_C(2) << place) - 1) & 0xFF;
    uint32_t last = 31 - (uint32_t)__builtin_clz(begun | 1);
    uint32_t is_first = 0 - (uint32_t)(last == 0);
    uint32_t owner = line->owner + count_bits(begun);
    block->index = place - last + (line->index_and_begins >> LINE_BLOCKS & is_first);
    block->range_address =
        region->begin + line->base + line->begins[last] - (line->back & is_first);
    block->range = 0;
    block->function = owner;
    block->function_address = block->range_address;
    if (__builtin_expect((owner & OWNER_IS_PIECE) != 0, 0)) {
        const struct piece *piece = &table->pieces[owner & ~OWNER_IS_PIECE];
        block->index += is_first == 0 ? piece->first_index : 0;
        block->range = piece->range;
        block->function = piece->function;
        block->function_address = table->functions[piece->function].address;
    }
}

/* A lookup in steps, each of which goes to memory that the one before it says. */
struct lookup {
    const struct region *region; /* NULL: the PC is outside of all */
    uint32_t offset;             /* of the PC in the region */
    const uint32_t *bucket;
    uint32_t line;
};

static inline void begin_lookup(const cairn_block_table *table, uint64_t pc, struct lookup *lookup)
{
    lookup->region = find_region(table, pc);
    if (lookup->region == NULL)
        return;
    lookup->offset = (uint32_t)(pc - lookup->region->begin);
    lookup->bucket =
        &table->buckets[lookup->region->first_bucket + (lookup->offset >> lookup->region->shift)];
}

static inline void find_line_of(const cairn_block_table *table, struct lookup *lookup)
{
    lookup->line = find_line(table->bases + lookup->region->padding, lookup->bucket[0],
                             lookup->bucket[1], lookup->offset);
}

static inline bool end_lookup(const cairn_block_table *table, const struct lookup *lookup,
                              struct cairn_block *block)
{
    const struct line *line = &table->lines[lookup->line];
    uint32_t offset = lookup->offset - line->base;
    uint32_t place = find_place(line, offset);
    uint32_t inside = offset - line->begins[place];
    uint32_t word = line->words[place];
    if (__builtin_expect(inside >= size_of(table, lookup->line * LINE_BLOCKS + place, word), 0))
        return false;
    read_word(table, lookup->line * LINE_BLOCKS + place, word, block);
    block->address = lookup->region->begin + lookup->offset - inside;
    read_owner(table, lookup->region, line, place, block);
    return true;
}

bool cairn_block_table_find(const cairn_block_table *table, uint64_t pc, struct cairn_block *block)
{
    struct lookup lookup;
    begin_lookup(table, pc, &lookup);
    if (lookup.region == NULL)
        return false;
    /* Mostly it is one of these. */
    __builtin_prefetch(&table->lines[lookup.bucket[0]]);
    __builtin_prefetch(&table->lines[lookup.bucket[1]]);
    find_line_of(table, &lookup);
    return end_lookup(table, &lookup, block);
}

/* Each step for all of them, so that their memory comes at the same time. */
static size_t find_some(const cairn_block_table *table, const uint64_t *pcs, size_t count,
                        struct cairn_block *blocks)
{
    struct lookup lookups[LOOKUPS_AT_ONCE];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        begin_lookup(table, pcs[i], &lookups[i]);
        if (lookups[i].region != NULL)
            __builtin_prefetch(lookups[i].bucket);
    }
    for (size_t i = 0; i < count; i++)
        if (lookups[i].region != NULL)
            __builtin_prefetch(&table->bases[lookups[i].region->padding + lookups[i].bucket[0]]);
    for (size_t i = 0; i < count; i++)
        if (lookups[i].region != NULL) {
            find_line_of(table, &lookups[i]);
            __builtin_prefetch(&table->lines[lookups[i].line]);
        }
    for (size_t i = 0; i < count; i++) {
        bool is_found = lookups[i].region != NULL && end_lookup(table, &lookups[i], &blocks[i]);
        if (!is_found)
            blocks[i] = (struct cairn_block){0};
        found += is_found;
    }
    return found;
}

size_t cairn_block_table_find_all(const cairn_block_table *table, const uint64_t *pcs, size_t count,
                                  struct cairn_block *blocks)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i += LOOKUPS_AT_ONCE) {
        size_t left = count - i;
        found +=
            find_some(table, pcs + i, left < LOOKUPS_AT_ONCE ? left : LOOKUPS_AT_ONCE, blocks + i);
    }
    return found;
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

bool cairn_block_table_find_function(const cairn_block_table *table, uint64_t address,
                                     struct cairn_block_function *function)
{
    uint32_t begin = 0;
    uint32_t end = table->function_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->functions[middle].address < address)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == table->function_count || table->functions[begin].address != address)
        return false;
    return cairn_block_table_function(table, begin, function);
}

/* The last of the function's pieces whose first block is at or before block `index`. */
static const struct piece *find_piece(const cairn_block_table *table,
                                      const struct packed_function *function, uint32_t index)
{
    const uint32_t *numbers = &table->function_pieces[function->first_piece];
    uint32_t count = function->piece_count;
    while (count > 1) {
        uint32_t half = count / 2;
        numbers += table->pieces[numbers[half]].first_index <= index ? half : 0;
        count -= half;
    }
    return &table->pieces[*numbers];
}

/* From where its line's region, or nothing, begins: differences in a piece are right. */
static uint32_t begin_at(const cairn_block_table *table, uint32_t position)
{
    const struct line *line = &table->lines[position / LINE_BLOCKS];
    return line->base + line->begins[position % LINE_BLOCKS];
}

bool cairn_block_table_block(const cairn_block_table *table, uint32_t function, uint32_t index,
                             struct cairn_block *block)
{
    if (function >= table->function_count || index >= table->functions[function].block_count)
        return false;
    const struct piece *piece = find_piece(table, &table->functions[function], index);
    uint32_t position = piece->position + (index - piece->first_index);
    uint32_t distance = begin_at(table, position) - begin_at(table, piece->position);
    uint32_t word = table->lines[position / LINE_BLOCKS].words[position % LINE_BLOCKS];
    read_word(table, position, word, block);
    block->address = piece->base + piece->offset + distance;
    block->index = index;
    block->range = piece->range;
    block->function = function;
    block->range_address = piece->base;
    block->function_address = table->functions[function].address;
    return true;
}
