/*
 * Tests of cairn_check_module: the order of its checks, the verifier, GC strategies, and findings.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_check_support.h"

#include "llvm/version.h"

#include <llvm-c/Analysis.h>
#include <stdio.h>
#include <string.h>

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
    module = parse_for(GUARD, NULL);
    ck_assert_int_eq(cairn_check_module(module, &verified, NULL), CAIRN_ERROR_LLVM);
    LLVMDisposeModule(module);
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
    struct cairn_check_options options = {.finding = keep_finding, .user = findings};
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
    {"third", "no-ops"},    {"third", "type i128"},
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
    ck_assert_str_eq(error.message + length, " (and 4 more)");
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

START_TEST(long_names_leave_space_for_the_rest_of_the_message)
{
    LLVMModuleRef module = parse_for(several_findings, "x86_64-linux-gnu");
    rename_to_long_name(LLVMGetNamedFunction(module, "first"));
    rename_to_long_name(LLVMGetNamedFunction(module, "second"));
    struct findings findings;
    struct cairn_error error = {0};
    ck_assert_int_eq(find_all(module, &findings, &error), CAIRN_ERROR_LLVM);
    ck_assert_ptr_nonnull(strstr(error.message, "; write two 64-bit halves, or a pointer to it ("));
    ck_assert_ptr_nonnull(strstr(error.message, " (and 4 more)"));
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

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, invalid_modules_are_refused_with_the_verifiers_words, 0, INVALID);
    tcase_add_loop_test(tests, gc_strategies_that_llvm_does_not_know_are_refused, 0, 2);
    tcase_add_test(tests, gc_strategies_that_the_host_names_are_accepted);
    tcase_add_test(tests, relocates_in_functions_without_a_gc_strategy_are_refused);
    tcase_add_test(tests, modules_that_the_host_has_verified_are_not_verified_again);
    tcase_add_test(tests, every_finding_is_named_once_in_the_order_of_the_module);
    tcase_add_test(tests, order_is_not_that_of_the_uses);
    tcase_add_test(tests, without_a_callback_the_first_is_said_and_the_others_counted);
    tcase_add_test(tests, long_names_leave_space_for_the_rest_of_the_message);
    tcase_add_test(tests, check_ends_at_a_call_that_is_not_well_formed);
    tcase_add_test(tests, calls_that_are_not_well_formed_are_corrupt);
}

int main(void) { return check_main("llvm check", add_tests); }
