/*
 * Tests of cairn_check_module: code that crashes with the liveness of patch points.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_check_support.h"

#include <stdio.h>

/* ---- Liveness ---- */

#define CALL_AFTER_PATCHPOINT                                                                      \
    SUPPORT_INTRINSICS                                                                             \
    "declare void @anything()\n"                                                                   \
    "define void @culprit() {\n"                                                                   \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, "     \
    "ptr null, i32 0)\n"                                                                           \
    "  call void @anything()\n"                                                                    \
    "  ret void\n}\n"

START_TEST(kept_liveness_refuses_calls_after_patchpoints)
{
    struct judgement keep = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement off = {.triple = "x86_64-linux-gnu"};
    struct judgement by_host = {.triple = "x86_64-linux-gnu",
                                .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    assert_refused_rightly(CALL_AFTER_PATCHPOINT, &keep, "liveness", "CAIRN_LIVENESS_OFF");
    assert_compiles(CALL_AFTER_PATCHPOINT, &off);
    LLVMModuleRef module = parse_for(CALL_AFTER_PATCHPOINT, by_host.triple);
    ck_assert_ok(check(module, &by_host, NULL));
    LLVMDisposeModule(module);
    assert_compiles(with_bytes("16", "null"), &keep);
}
END_TEST

/* Builds a function with `body` after a patch point; the function returns %r. */
static const char *with_patchpoint_before(const char *body)
{
    static char text[4096];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "declare i32 @__gxx_personality_v0(...)\n"
             "declare void @anything()\n"
             "declare double @llvm.sqrt.f64(double)\n"
             "@variable = thread_local global i64 0\n"
             "@wide = global i128 0, align 16\n"
             "@word = global i64 0\n"
             "define double @culprit(i64 %%x, double %%a, float %%s, <2 x double> %%v)\n"
             "    personality " SUPPORT_PERSONALITY " {\n"
             "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
             "      i64 1, i32 16, ptr null, i32 0)\n"
             "%s  ret double %%r\n}\n",
             body);
    return text;
}

#define RESULT "  %r = bitcast i64 %x to double\n"
#if LLVM_HAS_OPAQUE_POINTERS
#define WIDE "ptr @wide"
#define WORD "ptr @word"
#define VARIABLE "ptr @variable"
#else
#define WIDE "i128* @wide"
#define WORD "i64* @word"
#define VARIABLE "i64* @variable"
#endif

static const char narrowed[] = "  %f = fptrunc double %a to float\n"
                               "  %b = bitcast float %f to i32\n"
                               "  %w = zext i32 %b to i64\n"
                               "  %r = bitcast i64 %w to double\n";

static const char *const floating_point[] = {
    "  %r = fadd double %a, %a\n",
    "  %r = fsub double %a, 1.0\n",
    "  %r = fmul double %a, 3.0\n",
    "  %r = fdiv double 1.0, %a\n",
    "  %r = sitofp i64 %x to double\n",
    "  %r = uitofp i64 %x to double\n",
    "  %r = fpext float %s to double\n",
    narrowed,
    "  %i = fptosi double %a to i64\n  %r = bitcast i64 %i to double\n",
    "  %i = fptoui double %a to i64\n  %r = bitcast i64 %i to double\n",
    "  %c = fcmp olt double %a, 1.0\n  %w = zext i1 %c to i64\n  %r = bitcast i64 %w to double\n",
    "  %w = fadd <2 x double> %v, %v\n  %r = extractelement <2 x double> %w, i32 0\n",
    "  %r = call double @llvm.sqrt.f64(double %a)\n",
};
enum { FLOATING_POINT_COUNT = sizeof floating_point / sizeof *floating_point };

START_TEST(kept_liveness_refuses_floating_point)
{
    const char *text = with_patchpoint_before(floating_point[_i]);
    struct judgement on_x86_64 = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement on_aarch64 = {.triple = "aarch64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    assert_refused_rightly(text, &on_x86_64, "floating point", "CAIRN_LIVENESS_OFF");
    if (LLVM_HAS_LIVE_FPCR)
        assert_refused_rightly(text, &on_aarch64, "floating point", "CAIRN_LIVENESS_OFF");
    else
        assert_compiles(text, &on_aarch64);
    on_x86_64.liveness = CAIRN_LIVENESS_OFF;
    on_aarch64.liveness = CAIRN_LIVENESS_OFF;
    assert_compiles(text, &on_x86_64);
    assert_compiles(text, &on_aarch64);
}
END_TEST

/* Values that are copied by instructions other than moves. */
START_TEST(kept_liveness_refuses_awkward_live_values)
{
    static const char fp80[] = SUPPORT_INTRINSICS
        "define void @culprit(i64 %x, x86_fp80 %y) {\n" PATCHPOINT("16", "null", "")
            PATCHPOINT("16", "null", ", i64 %x, x86_fp80 %y") "  ret void\n}\n";
    static const char bfloat[] = SUPPORT_INTRINSICS
        "define void @culprit(i64 %x, bfloat %y) {\n" PATCHPOINT("16", "null", "")
            STACKMAP(", bfloat %y") "  ret void\n}\n";
    struct judgement keep = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement off = {.triple = "x86_64-linux-gnu"};
    assert_refused_rightly(fp80, &keep, "liveness", "CAIRN_LIVENESS_OFF");
    assert_compiles(fp80, &off);
    if (!LLVM_SELECTS_LIVE_BFLOAT)
        return; /* crashes with and without the option */
    assert_refused_rightly(bfloat, &keep, "liveness", "CAIRN_LIVENESS_OFF");
    assert_compiles(bfloat, &off);
}
END_TEST

/* Instructions other than calls that become calls in machine code. */
static const char *const hidden_calls[] = {
    "  %w = sext i64 %x to i128\n  %q = sdiv i128 %w, 12345678901234567890\n"
    "  %i = trunc i128 %q to i64\n  %r = bitcast i64 %i to double\n",
    "  %r = frem double %a, 3.0\n",
    "  %i = load i64, " VARIABLE "\n  %r = bitcast i64 %i to double\n",
    "  %w = load atomic i128, " WIDE " seq_cst, align 16\n  %i = trunc i128 %w to i64\n"
    "  %r = bitcast i64 %i to double\n",
    "  store atomic i128 7, " WIDE " seq_cst, align 16\n" RESULT,
    "  %i = load atomic i64, " WORD " seq_cst, align 2\n  %r = bitcast i64 %i to double\n",
    "  %w = atomicrmw add " WIDE ", i128 5 seq_cst\n" RESULT,
    "  %w = cmpxchg " WIDE ", i128 5, i128 9 seq_cst seq_cst\n" RESULT,
    "  invoke void @anything() to label %fine unwind label %pad\n"
    "pad:\n  %e = landingpad { ptr, i32 } cleanup\n  resume { ptr, i32 } %e\n"
    "fine:\n" RESULT,
};
enum { HIDDEN_CALL_COUNT = sizeof hidden_calls / sizeof *hidden_calls };

START_TEST(kept_liveness_refuses_what_becomes_a_call)
{
    const char *text = with_patchpoint_before(hidden_calls[_i]);
    struct judgement keep = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement off = {.triple = "x86_64-linux-gnu"};
    assert_refused_rightly(text, &keep, "calls", "CAIRN_LIVENESS_OFF");
    assert_compiles(text, &off);
}
END_TEST

static const char *const harmless[] = {
    RESULT,
    "  %i = sdiv i64 1234, %x\n  %r = bitcast i64 %i to double\n",
    "  %r = fneg double %a\n",
    "  %c = icmp slt i64 %x, 5\n  %r = select i1 %c, double %a, double 1.0\n",
    "  %w = sext i64 %x to i128\n  %q = mul i128 %w, %w\n  %h = lshr i128 %q, 64\n"
    "  %i = trunc i128 %h to i64\n  %r = bitcast i64 %i to double\n",
    "  %i = atomicrmw nand " WORD ", i64 %x seq_cst\n  %r = bitcast i64 %i to double\n",
    "  %i = load atomic i64, " WORD " seq_cst, align 8\n  %r = bitcast i64 %i to double\n",
    "  %w = cmpxchg " WORD ", i64 5, i64 %x seq_cst seq_cst\n" RESULT,
    "  %p = alloca i8, i64 %x\n  store volatile i8 0, ptr %p\n" RESULT,
};
enum { HARMLESS_COUNT = sizeof harmless / sizeof *harmless };

START_TEST(kept_liveness_lets_other_instructions_through)
{
    struct judgement on_x86_64 = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement on_aarch64 = {.triple = "aarch64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    assert_compiles(with_patchpoint_before(harmless[_i]), &on_x86_64);
    assert_compiles(with_patchpoint_before(harmless[_i]), &on_aarch64);
}
END_TEST

START_TEST(kept_liveness_takes_calls_on_other_architectures)
{
    static const char *const triples[] = {"aarch64-linux-gnu", "powerpc64le-linux-gnu",
                                          "s390x-linux-gnu"};
    struct judgement keep = {.triple = triples[_i], .liveness = CAIRN_LIVENESS_KEEP};
    assert_compiles(CALL_AFTER_PATCHPOINT, &keep);
    if (_i > 0)
        for (size_t i = 0; i < FLOATING_POINT_COUNT; i++)
            assert_compiles(with_patchpoint_before(floating_point[i]), &keep);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, kept_liveness_refuses_calls_after_patchpoints);
    tcase_add_loop_test(tests, kept_liveness_refuses_floating_point, 0, FLOATING_POINT_COUNT);
    tcase_add_test(tests, kept_liveness_refuses_awkward_live_values);
    tcase_add_loop_test(tests, kept_liveness_refuses_what_becomes_a_call, 0, HIDDEN_CALL_COUNT);
    tcase_add_loop_test(tests, kept_liveness_lets_other_instructions_through, 0, HARMLESS_COUNT);
    tcase_add_loop_test(tests, kept_liveness_takes_calls_on_other_architectures, 0, 3);
}

int main(void) { return check_main("llvm check liveness", add_tests); }
