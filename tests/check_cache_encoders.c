/*
 * Tests of the code of inline caches on x86-64: LLVM's disassembler reads the code back.
 * check_cache_words.c has the tests for other architectures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/cache_examples.h"
#include "tests/disassembly.h"

#include <check.h>
#include <string.h>

enum { TEXT_SIZE = 128 };

static const struct cairn_arch *arch;
static const struct arch_cache_encoder *encoder;
static LLVMDisasmContextRef disassembler;

static void set_up(void)
{
    disassembly_set_up();
    arch = arch_find(CAIRN_ARCHITECTURE_X86_64);
    encoder = arch_find_cache_encoder(CAIRN_ARCHITECTURE_X86_64);
    disassembler = disassembly_open("x86_64-linux-gnu", NULL);
}

static void tear_down(void) { LLVMDisasmDispose(disassembler); }

/* Disassembles one instruction of code at EXAMPLE_ADDRESS. Returns its length; 0 if it is
 * invalid. */
static size_t disassemble(const uint8_t *code, size_t at, size_t size, char *text)
{
    return disassembly_line(disassembler, code + at, size - at, EXAMPLE_ADDRESS + at, text,
                            TEXT_SIZE);
}

/* ---- Exact code ---- */

static void expect_data(const uint8_t *code, size_t size,
                        const struct cache_example_lines *expected)
{
    size_t bytes = expected->data_bytes == 0 ? 8 : expected->data_bytes;
    ck_assert_uint_eq(size, expected->data_count * bytes);
    for (size_t i = 0; i < expected->data_count; i++)
        for (size_t j = 0; j < bytes; j++)
            ck_assert_uint_eq(code[i * bytes + j], expected->data[i] >> 8 * j & 0xFF);
}

/* Compares the instructions, without the data words that follow them. */
static void expect_lines(uint8_t *code, size_t size, const char *lines)
{
    char text[TEXT_SIZE];
    for (size_t at = 0; at < size;) {
        size_t length = disassemble(code, at, size, text);
        size_t line = strcspn(lines, "\n");
        ck_assert_uint_gt(length, 0);
        ck_assert_msg(strlen(text) == line && memcmp(text, lines, line) == 0,
                      "the instruction at %zu is '%s', not '%.*s'", at, text, (int)line, lines);
        at += length;
        lines += line + (lines[line] == '\n');
    }
    ck_assert_msg(lines[0] == '\0', "'%s' is missing", lines);
}

static void expect_example(enum cache_example example)
{
    const struct cache_example_lines *expected = &cache_example_lines[example];
    struct cache_example_code of;
    struct arch_cache_size size;
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    size_t data_size =
        expected->data_count * (expected->data_bytes == 0 ? 8 : expected->data_bytes);
    cache_example_get(example, &of);
    ck_assert(encoder->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &size));
    ck_assert_uint_le(size.bytes, sizeof code);
    ck_assert_uint_ge(size.bytes, data_size);
    expect_lines(code, size.bytes - data_size, expected->lines);
    expect_data(code + size.bytes - data_size, data_size, expected);
}

START_TEST(examples_are_encoded_as_expected)
{
    for (int example = 0; example < EXAMPLE_COUNT; example++)
        expect_example((enum cache_example)example);
}
END_TEST

/* Changes all addresses at once. No code may become longer or shorter. */
START_TEST(sizes_do_not_depend_on_addresses)
{
    static const uint64_t addresses[] = {64, 0x7FFFFF00, UINT64_C(0x7FFFFFFFF000)};
    for (int example = 0; example < EXAMPLE_COUNT; example++) {
        struct cache_example_code of;
        struct arch_cache_size sizes[2];
        uint8_t code[ARCH_CACHE_BYTES_MAX];
        cache_example_get((enum cache_example)example, &of);
        ck_assert(encoder->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &sizes[0]));
        for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
            of.cache.return_address = addresses[i] + 4;
            of.cache.site_end = of.cache.return_address;
            of.cache.exit_data = addresses[i];
            if (of.cache.miss_target != 0)
                of.cache.miss_target = addresses[i];
            of.cases[0].target = addresses[i];
            if (of.cases[0].counter != 0)
                of.cases[0].counter = addresses[i];
            ck_assert(encoder->encode_cache(arch, &of.cache, addresses[i] & ~UINT64_C(63), code,
                                            &sizes[1]));
            ck_assert_uint_eq(sizes[1].bytes, sizes[0].bytes);
            ck_assert_uint_eq(sizes[1].case_bytes, sizes[0].case_bytes);
        }
    }
}
END_TEST

START_TEST(return_addresses_out_of_reach_are_refused)
{
    for (int example = 0; example < EXAMPLE_COUNT; example++) {
        struct cache_example_code of;
        struct arch_cache_size size;
        uint8_t code[ARCH_CACHE_BYTES_MAX];
        cache_example_get((enum cache_example)example, &of);
        of.cache.return_address = EXAMPLE_ADDRESS + (UINT64_C(1) << 31) + sizeof code;
        of.cache.site_end = of.cache.return_address;
        bool written = encoder->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &size);
        ck_assert(written == of.cache.is_called);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache encoders");
    TCase *tests = tcase_create("cache encoders");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, examples_are_encoded_as_expected);
    tcase_add_test(tests, sizes_do_not_depend_on_addresses);
    tcase_add_test(tests, return_addresses_out_of_reach_are_refused);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
