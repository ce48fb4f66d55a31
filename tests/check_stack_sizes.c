/*
 * Tests of .stack_sizes and __sancov_pcs: random entries in both byte orders and sizes of pointers,
 * truncated sections, numbers that are too large, and invalid arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/sancov.h>
#include <cairn/stack_sizes.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES = 20, ROUNDS = 500, FORMS = 4 };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

static uint64_t random_number(unsigned bytes)
{
    uint64_t number = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
    return number >> (64 - 8 * bytes) >> below(8 * bytes);
}

/* ---- Writing ---- */

static struct {
    unsigned address_bytes;
    struct sample_section section;
    struct cairn_stack_size sizes[ENTRIES];
    struct cairn_sancov_point points[ENTRIES];
} written;

/* Begins a section in one of the forms: two byte orders, two sizes of pointers. */
static void begin_section(int form)
{
    section_free(&written.section);
    written.section = (struct sample_section){.byte_order = (form & 1) != 0 ? CAIRN_BIG_ENDIAN
                                                                            : CAIRN_LITTLE_ENDIAN};
    written.address_bytes = (form & 2) != 0 ? 4 : 8;
}

static void put_uleb128(uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        section_put(&written.section, (value & 0x7F) | 0x80, 1);
    section_put(&written.section, value, 1);
}

static void put_sizes(int form)
{
    begin_section(form);
    for (unsigned i = 0; i < ENTRIES; i++) {
        written.sizes[i] =
            (struct cairn_stack_size){.offset = written.section.size,
                                      .address = random_number(written.address_bytes),
                                      .size = random_number(8)};
        section_put(&written.section, written.sizes[i].address, written.address_bytes);
        put_uleb128(written.sizes[i].size);
    }
}

static void put_points(int form)
{
    begin_section(form);
    for (unsigned i = 0; i < ENTRIES; i++) {
        written.points[i] =
            (struct cairn_sancov_point){.index = i,
                                        .address = random_number(written.address_bytes),
                                        .flags = random_number(written.address_bytes)};
        section_put(&written.section, written.points[i].address, written.address_bytes);
        section_put(&written.section, written.points[i].flags, written.address_bytes);
    }
}

/* ---- Reading ---- */

static struct cairn_section view(const struct guarded *guarded)
{
    return (struct cairn_section){guarded->bytes, guarded->size, written.section.byte_order};
}

START_TEST(random_stack_sizes_are_read_as_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_sizes(_i);
        struct guarded guarded = guard(written.section.bytes, written.section.size);
        const struct cairn_section section = view(&guarded);
        size_t offset = 0;
        for (unsigned i = 0; i < ENTRIES; i++) {
            struct cairn_stack_size found;
            ck_assert_ok(
                cairn_stack_size_read(&section, written.address_bytes, &offset, &found, NULL));
            expect_equal(found.offset, written.sizes[i].offset);
            expect_equal(found.address, written.sizes[i].address);
            expect_equal(found.size, written.sizes[i].size);
        }
        expect_equal(offset, section.size);
        guard_end(&guarded);
    }
}
END_TEST

START_TEST(random_coverage_points_are_read_as_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_points(_i);
        struct guarded guarded = guard(written.section.bytes, written.section.size);
        const struct cairn_section section = view(&guarded);
        size_t offset = 0;
        for (unsigned i = 0; i < ENTRIES; i++) {
            struct cairn_sancov_point found;
            ck_assert_ok(cairn_sancov_read(&section, written.address_bytes, &offset, &found, NULL));
            expect_equal(found.index, i);
            expect_equal(found.address, written.points[i].address);
            expect_equal(found.flags, written.points[i].flags);
        }
        expect_equal(offset, section.size);
        guard_end(&guarded);
    }
}
END_TEST

/* ---- Errors ---- */

/* Reads stack sizes up to an error. Returns the number of those before it. */
static unsigned read_sizes(const struct cairn_section *section, struct cairn_error *error)
{
    unsigned count = 0;
    *error = (struct cairn_error){.status = CAIRN_OK};
    for (size_t offset = 0; offset < section->size; count++) {
        struct cairn_stack_size entry = {.size = 77};
        size_t begin = offset;
        if (cairn_stack_size_read(section, written.address_bytes, &offset, &entry, error) ==
            CAIRN_OK)
            continue;
        expect_equal(offset, begin);
        expect_equal(entry.size, 77);
        expect(error->offset >= begin && error->offset <= section->size);
        break;
    }
    return count;
}

START_TEST(truncated_stack_sizes_are_refused_at_the_entry)
{
    random_state = sample_seed();
    put_sizes(_i);
    for (size_t size = 0; size < written.section.size; size++) {
        struct guarded guarded = guard(written.section.bytes, size);
        const struct cairn_section section = view(&guarded);
        struct cairn_error error;
        char place[32];
        unsigned count = read_sizes(&section, &error);
        snprintf(place, sizeof place, "at byte %zu", written.sizes[count].offset);
        if (size == written.sizes[count].offset) {
            expect_equal(error.status, CAIRN_OK);
        } else {
            expect_equal(error.status, CAIRN_ERROR_TRUNCATED);
            ck_assert_ptr_nonnull(strstr(error.message, place));
        }
        guard_end(&guarded);
    }
}
END_TEST

START_TEST(truncated_coverage_points_are_refused_at_the_entry)
{
    random_state = sample_seed();
    put_points(_i);
    const size_t entry_bytes = 2 * (size_t)written.address_bytes;
    for (size_t size = 1; size < written.section.size; size++) {
        struct guarded guarded = guard(written.section.bytes, size);
        const struct cairn_section section = view(&guarded);
        struct cairn_sancov_point point = {.flags = 77};
        struct cairn_error error = {.status = CAIRN_OK};
        size_t offset = size / entry_bytes * entry_bytes;
        enum cairn_status status =
            offset == size
                ? CAIRN_OK
                : cairn_sancov_read(&section, written.address_bytes, &offset, &point, &error);
        expect_equal(status, size % entry_bytes == 0 ? CAIRN_OK : CAIRN_ERROR_TRUNCATED);
        expect_equal(offset, size / entry_bytes * entry_bytes);
        expect_equal(error.offset, status == CAIRN_OK ? 0 : offset);
        expect_equal(point.flags, 77);
        guard_end(&guarded);
    }
}
END_TEST

START_TEST(a_stack_size_of_more_than_64_bits_is_refused)
{
    static const uint8_t bytes[] = {0,    1,    0,    0,    0x80, 0x80, 0x80, 0x80,
                                    0x80, 0x80, 0x80, 0x80, 0x80, 0x02, 0};
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    struct cairn_stack_size entry;
    struct cairn_error error;
    size_t offset = 0;
    expect_equal(cairn_stack_size_read(&section, 4, &offset, &entry, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_str_eq(error.message, "the stack size at byte 0, of the function 0x100: the number "
                                    "(ULEB128) has more than 64 bits");
    expect_equal(error.offset, 4);
    expect_equal(offset, 0);
}
END_TEST

START_TEST(invalid_arguments_are_refused)
{
    static const uint8_t bytes[32];
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    const struct cairn_section empty = {NULL, 0, CAIRN_LITTLE_ENDIAN};
    struct cairn_stack_size entry;
    struct cairn_sancov_point point;
    size_t offset = 0;
    expect_equal(cairn_stack_size_read(&section, 2, &offset, &entry, NULL), CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_sancov_read(&section, 16, &offset, &point, NULL), CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_stack_size_read(&empty, 8, &offset, &entry, NULL), CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_sancov_read(&empty, 8, &offset, &point, NULL), CAIRN_ERROR_ARGUMENT);
    offset = sizeof bytes;
    expect_equal(cairn_stack_size_read(&section, 8, &offset, &entry, NULL), CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_sancov_read(&section, 8, &offset, &point, NULL), CAIRN_ERROR_ARGUMENT);
    offset = 8;
    expect_equal(cairn_sancov_read(&section, 8, &offset, &point, NULL), CAIRN_ERROR_ARGUMENT);
    expect_equal(offset, 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stack sizes and coverage points");
    TCase *tests = tcase_create("entries");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, random_stack_sizes_are_read_as_written, 0, FORMS);
    tcase_add_loop_test(tests, random_coverage_points_are_read_as_written, 0, FORMS);
    tcase_add_loop_test(tests, truncated_stack_sizes_are_refused_at_the_entry, 0, FORMS);
    tcase_add_loop_test(tests, truncated_coverage_points_are_refused_at_the_entry, 0, FORMS);
    tcase_add_test(tests, a_stack_size_of_more_than_64_bits_is_refused);
    tcase_add_test(tests, invalid_arguments_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
