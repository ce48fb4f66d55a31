/*
 * cairn-bench-free: the time of cairn_runtime_free_unused, compared with a walk over the same
 * stack.
 *
 * A compiled function calls itself to some depth, and then the host. The retired modules are kept
 * by references, so that each call checks all of them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 301, GROUP = 10, RETIRED_MAX = 100 };

static const char text[] = "declare void @stop()\n"
                           "declare i64 @next(i64)\n"
                           "define i64 @f(i64 %%n) uwtable noinline {\n"
                           "  %%last = icmp eq i64 %%n, 1\n"
                           "  br i1 %%last, label %%end, label %%more\n"
                           "end:\n"
                           "  call void @stop()\n"
                           "  ret i64 1\n"
                           "more:\n"
                           "  %%m = sub i64 %%n, 1\n"
                           "  %%r = call i64 @%s(i64 %%m)\n"
                           "  %%s = xor i64 %%r, %%n\n"
                           "  ret i64 %%s\n"
                           "}\n";

static const struct bench_options options = {.json = false};
static cairn_runtime *runtime;
static LLVMContextRef llvm;
static cairn_engine *engines[RETIRED_MAX]; /* NULL: retired */
static int retired_count;
static int depth;

static void fail(const char *what)
{
    fprintf(stderr, "cairn-bench-free: %s\n", what);
    exit(1);
}

/* ---- Times, in microseconds for each call ---- */

static void begin(struct cairn_walk *walk, const struct cairn_frame *frame)
{
    cairn_walk_begin(walk, frame);
    walk->foreign = cairn_walk_native;
}

static double time_walk(const struct cairn_frame *frame)
{
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        struct cairn_walk walk;
        int frames = 0;
        begin(&walk, frame);
        while (cairn_walk_next(&walk, NULL) == CAIRN_OK && !walk.has_ended)
            frames++;
        if (frames != depth)
            fail("the walk does not find all frames");
    }
    return (bench_now_of_thread() - begun) / (1e3 * (int)GROUP);
}

static double time_free(const struct cairn_frame *frame)
{
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        struct cairn_walk walk;
        begin(&walk, frame);
        if (cairn_runtime_free_unused(runtime, &walk, 1, NULL, NULL) != CAIRN_OK)
            fail("the walk does not end");
    }
    return (bench_now_of_thread() - begun) / (1e3 * (int)GROUP);
}

/* Called by the innermost compiled function. */
static void stop(void)
{
    static double frees[SAMPLES];
    static double walks[SAMPLES];
    struct cairn_context context;
    struct cairn_frame frame;
    char name[64];
    if (cairn_context_save(&context) != 0)
        return;
    if (cairn_frame_from_context(runtime, &context, true, &frame, NULL) != CAIRN_OK)
        fail("no frame");
    for (int i = 0; i < retired_count; i++) {
        cairn_engine_destroy(engines[i]);
        engines[i] = NULL;
    }
    for (int i = 0; i < SAMPLES; i++) {
        walks[i] = time_walk(&frame);
        frees[i] = time_free(&frame);
    }
    snprintf(name, sizeof name, "free-unused.%d-frames.%d-retired", depth, retired_count);
    const struct bench_figure figure = {
        .name = name,
        .value = bench_percentile(frees, SAMPLES, 0.5),
        .unit = "us",
        .peer = "cairn_walk_next",
        .peer_value = bench_percentile(walks, SAMPLES, 0.5),
    };
    bench_print(&options, &figure);
}

/* ---- Compiled code ---- */

typedef int64_t compiled_function(int64_t depth);

static compiled_function *newest;

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = strcmp(name, "stop") == 0 ? (uintptr_t)stop : (uintptr_t)newest;
    return true;
}

/* Loads a module that calls the newest one; the first one calls itself. */
static void load(cairn_engine **engine)
{
    const struct cairn_engine_options engine_options = {.load = {.find_symbol = find_symbol}};
    struct cairn_error error;
    LLVMModuleRef module;
    char *message;
    char own_text[sizeof text + 8];
    snprintf(own_text, sizeof own_text, text, newest == NULL ? "f" : "next");
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(own_text, strlen(own_text), "bench");
    if (LLVMParseIRInContext(llvm, buffer, &module, &message) != 0)
        fail(message);
    if (cairn_engine_create(runtime, module, &engine_options, engine, &error) != CAIRN_OK ||
        cairn_engine_compile(*engine, &error) != CAIRN_OK)
        fail(error.message);
    newest = (compiled_function *)(uintptr_t)cairn_engine_function(*engine, "f", &error);
    if (newest == NULL)
        fail(error.message);
}

/* The deepest stack comes first: each module has a frame in all of them. */
static void bench(int count)
{
    newest = NULL;
    for (retired_count = 0; retired_count < count; retired_count++)
        load(&engines[retired_count]);
    for (depth = 1000; newest != NULL && depth >= 10 && depth >= count; depth /= 10)
        newest(depth);
    cairn_runtime_quiesce(runtime);
}

int main(void)
{
    struct cairn_error error;
    llvm = LLVMContextCreate();
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    bench(1);
    bench(10);
    bench(RETIRED_MAX);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(llvm);
    return 0;
}
