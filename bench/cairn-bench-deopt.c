/*
 * cairn-bench-deopt: the time to get from compiled code to a handler, read 16 live values, and
 * continue after the site, return to the caller, or throw to a saved context. It is compared with
 * C++'s throw and catch over one frame, the usual way to leave a function early. With an argument,
 * only figures whose names begin with it are measured.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/peer_throw.h"
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SAMPLES = 501,
    GROUP = 200,
    ID = 1,
    LOADED = 13,
    CONSTANTS = 3,
    VALUES = LOADED + CONSTANTS
};

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "cairn-bench-deopt: %s: %s\n", cairn_status_name(status), error->message);
    exit(1);
}

/* ---- The function: loads 13 values, and has a patch point with these and 3 constants ---- */

/* The values that the function loads. */
static struct input {
    int64_t wide[5];
    int64_t narrow[3]; /* i32 */
    double floating[3];
    int64_t pointers[2];
} input = {
    {0x123456789, -2, 3, 4, 5},
    {-6, 7, 8},
    {9.5, -10.25, 11},
    {0x1000, 0x2000},
};
enum { WIDE_END = 5, NARROW_END = 8, FLOATING_END = 11 };

struct building {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
};

static LLVMTypeRef type_of(const struct building *building, unsigned index)
{
    if (index < WIDE_END)
        return building->int64;
    if (index < NARROW_END)
        return LLVMInt32TypeInContext(building->context);
    if (index < FLOATING_END)
        return LLVMDoubleTypeInContext(building->context);
    return LLVMPointerType(LLVMInt8TypeInContext(building->context), 0);
}

static LLVMValueRef build_load(const struct building *building, unsigned index)
{
    LLVMTypeRef type = type_of(building, index);
    LLVMValueRef address = LLVMConstInt(building->int64, (uintptr_t)&input + 8 * index, 0);
    LLVMValueRef place = LLVMConstIntToPtr(address, LLVMPointerType(type, 0));
    LLVMValueRef loaded = LLVMBuildLoad2(building->builder, type, place, "");
    LLVMSetVolatile(loaded, 1);
    return loaded;
}

/* Builds the conversion of a value to i64. */
static LLVMValueRef build_widened(const struct building *building, LLVMValueRef value)
{
    switch (LLVMGetTypeKind(LLVMTypeOf(value))) {
    case LLVMDoubleTypeKind:
        return LLVMBuildBitCast(building->builder, value, building->int64, "");
    case LLVMPointerTypeKind:
        return LLVMBuildPtrToInt(building->builder, value, building->int64, "");
    default:
        return LLVMBuildSExtOrBitCast(building->builder, value, building->int64, "");
    }
}

/* Builds a sum of every second value after the site, so that some values are live across the call,
 * and others are in caller-saved registers. */
static LLVMValueRef build_sum(const struct building *building, LLVMValueRef *values,
                              LLVMValueRef sum)
{
    for (unsigned i = 0; i < LOADED; i += 2)
        sum = LLVMBuildXor(building->builder, sum, build_widened(building, values[i]), "");
    return sum;
}

static void build_function(const struct building *building)
{
    struct cairn_error error;
    LLVMTypeRef type = LLVMFunctionType(building->int64, NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(building->module, "compute", type);
    LLVMValueRef values[VALUES];
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(building->builder,
                             LLVMAppendBasicBlockInContext(building->context, function, "entry"));
    for (unsigned i = 0; i < LOADED; i++)
        values[i] = build_load(building, i);
    values[LOADED] = LLVMConstInt(building->int64, 42, 0);
    values[LOADED + 1] = LLVMConstInt(building->int64, UINT64_C(0x123456789ABCDEF0), 0);
    values[LOADED + 2] = LLVMConstInt(LLVMInt32TypeInContext(building->context), 7, 0);
    struct cairn_patchpoint patchpoint = {
        .id = ID,
        .byte_count = cairn_patchpoint_minimum_bytes(building->module, false),
        .result_type = building->int64,
        .live_values = values,
        .live_value_count = VALUES,
    };
    LLVMValueRef result = cairn_build_patchpoint(building->builder, &patchpoint, &error);
    if (result == NULL)
        check(error.status, &error);
    LLVMBuildRet(building->builder, build_sum(building, values, result));
}

static LLVMModuleRef build_module(LLVMContextRef context)
{
    struct building building = {
        .context = context,
        .module = LLVMModuleCreateWithNameInContext("bench", context),
        .builder = LLVMCreateBuilderInContext(context),
        .int64 = LLVMInt64TypeInContext(context),
    };
    build_function(&building);
    LLVMDisposeBuilder(building.builder);
    return building.module;
}

/* ---- Handlers ---- */

static struct cairn_value result;

static void leave_alone(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static void read_each(struct cairn_exit_call *call, struct cairn_value values[VALUES])
{
    struct cairn_error error;
    for (uint32_t i = 0; i < VALUES; i++)
        check(cairn_frame_value(&call->frame, call->record, i, &values[i], &error), &error);
}

static void read_all(struct cairn_exit_call *call, struct cairn_value values[VALUES])
{
    struct cairn_error error;
    check(cairn_frame_values(&call->frame, call->record, 0, VALUES, values, &error), &error);
}

static void return_result(struct cairn_exit_call *call)
{
    struct cairn_error error;
    check(cairn_exit_return(call, &result, 1, &error), &error);
}

static void read_each_and_continue(struct cairn_exit_call *call, void *user)
{
    struct cairn_value values[VALUES];
    (void)user;
    read_each(call, values);
}

static void read_each_and_return(struct cairn_exit_call *call, void *user)
{
    struct cairn_value values[VALUES];
    (void)user;
    read_each(call, values);
    return_result(call);
}

static void read_all_and_continue(struct cairn_exit_call *call, void *user)
{
    struct cairn_value values[VALUES];
    (void)user;
    read_all(call, values);
}

static void read_all_and_return(struct cairn_exit_call *call, void *user)
{
    struct cairn_value values[VALUES];
    (void)user;
    read_all(call, values);
    return_result(call);
}

static void only_return(struct cairn_exit_call *call, void *user)
{
    (void)user;
    return_result(call);
}

typedef int64_t compiled(void);

/* ---- A throw ---- */

static struct cairn_context protected_by;

static void throw_to_context(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error;
    (void)user;
    check(cairn_exit_resume(call, &protected_by, &error), &error);
}

static compiled *throwing;

/* Calls the function, whose exit resumes at the context that is saved here. */
static int64_t call_protected(void)
{
    return cairn_context_save(&protected_by) == 0 ? throwing() : 1;
}

/* ---- Measuring ---- */

static double time_calls(compiled *function)
{
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++)
        function();
    return (bench_now_of_thread() - begun) / (double)GROUP;
}

static double time_throws(void)
{
    int64_t sum = 0;
    double begun = bench_now_of_thread();
    for (int i = 1; i <= GROUP; i++)
        sum += peer_throw_and_catch(i);
    if (sum != GROUP * (GROUP + 1) / 2)
        exit(1);
    return (bench_now_of_thread() - begun) / (double)GROUP;
}

struct bench {
    cairn_runtime *runtime;
    cairn_site *site;
    compiled *function;
};

struct wanted {
    const char *name;
    cairn_exit_handler *handler;
    double limit;
    double ratio_limit;
    compiled *caller; /* if it is not called directly */
};

static void measure(const struct bench *bench, const struct wanted *wanted)
{
    static double values[SAMPLES];
    static double peer_values[SAMPLES];
    const struct bench_options options = {.json = false};
    struct cairn_error error;
    cairn_exit *exit = NULL;
    check(cairn_exit_create(bench->runtime, wanted->handler, NULL, &exit, &error), &error);
    check(cairn_site_call(bench->site, cairn_exit_target(exit), CAIRN_SYNC, &error), &error);
    throwing = bench->function;
    for (int i = 0; i < SAMPLES; i++) {
        values[i] = time_calls(wanted->caller != NULL ? wanted->caller : bench->function);
        peer_values[i] = time_throws();
    }
    check(cairn_site_nop(bench->site, CAIRN_SYNC, &error), &error);
    cairn_exit_destroy(exit);
    const struct bench_figure figure = {
        .name = wanted->name,
        .value = bench_percentile(values, SAMPLES, 0.5),
        .unit = "ns",
        .peer = "C++ throw and catch",
        .peer_value = bench_percentile(peer_values, SAMPLES, 0.5),
        .limit = wanted->limit,
        .ratio_limit = wanted->ratio_limit,
    };
    bench_print(&options, &figure);
}

static void measure_all(const struct bench *bench, const char *only)
{
    const struct bench_options options = {.only = only};
    static const struct wanted all[] = {
        {"deopt.continue.nothing-read", leave_alone, 0, 0, NULL},
        {"deopt.continue.16-read-at-once", read_all_and_continue, 150, 0, NULL},
        {"deopt.continue.16-read-one-by-one", read_each_and_continue, 0, 0, NULL},
        {"deopt.return.nothing-read", only_return, 0, 0, NULL},
        {"deopt.return.16-read-at-once", read_all_and_return, 0, 0.2, NULL},
        {"deopt.return.16-read-one-by-one", read_each_and_return, 0, 0, NULL},
        {"deopt.throw", throw_to_context, 0, 0, call_protected},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (bench_wants(&options, all[i].name))
            measure(bench, &all[i]);
}

int main(int argc, char **argv)
{
    struct bench bench = {.function = NULL};
    struct cairn_error error;
    cairn_engine *engine;
    const struct cairn_engine_options options = {.optimisation_level = 2};
    result = cairn_value_of_integer(64, 1);
    LLVMContextRef context = LLVMContextCreate();
    check(cairn_runtime_create(NULL, &bench.runtime, &error), &error);
    check(cairn_engine_create(bench.runtime, build_module(context), &options, &engine, &error),
          &error);
    check(cairn_engine_compile(engine, &error), &error);
    *(void **)&bench.function = cairn_engine_function(engine, "compute", &error);
    if (bench.function == NULL)
        check(error.status, &error);
    bench.site = cairn_runtime_find_site(bench.runtime, ID, &error);
    if (bench.site == NULL)
        check(error.status, &error);
    measure_all(&bench, argc > 1 ? argv[1] : NULL);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(bench.runtime);
    return 0;
}
