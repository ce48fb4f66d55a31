/*
 * Tests of clang's -fexperimental-sanitize-metadata: random entries of every version, bytes that
 * clang wrote, truncated and invalid sections, names of sections, and the width of addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/sanmd.h"
#include "stackmap_support.h"

#include <cairn/sanmd.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES = 20, ROUNDS = 2000, WIDE = CAIRN_SANMD_WIDE_ADDRESSES };

#define SECTION_ADDRESS UINT64_C(0x7F0000001000)

static const struct cairn_sanmd_format formats[] = {
    {CAIRN_SANMD_COVERED, 1},        {CAIRN_SANMD_COVERED, 2},
    {CAIRN_SANMD_COVERED, 1 | WIDE}, {CAIRN_SANMD_COVERED, 2 | WIDE},
    {CAIRN_SANMD_ATOMICS, 1},        {CAIRN_SANMD_ATOMICS, 2},
    {CAIRN_SANMD_ATOMICS, 1 | WIDE}, {CAIRN_SANMD_ATOMICS, 2 | WIDE},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Writing ---- */

static struct {
    struct cairn_sanmd_format format;
    struct sample_section section;
    struct cairn_sanmd_entry entries[ENTRIES];
} written;

static uint32_t version_number(void) { return written.format.version & CAIRN_SANMD_VERSION_MASK; }

static void put_number(uint32_t value)
{
    if (version_number() == 1) {
        section_put(&written.section, value, 4);
        return;
    }
    for (; value >= 0x80; value >>= 7)
        section_put(&written.section, (value & 0x7F) | 0x80, 1);
    section_put(&written.section, value, 1);
}

/* Writes an address up to 2 GiB away, or any address if addresses are wide. */
static uint64_t put_address(void)
{
    bool is_wide = (written.format.version & WIDE) != 0;
    int64_t relative = (int64_t)below(UINT32_MAX) - INT32_MAX;
    relative *= is_wide ? 1 + below(1000) : 1;
    uint64_t address = SECTION_ADDRESS + written.section.size + (uint64_t)relative;
    section_put(&written.section, (uint64_t)relative, is_wide ? 8 : 4);
    return address;
}

static void begin_section(struct cairn_sanmd_format format)
{
    section_free(&written.section);
    written.format = format;
    written.section = (struct sample_section){.byte_order = below(2) == 0 ? CAIRN_LITTLE_ENDIAN
                                                                          : CAIRN_BIG_ENDIAN};
}

static void put_entries(struct cairn_sanmd_format format)
{
    begin_section(format);
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct cairn_sanmd_entry *entry = &written.entries[i];
        *entry = (struct cairn_sanmd_entry){.offset = written.section.size};
        entry->address = put_address();
        if (format.kind == CAIRN_SANMD_ATOMICS)
            continue;
        entry->size = below(UINT32_MAX) >> below(32);
        entry->features = below(version_number() == 1 ? 4 : 8);
        put_number(entry->size);
        put_number(entry->features);
        if ((entry->features & (version_number() == 1 ? 2U : 4U)) == 0)
            continue;
        entry->stack_argument_bytes = below(UINT32_MAX) >> below(32);
        put_number(entry->stack_argument_bytes);
    }
}

/* ---- Reading ---- */

static enum cairn_status read_entry(const struct guarded *guarded, size_t *offset,
                                    struct cairn_sanmd_entry *entry, struct cairn_error *error)
{
    const struct cairn_section section = {guarded->bytes, guarded->size,
                                          written.section.byte_order};
    return cairn_sanmd_read(&section, SECTION_ADDRESS, written.format, offset, entry, error);
}

START_TEST(random_entries_are_read_as_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_entries(formats[_i]);
        struct guarded guarded = guard(written.section.bytes, written.section.size);
        size_t offset = 0;
        for (unsigned i = 0; i < ENTRIES; i++) {
            const struct cairn_sanmd_entry *expected = &written.entries[i];
            struct cairn_sanmd_entry found;
            ck_assert_ok(read_entry(&guarded, &offset, &found, NULL));
            expect(found.offset == expected->offset);
            expect(found.address == expected->address);
            expect(found.size == expected->size);
            expect(found.features == expected->features);
            expect(found.stack_argument_bytes == expected->stack_argument_bytes);
        }
        expect_equal(offset, written.section.size);
        guard_end(&guarded);
    }
}
END_TEST

/* ---- Sections written by clang ---- */

/* f has 16 bytes, with an atomic access. u has 0x90 bytes, and its frame may be used after its
 * return. s is the same with 24 bytes of arguments on the stack. Addresses begin 0x1000 above the
 * section. */
static const uint8_t clang_16[] = {
    0x00, 0x10, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, /* f */
    0x04, 0x10, 0x00, 0x00, 0x90, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, /* u */
    0x84, 0x10, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
    0x18, 0x00, 0x00, 0x00, /* s */
};
static const uint8_t clang_19[] = {
    0x00, 0x10, 0x00, 0x00, 0x10, 0x01,       /* f */
    0x0A, 0x10, 0x00, 0x00, 0x90, 0x01, 0x03, /* u */
    0x93, 0x10, 0x00, 0x00, 0x20, 0x06, 0x18, /* s */
};

static void expect_three_functions(const uint8_t *bytes, size_t size, uint32_t version,
                                   uint32_t last_features)
{
    const struct cairn_section section = {bytes, size, CAIRN_LITTLE_ENDIAN};
    const struct cairn_sanmd_format format = {CAIRN_SANMD_COVERED, version};
    struct cairn_sanmd_entry function;
    size_t offset = 0;
    ck_assert_ok(cairn_sanmd_read(&section, 0, format, &offset, &function, NULL));
    expect_equal(function.address, 0x1000);
    expect_equal(function.size, 0x10);
    expect_equal(function.features, CAIRN_SANMD_FEATURE_ATOMICS);
    ck_assert_ok(cairn_sanmd_read(&section, 0, format, &offset, &function, NULL));
    expect_equal(function.address, 0x1010);
    expect_equal(function.size, 0x90);
    expect_equal(function.features, 3);
    expect_equal(function.stack_argument_bytes, 0);
    ck_assert_ok(cairn_sanmd_read(&section, 0, format, &offset, &function, NULL));
    expect_equal(function.address, 0x10A0);
    expect_equal(function.features, last_features);
    expect_equal(function.stack_argument_bytes, 24);
    expect_equal(offset, size);
}

START_TEST(version_1_has_argument_sizes_with_use_after_return)
{
    expect_three_functions(clang_16, sizeof clang_16, 1, 2);
}
END_TEST

START_TEST(version_2_has_argument_sizes_with_a_separate_bit)
{
    expect_three_functions(clang_19, sizeof clang_19, 2, 6);
}
END_TEST

/* ---- Errors ---- */

/* Entries that end before the cut are returned; the error message names the next one. */
static void expect_truncated(size_t size)
{
    struct guarded guarded = guard(written.section.bytes, size);
    size_t offset = 0;
    for (unsigned i = 0; offset < size; i++) {
        size_t end = i + 1 == ENTRIES ? written.section.size : written.entries[i + 1].offset;
        struct cairn_sanmd_entry entry = {.size = 77};
        struct cairn_error error = {0};
        enum cairn_status status = read_entry(&guarded, &offset, &entry, &error);
        if (end <= size) {
            ck_assert_ok(status);
            continue;
        }
        char place[32];
        snprintf(place, sizeof place, "at byte %zu: ", written.entries[i].offset);
        expect_equal(status, CAIRN_ERROR_TRUNCATED);
        expect_equal(offset, written.entries[i].offset);
        expect_equal(entry.size, 77);
        expect(error.offset >= offset && error.offset <= size);
        expect(strstr(error.message, place) != NULL);
        break;
    }
    guard_end(&guarded);
}

START_TEST(truncated_sections_are_refused_at_the_entry)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < 5; round++) {
        put_entries(formats[_i]);
        for (size_t size = 0; size < written.section.size; size++)
            expect_truncated(size);
    }
}
END_TEST

static const struct {
    const char *what;
    uint32_t version;
    uint8_t size;
    uint8_t bytes[24];
    enum cairn_status status;
    uint64_t offset;
    const char *sentence;
} refused[] = {
    {"a later version",
     3,
     6,
     {0},
     CAIRN_ERROR_VERSION,
     0,
     "the metadata has version 3 with flags 0x0, and Cairn knows 1 and 2 with the flag 0x1 for "
     "wide addresses"},
    {"no version",
     0,
     6,
     {0},
     CAIRN_ERROR_VERSION,
     0,
     "the metadata has version 0 with flags 0x0, and Cairn knows 1 and 2 with the flag 0x1 for "
     "wide addresses"},
    {"another flag",
     2 | 1 << 17,
     6,
     {0},
     CAIRN_ERROR_VERSION,
     0,
     "the metadata has version 2 with flags 0x2, and Cairn knows 1 and 2 with the flag 0x1 for "
     "wide addresses"},
    {"a feature of version 2 in version 1",
     1,
     16,
     {0, 1, 0, 0, 5, 0, 0, 0, 4},
     CAIRN_ERROR_CORRUPT,
     0,
     "the covered function 0x100 at byte 0: its features are 0x4, and version 1 has none but 0x3"},
    {"an unknown feature",
     2,
     6,
     {0, 1, 0, 0, 5, 9},
     CAIRN_ERROR_CORRUPT,
     0,
     "the covered function 0x100 at byte 0: its features are 0x9, and version 2 has none but 0x7"},
    {"an unknown feature above 32 bits",
     2,
     13,
     {0, 1, 0, 0, 5, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},
     CAIRN_ERROR_CORRUPT,
     0,
     "the covered function 0x100 at byte 0: its features are 0x2000000000000, and version 2 has "
     "none but 0x7"},
    {"a size of more than 32 bits",
     2,
     10,
     {0, 1, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10},
     CAIRN_ERROR_CORRUPT,
     4,
     "the covered function at byte 0: its address (4 bytes), size and features (ULEB128) in "
     "version 2 have a number that is too large"},
    {"more arguments than 32 bits",
     2,
     11,
     {0, 1, 0, 0, 5, 6, 0x80, 0x80, 0x80, 0x80, 0x10},
     CAIRN_ERROR_CORRUPT,
     6,
     "the covered function 0x100 at byte 0: its features are 0x6, after which version 2 has the "
     "size of its stack arguments, which is too large"},
    {"no size of arguments",
     1,
     12,
     {0, 1, 0, 0, 5, 0, 0, 0, 2},
     CAIRN_ERROR_TRUNCATED,
     12,
     "the covered function 0x100 at byte 0: its features are 0x2, after which version 1 has the "
     "size of its stack arguments, which goes beyond the section's end"},
    {"a number without an end",
     2,
     6,
     {0, 1, 0, 0, 0x80, 0x80},
     CAIRN_ERROR_TRUNCATED,
     4,
     "the covered function at byte 0: its address (4 bytes), size and features (ULEB128) in "
     "version 2 go beyond the section's end"},
    {"version 1 read as wide",
     1 | WIDE,
     12,
     {0},
     CAIRN_ERROR_TRUNCATED,
     12,
     "the covered function at byte 0: its address (8 bytes), size and features (4 bytes each) in "
     "version 1 go beyond the section's end"},
};

START_TEST(invalid_functions_are_refused_with_a_reason)
{
    struct guarded guarded = guard(refused[_i].bytes, refused[_i].size);
    const struct cairn_section section = {guarded.bytes, guarded.size, CAIRN_LITTLE_ENDIAN};
    const struct cairn_sanmd_format format = {CAIRN_SANMD_COVERED, refused[_i].version};
    struct cairn_sanmd_entry function = {.size = 77};
    struct cairn_error error = {0};
    size_t offset = 0;
    ck_assert_msg(cairn_sanmd_read(&section, 0, format, &offset, &function, &error) ==
                      refused[_i].status,
                  "%s: %s", refused[_i].what, error.message);
    ck_assert_str_eq(error.message, refused[_i].sentence);
    expect_equal(error.offset, refused[_i].offset);
    expect_equal(offset, 0);
    expect_equal(function.size, 77);
    guard_end(&guarded);
}
END_TEST

START_TEST(unknown_versions_and_offsets_outside_of_the_section_are_refused)
{
    static const uint8_t bytes[8];
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    struct cairn_sanmd_format format = {_i == 0 ? CAIRN_SANMD_COVERED : CAIRN_SANMD_ATOMICS, 3};
    struct cairn_sanmd_entry entry;
    size_t offset = 0;
    expect_equal(cairn_sanmd_read(&section, 0, format, &offset, &entry, NULL), CAIRN_ERROR_VERSION);
    offset = sizeof bytes;
    format.version = 2;
    expect_equal(cairn_sanmd_read(&section, 0, format, &offset, &entry, NULL),
                 CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Names ---- */

static const struct {
    const char *name;
    bool is_one;
    struct cairn_sanmd_format format;
} names[] = {
    {"sanmd_covered", true, {CAIRN_SANMD_COVERED, 1}},
    {"sanmd_atomics", true, {CAIRN_SANMD_ATOMICS, 1}},
    {"sanmd_covered2", true, {CAIRN_SANMD_COVERED, 2}},
    {"sanmd_atomics2", true, {CAIRN_SANMD_ATOMICS, 2}},
    {"sanmd_covered65538", true, {CAIRN_SANMD_COVERED, 2 | WIDE}},
    {"sanmd_atomics65538", true, {CAIRN_SANMD_ATOMICS, 2 | WIDE}},
    {"sanmd_atomics4294967295", true, {CAIRN_SANMD_ATOMICS, UINT32_MAX}},
    {"sanmd_atomics4294967296", false, {CAIRN_SANMD_COVERED, 0}},
    {"sanmd_covered!C", false, {CAIRN_SANMD_COVERED, 0}},
    {"sanmd_cover", false, {CAIRN_SANMD_COVERED, 0}},
    {"sanmd_others2", false, {CAIRN_SANMD_COVERED, 0}},
    {"", false, {CAIRN_SANMD_COVERED, 0}},
};

START_TEST(section_names_have_the_format)
{
    struct cairn_sanmd_format format = {.version = 77};
    bool is_one = cairn_sanmd_parse_name(names[_i].name, NULL, 0, &format);
    ck_assert_msg(is_one == names[_i].is_one, "%s", names[_i].name);
    expect_equal(format.version, is_one ? names[_i].format.version : 77);
    if (!is_one)
        return;
    expect_equal(format.kind, names[_i].format.kind);
}
END_TEST

START_TEST(features_have_names)
{
    ck_assert_str_eq(sanmd_feature_name(CAIRN_SANMD_FEATURE_ATOMICS), "atomics");
    ck_assert_str_eq(sanmd_feature_name(CAIRN_SANMD_FEATURE_USE_AFTER_RETURN), "use-after-return");
    ck_assert_str_eq(sanmd_feature_name(CAIRN_SANMD_FEATURE_STACK_ARGUMENTS), "stack arguments");
    ck_assert_ptr_null(sanmd_feature_name(8));
    ck_assert_ptr_null(sanmd_feature_name(0));
}
END_TEST

/* ---- The width of addresses ---- */

enum { CODE = 0x400000, CODE_STEP = 0x800, DATA = 0x500000 };

/* Writes functions or accesses whose code is on one of the two sides of the section. */
static struct cairn_section put_code(struct cairn_sanmd_format format, unsigned count)
{
    begin_section(format);
    size_t bytes = (format.version & WIDE) != 0 ? 8 : 4;
    uint64_t code = below(2) == 0 ? CODE : 2 * CODE;
    for (unsigned i = 0; i < count; i++) {
        uint64_t address = code + i * CODE_STEP + below(CODE_STEP);
        section_put(&written.section, address - DATA - written.section.size, bytes);
        if (format.kind == CAIRN_SANMD_ATOMICS)
            continue;
        put_number(below(4) == 0 ? 0 : below(CODE_STEP));
        put_number(below(2));
    }
    return section_view(&written.section);
}

START_TEST(width_of_addresses_is_found_with_and_without_the_flag)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        char name[32];
        struct cairn_section section = put_code(formats[_i], 1 + below(ENTRIES));
        struct cairn_sanmd_format format = {formats[_i].kind, version_number()};
        expect(sanmd_has_wide_addresses(&section, DATA, format) ==
               ((formats[_i].version & WIDE) != 0));
        format.version |= WIDE;
        expect(sanmd_has_wide_addresses(&section, DATA, format));
        snprintf(name, sizeof name, "sanmd_%s%u",
                 format.kind == CAIRN_SANMD_COVERED ? "covered" : "atomics", version_number());
        expect(cairn_sanmd_parse_name(name, &section, DATA, &format));
        expect((format.version & WIDE) == (formats[_i].version & WIDE));
    }
}
END_TEST

START_TEST(an_empty_section_has_no_wide_addresses)
{
    const struct cairn_section section = {(const uint8_t *)"", 0, CAIRN_LITTLE_ENDIAN};
    const struct cairn_sanmd_format format = {CAIRN_SANMD_ATOMICS, 2};
    expect(!sanmd_has_wide_addresses(&section, 0, format));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sanitizers' metadata");
    TCase *tests = tcase_create("entries");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, random_entries_are_read_as_written, 0, FORMATS);
    tcase_add_test(tests, version_1_has_argument_sizes_with_use_after_return);
    tcase_add_test(tests, version_2_has_argument_sizes_with_a_separate_bit);
    tcase_add_loop_test(tests, truncated_sections_are_refused_at_the_entry, 0, FORMATS);
    tcase_add_loop_test(tests, invalid_functions_are_refused_with_a_reason, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_loop_test(tests, unknown_versions_and_offsets_outside_of_the_section_are_refused, 0,
                        2);
    tcase_add_loop_test(tests, section_names_have_the_format, 0, sizeof names / sizeof *names);
    tcase_add_test(tests, features_have_names);
    tcase_add_loop_test(tests, width_of_addresses_is_found_with_and_without_the_flag, 0, FORMATS);
    tcase_add_test(tests, an_empty_section_has_no_wide_addresses);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
