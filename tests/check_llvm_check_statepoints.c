/*
 * Tests of cairn_check_module: statepoints, GC transitions, and calls with operand bundles.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_check_support.h"

#include <stdio.h>
#include <string.h>

/* ---- Statepoints ---- */

#define STATEPOINT                                                                                 \
    STATEPOINT_DECLARATION "declare void @callee()\n"                                              \
                           "define void @culprit() gc \"statepoint-example\" {\n"                  \
                           "  %t = " STATEPOINT_CALL "\n  ret void\n}\n"

START_TEST(statepoints_are_refused_where_llvm_cannot_select_them)
{
    struct judgement powerpc = {.triple = "powerpc64le-linux-gnu"};
    struct judgement systemz = {.triple = "s390x-linux-gnu"};
    assert_compiles(STATEPOINT, &x86_64);
    assert_compiles(STATEPOINT, &aarch64);
    assert_refused_rightly(STATEPOINT, &powerpc, "statepoints", "patch points");
    assert_refused_rightly(STATEPOINT, &systemz, "statepoints", "patch points");
}
END_TEST

static const char *with_deopt_value(const char *type)
{
    static char text[4096];
    snprintf(text, sizeof text,
             STATEPOINT_DECLARATION "declare void @callee()\n"
                                    "define void @culprit(%s %%x) gc \"statepoint-example\" {\n"
                                    "  %%t = " STATEPOINT_CALL " [\"deopt\"(%s %%x)]\n"
                                    "  ret void\n}\n",
             type, type);
    return text;
}

START_TEST(statepoints_store_what_registers_cannot_keep)
{
    static const char *const types[] = {"i1",         "i24",          "i65",       "i128",
                                        "i256",       "half",         "fp128",     "ppc_fp128",
                                        "<1 x i64>",  "<3 x i64>",    "<8 x i32>", "<4 x i1>",
                                        "<2 x half>", "{ i128, {} }", "[2 x i128]"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (unsigned k = 0; k < 4; k++) {
            struct judgement judgement = {.triple = all_triples[k % 2],
                                          .optimisation_level = k & 2};
            assert_compiles(with_deopt_value(types[i]), &judgement);
        }
}
END_TEST

START_TEST(statepoints_cannot_store_nothing)
{
    static const char *const types[] = {"{}", "[0 x i64]", "[2 x {}]", "{ [0 x i64], {} }"};
    assert_refused_rightly(with_deopt_value(types[_i]), &x86_64, "live value", "nothing");
    assert_refused_rightly(with_deopt_value(types[_i]), &aarch64, "live value", "nothing");
}
END_TEST

START_TEST(statepoints_store_no_types_of_other_machines)
{
    static const char *const x87[] = {"x86_fp80", "{ x86_fp80, i64 }", "<2 x x86_fp80>"};
    for (size_t i = 0; i < sizeof x87 / sizeof *x87; i++) {
        assert_compiles(with_deopt_value(x87[i]), &x86_64);
        assert_judged(LLVM_STORES_FOREIGN_FP80, with_deopt_value(x87[i]), &aarch64, "x86_fp80",
                      "pointer");
    }
    assert_refused_rightly(with_deopt_value("<vscale x 2 x i64>"), &x86_64, "vscale", "pointer");
    assert_judged(LLVM_STORES_BFLOAT, with_deopt_value("bfloat"), &x86_64, "bfloat", "pointer");
    assert_judged(LLVM_SELECTS_LIVE_BFLOAT, with_deopt_value("<4 x bfloat>"), &x86_64, "bfloat",
                  "pointer");
}
END_TEST

/* Results of a statepoint on x86-64: whether LLVM returns them in registers, and, if it does not,
 * whether it then crashes. Otherwise it emits a call of address 0. */
static const struct returned {
    const char *type;
    bool is_in_registers;
    bool crashes;
} returned[] = {
    {"void", true, false},
    {"i1", true, false},
    {"i192", true, false},
    {"i256", false, false},
    {"{ i64, i64, i64 }", true, false},
    {"{ i1, i1, i1, i1 }", false, true},
    {"{ i128, i128 }", false, true},
    {"[2 x double]", true, false},
    {"{ double, i64, float, i64, i64 }", true, false},
    {"[2 x fp128]", true, false},
    {"[3 x fp128]", false, true},
    {"<4 x i64>", true, false},
    {"<16 x float>", true, false},
    {"<32 x float>", false, false},
    {"[4 x <4 x i32>]", true, false},
    {"[5 x <4 x i32>]", false, true},
    {"<3 x i64>", true, false},
    {"<5 x i64>", false, false},
    {"<3 x float>", true, false},
    {"<6 x float>", false, false},
    {"<7 x i8>", false, false},
    {"<64 x i1>", false, false},
    {"x86_fp80", LLVM_RETURNS_X87_OF_STATEPOINTS, false},
    {"[2 x x86_fp80]", LLVM_RETURNS_X87_OF_STATEPOINTS, true},
};
enum { RETURNED = sizeof returned / sizeof *returned };

static const char *with_result(const char *type)
{
    static char text[1024];
    bool is_void = strcmp(type, "void") == 0;
    snprintf(text, sizeof text,
             "declare %s @callee()\n"
             "define %s @culprit() gc \"statepoint-example\" {\n"
             "  %scall %s @callee() [\"deopt\"(i32 1)]\n  ret %s%s\n}\n",
             type, type, is_void ? "" : "%r = ", type, type, is_void ? "" : " %r");
    return text;
}

START_TEST(statepoints_return_in_registers)
{
    const struct returned *result = &returned[_i];
    const char *text = with_result(result->type);
    for (unsigned i = 0; i < 2; i++) {
        const struct judgement *judgement = i == 0 ? &level_0 : &optimised;
        if (result->is_in_registers)
            assert_compiles(text, judgement);
        else
            assert_says(text, judgement, "in memory", "a pointer");
        if (!result->is_in_registers && result->crashes)
            assert_crashes(text, judgement);
    }
}
END_TEST

START_TEST(statepoints_of_other_architectures_have_other_registers_for_results)
{
    const struct judgement aarch64_at_level_2 = {.triple = "aarch64-linux-gnu",
                                                 .optimisation_level = 2};
    assert_compiles(with_result("[8 x i64]"), &aarch64_at_level_2);
    assert_says(with_result("[9 x i64]"), &aarch64_at_level_2, "in memory", "a pointer");
    if (!LLVM_HAS_RISCV_STACKMAPS)
        return;
    assert_compiles(with_result("[2 x i64]"), &riscv64);
    assert_says(with_result("[3 x i64]"), &riscv64, "in memory", "a pointer");
}
END_TEST

#if LLVM_HAS_OPAQUE_POINTERS
static const char *with_variable_argument(const char *type)
{
    static char text[1024];
    snprintf(text, sizeof text,
             STATEPOINT_DECLARATION
             "declare void @callee(i32, ...)\n"
             "define void @culprit(%s %%x) gc \"statepoint-example\" {\n"
             "  %%t = call token (i64, i32, ptr, i32, i32, ...) "
             "@llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void (i32, ...)) "
             "@callee, i32 2, i32 0, i32 1, %s %%x, i32 0, i32 0)\n"
             "  ret void\n}\n",
             type, type);
    return text;
}

START_TEST(statepoints_of_variadic_functions_pass_integers_only)
{
    static const char *const others[] = {"double", "<4 x float>", "x86_fp80"};
    assert_compiles(with_variable_argument("i64"), &x86_64);
    assert_compiles(with_variable_argument("ptr"), &x86_64);
    assert_compiles(with_variable_argument("double"), &aarch64);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_says(with_variable_argument(others[i]), &x86_64, "variadic", "calls it");
}
END_TEST
#endif

#if LLVM_PATCHPOINT_RETURNS_ANY_TYPE
static const char *patchpoint_with_result(const char *type, const char *signature)
{
    static char text[1024];
    snprintf(
        text, sizeof text,
        "declare %s @llvm.experimental.patchpoint.%s(i64, i32, ptr, i32, ...)\n"
        "define %s @culprit() {\n"
        "  %%r = call %s (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.%s(i64 1, i32 "
        "16, ptr null, i32 0)\n"
        "  ret %s %%r\n}\n",
        type, signature, type, type, signature, type);
    return text;
}

START_TEST(patch_points_return_in_one_register)
{
    static const char *const one[][2] = {
        {"i64", "i64"},           {"ptr", "p0"},     {"double", "f64"}, {"half", "f16"},
        {"<4 x float>", "v4f32"}, {"fp128", "f128"},
    };
    static const char *const several[][2] = {
        {"i128", "i128"},       {"i256", "i256"},         {"{ i64, i64 }", "sl_i64i64s"},
        {"[9 x i64]", "a9i64"}, {"<8 x float>", "v8f32"}, {"x86_fp80", "f80"},
    };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        assert_compiles(patchpoint_with_result(one[i][0], one[i][1]), &level_0);
        assert_compiles(patchpoint_with_result(one[i][0], one[i][1]), &optimised);
    }
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        assert_says(patchpoint_with_result(several[i][0], several[i][1]), &optimised, "result",
                    "a pointer");
}
END_TEST
#endif

static const char *with_transition(const char *type)
{
    static char text[4096];
    snprintf(text, sizeof text,
             STATEPOINT_DECLARATION "declare void @callee()\n"
                                    "define void @culprit(%s %%x) gc \"statepoint-example\" {\n"
                                    "  %%t = " TRANSITION_CALL
                                    " [\"gc-transition\"(i64 1, %s %%x)]\n"
                                    "  ret void\n}\n",
             type, type);
    return text;
}

START_TEST(transitions_are_refused_that_llvm_cannot_select)
{
    static const char *const types[] = {"i1", "i24", "i128", "<3 x i64>", "<16 x i1>"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_refused_rightly(with_transition(types[i]), &x86_64, "transition", "pointers");
    assert_compiles(with_transition("i8"), &x86_64);
    assert_compiles(with_transition("double"), &x86_64);
    assert_compiles(with_transition("<4 x i32>"), &x86_64);
    assert_compiles(with_transition("{ i64, i128 }"), &x86_64);
    assert_refused_rightly(with_transition("i64"), &aarch64, "transition", "bit 0");
}
END_TEST

/* Builds a statepoint with distinct deopt values that must stay in registers. */
static const char *with_values_live_in(unsigned count, const char *type, bool has_gc_live)
{
    static char text[16384];
    char *out =
        text +
        sprintf(text, STATEPOINT_DECLARATION
                "declare ptr addrspace(1) " RELOCATE "(token, i32, i32)\n"
                "declare void @callee()\n"
                "define ptr addrspace(1) @culprit(ptr addrspace(1) %%o, ptr addrspace(1) %%q");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, ", %s %%x%u", type, i);
    out += sprintf(out, ") gc \"statepoint-example\" {\n  %%t = " LIVE_IN_CALL " [\"deopt\"(");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, "%s%s %%x%u", i == 0 ? "" : ", ", type, i);
    if (has_gc_live)
        sprintf(out, "), \"gc-live\"(ptr addrspace(1) %%o, ptr addrspace(1) %%q)]\n"
                     "  %%r = call ptr addrspace(1) " RELOCATE "(token %%t, i32 0, i32 1)\n"
                     "  %%s = call ptr addrspace(1) " RELOCATE "(token %%t, i32 1, i32 0)\n"
                     "  ret ptr addrspace(1) %%r\n}\n");
    else
        sprintf(out, ")]\n  ret ptr addrspace(1) null\n}\n");
    return text;
}

START_TEST(statepoints_that_keep_values_in_registers_are_judged_like_live_values)
{
    for (int has_gc_live = 0; has_gc_live < 2; has_gc_live++) {
        assert_compiles(with_values_live_in(13, "i64", has_gc_live), &level_0);
        assert_refused_rightly(with_values_live_in(17, "i64", has_gc_live), &level_0, "registers",
                               "-O1");
        assert_compiles(with_values_live_in(17, "i64", has_gc_live), &optimised);
        assert_compiles(with_values_live_in(16, "double", has_gc_live), &level_0);
        assert_refused_rightly(with_values_live_in(17, "double", has_gc_live), &level_0,
                               "registers", "-O1");
        assert_compiles(with_values_live_in(27, "i64", has_gc_live), &aarch64);
        assert_refused_rightly(with_values_live_in(33, "i64", has_gc_live), &aarch64, "registers",
                               "-O1");
    }
}
END_TEST

/* LLVM keeps it on the x87 stack and leaves it out of the record. */
START_TEST(statepoints_that_keep_x86_fp80_in_a_register_are_refused)
{
    for (unsigned count = 1; count < 3; count++)
        for (int has_gc_live = 0; has_gc_live < 2; has_gc_live++)
            assert_says(with_values_live_in(count, "x86_fp80", has_gc_live), &optimised, "x86_fp80",
                        "bit 1");
}
END_TEST

/* ---- Calls without a record ---- */

#define DEOPT_CALL "  call void @callee() [\"deopt\"(i64 %x)]\n"
#define DEOPT_INVOKE                                                                               \
    "  invoke void @callee() [\"deopt\"(i64 %x)] to label %fine unwind label %pad\n"               \
    "pad:\n  %l = landingpad { ptr, i32 } cleanup\n  ret void\n"                                   \
    "fine:\n"
#define DEOPT_STACKMAP                                                                             \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)\n"
#define DEOPT_PATCHPOINT                                                                           \
    "  call void (i64, i32, ptr, i32, ...) "                                                       \
    "@llvm.experimental.patchpoint.void(i64 1, i32 16, ptr null, i32 0)\n"
#define DEOPT_INTRINSIC                                                                            \
    "  call void (...) @llvm.experimental.deoptimize.isVoid() [\"deopt\"(i64 %x)]\n"

/* On AArch64, LLVM uses GlobalISel at -O0. GlobalISel writes no records, so only functions that it
 * leaves to SelectionDAG have records. */
static const struct {
    bool are_left_out;
    unsigned records; /* number of records if they are not left out */
    const char *body;
} deopt_rows[] = {
    {true, 1, DEOPT_CALL "  ret void\n"},
    {true, 1, "  tail call void @callee() [\"deopt\"(i64 %x)]\n  ret void\n"},
    {true, 1, "  call void @callee() \"statepoint-id\"=\"7\" [\"deopt\"(i64 %x)]\n  ret void\n"},
#if LLVM_TELLS_BUNDLES
    {true, 1, "  call void @callee() [\"deopt\"()]\n  ret void\n"},
#endif
    {true, 2,
     "  br label %loop\nloop:\n" DEOPT_CALL DEOPT_CALL
     "  br i1 %c, label %loop, label %end\nend:\n  ret void\n"},
    {true, 1, DEOPT_CALL "  ret void\nunreached:\n" DEOPT_STACKMAP "  ret void\n"},
    {true, 1, DEOPT_CALL "  ret void\nunreached:\n" DEOPT_INVOKE "  ret void\n"},
    {true, 1,
     DEOPT_CALL "  ret void\n"
                "one:\n  br label %two\n"
                "two:\n" DEOPT_STACKMAP "  br i1 %c, label %one, label %end\n"
                "end:\n  ret void\n"},
    {false, 2, DEOPT_CALL DEOPT_STACKMAP "  ret void\n"},
    {false, 2, DEOPT_PATCHPOINT DEOPT_CALL "  ret void\n"},
    {false, 2, DEOPT_CALL "  %t = " STATEPOINT_CALL "\n  ret void\n"},
    {false, 2, DEOPT_CALL DEOPT_INTRINSIC "  ret void\n"},
    {false, 1, DEOPT_INTRINSIC "  ret void\n"},
    {false, 1, DEOPT_INVOKE "  ret void\n"},
    {false, 2, DEOPT_CALL DEOPT_INVOKE "  ret void\n"},
    {false, 2,
     "  br label %loop\nloop:\n" DEOPT_STACKMAP DEOPT_CALL
     "  br i1 %c, label %loop, label %end\nend:\n  ret void\n"},
    {false, 2,
     DEOPT_CALL "  switch i64 %x, label %end [ i64 1, label %end\n    i64 2, label %one ]\n"
                "one:\n  br label %two\n"
                "two:\n" DEOPT_STACKMAP "  br i1 %c, label %one, label %end\n"
                "end:\n  ret void\n"},
};
enum { DEOPT_ROWS = sizeof deopt_rows / sizeof *deopt_rows };

static const char *with_deopt_row(int row)
{
    static char text[4096];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS STATEPOINT_DECLARATION
             "declare void @callee()\n"
             "declare void @llvm.experimental.deoptimize.isVoid(...)\n"
             "declare i32 @__gxx_personality_v0(...)\n"
             "define void @culprit(i64 %%x, i1 %%c) gc \"statepoint-example\"\n"
             "    personality " SUPPORT_PERSONALITY " {\n%s}\n"
             "define void @other() {\n"
             "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"
             "  ret void\n}\n",
             deopt_rows[row].body);
    return text;
}

START_TEST(calls_of_which_global_isel_makes_no_record_are_refused_and_no_others)
{
    static const char *const triples[] = {"aarch64-linux-gnu", "x86_64-linux-gnu"};
    const char *text = with_deopt_row(_i);
    for (unsigned i = 0; i < 4; i++) {
        struct judgement judgement = {.triple = triples[i / 2], .optimisation_level = i % 2};
        bool are_left_out = i == 0 && deopt_rows[_i].are_left_out;
        if (are_left_out)
            assert_says(text, &judgement, "makes no record", "-O1");
        else
            assert_compiles(text, &judgement);
        if (support_has_target(judgement.triple))
            ck_assert_uint_eq(count_records(text, &judgement),
                              1 + (are_left_out ? 0 : deopt_rows[_i].records));
    }
}
END_TEST

static const struct {
    const char *type;
    const char *call;
    bool is_replaced;
} library_rows[] = {
    {"double", "@sqrt(double %d) readnone", true},
    {"double", "@sqrt(double %d) readnone nobuiltin", false},
    {"double", "@sqrt(double %d)", false},
    {"float", "@sinf(float %s) readnone", true},
    {"double", "@pow(double %d, double %d) readnone", false},
    {"double", "@fabs(double %d)", true}, /* its declaration has the attribute */
    {"ptr", "@mempcpy(ptr %p, ptr %p, i64 %x)", true},
    {"ptr", "@mempcpy(ptr %p, ptr %p, i64 %x) nobuiltin", false},
    {"i32", "@memcmp(ptr %p, ptr %p, i64 8)", true},
    {"i32", "@memcmp(ptr %p, ptr %p, i64 %x)", false},
    {"i64", "@strlen(ptr %p)", false},
};
enum { LIBRARY_ROWS = sizeof library_rows / sizeof *library_rows };

/* `other` has a record, so that there is a section of them. */
START_TEST(calls_of_library_functions_that_are_replaced_are_refused)
{
    char text[2048];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "declare double @sqrt(double)\ndeclare float @sinf(float)\n"
             "declare double @pow(double, double)\ndeclare double @fabs(double) readnone\n"
             "declare ptr @mempcpy(ptr, ptr, i64)\ndeclare i32 @memcmp(ptr, ptr, i64)\n"
             "declare i64 @strlen(ptr)\n"
             "define %s @culprit(i64 %%x, double %%d, float %%s, ptr %%p) {\n"
             "  %%r = call %s %s [\"deopt\"(i64 %%x)]\n  ret %s %%r\n}\n"
             "define void @other() {\n"
             "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"
             "  ret void\n}\n",
             library_rows[_i].type, library_rows[_i].type, library_rows[_i].call,
             library_rows[_i].type);
    for (unsigned level = 1; level < 4; level++) {
        const struct judgement judgement = {.triple = "x86_64-linux-gnu",
                                            .optimisation_level = level};
        if (library_rows[_i].is_replaced)
            assert_says(text, &judgement, "library function", "nobuiltin");
        else
            assert_compiles(text, &judgement);
        /* LLVM 19 does not replace all of them at all times; 15 to 18, 20 and 21 were not tried. */
        bool always = LLVM_VERSION_MAJOR == 14 || LLVM_VERSION_MAJOR == 22;
        if (support_has_target(judgement.triple) && (always || !library_rows[_i].is_replaced))
            ck_assert_uint_eq(count_records(text, &judgement),
                              library_rows[_i].is_replaced ? 1 : 2);
    }
}
END_TEST

/* ---- Tail calls ---- */

static const char *with_tail_call(const char *kind)
{
    static char text[512];
    snprintf(text, sizeof text,
             "define void @callee(i64 %%x) {\n  ret void\n}\n"
             "define void @culprit(i64 %%x) {\n"
             "  %s call void @callee(i64 %%x) [\"deopt\"(i64 %%x)]\n  ret void\n}\n",
             kind);
    return text;
}

START_TEST(tail_calls_that_llvm_cannot_make_are_refused)
{
    for (unsigned level = 1; level < 6; level++) {
        const struct judgement judgement = {.triple = "x86_64-linux-gnu",
                                            .optimisation_level = level % 4,
                                            .uses_fast_isel = level > 3};
        assert_says(with_tail_call("musttail"), &judgement, "tail call", "without musttail");
        if (LLVM_ENDS_AT_IMPOSSIBLE_TAIL_CALLS)
            assert_crashes(with_tail_call("musttail"), &judgement);
        assert_compiles(with_tail_call("tail"), &judgement);
        assert_compiles(with_tail_call("notail"), &judgement);
    }
}
END_TEST

/* LLVM emits no code for them. */
START_TEST(functions_that_are_available_externally_are_not_judged)
{
    const struct judgement judgement = {.optimisation_level = 2 * (unsigned)_i};
    assert_compiles("declare void @llvm.experimental.guard(i1, ...)\n" SUPPORT_INTRINSICS
                    "define available_externally void @elsewhere(ptr %p, i128 %x) {\n"
                    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void("
                    "i64 1, i32 32, ptr %p, i32 0, i128 %x)\n"
                    "  call void (i1, ...) @llvm.experimental.guard(i1 true) "
                    "[\"deopt\"(i32 1)]\n"
                    "  ret void\n}\n"
                    "define void @f() {\n  ret void\n}\n",
                    &judgement);
}
END_TEST

/* ---- Operand bundles ---- */

#if LLVM_HAS_OPAQUE_POINTERS

enum { CALLED_FUNCTION, CALLED_STATEPOINT, CALLED_PATCHPOINT, CALLED_INTRINSIC };

static const char *const bundle_callees[] = {
    [CALLED_FUNCTION] = "void @callee()",
    [CALLED_STATEPOINT] = ("token (i64, i32, ptr, i32, i32, ...) "
                           "@llvm.experimental.gc.statepoint.p0(i64 1, i32 0, "
                           "ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0)"),
    [CALLED_PATCHPOINT] = ("void (i64, i32, ptr, i32, ...) "
                           "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 0)"),
    [CALLED_INTRINSIC] = "void @llvm.sideeffect()",
};

/* LLVM aborts where it reads bundles; code that does not read them ignores them. */
static const struct {
    const char *kind;
    int callee;
    const char *bundle;
    bool ends_llvm;
} bundle_rows[] = {
    {"call", CALLED_FUNCTION, "\"other\"(i32 %x)", true},
    {"call", CALLED_FUNCTION, "\"deopt\"(i32 %x), \"other\"()", true},
    {"call", CALLED_FUNCTION, "\"gc-live\"(ptr %p)", true},
    {"call", CALLED_FUNCTION, "\"gc-transition\"(ptr %p)", true},
    {"call", CALLED_FUNCTION, "\"align\"(ptr %p, i64 8)", true},
    {"call", CALLED_FUNCTION, "\"cfguardtarget\"(ptr %p)", false},
    {"call", CALLED_FUNCTION, "\"kcfi\"(i32 7)", false},
    {"call", CALLED_STATEPOINT, "\"other\"(i32 %x)", false},
    {"call", CALLED_STATEPOINT, "\"gc-live\"(ptr %p), \"other\"(i32 %x)", false},
    {"call", CALLED_PATCHPOINT, "\"other\"(i32 %x)", false},
    {"call", CALLED_INTRINSIC, "\"other\"(i32 %x)", false},
    {"invoke", CALLED_FUNCTION, "\"other\"(i32 %x)", true},
    {"invoke", CALLED_FUNCTION, "\"gc-live\"(ptr %p)", false},
    {"invoke", CALLED_FUNCTION, "\"align\"(ptr %p, i64 8)", true},
    {"invoke", CALLED_STATEPOINT, "\"deopt\"(i32 %x), \"gc-live\"(ptr %p)", false},
    {"invoke", CALLED_STATEPOINT, "\"deopt\"(i32 %x), \"other\"(i32 %x)", true},
    {"invoke", CALLED_PATCHPOINT, "\"other\"(i32 %x)", true},
};
enum { BUNDLE_ROWS = sizeof bundle_rows / sizeof *bundle_rows };

static const char *with_bundle(const char *kind, const char *callee, const char *bundle)
{
    static char text[2048];
    bool is_invoke = strcmp(kind, "invoke") == 0;
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS STATEPOINT_DECLARATION
             "declare void @callee()\ndeclare void @llvm.sideeffect()\n"
             "declare i32 @__gxx_personality_v0(...)\n"
             "define void @culprit(i32 %%x, ptr %%p) gc \"statepoint-example\"\n"
             "    personality ptr @__gxx_personality_v0 {\n"
             "  %s%s %s [ %s ]\n%s  ret void\n}\n",
             strstr(callee, "token") == callee ? "%t = " : "", kind, callee, bundle,
             is_invoke ? "    to label %next unwind label %pad\n"
                         "pad:\n  %l = landingpad { ptr, i32 } cleanup\n  ret void\nnext:\n"
                       : "");
    return text;
}

/* Asserts that the module is refused because of an operand bundle. */
static void assert_ends(const char *text, const struct judgement *judgement, bool may_compile)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    struct cairn_error error = {0};
    ck_assert_int_eq(check(module, judgement, &error), CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "operand bundle") != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "; write the same without it") != NULL, "%s",
                  error.message);
    LLVMDisposeModule(module);
    if (!may_compile)
        assert_crashes(text, judgement);
}

START_TEST(bundles_that_end_llvm_are_refused_and_no_others)
{
    static const char *const triples[] = {"x86_64-linux-gnu", "aarch64-linux-gnu"};
    const char *text = with_bundle(bundle_rows[_i].kind, bundle_callees[bundle_rows[_i].callee],
                                   bundle_rows[_i].bundle);
    for (unsigned i = 0; i < 4; i++) {
        struct judgement judgement = {.triple = triples[i / 2], .optimisation_level = i % 2 * 2};
        /* On AArch64 at -O0, GlobalISel does not look at the bundles of calls that it selects. */
        bool may_compile = i == 2;
        bool has_deopt_call = bundle_rows[_i].callee == CALLED_FUNCTION &&
                              strstr(bundle_rows[_i].bundle, "\"deopt\"") != NULL;
        if (has_deopt_call && may_compile && !LLVM_ENDS_AT_FOREIGN_BUNDLES)
            assert_says(text, &judgement, "makes no record", "-O1");
        else if (!bundle_rows[_i].ends_llvm || !LLVM_ENDS_AT_FOREIGN_BUNDLES)
            assert_compiles(text, &judgement);
        else
            assert_ends(text, &judgement, may_compile);
    }
}
END_TEST

#endif

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, statepoints_are_refused_where_llvm_cannot_select_them);
    tcase_add_test(tests, statepoints_store_what_registers_cannot_keep);
    tcase_add_loop_test(tests, statepoints_cannot_store_nothing, 0, 4);
    tcase_add_test(tests, statepoints_store_no_types_of_other_machines);
    tcase_add_loop_test(tests, statepoints_return_in_registers, 0, RETURNED);
    tcase_add_test(tests, statepoints_of_other_architectures_have_other_registers_for_results);
#if LLVM_HAS_OPAQUE_POINTERS
    tcase_add_test(tests, statepoints_of_variadic_functions_pass_integers_only);
#endif
#if LLVM_PATCHPOINT_RETURNS_ANY_TYPE
    tcase_add_test(tests, patch_points_return_in_one_register);
#endif
    tcase_add_test(tests, transitions_are_refused_that_llvm_cannot_select);
    tcase_add_test(tests, statepoints_that_keep_values_in_registers_are_judged_like_live_values);
    tcase_add_test(tests, statepoints_that_keep_x86_fp80_in_a_register_are_refused);
#if LLVM_HAS_OPAQUE_POINTERS
    tcase_add_loop_test(tests, bundles_that_end_llvm_are_refused_and_no_others, 0, BUNDLE_ROWS);
#endif
    tcase_add_loop_test(tests, calls_of_which_global_isel_makes_no_record_are_refused_and_no_others,
                        0, DEOPT_ROWS);
    tcase_add_loop_test(tests, calls_of_library_functions_that_are_replaced_are_refused, 0,
                        LIBRARY_ROWS);
    tcase_add_test(tests, tail_calls_that_llvm_cannot_make_are_refused);
    tcase_add_loop_test(tests, functions_that_are_available_externally_are_not_judged, 0, 2);
}

int main(void) { return check_main("llvm check statepoints", add_tests); }
