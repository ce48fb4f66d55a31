/*
 * tiers: a loop begins in an interpreter, goes on in code that was compiled quickly, and ends in
 * code that was compiled well.
 *
 *     cc tiers.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * The function adds up numbers: for (; goes_on; i++) total += i; It takes i and total as arguments,
 * so that each version can begin in the middle of the loop. The program ends the loop when the full
 * version is installed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t add_up_function(uint64_t i, uint64_t total);

static cairn_entry *entry;
static cairn_exit *leaving;
static cairn_signature *signature; /* of add_up_function */
static cairn_assumption *until_full;
static volatile uint64_t goes_on = 1;
static volatile uint64_t last; /* i after the loop */
static _Atomic bool is_quick_ready;

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "tiers: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. The versions ---- */

static uint64_t call(uint64_t i, uint64_t total)
{
    return ((add_up_function *)(uintptr_t)cairn_entry_target(entry))(i, total);
}

/* The first version: an interpreter would do this. It goes on in compiled code. */
static uint64_t interpret(uint64_t i, uint64_t total)
{
    for (; goes_on; i++) {
        if (is_quick_ready) {
            printf("the interpreter is left\n");
            return call(i, total);
        }
        total += i;
    }
    last = i;
    return total;
}

/* Builds a guard: threads leave the loop here when the full version is installed. */
static void build_guard(LLVMBuilderRef builder, LLVMValueRef *variables)
{
    const struct cairn_encoded_frame frame = {.locals = variables, .local_count = 2};
    const struct cairn_guard guard = {
        .id = 1,
        .exit = leaving,
        .frames = &frame,
        .frame_count = 1,
        .assumptions = &until_full,
        .assumption_count = 1,
    };
    struct cairn_error error;
    if (cairn_build_guard(builder, NULL, &guard, &error) == NULL)
        fail(error.message);
}

static LLVMValueRef address_of(LLVMBuilderRef builder, LLVMTypeRef word, volatile uint64_t *of)
{
    return LLVMBuildIntToPtr(builder, LLVMConstInt(word, (uintptr_t)of, 0),
                             LLVMPointerType(word, 0), "");
}

/* Builds the loop's test. */
static LLVMValueRef build_test(LLVMBuilderRef builder, LLVMTypeRef word)
{
    LLVMValueRef loaded = LLVMBuildLoad2(builder, word, address_of(builder, word, &goes_on), "");
    LLVMSetVolatile(loaded, 1);
    return LLVMBuildICmp(builder, LLVMIntNE, loaded, LLVMConstInt(word, 0, 0), "");
}

/* Builds the blocks of the loop. */
static void build_loop(LLVMBuilderRef builder, LLVMValueRef function, LLVMTypeRef word)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMBasicBlockRef blocks[4];
    static const char *const names[] = {"entry", "loop", "body", "end"};
    LLVMValueRef variables[2], next[2];
    for (int i = 0; i < 4; i++)
        blocks[i] = LLVMAppendBasicBlockInContext(context, function, names[i]);
    LLVMPositionBuilderAtEnd(builder, blocks[0]);
    LLVMBuildBr(builder, blocks[1]);
    LLVMPositionBuilderAtEnd(builder, blocks[1]);
    for (int i = 0; i < 2; i++)
        variables[i] = LLVMBuildPhi(builder, word, "");
    LLVMBuildCondBr(builder, build_test(builder, word), blocks[2], blocks[3]);
    LLVMPositionBuilderAtEnd(builder, blocks[2]);
    next[0] = LLVMBuildAdd(builder, variables[0], LLVMConstInt(word, 1, 0), "");
    next[1] = LLVMBuildAdd(builder, variables[1], variables[0], "");
    build_guard(builder, next);
    LLVMBuildBr(builder, blocks[1]);
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef values[] = {LLVMGetParam(function, i), next[i]};
        LLVMBasicBlockRef from[] = {blocks[0], blocks[2]};
        LLVMAddIncoming(variables[i], values, from, 2);
    }
    LLVMPositionBuilderAtEnd(builder, blocks[3]);
    LLVMBuildStore(builder, variables[0], address_of(builder, word, &last));
    LLVMBuildRet(builder, variables[1]);
}

/* Called by the queue's thread, for each of the two versions. */
static LLVMModuleRef build(LLVMContextRef context, void *user, struct cairn_error *error)
{
    (void)user;
    (void)error;
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("tiers", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef parameters[] = {word, word};
    LLVMValueRef function =
        LLVMAddFunction(module, "add_up", LLVMFunctionType(word, parameters, 2, 0));
    build_loop(builder, function, word);
    LLVMDisposeBuilder(builder);
    return module;
}

/* ---- 2. From one version to the next ---- */

static void note_result(const struct cairn_queue_result *result, void *user)
{
    (void)user;
    check(result->error->status, result->error);
    if (result->tier == CAIRN_TIER_QUICK)
        is_quick_ready = true;
    else
        goes_on = 0;
}

/* The handler of the exit: the full version replaces the frame of the quick one. */
static void leave_quick(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error;
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    struct cairn_value variables[2];
    (void)user;
    check(cairn_frame_state_read(&call->frame, call->record, 0, &state, &error), &error);
    check(cairn_frame_state_frame(&state, 0, &frame, &error), &error);
    for (uint32_t i = 0; i < 2; i++)
        check(cairn_frame_state_value(&state, &frame, i, &variables[i], &error), &error);
    printf("the quick version is left at i = %" PRIu64 "\n", cairn_value_bits(&variables[0]));
    check(cairn_exit_enter(call, signature, cairn_entry_target(entry), variables, 2, &error),
          &error);
}

/* ---- 3. Run it ---- */

static void create(cairn_runtime *runtime)
{
    struct cairn_error error;
    const struct cairn_type types[] = {CAIRN_INTEGER(64), CAIRN_INTEGER(64)};
    check(cairn_signature_create(NULL, types, 1, types, 2, &signature, &error), &error);
    check(cairn_entry_create(runtime, "add_up", signature, (const void *)(uintptr_t)interpret,
                             &entry, &error),
          &error);
    check(cairn_exit_create(runtime, leave_quick, NULL, &leaving, &error), &error);
    check(cairn_assumption_create(runtime, &until_full, &error), &error);
}

static void destroy(cairn_runtime *runtime)
{
    cairn_assumption_destroy(until_full);
    cairn_entry_destroy(entry);
    cairn_exit_destroy(leaving);
    cairn_runtime_destroy(runtime);
    cairn_signature_destroy(signature);
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_queue *queue;
    const struct cairn_queue_options options = {.engine = cairn_engine_preset(CAIRN_TIER_FULL)};
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    create(runtime);
    const struct cairn_queue_job job = {
        .build = build,
        .done = note_result,
        .function = "add_up",
        .entry = entry,
        .version = {.retires = true},
        .has_tiers = true,
        .until_full = until_full,
    };
    check(cairn_queue_create(runtime, &options, &queue, &error), &error);
    check(cairn_queue_add(queue, &job, NULL, &error), &error);
    uint64_t total = call(0, 0);
    uint64_t expected = last % 2 == 0 ? last / 2 * (last - 1) : (last - 1) / 2 * last;
    printf("the loop ended at i = %" PRIu64 ", and the sum is %s\n", last,
           total == expected ? "right" : "wrong");
    cairn_queue_destroy(queue);
    destroy(runtime);
    return total == expected ? 0 : 1;
}
