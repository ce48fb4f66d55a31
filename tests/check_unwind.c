/*
 * Tests of tables of unwind rules: the contents of rows, finding rows by PC, and errors with their
 * reasons. Also walks this program's own stack in parallel with the system's unwinder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame_writer.h"
#include "process_frames.h"
#include "unwind/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_ADDRESS UINT64_C(0x10000)

static struct sample_section section;
static struct unwind *table;

static void set_up(void)
{
    section = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN};
    table = NULL;
}

static void tear_down(void)
{
    unwind_destroy(table);
    section_free(&section);
}

static enum cairn_status create(const struct cairn_arch *arch,
                                const struct cairn_allocator *allocator, struct unwind **created,
                                struct cairn_error *error)
{
    struct eh_frame frame = frame_view(&section);
    struct function_list list;
    enum cairn_status status = function_list_read(&frame, 1, allocator, &list, error);
    if (status != CAIRN_OK)
        return status;
    status = unwind_create(&list, arch, created, error);
    function_list_release(&list);
    return status;
}

static void build(enum cairn_architecture architecture)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct cairn_error error = {0};
    enum cairn_status status = create(arch_find(architecture), &allocator, &table, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* ---- Contents of rows ---- */

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static const char *name_of(const struct cairn_arch *arch, unsigned slot)
{
    return cairn_register_name(arch->architecture, arch->unwind_slots[slot].dwarf);
}

/* Prints a row, such as "rsp+16 rip@-8 rbx<r12 found": the CFA, registers loaded from CFA + N,
 * registers copied from others, flags. */
static void describe(const struct unwind_row *row, const struct cairn_arch *arch, char *text,
                     size_t size)
{
    static const char *const flags[] = {"found", "signal", "signed", "b-key"};
    const struct unwind_place *places = unwind_places(row);
    text[0] = 0;
    append(text, size, "%s%+d", name_of(arch, row->cfa_slot), row->cfa_offset);
    for (unsigned i = 0; i < row->loaded_count; i++)
        append(text, size, " %s@%d", name_of(arch, places[i].slot), 8 * places[i].words);
    places += row->loaded_count;
    for (unsigned i = 0; i < row->moved_count; i++)
        append(text, size, " %s<%s", name_of(arch, places[i].slot),
               name_of(arch, places[i].source));
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
        if ((row->flags >> i & 1) != 0)
            append(text, size, " %s", flags[i]);
}

#define BYTES(...)                                                                                 \
    sizeof((const uint8_t[]){__VA_ARGS__}), { __VA_ARGS__ }

/* The first rules of the common information: the CFA, and on x86-64 also the return address. */
static const uint8_t x86_64_begin[] = {0x0C, 7, 8, 0x90, 1};
static const uint8_t aarch64_begin[] = {0x0C, 31, 0};
static const uint8_t ppc64_begin[] = {0x0C, 1, 0};
static const struct sample_common commons[] = {
    [CAIRN_ARCHITECTURE_X86_64] = {"", 1, -8, 16, x86_64_begin, sizeof x86_64_begin},
    [CAIRN_ARCHITECTURE_AARCH64] = {"", 4, -8, 30, aarch64_begin, sizeof aarch64_begin},
    [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {"", 4, -8, 65, ppc64_begin, sizeof ppc64_begin},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {"", 4, -8, 65, ppc64_begin, sizeof ppc64_begin},
};

#define X86 CAIRN_ARCHITECTURE_X86_64
#define ARM CAIRN_ARCHITECTURE_AARCH64
#define PPC CAIRN_ARCHITECTURE_PPC64_ELFV2
#define PPC_1 CAIRN_ARCHITECTURE_PPC64_ELFV1

static const struct {
    enum cairn_architecture architecture;
    size_t size;
    uint8_t bytes[24];
    const char *expected;
    const char *letters;
} good_rows[] = {
    {X86, BYTES(0), "rsp+8 rip@-8 found", ""},
    {X86, BYTES(0x0C, 6, 16, 0x86, 2, 0x83, 3), "rbp+16 rip@-8 rbx@-24 rbp@-16 found", ""},
    {X86, BYTES(0x8C, 2, 0x8D, 3, 0x8E, 4, 0x8F, 5),
     "rsp+8 rip@-8 r12@-16 r13@-24 r14@-32 r15@-40 found", ""},
    /* a register saved in another one, which is restored after the loads; a register saved in
     * itself */
    {X86, BYTES(0x09, 3, 12, 0x8D, 2, 0x09, 6, 6), "rsp+8 rip@-8 r13@-16 rbx<r12 found", ""},
    /* registers that are not callee-saved; same_value; a stack pointer that equals the CFA */
    {X86, BYTES(0x07, 0, 0x08, 1, 0x08, 3, 0x14, 7, 0), "rsp+8 rip@-8 found", ""},
    {X86, BYTES(0), "rsp+8 rip@-8 found signal", "S"},
    {ARM, BYTES(0), "sp+0", ""},
    {ARM, BYTES(0x0C, 29, 16, 0x9D, 2, 0x9E, 1, 0x93, 4), "fp+16 lr@-8 x19@-32 fp@-16 found", ""},
    {ARM, BYTES(0x05, 72, 2, 0x05, 79, 3), "sp+0 v8@-16 v15@-24", ""},
    /* outlined code: the return address in a callee-saved register */
    {ARM, BYTES(0x09, 30, 19), "sp+0 lr<x19 found", ""},
    {ARM, BYTES(0x2D, 0x9E, 2), "sp+0 lr@-16 found signed", ""},
    {ARM, BYTES(0x2D), "sp+0 signed b-key", "B"},
    {ARM, BYTES(0), "sp+0", "B"},
    {PPC, BYTES(0x0E, 0x90, 1, 0x11, 65, 0x7E, 0x9F, 1), "r1+144 lr@16 r31@-8 found", ""},
    {PPC, BYTES(0x05, 46, 18, 0x05, 97, 20), "r1+0 f14@-144 v20@-160 v20@-152", ""},
    /* each field of the condition register alone, or one for all three */
    {PPC, BYTES(0x11, 71, 0x7F), "r1+0 cr3@8", ""},
    {PPC_1, BYTES(0x11, 70, 0x7F), "r1+0 cr2@8 cr2@8 cr2@8", ""},
};
enum { GOOD_COUNT = sizeof good_rows / sizeof *good_rows };

static void put_function(enum cairn_architecture architecture, const char *letters,
                         const uint8_t *bytes, size_t size)
{
    struct sample_common common = commons[architecture];
    common.letters = letters;
    frame_put_function(&section, frame_put_common(&section, &common), FUNCTION_ADDRESS, 64, bytes,
                       size);
}

START_TEST(rows_hold_what_a_walker_needs)
{
    enum cairn_architecture architecture = good_rows[_i].architecture;
    char text[512];
    put_function(architecture, good_rows[_i].letters, good_rows[_i].bytes, good_rows[_i].size);
    build(architecture);
    const struct unwind_row *row = unwind_find_exact(table, FUNCTION_ADDRESS);
    ck_assert_int_eq(row->problem, UNWIND_FINE);
    ck_assert(unwind_can_leave(row));
    ck_assert_int_eq(row->problem, UNWIND_FINE);
    ck_assert_ok(unwind_explain(row, arch_find(architecture), FUNCTION_ADDRESS, NULL));
    describe(row, arch_find(architecture), text, sizeof text);
    ck_assert_str_eq(text, good_rows[_i].expected);
}
END_TEST

static const struct {
    enum cairn_architecture architecture;
    size_t size;
    uint8_t bytes[24];
    enum unwind_problem problem;
    bool can_leave;
    const char *what;
    const char *letters;
} bad_rows[] = {
    {X86, BYTES(0x16, 3, 1, 0x50), UNWIND_REGISTER_EXPRESSION, true, "evaluated: rbx", ""},
    {X86, BYTES(0x10, 12, 1, 0x50), UNWIND_REGISTER_EXPRESSION, true, "evaluated: r12", ""},
    {X86, BYTES(0x07, 3), UNWIND_REGISTER_UNDEFINED, true, "lost: rbx", ""},
    {X86, BYTES(0x14, 3, 1), UNWIND_REGISTER_PLACE, true, "calls keep: rbx", ""},
    {X86, BYTES(0x09, 3, 0), UNWIND_REGISTER_PLACE, true, "calls keep: rbx", ""},
    {X86, BYTES(0x83, 0x80, 0x80, 2), UNWIND_FINE, true, "", ""},
    {X86, BYTES(0x83, 0x81, 0x80, 2), UNWIND_REGISTER_PLACE, true, "calls keep: rbx", ""},
    {X86, BYTES(0x80, 2), UNWIND_REGISTER_FOREIGN, true, "saved: rax", ""},
    {X86, BYTES(0x91, 2), UNWIND_REGISTER_FOREIGN, true, "saved: xmm0", ""},
    {X86, BYTES(0x05, 126, 2), UNWIND_REGISTER_FOREIGN, true, "saved: number 126", ""},
    {ARM, BYTES(0x2C), UNWIND_SIGNED_WITH_PC, true, "PC of an instruction", ""},
    {ARM, BYTES(0x05, 80, 2), UNWIND_REGISTER_FOREIGN, true, "saved: v16", ""},
    {X86, BYTES(0x07, 16), UNWIND_NO_CALLER, false, "outermost", ""},
    {X86, BYTES(0x0F, 1, 0x50), UNWIND_CFA_EXPRESSION, false, "DWARF expression", ""},
    {X86, BYTES(0x0C, 10, 0), UNWIND_CFA_REGISTER, false, "calls do not keep: r10", ""},
    {X86, BYTES(0x0E, 0x80, 0x80, 0x80, 0x80, 8), UNWIND_CFA_OFFSET, false, "2 GiB", ""},
    {X86, BYTES(0x87, 2), UNWIND_STACK_POINTER, false, "stack pointer", ""},
    {X86, BYTES(0x08, 16), UNWIND_RETURN_RULE, false, "return address", ""},
    {X86, BYTES(0x16, 16, 1, 0x50), UNWIND_RETURN_RULE, false, "return address", ""},
    {X86, BYTES(0x11, 16, 0x80, 0x80, 0x7D), UNWIND_RETURN_RULE, false, "near the CFA", ""},
    {PPC, BYTES(0x09, 65, 0), UNWIND_RETURN_RULE, false, "return address", ""},
    {X86, BYTES(0x1D), UNWIND_OPCODE, false, "not known: 29", ""},
    {X86, BYTES(0x2D), UNWIND_OPCODE, false, "not known: 45", ""},
    {X86, BYTES(10, 10, 10, 10, 10, 10, 10, 10, 10), UNWIND_NESTING, false, "be held: 8", ""},
    {X86, BYTES(0x07, 0x80, 0x80, 4), UNWIND_NUMBER, false, "16 bits", ""},
    {X86, BYTES(0), UNWIND_LETTER, false, "not known: 'X'", "X"},
    /* a reason why a frame cannot be left takes precedence over others, and the first of a kind
     * over later ones */
    {X86, BYTES(0x07, 3, 0x07, 16), UNWIND_NO_CALLER, false, "outermost", ""},
    {X86, BYTES(0x07, 6, 0x16, 3, 0), UNWIND_REGISTER_EXPRESSION, true, "rbx", ""},
};
enum { BAD_COUNT = sizeof bad_rows / sizeof *bad_rows };

START_TEST(rows_that_cannot_be_used_say_why)
{
    enum cairn_architecture architecture = bad_rows[_i].architecture;
    put_function(architecture, bad_rows[_i].letters, bad_rows[_i].bytes, bad_rows[_i].size);
    build(architecture);
    const struct unwind_row *row = unwind_find_exact(table, FUNCTION_ADDRESS);
    ck_assert_int_eq(row->problem, bad_rows[_i].problem);
    ck_assert_int_eq(unwind_can_leave(row), bad_rows[_i].can_leave);
    if (row->problem == UNWIND_FINE)
        return;
    struct cairn_error error = {0};
    ck_assert_int_eq(unwind_explain(row, arch_find(architecture), FUNCTION_ADDRESS, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, bad_rows[_i].what) != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "at 0x10000, ") != NULL, "%s", error.message);
}
END_TEST

START_TEST(common_information_without_rules_has_no_cfa)
{
    struct sample_common common = commons[X86];
    common.instruction_size = 0;
    frame_put_function(&section, frame_put_common(&section, &common), FUNCTION_ADDRESS, 1, NULL, 0);
    build(X86);
    ck_assert_int_eq(unwind_find_exact(table, FUNCTION_ADDRESS)->problem, UNWIND_CFA_UNKNOWN);
}
END_TEST

START_TEST(other_return_columns_are_refused)
{
    struct sample_common common = commons[PPC];
    common.return_register = 67;
    frame_put_function(&section, frame_put_common(&section, &common), FUNCTION_ADDRESS, 1, NULL, 0);
    build(PPC);
    const struct unwind_row *row = unwind_find_exact(table, FUNCTION_ADDRESS);
    ck_assert_int_eq(row->problem, UNWIND_RETURN_COLUMN);
    ck_assert_int_eq(row->detail, 67);
}
END_TEST

START_TEST(rules_before_an_unknown_opcode_can_be_used)
{
    const uint8_t bytes[] = {0x41, 0x0E, 16, 0x42, 0x3F};
    put_function(X86, "", bytes, sizeof bytes);
    build(X86);
    ck_assert_int_eq(unwind_find_exact(table, FUNCTION_ADDRESS)->cfa_offset, 8);
    ck_assert_int_eq(unwind_find_exact(table, FUNCTION_ADDRESS + 2)->cfa_offset, 16);
    ck_assert_int_eq(unwind_find_exact(table, FUNCTION_ADDRESS + 3)->problem, UNWIND_OPCODE);
    ck_assert_int_eq(unwind_find_exact(table, FUNCTION_ADDRESS + 63)->problem, UNWIND_OPCODE);
    ck_assert_int_eq(unwind_find_exact(table, FUNCTION_ADDRESS + 64)->problem, UNWIND_NO_RULES);
}
END_TEST

/* ---- Applying rows ---- */

START_TEST(rows_lead_to_the_callers_registers)
{
    /* rbp is on the stack, rbx in r12, and r12 on the stack: copies read the old values. */
    const uint8_t bytes[] = {0x0C, 6, 16, 0x86, 2, 0x09, 3, 12, 0x8C, 3};
    put_function(X86, "", bytes, sizeof bytes);
    build(X86);
    const uint64_t stack[] = {3, 2, 1};
    uint64_t slots[] = {[ARCH_UNWIND_STACK_POINTER] = 7,
                        [ARCH_UNWIND_RETURN_ADDRESS] = 16,
                        33,
                        (uintptr_t)&stack[1],
                        1212,
                        1313,
                        1414,
                        1515};
    const struct unwind_row *row = unwind_find_exact(table, FUNCTION_ADDRESS);
    uint64_t cfa = unwind_cfa(row, slots);
    ck_assert_uint_eq(cfa, (uintptr_t)&stack[3]);
    unwind_apply(row, cfa, slots);
    const uint64_t expected[] = {cfa, 1, 1212, 2, 3, 1313, 1414, 1515};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_uint_eq(slots[i], expected[i]);
}
END_TEST

/* ---- Finding rows ---- */

static void assert_offset(uint64_t pc, int32_t cfa_offset)
{
    const struct unwind_row *row = unwind_find_exact(table, pc);
    ck_assert_int_eq(row->problem, UNWIND_FINE);
    ck_assert_int_eq(row->cfa_offset, cfa_offset);
}

static void assert_no_rules(uint64_t pc)
{
    const struct unwind_row *row = unwind_find_exact(table, pc);
    struct cairn_error error = {0};
    ck_assert_int_eq(row->problem, UNWIND_NO_RULES);
    ck_assert(!unwind_can_leave(row));
    ck_assert_int_eq(unwind_explain(row, arch_find(X86), pc, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(error.message, "attribute uwtable") != NULL, "%s", error.message);
}

/* Writes a function whose CFA has this offset from its second byte on. */
static void put_with_offset(size_t common, uint64_t address, uint64_t size, uint8_t offset)
{
    const uint8_t bytes[] = {0x41, 0x0E, offset};
    frame_put_function(&section, common, address, size, bytes, sizeof bytes);
}

START_TEST(code_without_rules_says_so)
{
    size_t common = frame_put_common(&section, &commons[X86]);
    put_with_offset(common, 0x5000, 0x10, 16);
    put_with_offset(common, 0x5020, 0x10, 24);
    build(X86);
    assert_no_rules(0);
    assert_no_rules(0x4FFF);
    assert_offset(0x5000, 8);
    assert_offset(0x500F, 16);
    assert_no_rules(0x5010);
    assert_no_rules(0x501F);
    assert_offset(0x5020, 8);
    assert_offset(0x502F, 24);
    assert_no_rules(0x5030);
    assert_no_rules(UINT64_MAX);
}
END_TEST

START_TEST(return_addresses_belong_to_the_call_before_them)
{
    size_t common = frame_put_common(&section, &commons[X86]);
    put_with_offset(common, 0x5000, 0x10, 16);
    put_with_offset(common, 0x5010, 0x10, 24);
    build(X86);
    assert_offset(0x5010, 8);
    ck_assert_int_eq(unwind_find_return(table, 0x5010)->cfa_offset, 16);
    ck_assert_int_eq(unwind_find_return(table, 0x5020)->cfa_offset, 24);
    ck_assert_int_eq(unwind_find_return(table, 0x5000)->problem, UNWIND_NO_RULES);
}
END_TEST

START_TEST(functions_are_found_in_any_order)
{
    size_t common = frame_put_common(&section, &commons[X86]);
    put_with_offset(common, 0x9000, 0x10, 32);
    put_with_offset(common, 0x5000, 0x10, 16);
    put_with_offset(common, 0x7000, 0, 99);
    put_with_offset(common, 0x5010, 0x10, 24);
    build(X86);
    assert_offset(0x5001, 16);
    assert_offset(0x5011, 24);
    assert_offset(0x9001, 32);
    assert_no_rules(0x7000);
}
END_TEST

START_TEST(where_descriptions_overlap_the_later_one_holds)
{
    size_t common = frame_put_common(&section, &commons[X86]);
    put_with_offset(common, 0x5000, 0x100, 16);
    put_with_offset(common, 0x5010, 0x10, 24);
    put_with_offset(common, 0x5010, 0x20, 32);
    build(X86);
    assert_offset(0x500F, 16);
    assert_offset(0x5011, 32);
    assert_offset(0x502F, 32);
    assert_no_rules(0x5030);
}
END_TEST

/* So many rows are in one bucket of the directory that the bucket is searched. */
START_TEST(adjacent_rows_are_found)
{
    enum { ROWS = 200 };
    struct instructions program = {0};
    for (unsigned i = 1; i < ROWS; i++) {
        instruct(&program, 0x41);
        instruct(&program, 0x0E);
        instruct_uleb128(&program, 8 + i);
    }
    size_t common = frame_put_common(&section, &commons[X86]);
    frame_put_function(&section, common, 0x5000, ROWS, program.bytes, program.size);
    put_with_offset(common, 0x5000 + (64 << 20), 0x10, 16);
    build(X86);
    ck_assert_uint_gt(UINT32_C(1) << table->bucket_shift, ROWS);
    for (unsigned i = 0; i < ROWS; i++)
        assert_offset(0x5000 + i, (int32_t)(8 + i));
    assert_no_rules(0x5000 + ROWS);
}
END_TEST

START_TEST(same_rows_are_there_once)
{
    enum { FUNCTIONS = 1000 };
    size_t common = frame_put_common(&section, &commons[X86]);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        put_with_offset(common, 0x5000 + i * 0x20, 0x20, 16);
    build(X86);
    struct unwind_size size = unwind_size(table);
    ck_assert_uint_eq(size.entries, 2 * FUNCTIONS + 1);
    ck_assert_uint_eq(size.rows, 3);
    ck_assert_uint_lt(size.bytes, FUNCTIONS * 20 + 512);
}
END_TEST

START_TEST(no_functions_and_no_architecture_make_no_table)
{
    build(X86);
    ck_assert_ptr_null(table);
    put_with_offset(frame_put_common(&section, &commons[X86]), 0x5000, 1, 1);
    build(CAIRN_ARCHITECTURE_SYSTEMZ);
    ck_assert_ptr_null(table);
    assert_no_rules(0x5000);
    ck_assert_uint_eq(unwind_size(table).bytes, 0);
}
END_TEST

START_TEST(functions_four_gigabytes_apart_are_out_of_range)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct cairn_error error = {0};
    size_t common = frame_put_common(&section, &commons[X86]);
    put_with_offset(common, 0x5000, 0x10, 16);
    put_with_offset(common, UINT64_C(0x100004FF0), 0x10, 16);
    ck_assert_int_eq(create(arch_find(X86), &allocator, &table, &error), CAIRN_ERROR_RANGE);
    ck_assert_msg(strstr(error.message, "0x100005000") != NULL, "%s", error.message);
    section.size = 0;
    common = frame_put_common(&section, &commons[X86]);
    put_with_offset(common, 0x5000, 0x10, 16);
    put_with_offset(common, UINT64_C(0x100004FF0), 0xF, 16);
    build(X86);
    assert_offset(UINT64_C(0x100004FFE), 16);
    assert_no_rules(UINT64_C(0x100004FFF));
}
END_TEST

START_TEST(corrupt_instructions_are_an_error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    const uint8_t bytes[] = {0x0B};
    put_function(X86, "", bytes, sizeof bytes);
    ck_assert_int_eq(create(arch_find(X86), &allocator, &table, NULL), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_null(table);
}
END_TEST

/* ---- Random tables ---- */

enum { RANDOM_FUNCTIONS = 300 };

/* Writes a program of advances, CFA changes, saves and restores. */
static void put_random_function(size_t common, uint64_t address, uint32_t size, uint64_t *random)
{
    struct instructions program = {0};
    uint32_t left = size;
    uint32_t steps = sample_random(random, 12);
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t delta = sample_random(random, 40);
        delta = delta < left ? delta : left;
        left -= delta;
        instruct(&program, (uint8_t)(0x40 | delta));
        instruct(&program, 0x0E);
        instruct_uleb128(&program, 8 + 8 * sample_random(random, 6));
        instruct(&program, (uint8_t)(0x80 | (12 + sample_random(random, 4))));
        instruct_uleb128(&program, 2 + sample_random(random, 3));
        if (sample_random(random, 4) == 0)
            instruct(&program, (uint8_t)(0xC0 | (12 + sample_random(random, 4))));
    }
    frame_put_function(&section, common, address, size, program.bytes, program.size);
}

/* Finds the rule by running the instructions of every function, without the table, its directory
 * and its shared rows. */
static void find_plainly(const struct function_list *list, uint64_t pc, struct unwind_draft *draft)
{
    static struct call_frame call_frame;
    static struct call_frame_row row;
    struct unwind_numbering numbering;
    unwind_numbering_create(arch_find(X86), &numbering);
    unwind_draft_problem(UNWIND_NO_RULES, 0, draft);
    for (size_t i = 0; i < list->count; i++) {
        struct eh_frame_description description = {0};
        struct eh_frame_function function = list->entries[i].function;
        size_t offset = list->entries[i].offset;
        bool found;
        if (pc - function.address >= function.size)
            continue;
        ck_assert_ok(eh_frame_next(list->tables, &offset, &description, &found, NULL));
        call_frame_begin(&call_frame, list->tables, &description, false);
        do
            ck_assert_ok(call_frame_next(&call_frame, &row, &found, NULL));
        while (found && pc >= row.end);
        unwind_draft_row(&numbering, &description.common, &row, draft);
    }
}

static void assert_same(uint64_t pc, const struct unwind_draft *draft)
{
    const struct unwind_row *row = unwind_find_exact(table, pc);
    size_t bytes = unwind_row_bytes(row);
    expect(bytes == unwind_row_bytes(&draft->row));
    expect(memcmp(row, draft, bytes) == 0);
}

START_TEST(every_pc_of_random_tables_has_its_row)
{
    uint64_t random = sample_seed();
    size_t common = frame_put_common(&section, &commons[X86]);
    uint64_t base = UINT64_C(0x7F0000000000);
    uint64_t address = base;
    for (unsigned i = 0; i < RANDOM_FUNCTIONS; i++) {
        uint32_t size = sample_random(&random, 200);
        put_random_function(common, address, size, &random);
        address += size;
        if (sample_random(&random, 3) == 0)
            address += sample_random(&random, 100);
        if (sample_random(&random, 50) == 0)
            address += sample_random(&random, 5000);
    }
    build(X86);
    struct eh_frame frame = frame_view(&section);
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct function_list list;
    ck_assert_ok(function_list_read(&frame, 1, &allocator, &list, NULL));
    for (uint64_t pc = base - 10; pc < address + 10; pc++) {
        struct unwind_draft draft;
        find_plainly(&list, pc, &draft);
        assert_same(pc, &draft);
    }
    function_list_release(&list);
}
END_TEST

START_TEST(lack_of_memory_is_reported_at_every_allocation)
{
    uint64_t random = 1;
    size_t common = frame_put_common(&section, &commons[X86]);
    for (unsigned i = 0; i < RANDOM_FUNCTIONS; i++)
        put_random_function(common, 0x5000 + i * 0x100, 0x100, &random);
    struct counting_allocator counter = {0};
    struct cairn_allocator allocator = counting(&counter);
    ck_assert_ok(create(arch_find(X86), &allocator, &table, NULL));
    size_t calls = counter.calls;
    ck_assert_uint_gt(calls, 8);
    for (size_t i = 1; i <= calls; i++) {
        struct counting_allocator failing = {.fail_at = i};
        struct cairn_error error = {0};
        struct unwind *none = NULL;
        allocator = counting(&failing);
        ck_assert_int_eq(create(arch_find(X86), &allocator, &none, &error), CAIRN_ERROR_MEMORY);
        ck_assert_ptr_null(none);
        ck_assert_uint_eq(failing.blocks, 0);
    }
    unwind_destroy(table);
    table = NULL;
    ck_assert_uint_eq(counter.blocks, 0);
}
END_TEST

/* ---- This program's own stack ---- */

/* Frames of several sizes, which use registers, are the callers of the function that walks. */
static __attribute__((noinline)) uint64_t descend(unsigned depth, uint64_t a, uint64_t b,
                                                  size_t (*look)(void))
{
    volatile uint8_t room[8 * 20];
    room[0] = (uint8_t)a;
    if (depth == 0)
        return look() + room[0];
    uint64_t c = descend(depth - 1, a * 3 + b, b ^ a, look);
    uint64_t d = descend(0, c + b, a, look);
    return a + b * c + d;
}

static size_t compare_walks(void)
{
    static struct process_frame expected[PROCESS_FRAMES_MAX];
    struct process_tables *tables = process_tables_create();
    size_t count = process_frames_reference(expected);
    struct process_frame frame = expected[0];
    for (size_t i = 1; i < count; i++) {
        process_frame_step(tables, &frame);
        process_frame_assert_same(&frame, &expected[i]);
    }
    process_tables_destroy(tables);
    ck_assert_uint_gt(count, 5);
    return count;
}

START_TEST(own_stack_is_walked_as_the_system_walks_it)
{
    if (arch_host() == NULL)
        return;
    ck_assert_uint_ne(descend(6, (uint64_t)(uintptr_t)&table, 5, compare_walks), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unwind rules");
    TCase *rows = tcase_create("rows");
    tcase_add_checked_fixture(rows, set_up, tear_down);
    tcase_add_loop_test(rows, rows_hold_what_a_walker_needs, 0, GOOD_COUNT);
    tcase_add_loop_test(rows, rows_that_cannot_be_used_say_why, 0, BAD_COUNT);
    tcase_add_test(rows, common_information_without_rules_has_no_cfa);
    tcase_add_test(rows, other_return_columns_are_refused);
    tcase_add_test(rows, rules_before_an_unknown_opcode_can_be_used);
    tcase_add_test(rows, rows_lead_to_the_callers_registers);
    suite_add_tcase(suite, rows);
    TCase *finding = tcase_create("finding");
    tcase_add_checked_fixture(finding, set_up, tear_down);
    tcase_add_test(finding, code_without_rules_says_so);
    tcase_add_test(finding, return_addresses_belong_to_the_call_before_them);
    tcase_add_test(finding, functions_are_found_in_any_order);
    tcase_add_test(finding, where_descriptions_overlap_the_later_one_holds);
    tcase_add_test(finding, adjacent_rows_are_found);
    tcase_add_test(finding, same_rows_are_there_once);
    tcase_add_test(finding, no_functions_and_no_architecture_make_no_table);
    tcase_add_test(finding, functions_four_gigabytes_apart_are_out_of_range);
    tcase_add_test(finding, corrupt_instructions_are_an_error);
    tcase_add_test(finding, every_pc_of_random_tables_has_its_row);
    tcase_add_test(finding, lack_of_memory_is_reported_at_every_allocation);
    suite_add_tcase(suite, finding);
    TCase *walking = tcase_create("walking");
    tcase_add_checked_fixture(walking, set_up, tear_down);
    tcase_add_test(walking, own_stack_is_walked_as_the_system_walks_it);
    suite_add_tcase(suite, walking);
    return run_suite(suite);
}
