/*
 * Tests of guards: compiled loops leave in the middle, and an interpreter continues with the frames
 * that it gets, at each level of optimisation.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD = 7, OUTER = 70, INNER = 80, LEVELS = 4 };

static cairn_exit *the_exit;

/* ---- What the function computes: every item from `limit` on counts one more ---- */

static int64_t interpret(int64_t i, int64_t sum, int64_t n, int64_t limit)
{
    for (; i < n; i++)
        sum += 3 * i + (i >= limit);
    return sum;
}

/* ---- The handler: an interpreter of two frames, whose slots are raw ---- */

struct frame {
    struct cairn_interpreter_frame from;
    uint64_t locals[4];
    uint64_t stack[2];
};

static struct frame frames[2];
static unsigned left;
static bool continues; /* wrongly */

static bool begin_frame(const struct cairn_interpreter_frame *from, uint32_t index,
                        struct cairn_frame_slots *slots, void *user)
{
    ck_assert_ptr_eq(user, frames);
    ck_assert_uint_lt(index, 2);
    frames[index].from = *from;
    *slots = (struct cairn_frame_slots){frames[index].locals, frames[index].stack};
    return true;
}

static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error = {0};
    struct cairn_frame_state state;
    const struct cairn_frame_writer writer = {
        .begin = begin_frame, .user = frames, .dead = UINT64_MAX};
    (void)user;
    left++;
    if (continues)
        return;
    enum cairn_status status =
        cairn_frame_state_read(&call->frame, call->record, 0, &state, &error);
    if (status == CAIRN_OK)
        status = cairn_frame_state_write(&state, &writer, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    const struct frame *outer = &frames[0];
    const struct frame *inner = &frames[1];
    double half;
    memcpy(&half, &inner->stack[0], sizeof half);
    ck_assert_uint_eq(outer->from.function, OUTER);
    ck_assert_uint_eq(inner->from.function, INNER);
    ck_assert_uint_eq(inner->from.flags, 5);
    ck_assert_uint_eq(inner->locals[2], UINT64_MAX);
    ck_assert_double_eq(half, (double)(int64_t)inner->locals[0] / 2);
    int64_t sum = interpret((int64_t)inner->locals[0], (int64_t)inner->locals[1],
                            (int64_t)outer->locals[0], (int64_t)outer->locals[1]);
    const struct cairn_value result = cairn_value_of_integer(64, sum);
    ck_assert_ok(cairn_exit_return(call, &result, 1, NULL));
}

/* ---- The function: int64_t f(n, limit), whose guard says i < limit ---- */

struct ir {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef word;
    LLVMValueRef function;
};

static LLVMBasicBlockRef append(const struct ir *ir, const char *name)
{
    return LLVMAppendBasicBlockInContext(context, ir->function, name);
}

static struct ir begin_function(const char *name)
{
    struct ir ir = {
        .module = LLVMModuleCreateWithNameInContext("guards", context),
        .builder = LLVMCreateBuilderInContext(context),
        .word = LLVMInt64TypeInContext(context),
    };
    LLVMTypeRef parameters[] = {ir.word, ir.word};
    ir.function = LLVMAddFunction(ir.module, name, LLVMFunctionType(ir.word, parameters, 2, 0));
    LLVMPositionBuilderAtEnd(ir.builder, append(&ir, "entry"));
    return ir;
}

static void build_guard(const struct ir *ir, LLVMValueRef i, LLVMValueRef sum)
{
    struct cairn_error error = {0};
    LLVMTypeRef real = LLVMDoubleTypeInContext(context);
    LLVMValueRef outer[] = {LLVMGetParam(ir->function, 0), LLVMGetParam(ir->function, 1)};
    LLVMValueRef inner[] = {i, sum, NULL, LLVMConstInt(ir->word, 1, 0)};
    LLVMValueRef half = LLVMBuildFMul(ir->builder, LLVMBuildSIToFP(ir->builder, i, real, ""),
                                      LLVMConstReal(real, 0.5), "");
    const struct cairn_encoded_frame encoded[] = {
        {.function = OUTER, .locals = outer, .local_count = 2},
        {.function = INNER,
         .flags = 5,
         .locals = inner,
         .local_count = 4,
         .stack = &half,
         .stack_count = 1},
    };
    const struct cairn_guard guard = {
        .id = GUARD, .exit = the_exit, .frames = encoded, .frame_count = 2};
    LLVMValueRef holds =
        LLVMBuildICmp(ir->builder, LLVMIntSLT, i, LLVMGetParam(ir->function, 1), "");
    ck_assert_msg(cairn_build_guard(ir->builder, holds, &guard, &error) != NULL, "%s",
                  error.message);
}

static LLVMModuleRef build_loop(const char *name)
{
    struct ir ir = begin_function(name);
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(ir.builder);
    LLVMBasicBlockRef head = append(&ir, "head");
    LLVMBasicBlockRef body = append(&ir, "body");
    LLVMBasicBlockRef end = append(&ir, "end");
    LLVMBuildBr(ir.builder, head);
    LLVMPositionBuilderAtEnd(ir.builder, head);
    LLVMValueRef i = LLVMBuildPhi(ir.builder, ir.word, "i");
    LLVMValueRef sum = LLVMBuildPhi(ir.builder, ir.word, "sum");
    LLVMValueRef n = LLVMGetParam(ir.function, 0);
    LLVMBuildCondBr(ir.builder, LLVMBuildICmp(ir.builder, LLVMIntSLT, i, n, ""), body, end);
    LLVMPositionBuilderAtEnd(ir.builder, body);
    build_guard(&ir, i, sum);
    LLVMValueRef more = LLVMBuildMul(ir.builder, i, LLVMConstInt(ir.word, 3, 0), "");
    more = LLVMBuildAdd(ir.builder, sum, more, "");
    LLVMValueRef next = LLVMBuildAdd(ir.builder, i, LLVMConstInt(ir.word, 1, 0), "");
    LLVMBasicBlockRef from[] = {entry, LLVMGetInsertBlock(ir.builder)};
    LLVMBuildBr(ir.builder, head);
    LLVMAddIncoming(i, (LLVMValueRef[]){LLVMConstNull(ir.word), next}, from, 2);
    LLVMAddIncoming(sum, (LLVMValueRef[]){LLVMConstNull(ir.word), more}, from, 2);
    LLVMPositionBuilderAtEnd(ir.builder, end);
    LLVMBuildRet(ir.builder, sum);
    LLVMDisposeBuilder(ir.builder);
    support_verify(ir.module);
    return ir.module;
}

typedef int64_t compiled(int64_t n, int64_t limit);

static compiled *load(cairn_engine *engine, const char *name)
{
    return (compiled *)(uintptr_t)get(engine, name);
}

static void create_exit(void)
{
    left = 0;
    continues = false;
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
}

/* ---- Tests ---- */

START_TEST(a_loop_leaves_where_its_guard_fails)
{
    create_exit();
    cairn_engine *engine = create_engine_at(build_loop("f"), (unsigned)_i);
    compiled *f = load(engine, "f");
    unsigned expected = 0;
    for (int64_t n = 0; n < 40; n++)
        for (int64_t limit = 0; limit < 44; limit += 3) {
            expected += limit < n;
            ck_assert_int_eq(f(n, limit), interpret(0, 0, n, limit));
            ck_assert_uint_eq(left, expected);
        }
    cairn_engine_destroy(engine);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* The unroller copies the guard, and no site has to be bound. */
START_TEST(copies_of_a_guard_leave_too)
{
    static const char unrolled[] = "loop-unroll<O3;runtime>";
    const struct cairn_engine_options options = {.optimisation_level = 2, .passes = unrolled};
    struct cairn_error error = {0};
    cairn_engine *engine;
    create_exit();
    enum cairn_status status =
        cairn_engine_create(runtime, build_loop("f"), &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    compiled *f = load(engine, "f");
    for (int64_t limit = 0; limit < 20; limit++)
        ck_assert_int_eq(f(17, limit), interpret(0, 0, 17, limit));
    ck_assert_uint_eq(left, 17);
    cairn_engine_destroy(engine);
    cairn_exit_destroy(the_exit);
}
END_TEST

START_TEST(the_failing_side_is_cold_and_the_function_can_be_left)
{
    create_exit();
    LLVMModuleRef module = build_loop("f");
    char *text = LLVMPrintModuleToString(module);
    ck_assert_ptr_nonnull(strstr(text, "!\"branch_weights\", i32 1048575, i32 1}"));
    ck_assert_ptr_nonnull(strstr(text, "noinline"));
    ck_assert_ptr_nonnull(strstr(text, "uwtable"));
    LLVMDisposeMessage(text);
    LLVMDisposeModule(module);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* A handler that does nothing lets the code continue after the call. */
START_TEST(a_thread_that_continues_after_a_failed_guard_is_stopped)
{
    create_exit();
    cairn_engine *engine = create_engine_at(build_loop("f"), 2);
    compiled *f = load(engine, "f");
    continues = true;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGILL, SIG_DFL);
        signal(SIGTRAP, SIG_DFL);
        f(2, 1);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert(WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
    cairn_engine_destroy(engine);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* ---- What is refused ---- */

/* Asserts that the guard is refused, and that nothing was built. */
static void expect_refused(const struct ir *ir, LLVMValueRef condition,
                           const struct cairn_guard *guard, enum cairn_status status,
                           const char *message)
{
    struct cairn_error error = {0};
    char *before = LLVMPrintModuleToString(ir->module);
    ck_assert_ptr_null(cairn_build_guard(ir->builder, condition, guard, &error));
    char *after = LLVMPrintModuleToString(ir->module);
    ck_assert_str_eq(before, after);
    ck_assert_msg(error.status == status, "%s", error.message);
    ck_assert_str_eq(error.message, message);
    LLVMDisposeMessage(before);
    LLVMDisposeMessage(after);
}

START_TEST(a_value_of_another_function_is_refused_with_both_names)
{
    create_exit();
    struct ir ir = begin_function("f");
    LLVMTypeRef type = LLVMFunctionType(ir.word, &ir.word, 1, 0);
    LLVMValueRef other = LLVMAddFunction(ir.module, "g", type);
    LLVMValueRef holds = LLVMConstInt(LLVMInt1TypeInContext(context), 1, 0);
    LLVMValueRef foreign = LLVMGetParam(other, 0);
    LLVMValueRef locals[] = {LLVMGetParam(ir.function, 0), foreign};
    struct cairn_encoded_frame frame = {.locals = locals, .local_count = 2};
    struct cairn_guard guard = {.id = GUARD, .exit = the_exit, .frames = &frame, .frame_count = 1};
    expect_refused(&ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
                   "frame 0: local 1 is a value of function 'g', and the guard is in function 'f'");
    frame = (struct cairn_encoded_frame){.stack = &locals[1], .stack_count = 1};
    expect_refused(
        &ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
        "frame 0: stack entry 0 is a value of function 'g', and the guard is in function 'f'");
    struct cairn_error error = {0};
    const struct cairn_patchpoint site = {.id = 1, .live_values = &foreign, .live_value_count = 1};
    ck_assert_ptr_null(cairn_build_patchpoint(ir.builder, &site, &error));
    ck_assert_str_eq(error.message,
                     "live value 0 is a value of function 'g', and the record is in function 'f'");
    const struct cairn_patchpoint call = {.id = 1, .arguments = &foreign, .argument_count = 1};
    ck_assert_ptr_null(cairn_build_patchpoint(ir.builder, &call, &error));
    ck_assert_str_eq(
        error.message,
        "argument 0 is a value of function 'g', and the patch point is in function 'f'");
    LLVMDisposeBuilder(ir.builder);
    LLVMDisposeModule(ir.module);
    cairn_exit_destroy(the_exit);
}
END_TEST

START_TEST(a_global_of_another_module_is_refused_with_both_names)
{
    create_exit();
    struct ir ir = begin_function("f");
    LLVMModuleRef elsewhere = LLVMModuleCreateWithNameInContext("elsewhere", context);
    LLVMValueRef holds = LLVMConstInt(LLVMInt1TypeInContext(context), 1, 0);
    LLVMValueRef global = LLVMAddGlobal(elsewhere, ir.word, "g");
    const struct cairn_encoded_frame frame = {.locals = &global, .local_count = 1};
    const struct cairn_guard guard = {
        .id = GUARD, .exit = the_exit, .frames = &frame, .frame_count = 1};
    expect_refused(&ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
                   "frame 0: local 0 is 'g' of module 'elsewhere', and the guard is in function "
                   "'f' of module 'guards'");
    LLVMDisposeBuilder(ir.builder);
    LLVMDisposeModule(ir.module);
    LLVMDisposeModule(elsewhere);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* What follows the builder's position would be executed before the guard. */
START_TEST(a_guard_in_the_middle_of_a_block_is_refused)
{
    create_exit();
    struct ir ir = begin_function("f");
    LLVMValueRef holds = LLVMConstInt(LLVMInt1TypeInContext(context), 1, 0);
    LLVMValueRef word = LLVMGetParam(ir.function, 0);
    LLVMValueRef next = LLVMBuildAdd(ir.builder, word, word, "");
    const struct cairn_encoded_frame frame = {.locals = &word, .local_count = 1};
    const struct cairn_guard guard = {
        .id = GUARD, .exit = the_exit, .frames = &frame, .frame_count = 1};
    LLVMPositionBuilderBefore(ir.builder, next);
    expect_refused(&ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
                   "the builder is before an instruction of 'f': a guard ends its block");
    LLVMPositionBuilderAtEnd(ir.builder, LLVMGetInsertBlock(ir.builder));
    ck_assert_ptr_nonnull(cairn_build_guard(ir.builder, holds, &guard, NULL));
    LLVMDisposeBuilder(ir.builder);
    LLVMDisposeModule(ir.module);
    cairn_exit_destroy(the_exit);
}
END_TEST

START_TEST(a_guard_that_cannot_be_is_refused)
{
    create_exit();
    struct ir ir = begin_function("f");
    LLVMValueRef holds = LLVMConstInt(LLVMInt1TypeInContext(context), 1, 0);
    LLVMValueRef word = LLVMGetParam(ir.function, 0);
    cairn_assumption *assumption;
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, NULL));
    const struct cairn_encoded_frame frame = {.locals = &word, .local_count = 1};
    const struct cairn_guard fine = {
        .id = GUARD, .exit = the_exit, .frames = &frame, .frame_count = 1};
    struct cairn_guard guard = fine;
    expect_refused(&ir, word, &guard, CAIRN_ERROR_ARGUMENT,
                   "the condition of a guard is an i1, and not of type i64");
    expect_refused(&ir, NULL, &guard, CAIRN_ERROR_ARGUMENT,
                   "guard 7 has neither a condition nor an assumption: it has one of the two");
    guard.assumptions = &assumption;
    guard.assumption_count = 1;
    expect_refused(&ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
                   "guard 7 has both a condition and assumptions: it has one of the two");
    guard = fine;
    guard.exit = NULL;
    expect_refused(&ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
                   "guard 7 has no exit at which threads leave");
    guard = fine;
    guard.frame_count = 0;
    expect_refused(&ir, holds, &guard, CAIRN_ERROR_ARGUMENT,
                   "a frame state has at least one frame");
    expect_refused(&ir, holds, NULL, CAIRN_ERROR_ARGUMENT, "cairn_build_guard: `guard` is NULL");
    LLVMBuildRet(ir.builder, word);
    expect_refused(
        &ir, holds, &fine, CAIRN_ERROR_ARGUMENT,
        "the builder is in a block of 'f' that has a terminator: a guard ends its block");
    cairn_assumption_destroy(assumption);
    LLVMDisposeBuilder(ir.builder);
    LLVMDisposeModule(ir.module);
    cairn_exit_destroy(the_exit);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, a_loop_leaves_where_its_guard_fails, 0, LEVELS);
    tcase_add_test(tests, copies_of_a_guard_leave_too);
    tcase_add_test(tests, the_failing_side_is_cold_and_the_function_can_be_left);
    tcase_add_test(tests, a_thread_that_continues_after_a_failed_guard_is_stopped);
    tcase_add_test(tests, a_value_of_another_function_is_refused_with_both_names);
    tcase_add_test(tests, a_global_of_another_module_is_refused_with_both_names);
    tcase_add_test(tests, a_guard_in_the_middle_of_a_block_is_refused);
    tcase_add_test(tests, a_guard_that_cannot_be_is_refused);
}

int main(void) { return engine_main("guards", add_tests); }
