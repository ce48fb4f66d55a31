/*
 * What the x86-64 encoders write, read back by LLVM's disassembler.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include <check.h>
#include <inttypes.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 128 };

static const uint64_t address = UINT64_C(0x7F0000000000);

static const struct cairn_arch *arch;
static LLVMDisasmContextRef disassembler;

static void set_up(void)
{
    arch = arch_find(CAIRN_ARCHITECTURE_X86_64);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
    disassembler = LLVMCreateDisasm("x86_64-linux-gnu", NULL, 0, NULL, NULL);
    ck_assert_ptr_nonnull(disassembler);
}

static void tear_down(void) { LLVMDisasmDispose(disassembler); }

/* One instruction, and how long LLVM says that it is; 0 if it is none. */
static size_t disassemble(const uint8_t *bytes, size_t size, char *text)
{
    uint8_t copy[64];
    memcpy(copy, bytes, size);
    return LLVMDisasmInstruction(disassembler, copy, size, address, text, TEXT_SIZE);
}

/* LLVM prints a branch's displacement, which counts from the end of the instruction. */
static int64_t displacement_in(const char *text)
{
    const char *number = strpbrk(text, "-0123456789");
    ck_assert_msg(number != NULL, "%s", text);
    return (int64_t)strtoll(number, NULL, 0);
}

static void expect_branch(enum arch_branch branch, const char *mnemonic, size_t length,
                          int64_t displacement)
{
    uint64_t bits;
    uint8_t bytes[8];
    char text[TEXT_SIZE];
    uint64_t target = address + length + (uint64_t)displacement;
    ck_assert(arch->encode_branch(branch, address, target, length, &bits));
    memcpy(bytes, &bits, sizeof bytes);
    ck_assert_uint_eq(disassemble(bytes, length, text), length);
    ck_assert_msg(strstr(text, mnemonic) != NULL, "'%s' is no %s", text, mnemonic);
    ck_assert_msg(displacement_in(text) == displacement, "'%s' does not go to %" PRId64, text,
                  displacement);
}

START_TEST(branches_of_every_length_go_where_they_should)
{
    static const int64_t displacements[] = {0,     1,        -1,        127,       128,      -128,
                                            -4096, 0x123456, -0x123456, INT32_MAX, INT32_MIN};
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        for (size_t i = 0; i < sizeof displacements / sizeof *displacements; i++) {
            expect_branch(ARCH_BRANCH_CALL, "call", length, displacements[i]);
            expect_branch(ARCH_BRANCH_JUMP, "jmp", length, displacements[i]);
        }
    }
}
END_TEST

START_TEST(displacements_beyond_the_edge_are_refused)
{
    uint64_t bits;
    uint64_t end = address + 5;
    ck_assert(arch->encode_branch(ARCH_BRANCH_CALL, address, end + INT32_MAX, 5, &bits));
    ck_assert(
        !arch->encode_branch(ARCH_BRANCH_CALL, address, end + INT32_MAX + UINT64_C(1), 5, &bits));
    ck_assert(arch->encode_branch(ARCH_BRANCH_JUMP, address, end - (UINT64_C(1) << 31), 5, &bits));
    ck_assert(
        !arch->encode_branch(ARCH_BRANCH_JUMP, address, end - (UINT64_C(1) << 31) - 1, 5, &bits));
}
END_TEST

START_TEST(branches_are_decoded_as_they_were_encoded)
{
    for (size_t length = 5; length <= 8; length++) {
        for (int branch = ARCH_BRANCH_NOP; branch <= ARCH_BRANCH_JUMP; branch++) {
            uint64_t bits;
            uint64_t target = branch == ARCH_BRANCH_NOP ? 0 : address + 0x1234567;
            enum arch_branch decoded;
            uint64_t decoded_target;
            ck_assert(
                arch->encode_branch((enum arch_branch)branch, address, target, length, &bits));
            ck_assert(arch->decode_branch(bits, address, length, &decoded, &decoded_target));
            ck_assert_int_eq(decoded, branch);
            ck_assert_uint_eq(decoded_target, target);
        }
    }
}
END_TEST

START_TEST(no_ops_of_every_size_are_no_ops)
{
    for (size_t size = 1; size <= 40; size++) {
        uint8_t bytes[40];
        char text[TEXT_SIZE];
        arch->fill_nops(arch, bytes, size);
        ck_assert_uint_eq(arch->leading_nops(arch, bytes, size), size);
        for (size_t at = 0; at < size;) {
            size_t length = disassemble(bytes + at, size - at, text);
            ck_assert_uint_gt(length, 0);
            ck_assert_msg(strstr(text, "nop") != NULL || strstr(text, "xchg") != NULL, "%s", text);
            at += length;
        }
    }
}
END_TEST

START_TEST(veneer_jumps_through_its_slot)
{
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    char text[TEXT_SIZE];
    ck_assert(arch->encode_veneer(arch, address, address + 4096, code));
    ck_assert_uint_eq(disassemble(code, arch->veneer_bytes, text), 6);
    ck_assert_msg(strstr(text, "jmp") != NULL && strstr(text, "4090(%rip)") != NULL, "%s", text);
    ck_assert(!arch->encode_veneer(arch, address, address + (UINT64_C(1) << 32), code));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("encoders");
    TCase *tests = tcase_create("x86-64");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, branches_of_every_length_go_where_they_should);
    tcase_add_test(tests, displacements_beyond_the_edge_are_refused);
    tcase_add_test(tests, branches_are_decoded_as_they_were_encoded);
    tcase_add_test(tests, no_ops_of_every_size_are_no_ops);
    tcase_add_test(tests, veneer_jumps_through_its_slot);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
