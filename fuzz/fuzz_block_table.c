/*
 * Fuzzes tables of blocks. For each PC, looked up alone or with others, the table finds the same
 * block as a linear search through all ranges. Each function has the blocks of its map.
 *
 * Input: flags (byte order, encoding; raw or made), then a section, or what maps are made from.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/block_table.h>

enum { MADE_BYTES_MAX = 1 << 14, RANGES_MAX = 128, BLOCKS_MAX = 1024 };

static struct {
    uint8_t bytes[MADE_BYTES_MAX];
    size_t size;
} made;

static void put(uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes && made.size < MADE_BYTES_MAX; i++)
        made.bytes[made.size++] = (uint8_t)(value >> 8 * i);
}

/* A function of version 2 or 5, whose numbers have one byte each. */
static void make_function(struct fuzz_input *input)
{
    uint8_t what = fuzz_u8(input);
    unsigned features = CAIRN_BBMAP_RANGES | ((what & 1) != 0 ? CAIRN_BBMAP_FREQUENCIES : 0U);
    uint32_t block_count = 0;
    if ((what & 2) != 0)
        features |= CAIRN_BBMAP_CALLSITES | CAIRN_BBMAP_HASHES;
    put((what & 2) != 0 ? 5 : 2, 1);
    put(features, (what & 2) != 0 ? 2 : 1);
    unsigned range_count = 1 + (what >> 2 & 3);
    put(range_count, 1);
    for (unsigned i = 0; i < range_count; i++) {
        uint8_t count = fuzz_u8(input) & 15;
        put(0x1000 + ((uint64_t)fuzz_u8(input) << (what >> 4) * 4), 8);
        put(count, 1);
        for (unsigned k = 0; k < count; k++, block_count++) {
            put(fuzz_u8(input) & 0x7F, 1);
            put(fuzz_u8(input) & 3, 1);
            if ((what & 2) != 0)
                put(0x0101, 2); /* one call, which ends after one byte */
            put(fuzz_u8(input) & 0x7F, 1);
            put(fuzz_u8(input) & 31, 1);
            if ((what & 2) != 0)
                put(block_count, 8);
        }
    }
    for (uint32_t i = 0; (what & 1) != 0 && i < block_count; i++)
        put(i & 0x7F, 1);
}

/* ---- The expected table ---- */

struct model_range {
    uint64_t base;
    uint64_t end; /* end of its last block */
    size_t first; /* index of the first block */
    size_t count;
    bool is_shown;
};

static struct model_range ranges[RANGES_MAX];
static size_t range_count;
static struct cairn_bbmap_block blocks[BLOCKS_MAX];
static size_t block_count;

/* False if there are more than the model can hold. */
static bool note_function(const struct cairn_bbmap_function *function)
{
    struct cairn_bbmap_range range = {0};
    struct cairn_bbmap_block block = {0};
    while (cairn_bbmap_next_range(function, &range)) {
        if (range_count == RANGES_MAX || block_count + range.block_count > BLOCKS_MAX)
            return false;
        struct model_range *noted = &ranges[range_count++];
        *noted =
            (struct model_range){range.base, range.base, block_count, range.block_count, false};
        for (uint32_t i = 0; i < range.block_count; i++) {
            require(cairn_bbmap_next(function, &block));
            noted->end = range.base + block.offset + block.size;
            blocks[block_count++] = block;
        }
    }
    return true;
}

/* Selects the ranges that the table shows, from the lowest address up, and in their order if
 * addresses are equal: each begins at or after the end of the previous one, and does not extend
 * past the last address. */
static void show_ranges(void)
{
    bool is_decided[RANGES_MAX] = {false};
    uint64_t end = 0;
    for (size_t done = 0; done < range_count; done++) {
        struct model_range *next = NULL;
        for (size_t i = 0; i < range_count; i++)
            if (!is_decided[i] && (next == NULL || ranges[i].base < next->base))
                next = &ranges[i];
        require(next != NULL);
        is_decided[next - ranges] = true;
        next->is_shown = next->end > next->base && next->base >= end;
        if (next->is_shown)
            end = next->end;
    }
}

static const struct cairn_bbmap_block *search(uint64_t pc)
{
    for (size_t i = 0; i < range_count; i++)
        for (size_t k = 0; ranges[i].is_shown && k < ranges[i].count; k++) {
            const struct cairn_bbmap_block *block = &blocks[ranges[i].first + k];
            if (pc - (block->base + block->offset) < block->size)
                return block;
        }
    return NULL;
}

static void look_up(const cairn_block_table *table, uint64_t pc)
{
    struct cairn_block found;
    struct cairn_block same;
    const struct cairn_bbmap_block *expected = search(pc);
    bool is_found = cairn_block_table_find(table, pc, &found);
    require(is_found == (expected != NULL));
    if (!is_found)
        return;
    require(found.address == expected->base + expected->offset && found.size == expected->size);
    require(found.id == expected->id && found.flags == expected->flags);
    require(found.range == expected->range && found.index == expected->index);
    require(found.frequency == expected->frequency && found.range_address == expected->base);
    require(cairn_block_table_block(table, found.function, found.index, &same));
    require(same.address == found.address && same.id == found.id && same.range == found.range);
}

static void compare(const cairn_block_table *table)
{
    show_ranges();
    for (size_t i = 0; i < block_count; i++) {
        uint64_t begin = blocks[i].base + blocks[i].offset;
        look_up(table, begin);
        look_up(table, begin - 1);
        look_up(table, begin + blocks[i].size / 2);
        look_up(table, begin + blocks[i].size);
    }
    require(cairn_block_table_counts(table).blocks == block_count);
}

static void build(const struct cairn_section *section, enum cairn_bbmap_encoding encoding)
{
    cairn_block_builder *builder;
    cairn_block_table *table;
    bool is_modelled = true;
    range_count = 0;
    block_count = 0;
    require(cairn_block_builder_create(NULL, &builder, NULL) == CAIRN_OK);
    for (size_t offset = 0; offset < section->size;) {
        struct cairn_bbmap_function function;
        if (cairn_bbmap_read(section, encoding, &offset, &function, NULL) != CAIRN_OK)
            break;
        const struct cairn_section map = {function.bytes, function.size, section->byte_order};
        if (cairn_block_builder_add(builder, &map, encoding, NULL, NULL, NULL) == CAIRN_OK)
            is_modelled = is_modelled && note_function(&function);
    }
    require(cairn_block_builder_finish(builder, &table, NULL) == CAIRN_OK);
    if (is_modelled)
        compare(table);
    cairn_block_table_destroy(table);
    cairn_block_builder_destroy(builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    struct cairn_section section = fuzz_section(&input, flags);
    made.size = 0;
    if ((flags & 4) != 0) {
        while (input.left > 0 && made.size < MADE_BYTES_MAX / 2)
            make_function(&input);
        section = (struct cairn_section){made.bytes, made.size, CAIRN_LITTLE_ENDIAN};
    }
    void *copy = fuzz_copy(section.bytes, section.size);
    section.bytes = copy;
    build(&section, (flags & 6) == 2 ? CAIRN_BBMAP_V0 : CAIRN_BBMAP_VERSIONED);
    free(copy);
    return 0;
}
