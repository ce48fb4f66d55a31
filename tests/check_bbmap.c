/*
 * Tests of basic-block address maps. Random maps of every encoding are written and read back.
 * Truncated and invalid ones are refused with the right offset, and nothing is read past their end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/bbmap.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 16, BLOCKS_MAX = 64, SUCCESSORS_MAX = 3, FUNCTIONS = 5, ROUNDS = 2000 };
enum { CALLSITES_MAX = 4, VERSION_MAX = 5 };
enum { FREQUENCIES = CAIRN_BBMAP_FREQUENCIES, PROBABILITIES = CAIRN_BBMAP_PROBABILITIES };

/* The features that each version may have. */
static const uint8_t version_features[VERSION_MAX + 1] = {
    [2] = 0x1F, [3] = 0x3F, [4] = 0x7F, [5] = 0xFF};

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }
static bool one_in(uint32_t count) { return below(count) == 0; }

static uint64_t random_number(void)
{
    uint64_t number = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
    return number >> below(64);
}

/* Mostly small, like real lengths. */
static uint32_t random_length(void) { return below(1 << 20) >> below(20); }

/* ---- Writing ---- */

struct written_block {
    struct cairn_bbmap_block block;
    uint32_t callsites[CALLSITES_MAX];
    struct cairn_bbmap_successor successors[SUCCESSORS_MAX];
};

struct written_function {
    struct cairn_bbmap_function function;
    struct written_block blocks[BLOCKS_MAX];
};

static struct {
    enum cairn_bbmap_encoding encoding;
    enum cairn_byte_order byte_order;
    struct written_function functions[FUNCTIONS];
    uint8_t bytes[BYTES_MAX];
    size_t size;
} map;

static void put(uint8_t byte)
{
    if (map.size == BYTES_MAX)
        ck_abort_msg("more than %d bytes", BYTES_MAX);
    map.bytes[map.size++] = byte;
}

/* Sometimes writes an additional zero, as assemblers do for padding. */
static void put_number(uint64_t number)
{
    bool is_padded = one_in(20);
    for (; number >= 0x80; number >>= 7)
        put((uint8_t)(number | 0x80));
    put((uint8_t)(number | (is_padded ? 0x80 : 0)));
    if (is_padded)
        put(0);
}

static void put_bytes(uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned place = map.byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        put((uint8_t)(value >> 8 * place));
    }
}

static bool has(const struct written_function *written, unsigned features)
{
    return (written->function.features & features) != 0;
}

/* Returns the end of the last call. */
static uint32_t put_callsites(struct written_block *made)
{
    uint32_t end = 0;
    made->block.callsite_count = below(CALLSITES_MAX + 1);
    put_number(made->block.callsite_count);
    for (uint32_t i = 0; i < made->block.callsite_count; i++) {
        uint32_t distance = random_length();
        put_number(distance);
        end += distance;
        made->callsites[i] = end;
    }
    return end;
}

/* `*end` is the end of the previous block. */
static void put_block(struct written_function *written, struct written_block *made, uint32_t *end)
{
    struct cairn_bbmap_block *block = &made->block;
    uint32_t gap = random_length();
    block->id = written->function.version >= 2 ? below(1000) : (uint32_t)block->index;
    block->offset = *end + gap;
    block->flags = (uint8_t)below(32);
    if (written->function.version >= 2)
        put_number(block->id);
    put_number(written->function.version >= 1 ? gap : block->offset);
    uint32_t calls_end = has(written, CAIRN_BBMAP_CALLSITES) ? put_callsites(made) : 0;
    uint32_t after_calls = random_length();
    block->size = calls_end + after_calls;
    put_number(after_calls);
    put_number(block->flags);
    if (has(written, CAIRN_BBMAP_HASHES)) {
        block->hash = random_number();
        put_bytes(block->hash, 8);
    }
    *end = block->offset + block->size;
}

static void put_range(struct written_function *written, uint32_t range)
{
    struct cairn_bbmap_function *function = &written->function;
    uint32_t count = below(BLOCKS_MAX / 4);
    uint64_t base = random_number();
    uint32_t end = 0;
    if (range == 0)
        function->address = base;
    put_bytes(base, 8);
    put_number(count);
    if (has(written, CAIRN_BBMAP_OMITTED_BLOCKS)) {
        function->omitted_count += count;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct written_block *made = &written->blocks[function->block_count];
        *made = (struct written_block){
            .block = {.range = range, .base = base, .index = function->block_count++}};
        put_block(written, made, &end);
    }
}

static void put_profile(const struct written_function *written, struct written_block *made)
{
    if (has(written, FREQUENCIES)) {
        made->block.frequency = random_number();
        put_number(made->block.frequency);
    }
    if (has(written, CAIRN_BBMAP_POST_LINK) && has(written, FREQUENCIES | PROBABILITIES)) {
        made->block.post_link_frequency = random_number();
        put_number(made->block.post_link_frequency);
    }
    if (!has(written, PROBABILITIES))
        return;
    made->block.successor_count = below(SUCCESSORS_MAX + 1);
    put_number(made->block.successor_count);
    for (uint64_t i = 0; i < made->block.successor_count; i++) {
        struct cairn_bbmap_successor *successor = &made->successors[i];
        *successor =
            (struct cairn_bbmap_successor){.id = below(1000), .probability = below(1U << 31)};
        put_number(successor->id);
        put_number(successor->probability);
        if (has(written, CAIRN_BBMAP_POST_LINK)) {
            successor->post_link_frequency = random_number();
            put_number(successor->post_link_frequency);
        }
    }
}

static void put_function(struct written_function *written)
{
    struct cairn_bbmap_function *function = &written->function;
    *function = (struct cairn_bbmap_function){.offset = map.size, .range_count = 1};
    if (map.encoding == CAIRN_BBMAP_VERSIONED) {
        function->version = (uint8_t)(1 + below(VERSION_MAX));
        function->features = (uint16_t)(below(256) & version_features[function->version]);
        if (!one_in(8))
            function->features &= (uint16_t)~CAIRN_BBMAP_OMITTED_BLOCKS;
        put(function->version);
        put_bytes(function->features, function->version >= 5 ? 2 : 1);
    }
    if (has(written, CAIRN_BBMAP_RANGES)) {
        function->range_count = 1 + below(4);
        put_number(function->range_count);
    }
    for (uint32_t i = 0; i < function->range_count; i++)
        put_range(written, i);
    if (has(written, CAIRN_BBMAP_ENTRY_COUNT)) {
        function->entry_count = random_number();
        put_number(function->entry_count);
    }
    for (uint64_t i = 0; i < function->block_count; i++)
        put_profile(written, &written->blocks[i]);
    function->size = map.size - function->offset;
}

static void put_map(enum cairn_bbmap_encoding encoding)
{
    map.encoding = encoding;
    map.byte_order = one_in(2) ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN;
    map.size = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        put_function(&map.functions[i]);
}

/* ---- Reading ---- */

static struct cairn_section view(const struct guarded *guarded)
{
    return (struct cairn_section){guarded->bytes, guarded->size, map.byte_order};
}

static void expect_successors(const struct cairn_bbmap_function *function,
                              const struct cairn_bbmap_block *block,
                              const struct written_block *written)
{
    struct cairn_bbmap_successor successor = {0};
    uint64_t count = 0;
    expect_equal(block->successor_count, written->block.successor_count);
    while (cairn_bbmap_next_successor(function, block, &successor)) {
        const struct cairn_bbmap_successor *expected = &written->successors[count++];
        expect_equal(successor.id, expected->id);
        expect_equal(successor.probability, expected->probability);
        expect_equal(successor.post_link_frequency, expected->post_link_frequency);
    }
    expect_equal(count, block->successor_count);
}

static void expect_callsites(const struct cairn_bbmap_function *function,
                             const struct cairn_bbmap_block *block,
                             const struct written_block *written)
{
    struct cairn_bbmap_callsite callsite = {0};
    uint32_t count = 0;
    expect_equal(block->callsite_count, written->block.callsite_count);
    while (cairn_bbmap_next_callsite(function, block, &callsite))
        expect_equal(callsite.end_offset, written->callsites[count++]);
    expect_equal(count, block->callsite_count);
}

static void expect_block(const struct cairn_bbmap_function *function,
                         const struct cairn_bbmap_block *block, const struct written_block *written)
{
    const struct cairn_bbmap_block *expected = &written->block;
    bool is_same = block->id == expected->id && block->range == expected->range &&
                   block->base == expected->base && block->offset == expected->offset &&
                   block->size == expected->size && block->flags == expected->flags &&
                   block->index == expected->index && block->hash == expected->hash &&
                   block->frequency == expected->frequency &&
                   block->post_link_frequency == expected->post_link_frequency;
    if (!is_same)
        ck_abort_msg("block %llu is %u at 0x%llx + %u, of %u bytes, and not %u at 0x%llx + %u",
                     (unsigned long long)block->index, block->id, (unsigned long long)block->base,
                     block->offset, block->size, expected->id, (unsigned long long)expected->base,
                     expected->offset);
    expect_callsites(function, block, written);
    expect_successors(function, block, written);
}

/* Checks that each range has `block_count` blocks and that no block is left over. */
static void expect_ranges(const struct cairn_bbmap_function *function)
{
    struct cairn_bbmap_range range = {0};
    struct cairn_bbmap_block block = {0};
    uint32_t range_count = 0;
    uint64_t omitted_count = 0;
    while (cairn_bbmap_next_range(function, &range)) {
        size_t in_function = range.offset - function->offset;
        if (range_count == 0)
            expect_equal(range.base, function->address);
        expect_equal(range.index, range_count++);
        omitted_count += range.omitted_count;
        expect_equal(range.base,
                     cairn_load_u64(function->bytes + in_function, function->byte_order));
        for (uint32_t i = 0; i < range.block_count; i++) {
            expect(cairn_bbmap_next(function, &block));
            expect(block.range == range.index && block.base == range.base);
        }
    }
    expect(!cairn_bbmap_next(function, &block));
    expect_equal(range_count, function->range_count);
    expect_equal(omitted_count, function->omitted_count);
}

static void expect_function(const struct cairn_bbmap_function *function,
                            const struct written_function *written)
{
    expect_ranges(function);
    struct cairn_bbmap_block block = {0};
    expect_equal(function->offset, written->function.offset);
    expect_equal(function->size, written->function.size);
    expect_equal(function->version, written->function.version);
    expect_equal(function->features, written->function.features);
    expect_equal(function->address, written->function.address);
    expect_equal(function->range_count, written->function.range_count);
    expect_equal(function->block_count, written->function.block_count);
    expect_equal(function->omitted_count, written->function.omitted_count);
    expect_equal(function->entry_count, written->function.entry_count);
    uint64_t count = 0;
    while (cairn_bbmap_next(function, &block))
        expect_block(function, &block, &written->blocks[count++]);
    expect_equal(count, function->block_count);
}

static enum cairn_status read(const struct cairn_section *section, size_t *offset,
                              struct cairn_bbmap_function *function, struct cairn_error *error)
{
    return cairn_bbmap_read(section, map.encoding, offset, function, error);
}

START_TEST(random_maps_are_read_as_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_map((enum cairn_bbmap_encoding)_i);
        struct guarded guarded = guard(map.bytes, map.size);
        struct cairn_section section = view(&guarded);
        size_t offset = 0;
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            struct cairn_bbmap_function function;
            expect_equal(read(&section, &offset, &function, NULL), CAIRN_OK);
            expect_function(&function, &map.functions[i]);
        }
        expect_equal(offset, map.size);
        guard_end(&guarded);
    }
}
END_TEST

/* ---- Invalid maps ---- */

/* Expects the functions that end before the cut, and nothing of the function that is cut. */
static void expect_cut(size_t size)
{
    struct guarded guarded = guard(map.bytes, size);
    struct cairn_section section = view(&guarded);
    size_t offset = 0;
    for (unsigned i = 0; offset < size; i++) {
        struct cairn_bbmap_function function = {.size = 77};
        struct cairn_error error = {0};
        const struct cairn_bbmap_function *written = &map.functions[i].function;
        enum cairn_status status = read(&section, &offset, &function, &error);
        if (written->offset + written->size <= size) {
            expect_equal(status, CAIRN_OK);
            continue;
        }
        expect_equal(status, CAIRN_ERROR_TRUNCATED);
        expect_equal(offset, written->offset);
        expect_equal(function.size, 77);
        ck_assert_uint_ge(error.offset, offset);
        ck_assert_uint_le(error.offset, size);
        break;
    }
    guard_end(&guarded);
}

START_TEST(truncated_maps_are_refused)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < 5; round++) {
        put_map((enum cairn_bbmap_encoding)_i);
        for (size_t size = 0; size < map.size; size++)
            expect_cut(size);
    }
}
END_TEST

static void go_through(const struct cairn_bbmap_function *function)
{
    struct cairn_bbmap_block block = {0};
    while (cairn_bbmap_next(function, &block)) {
        struct cairn_bbmap_callsite callsite = {0};
        struct cairn_bbmap_successor successor = {0};
        uint64_t count = 0;
        expect(block.index < function->block_count);
        while (cairn_bbmap_next_callsite(function, &block, &callsite))
            expect(callsite.end_offset <= block.size && ++count <= block.callsite_count);
        count = 0;
        while (cairn_bbmap_next_successor(function, &block, &successor))
            expect(++count <= block.successor_count);
    }
}

START_TEST(random_bytes_are_read_within_bounds)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct cairn_bbmap_function function;
        struct cairn_error error = {0};
        put_map((enum cairn_bbmap_encoding)_i);
        for (unsigned changes = 1 + below(4); changes > 0; changes--)
            map.bytes[below((uint32_t)map.size)] = (uint8_t)below(256);
        struct guarded guarded = guard(map.bytes, map.size);
        struct cairn_section section = view(&guarded);
        size_t offset = 0;
        while (offset < map.size && read(&section, &offset, &function, &error) == CAIRN_OK)
            go_through(&function);
        guard_end(&guarded);
    }
}
END_TEST

struct refused {
    uint8_t bytes[40];
    size_t size;
    enum cairn_status status;
    size_t offset;
    const char *sentence; /* a part of the message */
};

#define NO_ADDRESS 0x10, 0, 0, 0, 0, 0, 0, 0

static const struct refused refused[] = {
    {{0, 0}, 2, CAIRN_ERROR_VERSION, 0, "version 0"},
    {{6, 0, 0}, 3, CAIRN_ERROR_VERSION, 0, "version 6: Cairn reads versions 1 to 5"},
    {{5, 0, 1}, 3, CAIRN_ERROR_CORRUPT, 1, "features 0x100 of a function's map have bits outside"},
    {{5, 0}, 2, CAIRN_ERROR_TRUNCATED, 2, "the features must not go beyond"},
    {{1, 1}, 2, CAIRN_ERROR_CORRUPT, 1, "version 1 has the features 0x01, of which 0x01 came"},
    {{2, 33}, 2, CAIRN_ERROR_CORRUPT, 1, "version 2 has the features 0x21, of which 0x20 came"},
    {{3, 64}, 2, CAIRN_ERROR_CORRUPT, 1, "version 3 has the features 0x40, of which 0x40 came"},
    {{4, 128}, 2, CAIRN_ERROR_CORRUPT, 1, "version 4 has the features 0x80, of which 0x80 came"},
    {{3, 32, NO_ADDRESS, 1, 0, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xF, 1, 0, 0},
     21,
     CAIRN_ERROR_CORRUPT,
     19,
     "block 0: a call's end is more than 32 bits away from the block's begin"},
    {{3, 32, NO_ADDRESS, 1, 0, 1, 1, 0xFE, 0xFF, 0xFF, 0xFF, 0xF, 1, 0},
     21,
     CAIRN_ERROR_CORRUPT,
     11,
     "block 0: the block's end is more than 32 bits away"},
    {{4, 64, NO_ADDRESS, 1, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7},
     22,
     CAIRN_ERROR_TRUNCATED,
     15,
     "the block's hash must not go beyond"},
    {{2, 8, 0}, 3, CAIRN_ERROR_CORRUPT, 2, "the number of ranges is 0"},
    {{2, 0, NO_ADDRESS, 1, 0, 0, 1, 32},
     15,
     CAIRN_ERROR_CORRUPT,
     14,
     "function at 0x10, block 0: the block's flags have bits beyond the five"},
    {{2, 0, NO_ADDRESS, 0xFF, 0xFF, 0xFF, 0xFF, 0x10},
     15,
     CAIRN_ERROR_CORRUPT,
     10,
     "the number of blocks is a number of more than 32 bits"},
    {{2, 0, NO_ADDRESS, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2},
     20,
     CAIRN_ERROR_CORRUPT,
     10,
     "more than 64 bits"},
    {{2, 0, NO_ADDRESS, 2, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xF, 0, 1, 1, 0, 0},
     22,
     CAIRN_ERROR_CORRUPT,
     19,
     "block 1: the block's end is more than 32 bits away"},
    {{2, 0, NO_ADDRESS, 1, 0, 0, 0x80}, 14, CAIRN_ERROR_TRUNCATED, 13, "the block's size is a"},
};

START_TEST(invalid_maps_are_refused_with_a_reason)
{
    const struct refused *one = &refused[_i];
    const struct cairn_section section = {one->bytes, one->size, CAIRN_LITTLE_ENDIAN};
    struct cairn_bbmap_function function;
    struct cairn_error error = {0};
    size_t offset = 0;
    enum cairn_status status =
        cairn_bbmap_read(&section, CAIRN_BBMAP_VERSIONED, &offset, &function, &error);
    expect_equal(status, one->status);
    expect_equal(error.offset, one->offset);
    if (strstr(error.message, one->sentence) == NULL)
        ck_abort_msg("no '%s' in '%s'", one->sentence, error.message);
    expect_equal(offset, 0);
}
END_TEST

/* The bytes do not bound the number, so it must not determine what is read or allocated. */
START_TEST(maps_with_omitted_blocks_have_their_number)
{
    static const uint8_t bytes[] = {2, 16 | 2, NO_ADDRESS, 0xFF, 0xFF, 0xFF, 0xFF, 0xF};
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    struct cairn_bbmap_function function;
    struct cairn_bbmap_block block = {0};
    struct cairn_bbmap_range range = {0};
    size_t offset = 0;
    expect_equal(cairn_bbmap_read(&section, CAIRN_BBMAP_VERSIONED, &offset, &function, NULL),
                 CAIRN_OK);
    expect_equal(function.block_count, 0);
    expect_equal(function.omitted_count, UINT32_MAX);
    expect(!cairn_bbmap_next(&function, &block));
    expect(cairn_bbmap_next_range(&function, &range));
    expect_equal(range.base, 0x10);
    expect_equal(range.block_count, 0);
    expect_equal(range.omitted_count, UINT32_MAX);
    expect(!cairn_bbmap_next_range(&function, &range));
}
END_TEST

START_TEST(offsets_outside_of_the_section_are_refused)
{
    const struct cairn_section section = {NULL, 0, CAIRN_LITTLE_ENDIAN};
    struct cairn_bbmap_function function;
    size_t offset = 0;
    expect_equal(cairn_bbmap_read(&section, CAIRN_BBMAP_V0, &offset, &function, NULL),
                 CAIRN_ERROR_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("basic-block address maps");
    TCase *tests = tcase_create("maps");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, random_maps_are_read_as_written, 0, 2);
    tcase_add_loop_test(tests, truncated_maps_are_refused, 0, 2);
    tcase_add_loop_test(tests, random_bytes_are_read_within_bounds, 0, 2);
    tcase_add_loop_test(tests, invalid_maps_are_refused_with_a_reason, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, maps_with_omitted_blocks_have_their_number);
    tcase_add_test(tests, offsets_outside_of_the_section_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
