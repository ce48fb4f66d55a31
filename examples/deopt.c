/*
 * deopt: compiled code that computes with integers only. Where an addition overflows in the middle
 * of an inlined function, an interpreter takes over and continues with doubles.
 *
 *     cc deopt.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * A small bytecode is compiled with its calls inlined. Where an addition overflows, the compiled
 * code leaves at a guard with a frame state, which describes the interpreter's frames of the
 * inlined function and of its caller. The handler builds these frames, the interpreter runs them to
 * their end, and the compiled function returns the result.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCALS_MAX = 3, STACK_MAX = 4, FRAMES_MAX = 4, CODE_MAX = 24 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "deopt: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. Numbers: integers, or doubles if an integer overflows ---- */

/* A number, which compiled code returns in two registers. */
struct number {
    int64_t is_double;
    int64_t bits;
};

static struct number integer(int64_t value) { return (struct number){0, value}; }

static struct number real(double value)
{
    struct number number = {.is_double = 1};
    memcpy(&number.bits, &value, sizeof value);
    return number;
}

static double as_double(struct number number)
{
    double value;
    memcpy(&value, &number.bits, sizeof value);
    return number.is_double ? value : (double)number.bits;
}

static struct number add(struct number left, struct number right)
{
    int64_t sum;
    bool are_integers = !left.is_double && !right.is_double;
    if (are_integers && !__builtin_add_overflow(left.bits, right.bits, &sum))
        return integer(sum);
    return real(as_double(left) + as_double(right));
}

static void print(const char *name, struct number number)
{
    if (number.is_double)
        printf("%s%g", name, as_double(number));
    else
        printf("%s%" PRId64, name, number.bits);
}

/* ---- 2. The bytecode ---- */

enum opcode { CONSTANT, GET, SET, ADD, LESS, JUMP_IF, CALL, RETURN };

struct instruction {
    enum opcode opcode;
    int64_t operand;
};

struct function {
    const char *name;
    uint32_t parameter_count;
    uint32_t local_count; /* number of locals; the parameters come first */
    struct instruction code[CODE_MAX];
};

enum { GROW, STEP };

static const struct function functions[] = {
    [GROW] = {"grow",
              1,
              3, /* n, total, i */
              {
                  {CONSTANT, 0},                                             /* total = 0; i = 0; */
                  {SET, 1},      {CONSTANT, 0}, {SET, 2},     {CONSTANT, 1}, /* 4: total = 1 +
                                                                                step(total, i); */
                  {GET, 1},      {GET, 2},      {CALL, STEP}, {ADD, 0},      {SET, 1},
                  {GET, 2},                                             /* i = i + 1; */
                  {CONSTANT, 1}, {ADD, 0},      {SET, 2},     {GET, 2}, /* if (i < n) goto 4; */
                  {GET, 0},      {LESS, 0},     {JUMP_IF, 4}, {GET, 1}, /* return total; */
                  {RETURN, 0},
              }},
    [STEP] = {"step",
              2,
              3, /* total, i, twice */
              {
                  {GET, 0}, /* twice = total + total; */
                  {GET, 0},
                  {ADD, 0},
                  {SET, 2},
                  {GET, 2}, /* return twice + i; */
                  {GET, 1},
                  {ADD, 0},
                  {RETURN, 0},
              }},
};

/* ---- 3. The interpreter ---- */

struct frame {
    const struct function *function;
    uint64_t position; /* position of the next instruction */
    uint32_t height;
    struct number locals[LOCALS_MAX];
    struct number stack[STACK_MAX];
};

static void push(struct frame *frame, struct number number)
{
    frame->stack[frame->height++] = number;
}

static struct number pop(struct frame *frame) { return frame->stack[--frame->height]; }

static void call(struct frame *caller, struct frame *callee, const struct function *function)
{
    *callee = (struct frame){.function = function};
    for (uint32_t i = function->parameter_count; i > 0; i--)
        callee->locals[i - 1] = pop(caller);
}

/* Runs the frames, of which the last is the innermost, until the first one returns. */
static struct number interpret(struct frame *frames, size_t count)
{
    for (;;) {
        struct frame *frame = &frames[count - 1];
        struct instruction next = frame->function->code[frame->position++];
        struct number right;
        switch (next.opcode) {
        case CONSTANT:
            push(frame, integer(next.operand));
            break;
        case GET:
            push(frame, frame->locals[next.operand]);
            break;
        case SET:
            frame->locals[next.operand] = pop(frame);
            break;
        case ADD:
            right = pop(frame);
            push(frame, add(pop(frame), right));
            break;
        case LESS:
            right = pop(frame);
            push(frame, integer(as_double(pop(frame)) < as_double(right)));
            break;
        case JUMP_IF:
            if (pop(frame).bits != 0)
                frame->position = (uint64_t)next.operand;
            break;
        case CALL:
            call(frame, &frames[count++], &functions[next.operand]);
            break;
        case RETURN:
            if (--count == 0)
                return pop(frame);
            push(&frames[count - 1], pop(frame));
            break;
        }
    }
}

/* ---- 4. From compiled code to the interpreter: the handler of overflows ---- */

static unsigned overflows;

static void print_frame(const struct frame *frame)
{
    printf("    %s, at %" PRIu64, frame->function->name, frame->position);
    for (uint32_t i = 0; i < frame->function->local_count; i++)
        print(i == 0 ? ", locals: " : ", ", frame->locals[i]);
    for (uint32_t i = 0; i < frame->height; i++)
        print(i == 0 ? ", stack: " : ", ", frame->stack[i]);
    puts("");
}

/* The interpreter's frames while they are rebuilt. */
struct rebuilt {
    struct frame frames[FRAMES_MAX];
    uint32_t count;
};

static bool begin_frame(const struct cairn_interpreter_frame *from, uint32_t index,
                        struct cairn_frame_slots *raw_slots, void *user)
{
    struct rebuilt *rebuilt = user;
    (void)raw_slots; /* the interpreter's slots are larger than 64 bits: set_slot sets them */
    if (index == FRAMES_MAX)
        return false;
    rebuilt->frames[rebuilt->count++] = (struct frame){.function = &functions[from->function],
                                                       .position = from->position,
                                                       .height = from->stack_count};
    return true;
}

/* A dead local becomes 0: it is set before it is read. */
static bool set_slot(const struct cairn_interpreter_frame *from, uint32_t index,
                     const struct cairn_value *value, void *user)
{
    struct rebuilt *rebuilt = user;
    struct frame *frame = &rebuilt->frames[rebuilt->count - 1];
    struct number *slot = index < from->local_count ? &frame->locals[index]
                                                    : &frame->stack[index - from->local_count];
    *slot = integer(cairn_value_signed(value));
    return true;
}

static void overflowed(struct cairn_exit_call *call, void *unused)
{
    struct cairn_error error;
    struct cairn_frame_state state;
    struct rebuilt rebuilt = {.count = 0};
    const struct cairn_frame_writer writer = {begin_frame, set_slot, &rebuilt, 0};
    (void)unused;
    overflows++;
    check(cairn_frame_state_read(&call->frame, call->record, 0, &state, &error), &error);
    check(cairn_frame_state_write(&state, &writer, &error), &error);
    printf("  overflow in compiled code, which becomes %" PRIu32 " frames of the interpreter:\n",
           rebuilt.count);
    for (uint32_t i = 0; i < rebuilt.count; i++)
        print_frame(&rebuilt.frames[i]);
    struct number result = interpret(rebuilt.frames, rebuilt.count);

    /* The frame of the compiled function is removed when this handler returns. Its caller gets the
     * result. */
    const struct cairn_value results[] = {cairn_value_of_integer(64, result.is_double),
                                          cairn_value_of_integer(64, result.bits)};
    check(cairn_exit_return(call, results, 2, &error), &error);
}

/* ---- 5. The compiler, which uses int64_t for every number ---- */

struct compiler {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMValueRef function; /* the compiled function, into which all calls are inlined */
    const cairn_exit *exit;
    uint64_t next_id;
};

/* A function that is being compiled, and the function into which it is being inlined. The values
 * are those that the interpreter would have in its frames. */
struct scope {
    struct scope *caller;
    const struct function *function;
    uint64_t position;
    uint32_t height;
    LLVMValueRef locals[LOCALS_MAX]; /* NULL until set */
    LLVMValueRef stack[STACK_MAX];
    /* The head of a loop: its block, and the locals at its start. */
    LLVMBasicBlockRef loop;
    LLVMValueRef in_loop[LOCALS_MAX];
};

static LLVMValueRef constant(const struct compiler *compiler, uint64_t value)
{
    return LLVMConstInt(compiler->int64, value, 0);
}

static LLVMBasicBlockRef append(const struct compiler *compiler, const char *name)
{
    return LLVMAppendBasicBlockInContext(compiler->context, compiler->function, name);
}

/* Compiles a guard: if the condition is false, the thread leaves compiled code with these frames.
 * Constants in the frames need no instructions. */
static void leave_unless(struct compiler *compiler, LLVMValueRef condition, struct scope *scope)
{
    struct cairn_error error;
    struct cairn_encoded_frame frames[FRAMES_MAX];
    uint32_t depth = 0;
    for (struct scope *inner = scope; inner != NULL; inner = inner->caller)
        depth++;
    struct cairn_encoded_frame *frame = &frames[depth];
    for (; scope != NULL; scope = scope->caller)
        *--frame = (struct cairn_encoded_frame){
            .function = (uint64_t)(scope->function - functions),
            .position = scope->position,
            .locals = scope->locals,
            .local_count = scope->function->local_count,
            .stack = scope->stack,
            .stack_count = scope->height,
        };
    const struct cairn_guard guard = {
        .id = compiler->next_id++,
        .exit = compiler->exit,
        .frames = frames,
        .frame_count = depth,
    };
    if (cairn_build_guard(compiler->builder, condition, &guard, &error) == NULL)
        fail(error.message);
}

/* Compiles an addition. After an overflow the interpreter repeats the addition, so its operands are
 * still on the stack. */
static void compile_add(struct compiler *compiler, struct scope *scope)
{
    static const char name[] = "llvm.sadd.with.overflow";
    LLVMBuilderRef builder = compiler->builder;
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMValueRef pair =
        LLVMBuildCall2(builder, LLVMIntrinsicGetType(compiler->context, id, &compiler->int64, 1),
                       LLVMGetIntrinsicDeclaration(compiler->module, id, &compiler->int64, 1),
                       &scope->stack[scope->height - 2], 2, "");
    LLVMValueRef sum = LLVMBuildExtractValue(builder, pair, 0, "");
    LLVMValueRef has_overflowed = LLVMBuildExtractValue(builder, pair, 1, "");
    leave_unless(compiler, LLVMBuildNot(builder, has_overflowed, ""), scope);
    scope->height -= 2;
    scope->stack[scope->height++] = sum;
}

static void compile_less(struct compiler *compiler, struct scope *scope)
{
    scope->height -= 2;
    LLVMValueRef *operands = &scope->stack[scope->height++];
    LLVMValueRef less = LLVMBuildICmp(compiler->builder, LLVMIntSLT, operands[0], operands[1], "");
    operands[0] = LLVMBuildZExt(compiler->builder, less, compiler->int64, "");
}

static void begin_loop(struct compiler *compiler, struct scope *scope)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(compiler->builder);
    scope->loop = append(compiler, "loop");
    LLVMBuildBr(compiler->builder, scope->loop);
    LLVMPositionBuilderAtEnd(compiler->builder, scope->loop);
    for (uint32_t i = 0; i < scope->function->local_count; i++) {
        LLVMValueRef phi = LLVMBuildPhi(compiler->builder, compiler->int64, "");
        LLVMAddIncoming(phi, &scope->locals[i], &before, 1);
        scope->locals[i] = scope->in_loop[i] = phi;
    }
}

static void compile_jump_if(struct compiler *compiler, struct scope *scope)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(compiler->builder);
    LLVMBasicBlockRef after = append(compiler, "after");
    LLVMValueRef condition = LLVMBuildICmp(
        compiler->builder, LLVMIntNE, scope->stack[--scope->height], constant(compiler, 0), "");
    LLVMBuildCondBr(compiler->builder, condition, scope->loop, after);
    for (uint32_t i = 0; i < scope->function->local_count; i++)
        LLVMAddIncoming(scope->in_loop[i], &scope->locals[i], &here, 1);
    LLVMPositionBuilderAtEnd(compiler->builder, after);
}

static void compile_return(struct compiler *compiler, struct scope *scope)
{
    LLVMValueRef result = scope->stack[--scope->height];
    if (scope->caller != NULL) {
        scope->caller->stack[scope->caller->height++] = result;
        return;
    }
    LLVMValueRef members[] = {constant(compiler, 0), result};
    LLVMBuildAggregateRet(compiler->builder, members, 2);
}

static void compile(struct compiler *compiler, struct scope *scope);

/* Compiles a call. While the callee is compiled, the caller's position is that of the next
 * instruction, as in the interpreter. */
static void compile_call(struct compiler *compiler, struct scope *caller,
                         const struct function *function)
{
    struct scope scope = {.caller = caller, .function = function};
    for (uint32_t i = function->parameter_count; i > 0; i--)
        scope.locals[i - 1] = caller->stack[--caller->height];
    caller->position++;
    compile(compiler, &scope);
    caller->position--;
}

static bool is_jump_target(const struct function *function, uint64_t position)
{
    for (size_t i = 0; i < CODE_MAX; i++)
        if (function->code[i].opcode == JUMP_IF && function->code[i].operand == (int64_t)position)
            return true;
    return false;
}

static void compile_instruction(struct compiler *compiler, struct scope *scope,
                                struct instruction instruction)
{
    switch (instruction.opcode) {
    case CONSTANT:
        scope->stack[scope->height++] = constant(compiler, (uint64_t)instruction.operand);
        break;
    case GET:
        scope->stack[scope->height++] = scope->locals[instruction.operand];
        break;
    case SET:
        scope->locals[instruction.operand] = scope->stack[--scope->height];
        break;
    case ADD:
        compile_add(compiler, scope);
        break;
    case LESS:
        compile_less(compiler, scope);
        break;
    case JUMP_IF:
        compile_jump_if(compiler, scope);
        break;
    case CALL:
        compile_call(compiler, scope, &functions[instruction.operand]);
        break;
    case RETURN:
        compile_return(compiler, scope);
        break;
    }
}

static void compile(struct compiler *compiler, struct scope *scope)
{
    struct instruction instruction;
    do {
        instruction = scope->function->code[scope->position];
        if (is_jump_target(scope->function, scope->position))
            begin_loop(compiler, scope);
        compile_instruction(compiler, scope, instruction);
        scope->position++;
    } while (instruction.opcode != RETURN);
}

/* Compiles `struct number grow(int64_t n)`. */
static LLVMModuleRef compile_module(LLVMContextRef context, const cairn_exit *exit)
{
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef members[] = {int64, int64};
    LLVMTypeRef number = LLVMStructTypeInContext(context, members, 2, 0);
    struct compiler compiler = {
        .context = context,
        .module = LLVMModuleCreateWithNameInContext("deopt", context),
        .builder = LLVMCreateBuilderInContext(context),
        .int64 = int64,
        .exit = exit,
        .next_id = 1,
    };
    compiler.function =
        LLVMAddFunction(compiler.module, "grow", LLVMFunctionType(number, &int64, 1, 0));
    LLVMPositionBuilderAtEnd(compiler.builder, append(&compiler, "entry"));
    struct scope scope = {.function = &functions[GROW],
                          .locals = {LLVMGetParam(compiler.function, 0)}};
    compile(&compiler, &scope);
    LLVMDisposeBuilder(compiler.builder);
    printf("compiled, with %" PRIu64 " places where it can be left\n", compiler.next_id - 1);
    return compiler.module;
}

/* ---- 6. Run it ---- */

typedef struct number compiled_function(int64_t n);

/* Compares the result of compiled code with that of the interpreter alone. */
static void compare(compiled_function *grow, int64_t n)
{
    struct frame frames[FRAMES_MAX] = {{.function = &functions[GROW], .locals = {integer(n)}}};
    struct number expected = interpret(frames, 1);
    printf("grow(%" PRId64 ")\n", n);
    struct number result = grow(n);
    print("  = ", result);
    puts(result.is_double ? ", a double" : ", an integer");
    if (result.is_double != expected.is_double || result.bits != expected.bits)
        fail("the interpreter alone gets another result");
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_exit *exit;
    cairn_engine *engine;
    const struct cairn_engine_options options = {.optimisation_level = 2};
    LLVMContextRef context = LLVMContextCreate();
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_exit_create(runtime, overflowed, NULL, &exit, &error), &error);
    check(cairn_engine_create(runtime, compile_module(context, exit), &options, &engine, &error),
          &error);
    check(cairn_engine_compile(engine, &error), &error);
    compiled_function *grow;
    *(void **)&grow = cairn_engine_function(engine, "grow", &error);
    if (grow == NULL)
        fail(error.message);

    compare(grow, 10);
    compare(grow, 50);
    compare(grow, 100);

    cairn_engine_destroy(engine);
    cairn_exit_destroy(exit);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return overflows == 1 ? 0 : 1;
}
