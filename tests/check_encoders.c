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

enum { TEXT_SIZE = 128, LINES_MAX = 29, RANDOM_ROUNDS = 1000 };

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
        .veneer = {"endbr64", "jmpq *74558(%rip)", "int3", "int3", "int3", "int3", "int3", "int3"},
        .self_test = {"movl $7, %eax", "retq"},
        .exit = {"endbr64", "pushq 115518(%rip)", "jmpq *115504(%rip)"},
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
        .veneer = {"hint #34", "adrp x16, #73728", "ldr x16, [x16, #840]", "br x16"},
        .self_test = {"mov w0, #7", "ret"},
        .exit = {"hint #34", "adrp x16, #114688", "add x16, x16, #832", "ldr x17, [x16]", "br x17",
                 "brk #0"},
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

/* Checks that LLVM reads the encoded branch as one of this displacement, and that Cairn does. */
static void expect_branch(enum cairn_site_state branch, size_t length, int64_t displacement)
{
    const char *mnemonic = branch == CAIRN_SITE_CALL ? machine->call : machine->jump;
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
    if (found == NULL || found[mnemonic_length] != ' ')
        ck_abort_msg("'%s' is not a %s", text, mnemonic);
    if (displacement_in(found + mnemonic_length) != displacement)
        ck_abort_msg("'%s' does not branch to %" PRId64, text, displacement);
    enum cairn_site_state decoded;
    uint64_t decoded_target;
    if (!arch->decode_branch(arch, bits, address, length, &decoded, &decoded_target) ||
        decoded != branch || decoded_target != target)
        ck_abort_msg("'%s' is decoded as another branch", text);
}

static void expect_branches(int64_t displacement)
{
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        expect_branch(CAIRN_SITE_CALL, length, displacement);
        expect_branch(CAIRN_SITE_JUMP, length, displacement);
    }
}

static int64_t reach(void) { return INT64_C(1) << (machine->displacement_bits - 1); }

START_TEST(branches_of_every_length_reach_their_targets)
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

START_TEST(random_branches_reach_their_targets)
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
        ck_assert(!arch->encode_branch(arch, CAIRN_SITE_CALL, address, target, length, &bits));
        ck_assert(!arch->encode_branch(arch, CAIRN_SITE_JUMP, address, target, length, &bits));
    }
}

START_TEST(targets_out_of_reach_are_refused)
{
    open_machine(_i);
    int64_t unit = (int64_t)step();
    for (int64_t steps = 1; steps <= 4; steps++) {
        expect_refused(reach() + (steps - 1) * unit);
        expect_refused(-reach() - steps * unit);
    }
    for (unsigned bit = machine->displacement_bits; bit < 63; bit++) {
        expect_refused(INT64_C(1) << bit);
        expect_refused(-(INT64_C(1) << bit));
    }
    expect_refused(INT64_MIN);
    for (int64_t part = 1; part < unit; part++) {
        expect_refused(part);
        expect_refused(reach() - unit + part);
        expect_refused(-reach() + part);
    }
}
END_TEST

/* No-ops ignore their target. */
START_TEST(no_ops_are_decoded_as_they_were_encoded)
{
    open_machine(_i);
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        uint64_t bits;
        enum cairn_site_state decoded;
        uint64_t target;
        ck_assert(arch->encode_branch(arch, CAIRN_SITE_NOP, address, 3, length, &bits));
        ck_assert(arch->decode_branch(arch, bits, address, length, &decoded, &target));
        ck_assert_int_eq(decoded, CAIRN_SITE_NOP);
        ck_assert_uint_eq(target, 0);
    }
}
END_TEST

START_TEST(slab_is_in_reach_of_itself)
{
    open_machine(_i);
    uint64_t last = address + arch->reach_bytes - step();
    uint64_t bits;
    for (size_t length = arch->instruction_bytes; length <= arch->instruction_bytes_max; length++) {
        ck_assert(arch->encode_branch(arch, CAIRN_SITE_CALL, address, last, length, &bits));
        ck_assert(arch->encode_branch(arch, CAIRN_SITE_CALL, last, address, length, &bits));
    }
    ck_assert_uint_le(arch->slab_bytes_default, arch->reach_bytes);
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
        enum cairn_site_state branch;
        uint64_t target;
        uint64_t bits = support_random(&random);
        uint64_t jump;
        ck_assert(arch->encode_branch(arch, CAIRN_SITE_JUMP, address, address, step(), &jump));
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
        ck_assert(is_nop == (branch == CAIRN_SITE_NOP));
        ck_assert(is_call == (branch == CAIRN_SITE_CALL));
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
    enum { SIZE_MAX_TESTED = 64 };
    for (size_t size = 0; size <= SIZE_MAX_TESTED; size += step()) {
        uint8_t bytes[SIZE_MAX_TESTED + 4];
        char text[TEXT_SIZE];
        memset(bytes, 0xCC, sizeof bytes);
        /* Where all instructions are words, a remainder is left unchanged. */
        arch->fill_nops(arch, bytes, size + step() - 1);
        ck_assert_uint_eq(bytes[size], 0xCC);
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

START_TEST(smallest_armed_region_is_as_expected)
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

/* Returns the address that the instructions at `*at` compute, up to the one that loads from it,
 * jumps through it, or completes it, as LLVM reads them. */
static uint64_t address_in(const uint8_t *code, size_t *at)
{
    for (uint64_t value = 0;;) {
        char text[TEXT_SIZE];
        *at += disassemble(code + *at, 16, text);
        const char *operands = strchr(text, ' ');
        const char *immediate = strrchr(text, ',');
        const char *hash = strchr(text, '#');
        if (operands == NULL) /* mtctr and the like have an operand, but no immediate */
            continue;
        uint64_t number = hash != NULL        ? strtoull(hash + 1, NULL, 0)
                          : immediate != NULL ? strtoull(immediate + 1, NULL, 0)
                                              : 0;
        if (strstr(text, "(%rip)") != NULL)
            return address + *at + (uint64_t)displacement_in(operands);
        if (strncmp(text, "adrp ", 5) == 0)
            value = (address & ~UINT64_C(0xFFF)) + number;
        else if (strncmp(text, "lis ", 4) == 0)
            value = number << 16;
        else if (strncmp(text, "ori ", 4) == 0)
            value |= number;
        else if (strncmp(text, "sldi ", 5) == 0)
            value <<= number;
        else if (strncmp(text, "oris ", 5) == 0)
            value |= number << 16;
        else if (strncmp(text, "ld", 2) == 0 || strncmp(text, "add", 3) == 0)
            return value + number;
    }
}

static uint64_t random_number(uint64_t *random)
{
    uint64_t high = support_random(random);
    return high << 32 | support_random(random);
}

/* Slots and data anywhere in reach, and around every carry of a partial immediate. */
START_TEST(veneers_and_exits_load_every_address_in_reach)
{
    open_machine(_i);
    uint64_t random = support_seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint8_t code[ARCH_VENEER_BYTES_MAX + 16] = {0};
        uint64_t target = address + random_number(&random) % arch->reach_bytes;
        if (round % 2 == 0)
            target = address + (random_number(&random) % 64 << 12) - support_random(&random) % 64;
        if (arch->calls_need_veneer && round % 3 == 0) /* loads absolute addresses */
            target = random_number(&random) >> support_random(&random) % 48;
        target &= ~UINT64_C(7);
        size_t at = 0;
        ck_assert(arch->encode_veneer(arch, address, target, code));
        ck_assert_uint_eq(address_in(code, &at), target);
        ck_assert_uint_eq(arch->veneer_slot(arch, address, false, code), target);
        at = 0;
        ck_assert(arch->encode_exit(arch, address, target, code));
        uint64_t first = address_in(code, &at);
        ck_assert_uint_eq(first, target + (arch->words == NULL ? ARCH_EXIT_SELF : 0));
        if (machine->architecture != CAIRN_ARCHITECTURE_AARCH64)
            ck_assert_uint_eq(address_in(code, &at), target);
    }
}
END_TEST

START_TEST(veneer_jumps_through_its_slot)
{
    open_machine(_i);
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    memset(code, 0xEE, sizeof code);
    ck_assert(arch->encode_veneer(arch, address, address + 0x12348, code));
    expect_lines(code, arch->veneer_bytes, machine->veneer);
    ck_assert_uint_eq(code[arch->veneer_bytes], 0xEE);
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
    ck_assert_uint_eq(arch->veneer_slot(arch, address, true, code), address + 0x12348);
}
END_TEST

/* The line before the instruction at an offset. */
static const char *line_before(size_t offset)
{
    return machine->framed_veneer[offset / arch->fixed_instruction_bytes - 1];
}

START_TEST(frame_of_a_framed_veneer_is_where_the_table_says)
{
    open_machine(_i);
    const struct arch_veneer_frame *frame = arch->veneer_frame;
    if (frame == NULL)
        return;
    ck_assert_int_eq(strncmp(line_before(frame->made_offset), "stdu 1", 6), 0);
    ck_assert_int_eq(strncmp(line_before(frame->saved_offset), "std 2", 5), 0);
    ck_assert_str_eq(line_before(frame->return_offset), "bctrl");
    ck_assert_int_eq(strncmp(line_before(frame->left_offset), "addi 1", 6), 0);
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
}
END_TEST

/* The instructions' reach, of addresses that are multiples of 8: 2 GiB from the end of a jump,
 * which follows the landing pad, or 4 GiB from the start of a page. An exit of x86-64 pushes its
 * data's address first and then jumps. */
START_TEST(veneers_and_exits_refuse_addresses_out_of_reach)
{
    open_machine(_i);
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    bool is_x86 = arch->words == NULL;
    bool is_relative = !arch->calls_need_veneer;
    uint64_t range = is_x86 ? UINT64_C(1) << 31 : UINT64_C(1) << 32;
    uint64_t after_jump = is_x86 ? 10 : 0;
    for (uint64_t at = address; at < address + 0x1000; at += 16) {
        uint64_t page = is_x86 ? at : address;
        uint64_t end = (page + after_jump + range + 7) & ~UINT64_C(7);
        uint64_t begin = (page + after_jump - range + 7) & ~UINT64_C(7);
        ck_assert(arch->encode_veneer(arch, at, end - 8, code));
        ck_assert(arch->encode_veneer(arch, at, end, code) == !is_relative);
        ck_assert(arch->encode_veneer(arch, at, begin, code));
        ck_assert(arch->encode_veneer(arch, at, begin - 8, code) == !is_relative);
        uint64_t exit_end = is_x86 ? end - ARCH_EXIT_SELF : end;
        uint64_t exit_begin = is_x86 ? (begin + 6 + 7) & ~UINT64_C(7) : begin;
        ck_assert(arch->encode_exit(arch, at, exit_end - 8, code));
        ck_assert(arch->encode_exit(arch, at, exit_end, code) == !is_relative);
        ck_assert(arch->encode_exit(arch, at, exit_begin, code));
        ck_assert(arch->encode_exit(arch, at, exit_begin - 16, code) == !is_relative);
    }
}
END_TEST

START_TEST(entry_code_removes_its_frame)
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
    for (int value = 0; value <= 1000; value++) {
        char text[TEXT_SIZE];
        arch->encode_self_test(arch, value, code);
        disassemble(code, size, text);
        const char *number = strpbrk(text, "$#");
        number = number == NULL ? strrchr(text, ' ') : number;
        ck_assert_int_eq(strtol(number + 1, NULL, 0), value);
    }
}
END_TEST

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

int main(void)
{
    Suite *suite = suite_create("encoders");
    TCase *tests = tcase_create("encoders");
    tcase_add_checked_fixture(tests, disassembly_set_up, tear_down);
    ADD(tests, branches_of_every_length_reach_their_targets);
    ADD(tests, random_branches_reach_their_targets);
    ADD(tests, targets_out_of_reach_are_refused);
    ADD(tests, no_ops_are_decoded_as_they_were_encoded);
    ADD(tests, slab_is_in_reach_of_itself);
    ADD(tests, branches_are_decoded_as_llvm_reads_them);
    ADD(tests, no_ops_of_every_size_are_no_ops);
    ADD(tests, smallest_armed_region_is_as_expected);
    ADD(tests, veneer_jumps_through_its_slot);
    ADD(tests, framed_veneer_calls_through_its_slot);
    ADD(tests, frame_of_a_framed_veneer_is_where_the_table_says);
    ADD(tests, exit_jumps_to_its_entry_with_its_data);
    ADD(tests, veneers_and_exits_load_every_address_in_reach);
    ADD(tests, veneers_and_exits_refuse_addresses_out_of_reach);
    ADD(tests, entry_code_removes_its_frame);
    ADD(tests, self_test_returns_its_value);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
