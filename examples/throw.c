/*
 * A VM's throw: an error in compiled code is caught by a C function further out, through frames of
 * compiled code and of the interpreter.
 *
 * The compiled function divide(x, y) leaves at a patch point if y is 0. The exit's handler notes
 * the error and resumes at the context that run_protected has saved. Compiled and interpreted
 * functions call each other in between; none of them tests for errors.
 *
 *     cc throw.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

enum { DIVIDE_BY_ZERO = 42 };

/* long through(long n) { return interpret(n - 1) + n; } */
static const char text[] =
    "declare i64 @interpret(i64)\n"
    "declare void @llvm.experimental.patchpoint.void(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @through(i64 %n) uwtable {\n"
    "  %m = sub i64 %n, 1\n"
    "  %r = call i64 @interpret(i64 %m)\n"
    "  %s = add i64 %r, %n\n"
    "  ret i64 %s\n"
    "}\n"
    "define i64 @divide(i64 %x, i64 %y) uwtable {\n"
    "  %is_zero = icmp eq i64 %y, 0\n"
    "  br i1 %is_zero, label %cold, label %divide\n"
    "divide:\n"
    "  %q = sdiv i64 %x, %y\n"
    "  ret i64 %q\n"
    "cold:\n"
    "  call void (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 42, i32 48, " PTR " null, i32 0, i64 %x)\n"
    "  unreachable\n"
    "}\n";

/* ---- The VM ---- */

struct protection {
    struct cairn_context context;
    struct protection *outer;
};

static struct {
    struct protection *protection; /* the innermost one */
    const char *error;
    int64_t operand;
    int frames; /* frames of compiled code that were left */
    int64_t divisor;
    int64_t (*through)(int64_t n);
    int64_t (*divide)(int64_t x, int64_t y);
} vm;

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "throw: %s\n", message);
    exit(1);
}

/* What compiled code calls: interprets a function that calls compiled code again. */
static int64_t interpret(int64_t n) { return n == 0 ? vm.divide(100, vm.divisor) : vm.through(n); }

/* Runs a function. Returns false if it has thrown an error, which is then in `vm.error`. */
static bool run_protected(int64_t n, int64_t *result)
{
    struct protection here = {.outer = vm.protection};
    vm.protection = &here;
    bool succeeded = cairn_context_save(&here.context) == 0;
    if (succeeded)
        *result = interpret(n);
    vm.protection = here.outer;
    return succeeded;
}

/* Counts the compiled frames that are left; a VM would make the error's stack trace here. */
static void count_frames(const struct cairn_frame *first)
{
    struct cairn_walk walk;
    cairn_walk_begin(&walk, first);
    walk.foreign = cairn_walk_native;
    for (vm.frames = 0; cairn_walk_next(&walk, NULL) == CAIRN_OK && !walk.has_ended; vm.frames++)
        continue;
}

/* The exit's handler throws. */
static void divided_by_zero(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error;
    struct cairn_value operand;
    (void)user;
    if (cairn_frame_value(&call->frame, call->record, 0, &operand, &error) != CAIRN_OK)
        fail(error.message);
    vm.error = "division by zero";
    vm.operand = cairn_value_signed(&operand);
    count_frames(&call->frame);
    if (cairn_exit_resume(call, &vm.protection->context, &error) != CAIRN_OK)
        fail(error.message);
}

/* ---- Compiling ---- */

static LLVMModuleRef parse(LLVMContextRef context)
{
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "throw", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) == 0)
        return module;
    fail(message);
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    (void)name;
    *address = (uintptr_t)interpret;
    return true;
}

static void *find_function(cairn_engine *engine, const char *name)
{
    struct cairn_error error;
    void *function = cairn_engine_function(engine, name, &error);
    if (function == NULL)
        fail(error.message);
    return function;
}

int main(void)
{
    struct cairn_error error;
    cairn_engine *engine;
    cairn_exit *exit;
    int64_t result = 0;
    LLVMContextRef context = LLVMContextCreate();
    const struct cairn_engine_options options = {.optimisation_level = 2,
                                                 .load = {.find_symbol = find_symbol}};
    if (cairn_engine_create(NULL, parse(context), &options, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        fail(error.message);
    *(void **)&vm.through = find_function(engine, "through");
    *(void **)&vm.divide = find_function(engine, "divide");
    cairn_site *site = cairn_engine_site(engine, DIVIDE_BY_ZERO, &error);
    if (site == NULL ||
        cairn_site_leave(site, divided_by_zero, NULL, CAIRN_SYNC, &exit, &error) != CAIRN_OK)
        fail(error.message);

    vm.divisor = 5;
    bool succeeded = run_protected(4, &result);
    printf("100 / 5 + 1 + 2 + 3 + 4 is %lld\n", (long long)result);
    vm.divisor = 0;
    bool failed = !run_protected(4, &result);
    printf("%lld / 0: %s, through %d frames of compiled code\n", (long long)vm.operand, vm.error,
           vm.frames);

    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return succeeded && failed && result == 30 && vm.frames == 5 ? 0 : 1;
}
