/*
 * Quickstart: a patch point in JIT-compiled code, found by its ID and retargeted while two threads
 * execute it.
 *
 *     cc quickstart.c $(pkg-config --cflags --libs cairn-llvm) -lpthread
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PATCHPOINT_ID = 42, RETARGETS = 100000, SYNCHRONISED_RETARGETS = 1000 };

static int64_t add_one(int64_t x) { return x + 1; }
static int64_t add_hundred(int64_t x) { return x + 100; }

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "quickstart: %s: %s\n", cairn_status_name(status), error->message);
    exit(1);
}

/* ---- 1. IR: int64_t compute(int64_t x) { return <patch point 42: add_one>(x); } ---- */

static LLVMModuleRef build_module(LLVMContextRef context)
{
    struct cairn_error error;
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("quickstart", context);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMValueRef compute =
        LLVMAddFunction(module, "compute", LLVMFunctionType(int64, &int64, 1, 0));
    cairn_prepare_function(compute);

    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, compute, "entry"));
    LLVMValueRef x = LLVMGetParam(compute, 0);
    LLVMValueRef doubled = LLVMBuildAdd(builder, x, x, "doubled");
    LLVMValueRef live_values[] = {x, doubled, LLVMConstInt(int64, 7, 0)};
    struct cairn_patchpoint patchpoint = {
        .id = PATCHPOINT_ID,
        .byte_count = cairn_patchpoint_minimum_bytes(module, true),
        .target = LLVMConstInt(int64, (uintptr_t)add_one, 0),
        .result_type = int64,
        .arguments = &x,
        .argument_count = 1,
        .live_values = live_values,
        .live_value_count = 3,
    };
    LLVMValueRef result = cairn_build_patchpoint(builder, &patchpoint, &error);
    if (result == NULL)
        check(error.status, &error);
    LLVMBuildRet(builder, result);
    LLVMDisposeBuilder(builder);
    return module;
}

/* ---- 2. The record, by ID: where are the live values? ---- */

static void print_location(struct cairn_location location)
{
    const char *name = cairn_register_name(cairn_architecture_host(), location.dwarf);
    if (location.kind == CAIRN_LOCATION_REGISTER)
        printf("in %s\n", name);
    else if (location.kind == CAIRN_LOCATION_DIRECT)
        printf("%s%+" PRId32 "\n", name, location.offset);
    else if (location.kind == CAIRN_LOCATION_INDIRECT)
        printf("at [%s%+" PRId32 "]\n", name, location.offset);
    else
        printf("the constant %" PRId64 "\n", (int64_t)location.constant);
}

static void print_record(cairn_runtime *runtime)
{
    struct cairn_record record = {0};
    if (cairn_runtime_find_id(runtime, PATCHPOINT_ID, &record, 1) == 0)
        exit(1);
    printf("record %d is at 0x%" PRIx64 "; its live values are\n", PATCHPOINT_ID,
           cairn_record_address(record));
    static const char *const names[] = {"x", "doubled", "seven"};
    for (uint32_t i = 0; i < 3 && i < cairn_record_location_count(record); i++) {
        printf("    %-8s", names[i]);
        print_location(cairn_record_location(record, i));
    }
}

/* ---- 3. Two threads call the function while it is retargeted ---- */

static int64_t (*compute)(int64_t);
static atomic_bool retargeted; /* set after the synchronised patch has returned */
static atomic_bool stop;

struct caller {
    pthread_t thread;
    atomic_ulong old_results;
    atomic_ulong new_results;
    atomic_ulong wrong_results;        /* results that are neither old nor new */
    atomic_ulong old_after_retargeted; /* old results after that, which the guarantee excludes */
};

static void *call_in_a_loop(void *argument)
{
    struct caller *caller = argument;
    while (!atomic_load(&stop)) {
        bool was_retargeted = atomic_load(&retargeted);
        int64_t result = compute(1);
        if (result == 2)
            atomic_fetch_add(was_retargeted ? &caller->old_after_retargeted : &caller->old_results,
                             1);
        else if (result == 101)
            atomic_fetch_add(&caller->new_results, 1);
        else
            atomic_fetch_add(&caller->wrong_results, 1);
    }
    return NULL;
}

static void wait_until_above(atomic_ulong *counter, unsigned long count)
{
    while (atomic_load(counter) < count)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void retarget_under_threads(cairn_site *site)
{
    struct cairn_error error;
    static struct caller callers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&callers[i].thread, NULL, call_in_a_loop, &callers[i]);
    for (int i = 0; i < 2; i++)
        wait_until_above(&callers[i].old_results, 100000);

    check(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, &error), &error);
    atomic_store(&retargeted, true);

    for (int i = 0; i < 2; i++)
        wait_until_above(&callers[i].new_results, 100000);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        struct caller *caller = &callers[i];
        pthread_join(caller->thread, NULL);
        printf(
            "thread %d: %lu old results, then %lu new ones; %lu wrong, %lu old after the patch\n",
            i + 1, caller->old_results, caller->new_results, caller->wrong_results,
            caller->old_after_retargeted);
        if (caller->wrong_results + caller->old_after_retargeted != 0)
            exit(1);
    }
}

/* ---- 4. How long does it take? ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void time_retargets(cairn_site *site, enum cairn_strength strength, int count)
{
    struct cairn_error error;
    void *targets[] = {(void *)(uintptr_t)add_one, (void *)(uintptr_t)add_hundred};
    double start = now();
    for (int i = 0; i < count; i++)
        check(cairn_site_call(site, targets[i % 2], strength, &error), &error);
    printf("%s retarget: %.1f ns\n", strength == CAIRN_SYNC ? "synchronised" : "relaxed",
           (now() - start) / count);
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_engine *engine;
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    LLVMContextRef context = LLVMContextCreate();
    double start = now();
    check(cairn_engine_create(runtime, build_module(context), NULL, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    *(void **)&compute = cairn_engine_function(engine, "compute", &error);
    if (compute == NULL)
        check(error.status, &error);
    printf("compiled, armed and published in %.1f ms\n", (now() - start) / 1e6);

    print_record(runtime);
    printf("compute(1) = %" PRId64 "\n", compute(1));

    cairn_site *site = cairn_runtime_find_site(runtime, PATCHPOINT_ID, &error);
    if (site == NULL)
        check(error.status, &error);
    retarget_under_threads(site);
    time_retargets(site, CAIRN_RELAXED, RETARGETS);
    time_retargets(site, CAIRN_SYNC, SYNCHRONISED_RETARGETS);

    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return 0;
}
