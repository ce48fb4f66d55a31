/*
 * profiler: a timer's signal interrupts compiled code, and the handler walks its stack.
 *
 *     cc profiler.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/context.h>
#include <cairn/llvm.h>
#include <cairn/walk.h>

#include <llvm-c/IRReader.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

enum { SAMPLES = 50, TURNS = 100000 };

static const char text[] = "define i64 @inner(i64 %n) noinline uwtable {\n"
                           "entry:\n"
                           "  br label %loop\n"
                           "loop:\n"
                           "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
                           "  %x = phi i64 [ 1, %entry ], [ %more, %loop ]\n"
                           "  %product = mul i64 %x, 6364136223846793005\n"
                           "  %more = add i64 %product, %i\n"
                           "  %next = add i64 %i, 1\n"
                           "  %goes_on = icmp slt i64 %next, %n\n"
                           "  br i1 %goes_on, label %loop, label %end\n"
                           "end:\n"
                           "  ret i64 %more\n"
                           "}\n"
                           "define i64 @outer(i64 %n) uwtable {\n"
                           "  %x = call i64 @inner(i64 %n)\n"
                           "  %y = add i64 %x, 1\n"
                           "  ret i64 %y\n"
                           "}\n";

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "profiler: %s\n", message);
    exit(1);
}

/* ---- 1. Counts: samples in the function itself, and in it or its callees ---- */

struct profiled {
    const char *name;
    uint64_t address;
    volatile sig_atomic_t self;
    volatile sig_atomic_t total;
};

static struct profiled functions[] = {{.name = "outer"}, {.name = "inner"}};
static cairn_runtime *runtime;
static volatile sig_atomic_t samples;

static void count(const struct cairn_frame *frame)
{
    struct cairn_function function;
    if (!cairn_frame_function(frame, &function))
        return;
    for (size_t i = 0; i < 2; i++)
        if (functions[i].address == function.address) {
            functions[i].self = functions[i].self + frame->is_innermost;
            functions[i].total = functions[i].total + 1;
        }
}

/* ---- 2. The signal handler, which takes no lock and allocates no memory ---- */

static void sample(int signal, siginfo_t *info, void *ucontext)
{
    struct cairn_context context;
    struct cairn_frame frame;
    struct cairn_walk walk;
    (void)signal;
    (void)info;
    samples = samples + 1;
    enum cairn_status status = cairn_context_from_signal(&context, ucontext, NULL);
    if (status != CAIRN_OK && status != CAIRN_ERROR_NOT_FOUND) /* without vector registers */
        return;
    if (cairn_frame_from_context(runtime, &context, false, &frame, NULL) != CAIRN_OK)
        return;
    cairn_walk_begin(&walk, &frame);
    walk.foreign = cairn_walk_native;
    while (cairn_walk_next(&walk, NULL) == CAIRN_OK && !walk.has_ended)
        count(&walk.frame);
}

static void set_timer(suseconds_t microseconds)
{
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_PROF, &timer, NULL);
}

/* ---- 3. Run it ---- */

static cairn_engine *load(LLVMContextRef context)
{
    struct cairn_error error;
    cairn_engine *engine;
    LLVMModuleRef module;
    char *message;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "profiler", 1);
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        fail(message);
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, NULL, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        fail(error.message);
    for (size_t i = 0; i < 2; i++)
        functions[i].address = (uintptr_t)cairn_engine_function(engine, functions[i].name, &error);
    return engine;
}

int main(void)
{
    LLVMContextRef context = LLVMContextCreate();
    cairn_engine *engine = load(context);
    int64_t (*outer)(int64_t) = (int64_t(*)(int64_t))(uintptr_t)functions[0].address;
    const struct sigaction action = {.sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    set_timer(1000);
    while (samples < SAMPLES)
        outer(TURNS);
    set_timer(0);
    for (size_t i = 0; i < 2; i++)
        printf("%s: %d of %d samples, %d in the function itself\n", functions[i].name,
               (int)functions[i].total, (int)samples, (int)functions[i].self);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return functions[1].self > 0 && functions[0].total >= functions[1].total ? 0 : 1;
}
