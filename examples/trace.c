/*
 * trace: probes in compiled code, which call a tracer when they are switched on, and otherwise are
 * no-ops. A signal switches them on, too.
 *
 *     cc trace.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <cairn/runtime.h>
#include <llvm-c/IRReader.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* void compute(void) { <patch point 1>(1); <patch point 2>(2); } */
static const char text[] =
    "declare void @llvm.experimental.patchpoint.void(i64, i32, " PTR ", i32, ...)\n"
    "define void @compute() uwtable {\n"
    "  call void (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 1, i32 48, " PTR " null, i32 1, i64 1)\n"
    "  call void (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 2, i32 48, " PTR " null, i32 1, i64 2)\n"
    "  ret void\n}\n";

static unsigned counts[3];
static void traced(long probe) { counts[probe]++; }

/* Switches all probes of a module on or off, and prints them. */
static void set_all(const cairn_module *module, bool on)
{
    struct cairn_site_description is;
    cairn_site *site;
    for (uint32_t i = 0; (site = cairn_module_site(module, i)) != NULL; i++) {
        if ((on ? cairn_site_call(site, (void *)(uintptr_t)traced, CAIRN_SYNC, NULL)
                : cairn_site_nop(site, CAIRN_SYNC, NULL)) != CAIRN_OK)
            abort();
        cairn_site_describe(site, &is);
        printf("probe %d in %s is a %s\n", (int)is.id, cairn_module_name(module),
               cairn_site_state_name(is.state));
    }
}

/* The handler may interrupt any function of Cairn, also one that is changing a probe. */
static const cairn_module *probed;
static void switch_on(int signal)
{
    cairn_site *site;
    (void)signal;
    for (uint32_t i = 0; (site = cairn_module_site(probed, i)) != NULL; i++)
        if (cairn_site_call(site, (void *)(uintptr_t)traced, CAIRN_SYNC, NULL) != CAIRN_OK)
            abort();
}

/* Lets this thread and a handler change each probe at the same time without a lock. Where the code
 * has only one mapping, every change takes a lock, and handlers must not change sites. */
static bool prepare_for_signals(struct cairn_error *error)
{
    const struct sigaction action = {.sa_handler = switch_on};
    cairn_site *site;
    for (uint32_t i = 0; (site = cairn_module_site(probed, i)) != NULL; i++)
        if (cairn_site_reserve(site, 2, error) != CAIRN_OK)
            return false;
    return sigaction(SIGUSR1, &action, NULL) == 0;
}

int main(void)
{
    const struct cairn_engine_options options = {.modules.name = "computations"};
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_engine *engine;
    const void *function = NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "trace", 1);
    LLVMModuleRef module;
    char *message;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        return fprintf(stderr, "trace: %s\n", message), 1;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_engine_create(runtime, module, &options, &engine, &error) != CAIRN_OK ||
        cairn_engine_compile(engine, &error) != CAIRN_OK ||
        (function = cairn_engine_function(engine, "compute", &error)) == NULL)
        return fprintf(stderr, "trace: %s\n", error.message), 1;
    void (*compute)(void) = (void (*)(void))(uintptr_t)function;
    probed = cairn_runtime_find_module(runtime, (uintptr_t)function);
    bool handles_signals = prepare_for_signals(&error);
    if (!handles_signals && error.status != CAIRN_ERROR_UNSUPPORTED)
        return fprintf(stderr, "trace: %s\n", error.message), 1;
    compute();
    set_all(probed, true);
    compute();
    set_all(probed, false);
    compute();
    if (handles_signals)
        raise(SIGUSR1);
    else
        set_all(probed, true);
    compute();
    printf("the probes have counted %u and %u calls\n", counts[1], counts[2]);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(runtime);
    return counts[1] == 2 && counts[2] == 2 ? 0 : 1;
}
