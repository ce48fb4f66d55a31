/*
 * Tests of cairn_check_module: values and results for which there are no registers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_check_support.h"

#include <stdio.h>
#include <string.h>

/* ---- Registers ---- */

/* Numbers of values, at -O0 as live values and with anyregcc as arguments: the largest number that
 * compiles, and in `crash` the smallest that does not (if not given, the next number). */
static const struct {
    const char *triple;
    const char *type;
    unsigned fit;
    unsigned crash;
} register_rows[] = {
    {"x86_64-linux-gnu", "i64", 13, 14},
    {"x86_64-linux-gnu", "double", 16, 17},
    {"x86_64-linux-gnu", "<4 x i32>", 16, 17},
    {"aarch64-linux-gnu", "i64", 27, 28},
    {"aarch64-linux-gnu", "double", 32, 33},
    /* Without a frame pointer one more value fits, and as a live value yet another one. */
    {"powerpc64le-linux-gnu", "i64", 27, 29},
    {"powerpc64le-linux-gnu", "double", 64, 65},
    {"powerpc64-linux-gnu", "i64", 27, 29},
    {"powerpc64-linux-gnu", "double", 32, 33},
    {"s390x-linux-gnu", "i64", 11, 13},
    {"s390x-linux-gnu", "double", 16, 17},
    {"riscv64-linux-gnu", "i64", 27, 29},
};
enum { REGISTER_ROWS = sizeof register_rows / sizeof *register_rows };

START_TEST(values_without_registers_are_refused)
{
    const char *triple = register_rows[_i].triple;
    const char *type = register_rows[_i].type;
    unsigned fit = register_rows[_i].fit;
    unsigned crash = register_rows[_i].crash;
    struct judgement unoptimised = {.triple = triple};
    struct judgement at_level_2 = {.triple = triple, .optimisation_level = 2};
    if (!has_stackmaps(triple))
        return;
    assert_compiles(with_values(fit, false, type), &unoptimised);
    assert_says(with_values(fit + 1, false, type), &unoptimised, "registers", "-O1");
    assert_refused_rightly(with_values(crash, false, type), &unoptimised, "registers", "-O1");
    assert_compiles(with_values(crash, false, type), &at_level_2);
    assert_compiles(with_values(fit, true, type), &at_level_2);
    assert_says(with_values(fit + 1, true, type), &at_level_2, "anyregcc", "at most");
    assert_refused_rightly(with_values(crash, true, type), &at_level_2, "anyregcc", "at most");
}
END_TEST

static char *with_base_pointer(unsigned count)
{
    static char text[4096];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS "declare void @use(ptr)\n"
                                                        "define void @culprit(i64 %%n");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, ", i64 %%x%u", i);
    out += sprintf(out, ") {\n  %%big = alloca i8, align 64\n  %%dynamic = alloca i8, i64 %%n\n"
                        "  call void @use(ptr %%big)\n  call void @use(ptr %%dynamic)\n"
                        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, ", i64 %%x%u", i);
    sprintf(out, ")\n  ret void\n}\n");
    return text;
}

/* Builds a call in the C calling convention with `count` arguments and `live_count` other live
 * values. */
static char *with_arguments(unsigned count, const char *argument, unsigned live_count)
{
    static char text[8192];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS "define void @culprit(i64 %%a");
    for (unsigned i = 0; i < live_count; i++)
        out += sprintf(out, ", i64 %%x%u", i);
    out += sprintf(out,
                   ") {\n  call void (i64, i32, ptr, i32, ...) "
                   "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 %u",
                   count);
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, ", %s", argument);
    for (unsigned i = 0; i < live_count; i++)
        out += sprintf(out, ", i64 %%x%u", i);
    sprintf(out, ")\n  ret void\n}\n");
    return text;
}

START_TEST(arguments_take_separate_registers)
{
    static const char *const arguments[] = {"i64 %a", "i64 7", "i64 undef"};
    const char *argument = arguments[_i];
    assert_compiles(with_arguments(2, argument, 11), &level_0);
    assert_refused_rightly(with_arguments(2, argument, 12), &level_0, "registers", "-O1");
    assert_compiles(with_arguments(9, argument, 7), &level_0);
    assert_refused_rightly(with_arguments(9, argument, 8), &level_0, "registers", "-O1");
    assert_compiles(with_arguments(9, argument, 8), &optimised);
}
END_TEST

/* Builds distinct constants, or stack slots, as arguments of anyregcc. */
static char *with_arguments_in_any_registers(unsigned count, bool are_constant)
{
    static char text[8192];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS "define void @culprit() {\n");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, "  %%p%u = alloca i8\n", i);
    out += sprintf(out,
                   "  call anyregcc void (i64, i32, ptr, i32, ...) "
                   "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 %u",
                   count);
    for (unsigned i = 0; i < count; i++)
        out += are_constant ? sprintf(out, ", i64 %u", i) : sprintf(out, ", ptr %%p%u", i);
    sprintf(out, ")\n  ret void\n}\n");
    return text;
}

START_TEST(arguments_in_any_registers_count_whatever_they_are)
{
    for (unsigned level = 0; level <= 2; level += 2)
        for (int are_constant = 0; are_constant < 2; are_constant++) {
            struct judgement judgement = {.triple = "x86_64-linux-gnu",
                                          .optimisation_level = level};
            assert_compiles(with_arguments_in_any_registers(13, are_constant), &judgement);
            assert_refused_rightly(with_arguments_in_any_registers(14, are_constant), &judgement,
                                   "registers", "at most 13");
        }
}
END_TEST

START_TEST(bfloat_takes_a_general_register)
{
    struct judgement judgement = {.triple = "x86_64-linux-gnu"};
    if (!LLVM_SELECTS_LIVE_BFLOAT)
        return;
    assert_compiles(with_values(13, false, "bfloat"), &judgement);
    assert_refused_rightly(with_values(14, false, "bfloat"), &judgement, "registers", "-O1");
}
END_TEST

START_TEST(base_pointer_takes_a_register)
{
    assert_compiles(with_base_pointer(12), &x86_64);
    assert_refused_rightly(with_base_pointer(13), &x86_64, "registers", "at most 12");
    assert_compiles(with_base_pointer(26), &aarch64);
    assert_refused_rightly(with_base_pointer(27), &aarch64, "registers", "at most 26");
}
END_TEST

START_TEST(values_of_all_kinds_have_registers_of_their_own)
{
    static char text[8192];
    struct judgement judgement = {.triple = "x86_64-linux-gnu"};
    char values[2048];
    char *out = values;
    for (int i = 0; i < 29; i++)
        out += sprintf(out, "%s%s %%x%d", i == 0 ? "" : ", ", i < 13 ? "i64" : "double", i);
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS "define void @culprit(%s) {\n"
                                "  call void (i64, i32, ...) "
                                "@llvm.experimental.stackmap(i64 1, i32 0, %s)\n"
                                "  ret void\n}\n",
             values, values);
    assert_compiles(text, &judgement);
}
END_TEST

START_TEST(values_that_need_no_register_are_not_counted)
{
    static char text[8192];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS "define void @culprit(i64 %%x) {\n");
    for (int i = 0; i < 20; i++)
        out += sprintf(out, "  %%a%d = alloca i64\n", i);
    out += sprintf(out, "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0");
    for (int i = 0; i < 20; i++)
        out += sprintf(out, ", TYPE %%a%d, i64 %%x, i64 %d", i, i);
    sprintf(out, ")\n  ret void\n}\n");
    assert_compiles(with_pointer_type(text, "TYPE", "i64"), &usual);
}
END_TEST

/* Result types, as LLVM writes them in the names of intrinsics, for which anyregcc has no register.
 * '0': only at -O0; 'r': refused, but some compilations at -O0 do not crash. The columns are in the
 * order of `all_triples`. */
static const struct {
    const char *type;
    const char *suffix;
    const char *crashes;
} result_rows[] = {
    {"i1", "i1", "...0.."},
    {"i7", "i7", "..00.."},
    {"i8", "i8", "..00.."},
    {"i16", "i16", "..00.."},
    {"i32", "i32", "......"},
    {"i33", "i33", "..00.."},
    {"i64", "i64", "......"},
    {"i65", "i65", "xxxxxx"},
    {"i128", "i128", "xxxxxx"},
    {"ptr", "p0", "......"},
    {"half", "f16", LLVM_SELECTS_LIVE_HALF_ON_SYSTEMZ ? "..xx.x" : "..xxxx"},
    {"bfloat", "bf16", "x.xxxx"},
    {"x86_fp80", "f80", "rxxxxx"},
    {"<2 x i64>", "v2i64", "...xxx"},
    {"<8 x half>", "v8f16", "..xxxx"},
    {"<4 x i8>", "v4i8", "x.xxxx"},
};
enum {
    RESULT_ROWS = LLVM_PATCHPOINT_RETURNS_ANY_TYPE ? sizeof result_rows / sizeof *result_rows : 0
};

START_TEST(results_that_crash_in_any_register_are_refused_and_no_others)
{
    const char *type = result_rows[_i].type;
    bool is_integer = type[0] == 'i'; /* it crashes if nothing uses it */
    char text[512];
    snprintf(text, sizeof text,
             "declare %s @llvm.experimental.patchpoint.%s(i64, i32, ptr, i32, ...)\n"
             "define void @culprit(ptr %%p) {\n"
             "  %%r = call anyregcc %s (i64, i32, ptr, i32, ...) "
             "@llvm.experimental.patchpoint.%s(i64 0, i32 64, ptr null, i32 0)\n"
             "%s%s%s  ret void\n}\n",
             type, result_rows[_i].suffix, type, result_rows[_i].suffix,
             is_integer ? "" : "  store ", is_integer ? "" : type,
             is_integer ? "" : " %r, ptr %p\n");
    for (size_t i = 0; i < ALL_TRIPLES; i++)
        for (unsigned level = 0; level <= 2; level += 2) {
            struct judgement judgement = {.triple = all_triples[i], .optimisation_level = level};
            char crashes = result_rows[_i].crashes[i];
            if (crashes == 'r' && level == 0)
                assert_says(text, &judgement, type, "another calling convention");
            else if (crashes == 'x' || crashes == 'r' || (crashes == '0' && level == 0))
                assert_refused_rightly(text, &judgement, type, "another calling convention");
            else
                assert_compiles(text, &judgement);
        }
}
END_TEST

/* Builds a stack map of `count` distinct constants. */
static char *with_constants(unsigned count, bool are_addresses)
{
    static char text[8192];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS);
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, "@g%u = global i8 0\n", i);
    out += sprintf(out, "define void @culprit() {\n  call void (i64, i32, ...) "
                        "@llvm.experimental.stackmap(i64 1, i32 0");
    for (unsigned i = 0; i < count; i++)
        out += are_addresses ? sprintf(out, ", ptr @g%u", i) : sprintf(out, ", double %u.5", i);
    sprintf(out, ")\n  ret void\n}\n");
    return text;
}

START_TEST(constants_that_are_loaded_need_registers_at_all_levels)
{
    for (unsigned level = 0; level <= 2; level++) {
        struct judgement judgement = {.triple = "x86_64-linux-gnu", .optimisation_level = level};
        assert_compiles(with_constants(13, true), &judgement);
        assert_refused_rightly(with_constants(14, true), &judgement, "registers", "at most 13");
        assert_compiles(with_constants(16, false), &judgement);
        assert_refused_rightly(with_constants(17, false), &judgement, "registers", "16 in vector");
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, values_without_registers_are_refused, 0, REGISTER_ROWS);
    tcase_add_loop_test(tests, arguments_take_separate_registers, 0, 3);
    tcase_add_test(tests, arguments_in_any_registers_count_whatever_they_are);
    tcase_add_test(tests, bfloat_takes_a_general_register);
    tcase_add_test(tests, base_pointer_takes_a_register);
    tcase_add_test(tests, values_of_all_kinds_have_registers_of_their_own);
    tcase_add_test(tests, values_that_need_no_register_are_not_counted);
    tcase_add_loop_test(tests, results_that_crash_in_any_register_are_refused_and_no_others, 0,
                        RESULT_ROWS);
    tcase_add_test(tests, constants_that_are_loaded_need_registers_at_all_levels);
}

int main(void) { return check_main("llvm check registers", add_tests); }
