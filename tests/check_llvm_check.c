/*
 * What cairn_check_module refuses, and that it is right: what it refuses crashes the LLVM in use,
 * and what it lets through beside it compiles.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"
#include "llvm/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LLVMContextRef context;

static void set_up(void) { context = LLVMContextCreate(); }
static void tear_down(void) { LLVMContextDispose(context); }

/* ---- Judging ---- */

struct judgement {
    const char *triple;
    unsigned optimisation_level;
    enum cairn_liveness liveness;
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
                                              .liveness = judgement->liveness};
    return support_compile(module, &compilation);
}

static enum cairn_status check(LLVMModuleRef module, const struct judgement *judgement,
                               struct cairn_error *error)
{
    struct cairn_check_options options = {.liveness = judgement->liveness,
                                          .optimisation_level = judgement->optimisation_level};
    return cairn_check_module(module, &options, error);
}

static const struct judgement usual = {0};

/* Refused, with a sentence that has the function, the instruction, why and what to write. */
static void assert_says(const char *text, const struct judgement *judgement, const char *why,
                        const char *instead)
{
    LLVMModuleRef module = parse_for(text, judgement->triple);
    struct cairn_error error = {0};
    ck_assert_int_eq(check(module, judgement, &error), CAIRN_ERROR_LLVM);
    const char *const parts[] = {"'culprit'", "call", why, "; write ", instead};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(error.message, parts[i]) != NULL, "no \"%s\" in: %s", parts[i],
                      error.message);
    LLVMDisposeModule(module);
}

static void assert_crashes(const char *text, const struct judgement *judgement)
{
    if (judgement->triple != NULL && !support_has_target(judgement->triple))
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

/* A stack map and an anyregcc patch point with one value of the type, which is an argument. */
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
    static char result[4096];
    char *out = result;
    char pointer[64] = "ptr";
    if (!LLVM_HAS_OPAQUE_POINTERS)
        snprintf(pointer, sizeof pointer, "%s*", type);
    for (const char *in = text; *in != '\0';) {
        if (strncmp(in, "POINTER", 7) == 0) {
            out = stpcpy(out, pointer);
            in += 7;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    return result;
}

static const char *const always_refused[] = {
    "i128",      "i65",           "<1 x i64>",  "<3 x i64>", "<4 x i64>",
    "<2 x i32>", "{ i128, i64 }", "[2 x i128]", "ppc_fp128",
};

START_TEST(live_value_that_crashes_is_refused)
{
    const char *type = always_refused[_i];
    assert_refused_rightly(with_live_value(type, false), &usual, type, "");
}
END_TEST

static char *with_values(unsigned count, bool anyreg, const char *type);

/* Whether LLVM crashes hangs on where the value comes from and on the level. */
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
    const char *text = with_live_value("half", false);
    if (LLVM_SELECTS_LIVE_HALF)
        assert_compiles(text, &usual);
    else
        assert_refused_rightly(text, &usual, "half", "float");
    text = with_live_value("bfloat", false);
    if (LLVM_SELECTS_LIVE_BFLOAT)
        assert_compiles(text, &usual);
    else
        assert_refused_rightly(text, &usual, "bfloat", "float");
    text = with_live_value("i1", false);
    if (LLVM_PROMOTES_LIVE_INTEGERS)
        assert_compiles(text, &usual);
    else
        assert_says(text, &usual, "i1", "extended");
    ck_assert_int_eq(crashes_somehow("i1", NULL), !LLVM_PROMOTES_LIVE_INTEGERS);
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
            continue; /* "ptr*" is no type there; see the random modules */
        for (unsigned level = 0; level <= 2; level += 2) {
            struct judgement judgement = {.optimisation_level = level};
            assert_compiles(with_live_value(types[i], false), &judgement);
        }
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

START_TEST(too_many_values_at_level_0_are_refused)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return;
    struct judgement optimised = {.optimisation_level = 1};
    assert_refused_rightly(with_values(20, false, "i64"), &usual, "registers", "-O1");
    assert_refused_rightly(with_values(20, false, "double"), &usual, "registers", "-O1");
    assert_compiles(with_values(13, false, "i64"), &usual);
    assert_compiles(with_values(15, false, "double"), &usual);
    assert_compiles(with_values(60, false, "i64"), &optimised);
}
END_TEST

START_TEST(too_many_arguments_in_any_registers_are_refused)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64)
        return;
    struct judgement optimised = {.optimisation_level = 2};
    assert_refused_rightly(with_values(20, true, "i64"), &optimised, "anyregcc", "13");
    assert_compiles(with_values(13, true, "i64"), &optimised);
    assert_compiles(with_values(13, true, "i64"), &usual);
}
END_TEST

START_TEST(result_on_the_x87_stack_from_any_register_is_refused)
{
    static const char text[] =
        "declare x86_fp80 @llvm.experimental.patchpoint.f80(i64, i32, ptr, i32, ...)\n"
        "define void @culprit() {\n"
        "  %r = call anyregcc x86_fp80 (i64, i32, ptr, i32, ...) "
        "@llvm.experimental.patchpoint.f80(i64 0, i32 20, ptr null, i32 0)\n"
        "  ret void\n}\n";
    struct judgement judgement = {.triple = "x86_64-linux-gnu", .optimisation_level = 2};
    if (LLVM_PATCHPOINT_RETURNS_ANY_TYPE)
        assert_refused_rightly(text, &judgement, "x86_fp80", "double");
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

START_TEST(too_few_bytes_are_refused)
{
    struct judgement judgement = {.triple = "x86_64-linux-gnu"};
    assert_says(with_bytes("12", FAR_TARGET), &judgement, "fit", "minimum_bytes");
    /* LLVM would fill all memory with no-ops, or write a longer region than it was told to; too
     * slow to be tried. */
    assert_compiles(with_bytes("13", FAR_TARGET), &judgement);
    assert_compiles(with_bytes("0", "null"), &judgement);
}
END_TEST

START_TEST(bytes_that_are_no_instructions_are_refused)
{
    struct judgement judgement = {.triple = "aarch64-linux-gnu"};
    /* No crash: LLVM would reserve 20 and Cairn would believe in 18. */
    assert_says(with_bytes("18", FAR_TARGET), &judgement, "4 bytes", "multiple");
    assert_compiles(with_bytes("20", FAR_TARGET), &judgement);
}
END_TEST

START_TEST(absurd_number_of_bytes_is_refused)
{
    assert_says(with_bytes("1048577", "null"), &usual, "no-ops", "1048576");
    assert_says(with_bytes("-1", "null"), &usual, "no-ops", "1048576");
    assert_compiles(with_bytes("1048576", "null"), &usual);
}
END_TEST

/* ---- Statepoints ---- */

#if LLVM_HAS_OPAQUE_POINTERS
#define STATEPOINT                                                                                 \
    "declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)\n"            \
    "declare void @callee()\n"                                                                     \
    "define void @culprit() gc \"statepoint-example\" {\n"                                         \
    "  %t = call token (i64, i32, ptr, i32, i32, ...) "                                            \
    "@llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void ()) @callee, i32 0, "  \
    "i32 0, i32 0, i32 0)\n"                                                                       \
    "  ret void\n}\n"
#else
#define STATEPOINT                                                                                 \
    "declare token @llvm.experimental.gc.statepoint.p0f_isVoidf(i64, i32, void ()*, i32, i32, "    \
    "...)\n"                                                                                       \
    "declare void @callee()\n"                                                                     \
    "define void @culprit() gc \"statepoint-example\" {\n"                                         \
    "  %t = call token (i64, i32, void ()*, i32, i32, ...) "                                       \
    "@llvm.experimental.gc.statepoint.p0f_isVoidf(i64 1, i32 0, void ()* @callee, i32 0, i32 0, "  \
    "i32 0, i32 0)\n"                                                                              \
    "  ret void\n}\n"
#endif

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

/* ---- Liveness ---- */

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

START_TEST(kept_liveness_refuses_floating_point_on_aarch64)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define double @culprit(i64 %x, i1 %again) {\n"
        "entry:\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, "
        "ptr null, i32 0)\n"
        "  %d = sitofp i64 %x to double\n"
        "  ret double %d\n}\n";
    struct judgement keep = {.triple = "aarch64-linux-gnu", .liveness = CAIRN_LIVENESS_KEEP};
    struct judgement off = {.triple = "aarch64-linux-gnu"};
    assert_says(text, &keep, "liveness", "CAIRN_LIVENESS_OFF");
    if (LLVM_VERSION_MAJOR >= 19) /* before, the control register is not looked at */
        assert_crashes(text, &keep);
    assert_compiles(text, &off);
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

#define STACKMAP(values)                                                                           \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0" values ")\n"
#define PATCHPOINT(bytes, target, values)                                                          \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 2, i32 " bytes   \
    ", ptr " target ", i32 0" values ")\n"

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

/* Moved instructions stay where they are in the lists of uses. */
START_TEST(order_is_not_that_of_the_uses)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetNamedFunction(module, "first"));
    LLVMValueRef stackmap = LLVMGetFirstInstruction(entry);
    LLVMValueRef patchpoint = LLVMGetNextInstruction(stackmap);
    LLVMValueRef moved[] = {patchpoint, stackmap};
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    for (int i = 0; i < 2; i++) { /* each to the front */
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

/* ---- Not well-formed ---- */

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
    tcase_add_test(tests, ordinary_live_values_compile);
    tcase_add_test(tests, arguments_in_any_register_are_judged_like_live_values);
    tcase_add_loop_test(tests, small_integers_crash_old_llvm_elsewhere, 0, 3);
    tcase_add_test(tests, too_many_values_at_level_0_are_refused);
    tcase_add_test(tests, too_many_arguments_in_any_registers_are_refused);
    tcase_add_test(tests, result_on_the_x87_stack_from_any_register_is_refused);
    tcase_add_test(tests, too_few_bytes_are_refused);
    tcase_add_test(tests, bytes_that_are_no_instructions_are_refused);
    tcase_add_test(tests, absurd_number_of_bytes_is_refused);
    tcase_add_test(tests, statepoints_are_refused_where_llvm_cannot_select_them);
    tcase_add_test(tests, kept_liveness_refuses_calls_behind_patchpoints);
    tcase_add_test(tests, kept_liveness_refuses_floating_point_on_aarch64);
    tcase_add_test(tests, every_finding_is_named_once_in_the_order_of_the_module);
    tcase_add_test(tests, order_is_not_that_of_the_uses);
    tcase_add_test(tests, without_a_callback_the_first_is_said_and_the_others_counted);
    tcase_add_test(tests, long_names_leave_room_for_the_rest_of_the_sentence);
    tcase_add_test(tests, check_ends_at_a_call_that_is_not_well_formed);
    tcase_add_test(tests, calls_that_are_not_well_formed_are_corrupt);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
