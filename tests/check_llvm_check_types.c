/*
 * Tests of cairn_check_module: the types of live values, and constants.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_check_support.h"

#include <stdio.h>
#include <string.h>

/* ---- Types of live values ---- */

/* Builds a function with the attributes that passes a value of the type to `call`. */
static char *with_value(const char *type, const char *attributes, const char *call)
{
    static char text[2048];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS "define void @culprit(ptr %%p) %s {\n"
                                "  %%q = bitcast ptr %%p to POINTER\n  %%x = load %s, POINTER %%q\n"
                                "  call %s, %s %%x)\n  ret void\n}\n",
             attributes, type, call, type);
    return with_pointer_type(text, "POINTER", type);
}

/* The value is a live value of a stack map. */
static char *with_wide_value(const char *type, const char *attributes)
{
    return with_value(type, attributes,
                      "void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0");
}

/* The value is a live value of a stack map, or an argument of an anyregcc patch point. */
static char *with_live_value(const char *type, bool anyreg)
{
    return anyreg ? with_value(type, "",
                               "anyregcc void (i64, i32, ptr, i32, ...) "
                               "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 1")
                  : with_wide_value(type, "");
}

static const char *const always_refused[] = {
    "i128",      "i65",           "<1 x i64>",  "<3 x i64>", "<4 x i64>",
    "<2 x i32>", "{ i128, i64 }", "[2 x i128]", "ppc_fp128",
};

START_TEST(live_value_that_crashes_is_refused)
{
    /* Some of them are valid on other architectures. */
    const char *type = always_refused[_i];
    assert_refused_rightly(with_live_value(type, false), &x86_64, type, "");
}
END_TEST

/* Whether LLVM crashes depends on the value's origin and on the optimisation level. */
static bool crashes_somehow(const char *type, const char *triple)
{
    for (unsigned i = 0; i < 4; i++) {
        struct judgement judgement = {.triple = triple, .optimisation_level = 2 * (i % 2)};
        const char *text = i < 2 ? with_live_value(type, false) : with_values(1, false, type);
        LLVMModuleRef module = parse_for(text, triple);
        enum support_outcome outcome = compile(module, &judgement);
        LLVMDisposeModule(module);
        if (outcome != SUPPORT_COMPILED)
            return true;
    }
    return false;
}

START_TEST(newer_llvm_takes_more_types)
{
    /* Other architectures accept other types. */
    const char *text = with_live_value("half", false);
    assert_judged(LLVM_SELECTS_LIVE_HALF, text, &x86_64, "half", "float");
    text = with_live_value("bfloat", false);
    assert_judged(LLVM_SELECTS_LIVE_BFLOAT, text, &x86_64, "bfloat", "float");
    text = with_live_value("i1", false);
    if (LLVM_PROMOTES_LIVE_INTEGERS)
        assert_compiles(text, &x86_64);
    else
        assert_says(text, &x86_64, "i1", "extended");
    if (cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64)
        ck_assert_int_eq(crashes_somehow("i1", NULL), !LLVM_PROMOTES_LIVE_INTEGERS);
}
END_TEST

static const struct {
    const char *attributes;
    unsigned vector_bits;
} wide_features[] = {
    {"", 128},
    {"\"target-features\"=\"+sse4.2\"", 128},
    {"\"target-features\"=\"+avx\"", 256},
    {"\"target-features\"=\"+sse2,+avx2,+fma\"", 256},
    {"\"target-features\"=\"+avx2,-avx\"", 128},
    {"\"target-features\"=\"+avx512f\"", 512},
    {"\"target-features\"=\"+avx512vl,+avx512bw\"", 512},
    {"\"target-features\"=\"+avx512f,-avx512f,+avx\"", 256},
    {"\"target-features\"=\"+avx512f,-avx2\"", 256},
    {"\"target-features\"=\"-avx512f,+avx512bw\"", 512},
    {"\"target-features\"=\"+avx512vl,+prefer-256-bit\" \"min-legal-vector-width\"=\"0\"", 256},
    {"\"target-features\"=\"+avx512vl,+prefer-256-bit\" \"min-legal-vector-width\"=\"512\"", 512},
    {"\"target-features\"=\"+avx512vl\" \"min-legal-vector-width\"=\"0\"", 512},
    {"\"target-features\"=\"+avx512vl\" \"min-legal-vector-width\"=\"0\" "
     "\"prefer-vector-width\"=\"256\"",
     256},
};

/* Sizes in bits. LLVM's own verdict is the same. */
START_TEST(wide_vectors_are_judged_by_the_features_of_their_function)
{
    static const struct {
        const char *type;
        unsigned bits;
    } types[] = {{"<4 x i64>", 256},  {"<8 x float>", 256},  {"<32 x i8>", 256},
                 {"<8 x i64>", 512},  {"<8 x double>", 512}, {"<32 x i16>", 512},
                 {"<16 x i64>", 1024}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *text = with_wide_value(types[i].type, wide_features[_i].attributes);
        assert_judged(types[i].bits <= wide_features[_i].vector_bits, text, &x86_64, types[i].type,
                      "+avx");
    }
}
END_TEST

/* By default, big-endian PPC64 has no VSX, and RISC-V no D extension. */
static const struct {
    const char *triple;
    const char *type;
    const char *features;
    const char *without; /* feature with which the type is refused */
} feature_rows[] = {
    {"powerpc64-linux-gnu", "<2 x i64>", "+vsx", ""},
    {"powerpc64-linux-gnu", "<2 x double>", "-vsx,+vsx", "+vsx,-vsx"},
    {"powerpc64-linux-gnu", "fp128", "+altivec,+vsx", "+altivec"},
    {"powerpc64-linux-gnu", "<4 x i32>", "+altivec", "-altivec"},
    {"powerpc64-linux-gnu", "<16 x i8>", "+vsx", "-altivec"},
    {"riscv64-linux-gnu", "double", "+f,+d", LLVM_SELECTS_SOFT_FLOAT ? NULL : ""},
};
enum { FEATURE_ROWS = sizeof feature_rows / sizeof *feature_rows };

static char *with_features(const char *type, const char *features)
{
    char attributes[64];
    snprintf(attributes, sizeof attributes, "\"target-features\"=\"%s\"", features);
    return with_wide_value(type, attributes);
}

START_TEST(registers_that_a_function_must_ask_for_are_judged_by_its_features)
{
    const char *type = feature_rows[_i].type;
    const char *without = feature_rows[_i].without;
    const struct judgement judgement = {.triple = feature_rows[_i].triple};
    if (!has_stackmaps(judgement.triple))
        return;
    assert_compiles(with_features(type, feature_rows[_i].features), &judgement);
    if (without != NULL)
        assert_refused_rightly(with_features(type, without), &judgement, type, "feature");
}
END_TEST

START_TEST(ordinary_live_values_compile)
{
    static const char *const types[] = {"i8",        "i16",
                                        "i32",       "i64",
                                        "ptr",       "float",
                                        "double",    "fp128",
                                        "<4 x i32>", "<2 x double>",
                                        "<16 x i8>", "{ i64, double }",
                                        "[2 x i64]", "ptr addrspace(1)"};
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!LLVM_HAS_OPAQUE_POINTERS && strncmp(types[i], "ptr", 3) == 0)
            continue; /* "ptr*" is not a type there; check_llvm_random.c covers pointers */
        for (unsigned level = 0; level <= 2; level += 2) {
            struct judgement judgement = {.optimisation_level = level};
            assert_compiles(with_live_value(types[i], false), &judgement);
        }
    }
}
END_TEST

static const char *const all_types[] = {"i1",
                                        "i7",
                                        "i8",
                                        "i16",
                                        "i24",
                                        "i32",
                                        "i33",
                                        "i64",
                                        "i65",
                                        "i128",
                                        "half",
                                        "bfloat",
                                        "float",
                                        "double",
                                        "x86_fp80",
                                        "fp128",
                                        "ppc_fp128",
                                        "<1 x i64>",
                                        "<2 x i64>",
                                        "<3 x i64>",
                                        "<4 x i64>",
                                        "<2 x i32>",
                                        "<4 x i32>",
                                        "<3 x i32>",
                                        "<1 x i32>",
                                        "<2 x i8>",
                                        "<4 x i16>",
                                        "<8 x i8>",
                                        "<16 x i8>",
                                        "<32 x i8>",
                                        "<2 x i1>",
                                        "<3 x i1>",
                                        "<16 x i1>",
                                        "<32 x i1>",
                                        "<4 x i24>",
                                        "<2 x i33>",
                                        "<2 x i65>",
                                        "<1 x double>",
                                        "<2 x double>",
                                        "<2 x float>",
                                        "<4 x float>",
                                        "<2 x half>",
                                        "<4 x half>",
                                        "<8 x half>",
                                        "<4 x bfloat>",
                                        "<8 x bfloat>",
                                        "<2 x fp128>",
                                        "{ i64, i128 }",
                                        "{ i128, i64 }",
                                        "{ {}, i64 }",
                                        "{ {}, i128 }",
                                        "{ i8, i64 }",
                                        "[2 x i64]",
                                        "[2 x i8]",
                                        "[2 x { i64, i128 }]",
                                        "[0 x i64]",
                                        "{}",
                                        "[2 x {}]"};
static bool is_refused(const char *text, const char *triple)
{
    LLVMModuleRef module = parse_for(text, triple);
    enum cairn_status status = cairn_check_module(module, NULL, NULL);
    LLVMDisposeModule(module);
    return status != CAIRN_OK;
}

static void append_function(char **out, const char *type, unsigned number)
{
    *out +=
        sprintf(*out,
                "define void @f%u(%s %%x) {\n"
                "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, %s %%x)\n"
                "  ret void\n}\n",
                number, type, type);
}

/* On PPC64, LLVM 14 keeps a comparison's result in a condition register unless an instruction uses
 * it otherwise. No test relies on that. */
static bool is_condition(const char *type, const char *triple)
{
    return strcmp(type, "i1") == 0 && strncmp(triple, "powerpc", strlen("powerpc")) == 0;
}

/* LLVM compiles it, but leaves it out of the record. */
static bool is_unrecorded(const char *type, const char *triple)
{
    return strcmp(type, "x86_fp80") == 0 && strncmp(triple, "x86_64", strlen("x86_64")) == 0;
}

START_TEST(live_values_on_the_x87_stack_are_refused)
{
    const char *fp80 = "x86_fp80";
    assert_says(with_live_value(fp80, false), &x86_64, "does not record", "a double");
    assert_says(with_live_value(fp80, true), &x86_64, "does not record", "a double");
    assert_says(with_live_value("[2 x x86_fp80]", false), &x86_64, "does not record", "a double");
}
END_TEST

START_TEST(types_are_refused_that_crash_and_no_others)
{
    static char accepted[32768];
    const char *triple = all_triples[_i];
    char *out = accepted + sprintf(accepted, SUPPORT_INTRINSICS);
    if (!support_has_target(triple))
        return;
    for (unsigned i = 0; i < sizeof all_types / sizeof *all_types; i++) {
        const char *type = all_types[i];
        if (!is_refused(with_live_value(type, false), triple))
            append_function(&out, type, i);
        else if (!is_condition(type, triple) && !is_unrecorded(type, triple))
            ck_assert_msg(crashes_somehow(type, triple), "LLVM %d compiles %s for %s",
                          LLVM_VERSION_MAJOR, type, triple);
    }
    for (unsigned level = 0; level <= 2; level += 2) {
        struct judgement judgement = {.triple = triple, .optimisation_level = level};
        assert_compiles(accepted, &judgement);
    }
}
END_TEST

START_TEST(arguments_in_any_register_are_judged_like_live_values)
{
    assert_refused_rightly(with_live_value("i128", true), &usual, "i128", "64-bit halves");
    assert_compiles(with_live_value("i64", true), &usual);
    assert_compiles(with_live_value("double", true), &usual);
}
END_TEST

START_TEST(small_integers_crash_old_llvm_elsewhere)
{
    static const char *const triples[] = {"aarch64-linux-gnu", "powerpc64le-linux-gnu",
                                          "s390x-linux-gnu"};
    struct judgement judgement = {.triple = triples[_i]};
    const char *text = with_live_value("i8", false);
    if (LLVM_PROMOTES_LIVE_INTEGERS)
        assert_compiles(text, &judgement);
    else
        assert_says(text, &judgement, "i8", "extended");
    if (support_has_target(triples[_i]))
        ck_assert_int_eq(crashes_somehow("i8", triples[_i]), !LLVM_PROMOTES_LIVE_INTEGERS);
}
END_TEST

/* ---- Types of other architectures ---- */

/* Functions that use x86_fp80, and whether they compute with it. */
static const struct {
    const char *text;
    const char *instruction; /* part of the one that is refused */
    bool computes;
} x87_rows[] = {
    {"define void @culprit(x86_fp80 %x) {\n  ret void\n}\n", "ret", false},
    {"define x86_fp80 @culprit(x86_fp80 %x) {\n  ret x86_fp80 %x\n}\n", "ret", false},
    {"define void @culprit(<2 x x86_fp80> %x) {\n  ret void\n}\n", "ret", false},
    {"define void @culprit({ i8, [2 x x86_fp80] } %x) {\n  ret void\n}\n", "ret", false},
    {"define x86_fp80 @culprit(POINTER %p) {\n  %x = load x86_fp80, POINTER %p\n"
     "  ret x86_fp80 %x\n}\n",
     "load", false},
    {"define void @culprit(POINTER %p) {\n"
     "  store x86_fp80 0xK3FFF8000000000000000, POINTER %p\n  ret void\n}\n",
     "store", false},
    {"declare x86_fp80 @callee()\n"
     "define x86_fp80 @culprit() {\n  %x = call x86_fp80 @callee()\n  ret x86_fp80 %x\n}\n",
     "call", false},
    {"define x86_fp80 @culprit() {\n  ret x86_fp80 0xK3FFF8000000000000000\n}\n", "ret", false},
    {"declare x86_fp80 @llvm.fabs.f80(x86_fp80)\n"
     "define x86_fp80 @culprit(x86_fp80 %x) {\n"
     "  %r = call x86_fp80 @llvm.fabs.f80(x86_fp80 %x)\n  ret x86_fp80 %r\n}\n",
     "call", false},
    {"define x86_fp80 @culprit(x86_fp80 %x) {\n  %r = fdiv x86_fp80 %x, %x\n"
     "  ret x86_fp80 %r\n}\n",
     "fdiv", true},
    {"define i1 @culprit(x86_fp80 %x, x86_fp80 %y) {\n  %r = fcmp olt x86_fp80 %x, %y\n"
     "  ret i1 %r\n}\n",
     "fcmp", true},
    {"define x86_fp80 @culprit(i64 %x) {\n  %r = sitofp i64 %x to x86_fp80\n"
     "  ret x86_fp80 %r\n}\n",
     "sitofp", true},
    {"define double @culprit(x86_fp80 %x) {\n  %r = fptrunc x86_fp80 %x to double\n"
     "  ret double %r\n}\n",
     "fptrunc", true},
    {"declare x86_fp80 @llvm.sqrt.f80(x86_fp80)\n"
     "define x86_fp80 @culprit(x86_fp80 %x) {\n"
     "  %r = call x86_fp80 @llvm.sqrt.f80(x86_fp80 %x)\n  ret x86_fp80 %r\n}\n",
     "call", true},
    {"define <2 x x86_fp80> @culprit(<2 x x86_fp80> %x) {\n"
     "  %r = fadd <2 x x86_fp80> %x, %x\n  ret <2 x x86_fp80> %r\n}\n",
     "fadd", true},
};
enum { X87_ROWS = sizeof x87_rows / sizeof *x87_rows };

/* On AArch64, LLVM crashes on all that is refused, except that 15 compiles some of it, and 16 to 19
 * some computations, to calls of functions that no library has. */
START_TEST(x86_fp80_is_refused_where_llvm_has_no_code_for_it)
{
    const char *text = with_pointer_type(x87_rows[_i].text, "POINTER", "x86_fp80");
    bool computes = x87_rows[_i].computes;
    bool crashes = LLVM_VERSION_MAJOR < 15 || LLVM_VERSION_MAJOR >= 22;
    assert_compiles(text, &x86_64);
    for (size_t i = 1; i < ALL_TRIPLES; i++) {
        const char *triple = all_triples[i];
        bool is_systemz = strcmp(triple, "s390x-linux-gnu") == 0;
        for (unsigned level = 0; level <= 2; level += 2) {
            struct judgement judgement = {.triple = triple, .optimisation_level = level};
            if (!computes && !is_systemz && LLVM_STORES_FOREIGN_FP80) {
                assert_compiles(text, &judgement);
                continue;
            }
            assert_says_of(x87_rows[_i].instruction, text, &judgement, "x86_fp80", "pointer");
            if (crashes && strcmp(triple, aarch64.triple) == 0)
                assert_crashes(text, &judgement);
        }
    }
}
END_TEST

/* ---- Wide constants ---- */

/* The 64 bits of a record of which the sign extension is the constant of 128 bits. */
static const struct {
    const char *value;
    bool is_whole;
} wide_constants[] = {
    {"0", true},
    {"1", true},
    {"-1", true},
    {"2147483648", true},
    {"4294967296", true},
    {"9223372036854775807", true},
    {"-9223372036854775808", true},
    {"9223372036854775808", false},
    {"18446744073709551615", false},
    {"18446744073709551616", false},
    {"-9223372036854775809", false},
    {"-18446744073709551616", false},
    {"170141183460469231731687303715884105727", false},
};

static const char *with_wide_constant(const char *type, const char *value, bool is_patchpoint)
{
    static char text[1024];
    char values[128];
    snprintf(values, sizeof values, ", %s %s", type, value);
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS "define void @culprit() {\n  call void %s%s)\n"
                                "  ret void\n}\n",
             is_patchpoint ? "(i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, "
                             "i32 16, ptr null, i32 0"
                           : "(i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0",
             values);
    return text;
}

static void assert_taken(const char *text, const struct judgement *judgement)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    ck_assert_ok(check(module, judgement, NULL));
    LLVMDisposeModule(module);
}

START_TEST(wide_constants_are_refused_that_records_cannot_have)
{
    static const char *const triples[] = {"x86_64-linux-gnu", "aarch64-linux-gnu",
                                          "powerpc64le-linux-gnu"};
    static const struct {
        const char *type;
        unsigned bits;
    } types[] = {{"i128", 128}, {"i129", 129}};
    unsigned level = 2 * (unsigned)_i;
    for (size_t i = 0; i < sizeof wide_constants / sizeof *wide_constants; i++)
        for (unsigned j = 0; j < 2 * 3 * 2; j++) {
            const char *value = wide_constants[i].value;
            struct judgement judgement = {.triple = triples[j / 4], .optimisation_level = level};
            const char *text = with_wide_constant(types[j % 2].type, value, j / 2 % 2);
            bool is_recorded =
                value[0] != '-' || types[j % 2].bits <= LLVM_NEGATIVE_CONSTANT_BITS_MAX;
            if (!wide_constants[i].is_whole)
                assert_says(text, &judgement, "low 64 bits", "64-bit halves");
            else if (!is_recorded)
                assert_says(text, &judgement, "negative", "64-bit halves");
            else if (j < 4)
                assert_compiles(text, &judgement);
            else
                assert_taken(text, &judgement);
        }
}
END_TEST

START_TEST(arguments_and_undefined_values_that_are_wide_stay_refused)
{
    static const char argument[] = SUPPORT_INTRINSICS
        "define void @culprit() {\n"
        "  call anyregcc void (i64, i32, ptr, i32, ...) "
        "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 1, i128 -1)\n"
        "  ret void\n}\n";
    assert_refused_rightly(argument, &usual, "i128", "64-bit halves");
    assert_refused_rightly(with_wide_constant("i128", "undef", false), &usual, "i128",
                           "64-bit halves");
    assert_compiles(STATEPOINT_DECLARATION "declare void @callee()\n"
                                           "define void @culprit() gc \"statepoint-example\" {\n"
                                           "  %t = " STATEPOINT_CALL
                                           " [\"deopt\"(i128 18446744073709551616, i128 undef)]\n"
                                           "  ret void\n}\n",
                    &usual);
}
END_TEST

/* ---- RISC-V ---- */

START_TEST(stackmaps_are_refused_where_llvm_has_none)
{
    const char *text = with_live_value("i64", false);
    assert_judged(LLVM_HAS_RISCV_STACKMAPS, text, &riscv64, "RISC-V", "without them");
}
END_TEST

static void add_tests(TCase *tests)
{
    enum { REFUSED = sizeof always_refused / sizeof *always_refused };
    tcase_add_loop_test(tests, live_value_that_crashes_is_refused, 0, REFUSED);
    tcase_add_test(tests, newer_llvm_takes_more_types);
    tcase_add_loop_test(tests, wide_vectors_are_judged_by_the_features_of_their_function, 0,
                        sizeof wide_features / sizeof *wide_features);
    tcase_add_loop_test(tests, registers_that_a_function_must_ask_for_are_judged_by_its_features, 0,
                        FEATURE_ROWS);
    tcase_add_test(tests, ordinary_live_values_compile);
    tcase_add_test(tests, live_values_on_the_x87_stack_are_refused);
    tcase_add_loop_test(tests, types_are_refused_that_crash_and_no_others, 0, ALL_TRIPLES);
    tcase_add_test(tests, arguments_in_any_register_are_judged_like_live_values);
    tcase_add_loop_test(tests, small_integers_crash_old_llvm_elsewhere, 0, 3);
    tcase_add_loop_test(tests, x86_fp80_is_refused_where_llvm_has_no_code_for_it, 0, X87_ROWS);
    tcase_add_loop_test(tests, wide_constants_are_refused_that_records_cannot_have, 0, 2);
    tcase_add_test(tests, arguments_and_undefined_values_that_are_wide_stay_refused);
    tcase_add_test(tests, stackmaps_are_refused_where_llvm_has_none);
}

int main(void) { return check_main("llvm check types", add_tests); }
