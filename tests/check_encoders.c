/*
 * Tests of the encoders of every architecture: LLVM's disassembler reads their code back.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/disassembly.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 128, LINES_MAX = 29, RANDOM_ROUNDS = 5000 };

static const uint64_t address = UINT64_C(0x7F0000000000);

/* ---- The machines ---- */

struct machine {
    enum cairn_architecture architecture;
    const char *triple;
    const char *call;
    const char *jump;
    unsigned displacement_bits; /* signed, in bytes */
    bool counts_from_end;       /* of the instruction */
    /* A veneer at `address` with its slot 0x12348 bytes away, and a function that returns 7. */
    const char *veneer[LINES_MAX];
    const char *framed_veneer[LINES_MAX];
    const char *self_test[LINES_MAX];
    /* An exit at `address` with its data 0x1C340 bytes away. */
    const char *exit[LINES_MAX];
    /* The code that entered functions return to, with the instructions before it. */
    const char *entry[LINES_MAX];
    unsigned entry_return; /* the line of the return address */
    /* The smallest armed region, at `address`. */
    size_t armed_bytes;
    const char *armed[LINES_MAX];
};

static const struct machine machines[] = {
    {
        .architecture = CAIRN_ARCHITECTURE_X86_64,
        .triple = "x86_64-linux-gnu",
        .call = "callq",
        .jump = "jmp",
        .displacement_bits = 32,
        .counts_from_end = true,
        .veneer = {"jmpq *74562(%rip)", "int3", "int3"},
        .self_test = {"movl $7, %eax", "retq"},
        .exit = {"pushq 115522(%rip)", "jmpq *115508(%rip)", "int3", "int3", "int3", "int3"},
        .entry = {"nop", "leave", "retq"},
        .entry_return = 1,
        .armed_bytes = 5,
        .armed = {"nopl (%rax,%rax)"},
    },
    {
        .architecture = CAIRN_ARCHITECTURE_AARCH64,
        .triple = "aarch64-linux-gnu",
        .call = "bl",
        .jump = "b",
        .displacement_bits = 28,
        .veneer = {"adrp x16, #73728", "ldr x16, [x16, #840]", "br x16", "brk #0"},
        .self_test = {"mov w0, #7", "ret"},
        .exit = {"adrp x16, #114688", "add x16, x16, #832", "ldr x17, [x16]", "br x17"},
        .entry = {"nop", "mov sp, x29", "ldp x29, x30, [sp], #16", "ret"},
        .entry_return = 1,
        .armed_bytes = 4,
        .armed = {"nop"},
    },
    {
        .architecture = CAIRN_ARCHITECTURE_PPC64_ELFV2,
        .triple = "powerpc64le-linux-gnu",
        .call = "bl",
        .jump = "b",
        .displacement_bits = 26,
        .veneer = {"std 2, 24(1)", "lis 12, 0", "ori 12, 12, 32512", "sldi 12, 12, 32",
                   "oris 12, 12, 1", "ld 12, 9032(12)", "mtctr 12", "bctr"},
        .framed_veneer =
            {"mflr 12",         "std 12, 16(1)",  "stdu 1, -112(1)", "std 2, 24(1)",
             "mfctr 12",        "std 12, 96(1)",  "lis 12, 0",       "ori 12, 12, 32512",
             "sldi 12, 12, 32", "oris 12, 12, 1", "ld 12, 9032(12)", "mtctr 12",
             "bctrl",           "ld 2, 24(1)",    "ld 12, 96(1)",    "mtctr 12",
             "addi 1, 1, 112",  "ld 12, 16(1)",   "mtlr 12",         "blr"},
        .self_test = {"li 3, 7", "blr"},
        .exit = {"lis 12, 0", "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 2",
                 "ld 12, -15552(12)", "mtctr 12", "lis 12, 0", "ori 12, 12, 32512",
                 "sldi 12, 12, 32", "oris 12, 12, 2", "addi 12, 12, -15552", "bctr"},
        .entry = {"mr 12, 11", "mtctr 12", "bctr", "nop", "mr 1, 31", "ld 2, -16(1)",
                  "ld 31, -8(1)", "ld 0, 16(1)", "mtlr 0", "blr"},
        .entry_return = 4,
        .armed_bytes = 12,
        .armed = {"std 2, 24(1)", "nop", "ld 2, 24(1)"},
    },
    {
        .architecture = CAIRN_ARCHITECTURE_PPC64_ELFV1,
        .triple = "powerpc64-linux-gnu",
        .call = "bl",
        .jump = "b",
        .displacement_bits = 26,
        .veneer = {"std 2, 40(1)", "lis 12, 0", "ori 12, 12, 32512", "sldi 12, 12, 32",
                   "oris 12, 12, 1", "ld 12, 9032(12)", "ld 11, 0(12)", "ld 2, 8(12)", "mtctr 11",
                   "ld 11, 16(12)", "bctr", "trap"},
        .framed_veneer = {"mflr 12",
                          "std 12, 16(1)",
                          "stdu 1, -128(1)",
                          "std 2, 40(1)",
                          "mfctr 12",
                          "std 12, 112(1)",
                          "std 11, 120(1)",
                          "lis 12, 0",
                          "ori 12, 12, 32512",
                          "sldi 12, 12, 32",
                          "oris 12, 12, 1",
                          "ld 12, 9032(12)",
                          "ld 11, 0(12)",
                          "ld 2, 8(12)",
                          "mtctr 11",
                          "ld 11, 16(12)",
                          "bctrl",
                          "ld 2, 40(1)",
                          "ld 12, 112(1)",
                          "mtctr 12",
                          "ld 11, 120(1)",
                          "addi 1, 1, 128",
                          "ld 12, 16(1)",
                          "mtlr 12",
                          "blr",
                          "trap",
                          "trap",
                          "trap"},
        .self_test = {"li 3, 7", "blr"},
        .exit = {"lis 12, 0", "ori 12, 12, 32512", "sldi 12, 12, 32", "oris 12, 12, 2",
                 "ld 12, -15552(12)", "mtctr 12", "lis 12, 0", "ori 12, 12, 32512",
                 "sldi 12, 12, 32", "oris 12, 12, 2", "addi 12, 12, -15552", "bctr"},
        .entry = {"mr 12, 11", "mtctr 12", "bctr", "nop", "mr 1, 31", "ld 2, -16(1)",
                  "ld 31, -8(1)", "ld 0, 16(1)", "mtlr 0", "blr"},
        .entry_return = 4,
        .armed_bytes = 12,
        .armed = {"std 2, 40(1)", "nop", "ld 2, 40(1)"},
    },
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

/* Disassembles one instruction. Returns the length by LLVM; 0 if it is invalid. */
static size_t disassemble(const uint8_t *bytes, size_t size, char *text)
{
    return disassembly_line(disassembler, bytes, size, address, text, TEXT_SIZE);
}

static void expect_lines(const uint8_t *bytes, size_t size, const char *const *lines)
{
    char text[TEXT_SIZE];
    size_t count = 0;
    for (size_t at = 0; at < size; count++) {
        size_t length = disassemble(bytes + at, size - at, text);
        ck_assert_uint_gt(length, 0);
        ck_assert_uint_lt(count, LINES_MAX);
        ck_assert_msg(lines[count] != NULL && strcmp(text, lines[count]) == 0,
                      "instruction %zu is '%s', not '%s'", count, text,
                      lines[count] == NULL ? "(end)" : lines[count]);
        at += length;
    }
    ck_assert(count == LINES_MAX || lines[count] == NULL);
}

/* ---- Branches ---- */

/* Writes the bytes that a store of the patch word would write. */
static void put_bits(uint64_t bits, size_t length, uint8_t *bytes)
{
    for (size_t i = 0; i < length; i++) {
        size_t place = arch->byte_order == CAIRN_BIG_ENDIAN ? length - 1 - i : i;
        bytes[place] = (uint8_t)(bits >> (8 * i));
    }
}

static size_t step(void)
{
    return arch->fixed_instruction_bytes == 0 ? 1 : arch->fixed_instruction_bytes;
}

static uint64_t origin(size_t length)
{
    return machine->counts_from_end ? address + length : address;
}

/* Parses a displacement, which LLVM prints as "-4", "#-4" or ".-4". */
static int64_t displacement_in(const char *text)
{
    const char *number = strpbrk(text, "+-0123456789");
    ck_assert_msg(number != NULL, "%s", text);
    return (int64_t)strtoll(number, NULL, 0);
}

static void expect_branch(enum arch_branch branch, size_t length, int64_t displacement)
{
    const char *mnemonic = branch == ARCH_BRANCH_CALL ? machine->call : machine->jump;
    uint64_t bits;
    uint8_t bytes[ARCH_WORD_BYTES_MAX];
    char text[TEXT_SIZE];
    uint64_t target = origin(length) + (uint64_t)displacement;
    ck_assert(arch->encode_branch(arch, branch, address, target, length, &bits));
    put_bits(bits, length, bytes);
    ck_assert_uint_eq(disassemble(bytes, length, text), length);
    size_t mnemonic_length = strlen(mnemonic);
    /* On x86, prefixes may precede it. */
    const char *found = strstr(text, mnemonic);
    ck_assert_msg(found != NULL && found[mnemonic_length] == ' ', "'%s' is no %s", text, mnemonic);
    ck_assert_msg(displacement_in(found + mnemonic_length) == displacement,
                  "'%s' does not go to %" PRId64, text, displacement);
}

static void expect_branches(int64_t displacement)
{
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        expect_branch(ARCH_BRANCH_CALL, length, displacement);
        expect_branch(ARCH_BRANCH_JUMP, length, displacement);
    }
}

static int64_t reach(void) { return INT64_C(1) << (machine->displacement_bits - 1); }

START_TEST(branches_of_every_length_go_where_they_should)
{
    open_machine(_i);
    int64_t unit = (int64_t)step();
    expect_branches(0);
    expect_branches(reach() - unit);
    expect_branches(-reach());
    for (int64_t distance = unit; distance < reach(); distance *= 2) {
        expect_branches(distance);
        expect_branches(-distance);
        expect_branches(distance - unit);
        expect_branches(unit - distance);
    }
}
END_TEST

START_TEST(branches_at_random_go_where_they_should)
{
    open_machine(_i);
    uint64_t random = support_seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint64_t distance = (uint64_t)support_random(&random) << 1 ^ support_random(&random);
        int64_t displacement = (int64_t)(distance % (uint64_t)(2 * reach())) - reach();
        expect_branches(displacement & -(int64_t)step());
    }
}
END_TEST

static void expect_refused(int64_t displacement)
{
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        uint64_t bits;
        uint64_t target = origin(length) + (uint64_t)displacement;
        ck_assert(!arch->encode_branch(arch, ARCH_BRANCH_CALL, address, target, length, &bits));
        ck_assert(!arch->encode_branch(arch, ARCH_BRANCH_JUMP, address, target, length, &bits));
    }
}

START_TEST(displacements_beyond_the_edge_are_refused)
{
    open_machine(_i);
    int64_t unit = (int64_t)step();
    for (int64_t steps = 1; steps <= 4; steps++) {
        expect_refused(reach() + (steps - 1) * unit);
        expect_refused(-reach() - steps * unit);
    }
    for (int64_t part = 1; part < unit; part++) {
        expect_refused(part);
        expect_refused(reach() - unit + part);
        expect_refused(-reach() + part);
    }
}
END_TEST

START_TEST(branches_are_decoded_as_they_were_encoded)
{
    open_machine(_i);
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        for (int branch = ARCH_BRANCH_NOP; branch <= ARCH_BRANCH_JUMP; branch++) {
            uint64_t bits;
            uint64_t target = branch == ARCH_BRANCH_NOP ? 0 : address + 0x1234568;
            enum arch_branch decoded;
            uint64_t decoded_target;
            ck_assert(arch->encode_branch(arch, (enum arch_branch)branch, address, target, length,
                                          &bits));
            ck_assert(arch->decode_branch(arch, bits, address, length, &decoded, &decoded_target));
            ck_assert_int_eq(decoded, branch);
            ck_assert_uint_eq(decoded_target, target);
        }
    }
}
END_TEST

/* The decoder must accept exactly the branches that LLVM decodes as one of the three kinds. */
START_TEST(branches_are_decoded_as_llvm_reads_them)
{
    open_machine(_i);
    uint64_t random = support_seed();
    if (arch->fixed_instruction_bytes == 0)
        return; /* only Cairn emits the padded forms */
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint8_t bytes[ARCH_WORD_BYTES_MAX];
        char text[TEXT_SIZE];
        enum arch_branch branch;
        uint64_t target;
        uint64_t bits = support_random(&random);
        uint64_t jump;
        ck_assert(arch->encode_branch(arch, ARCH_BRANCH_JUMP, address, address, step(), &jump));
        if (round % 2 == 0) /* similar to a branch */
            bits = (jump ^ UINT64_C(1) << bits % 32) | (bits & 0xFFC);
        put_bits(bits, step(), bytes);
        disassemble(bytes, step(), text);
        bool is_call = strncmp(text, machine->call, strlen(machine->call)) == 0 &&
                       text[strlen(machine->call)] == ' ';
        bool is_jump = strncmp(text, machine->jump, strlen(machine->jump)) == 0 &&
                       text[strlen(machine->jump)] == ' ';
        bool is_nop = strcmp(text, "nop") == 0;
        bool decoded = arch->decode_branch(arch, bits, address, step(), &branch, &target);
        ck_assert_msg(decoded == (is_call || is_jump || is_nop), "%08" PRIx64 ": '%s'", bits, text);
        if (!decoded)
            continue;
        ck_assert(is_nop == (branch == ARCH_BRANCH_NOP));
        ck_assert(is_call == (branch == ARCH_BRANCH_CALL));
        if (!is_nop)
            ck_assert_int_eq(
                (int64_t)(target - address),
                displacement_in(text + strlen(is_call ? machine->call : machine->jump)));
    }
}
END_TEST

/* ---- No-ops ---- */

START_TEST(no_ops_of_every_size_are_no_ops)
{
    open_machine(_i);
    for (size_t size = step(); size <= 40; size += step()) {
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

START_TEST(armed_region_is_what_it_should_be)
{
    open_machine(_i);
    const struct arch_patchpoint none = {.has_call = false};
    struct arch_placement placement;
    uint8_t region[ARCH_VENEER_BYTES_MAX];
    size_t size = machine->armed_bytes;
    ck_assert_int_eq(arch->place(arch, &none, size, address, &placement, NULL), CAIRN_OK);
    ck_assert_int_eq(arch->place(arch, &none, size - 1, address, &placement, NULL),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(arch->place(arch, &none, size, address, &placement, NULL), CAIRN_OK);
    arch->arm(arch, region, size, &none, &placement);
    expect_lines(region, size, machine->armed);
}
END_TEST

/* ---- Stubs ---- */

START_TEST(veneer_jumps_through_its_slot)
{
    open_machine(_i);
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    ck_assert(arch->encode_veneer(arch, address, address + 0x12348, code));
    expect_lines(code, arch->veneer_bytes, machine->veneer);
    bool relative = !arch->calls_need_veneer;
    ck_assert(arch->encode_veneer(arch, address, address + (UINT64_C(1) << 32), code) == !relative);
}
END_TEST

START_TEST(framed_veneer_calls_through_its_slot)
{
    open_machine(_i);
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    if (arch->encode_framed_veneer == NULL) {
        ck_assert_ptr_null(machine->framed_veneer[0]);
        return;
    }
    ck_assert_uint_le(arch->framed_veneer_bytes, sizeof code);
    ck_assert(arch->encode_framed_veneer(arch, address, address + 0x12348, code));
    expect_lines(code, arch->framed_veneer_bytes, machine->framed_veneer);
}
END_TEST

START_TEST(exit_jumps_to_its_entry_with_its_data)
{
    open_machine(_i);
    uint8_t code[ARCH_EXIT_CODE_BYTES_MAX];
    ck_assert_uint_le(arch->exit_bytes, sizeof code);
    memset(code, 0xEE, sizeof code);
    ck_assert(arch->encode_exit(arch, address, address + 0x1C340, code));
    expect_lines(code, arch->exit_bytes, machine->exit);
    ck_assert(arch->exit_bytes == sizeof code || code[arch->exit_bytes] == 0xEE);
    bool relative = !arch->calls_need_veneer;
    ck_assert(arch->encode_exit(arch, address, address + (UINT64_C(1) << 32), code) == !relative);
}
END_TEST

START_TEST(entry_code_takes_its_frame_away)
{
    open_machine(_i);
    uint8_t code[ARCH_ENTRY_CODE_BYTES_MAX];
    const struct arch_entry_frame *frame = &arch->entry_frame;
    size_t bytes = arch->fixed_instruction_bytes == 0 ? 1 : arch->fixed_instruction_bytes;
    ck_assert_uint_le(frame->code_bytes, sizeof code);
    memset(code, 0xEE, sizeof code);
    arch->encode_entry(arch, code);
    expect_lines(code, frame->code_bytes, machine->entry);
    ck_assert(frame->code_bytes == sizeof code || code[frame->code_bytes] == 0xEE);
    ck_assert_uint_eq(frame->return_offset, machine->entry_return * bytes);
}
END_TEST

START_TEST(self_test_returns_its_value)
{
    open_machine(_i);
    uint8_t code[ARCH_SELF_TEST_BYTES_MAX];
    size_t size = arch->encode_self_test(arch, 7, code);
    ck_assert_uint_le(size, sizeof code);
    expect_lines(code, size, machine->self_test);
}
END_TEST

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

int main(void)
{
    Suite *suite = suite_create("encoders");
    TCase *tests = tcase_create("encoders");
    tcase_add_checked_fixture(tests, disassembly_set_up, tear_down);
    ADD(tests, branches_of_every_length_go_where_they_should);
    ADD(tests, branches_at_random_go_where_they_should);
    ADD(tests, displacements_beyond_the_edge_are_refused);
    ADD(tests, branches_are_decoded_as_they_were_encoded);
    ADD(tests, branches_are_decoded_as_llvm_reads_them);
    ADD(tests, no_ops_of_every_size_are_no_ops);
    ADD(tests, armed_region_is_what_it_should_be);
    ADD(tests, veneer_jumps_through_its_slot);
    ADD(tests, framed_veneer_calls_through_its_slot);
    ADD(tests, exit_jumps_to_its_entry_with_its_data);
    ADD(tests, entry_code_takes_its_frame_away);
    ADD(tests, self_test_returns_its_value);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
