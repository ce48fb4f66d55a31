/*
 * Tests of the architectures' tables for x86-64 and of the parts that all architectures share:
 * recognising LLVM's code, arming, decoding, register names. The tests compare bytes and do not
 * execute them, so they run on every host. check_encoders.c has the tests of what is encoded.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { REGION_MAX = 64, WORD = 8, BRANCH = 5 };

/* An aligned address, far from both ends of the address space. */
#define BASE UINT64_C(0x7F0012340000)

static const struct cairn_arch *x86_64(void) { return arch_find(CAIRN_ARCHITECTURE_X86_64); }

/* ---- No-ops ---- */

struct bytes {
    size_t size;
    uint8_t bytes[16];
};

static const struct bytes nops_of_llvm[] = {
    {1, {0x90}},
    {2, {0x66, 0x90}},
    {3, {0x0F, 0x1F, 0x00}},
    {4, {0x0F, 0x1F, 0x40, 0x08}},
    {5, {0x0F, 0x1F, 0x44, 0x00, 0x08}},
    {6, {0x66, 0x0F, 0x1F, 0x44, 0x00, 0x08}},
    {7, {0x0F, 0x1F, 0x80, 0x00, 0x02, 0x00, 0x00}},
    {8, {0x0F, 0x1F, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}},
    {9, {0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}},
    {10, {0x66, 0x2E, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}},
    {10, {0x2E, 0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}},
    {15,
     {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2E, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}},
};
enum { NOP_FORMS = sizeof nops_of_llvm / sizeof *nops_of_llvm };

START_TEST(every_form_of_no_op_is_counted)
{
    const struct bytes *nop = &nops_of_llvm[_i];
    ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), nop->bytes, nop->size), nop->size);
}
END_TEST

START_TEST(truncated_no_op_is_not_counted)
{
    const struct bytes *nop = &nops_of_llvm[_i];
    for (size_t size = 0; size < nop->size; size++) {
        /* A heap block of the exact size, so that sanitizers find reads past its end. */
        uint8_t *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, nop->bytes, size);
        ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), cut, size), 0);
        free(cut);
    }
}
END_TEST

START_TEST(counting_ends_before_the_first_other_instruction)
{
    const struct bytes *nop = &nops_of_llvm[_i];
    uint8_t code[REGION_MAX];
    memcpy(code, nop->bytes, nop->size);
    memcpy(code + nop->size, nop->bytes, nop->size);
    memset(code + 2 * nop->size, 0xC3, 4);
    ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), code, 2 * nop->size + 4), 2 * nop->size);
}
END_TEST

START_TEST(instructions_similar_to_no_ops_are_not_counted)
{
    static const struct bytes others[] = {
        {2, {0x66, 0x91}},             /* xchg %ax, %cx */
        {3, {0x0F, 0x1F, 0x08}},       /* an undocumented form */
        {3, {0x0F, 0x1E, 0xFA}},       /* part of endbr64 */
        {4, {0xF3, 0x0F, 0x1E, 0xFA}}, /* endbr64 */
        {2, {0xF3, 0x90}},             /* pause */
        {3, {0x0F, 0x0B, 0x00}},       /* ud2 */
        {2, {0x41, 0x90}},             /* xchg %r8, %rax */
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), others[i].bytes, others[i].size), 0);
}
END_TEST

/* Each form of call that LLVM emits, and similar instructions. */
static const struct {
    size_t length;
    struct bytes code;
} calls[] = {
    {5, {5, {0xE8, 1, 2, 3, 4}}},
    {2, {2, {0xFF, 0xD0}}},                         /* call *%rax */
    {3, {3, {0x41, 0xFF, 0xD3}}},                   /* call *%r11 */
    {3, {3, {0x3E, 0xFF, 0xD0}}},                   /* notrack call *%rax */
    {2, {2, {0xFF, 0x10}}},                         /* call *(%rax) */
    {3, {3, {0xFF, 0x50, 8}}},                      /* call *8(%rax) */
    {6, {6, {0xFF, 0x90, 0, 1, 0, 0}}},             /* call *256(%rax) */
    {6, {6, {0xFF, 0x15, 1, 2, 3, 4}}},             /* call *x(%rip) */
    {7, {7, {0x67, 0xFF, 0x15, 1, 2, 3, 4}}},       /* the same with addr32 */
    {3, {3, {0xFF, 0x14, 0xC8}}},                   /* call *(%rax,%rcx,8) */
    {7, {7, {0xFF, 0x14, 0xC5, 1, 2, 3, 4}}},       /* call *x(,%rax,8) */
    {4, {4, {0xFF, 0x54, 0x24, 8}}},                /* call *8(%rsp) */
    {8, {8, {0x42, 0xFF, 0x94, 0xC8, 1, 2, 3, 4}}}, /* call *x(%rax,%r9,8) */
    {8, {8, {0x66, 0x66, 0x48, 0xE8, 1, 2, 3, 4}}}, /* call for thread-local storage */
    {0, {6, {0x66, 0xE8, 1, 2, 3, 4}}},             /* processors differ */
    {0, {5, {0xE9, 1, 2, 3, 4}}},                   /* jmp */
    {0, {2, {0xFF, 0xE0}}},                         /* jmp *%rax */
    {0, {2, {0xFF, 0xC0}}},                         /* inc %eax */
    {0, {3, {0xFF, 0x58, 8}}},                      /* far call */
    {0, {2, {0x90, 0xE8}}},
};
enum { CALL_FORMS = sizeof calls / sizeof *calls };

START_TEST(calls_have_their_length)
{
    const struct bytes *call = &calls[_i].code;
    uint8_t code[REGION_MAX] = {0};
    memcpy(code, call->bytes, call->size);
    ck_assert_uint_eq(x86_64()->call_length(x86_64(), code, sizeof code), calls[_i].length);
    for (size_t size = 0; size < calls[_i].length; size++) {
        uint8_t *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, code, size);
        ck_assert_uint_eq(x86_64()->call_length(x86_64(), cut, size), 0);
        free(cut);
    }
}
END_TEST

/* ---- LLVM's code ---- */

#define TARGET UINT64_C(0x8877665544332211)

/* Writes movabs $TARGET, %register; call *%register. Returns the size. */
static size_t write_call(uint8_t *region, unsigned number)
{
    bool upper = number >= 8;
    uint64_t target = TARGET;
    uint8_t *at = region;
    *at++ = upper ? 0x49 : 0x48;
    *at++ = (uint8_t)(0xB8 | (number & 7));
    for (unsigned i = 0; i < 8; i++)
        *at++ = (uint8_t)(target >> (8 * i));
    if (upper)
        *at++ = 0x41;
    *at++ = 0xFF;
    *at++ = (uint8_t)(0xD0 | (number & 7));
    return (size_t)(at - region);
}

static enum cairn_status recognise(const uint8_t *region, size_t size,
                                   struct arch_patchpoint *patchpoint, struct cairn_error *error)
{
    memset(patchpoint, 0xEE, sizeof *patchpoint);
    return x86_64()->recognise(x86_64(), region, size, BASE, patchpoint, error);
}

START_TEST(call_through_any_register_is_recognised)
{
    uint8_t region[REGION_MAX];
    struct arch_patchpoint found;
    struct cairn_error error;
    size_t size = write_call(region, (unsigned)_i);
    ck_assert_int_eq(recognise(region, size, &found, &error), CAIRN_OK);
    ck_assert(found.has_call);
    ck_assert_uint_eq(found.target, TARGET);
    ck_assert_uint_eq(found.return_offset, size);
}
END_TEST

START_TEST(call_may_be_followed_by_any_no_op)
{
    const struct bytes *nop = &nops_of_llvm[_i];
    uint8_t region[REGION_MAX];
    struct arch_patchpoint found;
    struct cairn_error error;
    size_t call = write_call(region, 11);
    memcpy(region + call, nop->bytes, nop->size);
    ck_assert_int_eq(recognise(region, call + nop->size, &found, &error), CAIRN_OK);
    ck_assert_uint_eq(found.return_offset, call);
}
END_TEST

START_TEST(no_ops_alone_have_no_call)
{
    const struct bytes *nop = &nops_of_llvm[_i];
    struct arch_patchpoint found;
    struct cairn_error error;
    ck_assert_int_eq(recognise(nop->bytes, nop->size, &found, &error), CAIRN_OK);
    ck_assert(!found.has_call);
    ck_assert_uint_eq(found.return_offset, 0);
}
END_TEST

START_TEST(empty_region_is_recognised)
{
    struct arch_patchpoint found;
    struct cairn_error error;
    const uint8_t none = 0xCC;
    ck_assert_int_eq(recognise(&none, 0, &found, &error), CAIRN_OK);
    ck_assert(!found.has_call);
}
END_TEST

START_TEST(call_of_another_register_is_refused_after_the_movabs)
{
    uint8_t region[REGION_MAX];
    struct arch_patchpoint found;
    struct cairn_error error;
    size_t size = write_call(region, (unsigned)_i);
    region[size - 1] ^= 1;
    ck_assert_int_eq(recognise(region, size, &found, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, BASE + 10);
}
END_TEST

START_TEST(truncated_call_is_refused)
{
    uint8_t whole[REGION_MAX];
    size_t whole_size = write_call(whole, (unsigned)_i);
    for (size_t size = 1; size < whole_size; size++) {
        struct arch_patchpoint found;
        struct cairn_error error;
        uint8_t *cut = malloc(size);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, whole, size);
        ck_assert_int_eq(recognise(cut, size, &found, &error), CAIRN_ERROR_CORRUPT);
        ck_assert_uint_eq(error.offset, size < 10 ? BASE : BASE + 10);
        free(cut);
    }
}
END_TEST

START_TEST(first_byte_that_llvm_does_not_emit_is_reported)
{
    for (size_t offset = 13; offset < 24; offset++) {
        uint8_t region[24];
        struct arch_patchpoint found;
        struct cairn_error error;
        memset(region, 0x90, sizeof region);
        write_call(region, 11);
        region[offset] = 0xF4;
        ck_assert_int_eq(recognise(region, sizeof region, &found, &error), CAIRN_ERROR_CORRUPT);
        ck_assert_uint_eq(error.offset, BASE + offset);
        ck_assert_ptr_nonnull(strstr(error.message, "0xf4"));
    }
}
END_TEST

START_TEST(refused_region_leaves_the_result_unchanged)
{
    const uint8_t region[] = {0x90, 0xF4};
    struct arch_patchpoint found = {.has_call = true, .target = 7, .return_offset = 9};
    ck_assert_int_eq(x86_64()->recognise(x86_64(), region, sizeof region, BASE, &found, NULL),
                     CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(found.target, 7);
    ck_assert_uint_eq(found.return_offset, 9);
}
END_TEST

/* ---- Placement ---- */

/* Whether 5 bytes of the region are in one aligned word. Tries all positions. */
static bool has_place(size_t size, uint64_t address)
{
    for (size_t offset = 0; offset + BRANCH <= size; offset++)
        if ((address + offset) % WORD + BRANCH <= WORD)
            return true;
    return false;
}

START_TEST(place_is_found_exactly_where_there_is_one)
{
    const struct arch_patchpoint none = {.has_call = false};
    uint64_t address = BASE + (uint64_t)_i;
    for (size_t size = 0; size <= 32; size++) {
        struct arch_placement placement;
        struct cairn_error error = {0};
        enum cairn_status status =
            x86_64()->place(x86_64(), &none, size, address, &placement, &error);
        ck_assert_int_eq(status, has_place(size, address) ? CAIRN_OK : CAIRN_ERROR_RANGE);
        if (status != CAIRN_OK) {
            ck_assert_uint_lt(size, 9);
            ck_assert_uint_eq(error.offset, address);
            continue;
        }
        ck_assert_uint_le((address + placement.instruction_offset) % WORD + BRANCH, WORD);
        ck_assert_uint_eq(placement.return_offset, placement.instruction_offset + BRANCH);
        ck_assert_uint_le(placement.return_offset, size);
    }
}
END_TEST

START_TEST(armed_region_is_no_ops_with_a_boundary_at_the_place)
{
    const struct arch_patchpoint none = {.has_call = false};
    for (size_t size = 9; size <= 32; size++) {
        uint8_t region[REGION_MAX];
        struct arch_placement placement;
        memset(region, 0xCC, sizeof region);
        ck_assert_int_eq(
            x86_64()->place(x86_64(), &none, size, BASE + (uint64_t)_i, &placement, NULL),
            CAIRN_OK);
        x86_64()->arm(x86_64(), region, size, &none, &placement);
        size_t before = placement.instruction_offset;
        size_t after = placement.return_offset;
        ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), region, before), before);
        ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), region + before, BRANCH), BRANCH);
        ck_assert_uint_eq(x86_64()->leading_nops(x86_64(), region + after, size - after),
                          size - after);
        ck_assert_uint_eq(region[size], 0xCC);
    }
}
END_TEST

/* ---- Branches ---- */

START_TEST(other_bits_are_not_decoded_as_branches)
{
    static const uint64_t others[] = {0, 0xC3, 0xE7, 0xEA, UINT64_C(0x9090909090), UINT64_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        for (size_t length = 5; length <= 8; length++) {
            enum cairn_site_state branch;
            uint64_t target;
            uint64_t bits = others[i] & (UINT64_MAX >> (64 - 8 * length));
            ck_assert(!x86_64()->decode_branch(x86_64(), bits, BASE, length, &branch, &target));
        }
    }
}
END_TEST

/* ---- Names and tables ---- */

static void check_register(enum cairn_architecture architecture, uint16_t number, const char *name)
{
    const char *found = cairn_register_name(architecture, number);
    ck_assert_msg(found != NULL && strcmp(found, name) == 0, "%s %u: %s, not %s",
                  cairn_architecture_name(architecture), number, found == NULL ? "NULL" : found,
                  name);
}

START_TEST(registers_have_the_names_of_their_abi)
{
    check_register(CAIRN_ARCHITECTURE_X86_64, 0, "rax");
    check_register(CAIRN_ARCHITECTURE_X86_64, 1, "rdx");
    check_register(CAIRN_ARCHITECTURE_X86_64, 7, "rsp");
    check_register(CAIRN_ARCHITECTURE_X86_64, 17, "xmm0");
    check_register(CAIRN_ARCHITECTURE_X86_64, 67, "xmm16");
    check_register(CAIRN_ARCHITECTURE_X86_64, 125, "k7");
    check_register(CAIRN_ARCHITECTURE_AARCH64, 0, "x0");
    check_register(CAIRN_ARCHITECTURE_AARCH64, 31, "sp");
    check_register(CAIRN_ARCHITECTURE_AARCH64, 95, "v31");
    check_register(CAIRN_ARCHITECTURE_PPC64_ELFV2, 1, "r1");
    check_register(CAIRN_ARCHITECTURE_PPC64_ELFV2, 65, "lr");
    check_register(CAIRN_ARCHITECTURE_PPC64_ELFV1, 63, "f31");
    check_register(CAIRN_ARCHITECTURE_PPC64_ELFV1, 1231, "r31");
    check_register(CAIRN_ARCHITECTURE_SYSTEMZ, 15, "r15");
    check_register(CAIRN_ARCHITECTURE_SYSTEMZ, 17, "f2");
    check_register(CAIRN_ARCHITECTURE_RISCV64, 2, "sp");
    check_register(CAIRN_ARCHITECTURE_RISCV64, 63, "ft11");
}
END_TEST

START_TEST(other_numbers_have_no_name)
{
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_X86_64, 56));
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_X86_64, 126));
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_AARCH64, 32));
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_PPC64_ELFV2, 1232));
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_SYSTEMZ, 84));
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_RISCV64, 64));
    ck_assert_ptr_null(cairn_register_name(CAIRN_ARCHITECTURE_UNKNOWN, 0));
    for (int i = CAIRN_ARCHITECTURE_UNKNOWN; i <= CAIRN_ARCHITECTURE_RISCV64; i++)
        ck_assert_ptr_null(cairn_register_name((enum cairn_architecture)i, UINT16_MAX));
}
END_TEST

START_TEST(other_architectures_are_unknown)
{
    enum cairn_architecture beyond = (enum cairn_architecture)(CAIRN_ARCHITECTURE_RISCV64 + 1);
    ck_assert_str_eq(cairn_architecture_name(beyond), "unknown");
    ck_assert_ptr_null(cairn_register_name(beyond, 0));
    ck_assert_ptr_null(arch_find(beyond));
    ck_assert_ptr_null(arch_find(CAIRN_ARCHITECTURE_UNKNOWN));
}
END_TEST

START_TEST(tables_have_their_own_architecture)
{
    for (int i = CAIRN_ARCHITECTURE_UNKNOWN; i <= CAIRN_ARCHITECTURE_RISCV64; i++) {
        const struct cairn_arch *arch = arch_find((enum cairn_architecture)i);
        if (arch == NULL)
            continue;
        ck_assert_int_eq((int)arch->architecture, i);
        ck_assert_uint_le(arch->word_bytes, ARCH_WORD_BYTES_MAX);
        ck_assert_uint_le(arch->veneer_bytes, ARCH_VENEER_BYTES_MAX);
    }
}
END_TEST

/* ---- Unwinding ---- */

static bool has_slot(const struct cairn_arch *arch, uint16_t dwarf)
{
    for (size_t i = 0; i < arch->unwind_slot_count; i++)
        if (arch->unwind_slots[i].dwarf == dwarf)
            return true;
    return false;
}

/* The slots of one register must be adjacent: tables of unwind rules depend on it. */
static void check_slots(const struct cairn_arch *arch)
{
    const struct arch_unwind_slot *slots = arch->unwind_slots;
    ck_assert_uint_le(arch->unwind_slot_count, ARCH_UNWIND_SLOTS_MAX);
    for (size_t i = 0; i < arch->unwind_slot_count; i++) {
        ck_assert_ptr_nonnull(cairn_register_name(arch->architecture, slots[i].dwarf));
        ck_assert(slots[i].byte == 0 || (slots[i].byte == 8 && slots[i - 1].byte == 0 &&
                                         slots[i - 1].dwarf == slots[i].dwarf));
        for (size_t j = 0; j + 1 < i; j++)
            ck_assert(slots[j].dwarf != slots[i].dwarf || slots[i - 1].dwarf == slots[i].dwarf);
    }
}

START_TEST(unwind_slots_are_the_callee_saved_registers)
{
    static const struct {
        enum cairn_architecture architecture;
        size_t count;
        const char *stack_pointer;
        const char *return_address;
        uint16_t kept[4];
        uint16_t not_kept[4];
    } expected[] = {
        {CAIRN_ARCHITECTURE_X86_64, 8, "rsp", "rip", {3, 6, 12, 15}, {0, 1, 4, 17}},
        {CAIRN_ARCHITECTURE_AARCH64, 21, "sp", "lr", {19, 29, 72, 79}, {18, 16, 71, 80}},
        {CAIRN_ARCHITECTURE_PPC64_ELFV2, 66, "r1", "lr", {2, 31, 72, 108}, {12, 13, 45, 96}},
        {CAIRN_ARCHITECTURE_PPC64_ELFV1, 66, "r1", "lr", {14, 63, 70, 97}, {12, 13, 71, 109}},
    };
    const struct cairn_arch *arch = arch_find(expected[_i].architecture);
    check_slots(arch);
    ck_assert_uint_eq(arch->unwind_slot_count, expected[_i].count);
    const struct arch_unwind_slot *slots = arch->unwind_slots;
    ck_assert_str_eq(
        cairn_register_name(arch->architecture, slots[ARCH_UNWIND_STACK_POINTER].dwarf),
        expected[_i].stack_pointer);
    ck_assert_str_eq(
        cairn_register_name(arch->architecture, slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf),
        expected[_i].return_address);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(has_slot(arch, expected[_i].kept[i]));
        ck_assert(!has_slot(arch, expected[_i].not_kept[i]));
    }
}
END_TEST

/* ---- The suite ---- */

static void add_tests_of_no_ops(TCase *tests)
{
    tcase_add_loop_test(tests, every_form_of_no_op_is_counted, 0, NOP_FORMS);
    tcase_add_loop_test(tests, truncated_no_op_is_not_counted, 0, NOP_FORMS);
    tcase_add_loop_test(tests, counting_ends_before_the_first_other_instruction, 0, NOP_FORMS);
    tcase_add_test(tests, instructions_similar_to_no_ops_are_not_counted);
    tcase_add_loop_test(tests, calls_have_their_length, 0, CALL_FORMS);
}

static void add_tests_of_regions(TCase *tests)
{
    tcase_add_loop_test(tests, call_through_any_register_is_recognised, 0, 16);
    tcase_add_loop_test(tests, call_may_be_followed_by_any_no_op, 0, NOP_FORMS);
    tcase_add_loop_test(tests, no_ops_alone_have_no_call, 0, NOP_FORMS);
    tcase_add_test(tests, empty_region_is_recognised);
    tcase_add_loop_test(tests, call_of_another_register_is_refused_after_the_movabs, 0, 16);
    tcase_add_loop_test(tests, truncated_call_is_refused, 0, 16);
    tcase_add_test(tests, first_byte_that_llvm_does_not_emit_is_reported);
    tcase_add_test(tests, refused_region_leaves_the_result_unchanged);
    tcase_add_loop_test(tests, place_is_found_exactly_where_there_is_one, 0, WORD);
    tcase_add_loop_test(tests, armed_region_is_no_ops_with_a_boundary_at_the_place, 0, WORD);
}

static void add_tests_of_names(TCase *tests)
{
    tcase_add_test(tests, registers_have_the_names_of_their_abi);
    tcase_add_test(tests, other_numbers_have_no_name);
    tcase_add_test(tests, other_architectures_are_unknown);
    tcase_add_test(tests, tables_have_their_own_architecture);
    tcase_add_loop_test(tests, unwind_slots_are_the_callee_saved_registers, 0, 4);
}

int main(void)
{
    Suite *suite = suite_create("arch");
    TCase *tests = tcase_create("arch");
    add_tests_of_no_ops(tests);
    add_tests_of_regions(tests);
    tcase_add_test(tests, other_bits_are_not_decoded_as_branches);
    add_tests_of_names(tests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
