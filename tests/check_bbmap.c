/*
 * Basic-block address maps: random ones of every encoding are read back as they were written; cut
 * and wrong ones are refused where they are wrong, and nothing is read behind their end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/bbmap.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 16, BLOCKS_MAX = 64, SUCCESSORS_MAX = 3, FUNCTIONS = 5, ROUNDS = 2000 };
enum { FREQUENCIES = CAIRN_BBMAP_FREQUENCIES, PROBABILITIES = CAIRN_BBMAP_PROBABILITIES };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }
static bool one_in(uint32_t count) { return below(count) == 0; }

static uint64_t random_number(void)
{
    uint64_t number = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
    return number >> below(64);
}

/* Mostly small, as they are. */
static uint32_t random_length(void) { return below(1 << 20) >> below(20); }

/* ---- Writing ---- */

struct written_block {
    struct cairn_bbmap_block block;
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

/* Now and then with a zero more than it takes, as assemblers pad. */
static void put_number(uint64_t number)
{
    bool is_padded = one_in(20);
    for (; number >= 0x80; number >>= 7)
        put((uint8_t)(number | 0x80));
    put((uint8_t)(number | (is_padded ? 0x80 : 0)));
    if (is_padded)
        put(0);
}

static void put_address(uint64_t address)
{
    for (unsigned i = 0; i < 8; i++) {
        unsigned shift = map.byte_order == CAIRN_LITTLE_ENDIAN ? 8 * i : 56 - 8 * i;
        put((uint8_t)(address >> shift));
    }
}

static bool has(const struct written_function *written, unsigned features)
{
    return (written->function.features & features) != 0;
}

/* `*end` is where the block before ends. */
static void put_block(struct written_function *written, struct written_block *made, uint32_t *end)
{
    struct cairn_bbmap_block *block = &made->block;
    uint32_t gap = random_length();
    block->id = written->function.version >= 2 ? below(1000) : (uint32_t)block->index;
    block->offset = *end + gap;
    block->size = random_length();
    block->flags = (uint8_t)below(32);
    if (written->function.version >= 2)
        put_number(block->id);
    put_number(written->function.version >= 1 ? gap : block->offset);
    put_number(block->size);
    put_number(block->flags);
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
    put_address(base);
    put_number(count);
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
    if (!has(written, PROBABILITIES))
        return;
    made->block.successor_count = below(SUCCESSORS_MAX + 1);
    put_number(made->block.successor_count);
    for (uint64_t i = 0; i < made->block.successor_count; i++) {
        made->successors[i] = (struct cairn_bbmap_successor){below(1000), below(1U << 31)};
        put_number(made->successors[i].id);
        put_number(made->successors[i].probability);
    }
}

static void put_function(struct written_function *written)
{
    struct cairn_bbmap_function *function = &written->function;
    *function = (struct cairn_bbmap_function){.offset = map.size, .range_count = 1};
    if (map.encoding == CAIRN_BBMAP_VERSIONED) {
        function->version = (uint8_t)(1 + below(2));
        function->features = function->version == 2 ? (uint8_t)below(16) : 0;
        put(function->version);
        put(function->features);
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
    struct cairn_bbmap_successor successor;
    expect_equal(block->successor_count, written->block.successor_count);
    for (uint64_t i = 0; i < block->successor_count; i++) {
        expect(cairn_bbmap_successor(function, block, i, &successor));
        expect_equal(successor.id, written->successors[i].id);
        expect_equal(successor.probability, written->successors[i].probability);
    }
    expect(!cairn_bbmap_successor(function, block, block->successor_count, &successor));
}

static void expect_block(const struct cairn_bbmap_function *function,
                         const struct cairn_bbmap_block *block, const struct written_block *written)
{
    const struct cairn_bbmap_block *expected = &written->block;
    bool is_same = block->id == expected->id && block->range == expected->range &&
                   block->base == expected->base && block->offset == expected->offset &&
                   block->size == expected->size && block->flags == expected->flags &&
                   block->index == expected->index && block->frequency == expected->frequency;
    if (!is_same)
        ck_abort_msg("block %llu is %u at 0x%llx + %u, of %u bytes, and not %u at 0x%llx + %u",
                     (unsigned long long)block->index, block->id, (unsigned long long)block->base,
                     block->offset, block->size, expected->id, (unsigned long long)expected->base,
                     expected->offset);
    expect_successors(function, block, written);
}

/* Each range's blocks are `block_count` of them, and none is left. */
static void expect_ranges(const struct cairn_bbmap_function *function)
{
    struct cairn_bbmap_range range;
    struct cairn_bbmap_block block;
    uint32_t range_count = 0;
    bool has_block = cairn_bbmap_first(function, &block);
    cairn_bbmap_first_range(function, &range);
    expect_equal(range.base, function->address);
    do {
        size_t in_function = range.offset - function->offset;
        expect_equal(range.index, range_count++);
        expect_equal(range.base,
                     cairn_load_u64(function->bytes + in_function, function->byte_order));
        for (uint32_t i = 0; i < range.block_count; i++) {
            expect(has_block && block.range == range.index && block.base == range.base);
            has_block = cairn_bbmap_next(function, &block);
        }
    } while (cairn_bbmap_next_range(function, &range));
    expect(!has_block);
    expect_equal(range_count, function->range_count);
}

static void expect_function(const struct cairn_bbmap_function *function,
                            const struct written_function *written)
{
    expect_ranges(function);
    struct cairn_bbmap_block block;
    expect_equal(function->offset, written->function.offset);
    expect_equal(function->size, written->function.size);
    expect_equal(function->version, written->function.version);
    expect_equal(function->features, written->function.features);
    expect_equal(function->address, written->function.address);
    expect_equal(function->range_count, written->function.range_count);
    expect_equal(function->block_count, written->function.block_count);
    expect_equal(function->entry_count, written->function.entry_count);
    uint64_t count = 0;
    for (bool more = cairn_bbmap_first(function, &block); more;
         more = cairn_bbmap_next(function, &block))
        expect_block(function, &block, &written->blocks[count++]);
    expect_equal(count, function->block_count);
}

static enum cairn_status read(const struct cairn_section *section, size_t *offset,
                              struct cairn_bbmap_function *function, struct cairn_error *error)
{
    return cairn_bbmap_read(section, map.encoding, offset, function, error);
}

START_TEST(random_maps_are_read_as_they_were_written)
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

/* ---- Wrong ones ---- */

/* Functions that end before the cut are given; of the one that is cut nothing. */
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

START_TEST(a_map_that_is_cut_anywhere_is_truncated_there)
{
    random_state = sample_seed();
    put_map((enum cairn_bbmap_encoding)_i);
    for (size_t size = 0; size < map.size; size++)
        expect_cut(size);
}
END_TEST

START_TEST(whatever_the_bytes_are_nothing_is_read_beyond_them)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct cairn_bbmap_function function;
        struct cairn_bbmap_block block;
        struct cairn_error error = {0};
        put_map((enum cairn_bbmap_encoding)_i);
        for (unsigned changes = 1 + below(4); changes > 0; changes--)
            map.bytes[below((uint32_t)map.size)] = (uint8_t)below(256);
        struct guarded guarded = guard(map.bytes, map.size);
        struct cairn_section section = view(&guarded);
        size_t offset = 0;
        while (offset < map.size && read(&section, &offset, &function, &error) == CAIRN_OK)
            for (bool more = cairn_bbmap_first(&function, &block); more;
                 more = cairn_bbmap_next(&function, &block))
                expect(block.index < function.block_count);
        guard_end(&guarded);
    }
}
END_TEST

struct refused {
    uint8_t bytes[40];
    size_t size;
    enum cairn_status status;
    size_t offset;
    const char *sentence; /* a part of it */
};

#define NO_ADDRESS 0x10, 0, 0, 0, 0, 0, 0, 0

static const struct refused refused[] = {
    {{0, 0}, 2, CAIRN_ERROR_VERSION, 0, "version 0"},
    {{3, 0}, 2, CAIRN_ERROR_VERSION, 0, "version 3: Cairn reads versions 1 and 2"},
    {{2, 16}, 2, CAIRN_ERROR_CORRUPT, 1, "features 0x10 have bits beyond 0x0f"},
    {{1, 1}, 2, CAIRN_ERROR_CORRUPT, 1, "version 1 has the features 0x01"},
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

START_TEST(what_is_wrong_is_said_with_its_place)
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

START_TEST(behind_the_section_there_is_nothing_to_read)
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
    tcase_add_loop_test(tests, random_maps_are_read_as_they_were_written, 0, 2);
    tcase_add_loop_test(tests, a_map_that_is_cut_anywhere_is_truncated_there, 0, 2);
    tcase_add_loop_test(tests, whatever_the_bytes_are_nothing_is_read_beyond_them, 0, 2);
    tcase_add_loop_test(tests, what_is_wrong_is_said_with_its_place, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, behind_the_section_there_is_nothing_to_read);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
