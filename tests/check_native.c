/*
 * Tests of frames of native code: the sorted table that linkers write, DWARF expressions, and this
 * program's own stack, walked in parallel with the system's unwinder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "frame/dwarf_expression.h"
#include "tests/context_support.h"
#include "tests/process_frames.h"
#include "tests/stackmap_support.h"
#include "unwind/eh_frame.h"

#include <cairn/runtime.h>
#include <cairn/walk.h>
#include <stdlib.h>
#include <string.h>

/* ---- The sorted table ---- */

#define HEADER_ADDRESS UINT64_C(0x7000000000)

static struct sample_section header;

static void begin_header(void)
{
    header = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN};
}

static void end_header(void) { section_free(&header); }

/* Writes a table of functions at 0x1000, 0x1100, and so on after the header, with their entries at
 * 0x9000, 0x9020. */
static void put_header(uint32_t count)
{
    static const uint8_t head[] = {1, 0x1B, 0x03, 0x3B};
    for (size_t i = 0; i < sizeof head; i++)
        section_put(&header, head[i], 1);
    section_put(&header, 0x8FFC, 4); /* relative to the field's own address */
    section_put(&header, count, 4);
    for (uint32_t i = 0; i < count; i++) {
        section_put(&header, 0x1000 + UINT64_C(0x100) * i, 4);
        section_put(&header, 0x9000 + UINT64_C(0x20) * i, 4);
    }
}

static enum cairn_status find_in_header(size_t size, uint64_t pc, struct eh_frame_place *place,
                                        bool *found)
{
    struct eh_frame view = {section_view(&header), HEADER_ADDRESS};
    view.section.size = size;
    return eh_frame_header_find(&view, pc, place, found, NULL);
}

START_TEST(the_entry_of_the_last_function_that_begins_before_is_found)
{
    bool found;
    struct eh_frame_place place;
    for (uint32_t count = 0; count < 20; count++) {
        begin_header();
        put_header(count);
        ck_assert_ok(find_in_header(header.size, HEADER_ADDRESS + 0xFFF, &place, &found));
        ck_assert(!found);
        for (uint32_t i = 0; i < 0x100 * count; i += 0x55) {
            ck_assert_ok(find_in_header(header.size, HEADER_ADDRESS + 0x1000 + i, &place, &found));
            ck_assert(found);
            ck_assert_uint_eq(place.section, HEADER_ADDRESS + 0x9000);
            ck_assert_uint_eq(place.entry, HEADER_ADDRESS + 0x9000 + 0x20 * (i / 0x100));
        }
        end_header();
    }
}
END_TEST

START_TEST(a_sorted_table_that_is_cut_off_is_refused_at_every_length)
{
    bool found;
    struct eh_frame_place place;
    begin_header();
    put_header(3);
    for (size_t size = 0; size < header.size; size++)
        ck_assert_int_eq(find_in_header(size, HEADER_ADDRESS + 0x1000, &place, &found),
                         CAIRN_ERROR_TRUNCATED);
    end_header();
}
END_TEST

static const struct {
    size_t byte;
    uint8_t value;
    enum cairn_status status;
} wrong_heads[] = {
    {0, 2, CAIRN_ERROR_VERSION},        {1, 0xFF, CAIRN_ERROR_UNSUPPORTED},
    {2, 0xFF, CAIRN_ERROR_UNSUPPORTED}, {3, 0xFF, CAIRN_ERROR_UNSUPPORTED},
    {3, 0x1B, CAIRN_ERROR_UNSUPPORTED},
};

START_TEST(a_sorted_table_of_another_kind_is_refused)
{
    bool found;
    struct eh_frame_place place;
    begin_header();
    put_header(3);
    header.bytes[wrong_heads[_i].byte] = wrong_heads[_i].value;
    ck_assert_int_eq(find_in_header(header.size, HEADER_ADDRESS + 0x1000, &place, &found),
                     wrong_heads[_i].status);
    ck_assert(!found);
    end_header();
}
END_TEST

/* ---- Expressions ---- */

static cairn_runtime *runtime;
static uint64_t memory[4] = {0x1111, 0x2222, 0x3333, 0x4444};

static void set_up(void) { ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL)); }

static void tear_down(void) { cairn_runtime_destroy(runtime); }

/* DWARF operations. In an opcode from 0x70 on (a register), the stack pointer's number is added;
 * the stack pointer points to `memory`. */
static const struct {
    uint8_t bytes[24];
    uint8_t size;
    uint64_t value; /* relative to `memory` if `is_address` */
    bool is_address;
} expressions[] = {
    {{0x35}, 1, 5, false},                              /* lit5 */
    {{0x08, 200}, 2, 200, false},                       /* const1u */
    {{0x09, 200}, 2, UINT64_C(-56), false},             /* const1s */
    {{0x10, 0x80, 0x01}, 3, 128, false},                /* constu */
    {{0x11, 0x7F}, 2, UINT64_MAX, false},               /* consts */
    {{0x70, 0x08}, 2, 8, true},                         /* breg 8 */
    {{0x70, 0x08, 0x06}, 3, 0x2222, false},             /* breg 8; deref */
    {{0x70, 0x08, 0x23, 0x08, 0x06}, 5, 0x3333, false}, /* …; plus_uconst 8; deref */
    {{0x37, 0x33, 0x1C}, 3, 4, false},                  /* lit7; lit3; minus */
    {{0x37, 0x33, 0x16, 0x1C}, 4, UINT64_C(-4), false}, /* …; swap; minus */
    {{0x37, 0x12, 0x22}, 3, 14, false},                 /* lit7; dup; plus */
    {{0x37, 0x33, 0x13}, 3, 7, false},                  /* lit7; lit3; drop */
    {{0x36, 0x33, 0x1A}, 3, 2, false},                  /* and */
    {{0x36, 0x33, 0x21}, 3, 7, false},                  /* or */
    {{0x36, 0x33, 0x24}, 3, 48, false},                 /* shl */
    {{0x36, 0x31, 0x25}, 3, 3, false},                  /* shr */
    {{0x36, 0x08, 64, 0x24}, 4, 0, false},              /* shl by 64 */
    {{0x36, 0x36, 0x29}, 3, 1, false},                  /* eq */
    {{0x36, 0x36, 0x2A}, 3, 1, false},                  /* ge */
    {{0x36, 0x36, 0x2B}, 3, 0, false},                  /* gt */
    {{0x11, 0x7F, 0x30, 0x2C}, 4, 1, false},            /* -1 le 0 */
    {{0x11, 0x7F, 0x30, 0x2D}, 4, 1, false},            /* -1 lt 0 */
    {{0x36, 0x36, 0x2E}, 3, 0, false},                  /* ne */
    {{0x96, 0x31}, 2, 1, false},                        /* nop */
    {{0x70, 0x08, 0x3F, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22}, 10, 16, true}, /* as in a PLT */
};

static enum cairn_status evaluate(const uint8_t *bytes, uint8_t size, uint8_t cut, uint64_t *value)
{
    static struct cairn_context context;
    uint8_t section[64] = {size};
    struct cairn_frame frame;
    memset(&context, 0, sizeof context);
    write_register(&context, CAIRN_REGISTER_SP, (uintptr_t)memory);
    write_register(&context, CAIRN_REGISTER_PC, 0x1000);
    memcpy(section + 1, bytes, size);
    for (size_t i = 1; i <= size; i++)
        if (section[i] == 0x70)
            section[i] = (uint8_t)(section[i] + arch_host_layout.stack_pointer);
    const struct eh_frame view = {{section, (size_t)size + 1 - cut, CAIRN_BYTE_ORDER_NATIVE}, 0};
    ck_assert_ok(cairn_frame_from_context(runtime, &context, true, &frame, NULL));
    return expression_evaluate(&frame, &view, 0, NULL, value, NULL);
}

START_TEST(an_expression_has_its_value)
{
    uint64_t value = 0;
    ck_assert_ok(evaluate(expressions[_i].bytes, expressions[_i].size, 0, &value));
    if (expressions[_i].is_address)
        value -= (uintptr_t)memory;
    ck_assert_uint_eq(value, expressions[_i].value);
    ck_assert_int_eq(evaluate(expressions[_i].bytes, expressions[_i].size, 1, &value),
                     CAIRN_ERROR_CORRUPT);
}
END_TEST

static const struct {
    uint8_t bytes[24];
    uint8_t size;
    enum cairn_status status;
} wrong_expressions[] = {
    {{0}, 0, CAIRN_ERROR_CORRUPT},          /* no value */
    {{0x22}, 1, CAIRN_ERROR_CORRUPT},       /* plus, with an empty stack */
    {{0x31, 0x22}, 2, CAIRN_ERROR_CORRUPT}, /* plus, with one value */
    {{0x30, 0x06}, 2, CAIRN_ERROR_CORRUPT}, /* deref of 0 */
    {{0x08}, 1, CAIRN_ERROR_CORRUPT},       /* const1u without its operand */
    {{0x2F, 0xFD, 0xFF},
     3,
     CAIRN_ERROR_UNSUPPORTED}, /* skip: expressions with it might not terminate */
    {{0xE0}, 1, CAIRN_ERROR_UNSUPPORTED},
    {{0x92, 0xE7, 0x07, 0}, 4, CAIRN_ERROR_NOT_FOUND},         /* register 999 */
    {{0x92, 0x80, 0x80, 0x04, 0}, 5, CAIRN_ERROR_UNSUPPORTED}, /* register 65536 */
    {{0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31,
      0x31, 0x31},
     17,
     CAIRN_ERROR_CORRUPT}, /* more than the stack holds */
};

START_TEST(an_expression_that_cannot_be_evaluated_is_refused)
{
    uint64_t value = 77;
    ck_assert_int_eq(evaluate(wrong_expressions[_i].bytes, wrong_expressions[_i].size, 0, &value),
                     wrong_expressions[_i].status);
}
END_TEST

/* ---- This program's stack ---- */

static unsigned frames_compared;

/* At the last frames, the system's unwinder ends because it has no more rules. */
static void compare(struct cairn_frame frame, const struct process_frame *expected, size_t count)
{
    struct cairn_error error = {0};
    for (size_t i = 1; i < count; i++) {
        enum cairn_status status = cairn_frame_caller(&frame, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
        ck_assert_uint_eq(frame.pc, expected[i].pc);
        ck_assert_uint_eq(frame.sp, expected[i].slots[ARCH_UNWIND_STACK_POINTER]);
        frames_compared++;
    }
}

static __attribute__((noinline)) void walk(void)
{
    static struct process_frame expected[PROCESS_FRAMES_MAX];
    struct cairn_context context;
    struct cairn_frame frame;
    ck_assert_int_eq(cairn_context_save(&context), 0);
    size_t count = process_frames_reference(expected);
    ck_assert_ok(cairn_frame_from_context(runtime, &context, true, &frame, NULL));
    compare(frame, expected, count);
}

/* The CFA of these frames is not a register plus an offset, because the frame is realigned and has
 * memory of a size known only at run time. */
static __attribute__((noinline)) void walk_from_realigned(size_t size)
{
    volatile char fixed __attribute__((aligned(256))) = 1;
    volatile char *memory_of_size = __builtin_alloca(size);
    memory_of_size[0] = fixed;
    walk();
    memory_of_size[size - 1] = fixed;
}

static int compare_and_walk(const void *left, const void *right)
{
    walk();
    return *(const int *)left - *(const int *)right;
}

START_TEST(native_frames_are_those_of_the_systems_unwinder)
{
    int numbers[] = {3, 1, 2};
    frames_compared = 0;
    walk();
    for (size_t size = 1; size < 5000; size += 999)
        walk_from_realigned(size);
    qsort(numbers, 3, sizeof *numbers, compare_and_walk);
    ck_assert_uint_gt(frames_compared, 30);
}
END_TEST

START_TEST(a_walk_without_compiled_frames_ends_after_the_outermost_one)
{
    struct cairn_context context;
    struct cairn_frame frame;
    struct cairn_walk all;
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_context_save(&context), 0);
    ck_assert_ok(cairn_frame_from_context(runtime, &context, true, &frame, NULL));
    cairn_walk_begin(&all, &frame);
    all.foreign = cairn_walk_native;
    enum cairn_status status = cairn_walk_next(&all, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert(all.has_ended);
    ck_assert_uint_eq(all.frame.pc, 0);
}
END_TEST

START_TEST(no_step_leads_past_the_outermost_frame)
{
    struct cairn_context context;
    struct cairn_frame frame;
    ck_assert_int_eq(cairn_context_save(&context), 0);
    ck_assert_ok(cairn_frame_from_context(runtime, &context, true, &frame, NULL));
    while (frame.pc != 0)
        ck_assert_ok(cairn_frame_caller(&frame, NULL));
    ck_assert_int_eq(cairn_frame_caller(&frame, NULL), CAIRN_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_part_of_the_program_counter_or_of_the_stack_pointer_can_be_read)
{
    static const uint16_t numbers[] = {CAIRN_REGISTER_PC, CAIRN_REGISTER_SP};
    struct cairn_context context;
    struct cairn_frame frame;
    ck_assert_int_eq(cairn_context_save(&context), 0);
    ck_assert_ok(cairn_frame_from_context(runtime, &context, true, &frame, NULL));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t expected[2] = {0};
        uint64_t part[2] = {0};
        for (size_t size = 1; size <= sizeof *part; size++) {
            ck_assert_ok(cairn_context_read(&context, numbers[i], expected, size, NULL));
            ck_assert_ok(cairn_frame_read(&frame, numbers[i], part, size, NULL));
            ck_assert_mem_eq(part, expected, sizeof part);
        }
        ck_assert_int_eq(cairn_frame_read(&frame, numbers[i], part, 0, NULL), CAIRN_ERROR_RANGE);
        ck_assert_int_eq(cairn_frame_read(&frame, numbers[i], part, 9, NULL), CAIRN_ERROR_RANGE);
        ck_assert_mem_eq(part, expected, sizeof part);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("native frames");
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables, the_entry_of_the_last_function_that_begins_before_is_found);
    tcase_add_test(tables, a_sorted_table_that_is_cut_off_is_refused_at_every_length);
    tcase_add_loop_test(tables, a_sorted_table_of_another_kind_is_refused, 0,
                        (int)(sizeof wrong_heads / sizeof *wrong_heads));
    suite_add_tcase(suite, tables);
    TCase *frames = tcase_create("frames");
    tcase_add_checked_fixture(frames, set_up, tear_down);
    tcase_add_loop_test(frames, an_expression_has_its_value, 0,
                        (int)(sizeof expressions / sizeof *expressions));
    tcase_add_loop_test(frames, an_expression_that_cannot_be_evaluated_is_refused, 0,
                        (int)(sizeof wrong_expressions / sizeof *wrong_expressions));
    tcase_add_test(frames, native_frames_are_those_of_the_systems_unwinder);
    tcase_add_test(frames, a_walk_without_compiled_frames_ends_after_the_outermost_one);
    tcase_add_test(frames, no_step_leads_past_the_outermost_frame);
    tcase_add_test(frames, a_part_of_the_program_counter_or_of_the_stack_pointer_can_be_read);
    suite_add_tcase(suite, frames);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures != 0;
}
