/*
 * What the encoders of inline caches write, read back by LLVM's disassembler.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/cache_examples.h"

#include <check.h>
#include <inttypes.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 128 };

/* ---- The machines ---- */

struct machine {
    enum cairn_architecture architecture;
    const char *triple;
    const struct cache_example_registers *registers;
    const struct cache_example_lines *examples; /* by enum cache_example */
};

static const struct machine machines[] = {
    {CAIRN_ARCHITECTURE_X86_64, "x86_64-linux-gnu", &cache_registers_x86_64, cache_examples_x86_64},
};
enum { MACHINE_COUNT = sizeof machines / sizeof *machines };

/* ---- The disassembler ---- */

/* Of the machine that `open_machine` was called for. */
static const struct machine *machine;
static const struct cairn_arch *arch;
static LLVMDisasmContextRef disassembler;

static void set_up(void)
{
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllDisassemblers();
}

static void open_machine(int index)
{
    machine = &machines[index];
    arch = arch_find(machine->architecture);
    ck_assert_ptr_nonnull(arch);
    disassembler = LLVMCreateDisasm(machine->triple, NULL, 0, NULL, NULL);
    ck_assert_msg(disassembler != NULL, "LLVM has no disassembler for %s", machine->triple);
}

static void tear_down(void) { LLVMDisasmDispose(disassembler); }

/* One space between words, none before and behind. */
static void tidy(char *text)
{
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        bool blank = *at == ' ' || *at == '\t';
        if (!blank)
            *out++ = *at;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    }
    while (out > text && out[-1] == ' ')
        out--;
    *out = '\0';
}

/* One instruction of the code at EXAMPLE_ADDRESS, and its length; 0 if it is none. */
static size_t disassemble(uint8_t *code, size_t at, size_t size, char *text)
{
    text[0] = '\0';
    size_t length = LLVMDisasmInstruction(disassembler, code + at, size - at, EXAMPLE_ADDRESS + at,
                                          text, TEXT_SIZE);
    tidy(text);
    return length;
}

/* ---- Exact code ---- */

static uint64_t word_at(const uint8_t *bytes, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) {
        size_t place = arch->byte_order == CAIRN_BIG_ENDIAN ? size - 1 - i : i;
        word |= (uint64_t)bytes[place] << 8 * i;
    }
    return word;
}

static void expect_data(const uint8_t *code, size_t size,
                        const struct cache_example_lines *expected)
{
    size_t bytes = expected->data_bytes == 0 ? 8 : expected->data_bytes;
    ck_assert_uint_eq(size, expected->data_count * bytes);
    for (size_t i = 0; i < expected->data_count; i++)
        ck_assert_uint_eq(word_at(code + i * bytes, bytes), expected->data[i]);
}

/* The code without the words behind it. */
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
    const struct cache_example_lines *expected = &machine->examples[example];
    struct cache_example_code of;
    struct arch_cache_size size;
    uint8_t code[ARCH_CACHE_BYTES_MAX];
    size_t data_size =
        expected->data_count * (expected->data_bytes == 0 ? 8 : expected->data_bytes);
    cache_example_get(example, machine->registers, &of);
    ck_assert(arch->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &size));
    ck_assert_uint_le(size.bytes, sizeof code);
    ck_assert_uint_ge(size.bytes, data_size);
    expect_lines(code, size.bytes - data_size, expected->lines);
    expect_data(code + size.bytes - data_size, data_size, expected);
}

START_TEST(examples_are_encoded_as_they_should_be)
{
    open_machine(_i);
    for (int example = 0; example < EXAMPLE_COUNT; example++)
        expect_example((enum cache_example)example);
}
END_TEST

/* Addresses change, all at once, and no code becomes longer or shorter. */
START_TEST(sizes_do_not_depend_on_addresses)
{
    static const uint64_t addresses[] = {64, 0x7FFFFF00, UINT64_C(0x7FFFFFFFF000)};
    open_machine(_i);
    for (int example = 0; example < EXAMPLE_COUNT; example++) {
        struct cache_example_code of;
        struct arch_cache_size sizes[2];
        uint8_t code[ARCH_CACHE_BYTES_MAX];
        cache_example_get((enum cache_example)example, machine->registers, &of);
        ck_assert(arch->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &sizes[0]));
        for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
            of.cache.return_address = addresses[i] + 4;
            of.cache.exit_data = addresses[i];
            if (of.cache.miss_target != 0)
                of.cache.miss_target = addresses[i];
            of.cases[0].target = addresses[i];
            if (of.cases[0].counter != 0)
                of.cases[0].counter = addresses[i];
            ck_assert(
                arch->encode_cache(arch, &of.cache, addresses[i] & ~UINT64_C(63), code, &sizes[1]));
            ck_assert_uint_eq(sizes[1].bytes, sizes[0].bytes);
            ck_assert_uint_eq(sizes[1].case_bytes, sizes[0].case_bytes);
        }
    }
}
END_TEST

START_TEST(return_addresses_out_of_reach_are_refused)
{
    open_machine(_i);
    for (int example = 0; example < EXAMPLE_COUNT; example++) {
        struct cache_example_code of;
        struct arch_cache_size size;
        uint8_t code[ARCH_CACHE_BYTES_MAX];
        cache_example_get((enum cache_example)example, machine->registers, &of);
        of.cache.return_address = EXAMPLE_ADDRESS + (UINT64_C(1) << 31) + sizeof code;
        bool written = arch->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &size);
        ck_assert(written == of.cache.is_called);
    }
}
END_TEST

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

int main(void)
{
    Suite *suite = suite_create("cache encoders");
    TCase *tests = tcase_create("cache encoders");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    ADD(tests, examples_are_encoded_as_they_should_be);
    ADD(tests, sizes_do_not_depend_on_addresses);
    ADD(tests, return_addresses_out_of_reach_are_refused);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
