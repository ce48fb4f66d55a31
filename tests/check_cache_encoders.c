/*
 * Tests of the encoders of inline caches: LLVM's disassembler reads their code back.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/cache_examples.h"
#include "tests/cache_lines.h"
#include "tests/disassembly.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 128, RANDOM_ROUNDS = 3000 };

/* ---- The machines ---- */

struct machine {
    enum cairn_architecture architecture;
    const char *triple;
    const struct cache_example_registers *registers;
    const struct cache_example_lines *examples; /* indexed by enum cache_example */
    const struct cache_writer *writer;
};

static const struct machine machines[] = {
    {CAIRN_ARCHITECTURE_X86_64, "x86_64-linux-gnu", &cache_registers_x86_64, cache_examples_x86_64,
     &cache_writer_x86_64},
};
enum { MACHINE_COUNT = sizeof machines / sizeof *machines };

/* ---- The disassembler ---- */

/* The machine that `open_machine` was called for. */
static const struct machine *machine;
static const struct cairn_arch *arch;
static LLVMDisasmContextRef disassembler;

static void open_machine(int index)
{
    machine = &machines[index];
    arch = arch_find(machine->architecture);
    ck_assert_ptr_nonnull(arch);
    disassembler = disassembly_open(machine->triple, NULL);
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

/* Changes all addresses at once. No code may become longer or shorter. */
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
            of.cache.site_end = of.cache.return_address;
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
        of.cache.site_end = of.cache.return_address;
        bool written = arch->encode_cache(arch, &of.cache, EXAMPLE_ADDRESS, code, &size);
        ck_assert(written == of.cache.is_called);
    }
}
END_TEST

/* ---- Random caches ---- */

static uint64_t random_state;

static size_t random_below(size_t limit) { return support_random(&random_state) % limit; }
static bool random_one_in(size_t count) { return random_below(count) == 0; }

static uint64_t random_u64(void)
{
    return (uint64_t)support_random(&random_state) << 32 | support_random(&random_state);
}

/* Returns numbers of random length, so that all forms of immediates occur. */
static uint64_t random_number(void)
{
    uint64_t number = random_u64() >> random_below(64);
    return random_one_in(3) ? ~number : number;
}

static int32_t random_offset(void)
{
    static const int32_t edges[] = {0, INT32_MIN, INT32_MAX, -128, 127, 128, -129};
    size_t choice = random_below(2 * sizeof edges / sizeof *edges);
    if (choice < sizeof edges / sizeof *edges)
        return edges[choice];
    return (int32_t)((uint32_t)random_number());
}

static uint8_t random_width(void) { return (uint8_t)(1U << random_below(4)); }

/* Width of a floating-point number. */
static uint8_t random_float_width(void) { return random_below(2) == 0 ? 4 : 8; }
static uint64_t all_bits(uint8_t width) { return UINT64_MAX >> (64 - 8 * width); }

static uint16_t random_general(void)
{
    return machine->writer->general[random_below(machine->writer->general_count)];
}

static uint16_t random_vector(void)
{
    return machine->writer->vectors[random_below(machine->writer->vector_count)];
}

static struct {
    struct arch_cache cache;
    struct arch_cache_case cases[ARCH_CACHE_CASES_MAX];
    uint64_t address;
    uint8_t code[ARCH_CACHE_BYTES_MAX + 8];
    struct arch_cache_size size;
    struct cache_lines lines;
    size_t offsets[CACHE_LINES_MAX + 1]; /* offsets of instructions */
} trial;

static void make_guard(struct arch_cache_case *of)
{
    of->receiver = random_general();
    of->key_width = random_width();
    of->key_offset = random_offset();
    of->mask = random_one_in(2) ? UINT64_MAX : random_number();
    of->mask &= all_bits(of->key_width);
    of->key = random_number() & of->mask;
}

static void make_action(struct arch_cache_case *of)
{
    bool is_vector = random_one_in(3);
    unsigned actions = trial.cache.is_called ? ARCH_CACHE_JUMP + 1 : ARCH_CACHE_JUMP;
    of->action = (enum arch_cache_action)random_below(actions);
    of->value = is_vector ? random_vector() : random_general();
    of->field.width = is_vector ? random_float_width() : random_width();
    of->field.offset = random_offset();
    of->field.is_signed = of->action == ARCH_CACHE_LOAD && !is_vector && random_one_in(2);
    of->field.is_out_of_line = random_one_in(3);
    of->field.pointer_offset = random_offset();
    of->constant_width = is_vector ? of->field.width : 8;
    of->constant = random_number() & all_bits(of->constant_width);
    of->target = random_u64();
    of->counter = random_one_in(3) ? random_u64() & ~UINT64_C(7) : 0;
}

static void make_cases(void)
{
    for (size_t i = 0; i < trial.cache.count; i++) {
        make_guard(&trial.cases[i]);
        make_action(&trial.cases[i]);
    }
}

/* Makes cases that are mostly alike, so that the encoder can compare the keys of all cases at
 * once. */
static void make_cases_alike(void)
{
    struct arch_cache_case *first = &trial.cases[0];
    make_cases();
    first->key_width = random_one_in(2) ? 4 : 8;
    first->mask = all_bits(first->key_width);
    first->counter = 0;
    for (size_t i = 0; i < trial.cache.count; i++) {
        struct arch_cache_case *of = &trial.cases[i];
        int32_t offset = of->field.offset;
        *of = *first;
        of->field.offset = offset;
        of->key = (random_one_in(20) ? random_u64() : random_u64() >> 33) & of->mask;
    }
}

static uint64_t random_near(void)
{
    return trial.address + (random_u64() % (1U << 24) & ~UINT64_C(3)) - (1U << 23);
}

static void make_cache(void)
{
    memset(&trial, 0, sizeof trial);
    trial.address = random_u64() >> 16 & ~(uint64_t)(ARCH_CACHE_ALIGNMENT - 1);
    trial.cache.cases = trial.cases;
    trial.cache.count = random_below(ARCH_CACHE_CASES_MAX + 1);
    trial.cache.is_called = random_one_in(2);
    trial.cache.return_address = random_near();
    trial.cache.site_end = random_near();
    trial.cache.keeps_flags = random_one_in(3);
    trial.cache.may_select = random_one_in(2);
    trial.cache.exit_data = random_u64() & ~UINT64_C(7);
    if (trial.cache.is_called && random_one_in(3))
        trial.cache.miss_target = random_u64() | 1;
    if (random_one_in(2))
        make_cases();
    else
        make_cases_alike();
}

static size_t literals_size(void) { return trial.lines.literal_count * trial.lines.literal_bytes; }

static uint64_t address_of_line(size_t line) { return trial.address + trial.offsets[line]; }

/* Returns the address that a line refers to. */
static uint64_t referred(const struct cache_line *line)
{
    if (line->reference == REFERENCE_LINE)
        return address_of_line(line->target);
    if (line->reference == REFERENCE_LITERAL)
        return trial.address + trial.size.bytes - literals_size() +
               line->target * trial.lines.literal_bytes;
    return line->target;
}

/* Replaces the reference in a line by the displacement. */
static void expand(size_t index, char text[TEXT_SIZE])
{
    const struct cache_line *line = &trial.lines.lines[index];
    const char *mark = strchr(line->text, '@');
    uint64_t origin = address_of_line(index + machine->writer->counts_from_end);
    if (line->reference == REFERENCE_NONE || mark == NULL)
        snprintf(text, TEXT_SIZE, "%s", line->text);
    else
        snprintf(text, TEXT_SIZE, "%.*s%" PRId64 "%s", (int)(mark - line->text), line->text,
                 (int64_t)(referred(line) - origin), mark + 1);
}

/* Finds the instruction of each line. */
static void find_instructions(char (*texts)[TEXT_SIZE])
{
    size_t at = 0;
    for (size_t i = 0; i < trial.lines.count; i++) {
        ck_assert_msg(at < trial.size.bytes, "'%s' is missing", trial.lines.lines[i].text);
        size_t length = disassemble(trial.code, at, trial.size.bytes, texts[i]);
        ck_assert_msg(length > 0, "'%s' is no instruction", trial.lines.lines[i].text);
        trial.offsets[i] = at;
        at += length;
    }
    trial.offsets[trial.lines.count] = at;
}

static void compare_lines(void)
{
    static char texts[CACHE_LINES_MAX][TEXT_SIZE];
    find_instructions(texts);
    for (size_t i = 0; i < trial.lines.count; i++) {
        char expected[TEXT_SIZE];
        expand(i, expected);
        if (strcmp(texts[i], expected) != 0)
            ck_abort_msg("instruction %zu is '%s', not '%s'", i, texts[i], expected);
    }
}

static void compare_sizes(void)
{
    size_t end = trial.offsets[trial.lines.count];
    if (trial.lines.literal_count != 0)
        end = (end + 7) & ~(size_t)7;
    ck_assert_uint_eq(trial.size.bytes, end + literals_size());
    ck_assert_uint_eq(trial.size.case_bytes, trial.offsets[trial.lines.way_out] + literals_size());
    for (size_t i = trial.size.bytes; i < sizeof trial.code; i++)
        if (trial.code[i] != 0xEE)
            ck_abort_msg("byte %zu is written, of %zu", i, trial.size.bytes);
    for (size_t i = 0; i < trial.lines.literal_count; i++) {
        size_t bytes = trial.lines.literal_bytes;
        ck_assert_uint_eq(word_at(trial.code + end + i * bytes, bytes), trial.lines.literals[i]);
    }
}

START_TEST(random_caches_are_encoded_as_another_program_says)
{
    open_machine(_i);
    random_state = support_seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        make_cache();
        memset(trial.code, 0xEE, sizeof trial.code);
        ck_assert(arch->encode_cache(arch, &trial.cache, trial.address, trial.code, &trial.size));
        machine->writer->write(&trial.cache, &trial.lines);
        compare_lines();
        compare_sizes();
    }
}
END_TEST

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

int main(void)
{
    Suite *suite = suite_create("cache encoders");
    TCase *tests = tcase_create("cache encoders");
    tcase_add_checked_fixture(tests, disassembly_set_up, tear_down);
    ADD(tests, examples_are_encoded_as_they_should_be);
    ADD(tests, sizes_do_not_depend_on_addresses);
    ADD(tests, return_addresses_out_of_reach_are_refused);
    ADD(tests, random_caches_are_encoded_as_another_program_says);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
