/*
 * Tests of cairn_check_module: regions, targets, and instructions for which LLVM has no code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_check_support.h"

#include <stdio.h>

static void assert_refused_at(const char *text, const char *triple, unsigned level,
                              bool uses_fast_isel, const char *why, const char *instead)
{
    struct judgement judgement = {
        .triple = triple, .optimisation_level = level, .uses_fast_isel = uses_fast_isel};
    assert_refused_rightly(text, &judgement, why, instead);
}

static void assert_compiles_at(const char *text, const char *triple, unsigned level,
                               bool uses_fast_isel)
{
    struct judgement judgement = {
        .triple = triple, .optimisation_level = level, .uses_fast_isel = uses_fast_isel};
    assert_compiles(text, &judgement);
}

#if LLVM_HAS_OPAQUE_POINTERS
#define SYMBOL_TARGET "ptr @symbol"
#else
#define SYMBOL_TARGET "i8* bitcast (void ()* @symbol to i8*)"
#endif

/* ---- Bytes ---- */

START_TEST(too_few_bytes_fill_the_memory_on_x86_64)
{
    struct judgement judgement = {.triple = "x86_64-linux-gnu", .fills_memory = true};
    assert_refused_rightly(with_bytes("12", FAR_TARGET), &judgement, "fit", "minimum_bytes");
    judgement.fills_memory = false;
    assert_compiles(with_bytes("13", FAR_TARGET), &judgement);
    assert_compiles(with_bytes("0", "null"), &judgement);
}
END_TEST

/* Older versions write more bytes than the region has. */
START_TEST(too_few_bytes_end_llvm_22_on_ppc64)
{
    static const struct {
        const char *triple;
        unsigned smallest; /* number of bytes that LLVM accepts */
    } rows[] = {{"powerpc64le-linux-gnu", 32}, {"powerpc64-linux-gnu", 40}};
    const struct judgement judgement = {.triple = rows[_i].triple};
    for (unsigned bytes = 0; bytes < rows[_i].smallest; bytes += 4) {
        char number[16];
        snprintf(number, sizeof number, "%u", bytes);
        assert_says(with_bytes(number, FAR_TARGET), &judgement, "fit", "minimum_bytes");
        if (LLVM_COUNTS_TOC_RELOAD)
            assert_crashes(with_bytes(number, FAR_TARGET), &judgement);
    }
}
END_TEST

/* Asserts that `refused` bytes become `written` bytes, and that `written` bytes are accepted. The
 * module has the given target, or none. */
static const struct {
    const char *triple;
    const char *target;
    const char *refused;
    const char *written;
    const char *why;
} byte_rows[] = {
    {"aarch64-linux-gnu", FAR_TARGET, "12", "16", "fit"},
    {"powerpc64le-linux-gnu", FAR_TARGET, "39", "40", "fit"},
    {"powerpc64-linux-gnu", FAR_TARGET, "47", "48", "fit"},
    {"s390x-linux-gnu", FAR_TARGET, "12", "14", "fit"},
    {"aarch64-linux-gnu", "null", "18", "20", "4 bytes"},
    {"powerpc64le-linux-gnu", "null", "18", "20", "4 bytes"},
    {"powerpc64-linux-gnu", "null", "18", "20", "4 bytes"},
    {"s390x-linux-gnu", "null", "17", "18", "2, 4 or 6 bytes"},
    {"riscv64-linux-gnu", "null", "18", "16", "4 bytes"},
};
enum { BYTE_ROWS = sizeof byte_rows / sizeof *byte_rows };

START_TEST(bytes_that_llvm_does_not_keep_to_are_refused)
{
    const char *triple = byte_rows[_i].triple;
    struct judgement judgement = {.triple = triple};
    if (!has_stackmaps(triple))
        return;
    assert_says(with_bytes(byte_rows[_i].refused, byte_rows[_i].target), &judgement,
                byte_rows[_i].why, "");
    assert_compiles(with_bytes(byte_rows[_i].written, byte_rows[_i].target), &judgement);
    if (!support_has_target(triple))
        return;
    size_t refused =
        section_size(with_bytes(byte_rows[_i].refused, byte_rows[_i].target), &judgement, ".text");
    size_t written =
        section_size(with_bytes(byte_rows[_i].written, byte_rows[_i].target), &judgement, ".text");
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(refused, written);
}
END_TEST

/* This limit is Cairn's own. Above it LLVM is slow and finally runs out of memory. */
/* check_llvm_sequences.c tests that LLVM's code for these is wrong. */
START_TEST(symbols_as_targets_are_refused_where_llvm_cannot_call_them)
{
    static const char symbol[] = SUPPORT_INTRINSICS
        "declare void @symbol()\n"
        "define void @culprit() {\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 1, i32 32, " SYMBOL_TARGET ", i32 0)\n"
        "  ret void\n"
        "}\n";
    static const char integer[] = SUPPORT_INTRINSICS
        "define void @f() {\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 1, i32 32, ptr inttoptr (i64 4096 to ptr), i32 0)\n"
        "  ret void\n"
        "}\n";
    assert_says(symbol, &aarch64, "symbol as target", "integer cast to a pointer");
    assert_compiles(symbol, &x86_64);
    assert_compiles(integer, &aarch64);
    if (!LLVM_HAS_RISCV_STACKMAPS)
        return;
    assert_refused_rightly(symbol, &riscv64, "symbol as target", "integer cast to a pointer");
    assert_compiles(integer, &riscv64);
}
END_TEST

START_TEST(absurd_number_of_bytes_is_refused)
{
    struct judgement judgement = {.fills_memory = true};
    assert_says(with_bytes("1048577", "null"), &usual, "no-ops", "1048576");
    assert_refused_rightly(with_bytes("-1", "null"), &judgement, "no-ops", "1048576");
    assert_compiles(with_bytes("1048576", "null"), &usual);
}
END_TEST

/* ---- Constructs without code ---- */

#if LLVM_HAS_OPAQUE_POINTERS
#define BASE "@llvm.experimental.gc.get.pointer.base.p1.p1"
#define OFFSET "@llvm.experimental.gc.get.pointer.offset.p1"
#else
#define BASE "@llvm.experimental.gc.get.pointer.base.p1i8.p1i8"
#define OFFSET "@llvm.experimental.gc.get.pointer.offset.p1i8"
#endif

#define DEOPTIMIZE(type, suffix, attributes)                                                       \
    "declare " type " @llvm.experimental.deoptimize." suffix "(...)\n"                             \
    "define " type " @culprit(i32 %x) " attributes "{\n"                                           \
    "  %r = call " type " (...) @llvm.experimental.deoptimize." suffix                             \
    "(i32 %x) [\"deopt\"(i32 %x)]\n"                                                               \
    "  ret " type " %r\n}\n"

static const char base[] = "declare ptr addrspace(1) " BASE "(ptr addrspace(1))\n"
                           "define ptr addrspace(1) @culprit(ptr addrspace(1) %p) "
                           "gc \"statepoint-example\" {\n"
                           "  %r = call ptr addrspace(1) " BASE "(ptr addrspace(1) %p)\n"
                           "  ret ptr addrspace(1) %r\n}\n";
static const char offset[] = "declare i64 " OFFSET "(ptr addrspace(1))\n"
                             "define i64 @culprit(ptr addrspace(1) %p) "
                             "gc \"statepoint-example\" {\n"
                             "  %r = call i64 " OFFSET "(ptr addrspace(1) %p)\n"
                             "  ret i64 %r\n}\n";
static const char unused_base[] = "declare ptr addrspace(1) " BASE "(ptr addrspace(1))\n"
                                  "define void @culprit(ptr addrspace(1) %p) "
                                  "gc \"statepoint-example\" {\n"
                                  "  %r = call ptr addrspace(1) " BASE "(ptr addrspace(1) %p)\n"
                                  "  ret void\n}\n";

#define WIDENABLE(attributes)                                                                      \
    "declare i1 @llvm.experimental.widenable.condition()\n"                                        \
    "define i1 @culprit() " attributes "{\n"                                                       \
    "  %r = call i1 @llvm.experimental.widenable.condition()\n  ret i1 %r\n}\n"

static const char *const triples_with_statepoints[] = {"x86_64-linux-gnu", "aarch64-linux-gnu"};

START_TEST(intrinsics_without_code_are_refused)
{
    const char *triple = triples_with_statepoints[_i / 2];
    unsigned level = 2 * ((unsigned)_i % 2);
    for (int uses_fast_isel = 0; uses_fast_isel < 2; uses_fast_isel++) {
        assert_refused_at(GUARD, triple, level, uses_fast_isel, "guards", "deoptimize");
        assert_refused_at(base, triple, level, uses_fast_isel, "base", "rewrite-statepoints");
        assert_refused_at(offset, triple, level, uses_fast_isel, "offset", "rewrite-statepoints");
        assert_compiles_at(unused_base, triple, level, uses_fast_isel);
        assert_refused_at(WIDENABLE("optnone noinline "), triple, level, uses_fast_isel,
                          "widenable", "true");
        if (level == 0)
            assert_refused_at(WIDENABLE(""), triple, level, uses_fast_isel, "widenable", "-O1");
        else
            assert_compiles_at(WIDENABLE(""), triple, level, uses_fast_isel);
    }
}
END_TEST

START_TEST(deoptimize_by_fast_isel_is_refused)
{
    static const char *const returning[] = {DEOPTIMIZE("i32", "i32", ""),
                                            DEOPTIMIZE("i64", "i64", ""),
                                            DEOPTIMIZE("double", "f64", "")};
    static const char optnone[] = DEOPTIMIZE("i32", "i32", "optnone noinline ");
    static const char pair[] = DEOPTIMIZE("[2 x i64]", "a2i64", "");
    static const char nothing[] = "declare void @llvm.experimental.deoptimize.isVoid(...)\n"
                                  "define void @culprit(i32 %x) {\n"
                                  "  call void (...) @llvm.experimental.deoptimize.isVoid(i32 %x) "
                                  "[\"deopt\"(i32 %x)]\n  ret void\n}\n";
    const char *triple = triples_with_statepoints[_i / 4];
    unsigned level = (unsigned)_i % 4;
    for (size_t i = 0; i < sizeof returning / sizeof *returning; i++) {
        assert_compiles_at(returning[i], triple, level, false);
        if (level == 0)
            assert_compiles_at(returning[i], triple, level, true);
        else
            assert_refused_at(returning[i], triple, level, true, "FastISel", "-O0");
    }
    if (level == 0)
        assert_compiles_at(optnone, triple, level, false);
    else
        assert_refused_at(optnone, triple, level, false, "FastISel", "optnone");
    assert_compiles_at(pair, triple, level, true);
    assert_compiles_at(nothing, triple, level, true);
}
END_TEST

/* The vectors that one register holds because of the function's features. */
START_TEST(deoptimize_of_wide_vectors_by_fast_isel_is_refused)
{
#define AVX "\"target-features\"=\"+avx\" "
#define AVX512 "\"target-features\"=\"+avx512f,+avx512bw\" "
#define OPTNONE "optnone noinline "
    static const struct {
        const char *fast;
        const char *optnone;
    } rows[] = {
        {DEOPTIMIZE("<8 x float>", "v8f32", AVX), DEOPTIMIZE("<8 x float>", "v8f32", AVX OPTNONE)},
        {DEOPTIMIZE("<4 x i64>", "v4i64", AVX), DEOPTIMIZE("<4 x i64>", "v4i64", AVX OPTNONE)},
        {DEOPTIMIZE("<16 x float>", "v16f32", AVX512),
         DEOPTIMIZE("<16 x float>", "v16f32", AVX512 OPTNONE)},
        {NULL, DEOPTIMIZE("<16 x i1>", "v16i1", AVX512 OPTNONE)},
    };
    unsigned level = 1 + (unsigned)_i;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].fast != NULL)
            assert_refused_at(rows[i].fast, "x86_64-linux-gnu", level, true, "FastISel", "-O0");
        assert_refused_at(rows[i].optnone, "x86_64-linux-gnu", level, false, "FastISel", "optnone");
        assert_compiles_at(rows[i].optnone, "x86_64-linux-gnu", 0, false);
    }
}
END_TEST

static const char *with_pad(const char *personality, const char *pad, const char *end)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "declare i32 @__gxx_personality_v0(...)\n"
             "declare void @anything()\n"
             "@variable = global i8 0\n"
             "define void @culprit() personality %s {\n"
             "  invoke void @anything() to label %%fine unwind label %%pad\n"
             "pad:\n  %%e = landingpad %s cleanup\n  %s\n"
             "fine:\n  ret void\n}\n",
             personality, pad, end);
    return text;
}

START_TEST(landing_pads_that_crash_are_refused)
{
    static const char *const types[] = {"{}", "{ ptr, i32, i64 }", "{ double, double }"};
    unsigned level = 2 * (unsigned)_i;
    struct judgement judgement = {.triple = "x86_64-linux-gnu", .optimisation_level = level};
    for (int uses_fast_isel = 0; uses_fast_isel < 2; uses_fast_isel++) {
        judgement.uses_fast_isel = uses_fast_isel != 0;
        const char *text = with_pad(SUPPORT_PERSONALITY, "token", "resume token %e");
        assert_says_of("landingpad", text, &judgement, "token", "{ ptr, i32 }");
        assert_crashes(text, &judgement);
        assert_compiles(with_pad(SUPPORT_PERSONALITY, "token", "ret void"), &judgement);
        assert_compiles(with_pad(SUPPORT_PERSONALITY, "{ ptr, i32 }", "resume { ptr, i32 } %e"),
                        &judgement);
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            assert_says_of("landingpad", with_pad(SUPPORT_PERSONALITY, types[i], "ret void"),
                           &judgement, "pointer and an integer", "{ ptr, i32 }");
        text = with_pad(SUPPORT_PERSONALITY, "{}", "ret void");
        assert_crashes(text, &judgement);
    }
}
END_TEST

/* LLVM compiles these as if they had no landing pads. */
START_TEST(personalities_that_are_no_functions_are_refused)
{
#if LLVM_HAS_OPAQUE_POINTERS
    static const char *const personalities[] = {
        "ptr null", "ptr undef", "ptr inttoptr (i64 4096 to ptr)", "i32 42", "ptr @variable"};
#else
    static const char *const personalities[] = {
        "i8* null", "i8* undef", "i8* inttoptr (i64 4096 to i8*)", "i32 42", "i8* @variable"};
#endif
    enum { WRITTEN = 4 }; /* newer LLVM writes the address of a variable */
    struct judgement judgement = {.triple = "x86_64-linux-gnu"};
    if (!support_has_target(judgement.triple))
        return;
    for (size_t i = 0; i < sizeof personalities / sizeof *personalities; i++) {
        const char *text = with_pad(personalities[i], "{ ptr, i32 }", "ret void");
        assert_says_of("landingpad", text, &judgement, "personality", "a function");
        if (i < WRITTEN)
            ck_assert_uint_eq(section_size(text, &x86_64, ".gcc_except_table"), 0);
    }
    ck_assert_uint_gt(section_size(with_pad(SUPPORT_PERSONALITY, "{ ptr, i32 }", "ret void"),
                                   &x86_64, ".gcc_except_table"),
                      0);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, too_few_bytes_fill_the_memory_on_x86_64);
    tcase_add_loop_test(tests, too_few_bytes_end_llvm_22_on_ppc64, 0, 2);
    tcase_add_loop_test(tests, bytes_that_llvm_does_not_keep_to_are_refused, 0, BYTE_ROWS);
    tcase_add_test(tests, symbols_as_targets_are_refused_where_llvm_cannot_call_them);
    tcase_add_test(tests, absurd_number_of_bytes_is_refused);
    tcase_add_loop_test(tests, intrinsics_without_code_are_refused, 0, 4);
    tcase_add_loop_test(tests, deoptimize_by_fast_isel_is_refused, 0, 8);
    tcase_add_loop_test(tests, deoptimize_of_wide_vectors_by_fast_isel_is_refused, 0, 3);
    tcase_add_loop_test(tests, landing_pads_that_crash_are_refused, 0, 2);
    tcase_add_test(tests, personalities_that_are_no_functions_are_refused);
}

int main(void) { return check_main("llvm check code", add_tests); }
