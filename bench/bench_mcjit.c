/*
 * Compiling and loading a module: with Cairn's engine, which also scans, checks, decodes, arms and
 * publishes, and with MCJIT and LLVM's own memory manager, in turn. Both with a new engine for each
 * module, and with one engine for all.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_mcjit.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* Small modules take less time, so they are measured more often; with one engine for all, where
 * both take nearly the same time, most often. */
enum { PAIRS_MAX = 301, PAIRS_OF_LARGE = 31, LARGE = 30, PAIRS_OF_WARM = 2001 };

static int64_t target(int64_t value) { return value + 1; }

/* Builds a function: arithmetic as in a loop, a patch point, and a stack map. */
static bool build_function(LLVMModuleRef module, LLVMBuilderRef builder, unsigned number)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    char name[32];
    snprintf(name, sizeof name, "function%u", number);
    LLVMValueRef function = LLVMAddFunction(module, name, LLVMFunctionType(int64, &int64, 1, 0));
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
    LLVMValueRef value = LLVMGetParam(function, 0);
    for (unsigned i = 0; i < 20; i++)
        value =
            LLVMBuildAdd(builder, LLVMBuildMul(builder, value, LLVMConstInt(int64, i + 3, 0), ""),
                         LLVMConstInt(int64, number, 0), "");
    struct cairn_patchpoint patchpoint = {
        .id = 2 * number,
        .byte_count = 16,
        .target = LLVMConstInt(int64, (uintptr_t)target, 0),
        .result_type = int64,
        .arguments = &value,
        .argument_count = 1,
        .live_values = &value,
        .live_value_count = 1,
    };
    LLVMValueRef result = cairn_build_patchpoint(builder, &patchpoint, NULL);
    if (result == NULL ||
        cairn_build_stackmap(builder, 2 * number + 1, 0, &result, 1, NULL) == NULL)
        return false;
    LLVMBuildRet(builder, result);
    return true;
}

static LLVMModuleRef build_module(LLVMContextRef context, unsigned function_count)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("bench", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    for (unsigned i = 0; i < function_count; i++)
        if (!build_function(module, builder, i))
            abort();
    LLVMDisposeBuilder(builder);
    return module;
}

typedef int64_t compiled_function(int64_t value);

static double time_cairn(cairn_runtime *runtime, unsigned function_count)
{
    struct cairn_error error;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = build_module(context, function_count);
    /* The verifier is not run, as with LLVM's own memory manager. */
    const struct cairn_engine_options options = {.optimisation_level = 2, .is_verified = true};
    double start = bench_now_of_thread();
    cairn_engine *engine;
    compiled_function *function = NULL;
    if (cairn_engine_create(runtime, module, &options, &engine, &error) == CAIRN_OK &&
        cairn_engine_compile(engine, &error) == CAIRN_OK)
        *(void **)&function = cairn_engine_function(engine, "function0", &error);
    if (function == NULL) {
        fprintf(stderr, "cairn-bench: %s\n", error.message);
        exit(1);
    }
    double time = bench_now_of_thread() - start;
    function(1);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_quiesce(runtime);
    return time / 1e6;
}

static double time_llvm(unsigned function_count)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = build_module(context, function_count);
    struct LLVMMCJITCompilerOptions options;
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.OptLevel = 2;
    options.NoFramePointerElim = 1; /* as cairn_prepare_function has requested; 0 would revert it */
    double start = bench_now_of_thread();
    LLVMExecutionEngineRef engine;
    char *message = NULL;
    if (LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message)) {
        fprintf(stderr, "cairn-bench: %s\n", message);
        exit(1);
    }
    compiled_function *function =
        (compiled_function *)(uintptr_t)LLVMGetFunctionAddress(engine, "function0");
    double time = bench_now_of_thread() - start;
    function(1);
    LLVMDisposeExecutionEngine(engine);
    LLVMContextDispose(context);
    return time / 1e6;
}

/* ---- One engine for all modules ---- */

static cairn_engine *warm_cairn(cairn_runtime *runtime, LLVMContextRef context)
{
    struct cairn_error error;
    cairn_engine *engine;
    const struct cairn_engine_options options = {.optimisation_level = 2, .is_verified = true};
    LLVMModuleRef empty = LLVMModuleCreateWithNameInContext("empty", context);
    if (cairn_engine_create(runtime, empty, &options, &engine, &error) == CAIRN_OK)
        return engine;
    fprintf(stderr, "cairn-bench: %s\n", error.message);
    exit(1);
}

static LLVMExecutionEngineRef warm_llvm(LLVMContextRef context)
{
    struct LLVMMCJITCompilerOptions options;
    LLVMExecutionEngineRef engine;
    char *message = NULL;
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.OptLevel = 2;
    options.NoFramePointerElim = 1;
    LLVMModuleRef empty = LLVMModuleCreateWithNameInContext("empty", context);
    if (LLVMCreateMCJITCompilerForModule(&engine, empty, &options, sizeof options, &message)) {
        fprintf(stderr, "cairn-bench: %s\n", message);
        exit(1);
    }
    return engine;
}

/* Builds a module with one function, whose name no other module has. */
static LLVMModuleRef build_numbered(LLVMContextRef context, unsigned number, char name[32])
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("bench", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    snprintf(name, 32, "function%u", number);
    if (!build_function(module, builder, number))
        abort();
    LLVMDisposeBuilder(builder);
    return module;
}

/* Also retires the module, which is not measured. */
static double time_warm_cairn(cairn_runtime *runtime, cairn_engine *engine, LLVMContextRef context,
                              unsigned number)
{
    struct cairn_error error;
    char name[32];
    compiled_function *function = NULL;
    LLVMModuleRef module = build_numbered(context, number, name);
    double start = bench_now_of_thread();
    if (cairn_engine_add_module(engine, module, &error) == CAIRN_OK &&
        cairn_engine_compile(engine, &error) == CAIRN_OK)
        *(void **)&function = cairn_engine_function(engine, name, &error);
    double time = bench_now_of_thread() - start;
    if (function == NULL) {
        fprintf(stderr, "cairn-bench: %s\n", error.message);
        exit(1);
    }
    function(1);
    cairn_module_retire(cairn_runtime_find_module(runtime, (uint64_t)(uintptr_t)function));
    cairn_runtime_quiesce(runtime);
    return time / 1e3;
}

static double time_warm_llvm(LLVMExecutionEngineRef engine, LLVMContextRef context, unsigned number)
{
    char name[32];
    LLVMModuleRef module = build_numbered(context, number, name);
    double start = bench_now_of_thread();
    LLVMAddModule(engine, module);
    compiled_function *function =
        (compiled_function *)(uintptr_t)LLVMGetFunctionAddress(engine, name);
    double time = bench_now_of_thread() - start;
    function(1);
    return time / 1e3;
}

static void time_warm_pairs(cairn_runtime *runtime, double *own, double *peer, double *ratio)
{
    LLVMContextRef own_context = LLVMContextCreate();
    LLVMContextRef peer_context = LLVMContextCreate();
    cairn_engine *engine = warm_cairn(runtime, own_context);
    LLVMExecutionEngineRef llvm = warm_llvm(peer_context);
    time_warm_cairn(runtime, engine, own_context, PAIRS_OF_WARM);
    time_warm_llvm(llvm, peer_context, PAIRS_OF_WARM);
    for (unsigned i = 0; i < PAIRS_OF_WARM; i++) {
        if (i % 2 == 0)
            own[i] = time_warm_cairn(runtime, engine, own_context, i);
        peer[i] = time_warm_llvm(llvm, peer_context, i);
        if (i % 2 != 0)
            own[i] = time_warm_cairn(runtime, engine, own_context, i);
        ratio[i] = own[i] / peer[i];
    }
    LLVMDisposeExecutionEngine(llvm);
    cairn_engine_destroy(engine);
    LLVMContextDispose(peer_context);
    LLVMContextDispose(own_context);
}

/* The bound is for the median ratio of two neighbouring times: other load of the machine changes
 * both alike. */
static bool bench_warm(const struct bench_options *options)
{
    double own[PAIRS_OF_WARM];
    double peer[PAIRS_OF_WARM];
    double ratio[PAIRS_OF_WARM];
    cairn_runtime *runtime;
    if (cairn_runtime_create(NULL, &runtime, NULL) != CAIRN_OK)
        return false;
    time_warm_pairs(runtime, own, peer, ratio);
    cairn_runtime_destroy(runtime);
    bench_print(options,
                &(struct bench_figure){.name = "mcjit.compile-and-load.1-function-warm",
                                       .value = bench_percentile(own, PAIRS_OF_WARM, 0.5),
                                       .unit = "us",
                                       .peer = "MCJIT, LLVM's own memory manager",
                                       .peer_value = bench_percentile(peer, PAIRS_OF_WARM, 0.5)});
    bench_print(options, &(struct bench_figure){
                             .name = "mcjit.compile-and-load.1-function-warm.ratio-median",
                             .value = bench_percentile(ratio, PAIRS_OF_WARM, 0.5),
                             .unit = "x",
                             .limit = 1});
    return true;
}

/* ---- An engine for each module ---- */

static bool bench_size(const struct bench_options *options, const char *name,
                       unsigned function_count)
{
    double own[PAIRS_MAX];
    double peer[PAIRS_MAX];
    double ratio[PAIRS_MAX];
    size_t pairs = function_count < LARGE ? PAIRS_MAX : PAIRS_OF_LARGE;
    cairn_runtime *runtime;
    if (cairn_runtime_create(NULL, &runtime, NULL) != CAIRN_OK)
        return false;
    time_cairn(runtime, function_count);
    time_llvm(function_count);
    for (size_t i = 0; i < pairs; i++) {
        if (i % 2 == 0)
            own[i] = time_cairn(runtime, function_count);
        peer[i] = time_llvm(function_count);
        if (i % 2 != 0)
            own[i] = time_cairn(runtime, function_count);
        ratio[i] = own[i] / peer[i];
    }
    cairn_runtime_destroy(runtime);
    bench_print(options, &(struct bench_figure){name, bench_percentile(own, pairs, 0.5), "ms",
                                                "LLVM's own memory manager",
                                                bench_percentile(peer, pairs, 0.5), 0, 1});
    char quartiles[64];
    snprintf(quartiles, sizeof quartiles, "%s.ratio-q1", name);
    bench_print(options, &(struct bench_figure){.name = quartiles,
                                                .value = bench_percentile(ratio, pairs, 0.25),
                                                .unit = "x"});
    snprintf(quartiles, sizeof quartiles, "%s.ratio-q3", name);
    bench_print(options, &(struct bench_figure){.name = quartiles,
                                                .value = bench_percentile(ratio, pairs, 0.75),
                                                .unit = "x"});
    return true;
}

/* Makes the allocator keep its memory. LLVM's heap grows and shrinks by megabytes with each engine.
 * Otherwise it would be arbitrary which engine takes the page faults for memory that was returned
 * to the system. */
static void keep_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

bool bench_mcjit(const struct bench_options *options)
{
    if (!bench_wants(options, "mcjit"))
        return true;
    keep_heap();
    LLVMLinkInMCJIT();
    return bench_warm(options) && bench_size(options, "mcjit.compile-and-load.1-function", 1) &&
           bench_size(options, "mcjit.compile-and-load.300-functions", 300);
}
