/*
 * cairn-bench-guards: functions with eight guards each, against the same functions in which the
 * cold block of each guard stores its values in the frame: how long LLVM compiles, how large the
 * code is, and how long a pass through the loop takes for each guard while all guards hold. With an
 * argument, only figures whose names begin with it are printed.
 *
 * At level 0, guards with more than 13 values on x86-64 store them as well.
 *
 * usage: cairn-bench-guards [PREFIX]
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    GUARDS = 8,
    VALUES_MAX = 100,
    SUMS = 4, /* values that the loop changes */
    COMPILATIONS = 15,
    ITERATIONS = 20000,
    RUNS = 101,
    LIVE_MAX = 1000
};

static struct bench_options options;
static uint64_t sink;
static cairn_exit *the_exit;

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "cairn-bench-guards: %s: %s\n", cairn_status_name(status), error->message);
    exit(1);
}

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
    abort();
}

/* ---- The function: uint64_t compute(const uint64_t *values, uint64_t n) ---- */

struct building {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMValueRef function;
    LLVMValueRef values[VALUES_MAX];
    LLVMValueRef memory[VALUES_MAX];
    unsigned value_count;
    bool stores;
};

static LLVMValueRef number(const struct building *building, uint64_t value)
{
    return LLVMConstInt(building->int64, value, 0);
}

static LLVMBasicBlockRef append(const struct building *building, const char *name)
{
    return LLVMAppendBasicBlockInContext(building->context, building->function, name);
}

/* Builds a cold block that stores the values, and records their addresses. */
static void build_storing_block(struct building *building, struct cairn_encoded_frame frame)
{
    LLVMValueRef live_values[LIVE_MAX];
    struct cairn_error error;
    struct cairn_patchpoint site = {
        .byte_count = cairn_patchpoint_minimum_bytes(building->module, true),
        .target = number(building, (uintptr_t)cairn_exit_target(the_exit)),
        .live_values = live_values,
    };
    for (unsigned i = 0; i < building->value_count; i++)
        LLVMBuildStore(building->builder, building->values[i], building->memory[i]);
    frame.locals = building->memory;
    check(cairn_frame_state_encode(building->context, &frame, 1, live_values, LIVE_MAX,
                                   &site.live_value_count, &error),
          &error);
    if (cairn_build_patchpoint(building->builder, &site, &error) == NULL)
        check(error.status, &error);
    LLVMBuildUnreachable(building->builder);
}

static void build_storing_guard(struct building *building, LLVMValueRef condition,
                                const struct cairn_encoded_frame *frame)
{
    LLVMBasicBlockRef leaves = append(building, "leaves");
    LLVMBasicBlockRef holds = append(building, "holds");
    LLVMBuildCondBr(building->builder, condition, holds, leaves);
    LLVMPositionBuilderAtEnd(building->builder, leaves);
    build_storing_block(building, *frame);
    LLVMPositionBuilderAtEnd(building->builder, holds);
}

static void build_guard(struct building *building, LLVMValueRef condition, unsigned position)
{
    struct cairn_error error;
    const struct cairn_encoded_frame frame = {
        .function = 1,
        .position = position,
        .locals = building->values,
        .local_count = building->value_count,
    };
    const struct cairn_guard guard = {.exit = the_exit, .frames = &frame, .frame_count = 1};
    if (building->stores)
        build_storing_guard(building, condition, &frame);
    else if (cairn_build_guard(building->builder, condition, &guard, &error) == NULL)
        check(error.status, &error);
}

/* Changes a sum, and leaves if it has become a number that it never becomes. */
static void build_step(struct building *building, unsigned step)
{
    LLVMBuilderRef builder = building->builder;
    LLVMValueRef *sum = &building->values[step % SUMS];
    LLVMValueRef other = building->values[(step + 1) % SUMS];
    *sum = LLVMBuildAdd(builder, *sum, LLVMBuildLShr(builder, other, number(building, 3), ""), "");
    build_guard(building,
                LLVMBuildICmp(builder, LLVMIntULT, *sum, number(building, UINT64_C(1) << 62), ""),
                step);
}

static void build_loads(struct building *building)
{
    for (unsigned i = 0; building->stores && i < building->value_count; i++)
        building->memory[i] = LLVMBuildAlloca(building->builder, building->int64, "");
    LLVMValueRef base = LLVMGetParam(building->function, 0);
    for (unsigned i = 0; i < building->value_count; i++) {
        LLVMValueRef index = number(building, i);
        LLVMValueRef place = LLVMBuildGEP2(building->builder, building->int64, base, &index, 1, "");
        building->values[i] = LLVMBuildLoad2(building->builder, building->int64, place, "");
    }
}

static void build_loop(struct building *building)
{
    LLVMBuilderRef builder = building->builder;
    LLVMValueRef phis[SUMS + 1];
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(builder);
    LLVMBasicBlockRef body = append(building, "body");
    LLVMBuildBr(builder, body);
    LLVMPositionBuilderAtEnd(builder, body);
    for (unsigned i = 0; i <= SUMS; i++)
        phis[i] = LLVMBuildPhi(builder, building->int64, "");
    for (unsigned i = 0; i < SUMS; i++) {
        LLVMAddIncoming(phis[i], &building->values[i], &entry, 1);
        building->values[i] = phis[i];
    }
    LLVMValueRef zero = number(building, 0);
    LLVMAddIncoming(phis[SUMS], &zero, &entry, 1);
    for (unsigned i = 0; i < GUARDS; i++)
        build_step(building, i);
    LLVMValueRef next = LLVMBuildAdd(builder, phis[SUMS], number(building, 1), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(builder);
    LLVMBasicBlockRef end = append(building, "end");
    LLVMValueRef goes_on =
        LLVMBuildICmp(builder, LLVMIntULT, next, LLVMGetParam(building->function, 1), "");
    LLVMBuildCondBr(builder, goes_on, body, end);
    for (unsigned i = 0; i < SUMS; i++)
        LLVMAddIncoming(phis[i], &building->values[i], &last, 1);
    LLVMAddIncoming(phis[SUMS], &next, &last, 1);
    LLVMPositionBuilderAtEnd(builder, end);
}

/* Builds a function whose address is the end of the other one's code. */
static void build_end(struct building *building)
{
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(building->context), NULL, 0, 0);
    building->function = LLVMAddFunction(building->module, "end", type);
    LLVMPositionBuilderAtEnd(building->builder, append(building, "entry"));
    LLVMBuildRetVoid(building->builder);
}

static LLVMModuleRef build_module(LLVMContextRef context, unsigned value_count, bool stores)
{
    struct building building = {
        .context = context,
        .module = LLVMModuleCreateWithNameInContext("bench", context),
        .builder = LLVMCreateBuilderInContext(context),
        .int64 = LLVMInt64TypeInContext(context),
        .value_count = value_count,
        .stores = stores,
    };
    LLVMTypeRef parameters[] = {LLVMPointerType(building.int64, 0), building.int64};
    building.function = LLVMAddFunction(building.module, "compute",
                                        LLVMFunctionType(building.int64, parameters, 2, 0));
    cairn_prepare_function(building.function);
    LLVMPositionBuilderAtEnd(building.builder, append(&building, "entry"));
    build_loads(&building);
    build_loop(&building);
    LLVMValueRef sum = building.values[0];
    for (unsigned i = 1; i < value_count; i++)
        sum = LLVMBuildXor(building.builder, sum, building.values[i], "");
    LLVMBuildRet(building.builder, sum);
    build_end(&building);
    LLVMDisposeBuilder(building.builder);
    return building.module;
}

/* ---- One form of the function ---- */

typedef uint64_t compute(const uint64_t *values, uint64_t n);

struct measured {
    cairn_engine *engine;
    LLVMContextRef context;
    compute *compute;
    double compilation; /* microseconds */
    double code_bytes;
};

struct form {
    const char *level;
    unsigned optimisation_level;
    bool enable_fast_isel;
    unsigned value_count;
};

static void destroy(struct measured *measured)
{
    cairn_engine_destroy(measured->engine);
    LLVMContextDispose(measured->context);
}

static void compile_once(cairn_runtime *runtime, const struct form *form, bool stores,
                         struct measured *measured)
{
    const struct cairn_engine_options engine_options = {
        .optimisation_level = form->optimisation_level, .enable_fast_isel = form->enable_fast_isel};
    struct cairn_error error;
    measured->context = LLVMContextCreate();
    LLVMModuleRef module = build_module(measured->context, form->value_count, stores);
    double begun = bench_now_of_thread();
    check(cairn_engine_create(runtime, module, &engine_options, &measured->engine, &error), &error);
    check(cairn_engine_compile(measured->engine, &error), &error);
    measured->compilation = (bench_now_of_thread() - begun) / 1000;
}

static void read_addresses(struct measured *measured)
{
    struct cairn_error error;
    void *begin = cairn_engine_function(measured->engine, "compute", &error);
    void *end = cairn_engine_function(measured->engine, "end", &error);
    if (begin == NULL || end == NULL)
        check(error.status, &error);
    measured->compute = (compute *)(uintptr_t)begin;
    measured->code_bytes = (double)((uintptr_t)end - (uintptr_t)begin);
}

/* Compiles both forms alternately, and keeps the last ones. */
static void compile_both(cairn_runtime *runtime, const struct form *form, struct measured both[2])
{
    double times[2][COMPILATIONS];
    for (unsigned i = 0; i < COMPILATIONS; i++)
        for (unsigned stores = 0; stores < 2; stores++) {
            if (i > 0)
                destroy(&both[stores]);
            compile_once(runtime, form, stores == 1, &both[stores]);
            times[stores][i] = both[stores].compilation;
        }
    for (unsigned stores = 0; stores < 2; stores++) {
        both[stores].compilation = bench_percentile(times[stores], COMPILATIONS, 0.5);
        read_addresses(&both[stores]);
    }
}

/* ---- Figures ---- */

/* Prints a figure of the guards against the peer. */
static void print(const struct form *form, const char *what, const char *unit, double value,
                  double peer_value)
{
    char name[64];
    snprintf(name, sizeof name, "guards.%s-%u-values-%s", what, form->value_count, form->level);
    bench_print(&options, &(struct bench_figure){.name = name,
                                                 .value = value,
                                                 .unit = unit,
                                                 .peer = "values stored by the cold block",
                                                 .peer_value = peer_value});
}

static double time_run(const struct measured *measured)
{
    static uint64_t input[VALUES_MAX];
    for (unsigned i = 0; i < VALUES_MAX; i++)
        input[i] = i + 1;
    double begun = bench_now_of_thread();
    sink += measured->compute(input, ITERATIONS);
    return (bench_now_of_thread() - begun) / (double)ITERATIONS / (int)GUARDS;
}

static void print_run(const struct form *form, const struct measured both[2])
{
    double times[2][RUNS];
    for (unsigned i = 0; i < RUNS; i++)
        for (unsigned stores = 0; stores < 2; stores++)
            times[stores][i] = time_run(&both[stores]);
    print(form, "loop", "ns", bench_percentile(times[0], RUNS, 0.5),
          bench_percentile(times[1], RUNS, 0.5));
}

static void measure(const struct form *form)
{
    struct measured both[2];
    struct cairn_error error;
    cairn_runtime *runtime;
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_exit_create(runtime, leave, NULL, &the_exit, &error), &error);
    compile_both(runtime, form, both);
    print(form, "compile", "us", both[0].compilation, both[1].compilation);
    print(form, "code", "bytes", both[0].code_bytes, both[1].code_bytes);
    print_run(form, both);
    for (unsigned stores = 0; stores < 2; stores++)
        destroy(&both[stores]);
    cairn_exit_destroy(the_exit);
    cairn_runtime_destroy(runtime);
}

int main(int argc, char **argv)
{
    static const unsigned counts[] = {5, 25, VALUES_MAX};
    static const struct form levels[] = {
        {.level = "O0", .optimisation_level = 0},
        {.level = "O1", .optimisation_level = 1},
        {.level = "O1-fast-isel", .optimisation_level = 1, .enable_fast_isel = true},
        {.level = "O2", .optimisation_level = 2},
        {.level = "O2-fast-isel", .optimisation_level = 2, .enable_fast_isel = true},
        {.level = "O3", .optimisation_level = 3},
    };
    options.only = argc > 1 ? argv[1] : NULL;
    bench_begin(&options);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof levels / sizeof *levels; j++) {
            struct form form = levels[j];
            form.value_count = counts[i];
            measure(&form);
        }
    bench_end(&options);
    return 0;
}
