/*
 * Tests of disassembling the instructions of every architecture to text, on any host.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"
#include "llvm/disassemble.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS UINT64_C(0x100000)

struct sample {
    enum cairn_architecture architecture;
    enum cairn_byte_order byte_order;
    size_t length;
    uint8_t bytes[10];
    const char *text;
    uint64_t target; /* 0: no target */
};

static const struct sample samples[] = {
    /* Registers have the names of cairn_register_name, except for SystemZ's '%'. */
    {CAIRN_ARCHITECTURE_X86_64, 0, 3, {0x48, 0x8D, 0x03}, "lea rax, [rbx]", 0},
    {CAIRN_ARCHITECTURE_AARCH64, 0, 4, {0x20, 0, 0, 0xF9}, "str x0, [x1]", 0},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, 0, 4, {0x18, 0, 0x41, 0xF8}, "std r2, 24(r1)", 0},
    {CAIRN_ARCHITECTURE_PPC64_ELFV1, 1, 4, {0xF8, 0x41, 0, 0x28}, "std r2, 40(r1)", 0},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, 1, 4, {0xF8, 0x41, 0, 0x18}, "std r2, 24(r1)", 0},
    {CAIRN_ARCHITECTURE_SYSTEMZ, 1, 2, {0x0D, 0xE1}, "basr %r14, %r1", 0},
    {CAIRN_ARCHITECTURE_RISCV64, 0, 4, {0x33, 0x05, 0xB5, 0}, "add a0, a0, a1", 0},
    /* Optional extensions of the architecture. */
    {CAIRN_ARCHITECTURE_RISCV64, 0, 2, {0x2E, 0x95}, "add a0, a0, a1", 0},
    {CAIRN_ARCHITECTURE_RISCV64, 0, 4, {0x53, 0x75, 0xB5, 0x02}, "fadd.d fa0, fa0, fa1", 0},
    /* Branches: the target is an address, even where LLVM writes a distance. */
    {CAIRN_ARCHITECTURE_X86_64, 0, 5, {0xE8, 0, 1, 0, 0}, "call 0x100105", 0x100105},
    {CAIRN_ARCHITECTURE_X86_64, 0, 2, {0x74, 0xFE}, "je 0x100000", 0x100000},
    {CAIRN_ARCHITECTURE_AARCH64, 0, 4, {0x10, 0, 0, 0x94}, "bl 0x100040", 0x100040},
    {CAIRN_ARCHITECTURE_AARCH64, 0, 4, {0xE0, 0xFF, 0xFF, 0x54}, "b.eq 0xffffc", 0xFFFFC},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, 0, 4, {0x11, 1, 0, 0x48}, "bl 0x100110", 0x100110},
    {CAIRN_ARCHITECTURE_PPC64_ELFV1, 1, 4, {0x4B, 0xFF, 0xFF, 0xFC}, "b 0xffffc", 0xFFFFC},
    {CAIRN_ARCHITECTURE_PPC64_ELFV1, 1, 4, {0x42, 0, 0, 0x10}, "bdnz 0x100010", 0x100010},
    {CAIRN_ARCHITECTURE_SYSTEMZ,
     1,
     6,
     {0xC0, 0xE5, 0, 0, 0, 0x10},
     "brasl %r14, 0x100020",
     0x100020},
    {CAIRN_ARCHITECTURE_SYSTEMZ, 1, 4, {0xA7, 0x84, 0, 8}, "je 0x100010", 0x100010},
    {CAIRN_ARCHITECTURE_RISCV64, 0, 4, {0xEF, 0, 0, 1}, "jal 0x100010", 0x100010},
    {CAIRN_ARCHITECTURE_RISCV64, 0, 4, {0x63, 4, 0xB5, 0}, "beq a0, a1, 0x100008", 0x100008},
    {CAIRN_ARCHITECTURE_RISCV64, 0, 2, {0x01, 0xA0}, "j 0x100000", 0x100000},
    /* Numbers in other instructions are not targets. */
    {CAIRN_ARCHITECTURE_RISCV64, 0, 4, {0x93, 0, 0, 1}, "li ra, ", 0},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, 0, 4, {0x07, 0, 0x60, 0x38}, "li r3, 7", 0},
};
enum { SAMPLE_COUNT = sizeof samples / sizeof *samples };

static struct disassembler *open_disassembler(enum cairn_architecture architecture,
                                              enum cairn_byte_order byte_order)
{
    struct disassembler *disassembler = NULL;
    struct cairn_error error = {0};
    if (disassembler_create(architecture, byte_order, &disassembler, &error) == CAIRN_OK)
        return disassembler;
    /* An LLVM that supports only the host must report this error. */
    ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, cairn_architecture_name(architecture)));
    printf("%s\n", error.message);
    return NULL;
}

START_TEST(instructions_of_all_architectures_are_named)
{
    const struct sample *sample = &samples[_i];
    struct instruction instruction;
    struct disassembler *disassembler = open_disassembler(sample->architecture, sample->byte_order);
    if (disassembler == NULL)
        return;
    ck_assert(disassembler_next(disassembler, sample->bytes, sizeof sample->bytes, ADDRESS,
                                &instruction));
    ck_assert_uint_eq(instruction.length, sample->length);
    ck_assert_msg(strncmp(instruction.text, sample->text, strlen(sample->text)) == 0,
                  "'%s' is not '%s'", instruction.text, sample->text);
    ck_assert(instruction.has_target == (sample->target != 0));
    ck_assert_uint_eq(instruction.target, sample->target);
    disassembler_destroy(disassembler);
}
END_TEST

START_TEST(truncated_instruction_is_not_a_no_op)
{
    const struct sample *sample = &samples[_i];
    struct instruction instruction;
    struct disassembler *disassembler = open_disassembler(sample->architecture, sample->byte_order);
    for (size_t size = 0; disassembler != NULL && size < sample->length; size++) {
        /* The start of a truncated RISC-V instruction may be a valid short instruction. */
        bool is_one = disassembler_next(disassembler, sample->bytes, size, ADDRESS, &instruction);
        ck_assert(!is_one || instruction.length <= size);
        ck_assert(!is_one || sample->architecture == CAIRN_ARCHITECTURE_RISCV64);
    }
    disassembler_destroy(disassembler);
}
END_TEST

/* LLVM accepts prefixes without an instruction. */
START_TEST(prefixes_alone_are_no_instruction)
{
    static const uint8_t prefixes[][3] = {{0x48}, {0x66}, {0xF0}, {0x2E, 0x48}, {0xF3, 0x66, 0x4F}};
    static const size_t sizes[] = {1, 1, 1, 2, 3};
    struct instruction instruction;
    struct disassembler *disassembler =
        open_disassembler(CAIRN_ARCHITECTURE_X86_64, CAIRN_LITTLE_ENDIAN);
    for (size_t i = 0; disassembler != NULL && i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert(!disassembler_next(disassembler, prefixes[i], sizes[i], ADDRESS, &instruction));
        ck_assert_uint_eq(instruction.length, 0);
        ck_assert_str_eq(instruction.text, "");
    }
    disassembler_destroy(disassembler);
}
END_TEST

START_TEST(several_may_be_open_at_once)
{
    struct disassembler *open[SAMPLE_COUNT] = {0};
    struct instruction instruction;
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        open[i] = open_disassembler(samples[i].architecture, samples[i].byte_order);
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        ck_assert(open[i] == NULL || disassembler_next(open[i], samples[i].bytes, samples[i].length,
                                                       ADDRESS, &instruction));
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        disassembler_destroy(open[i]);
    disassembler_destroy(NULL);
}
END_TEST

START_TEST(unknown_architecture_is_unsupported)
{
    struct disassembler *disassembler = NULL;
    struct cairn_error error;
    ck_assert_int_eq(
        disassembler_create(CAIRN_ARCHITECTURE_UNKNOWN, CAIRN_LITTLE_ENDIAN, &disassembler, &error),
        CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_null(disassembler);
    ck_assert_str_eq(error.message, "disassembling is not supported for architecture 'unknown'");
}
END_TEST

/* x86 instructions have all lengths, and nearly all byte sequences are valid. */
START_TEST(random_bytes_never_end_outside)
{
    uint64_t random = sample_seed();
    unsigned found = 0;
    struct disassembler *disassembler =
        open_disassembler(samples[_i].architecture, samples[_i].byte_order);
    for (int round = 0; disassembler != NULL && round < 20000; round++) {
        uint8_t bytes[16];
        struct instruction instruction;
        size_t size = sample_random(&random, sizeof bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)sample_random(&random, 256);
        if (!disassembler_next(disassembler, bytes, size, ADDRESS, &instruction))
            continue;
        found++;
        ck_assert_uint_gt(instruction.length, 0);
        ck_assert_uint_le(instruction.length, size);
        ck_assert_ptr_null(strpbrk(instruction.text, "\n\t"));
        ck_assert_uint_lt(strlen(instruction.text), INSTRUCTION_TEXT_BYTES);
    }
    ck_assert(disassembler == NULL || found > 100);
    disassembler_destroy(disassembler);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("disassemble");
    TCase *tests = tcase_create("disassemble");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, instructions_of_all_architectures_are_named, 0, SAMPLE_COUNT);
    tcase_add_loop_test(tests, truncated_instruction_is_not_a_no_op, 0, SAMPLE_COUNT);
    tcase_add_loop_test(tests, random_bytes_never_end_outside, 0, 7);
    tcase_add_test(tests, prefixes_alone_are_no_instruction);
    tcase_add_test(tests, several_may_be_open_at_once);
    tcase_add_test(tests, unknown_architecture_is_unsupported);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
