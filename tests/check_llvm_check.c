/*
 * Tests of cairn_check_module: modules that it refuses crash the LLVM in use, and similar modules
 * that it accepts compile.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"
#include "llvm/version.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Object.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LLVMContextRef context;

static void set_up(void) { context = LLVMContextCreate(); }
static void tear_down(void) { LLVMContextDispose(context); }

/* ---- Checking and compiling ---- */

struct judgement {
    const char *triple;
    unsigned optimisation_level;
    enum cairn_liveness liveness;
    bool fills_memory;
    bool uses_fast_isel;
};

static LLVMModuleRef parse_for(const char *text, const char *triple)
{
    LLVMModuleRef module = support_parse(context, text);
    if (triple != NULL)
        LLVMSetTarget(module, triple);
    return module;
}

static enum support_outcome compile(LLVMModuleRef module, const struct judgement *judgement)
{
    struct support_compilation compilation = {.triple = judgement->triple,
                                              .optimisation_level = judgement->optimisation_level,
                                              .liveness = judgement->liveness,
                                              .uses_fast_isel = judgement->uses_fast_isel,
                                              .is_confined = judgement->fills_memory};
    return support_compile(module, &compilation);
}

static enum cairn_status check(LLVMModuleRef module, const struct judgement *judgement,
                               struct cairn_error *error)
{
    struct cairn_check_options options = {.liveness = judgement->liveness,
                                          .enable_fast_isel = judgement->uses_fast_isel,
                                          .optimisation_level = judgement->optimisation_level};
    return cairn_check_module(module, &options, error);
}

#if LLVM_HAS_OPAQUE_POINTERS
#define SYMBOL_TARGET "ptr @symbol"
#else
#define SYMBOL_TARGET "i8* bitcast (void ()* @symbol to i8*)"
#endif

static const struct judgement usual = {0};

/* Asserts that the module is refused, with an error message that names the function, the
 * instruction, the reason and the remedy. */
static void assert_says_of(const char *instruction, const char *text,
                           const struct judgement *judgement, const char *why, const char *instead)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    struct cairn_error error = {0};
    ck_assert_int_eq(check(module, judgement, &error), CAIRN_ERROR_LLVM);
    const char *const parts[] = {"'culprit'", instruction, why, "; write ", instead};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(error.message, parts[i]) != NULL, "no \"%s\" in: %s", parts[i],
                      error.message);
    LLVMDisposeModule(module);
}

static void assert_says(const char *text, const struct judgement *judgement, const char *why,
                        const char *instead)
{
    assert_says_of("call", text, judgement, why, instead);
}

#ifdef __SANITIZE_ADDRESS__
enum { MAY_FILL_MEMORY = 0 };
#else
enum { MAY_FILL_MEMORY = 1 };
#endif

/* Undefined behaviour in LLVM need not crash the LLVM of another host: the crashes were observed on
 * x86-64. */
static void assert_crashes(const char *text, const struct judgement *judgement)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return;
    if (judgement->triple != NULL && !support_has_target(judgement->triple))
        return;
    if (judgement->fills_memory && !MAY_FILL_MEMORY)
        return;
    LLVMModuleRef module = parse_for(text, judgement->triple);
    enum support_outcome outcome = compile(module, judgement);
    ck_assert_msg(outcome != SUPPORT_COMPILED, "LLVM %d compiles this:\n%s", LLVM_VERSION_MAJOR,
                  text);
    LLVMDisposeModule(module);
}

static void assert_refused_rightly(const char *text, const struct judgement *judgement,
                                   const char *why, const char *instead)
{
    assert_says(text, judgement, why, instead);
    assert_crashes(text, judgement);
}

static void assert_compiles(const char *text, const struct judgement *judgement)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    struct cairn_error error = {0};
    enum cairn_status status = check(module, judgement, &error);
    ck_assert_msg(status == CAIRN_OK, "%s\n%s", error.message, text);
    if (judgement->triple == NULL || support_has_target(judgement->triple))
        ck_assert_msg(compile(module, judgement) == SUPPORT_COMPILED, "LLVM %d crashes on\n%s",
                      LLVM_VERSION_MAJOR, text);
    LLVMDisposeModule(module);
}

/* ---- Types of live values ---- */

/* Returns the text with a pointer to the type for each `word`. */
static char *with_pointer_type(const char *text, const char *word, const char *type)
{
    static char result[8192];
    char *out = result;
    char pointer[64] = "ptr";
    if (!LLVM_HAS_OPAQUE_POINTERS)
        snprintf(pointer, sizeof pointer, "%s*", type);
    for (const char *in = text; *in != '\0';) {
        if (strncmp(in, word, strlen(word)) == 0) {
            out = stpcpy(out, pointer);
            in += strlen(word);
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    return result;
}

/* Builds a stack map and an anyregcc patch point, each with one live value of the type, which is an
 * argument of the function. */
static char *with_live_value(const char *type, bool anyreg)
{
    static char text[2048];
    if (anyreg)
        snprintf(text, sizeof text,
                 SUPPORT_INTRINSICS
                 "define void @culprit(ptr %%p) {\n"
                 "  %%q = bitcast ptr %%p to POINTER\n  %%x = load %s, POINTER %%q\n"
                 "  call anyregcc void (i64, i32, ptr, i32, ...) "
                 "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 1, %s %%x)\n"
                 "  ret void\n}\n",
                 type, type);
    else
        snprintf(text, sizeof text,
                 SUPPORT_INTRINSICS
                 "define void @culprit(ptr %%p) {\n"
                 "  %%q = bitcast ptr %%p to POINTER\n  %%x = load %s, POINTER %%q\n"
                 "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, %s %%x)\n"
                 "  ret void\n}\n",
                 type, type);
    return with_pointer_type(text, "POINTER", type);
}

static const char *const always_refused[] = {
    "i128",      "i65",           "<1 x i64>",  "<3 x i64>", "<4 x i64>",
    "<2 x i32>", "{ i128, i64 }", "[2 x i128]", "ppc_fp128",
};

START_TEST(live_value_that_crashes_is_refused)
{
    /* Some of them are valid on other architectures. */
    const struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    const char *type = always_refused[_i];
    assert_refused_rightly(with_live_value(type, false), &x86_64, type, "");
}
END_TEST

static char *with_values(unsigned count, bool anyreg, const char *type);

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
    const struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    const char *text = with_live_value("half", false);
    if (LLVM_SELECTS_LIVE_HALF)
        assert_compiles(text, &x86_64);
    else
        assert_refused_rightly(text, &x86_64, "half", "float");
    text = with_live_value("bfloat", false);
    if (LLVM_SELECTS_LIVE_BFLOAT)
        assert_compiles(text, &x86_64);
    else
        assert_refused_rightly(text, &x86_64, "bfloat", "float");
    text = with_live_value("i1", false);
    if (LLVM_PROMOTES_LIVE_INTEGERS)
        assert_compiles(text, &x86_64);
    else
        assert_says(text, &x86_64, "i1", "extended");
    if (cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64)
        ck_assert_int_eq(crashes_somehow("i1", NULL), !LLVM_PROMOTES_LIVE_INTEGERS);
}
END_TEST

static char *with_wide_value(const char *type, const char *attributes)
{
    static char text[2048];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define void @culprit(ptr %%p) %s {\n"
             "  %%q = bitcast ptr %%p to POINTER\n  %%x = load %s, POINTER %%q\n"
             "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, %s %%x)\n"
             "  ret void\n}\n",
             attributes, type, type);
    return with_pointer_type(text, "POINTER", type);
}

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
    const struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *text = with_wide_value(types[i].type, wide_features[_i].attributes);
        if (types[i].bits <= wide_features[_i].vector_bits)
            assert_compiles(text, &x86_64);
        else
            assert_refused_rightly(text, &x86_64, types[i].type, "+avx");
    }
}
END_TEST

static bool has_stackmaps(const char *triple)
{
    return strncmp(triple, "riscv", 5) != 0 || LLVM_HAS_RISCV_STACKMAPS;
}

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
    static const char *const types[] = {
        "i8",
        "i16",
        "i32",
        "i64",
        "ptr",
        "float",
        "double",
        "x86_fp80",
        "fp128",
        "<4 x i32>",
        "<2 x double>",
        "<16 x i8>",
        "{ i64, double }",
        "[2 x i64]",
        "ptr addrspace(1)",
    };
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

static const char *const all_types[] = {
    "i1",
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
    "[2 x {}]",
};
static const char *const all_triples[] = {"x86_64-linux-gnu",      "aarch64-linux-gnu",
                                          "powerpc64le-linux-gnu", "powerpc64-linux-gnu",
                                          "s390x-linux-gnu",       "riscv64-linux-gnu"};
enum { ALL_TRIPLES = sizeof all_triples / sizeof *all_triples };

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
        else if (!is_condition(type, triple))
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

/* ---- Registers ---- */

static char *with_values(unsigned count, bool anyreg, const char *type)
{
    static char text[16384];
    char *out = text + sprintf(text, SUPPORT_INTRINSICS "define void @culprit(");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, "%s%s %%x%u", i == 0 ? "" : ", ", type, i);
    out += sprintf(out, ") {\n");
    if (anyreg)
        out += sprintf(out,
                       "  call anyregcc void (i64, i32, ptr, i32, ...) "
                       "@llvm.experimental.patchpoint.void(i64 1, i32 64, ptr null, i32 %u",
                       count);
    else
        out += sprintf(out, "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0");
    for (unsigned i = 0; i < count; i++)
        out += sprintf(out, ", %s %%x%u", type, i);
    sprintf(out, ")\n  ret void\n}\n");
    return text;
}

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
    {"x86_64-linux-gnu", "x86_fp80", 7, 8},
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
    struct judgement level_0 = {.triple = triple};
    struct judgement optimised = {.triple = triple, .optimisation_level = 2};
    if (!has_stackmaps(triple))
        return;
    assert_compiles(with_values(fit, false, type), &level_0);
    assert_says(with_values(fit + 1, false, type), &level_0, "registers", "-O1");
    assert_refused_rightly(with_values(crash, false, type), &level_0, "registers", "-O1");
    assert_compiles(with_values(crash, false, type), &optimised);
    assert_compiles(with_values(fit, true, type), &optimised);
    assert_says(with_values(fit + 1, true, type), &optimised, "anyregcc", "at most");
    assert_refused_rightly(with_values(crash, true, type), &optimised, "anyregcc", "at most");
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

START_TEST(arguments_take_registers_of_their_own)
{
    static const char *const arguments[] = {"i64 %a", "i64 7", "i64 undef"};
    const char *argument = arguments[_i];
    struct judgement level_0 = {.triple = "x86_64-linux-gnu"};
    struct judgement optimised = {.triple = "x86_64-linux-gnu", .optimisation_level = 2};
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
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
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
    for (int i = 0; i < 36; i++)
        out += sprintf(out, "%s%s %%x%d", i == 0 ? "" : ", ",
                       i < 13   ? "i64"
                       : i < 29 ? "double"
                                : "x86_fp80",
                       i);
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
 * order of `result_triples`. */
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
    {"half", "f16", LLVM_SELECTS_LIVE_HALF_ANYWHERE ? "..xx.x" : "..xxxx"},
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
    static const char *const result_triples[] = {"x86_64-linux-gnu",      "aarch64-linux-gnu",
                                                 "powerpc64le-linux-gnu", "powerpc64-linux-gnu",
                                                 "s390x-linux-gnu",       "riscv64-linux-gnu"};
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
    for (size_t i = 0; i < sizeof result_triples / sizeof *result_triples; i++)
        for (unsigned level = 0; level <= 2; level += 2) {
            struct judgement judgement = {.triple = result_triples[i], .optimisation_level = level};
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

/* ---- Bytes ---- */

static char *with_bytes(const char *bytes, const char *target)
{
    static char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define void @culprit() {\n"
             "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 "
             "%s, ptr %s, i32 0)\n"
             "  ret void\n}\n",
             bytes, target);
    return text;
}

#define FAR_TARGET "inttoptr (i64 20015998343868 to ptr)"

/* The section's bytes, valid as long as the binary; empty if there is no such section. */
static struct cairn_section find_section(LLVMBinaryRef binary, const char *name)
{
    struct cairn_section found = {0};
    LLVMSectionIteratorRef section = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMObjectFileIsSectionIteratorAtEnd(binary, section); LLVMMoveToNextSection(section))
        if (LLVMGetSectionName(section) != NULL && strcmp(LLVMGetSectionName(section), name) == 0)
            found =
                (struct cairn_section){.bytes = (const uint8_t *)LLVMGetSectionContents(section),
                                       .size = LLVMGetSectionSize(section),
                                       .byte_order = CAIRN_LITTLE_ENDIAN};
    LLVMDisposeSectionIterator(section);
    return found;
}

static size_t code_size(const char *text, const char *triple)
{
    const struct support_compilation compilation = {.triple = triple,
                                                    .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    LLVMModuleRef module = parse_for(text, triple);
    LLVMMemoryBufferRef object = support_compile_to_memory(module, &compilation);
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    ck_assert_ptr_nonnull(binary);
    size_t size = find_section(binary, ".text").size;
    ck_assert_uint_gt(size, 0);
    LLVMDisposeBinary(binary);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(module);
    return size;
}

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
    size_t refused = code_size(with_bytes(byte_rows[_i].refused, byte_rows[_i].target), triple);
    size_t written = code_size(with_bytes(byte_rows[_i].written, byte_rows[_i].target), triple);
    ck_assert_uint_eq(refused, written);
}
END_TEST

/* This limit is Cairn's own. Above it LLVM is slow and finally runs out of memory. */
/* check_llvm_sequences.c tests that LLVM's code for these is wrong. */
START_TEST(symbols_as_targets_are_refused_where_llvm_cannot_call_them)
{
    static const struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
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
    static const struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    assert_compiles(symbol, &x86_64);
    assert_compiles(integer, &aarch64);
    static const struct judgement riscv64 = {.triple = "riscv64-linux-gnu"};
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

/* ---- Statepoints ---- */

#if LLVM_HAS_OPAQUE_POINTERS
#define STATEPOINT_DECLARATION                                                                     \
    "declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)\n"
#define STATEPOINT_CALL                                                                            \
    "call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, " \
    "ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0)"
#define TRANSITION_CALL                                                                            \
    "call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, " \
    "ptr elementtype(void ()) @callee, i32 0, i32 1, i32 0, i32 0)"
#define LIVE_IN_CALL                                                                               \
    "call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, " \
    "ptr elementtype(void ()) @callee, i32 0, i32 2, i32 0, i32 0)"
#define RELOCATE "@llvm.experimental.gc.relocate.p1"
#else
#define STATEPOINT_DECLARATION                                                                     \
    "declare token @llvm.experimental.gc.statepoint.p0f_isVoidf(i64, i32, void ()*, i32, i32, "    \
    "...)\n"
#define STATEPOINT_CALL                                                                            \
    "call token (i64, i32, void ()*, i32, i32, ...) "                                              \
    "@llvm.experimental.gc.statepoint.p0f_isVoidf(i64 1, i32 0, void ()* @callee, i32 0, i32 0, "  \
    "i32 0, i32 0)"
#define TRANSITION_CALL                                                                            \
    "call token (i64, i32, void ()*, i32, i32, ...) "                                              \
    "@llvm.experimental.gc.statepoint.p0f_isVoidf(i64 1, i32 0, void ()* @callee, i32 0, i32 1, "  \
    "i32 0, i32 0)"
#define LIVE_IN_CALL                                                                               \
    "call token (i64, i32, void ()*, i32, i32, ...) "                                              \
    "@llvm.experimental.gc.statepoint.p0f_isVoidf(i64 1, i32 0, void ()* @callee, i32 0, i32 2, "  \
    "i32 0, i32 0)"
#define RELOCATE "@llvm.experimental.gc.relocate.p1i8"
#endif
#define STATEPOINT                                                                                 \
    STATEPOINT_DECLARATION "declare void @callee()\n"                                              \
                           "define void @culprit() gc \"statepoint-example\" {\n"                  \
                           "  %t = " STATEPOINT_CALL "\n  ret void\n}\n"

START_TEST(statepoints_are_refused_where_llvm_cannot_select_them)
{
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
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
        for (unsigned level = 0; level <= 2; level += 2) {
            struct judgement x86_64 = {.triple = "x86_64-linux-gnu", .optimisation_level = level};
            struct judgement aarch64 = {.triple = "aarch64-linux-gnu", .optimisation_level = level};
            assert_compiles(with_deopt_value(types[i]), &x86_64);
            assert_compiles(with_deopt_value(types[i]), &aarch64);
        }
}
END_TEST

START_TEST(statepoints_cannot_store_nothing)
{
    static const char *const types[] = {"{}", "[0 x i64]", "[2 x {}]", "{ [0 x i64], {} }"};
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
    assert_refused_rightly(with_deopt_value(types[_i]), &x86_64, "live value", "nothing");
    assert_refused_rightly(with_deopt_value(types[_i]), &aarch64, "live value", "nothing");
}
END_TEST

START_TEST(statepoints_store_no_types_of_other_machines)
{
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
    static const char *const x87[] = {"x86_fp80", "{ x86_fp80, i64 }", "<2 x x86_fp80>"};
    for (size_t i = 0; i < sizeof x87 / sizeof *x87; i++) {
        assert_compiles(with_deopt_value(x87[i]), &x86_64);
        if (LLVM_STORES_FOREIGN_FP80)
            assert_compiles(with_deopt_value(x87[i]), &aarch64);
        else
            assert_refused_rightly(with_deopt_value(x87[i]), &aarch64, "x86_fp80", "pointer");
    }
    assert_refused_rightly(with_deopt_value("<vscale x 2 x i64>"), &x86_64, "vscale", "pointer");
    if (LLVM_STORES_BFLOAT)
        assert_compiles(with_deopt_value("bfloat"), &x86_64);
    else
        assert_refused_rightly(with_deopt_value("bfloat"), &x86_64, "bfloat", "pointer");
    if (LLVM_SELECTS_LIVE_BFLOAT)
        assert_compiles(with_deopt_value("<4 x bfloat>"), &x86_64);
    else
        assert_refused_rightly(with_deopt_value("<4 x bfloat>"), &x86_64, "bfloat", "pointer");
}
END_TEST

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
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
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
    struct judgement level_0 = {.triple = "x86_64-linux-gnu"};
    struct judgement optimised = {.triple = "x86_64-linux-gnu", .optimisation_level = 2};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
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
    assert_compiles(with_values_live_in(1, "x86_fp80", false), &optimised);
    assert_refused_rightly(with_values_live_in(1, "x86_fp80", true), &optimised, "x86_fp80",
                           "bit 1");
    assert_refused_rightly(with_values_live_in(2, "x86_fp80", false), &optimised, "x86_fp80",
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

/* Counts the records, except those of the function `other`. */
static unsigned count_records(const char *text, const struct judgement *judgement)
{
    const struct support_compilation compilation = {.triple = judgement->triple,
                                                    .optimisation_level =
                                                        judgement->optimisation_level,
                                                    .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    LLVMModuleRef module = parse_for(text, judgement->triple);
    LLVMMemoryBufferRef object = support_compile_to_memory(module, &compilation);
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    ck_assert_ptr_nonnull(binary);
    struct cairn_section section = find_section(binary, ".llvm_stackmaps");
    struct cairn_stackmap map;
    size_t offset = 0;
    ck_assert_ok(cairn_stackmap_read(&section, &offset, &map, NULL));
    LLVMDisposeBinary(binary);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(module);
    return map.record_count - 1;
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
                              are_left_out ? 0 : deopt_rows[_i].records);
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
                              library_rows[_i].is_replaced ? 0 : 1);
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

/* ---- Liveness ---- */

#define STACKMAP(values)                                                                           \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0" values ")\n"
#define PATCHPOINT(bytes, target, values)                                                          \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 2, i32 " bytes   \
    ", ptr " target ", i32 0" values ")\n"

#define CALL_BEHIND_PATCHPOINT                                                                     \
    SUPPORT_INTRINSICS                                                                             \
    "declare void @anything()\n"                                                                   \
    "define void @culprit() {\n"                                                                   \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, "     \
    "ptr null, i32 0)\n"                                                                           \
    "  call void @anything()\n"                                                                    \
    "  ret void\n}\n"

START_TEST(kept_liveness_refuses_calls_behind_patchpoints)
{
    struct judgement keep = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement off = {.triple = "x86_64-linux-gnu"};
    struct judgement by_host = {.triple = "x86_64-linux-gnu",
                                .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    assert_refused_rightly(CALL_BEHIND_PATCHPOINT, &keep, "liveness", "CAIRN_LIVENESS_OFF");
    assert_compiles(CALL_BEHIND_PATCHPOINT, &off);
    LLVMModuleRef module = parse_for(CALL_BEHIND_PATCHPOINT, by_host.triple);
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
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    assert_refused_rightly(text, &x86_64, "floating point", "CAIRN_LIVENESS_OFF");
    if (LLVM_HAS_LIVE_FPCR)
        assert_refused_rightly(text, &aarch64, "floating point", "CAIRN_LIVENESS_OFF");
    else
        assert_compiles(text, &aarch64);
    x86_64.liveness = CAIRN_LIVENESS_OFF;
    aarch64.liveness = CAIRN_LIVENESS_OFF;
    assert_compiles(text, &x86_64);
    assert_compiles(text, &aarch64);
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
    struct judgement x86_64 = {.triple = "x86_64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement aarch64 = {.triple = "aarch64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    assert_compiles(with_patchpoint_before(harmless[_i]), &x86_64);
    assert_compiles(with_patchpoint_before(harmless[_i]), &aarch64);
}
END_TEST

START_TEST(kept_liveness_takes_calls_on_other_architectures)
{
    static const char *const triples[] = {"aarch64-linux-gnu", "powerpc64le-linux-gnu",
                                          "s390x-linux-gnu"};
    struct judgement keep = {.triple = triples[_i], .liveness = CAIRN_LIVENESS_KEEP};
    assert_compiles(CALL_BEHIND_PATCHPOINT, &keep);
    if (_i > 0)
        for (size_t i = 0; i < FLOATING_POINT_COUNT; i++)
            assert_compiles(with_patchpoint_before(floating_point[i]), &keep);
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

static const char guard[] = "declare void @llvm.experimental.guard(i1, ...)\n"
                            "define void @culprit(i32 %x, i1 %c) {\n"
                            "  call void (i1, ...) @llvm.experimental.guard(i1 %c) "
                            "[\"deopt\"(i32 %x)]\n  ret void\n}\n";
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

START_TEST(intrinsics_without_code_are_refused)
{
    const char *triple = triples_with_statepoints[_i / 2];
    unsigned level = 2 * ((unsigned)_i % 2);
    for (int uses_fast_isel = 0; uses_fast_isel < 2; uses_fast_isel++) {
        assert_refused_at(guard, triple, level, uses_fast_isel, "guards", "deoptimize");
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

static bool has_section(const char *text, const char *name)
{
    const struct support_compilation compilation = {.triple = "x86_64-linux-gnu",
                                                    .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    LLVMModuleRef module = parse_for(text, compilation.triple);
    LLVMMemoryBufferRef object = support_compile_to_memory(module, &compilation);
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    ck_assert_ptr_nonnull(binary);
    bool has = find_section(binary, name).size > 0;
    LLVMDisposeBinary(binary);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(module);
    return has;
}

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
            ck_assert(!has_section(text, ".gcc_except_table"));
    }
    ck_assert(has_section(with_pad(SUPPORT_PERSONALITY, "{ ptr, i32 }", "ret void"),
                          ".gcc_except_table"));
}
END_TEST

/* ---- Invalid IR ---- */

static const char *const invalid[] = {
    /* A use before the definition. */
    "define i64 @culprit(i64 %x) {\n  %a = add i64 %b, 1\n  %b = add i64 %x, 1\n  ret i64 %a\n}\n",
    /* A phi that lacks a predecessor. */
    "define i64 @culprit(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  br label %b\n"
    "b:\n  %r = phi i64 [ 1, %a ]\n  ret i64 %r\n}\n",
    /* An invoke without a personality. */
    "declare void @anything()\n"
    "define void @culprit() {\n  invoke void @anything() to label %fine unwind label %pad\n"
    "pad:\n  %e = landingpad { ptr, i32 } cleanup\n  ret void\nfine:\n  ret void\n}\n",
    /* The entry block has no predecessors. */
    "define void @culprit() {\nentry:\n  br label %entry\n}\n",
};
enum { INVALID = sizeof invalid / sizeof *invalid };

START_TEST(invalid_modules_are_refused_with_the_verifiers_words)
{
    LLVMModuleRef module = parse_for(invalid[_i], NULL);
    struct cairn_error error = {0};
    char *expected = NULL;
    ck_assert_int_ne(LLVMVerifyModule(module, LLVMReturnStatusAction, &expected), 0);
    expected[strcspn(expected, "\n")] = '\0';
    ck_assert_int_eq(cairn_check_module(module, NULL, &error), CAIRN_ERROR_LLVM);
    ck_assert_ptr_eq(strstr(error.message, "LLVM's verifier says: "), error.message);
    ck_assert_msg(strstr(error.message, expected) != NULL, "%s", error.message);
    LLVMDisposeMessage(expected);

    cairn_runtime *runtime;
    cairn_engine *engine = NULL;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    LLVMSetTarget(module, "");
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, &engine, &error), CAIRN_ERROR_LLVM);
    ck_assert_ptr_nonnull(strstr(error.message, "verifier"));
    cairn_runtime_destroy(runtime);
    LLVMDisposeModule(module);
}
END_TEST

/* ---- GC strategies ---- */

static const char *with_strategy(const char *strategy)
{
    static char text[512];
    snprintf(text, sizeof text, "define i64 @culprit(i64 %%x) gc \"%s\" {\n  ret i64 %%x\n}\n",
             strategy);
    return text;
}

START_TEST(gc_strategies_that_llvm_does_not_know_are_refused)
{
    static const char *const known[] = {"statepoint-example", "coreclr", "shadow-stack", "erlang",
                                        "ocaml"};
    const struct judgement judgement = {.optimisation_level = 2 * (unsigned)_i};
    assert_says_of("GC strategy", with_strategy("mine"), &judgement, "\"mine\"",
                   "statepoint-example");
    assert_crashes(with_strategy("mine"), &judgement);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_compiles(with_strategy(known[i]), &judgement);
}
END_TEST

/* Nothing is compiled: the name is not registered. */
START_TEST(gc_strategies_that_the_host_names_are_accepted)
{
    static const char *const names[] = {"other", "mine"};
    const struct cairn_check_options options = {.gc_strategies = names, .gc_strategy_count = 2};
    LLVMModuleRef module = parse_for(with_strategy("mine"), NULL);
    ck_assert_ok(cairn_check_module(module, &options, NULL));
    LLVMDisposeModule(module);
    module = parse_for(with_strategy("their"), NULL);
    ck_assert_int_eq(cairn_check_module(module, &options, NULL), CAIRN_ERROR_LLVM);
    LLVMDisposeModule(module);
}
END_TEST

/* LLVM's verifier would end the process. */
START_TEST(relocates_in_functions_without_a_gc_strategy_are_refused)
{
#if LLVM_HAS_OPAQUE_POINTERS
#define RELOCATE "@llvm.experimental.gc.relocate.p1"
#else
#define RELOCATE "@llvm.experimental.gc.relocate.p1i8"
#endif
    LLVMModuleRef module = parse_for(
        STATEPOINT_DECLARATION "declare void @callee()\n"
                               "declare ptr addrspace(1) " RELOCATE "(token, i32, i32)\n"
                               "define ptr addrspace(1) @culprit(ptr addrspace(1) %p) {\n"
                               "  %t = " STATEPOINT_CALL " [\"gc-live\"(ptr addrspace(1) %p)]\n"
                               "  %r = call ptr addrspace(1) " RELOCATE "(token %t, i32 0, i32 0)\n"
                               "  ret ptr addrspace(1) %r\n}\n",
        NULL);
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_check_module(module, NULL, &error), CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "'culprit'") != NULL &&
                      strstr(error.message, "gc.relocate") != NULL,
                  "%s", error.message);
    LLVMDisposeModule(module);
}
END_TEST

/* The check relies on the host's claim. */
START_TEST(modules_that_the_host_has_verified_are_not_verified_again)
{
    const struct cairn_check_options verified = {.is_verified = true};
    LLVMModuleRef module = parse_for(invalid[0], NULL);
    ck_assert_ok(cairn_check_module(module, &verified, NULL));
    LLVMDisposeModule(module);
    module = parse_for(guard, NULL);
    ck_assert_int_eq(cairn_check_module(module, &verified, NULL), CAIRN_ERROR_LLVM);
    LLVMDisposeModule(module);
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
    struct judgement riscv64 = {.triple = "riscv64-linux-gnu"};
    const char *text = with_live_value("i64", false);
    if (LLVM_HAS_RISCV_STACKMAPS)
        assert_compiles(text, &riscv64);
    else
        assert_refused_rightly(text, &riscv64, "RISC-V", "without them");
}
END_TEST

/* ---- All findings ---- */

enum { FINDINGS_MAX = 16 };

struct findings {
    unsigned count;
    char functions[FINDINGS_MAX][320];
    char whys[FINDINGS_MAX][128];
    char sentences[FINDINGS_MAX][CAIRN_ERROR_MESSAGE_SIZE];
};

static void keep_finding(const struct cairn_finding *finding, void *user)
{
    struct findings *findings = user;
    unsigned i = findings->count++;
    ck_assert_uint_lt(i, FINDINGS_MAX);
    snprintf(findings->functions[i], sizeof *findings->functions, "%s", finding->function);
    snprintf(findings->whys[i], sizeof *findings->whys, "%s", finding->why);
    snprintf(findings->sentences[i], sizeof *findings->sentences, "%s", finding->sentence);
    ck_assert_ptr_eq(strstr(finding->instruction, "call"), finding->instruction);
    ck_assert_ptr_nonnull(strstr(finding->sentence, finding->why));
    ck_assert_ptr_nonnull(strstr(finding->sentence, "; write "));
    char *text = LLVMPrintValueToString(finding->call);
    ck_assert_str_eq(text + strspn(text, " "), finding->instruction);
    LLVMDisposeMessage(text);
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(finding->call));
    ck_assert_str_eq(LLVMGetValueName(function), finding->function);
}

static enum cairn_status find_all(LLVMModuleRef module, struct findings *findings,
                                  struct cairn_error *error)
{
    struct cairn_check_options options = {
        .liveness = CAIRN_LIVENESS_KEEP, .finding = keep_finding, .user = findings};
    findings->count = 0;
    return cairn_check_module(module, &options, error);
}

static const char several_findings[] =
    SUPPORT_INTRINSICS "define void @second(i64 %x) {\n" STACKMAP(
        ", i64 %x") "  ret void\n}\n"
                    "define void @first(i128 %x, i65 %y, i64 %z) {\n" STACKMAP(
                        ", i128 %x, i64 %z, i128 %x, i65 %y") PATCHPOINT("12", FAR_TARGET, "")
                        PATCHPOINT(
                            "16", FAR_TARGET,
                            "") "  ret void\n}\n"
                                "define void @third(i128 %x, i1 %b) {\n"
                                "  br i1 %b, label %yes, label %no\n"
                                "no:\n" PATCHPOINT(
                                    "-1", "null",
                                    ", i128 %x") "  ret void\n"
                                                 "yes:\n" PATCHPOINT(
                                                     "16", "null",
                                                     "") "  call void @fourth()\n  ret void\n}\n"
                                                         "define void @fourth() {\n  ret void\n}\n";

static const struct {
    const char *function;
    const char *why;
} expected_findings[] = {
    {"first", "type i128"}, {"first", "type i65"},  {"first", "fit"},
    {"third", "no-ops"},    {"third", "type i128"}, {"third", "liveness"},
};
enum { EXPECTED_FINDINGS = sizeof expected_findings / sizeof *expected_findings };

static void assert_expected_findings(LLVMModuleRef module)
{
    struct findings findings;
    struct cairn_error error = {0};
    ck_assert_int_eq(find_all(module, &findings, &error), CAIRN_ERROR_LLVM);
    for (unsigned i = 0; i < findings.count && i < EXPECTED_FINDINGS; i++) {
        ck_assert_str_eq(findings.functions[i], expected_findings[i].function);
        ck_assert_msg(strstr(findings.whys[i], expected_findings[i].why) != NULL, "%s",
                      findings.whys[i]);
    }
    ck_assert_uint_eq(findings.count, EXPECTED_FINDINGS);
    size_t length = strlen(findings.sentences[0]);
    ck_assert_int_eq(strncmp(error.message, findings.sentences[0], length), 0);
    ck_assert_str_eq(error.message + length, " (and 5 more)");
}

START_TEST(every_finding_is_named_once_in_the_order_of_the_module)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    assert_expected_findings(module);
    LLVMDisposeModule(module);
}
END_TEST

/* Instructions that move keep their places in the lists of uses. */
START_TEST(order_is_not_that_of_the_uses)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetNamedFunction(module, "first"));
    LLVMValueRef stackmap = LLVMGetFirstInstruction(entry);
    LLVMValueRef patchpoint = LLVMGetNextInstruction(stackmap);
    LLVMValueRef moved[] = {patchpoint, stackmap};
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    for (int i = 0; i < 2; i++) { /* moves each to the front */
        LLVMValueRef copy = LLVMInstructionClone(moved[i]);
        LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(entry));
        LLVMInsertIntoBuilder(builder, copy);
        LLVMInstructionEraseFromParent(moved[i]);
    }
    LLVMDisposeBuilder(builder);
    assert_expected_findings(module);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(without_a_callback_the_first_is_said_and_the_others_counted)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_check_module(module, NULL, &error), CAIRN_ERROR_LLVM);
    ck_assert_ptr_nonnull(strstr(error.message, "'first'"));
    ck_assert_ptr_nonnull(strstr(error.message, " (and 4 more)"));
    ck_assert_int_eq(cairn_check_module(module, NULL, NULL), CAIRN_ERROR_LLVM);
    LLVMDisposeModule(module);
}
END_TEST

static void rename_to_long_name(LLVMValueRef function)
{
    char name[300];
    memset(name, 'x', sizeof name);
    name[0] = (char)('a' + strlen(LLVMGetValueName(function)));
    LLVMSetValueName2(function, name, sizeof name);
}

START_TEST(long_names_leave_room_for_the_rest_of_the_sentence)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    rename_to_long_name(LLVMGetNamedFunction(module, "first"));
    rename_to_long_name(LLVMGetNamedFunction(module, "second"));
    struct findings findings;
    struct cairn_error error = {0};
    ck_assert_int_eq(find_all(module, &findings, &error), CAIRN_ERROR_LLVM);
    ck_assert_ptr_nonnull(strstr(error.message, "; write two 64-bit halves, or a pointer to it ("));
    ck_assert_ptr_nonnull(strstr(error.message, " (and 5 more)"));
    ck_assert_uint_eq(strlen(findings.functions[0]), 300);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(check_ends_at_a_call_that_is_not_well_formed)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetNamedFunction(module, "first"));
    LLVMValueRef patchpoint = LLVMGetNextInstruction(LLVMGetFirstInstruction(entry));
    LLVMSetOperand(patchpoint, 3, LLVMConstInt(LLVMInt32TypeInContext(context), 9, 0));
    struct findings findings;
    struct cairn_error error = {0};
    ck_assert_int_eq(find_all(module, &findings, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "9 arguments"));
    LLVMDisposeModule(module);
}
END_TEST

/* ---- Malformed IR ---- */

START_TEST(calls_that_are_not_well_formed_are_corrupt)
{
    LLVMModuleRef module = parse_for(
        SUPPORT_INTRINSICS
        "define void @culprit() {\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, "
        "ptr null, i32 5)\n"
        "  ret void\n}\n",
        NULL);
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_check_module(module, NULL, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "'culprit'"));
    LLVMDisposeModule(module);
    ck_assert_int_eq(cairn_check_module(NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
}
END_TEST

int main(void)
{
    enum { REFUSED = sizeof always_refused / sizeof *always_refused };
    Suite *suite = suite_create("llvm check");
    TCase *tests = tcase_create("check");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, live_value_that_crashes_is_refused, 0, REFUSED);
    tcase_add_test(tests, newer_llvm_takes_more_types);
    tcase_add_loop_test(tests, wide_vectors_are_judged_by_the_features_of_their_function, 0,
                        sizeof wide_features / sizeof *wide_features);
    tcase_add_loop_test(tests, registers_that_a_function_must_ask_for_are_judged_by_its_features, 0,
                        FEATURE_ROWS);
    tcase_add_test(tests, ordinary_live_values_compile);
    tcase_add_loop_test(tests, types_are_refused_that_crash_and_no_others, 0, ALL_TRIPLES);
    tcase_add_test(tests, arguments_in_any_register_are_judged_like_live_values);
    tcase_add_loop_test(tests, small_integers_crash_old_llvm_elsewhere, 0, 3);
    tcase_add_loop_test(tests, values_without_registers_are_refused, 0, REGISTER_ROWS);
    tcase_add_loop_test(tests, arguments_take_registers_of_their_own, 0, 3);
    tcase_add_test(tests, arguments_in_any_registers_count_whatever_they_are);
    tcase_add_test(tests, bfloat_takes_a_general_register);
    tcase_add_test(tests, base_pointer_takes_a_register);
    tcase_add_test(tests, values_of_all_kinds_have_registers_of_their_own);
    tcase_add_test(tests, values_that_need_no_register_are_not_counted);
    tcase_add_loop_test(tests, results_that_crash_in_any_register_are_refused_and_no_others, 0,
                        RESULT_ROWS);
    tcase_add_test(tests, constants_that_are_loaded_need_registers_at_all_levels);
    tcase_add_test(tests, too_few_bytes_fill_the_memory_on_x86_64);
    tcase_add_loop_test(tests, too_few_bytes_end_llvm_22_on_ppc64, 0, 2);
    tcase_add_loop_test(tests, bytes_that_llvm_does_not_keep_to_are_refused, 0, BYTE_ROWS);
    tcase_add_test(tests, symbols_as_targets_are_refused_where_llvm_cannot_call_them);
    tcase_add_test(tests, absurd_number_of_bytes_is_refused);
    tcase_add_test(tests, statepoints_are_refused_where_llvm_cannot_select_them);
    tcase_add_test(tests, statepoints_store_what_registers_cannot_keep);
    tcase_add_loop_test(tests, statepoints_cannot_store_nothing, 0, 4);
    tcase_add_test(tests, statepoints_store_no_types_of_other_machines);
    tcase_add_test(tests, transitions_are_refused_that_llvm_cannot_select);
    tcase_add_test(tests, statepoints_that_keep_values_in_registers_are_judged_like_live_values);
#if LLVM_HAS_OPAQUE_POINTERS
    tcase_add_loop_test(tests, bundles_that_end_llvm_are_refused_and_no_others, 0, BUNDLE_ROWS);
#endif
    tcase_add_loop_test(tests, calls_of_which_global_isel_makes_no_record_are_refused_and_no_others,
                        0, DEOPT_ROWS);
    tcase_add_loop_test(tests, calls_of_library_functions_that_are_replaced_are_refused, 0,
                        LIBRARY_ROWS);
    tcase_add_test(tests, tail_calls_that_llvm_cannot_make_are_refused);
    tcase_add_loop_test(tests, functions_that_are_available_externally_are_not_judged, 0, 2);
    tcase_add_test(tests, kept_liveness_refuses_calls_behind_patchpoints);
    tcase_add_loop_test(tests, kept_liveness_refuses_floating_point, 0, FLOATING_POINT_COUNT);
    tcase_add_test(tests, kept_liveness_refuses_awkward_live_values);
    tcase_add_loop_test(tests, kept_liveness_refuses_what_becomes_a_call, 0, HIDDEN_CALL_COUNT);
    tcase_add_loop_test(tests, kept_liveness_lets_other_instructions_through, 0, HARMLESS_COUNT);
    tcase_add_loop_test(tests, kept_liveness_takes_calls_on_other_architectures, 0, 3);
    tcase_add_loop_test(tests, intrinsics_without_code_are_refused, 0, 4);
    tcase_add_loop_test(tests, deoptimize_by_fast_isel_is_refused, 0, 8);
    tcase_add_loop_test(tests, deoptimize_of_wide_vectors_by_fast_isel_is_refused, 0, 3);
    tcase_add_loop_test(tests, landing_pads_that_crash_are_refused, 0, 2);
    tcase_add_test(tests, personalities_that_are_no_functions_are_refused);
    tcase_add_loop_test(tests, invalid_modules_are_refused_with_the_verifiers_words, 0, INVALID);
    tcase_add_loop_test(tests, gc_strategies_that_llvm_does_not_know_are_refused, 0, 2);
    tcase_add_test(tests, gc_strategies_that_the_host_names_are_accepted);
    tcase_add_test(tests, relocates_in_functions_without_a_gc_strategy_are_refused);
    tcase_add_test(tests, modules_that_the_host_has_verified_are_not_verified_again);
    tcase_add_loop_test(tests, wide_constants_are_refused_that_records_cannot_have, 0, 2);
    tcase_add_test(tests, arguments_and_undefined_values_that_are_wide_stay_refused);
    tcase_add_test(tests, stackmaps_are_refused_where_llvm_has_none);
    tcase_add_test(tests, every_finding_is_named_once_in_the_order_of_the_module);
    tcase_add_test(tests, order_is_not_that_of_the_uses);
    tcase_add_test(tests, without_a_callback_the_first_is_said_and_the_others_counted);
    tcase_add_test(tests, long_names_leave_room_for_the_rest_of_the_sentence);
    tcase_add_test(tests, check_ends_at_a_call_that_is_not_well_formed);
    tcase_add_test(tests, calls_that_are_not_well_formed_are_corrupt);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
