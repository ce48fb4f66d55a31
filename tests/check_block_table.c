/*
 * Tests of block tables. Lookups in random maps, with gaps, overlaps, several ranges per function,
 * large and empty blocks, are compared with a search of everything that was added. Every allocation
 * is made to fail.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/block_table.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS_MAX = 60, RANGES_MAX = 200, BLOCKS_MAX = 4000, BYTES_MAX = 1 << 17, ROUNDS = 300 };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }
static bool one_in(uint32_t count) { return below(count) == 0; }

/* ---- The model: added blocks, and the expected results ---- */

struct model_block {
    struct cairn_block block; /* its function is the number in the order of adding */
    struct cairn_block_details details;
    uint32_t range; /* number among all ranges */
};

struct model_range {
    uint64_t base;
    uint64_t end;
    bool is_shown;
};

static struct {
    struct cairn_block_function functions[FUNCTIONS_MAX];
    uint32_t function_count;
    struct model_range ranges[RANGES_MAX];
    uint32_t range_count;
    struct model_block blocks[BLOCKS_MAX];
    uint32_t block_count;
    uint8_t bytes[BYTES_MAX];
    size_t size;
} model;

static void put(uint8_t byte)
{
    expect(model.size < BYTES_MAX);
    model.bytes[model.size++] = byte;
}

static void put_number(uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put((uint8_t)(number | 0x80));
    put((uint8_t)number);
}

static void put_address(uint64_t address)
{
    for (unsigned i = 0; i < 8; i++)
        put((uint8_t)(address >> 8 * i));
}

/* The parameters of a random program. */
struct shape {
    uint64_t first_address;
    uint32_t block_bytes_max;
    uint32_t gap_max; /* between functions */
    uint32_t ranges_max;
    bool has_overlaps;
    bool has_frequencies;
    bool has_later_features; /* whether features of versions 3 to 5 are used */
};

static bool has_callsites(uint16_t features) { return (features & CAIRN_BBMAP_CALLSITES) != 0; }

/* Returns the end of the last call. */
static uint32_t put_callsites(uint32_t block_size)
{
    uint32_t end = 0;
    uint32_t count = below(3);
    put_number(count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t distance = below(block_size - end + 1);
        put_number(distance);
        end += distance;
    }
    return end;
}

static void put_block(struct cairn_block *block, struct cairn_block_details *details,
                      uint16_t features, uint64_t *end, const struct shape *shape)
{
    uint32_t gap = one_in(8) ? below(shape->block_bytes_max) : 0;
    block->address = *end + gap;
    block->size = one_in(12) ? 0 : below(shape->block_bytes_max >> below(8)) + 1;
    block->id = one_in(30) ? below(UINT32_MAX) : below(300);
    block->flags = (uint8_t)below(32);
    put_number(block->id);
    put_number(gap);
    uint32_t calls_end = has_callsites(features) ? put_callsites(block->size) : 0;
    put_number(block->size - calls_end);
    put_number(block->flags);
    if ((features & CAIRN_BBMAP_HASHES) != 0) {
        details->hash = below(UINT32_MAX);
        put_address(details->hash);
    }
    *end = block->address + block->size;
}

static uint64_t random_base(const struct shape *shape, uint64_t last_end)
{
    if (shape->has_overlaps && one_in(4) && model.range_count > 0)
        return model.ranges[below(model.range_count)].base + (one_in(2) ? 0 : below(50));
    if (shape->has_overlaps && one_in(20))
        return UINT64_MAX - below(20);
    return last_end + (one_in(3) ? 0 : below(shape->gap_max));
}

static void put_range(uint32_t number, uint64_t *last_end, const struct shape *shape)
{
    struct cairn_block_function *function = &model.functions[model.function_count];
    uint32_t count = one_in(10) ? 0 : below(one_in(5) ? 40 : 8);
    uint64_t base = random_base(shape, *last_end);
    uint64_t end = base;
    struct model_range *range = &model.ranges[model.range_count];
    put_address(base);
    put_number(count);
    if ((function->features & CAIRN_BBMAP_OMITTED_BLOCKS) != 0)
        count = 0;
    if (number == 0)
        function->address = base;
    for (uint32_t i = 0; i < count; i++) {
        struct model_block *made = &model.blocks[model.block_count++];
        *made = (struct model_block){.range = model.range_count};
        put_block(&made->block, &made->details, function->features, &end, shape);
        made->block.index = function->block_count++;
        made->block.range = number;
        made->block.function = model.function_count;
        made->block.range_address = base;
        made->block.function_address = function->address;
    }
    *range = (struct model_range){.base = base, .end = end};
    model.range_count++;
    if (end >= base && base >= *last_end)
        *last_end = end;
}

/* Writes the profile, which follows the blocks of all ranges of the function. */
static void put_profile(const struct cairn_block_function *function)
{
    if ((function->features & CAIRN_BBMAP_ENTRY_COUNT) != 0)
        put_number(function->entry_count);
    for (uint32_t i = 0; i < model.block_count; i++) {
        struct cairn_block *block = &model.blocks[i].block;
        if (block->function != model.function_count ||
            (function->features & CAIRN_BBMAP_FREQUENCIES) == 0)
            continue;
        block->frequency = below(UINT32_MAX);
        put_number(block->frequency);
        if ((function->features & CAIRN_BBMAP_POST_LINK) == 0)
            continue;
        model.blocks[i].details.post_link_frequency = below(1000);
        put_number(model.blocks[i].details.post_link_frequency);
    }
}

static void put_function(uint64_t *last_end, const struct shape *shape)
{
    struct cairn_block_function *function = &model.functions[model.function_count];
    *function = (struct cairn_block_function){.range_count = 1 + below(shape->ranges_max)};
    function->features = CAIRN_BBMAP_RANGES;
    if (shape->has_frequencies && one_in(2)) {
        function->features |= CAIRN_BBMAP_ENTRY_COUNT | CAIRN_BBMAP_FREQUENCIES;
        function->entry_count = below(1000);
    }
    if (shape->has_later_features && one_in(2))
        function->features |= CAIRN_BBMAP_CALLSITES;
    if (shape->has_later_features && one_in(2))
        function->features |= CAIRN_BBMAP_HASHES;
    if (shape->has_later_features && one_in(2))
        function->features |= CAIRN_BBMAP_POST_LINK;
    if (shape->has_later_features && one_in(8))
        function->features |= CAIRN_BBMAP_OMITTED_BLOCKS;
    put(shape->has_later_features ? 5 : 2);
    put((uint8_t)function->features);
    if (shape->has_later_features)
        put(0);
    put_number(function->range_count);
    for (uint32_t i = 0; i < function->range_count; i++)
        put_range(i, last_end, shape);
    put_profile(function);
    model.function_count++;
}

static void put_model(const struct shape *shape, uint32_t function_count)
{
    uint64_t end = shape->first_address;
    memset(&model, 0, sizeof model);
    while (model.function_count < function_count &&
           model.range_count + shape->ranges_max < RANGES_MAX &&
           model.block_count + 40 * shape->ranges_max < BLOCKS_MAX)
        put_function(&end, shape);
}

/* Returns the undecided range with the lowest address. */
static struct model_range *next_range(const bool *is_decided)
{
    struct model_range *next = NULL;
    for (uint32_t i = 0; i < model.range_count; i++)
        if (!is_decided[i] && (next == NULL || model.ranges[i].base < next->base))
            next = &model.ranges[i];
    return next;
}

/* Decides which ranges are visible, as the header defines it. Returns how many ranges with code are
 * hidden. */
static uint32_t show_ranges(void)
{
    bool is_decided[RANGES_MAX] = {false};
    uint32_t hidden = 0;
    uint64_t end = 0;
    struct model_range *range;
    while ((range = next_range(is_decided)) != NULL) {
        is_decided[range - model.ranges] = true;
        bool has_code = range->end != range->base;
        range->is_shown = has_code && range->end > range->base && range->base >= end;
        hidden += has_code && !range->is_shown;
        if (range->is_shown)
            end = range->end;
    }
    return hidden;
}

static const struct cairn_block *model_find(uint64_t pc)
{
    for (uint32_t i = 0; i < model.block_count; i++) {
        const struct model_block *block = &model.blocks[i];
        if (model.ranges[block->range].is_shown && pc - block->block.address < block->block.size)
            return &block->block;
    }
    return NULL;
}

/* Returns a function's number in the table: functions are sorted by address, and those at the same
 * address are in the order of adding. */
static uint32_t model_number(uint32_t function)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < model.function_count; i++) {
        uint64_t address = model.functions[i].address;
        number += address < model.functions[function].address ||
                  (address == model.functions[function].address && i < function);
    }
    return number;
}

/* ---- Comparing ---- */

static struct cairn_section model_section(void)
{
    return (struct cairn_section){model.bytes, model.size, CAIRN_LITTLE_ENDIAN};
}

static enum cairn_status make(const struct cairn_allocator *allocator, cairn_block_place *place,
                              void *user, cairn_block_table **table, struct cairn_error *error)
{
    const struct cairn_section section = model_section();
    cairn_block_builder *builder;
    enum cairn_status status = cairn_block_builder_create(allocator, &builder, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_block_builder_add(builder, &section, CAIRN_BBMAP_VERSIONED, place, user, error);
    if (status == CAIRN_OK)
        status = cairn_block_builder_finish(builder, table, error);
    cairn_block_builder_destroy(builder);
    return status;
}

static cairn_block_table *make_table(void)
{
    cairn_block_table *table;
    struct cairn_error error = {0};
    ck_assert_msg(make(NULL, NULL, NULL, &table, &error) == CAIRN_OK, "%s", error.message);
    return table;
}

static void expect_counts(const cairn_block_table *table, uint32_t functions, uint32_t blocks,
                          uint32_t hidden)
{
    struct cairn_block_table_counts counts = cairn_block_table_counts(table);
    expect_equal(counts.functions, functions);
    expect_equal(counts.blocks, blocks);
    expect_equal(counts.hidden_ranges, hidden);
}

static void expect_block(const struct cairn_block *found, const struct cairn_block *expected,
                         uint32_t number)
{
    bool is_same = found->address == expected->address && found->size == expected->size &&
                   found->id == expected->id && found->flags == expected->flags &&
                   found->index == expected->index && found->range == expected->range &&
                   found->function == number && found->range_address == expected->range_address &&
                   found->function_address == expected->function_address &&
                   found->frequency == expected->frequency;
    if (!is_same)
        ck_abort_msg("block %u of function %u at 0x%llx, and not %u of %u at 0x%llx", found->index,
                     found->function, (unsigned long long)found->address, expected->index, number,
                     (unsigned long long)expected->address);
}

static void expect_pc(const cairn_block_table *table, uint64_t pc)
{
    struct cairn_block found;
    const struct cairn_block *expected = model_find(pc);
    bool is_found = cairn_block_table_find(table, pc, &found);
    if (is_found != (expected != NULL))
        ck_abort_msg("0x%llx is %sfound", (unsigned long long)pc, is_found ? "" : "not ");
    if (is_found)
        expect_block(&found, expected, model_number(expected->function));
}

/* Looks up the edges of each block, and a random address in it. */
static void expect_lookups(const cairn_block_table *table)
{
    for (uint32_t i = 0; i < model.block_count; i++) {
        const struct cairn_block *block = &model.blocks[i].block;
        expect_pc(table, block->address - 1);
        expect_pc(table, block->address);
        expect_pc(table, block->address + block->size - 1);
        expect_pc(table, block->address + block->size);
        expect_pc(table, block->address + below(1 << 20));
    }
    expect_pc(table, 0);
    expect_pc(table, UINT64_MAX);
}

static void expect_function(const cairn_block_table *table, uint32_t added)
{
    const struct cairn_block_function *expected = &model.functions[added];
    uint32_t number = model_number(added);
    struct cairn_block_function function;
    struct cairn_block block;
    expect(cairn_block_table_function(table, number, &function));
    expect(function.address == expected->address);
    expect(function.index == number);
    expect(function.range_count == expected->range_count);
    expect(function.block_count == expected->block_count);
    expect(function.features == expected->features);
    expect(function.entry_count == expected->entry_count);
    for (uint32_t i = 0; i < model.block_count; i++) {
        const struct cairn_block *made = &model.blocks[i].block;
        if (made->function != added)
            continue;
        expect(cairn_block_table_block(table, number, made->index, &block));
        expect_block(&block, made, number);
        struct cairn_block_details details;
        const struct cairn_block_details *expected_details = &model.blocks[i].details;
        expect(cairn_block_table_details(table, number, made->index, &details));
        expect(details.hash == expected_details->hash);
        expect(details.post_link_frequency == expected_details->post_link_frequency);
    }
    expect(!cairn_block_table_block(table, number, expected->block_count, &block));
}

static void expect_model(void)
{
    uint32_t hidden = show_ranges();
    cairn_block_table *table = make_table();
    struct cairn_block_function function;
    struct cairn_block block;
    expect_counts(table, model.function_count, model.block_count, hidden);
    expect_lookups(table);
    for (uint32_t i = 0; i < model.function_count; i++)
        expect_function(table, i);
    expect(!cairn_block_table_function(table, model.function_count, &function));
    expect(!cairn_block_table_block(table, model.function_count, 0, &block));
    cairn_block_table_destroy(table);
}

/* ---- Tests ---- */

static const struct shape shapes[] = {
    {0x401000, 40, 16, 1, false, false, false},
    {0x401000, 40, 16, 1, false, true, false},
    {0x401000, 60, 100, 4, false, false, true},
    {0x401000, 60, 100, 4, true, true, true},
    {0x401000, 5000, 1 << 18, 3, true, false, false},
    {0xFFFFFFFF00000000, 1 << 24, 1 << 20, 2, false, true, true},
    {0x1000, 1 << 25, UINT32_MAX, 2, true, false, false},
    {0x401000, 40, 16, 1, false, false, true},
};

START_TEST(lookups_agree_with_a_linear_search)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_model(&shapes[_i], round == 0 ? 0 : 1 + below(one_in(10) ? FUNCTIONS_MAX - 1 : 6));
        expect_model();
    }
}
END_TEST

/* Moves the address at `offset` of the section by a distance that depends on `offset`. */
static uint64_t place_far_apart(void *user, size_t offset, uint64_t address)
{
    const uint64_t *far = user;
    ck_assert_uint_lt(offset, model.size);
    expect_equal(cairn_load_u64(model.bytes + offset, CAIRN_LITTLE_ENDIAN), address);
    return address + *far * offset;
}

START_TEST(ranges_are_where_they_were_placed)
{
    uint64_t far = UINT64_C(1) << 36;
    cairn_block_table *table;
    struct cairn_bbmap_function function;
    struct cairn_block found;
    random_state = sample_seed();
    put_model(&shapes[2], 20);
    const struct cairn_section section = model_section();
    ck_assert_ok(make(NULL, place_far_apart, &far, &table, NULL));
    for (size_t offset = 0; offset < section.size;) {
        struct cairn_bbmap_range range = {0};
        struct cairn_bbmap_block block = {0};
        ck_assert_ok(cairn_bbmap_read(&section, CAIRN_BBMAP_VERSIONED, &offset, &function, NULL));
        expect(cairn_bbmap_next_range(&function, &range));
        while (cairn_bbmap_next(&function, &block)) {
            while (range.index < block.range)
                expect(cairn_bbmap_next_range(&function, &range));
            uint64_t address = range.base + far * range.offset + block.offset;
            if (block.size == 0)
                continue;
            expect(cairn_block_table_find(table, address, &found));
            expect(found.id == block.id && found.address == address);
        }
    }
    cairn_block_table_destroy(table);
}
END_TEST

START_TEST(a_builder_may_add_functions_after_making_a_table)
{
    random_state = sample_seed();
    put_model(&shapes[0], 10);
    const struct cairn_section section = model_section();
    cairn_block_builder *builder;
    ck_assert_ok(cairn_block_builder_create(NULL, &builder, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        cairn_block_table *table;
        ck_assert_ok(cairn_block_builder_finish(builder, &table, NULL));
        expect_equal(cairn_block_table_counts(table).functions, i * model.function_count);
        cairn_block_table_destroy(table);
        ck_assert_ok(
            cairn_block_builder_add(builder, &section, CAIRN_BBMAP_VERSIONED, NULL, NULL, NULL));
    }
    cairn_block_builder_destroy(builder);
}
END_TEST

START_TEST(an_empty_table_has_no_blocks)
{
    static const uint64_t places[] = {0, 0x1000, UINT64_MAX};
    cairn_block_builder *builder;
    cairn_block_table *table;
    struct cairn_block found;
    ck_assert_ok(cairn_block_builder_create(NULL, &builder, NULL));
    ck_assert_ok(cairn_block_builder_finish(builder, &table, NULL));
    cairn_block_builder_destroy(builder);
    expect_counts(table, 0, 0, 0);
    for (unsigned i = 0; i < 3; i++)
        expect(!cairn_block_table_find(table, places[i], &found));
    cairn_block_table_destroy(table);
}
END_TEST

START_TEST(functions_before_one_with_overlapping_blocks_are_added)
{
    /* The encoding in which offsets count from the start of the function. */
    static const uint8_t bytes[] = {
        0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0,          /* one block of 4 bytes */
        0x20, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4, 0, 3, 4, 0, /* the second starts inside the first */
    };
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    cairn_block_builder *builder;
    cairn_block_table *table;
    struct cairn_error error = {0};
    ck_assert_ok(cairn_block_builder_create(NULL, &builder, NULL));
    expect_equal(cairn_block_builder_add(builder, &section, CAIRN_BBMAP_V0, NULL, NULL, &error),
                 CAIRN_ERROR_CORRUPT);
    expect_equal(error.offset, 12);
    ck_assert_str_eq(error.message, "the map of the function at 0x20, block 1: it begins before "
                                    "the end of the one before it");
    ck_assert_ok(cairn_block_builder_finish(builder, &table, NULL));
    expect_counts(table, 1, 1, 0);
    cairn_block_table_destroy(table);
    cairn_block_builder_destroy(builder);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    random_state = sample_seed();
    put_model(&shapes[1], FUNCTIONS_MAX - 1);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    for (size_t fail_at = 1; status != CAIRN_OK; fail_at++) {
        struct counting_allocator counted = {.fail_at = fail_at};
        const struct cairn_allocator allocator = counting(&counted);
        struct cairn_error error = {0};
        cairn_block_table *table = NULL;
        status = make(&allocator, NULL, NULL, &table, &error);
        cairn_block_table_destroy(table);
        expect(status == CAIRN_OK || error.status == CAIRN_ERROR_MEMORY);
        expect_equal(counted.bytes, 0);
        expect_equal(counted.blocks, 0);
        ck_assert_uint_lt(fail_at, 100);
    }
}
END_TEST

START_TEST(null_arguments_are_refused)
{
    cairn_block_table *table;
    expect_equal(cairn_block_builder_create(NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_block_builder_add(NULL, NULL, CAIRN_BBMAP_V0, NULL, NULL, NULL),
                 CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_block_builder_finish(NULL, &table, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_block_builder_destroy(NULL);
    cairn_block_table_destroy(NULL);
}
END_TEST

START_TEST(a_table_is_small)
{
    random_state = sample_seed();
    put_model(&shapes[0], FUNCTIONS_MAX - 1);
    cairn_block_table *table = make_table();
    /* Half of the limit is for functions and their ranges. */
    ck_assert_uint_le(cairn_block_table_counts(table).size_bytes,
                      500 + 14 * model.block_count + 80 * model.function_count);
    cairn_block_table_destroy(table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tables of blocks");
    TCase *tests = tcase_create("blocks");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, lookups_agree_with_a_linear_search, 0,
                        sizeof shapes / sizeof *shapes);
    tcase_add_test(tests, ranges_are_where_they_were_placed);
    tcase_add_test(tests, a_builder_may_add_functions_after_making_a_table);
    tcase_add_test(tests, an_empty_table_has_no_blocks);
    tcase_add_test(tests, functions_before_one_with_overlapping_blocks_are_added);
    tcase_add_test(tests, each_allocation_may_fail);
    tcase_add_test(tests, null_arguments_are_refused);
    tcase_add_test(tests, a_table_is_small);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
