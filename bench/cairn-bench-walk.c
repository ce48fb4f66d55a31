/*
 * cairn-bench-walk: the time to walk over frames of compiled code, compared with the system's
 * unwinder and libunwind.
 *
 * Compiled functions call each other to a depth of 64. The last one calls the host, which walks
 * from the innermost to the outermost of them in each way, in turn. The time before the first of
 * these frames (saving registers, the host's own frames) is not counted. libunwind uses its fastest
 * cache.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#ifdef WITH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include "tests/libunwind_support.h"

#include <libunwind.h>
#endif

enum { DEPTH = 64, SAMPLES = 301, GROUP = 50, FUNCTIONS = 8 };

static cairn_runtime *runtime;
static const struct bench_options options = {.json = false};

static void fail(const char *what)
{
    fprintf(stderr, "cairn-bench-walk: %s\n", what);
    exit(1);
}

/* ---- Walks, in nanoseconds for each frame ---- */

static double time_steps(const struct cairn_frame *first)
{
    size_t frames = 0;
    struct cairn_walk walk;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        cairn_walk_begin(&walk, first);
        while (cairn_walk_next(&walk, NULL) == CAIRN_OK && !walk.has_ended)
            frames++;
    }
    double time = bench_now_of_thread() - begun;
    if (frames != GROUP * DEPTH)
        fail("the walk does not find all frames");
    return time / (double)frames;
}

static double time_callers(const struct cairn_frame *first)
{
    size_t frames = 0;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        struct cairn_frame frame = *first;
        while (frame.module != NULL && cairn_frame_caller(&frame, NULL) == CAIRN_OK)
            frames++;
    }
    double time = bench_now_of_thread() - begun;
    return time / (double)frames;
}

/* Measures a walk as in a profiler or a collector, which also finds the function and the record of
 * each frame. */
static double time_walk(const struct cairn_frame *first)
{
    size_t found = 0;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        struct cairn_walk walk;
        cairn_walk_begin(&walk, first);
        while (cairn_walk_next(&walk, NULL) == CAIRN_OK && !walk.has_ended) {
            struct cairn_function function;
            struct cairn_record record;
            found += cairn_frame_function(&walk.frame, &function);
            found += cairn_frame_record(&walk.frame, &record);
        }
    }
    double time = bench_now_of_thread() - begun;
    if (found < (size_t)GROUP * DEPTH)
        fail("the walk does not know all functions");
    return time / (GROUP * DEPTH);
}

static double time_native_walk(const struct cairn_frame *first)
{
    size_t frames = 0;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        struct cairn_frame frame = *first;
        while (frame.module == NULL && frame.pc != 0)
            if (cairn_frame_caller(&frame, NULL) == CAIRN_OK)
                frames++;
            else
                fail("a frame of the program cannot be left");
    }
    return (bench_now_of_thread() - begun) / (double)frames;
}

struct counter {
    size_t count;
    size_t wanted;
    uint64_t last;
};

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *user)
{
    struct counter *counter = user;
    counter->last = _Unwind_GetIP(context);
    counter->count++;
    return counter->count == counter->wanted ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static double time_backtrace(size_t frames)
{
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        struct counter counter = {.wanted = frames};
        _Unwind_Backtrace(count_frame, &counter);
        if (counter.count != frames)
            fail("_Unwind_Backtrace does not find all frames");
    }
    return (bench_now_of_thread() - begun) / (double)GROUP;
}

/* Returns the number of frames of a walk up to the first compiled one. */
static size_t count_before_compiled(void)
{
    size_t count = 0;
    struct counter counter;
    do {
        counter = (struct counter){.wanted = ++count};
        _Unwind_Backtrace(count_frame, &counter);
    } while (cairn_runtime_find_module(runtime, counter.last - 1) == NULL);
    return count;
}

/* Measures the system's unwinder, without the start of each walk. Not inlined, so that the number
 * of frames before the compiled ones does not change. */
static __attribute__((noinline)) double time_system(size_t before)
{
    double all = time_backtrace(before + DEPTH);
    double begin = time_backtrace(before);
    return (all - begin) / (double)DEPTH;
}

#ifdef WITH_LIBUNWIND
static double time_libunwind(const unw_cursor_t *first)
{
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++) {
        unw_cursor_t cursor = *first;
        for (int j = 0; j < DEPTH; j++)
            if (unw_step(&cursor) <= 0)
                fail("libunwind does not find all frames");
    }
    return (bench_now_of_thread() - begun) / (GROUP * DEPTH);
}

static void find_compiled(unw_context_t *context, unw_cursor_t *cursor)
{
    unw_word_t pc = 0;
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
    libunwind_register();
    if (unw_init_local(cursor, context) != 0)
        fail("libunwind does not begin");
    do
        if (unw_step(cursor) <= 0 || unw_get_reg(cursor, UNW_REG_IP, &pc) != 0)
            fail("libunwind does not find the compiled functions");
    while (cairn_runtime_find_module(runtime, pc - 1) == NULL);
}
#endif

/* ---- Figures ---- */

static const char *subject;

static void print(const char *way, double *values, const char *peer, double *peer_values,
                  double ratio_limit)
{
    char name[64];
    snprintf(name, sizeof name, "walk.%s.%s", way, subject);
    const struct bench_figure figure = {
        .name = name,
        .value = bench_percentile(values, SAMPLES, 0.5),
        .unit = "ns/frame",
        .peer = peer,
        .peer_value = peer == NULL ? 0 : bench_percentile(peer_values, SAMPLES, 0.5),
        .ratio_limit = ratio_limit,
    };
    bench_print(&options, &figure);
}

static void find_frames(struct cairn_context *context, struct cairn_frame *native,
                        struct cairn_frame *compiled)
{
    struct cairn_error error;
    enum cairn_status status = cairn_frame_from_context(runtime, context, true, native, &error);
    *compiled = *native;
    while (status == CAIRN_OK && compiled->module == NULL)
        status = cairn_frame_caller(compiled, &error);
    if (status != CAIRN_OK)
        fail(error.message);
    *native = *compiled;
    while (status == CAIRN_OK && native->module != NULL)
        status = cairn_frame_caller(native, &error);
}

/* Called by the innermost compiled function. */
static void stop(void)
{
    static struct cairn_context context;
    static double steps[SAMPLES];
    static double walks[SAMPLES];
    static double callers[SAMPLES];
    static double natives[SAMPLES];
    static double backtraces[SAMPLES];
    struct cairn_frame compiled;
    struct cairn_frame native;
    size_t before = count_before_compiled() + 1; /* plus the frame of time_system */
    if (cairn_context_save(&context) != 0)
        return;
    find_frames(&context, &native, &compiled);
#ifdef WITH_LIBUNWIND
    static double libunwinds[SAMPLES];
    unw_context_t registers;
    unw_cursor_t cursor;
    unw_getcontext(&registers);
    find_compiled(&registers, &cursor);
#endif
    for (int i = 0; i < SAMPLES; i++) {
        steps[i] = time_steps(&compiled);
        walks[i] = time_walk(&compiled);
        callers[i] = time_callers(&compiled);
        natives[i] = time_native_walk(&native);
        backtraces[i] = time_system(before);
#ifdef WITH_LIBUNWIND
        libunwinds[i] = time_libunwind(&cursor);
#endif
    }
    print("step", steps, "_Unwind_Backtrace", backtraces, 0.1);
#ifdef WITH_LIBUNWIND
    print("step", steps, "unw_step", libunwinds, 0.2);
#else
    bench_print_missing(&options, "walk.step", "libunwind was not found");
#endif
    print("frame-caller", callers, NULL, NULL, 0);
    print("function-and-record", walks, NULL, NULL, 0);
    print("native", natives, NULL, NULL, 0);
}

/* ---- Compiled code ---- */

struct text {
    char bytes[1 << 15];
    size_t size;
};

#define put(text, ...)                                                                             \
    ((text)->size += (size_t)snprintf((text)->bytes + (text)->size,                                \
                                      sizeof(text)->bytes - (text)->size, __VA_ARGS__))

/* Writes a function that calls the next function, or the last one the host, with `kept` values live
 * across the call. */
static void put_function(struct text *text, int number, int kept, int count)
{
    int next = (number * 5 + 3) % count;
    put(text, "define i64 @f%d(i64 %%n) uwtable noinline {\n", number);
    for (int i = 0; i < kept; i++)
        put(text, "  %%k%d = mul i64 %%n, %d\n", i, 2 * i + 3);
    put(text,
        "  %%last = icmp eq i64 %%n, 1\n"
        "  br i1 %%last, label %%end, label %%more\n"
        "end:\n"
        "  call void @stop()\n"
        "  br label %%out\n"
        "more:\n"
        "  %%m = sub i64 %%n, 1\n"
        "  %%r = call i64 @f%d(i64 %%m)\n"
        "  br label %%out\n"
        "out:\n"
        "  %%s0 = phi i64 [ 0, %%end ], [ %%r, %%more ]\n",
        next);
    for (int i = 0; i < kept; i++)
        put(text, "  %%s%d = xor i64 %%s%d, %%k%d\n", i + 1, i, i);
    put(text, "  ret i64 %%s%d\n}\n", kept);
}

static LLVMModuleRef make_module(LLVMContextRef context, int functions, int kept)
{
    static struct text text;
    LLVMModuleRef module = NULL;
    char *message = NULL;
    text.size = 0;
    put(&text, "declare void @stop()\n");
    for (int i = 0; i < functions; i++)
        put_function(&text, i, kept >= 0 ? kept : i, functions);
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text.bytes, text.size, "bench");
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        fail(message);
    return module;
}

typedef int64_t compiled_function(int64_t depth);

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)stop;
    return strcmp(name, "stop") == 0;
}

static void bench(const char *name, int functions, int kept)
{
    struct cairn_error error;
    cairn_engine *engine = NULL;
    compiled_function *function = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = make_module(context, functions, kept);
    const struct cairn_engine_options engine_options = {
        .optimisation_level = 2,
        .load = {.find_symbol = find_symbol, .registers_unwind_tables = true},
    };
    subject = name;
    if (cairn_engine_create(runtime, module, &engine_options, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK)
        fail(error.message);
    *(void **)&function = cairn_engine_function(engine, "f0", &error);
    if (function == NULL)
        fail(error.message);
    function(DEPTH);
#ifdef WITH_LIBUNWIND
    libunwind_forget();
#endif
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
}

int main(void)
{
    struct cairn_error error;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK)
        fail(error.message);
    bench("one-function", 1, 3);
    bench("functions", FUNCTIONS, -1);
    bench("functions-that-keep-6", FUNCTIONS, 6);
    bench("64-functions", DEPTH, 3);
    cairn_runtime_destroy(runtime);
    return 0;
}
