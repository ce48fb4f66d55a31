/*
 * Tests of modules that go through LLVM's passes for statepoints: what crashes a pass, loses a GC
 * pointer or becomes invalid is refused, and similar code is rewritten. The passes run in a child
 * to see that they still crash.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"

#include <llvm-c/Transforms/PassBuilder.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REWRITE "rewrite-statepoints-for-gc"

/* What becomes of a body, and what LLVM does without the check. */
enum fate { FATE_REWRITTEN, FATE_CRASHES, FATE_IS_LOST, FATE_IS_INVALID };

static const struct sample {
    const char *name;
    const char *parameters;
    const char *body;
    enum fate fate;
    const char *why;
} samples[] = {
    {"stack memory after a call", "",
     "  %p = alloca i8, addrspace(1)\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_CRASHES, "alloca in address space 0"},
    {"stack memory that is passed", "",
     "  %p = alloca i8, addrspace(1)\n  call void @use(ptr addrspace(1) %p)\n  ret void\n",
     FATE_CRASHES, "alloca in address space 0"},
    {"an address in stack memory", "",
     "  %a = alloca i8, addrspace(1)\n"
     "  %p = getelementptr i8, ptr addrspace(1) %a, i64 0\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_CRASHES, "alloca in address space 0"},
    {"stack memory or an object", "i1 %c, ptr addrspace(1) %x",
     "  %a = alloca i8, addrspace(1)\n"
     "  %p = select i1 %c, ptr addrspace(1) %a, ptr addrspace(1) %x\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_CRASHES, "alloca in address space 0"},
    {"stack memory before a call", "",
     "  %p = alloca i8, addrspace(1)\n  store i8 1, ptr addrspace(1) %p\n  call void @g()\n"
     "  ret void\n",
     FATE_REWRITTEN, ""},
    {"stack memory without a call", "",
     "  %p = alloca i8, addrspace(1)\n  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"a cast of stack memory", "",
     "  %a = alloca i8\n  %p = addrspacecast ptr %a to ptr addrspace(1)\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_CRASHES, "address space 0"},
    {"a cast of a pointer", "ptr %x",
     "  %p = addrspacecast ptr %x to ptr addrspace(1)\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_IS_INVALID, "cast from another address space"},
    {"an integer", "i64 %x",
     "  %p = inttoptr i64 %x to ptr addrspace(1)\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"a vector of integers", "<2 x i64> %x",
     "  %v = inttoptr <2 x i64> %x to <2 x ptr addrspace(1)>\n  call void @g()\n"
     "  %p = extractelement <2 x ptr addrspace(1)> %v, i32 1\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_CRASHES, "each element"},
    {"a vector of pointers", "<2 x ptr addrspace(1)> %v",
     "  call void @g()\n  %p = extractelement <2 x ptr addrspace(1)> %v, i32 1\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"a variable argument", "ptr %x",
     "  %p = va_arg ptr %x, ptr addrspace(1)\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_CRASHES, "inttoptr"},
    {"a structure after a call", "{ ptr addrspace(1), i64 } %s",
     "  call void @g()\n  %p = extractvalue { ptr addrspace(1), i64 } %s, 0\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_IS_LOST, "extractvalue before the call"},
    {"a structure before a call", "{ ptr addrspace(1), i64 } %s",
     "  %p = extractvalue { ptr addrspace(1), i64 } %s, 0\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"an array that is made before a call", "ptr addrspace(1) %x",
     "  %s = insertvalue [2 x ptr addrspace(1)] undef, ptr addrspace(1) %x, 1\n  call void @g()\n"
     "  %p = extractvalue [2 x ptr addrspace(1)] %s, 1\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_IS_LOST, "extractvalue before the call"},
    {"a call that returns a structure", "",
     "  %s = call { ptr addrspace(1), i64 } @pair()\n"
     "  %p = extractvalue { ptr addrspace(1), i64 } %s, 0\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"an invoke that returns a structure", "",
     "  %s = invoke { ptr addrspace(1), i64 } @pair() to label %normal unwind label %pad\n"
     "normal:\n  %p = extractvalue { ptr addrspace(1), i64 } %s, 0\n  call void @g()\n"
     "  store i8 1, ptr addrspace(1) %p\n  ret void\n"
     "pad:\n  %l = landingpad token cleanup\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"a landing pad that is not a token", "ptr addrspace(1) %x",
     "  invoke void @g() to label %normal unwind label %pad\n"
     "normal:\n  store i8 1, ptr addrspace(1) %x\n  ret void\n"
     "pad:\n  %l = landingpad { ptr, i32 } cleanup\n  ret void\n",
     FATE_IS_INVALID, "landingpad token"},
    {"a landing pad", "ptr addrspace(1) %x",
     "  invoke void @g() to label %normal unwind label %pad\n"
     "normal:\n  store i8 1, ptr addrspace(1) %x\n  ret void\n"
     "pad:\n  %l = landingpad token cleanup\n  ret void\n",
     FATE_REWRITTEN, ""},
    {"a pad of Windows", "ptr addrspace(1) %x",
     "  invoke void @g() to label %normal unwind label %pad\n"
     "normal:\n  store i8 1, ptr addrspace(1) %x\n  ret void\n"
     "pad:\n  %l = cleanuppad within none []\n  cleanupret from %l unwind to caller\n",
     FATE_CRASHES, "landingpad"},
    {"a musttail call", "ptr addrspace(1) %x",
     "  musttail call void @use(ptr addrspace(1) %x)\n  ret void\n", FATE_IS_INVALID,
     "without musttail"},
    {"an ordinary tail call", "ptr addrspace(1) %x",
     "  tail call void @use(ptr addrspace(1) %x)\n  ret void\n", FATE_REWRITTEN, ""},
    {"an argument whose passing the function declares", "i64 %n",
     "  %b = trunc i64 %n to i8\n  call void @byte(i8 zeroext %b)\n  ret void\n", FATE_REWRITTEN,
     ""},
    {"an argument whose passing the call declares", "i64 %n",
     "  %b = trunc i64 %n to i8\n  call void @byte(i8 signext %b)\n  ret void\n",
     LLVM_REWRITES_ATTRIBUTES ? FATE_REWRITTEN : FATE_IS_LOST, "the same attributes"},
    {"assembly", "ptr addrspace(1) %x",
     "  call void asm sideeffect \"\", \"\"()\n  store i8 1, ptr addrspace(1) %x\n  ret void\n",
     FATE_IS_LOST, "gc-leaf-function"},
    {"assembly that is a leaf", "ptr addrspace(1) %x",
     "  call void asm sideeffect \"\", \"\"() \"gc-leaf-function\"\n"
     "  store i8 1, ptr addrspace(1) %x\n  ret void\n",
     FATE_REWRITTEN, ""},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static LLVMModuleRef build(const struct sample *sample)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "declare void @g()\n"
             "declare void @byte(i8 zeroext)\n"
             "declare void @use(ptr addrspace(1))\n"
             "declare { ptr addrspace(1), i64 } @pair()\n"
             "declare i32 @__gxx_personality_v0(...)\n"
             "define void @culprit(%s) gc \"statepoint-example\" personality " SUPPORT_PERSONALITY
             " {\n%s}\n",
             sample->parameters, sample->body);
    return support_parse_valid(context, text);
}

/* Whether the passes crash in a child. */
static bool crashes(LLVMModuleRef module, const char *passes)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(3);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        LLVMRunPasses(module, passes, NULL, LLVMCreatePassBuilderOptions());
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return !WIFEXITED(status);
}

static enum cairn_status add_with(LLVMModuleRef module, const char *passes,
                                  struct cairn_error *error)
{
    const struct cairn_engine_options options = {
        .passes = passes, .modules.id_conflicts = CAIRN_ID_CONFLICTS_RENUMBERED};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, error);
    if (status == CAIRN_OK)
        cairn_engine_destroy(engine);
    else
        LLVMDisposeModule(module);
    return status;
}

static void check_refused(LLVMModuleRef module, const char *passes, const char *why)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(add_with(module, passes, &error), CAIRN_ERROR_LLVM);
    assert_says(&error, "'culprit'");
    assert_says(&error, why);
}

START_TEST(code_that_a_pass_does_not_support_is_refused)
{
    const struct sample *sample = &samples[_i];
    struct cairn_error error = {0};
    if (sample->fate != FATE_REWRITTEN) {
        check_refused(build(sample), REWRITE, sample->why);
        check_refused(build(sample), "module(" REWRITE ")", sample->why);
        return;
    }
    enum cairn_status status = add_with(build(sample), REWRITE, &error);
    ck_assert_msg(status == CAIRN_OK, "%s: %s", sample->name, error.message);
}
END_TEST

/* LLVM 14 reads uninitialised memory instead. */
START_TEST(refused_code_crashes_the_pass)
{
    const struct sample *sample = &samples[_i];
    if (sample->fate != FATE_CRASHES || LLVM_VERSION_MAJOR < 15)
        return;
    LLVMModuleRef module = build(sample);
    ck_assert_msg(crashes(module, REWRITE), "LLVM %d rewrites %s", LLVM_VERSION_MAJOR,
                  sample->name);
    LLVMDisposeModule(module);
}
END_TEST

/* The module is checked after the passes before the one that rewrites statepoints. */
START_TEST(code_that_an_earlier_pass_removes_is_not_refused)
{
    static const struct sample dead = {"stack memory", "",
                                       "  %p = alloca i8, addrspace(1)\n  call void @g()\n"
                                       "  store i8 1, ptr addrspace(1) %p\n  ret void\n",
                                       FATE_CRASHES, ""};
    struct cairn_error error = {0};
    enum cairn_status status = add_with(build(&dead), "function(sroa)," REWRITE, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    status = add_with(build(&dead), "default<O2>, " REWRITE, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}
END_TEST

#define PLACE "function(place-safepoints)"

START_TEST(polls_need_their_function)
{
    static const char text[] = "define void @culprit() gc \"statepoint-example\" {\n"
                               "  ret void\n}\n";
    static const char definition[] = "declare void @g()\n"
                                     "define void @gc.safepoint_poll() {\n"
                                     "  call void @g()\n  ret void\n}\n"
                                     "define void @culprit() gc \"statepoint-example\" {\n"
                                     "  ret void\n}\n";
    struct cairn_error error = {0};
    LLVMModuleRef module = support_parse_valid(context, text);
    ck_assert(crashes(module, PLACE));
    check_refused(module, PLACE, "gc.safepoint_poll");
    enum cairn_status status =
        add_with(support_parse_valid(context, definition), PLACE "," REWRITE, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, code_that_a_pass_does_not_support_is_refused, 0, SAMPLES);
    tcase_add_loop_test(tests, refused_code_crashes_the_pass, 0, SAMPLES);
    tcase_add_test(tests, code_that_an_earlier_pass_removes_is_not_refused);
    if (LLVM_VERSION_MAJOR >= 19) /* before 17, the pass manager does not have place-safepoints */
        tcase_add_test(tests, polls_need_their_function);
}

int main(void)
{
    enum { SKIPPED = 77 };
    if (support_has_statepoints())
        return engine_main("passes for statepoints", add_tests);
    puts("skipped: LLVM cannot select statepoints for this architecture");
    return SKIPPED;
}
