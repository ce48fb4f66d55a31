/*
 * Tests of clang's -fexperimental-sanitize-metadata: random entries of every version are read back
 * unchanged; bytes that clang wrote are read; truncated and invalid sections are refused with the
 * offset of the error; names of sections; the width of addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include <cairn/sanmd.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES = 20, ROUNDS = 2000, WIDE = CAIRN_SANMD_WIDE_ADDRESSES };

#define SECTION_ADDRESS UINT64_C(0x7F0000001000)

static const uint32_t versions[] = {1, 2, 1 | WIDE, 2 | WIDE};
enum { VERSIONS = sizeof versions / sizeof *versions };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Writing ---- */

static struct {
    uint32_t version;
    struct sample_section section;
    struct cairn_sanmd_covered functions[ENTRIES];
    struct cairn_sanmd_atomic atomics[ENTRIES];
} written;

static void put_number(uint32_t value)
{
    if ((written.version & CAIRN_SANMD_VERSION_MASK) == 1) {
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
    bool is_wide = (written.version & WIDE) != 0;
    int64_t relative = (int64_t)below(UINT32_MAX) - INT32_MAX;
    relative *= is_wide ? 1 + below(1000) : 1;
    uint64_t address = SECTION_ADDRESS + written.section.size + (uint64_t)relative;
    section_put(&written.section, (uint64_t)relative, is_wide ? 8 : 4);
    return address;
}

static bool features_have_size(uint32_t features)
{
    return (features & ((written.version & CAIRN_SANMD_VERSION_MASK) == 1 ? 2U : 4U)) != 0;
}

static void put_covered(struct cairn_sanmd_covered *function)
{
    bool is_first = (written.version & CAIRN_SANMD_VERSION_MASK) == 1;
    *function = (struct cairn_sanmd_covered){.offset = written.section.size,
                                             .size = below(UINT32_MAX) >> below(32),
                                             .features = below(is_first ? 4 : 8)};
    if (features_have_size(function->features))
        function->stack_argument_bytes = below(UINT32_MAX) >> below(32);
    function->address = put_address();
    put_number(function->size);
    put_number(function->features);
    if (features_have_size(function->features))
        put_number(function->stack_argument_bytes);
}

static void begin_section(uint32_t version)
{
    section_free(&written.section);
    written.version = version;
    written.section = (struct sample_section){.byte_order = below(2) == 0 ? CAIRN_LITTLE_ENDIAN
                                                                          : CAIRN_BIG_ENDIAN};
}

static void put_functions(uint32_t version)
{
    begin_section(version);
    for (unsigned i = 0; i < ENTRIES; i++)
        put_covered(&written.functions[i]);
}

static void put_atomics(uint32_t version)
{
    begin_section(version);
    for (unsigned i = 0; i < ENTRIES; i++) {
        written.atomics[i].offset = written.section.size;
        written.atomics[i].address = put_address();
    }
}

/* ---- Reading ---- */

static enum cairn_status read_covered(const struct guarded *guarded, size_t *offset,
                                      struct cairn_sanmd_covered *function,
                                      struct cairn_error *error)
{
    const struct cairn_section section = {guarded->bytes, guarded->size,
                                          written.section.byte_order};
    return cairn_sanmd_read_covered(&section, SECTION_ADDRESS, written.version, offset, function,
                                    error);
}

static enum cairn_status read_atomic(const struct guarded *guarded, size_t *offset,
                                     struct cairn_sanmd_atomic *atomic, struct cairn_error *error)
{
    const struct cairn_section section = {guarded->bytes, guarded->size,
                                          written.section.byte_order};
    return cairn_sanmd_read_atomic(&section, SECTION_ADDRESS, written.version, offset, atomic,
                                   error);
}

static void expect_function(const struct cairn_sanmd_covered *found,
                            const struct cairn_sanmd_covered *expected)
{
    expect(found->offset == expected->offset);
    expect(found->address == expected->address);
    expect(found->size == expected->size);
    expect(found->features == expected->features);
    expect(found->stack_argument_bytes == expected->stack_argument_bytes);
}

START_TEST(random_functions_are_read_as_they_were_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_functions(versions[_i]);
        struct guarded guarded = guard(written.section.bytes, written.section.size);
        size_t offset = 0;
        for (unsigned i = 0; i < ENTRIES; i++) {
            struct cairn_sanmd_covered function;
            ck_assert_ok(read_covered(&guarded, &offset, &function, NULL));
            expect_function(&function, &written.functions[i]);
        }
        expect_equal(offset, written.section.size);
        guard_end(&guarded);
    }
}
END_TEST

START_TEST(random_accesses_are_read_as_they_were_written)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        put_atomics(versions[_i]);
        struct guarded guarded = guard(written.section.bytes, written.section.size);
        size_t offset = 0;
        for (unsigned i = 0; i < ENTRIES; i++) {
            struct cairn_sanmd_atomic atomic;
            ck_assert_ok(read_atomic(&guarded, &offset, &atomic, NULL));
            expect(atomic.offset == written.atomics[i].offset);
            expect(atomic.address == written.atomics[i].address);
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
    struct cairn_sanmd_covered function;
    size_t offset = 0;
    ck_assert_ok(cairn_sanmd_read_covered(&section, 0, version, &offset, &function, NULL));
    expect_equal(function.address, 0x1000);
    expect_equal(function.size, 0x10);
    expect_equal(function.features, CAIRN_SANMD_FEATURE_ATOMICS);
    ck_assert_ok(cairn_sanmd_read_covered(&section, 0, version, &offset, &function, NULL));
    expect_equal(function.address, 0x1010);
    expect_equal(function.size, 0x90);
    expect_equal(function.features, 3);
    expect_equal(function.stack_argument_bytes, 0);
    ck_assert_ok(cairn_sanmd_read_covered(&section, 0, version, &offset, &function, NULL));
    expect_equal(function.address, 0x10A0);
    expect_equal(function.features, last_features);
    expect_equal(function.stack_argument_bytes, 24);
    expect_equal(offset, size);
}

START_TEST(version_1_has_sizes_of_arguments_with_each_use_after_return)
{
    expect_three_functions(clang_16, sizeof clang_16, 1, 2);
}
END_TEST

START_TEST(version_2_has_sizes_of_arguments_with_a_bit_of_their_own)
{
    expect_three_functions(clang_19, sizeof clang_19, 2, 6);
}
END_TEST

/* ---- Errors ---- */

static size_t end_of_function(unsigned entry)
{
    return entry + 1 == ENTRIES ? written.section.size : written.functions[entry + 1].offset;
}

/* Entries that end before the cut are returned; the error message names the next one. */
static void expect_cut_functions(size_t size)
{
    struct guarded guarded = guard(written.section.bytes, size);
    size_t offset = 0;
    for (unsigned i = 0; offset < size; i++) {
        struct cairn_sanmd_covered function = {.size = 77};
        struct cairn_error error = {0};
        enum cairn_status status = read_covered(&guarded, &offset, &function, &error);
        if (end_of_function(i) <= size) {
            ck_assert_ok(status);
            continue;
        }
        char place[32];
        snprintf(place, sizeof place, "at byte %zu: ", written.functions[i].offset);
        expect_equal(status, CAIRN_ERROR_TRUNCATED);
        expect_equal(offset, written.functions[i].offset);
        expect_equal(function.size, 77);
        expect(error.offset >= offset && error.offset <= size);
        expect(strstr(error.message, place) != NULL);
        break;
    }
    guard_end(&guarded);
}

START_TEST(functions_that_are_cut_anywhere_are_truncated_there)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < 5; round++) {
        put_functions(versions[_i]);
        for (size_t size = 0; size < written.section.size; size++)
            expect_cut_functions(size);
    }
}
END_TEST

START_TEST(accesses_that_are_cut_anywhere_are_truncated_there)
{
    random_state = sample_seed();
    put_atomics(versions[_i]);
    size_t bytes = (versions[_i] & WIDE) != 0 ? 8 : 4;
    for (size_t size = 0; size < written.section.size; size++) {
        struct guarded guarded = guard(written.section.bytes, size);
        struct cairn_sanmd_atomic atomic;
        struct cairn_error error = {0};
        size_t offset = 0;
        for (size_t i = 0; i < size / bytes; i++)
            ck_assert_ok(read_atomic(&guarded, &offset, &atomic, NULL));
        if (size % bytes != 0) {
            expect_equal(read_atomic(&guarded, &offset, &atomic, &error), CAIRN_ERROR_TRUNCATED);
            expect_equal(error.offset, size / bytes * bytes);
        }
        expect_equal(offset, size / bytes * bytes);
        guard_end(&guarded);
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

START_TEST(what_is_wrong_is_said)
{
    struct guarded guarded = guard(refused[_i].bytes, refused[_i].size);
    const struct cairn_section section = {guarded.bytes, guarded.size, CAIRN_LITTLE_ENDIAN};
    struct cairn_sanmd_covered function = {.size = 77};
    struct cairn_error error = {0};
    size_t offset = 0;
    ck_assert_msg(cairn_sanmd_read_covered(&section, 0, refused[_i].version, &offset, &function,
                                           &error) == refused[_i].status,
                  "%s: %s", refused[_i].what, error.message);
    ck_assert_str_eq(error.message, refused[_i].sentence);
    expect_equal(error.offset, refused[_i].offset);
    expect_equal(offset, 0);
    expect_equal(function.size, 77);
    guard_end(&guarded);
}
END_TEST

START_TEST(accesses_of_unknown_versions_and_places_are_refused)
{
    static const uint8_t bytes[8];
    const struct cairn_section section = {bytes, sizeof bytes, CAIRN_LITTLE_ENDIAN};
    struct cairn_sanmd_atomic atomic;
    struct cairn_sanmd_covered function;
    size_t offset = 0;
    expect_equal(cairn_sanmd_read_atomic(&section, 0, 3, &offset, &atomic, NULL),
                 CAIRN_ERROR_VERSION);
    offset = sizeof bytes;
    expect_equal(cairn_sanmd_read_atomic(&section, 0, 2, &offset, &atomic, NULL),
                 CAIRN_ERROR_ARGUMENT);
    expect_equal(cairn_sanmd_read_covered(&section, 0, 2, &offset, &function, NULL),
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

START_TEST(names_of_sections_tell_their_formats)
{
    struct cairn_sanmd_format format = {.version = 77};
    bool is_one = cairn_sanmd_parse_name(names[_i].name, &format);
    ck_assert_msg(is_one == names[_i].is_one, "%s", names[_i].name);
    expect_equal(format.version, is_one ? names[_i].format.version : 77);
    if (!is_one)
        return;
    expect_equal(format.kind, names[_i].format.kind);
}
END_TEST

START_TEST(features_have_names)
{
    ck_assert_str_eq(cairn_sanmd_feature_name(CAIRN_SANMD_FEATURE_ATOMICS), "atomics");
    ck_assert_str_eq(cairn_sanmd_feature_name(CAIRN_SANMD_FEATURE_USE_AFTER_RETURN),
                     "use-after-return");
    ck_assert_str_eq(cairn_sanmd_feature_name(CAIRN_SANMD_FEATURE_STACK_ARGUMENTS),
                     "stack arguments");
    ck_assert_ptr_null(cairn_sanmd_feature_name(8));
    ck_assert_ptr_null(cairn_sanmd_feature_name(0));
}
END_TEST

/* ---- The width of addresses ---- */

enum { CODE = 0x400000, CODE_STEP = 0x800, DATA = 0x500000 };

/* Writes functions or accesses whose code is on one of the two sides of the section. */
static struct cairn_section put_code(enum cairn_sanmd_kind kind, uint32_t version, unsigned count)
{
    begin_section(version);
    size_t bytes = (version & WIDE) != 0 ? 8 : 4;
    uint64_t code = below(2) == 0 ? CODE : 2 * CODE;
    for (unsigned i = 0; i < count; i++) {
        uint64_t address = code + i * CODE_STEP + below(CODE_STEP);
        section_put(&written.section, address - DATA - written.section.size, bytes);
        if (kind == CAIRN_SANMD_ATOMICS)
            continue;
        put_number(below(4) == 0 ? 0 : below(CODE_STEP));
        put_number(below(2));
    }
    return section_view(&written.section);
}

/* The width is found whether or not the version gives it. */
START_TEST(wide_addresses_are_known_by_the_entries)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        enum cairn_sanmd_kind kind = below(2) == 0 ? CAIRN_SANMD_COVERED : CAIRN_SANMD_ATOMICS;
        struct cairn_section section = put_code(kind, versions[_i], 1 + below(ENTRIES));
        uint32_t told = versions[_i] & CAIRN_SANMD_VERSION_MASK;
        expect(cairn_sanmd_has_wide_addresses(&section, DATA, kind, told) ==
               ((versions[_i] & WIDE) != 0));
        expect(cairn_sanmd_has_wide_addresses(&section, DATA, kind, told | WIDE));
    }
}
END_TEST

START_TEST(an_empty_section_has_no_wide_addresses)
{
    const struct cairn_section section = {(const uint8_t *)"", 0, CAIRN_LITTLE_ENDIAN};
    expect(!cairn_sanmd_has_wide_addresses(&section, 0, CAIRN_SANMD_ATOMICS, 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sanitizers' metadata");
    TCase *tests = tcase_create("entries");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, random_functions_are_read_as_they_were_written, 0, VERSIONS);
    tcase_add_loop_test(tests, random_accesses_are_read_as_they_were_written, 0, VERSIONS);
    tcase_add_test(tests, version_1_has_sizes_of_arguments_with_each_use_after_return);
    tcase_add_test(tests, version_2_has_sizes_of_arguments_with_a_bit_of_their_own);
    tcase_add_loop_test(tests, functions_that_are_cut_anywhere_are_truncated_there, 0, VERSIONS);
    tcase_add_loop_test(tests, accesses_that_are_cut_anywhere_are_truncated_there, 0, VERSIONS);
    tcase_add_loop_test(tests, what_is_wrong_is_said, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, accesses_of_unknown_versions_and_places_are_refused);
    tcase_add_loop_test(tests, names_of_sections_tell_their_formats, 0,
                        sizeof names / sizeof *names);
    tcase_add_test(tests, features_have_names);
    tcase_add_loop_test(tests, wide_addresses_are_known_by_the_entries, 0, VERSIONS);
    tcase_add_test(tests, an_empty_section_has_no_wide_addresses);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
