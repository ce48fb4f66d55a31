/*
 * osr: on-stack replacement of a loop. An interpreter finds that the loop is hot, and enters
 * compiled code at the loop's head with its current values. The compiled code returns to the
 * interpreter when an assumption that it was compiled with is no longer true.
 *
 *     cc osr.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * The program adds up COUNT items. The compiled loop is for integers; item number ODD_ONE is a
 * floating-point number.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100000, ODD_ONE = 70000, HOT = 1000, GUARD_ID = 1, LOCALS = 4 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "osr: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. The interpreter: values with their types, and a program ---- */

struct item {
    int64_t is_number; /* whether it is a floating-point number; otherwise an integer */
    union {
        int64_t integer;
        double number;
    };
};

static double number_of(struct item item)
{
    return item.is_number ? item.number : (double)item.integer;
}

static struct item add(struct item left, struct item right)
{
    if (!left.is_number && !right.is_number)
        return (struct item){.integer = left.integer + right.integer};
    return (struct item){.is_number = 1, .number = number_of(left) + number_of(right)};
}

/* for (; i < count; i++) sum += items[i]; return sum; */
enum instruction { JUMP_IF_DONE, ADD_ITEM, INCREMENT, LOOP, RETURN };
static const enum instruction program[] = {JUMP_IF_DONE, ADD_ITEM, INCREMENT, LOOP, RETURN};
enum { LOOP_HEAD = 0, LOOP_END = 4 };

struct state {
    const struct item *items;
    int64_t count;
    int64_t i;
    struct item sum;
    /* Compiles the loop and enters it; NULL if it must not be compiled. */
    double (*enter_compiled)(const struct state *state);
};

/* Interprets the program from the loop's head on. */
static double interpret(struct state *state)
{
    int64_t rounds = 0;
    size_t pc = LOOP_HEAD;
    for (;;) {
        switch (program[pc++]) {
        case JUMP_IF_DONE:
            if (state->i >= state->count)
                pc = LOOP_END;
            break;
        case ADD_ITEM:
            state->sum = add(state->sum, state->items[state->i]);
            break;
        case INCREMENT:
            state->i++;
            break;
        case LOOP:
            if (++rounds == HOT && state->enter_compiled != NULL && !state->sum.is_number)
                return state->enter_compiled(state);
            pc = LOOP_HEAD;
            break;
        case RETURN:
            return number_of(state->sum);
        }
    }
}

/* ---- 2. The loop as IR: double loop(items, count, i, sum), for sums of integers ---- */

struct ir {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMTypeRef number;
    LLVMTypeRef item;
    LLVMTypeRef type; /* type of the function */
    LLVMValueRef function;
    const cairn_exit *exit;
};

static LLVMBasicBlockRef append(struct ir *ir, const char *name)
{
    return LLVMAppendBasicBlockInContext(ir->context, ir->function, name);
}

static void declare(struct ir *ir)
{
    ir->int64 = LLVMInt64TypeInContext(ir->context);
    ir->number = LLVMDoubleTypeInContext(ir->context);
    LLVMTypeRef members[] = {ir->int64, ir->int64};
    ir->item = LLVMStructTypeInContext(ir->context, members, 2, 0);
    LLVMTypeRef live[] = {LLVMPointerType(ir->item, 0), ir->int64, ir->int64, ir->int64};
    ir->type = LLVMFunctionType(ir->number, live, 4, 0);
    ir->function = LLVMAddFunction(ir->module, "loop", ir->type);
}

static LLVMValueRef load_member(struct ir *ir, LLVMValueRef item, unsigned index)
{
    LLVMValueRef address = LLVMBuildStructGEP2(ir->builder, ir->item, item, index, "");
    return LLVMBuildLoad2(ir->builder, ir->int64, address, "");
}

/* Builds the guard: unless the condition is true, the code is left with all values that the
 * interpreter needs. */
static void build_guard(struct ir *ir, LLVMValueRef condition, LLVMValueRef i, LLVMValueRef sum)
{
    struct cairn_error error;
    LLVMValueRef locals[] = {LLVMGetParam(ir->function, 0), LLVMGetParam(ir->function, 1), i, sum};
    const struct cairn_encoded_frame frame = {
        .position = LOOP_HEAD, .locals = locals, .local_count = LOCALS};
    const struct cairn_guard guard = {
        .id = GUARD_ID, .exit = ir->exit, .frames = &frame, .frame_count = 1};
    if (cairn_build_guard(ir->builder, condition, &guard, &error) == NULL)
        fail(error.message);
}

static void build_loop(struct ir *ir)
{
    LLVMBuilderRef builder = ir->builder;
    LLVMBasicBlockRef entry = append(ir, "entry");
    LLVMBasicBlockRef head = append(ir, "head");
    LLVMBasicBlockRef body = append(ir, "body");
    LLVMBasicBlockRef end = append(ir, "end");
    LLVMPositionBuilderAtEnd(builder, entry);
    LLVMBuildBr(builder, head);

    LLVMPositionBuilderAtEnd(builder, head);
    LLVMValueRef i = LLVMBuildPhi(builder, ir->int64, "i");
    LLVMValueRef sum = LLVMBuildPhi(builder, ir->int64, "sum");
    LLVMValueRef count = LLVMGetParam(ir->function, 1);
    LLVMBuildCondBr(builder, LLVMBuildICmp(builder, LLVMIntSLT, i, count, ""), body, end);

    LLVMPositionBuilderAtEnd(builder, body);
    LLVMValueRef items = LLVMGetParam(ir->function, 0);
    LLVMValueRef item = LLVMBuildGEP2(builder, ir->item, items, &i, 1, "");
    LLVMValueRef is_number = load_member(ir, item, 0);
    build_guard(ir, LLVMBuildIsNull(builder, is_number, ""), i, sum);
    LLVMValueRef more = LLVMBuildAdd(builder, sum, load_member(ir, item, 1), "");
    LLVMValueRef next = LLVMBuildAdd(builder, i, LLVMConstInt(ir->int64, 1, 0), "");
    LLVMBasicBlockRef from[] = {entry, LLVMGetInsertBlock(builder)};
    LLVMBuildBr(builder, head);

    LLVMPositionBuilderAtEnd(builder, end);
    LLVMBuildRet(builder, LLVMBuildSIToFP(builder, sum, ir->number, ""));

    /* The loop begins with the interpreter's values. */
    LLVMAddIncoming(i, (LLVMValueRef[]){LLVMGetParam(ir->function, 2), next}, from, 2);
    LLVMAddIncoming(sum, (LLVMValueRef[]){LLVMGetParam(ir->function, 3), more}, from, 2);
}

static struct ir build_module(LLVMContextRef context, const cairn_exit *exit)
{
    struct ir ir = {.context = context, .exit = exit};
    ir.module = LLVMModuleCreateWithNameInContext("osr", context);
    ir.builder = LLVMCreateBuilderInContext(context);
    declare(&ir);
    build_loop(&ir);
    LLVMDisposeBuilder(ir.builder);
    return ir;
}

/* ---- 3. Out of the compiled loop: the guard's exit ---- */

static int64_t left_at = -1;

/* Continues in the interpreter. Its frame replaces the compiled function's frame. */
static double go_on_interpreting(const struct item *items, int64_t count, int64_t i, int64_t sum)
{
    struct state state = {.items = items, .count = count, .i = i, .sum = {.integer = sum}};
    left_at = i;
    printf("left compiled code at item %" PRId64 ", which is %s\n", i,
           items[i].is_number ? "a floating-point number" : "an integer");
    return interpret(&state);
}

/* Leaves compiled code. The frame's locals are the arguments of go_on_interpreting, in order. */
static void leave_compiled(struct cairn_exit_call *call, void *user)
{
    cairn_signature *const *signature = user;
    struct cairn_error error;
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    struct cairn_value locals[LOCALS];
    check(cairn_frame_state_read(&call->frame, call->record, 0, &state, &error), &error);
    check(cairn_frame_state_frame(&state, 0, &frame, &error), &error);
    for (uint32_t i = 0; i < LOCALS; i++)
        check(cairn_frame_state_value(&state, &frame, i, &locals[i], &error), &error);
    check(cairn_exit_enter(call, *signature, (void *)(uintptr_t)go_on_interpreting, locals, LOCALS,
                           &error),
          &error);
}

/* ---- 4. Into the compiled loop ---- */

static int64_t entered_at = -1;

static double enter_compiled(const struct state *state)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_signature *signature;
    cairn_engine *engine;
    cairn_exit *exit;
    struct cairn_value sum;
    LLVMContextRef context = LLVMContextCreate();
    const struct cairn_engine_options options = {.optimisation_level = 2};
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_exit_create(runtime, leave_compiled, &signature, &exit, &error), &error);
    struct ir ir = build_module(context, exit);
    check(cairn_signature_of_function(NULL, ir.type, &signature, &error), &error);
    check(cairn_engine_create(runtime, ir.module, &options, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    const void *loop = cairn_engine_function(engine, "loop", &error);
    if (loop == NULL)
        fail(error.message);

    entered_at = state->i;
    printf("entered compiled code at item %" PRId64 "\n", state->i);
    const struct cairn_value live[] = {
        cairn_value_of_pointer(state->items), cairn_value_of_integer(64, state->count),
        cairn_value_of_integer(64, state->i), cairn_value_of_integer(64, state->sum.integer)};
    check(cairn_call(signature, loop, live, 4, &sum, &error), &error);

    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    cairn_signature_destroy(signature);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return cairn_value_double(&sum);
}

/* ---- 5. Run it, twice ---- */

int main(void)
{
    static struct item items[COUNT];
    for (int64_t i = 0; i < COUNT; i++)
        items[i] = (struct item){.integer = i % 1000 - 300};
    items[ODD_ONE] = (struct item){.is_number = 1, .number = 0.5};

    struct state interpreted = {.items = items, .count = COUNT};
    struct state compiled = {.items = items, .count = COUNT, .enter_compiled = enter_compiled};
    double expected = interpret(&interpreted);
    double sum = interpret(&compiled);
    printf("the sum is %.1f; interpreted all the way it is %.1f\n", sum, expected);
    return sum == expected && entered_at == HOT && left_at == ODD_ONE ? 0 : 1;
}
