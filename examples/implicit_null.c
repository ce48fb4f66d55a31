/*
 * Implicit null checks: a check for null that costs nothing. LLVM removes the check, because the
 * load after it would fault anyway. After a fault, execution continues where the check would have
 * branched.
 *
 * This works on x86-64 and AArch64. Elsewhere LLVM keeps the check, and the results are the same
 * without faults.
 *
 *     cc implicit_null.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 20000000, NULLS = 100000 };

struct object {
    int64_t shape;
    int64_t value;
};

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "implicit_null: %s: %s\n", cairn_status_name(status), error->message);
    exit(1);
}

/* ---- 1. IR: int64_t value(struct object *o) { return o == NULL ? -1 : o->value; } ---- */

static LLVMValueRef load_value(LLVMBuilderRef builder, LLVMValueRef object, LLVMTypeRef int64)
{
    LLVMValueRef offset = LLVMConstInt(int64, offsetof(struct object, value), 0);
    LLVMTypeRef byte = LLVMInt8TypeInContext(LLVMGetTypeContext(int64));
    LLVMValueRef address = LLVMBuildGEP2(builder, byte, object, &offset, 1, "address");
    LLVMValueRef typed = LLVMBuildBitCast(builder, address, LLVMPointerType(int64, 0), "");
    return LLVMBuildLoad2(builder, int64, typed, "value");
}

/* Builds the function. It is so small that it must not use cairn_prepare_function: LLVM up to 16
 * would place the prologue between the check and the load, and then keep the check. */
static void build_function(LLVMModuleRef module, const char *name, int is_implicit)
{
    struct cairn_error error;
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef pointer = LLVMPointerType(LLVMInt8TypeInContext(context), 0);
    LLVMValueRef function = LLVMAddFunction(module, name, LLVMFunctionType(int64, &pointer, 1, 0));
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context, function, "entry");
    LLVMBasicBlockRef null = LLVMAppendBasicBlockInContext(context, function, "null");
    LLVMBasicBlockRef there = LLVMAppendBasicBlockInContext(context, function, "there");
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);

    LLVMPositionBuilderAtEnd(builder, entry);
    LLVMValueRef object = LLVMGetParam(function, 0);
    LLVMValueRef branch =
        LLVMBuildCondBr(builder, LLVMBuildIsNull(builder, object, ""), null, there);
    if (is_implicit)
        check(cairn_make_implicit(branch, &error), &error);
    LLVMPositionBuilderAtEnd(builder, null);
    LLVMBuildRet(builder, LLVMConstInt(int64, (unsigned long long)-1, 1));
    LLVMPositionBuilderAtEnd(builder, there);
    LLVMBuildRet(builder, load_value(builder, object, int64));
    LLVMDisposeBuilder(builder);
}

static LLVMModuleRef build_module(LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("implicit_null", context);
    build_function(module, "checked", 0);
    build_function(module, "unchecked", 1);
    return module;
}

/* ---- 2. The handler of SIGSEGV: a process has only one, so its data are global ---- */

static cairn_runtime *runtime;
static struct sigaction previous;
static volatile sig_atomic_t fault_count;

/* Passes other faults to the previous handler. If that was the default action, the process ends,
 * because the instruction faults again when this handler returns. */
static void pass_on(int signal, siginfo_t *info, void *ucontext)
{
    if ((previous.sa_flags & SA_SIGINFO) != 0)
        previous.sa_sigaction(signal, info, ucontext);
    else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
        sigaction(signal, &previous, NULL);
    else
        previous.sa_handler(signal);
}

static void handle(int signal, siginfo_t *info, void *ucontext)
{
    if (!cairn_fault_continue(runtime, info, ucontext, 0, NULL)) {
        pass_on(signal, info, ucontext);
        return;
    }
    fault_count = fault_count + 1;
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, &previous) != 0)
        exit(1);
}

/* ---- 3. What it costs ---- */

typedef int64_t value_function(struct object *object);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double time_calls(value_function *function, struct object *object, int turns,
                         int64_t expected)
{
    double start = now();
    for (int i = 0; i < turns; i++)
        if (function(object) != expected)
            exit(1);
    return (now() - start) / turns;
}

static void print_faults(value_function *function)
{
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)function);
    const cairn_fault_table *table = cairn_module_fault_table(module);
    struct cairn_fault_entry entry;
    for (uint32_t i = 0; cairn_fault_table_entry(table, i, &entry); i++)
        printf("the %s at +%" PRIu64 " may fault, and goes on at +%" PRIu64 "\n",
               cairn_fault_kind_name(entry.kind), entry.address - entry.function_address,
               entry.handler_address - entry.function_address);
}

static value_function *find(cairn_engine *engine, const char *name)
{
    struct cairn_error error;
    value_function *function;
    *(void **)&function = cairn_engine_function(engine, name, &error);
    if (function == NULL)
        check(error.status, &error);
    return function;
}

int main(void)
{
    struct cairn_error error;
    struct object object = {1, 42};
    cairn_engine *engine;
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    LLVMContextRef context = LLVMContextCreate();
    const struct cairn_engine_options options = {.optimisation_level = 2,
                                                 .implicit_null_checks = true};
    check(cairn_engine_create(runtime, build_module(context), &options, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    value_function *checked = find(engine, "checked");
    value_function *unchecked = find(engine, "unchecked");
    install();

    print_faults(unchecked);
    printf("an object: %.2f ns with a check, %.2f ns without\n",
           time_calls(checked, &object, TURNS, 42), time_calls(unchecked, &object, TURNS, 42));
    printf("null: %.2f ns with a check, %.0f ns without\n", time_calls(checked, NULL, TURNS, -1),
           time_calls(unchecked, NULL, NULLS, -1));
    printf("%d faults went on at their handlers\n", (int)fault_count);

    sigaction(SIGSEGV, &previous, NULL);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return 0;
}
