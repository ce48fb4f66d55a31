/*
 * mcjit_host: a host that has its own MCJIT engine gives it Cairn's memory manager, so that the
 * engine's code can be patched.
 *
 *     cc mcjit_host.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <inttypes.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>

#if LLVM_VERSION_MAJOR < 15
#define PTR "i8*"
#else
#define PTR "ptr"
#endif

/* long compute(long x) { return <patch point 42: add_one>(x); } */
static const char text[] =
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, " PTR ", i32, ...)\n"
    "define i64 @compute(i64 %%x) uwtable {\n"
    "  %%r = call i64 (i64, i32, " PTR ", i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 42, i32 48, " PTR " inttoptr (i64 %" PRIuPTR " to " PTR "), i32 1, i64 %%x)\n"
    "  ret i64 %%r\n"
    "}\n";

static long add_one(long x) { return x + 1; }
static long add_hundred(long x) { return x + 100; }

static struct cairn_error error;

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "mcjit_host: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status)
{
    if (status != CAIRN_OK)
        fail(error.message);
}

static LLVMModuleRef parse(LLVMContextRef context)
{
    static char ir[1024];
    LLVMModuleRef module;
    char *message;
    int size = snprintf(ir, sizeof ir, text, (uintptr_t)add_one);
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(ir, (size_t)size, "mcjit_host", 1);
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        fail(message);
    return module;
}

/* The engine owns the module and the memory manager, also if creating it fails. */
static LLVMExecutionEngineRef create_engine(LLVMModuleRef module, cairn_memory_manager *manager)
{
    LLVMExecutionEngineRef engine;
    struct LLVMMCJITCompilerOptions options;
    char *message;
    LLVMLinkInMCJIT();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.OptLevel = 2;
    options.MCJMM = cairn_memory_manager_llvm(manager);
    if (LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message) != 0)
        fail(message);
    cairn_memory_manager_set_engine(manager, engine);
    return engine;
}

/* Creates a memory manager that knows the sites of the module. */
static cairn_memory_manager *create_manager(cairn_runtime *runtime, LLVMModuleRef module)
{
    const struct cairn_check_options options = {.optimisation_level = 2};
    cairn_memory_manager *manager;
    check(cairn_memory_manager_create(runtime, NULL, &manager, &error));
    check(cairn_check_module(module, &options, &error));
    check(cairn_memory_manager_declare(manager, module, &error));
    return manager;
}

/* Compiles what was added to the engine, and returns the address of a function. */
static uint64_t compile(LLVMExecutionEngineRef engine, const cairn_memory_manager *manager,
                        const char *name)
{
    uint64_t address = LLVMGetFunctionAddress(engine, name);
    check(cairn_memory_manager_status(manager, &error));
    return address;
}

int main(void)
{
    cairn_runtime *runtime;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = parse(context);
    check(cairn_runtime_create(NULL, &runtime, &error));
    cairn_memory_manager *manager = create_manager(runtime, module);
    LLVMExecutionEngineRef engine = create_engine(module, manager);
    long (*compute)(long) = (long (*)(long))(uintptr_t)compile(engine, manager, "compute");
    long before = compute(1);
    cairn_site *site = cairn_runtime_find_site(runtime, 42, &error);
    if (site == NULL)
        fail(error.message);
    check(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, &error));
    long after = compute(1);
    printf("compute(1) was %ld and is %ld\n", before, after);

    LLVMDisposeExecutionEngine(engine);
    LLVMContextDispose(context);
    cairn_runtime_destroy(runtime);
    return before == 2 && after == 101 ? 0 : 1;
}
