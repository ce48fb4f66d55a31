/*
 * check_code_parts.c - parts of pages of code, in dual mapping: src/code/parts.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/parts.h"
#include "code/state.h"
#include "code_support.h"

#include <string.h>
#include <unistd.h>

enum { PARTS_MAX = 400 };

struct part {
    size_t offset;
    size_t size;
    uint8_t mark;
};

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static bool is_dual(void)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
    bool result = code_space_mode(space) == CAIRN_CODE_MODE_DUAL;
    code_space_destroy(space);
    return result;
}

static struct code_slab *only_slab(struct code_space *space) { return space->slabs; }

static size_t take(struct code_slab *slab, size_t size, size_t alignment)
{
    size_t offset = SIZE_MAX;
    bool found;
    ck_assert_ok(parts_take(slab, PAGES_FOR_CODE, size, alignment, &offset, &found, NULL));
    ck_assert(found);
    ck_assert_uint_eq(offset % alignment, 0);
    ck_assert_uint_le(offset + size, slab->size);
    return offset;
}

static void write_part(const struct code_slab *slab, const struct part *part)
{
    memset(slab->alias + part->offset, part->mark, part->size);
}

static void check_part(const struct code_slab *slab, const struct part *part)
{
    size_t wrong = 0;
    for (size_t i = 0; i < part->size; i++)
        wrong += slab->base[part->offset + i] != part->mark;
    ck_assert_uint_eq(wrong, 0);
}

START_TEST(small_parts_share_a_page)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 64 * page_size(), 1);
    struct code_slab *slab = only_slab(space);
    size_t first = take(slab, 40, 16);
    ck_assert_uint_eq(take(slab, 16, 16), first + 48);
    ck_assert_uint_eq(take(slab, 1, 64), first + 64);
    ck_assert_uint_eq(support_statistics(space).code_bytes, page_size());
    ck_assert_str_eq(support_protection(slab->base + first), "r-x");
    code_space_destroy(space);
}
END_TEST

START_TEST(page_without_parts_is_spare)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 64 * page_size(), 1);
    struct code_slab *slab = only_slab(space);
    size_t part = take(slab, 3 * page_size() / 2, 16);
    size_t small = take(slab, 16, 16);
    parts_give(slab, PAGES_FOR_CODE, part, 3 * page_size() / 2);
    ck_assert_uint_eq(support_statistics(space).code_bytes, page_size());
    parts_give(slab, PAGES_FOR_CODE, small, 16);
    ck_assert_uint_eq(support_statistics(space).code_bytes, 0);
    ck_assert_str_eq(support_protection(slab->base + part), "r-x");
    slab_clean(slab);
    ck_assert_uint_eq(slab->base[part], 0);
    code_space_destroy(space);
}
END_TEST

START_TEST(part_larger_than_the_slab_is_not_found)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 64 * page_size(), 1);
    size_t offset;
    bool found = true;
    ck_assert_ok(parts_take(only_slab(space), PAGES_FOR_CODE, 64 * page_size() + 1, 16, &offset,
                            &found, NULL));
    ck_assert(!found);
    ck_assert_ok(parts_take(only_slab(space), PAGES_FOR_CODE, SIZE_MAX, 16, &offset, &found, NULL));
    ck_assert(!found);
    take(only_slab(space), 64 * page_size(), 16);
    ck_assert_ok(parts_take(only_slab(space), PAGES_FOR_CODE, 1, 16, &offset, &found, NULL));
    ck_assert(!found);
    code_space_destroy(space);
}
END_TEST

/* Sections of a block are pages until the block is protected; parts are what they leave. */
START_TEST(rest_of_a_blocks_last_page_is_used)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 64 * page_size(), 1);
    struct code_slab *slab = only_slab(space);
    struct code_block *block = support_block(space);
    void *code;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, 100, 16, &code, NULL));
    memset(code, 0x55, 100);
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_ok(code_block_publish(block, block, NULL));
    struct part part = {.offset = take(slab, 200, 16), .size = 200, .mark = 7};
    size_t start = (size_t)((uint8_t *)code - slab->base);
    ck_assert_uint_eq(part.offset, start + 128);
    write_part(slab, &part);
    ck_assert_uint_eq(((uint8_t *)code)[99], 0x55);
    ck_assert_ptr_eq(code_space_find_owner(space, (uint64_t)(uintptr_t)code + 99), block);
    ck_assert_ptr_null(code_space_find_owner(space, (uint64_t)(uintptr_t)code + 128));
    code_block_destroy(block);
    check_part(slab, &part);
    parts_give(slab, PAGES_FOR_CODE, part.offset, part.size);
    ck_assert_uint_eq(support_statistics(space).code_bytes, 0);
    code_space_destroy(space);
}
END_TEST

/* ---- Random parts ---- */

static void check_apart(const struct part *parts, size_t count, const struct part *added)
{
    size_t overlapping = 0;
    for (size_t i = 0; i < count; i++)
        overlapping += parts[i].offset + parts[i].size > added->offset &&
                       added->offset + added->size > parts[i].offset;
    ck_assert_uint_eq(overlapping, 0);
}

START_TEST(random_parts_keep_their_bytes)
{
    enum { ROUNDS = 4000 };
    static struct part parts[PARTS_MAX];
    size_t count = 0;
    uint64_t random = support_seed() + (uint64_t)_i;
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, 1024 * page_size(), 1);
    struct code_slab *slab = only_slab(space);
    for (int i = 0; i < ROUNDS; i++) {
        bool is_large = support_random(&random) % 32 == 0;
        if (count == PARTS_MAX || (count > 0 && support_random(&random) % 5 < 2)) {
            struct part *part = &parts[support_random(&random) % count];
            check_part(slab, part);
            parts_give(slab, PAGES_FOR_CODE, part->offset, part->size);
            *part = parts[--count];
            continue;
        }
        struct part *part = &parts[count];
        part->size = 1 + support_random(&random) % (is_large ? 3 * page_size() : 300);
        part->mark = (uint8_t)support_random(&random);
        part->offset = take(slab, part->size, (size_t)16 << support_random(&random) % 4);
        check_apart(parts, count, part);
        write_part(slab, part);
        count++;
    }
    while (count > 0) {
        check_part(slab, &parts[--count]);
        parts_give(slab, PAGES_FOR_CODE, parts[count].offset, parts[count].size);
    }
    struct cairn_runtime_statistics statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.code_bytes, 0);
    ck_assert_uint_eq(statistics.free_bytes, statistics.slab_size_bytes);
    code_space_destroy(space);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tests = tcase_create("parts");
    tcase_set_timeout(tests, 60);
    if (!is_dual())
        return 77;
    tcase_add_test(tests, small_parts_share_a_page);
    tcase_add_test(tests, page_without_parts_is_spare);
    tcase_add_test(tests, part_larger_than_the_slab_is_not_found);
    tcase_add_test(tests, rest_of_a_blocks_last_page_is_used);
    tcase_add_loop_test(tests, random_parts_keep_their_bytes, 0, 10);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
