/*
 * Engines: MCJIT engines that use Cairn's memory manager, and scan and check each module.
 *
 * As far as the C API allows it, LLVM's failures do not reach the host. A module that would crash
 * the code generator is rejected before LLVM compiles it. The engine is created with an empty
 * module, because LLVM destroys the module that it was given if creating the engine fails. While
 * LLVM compiles, the modules' contexts are observed: an error that LLVM reports there makes the
 * finalisation fail.
 *
 * Process-wide state: LLVM's targets and options are global to the process. So their
 * initialisation, and the flag that it was done, are process-wide, too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "llvm/compile.h"
#include "llvm/mcjit.h"

#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <string.h>

struct cairn_engine {
    cairn_runtime *runtime;
    struct cairn_allocator allocator;
    LLVMExecutionEngineRef llvm;
    cairn_memory_manager *manager; /* owned by LLVM once the engine exists */
    struct cairn_check_options check;
    bool skip_check;
    /* The contexts of the modules that are not finalised yet, without duplicates. There is at
     * least one if there are such modules. */
    struct diagnostics *contexts;
    size_t context_count;
    size_t context_capacity;
};

/* ---- LLVM's process-wide state ---- */

static void initialise_llvm(void)
{
    LLVMLinkInMCJIT();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

/* ---- Modules ---- */

/* Checks a module's data layout. LLVM fills in an empty layout; a layout that is not the target
 * machine's leads to wrong code. */
static enum cairn_status check_data_layout(const cairn_engine *engine, LLVMModuleRef module,
                                           struct cairn_error *error)
{
    const char *layout = LLVMGetDataLayoutStr(module);
    if (layout == NULL || *layout == '\0')
        return CAIRN_OK;
    char *native = LLVMCopyStringRepOfTargetData(LLVMGetExecutionEngineTargetData(engine->llvm));
    bool same = strcmp(layout, native) == 0;
    enum cairn_status status = CAIRN_OK;
    if (!same)
        status = error_set(error, CAIRN_ERROR_LLVM, 0,
                           "the module's data layout \"%s\" is not this machine's \"%s\": leave it "
                           "out, or set LLVM's",
                           layout, native);
    LLVMDisposeMessage(native);
    return status;
}

enum cairn_status cairn_engine_add_module(cairn_engine *engine, LLVMModuleRef module,
                                          struct cairn_error *error)
{
    if (engine == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_engine_add_module needs an engine and a module");
    const struct cairn_error *unresolved = memory_manager_unresolved(engine->manager);
    if (unresolved->status != CAIRN_OK)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "this engine can load no more modules, another one can (%.160s)",
                         unresolved->message);
    enum cairn_status status = check_data_layout(engine, module, error);
    if (status == CAIRN_OK && !engine->skip_check)
        status = cairn_check_module(module, &engine->check, error);
    if (status != CAIRN_OK)
        return status;
    void *contexts = array_reserve(&engine->allocator, engine->contexts, engine->context_count, 1,
                                   &engine->context_capacity, sizeof *engine->contexts);
    if (contexts == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a module's context");
    engine->contexts = contexts;
    status = cairn_memory_manager_declare(engine->manager, module, error);
    if (status != CAIRN_OK)
        return status;
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMAddModule(engine->llvm, module);
    for (size_t i = 0; i < engine->context_count; i++)
        if (engine->contexts[i].context == context)
            return CAIRN_OK;
    engine->contexts[engine->context_count++] = (struct diagnostics){.context = context};
    return CAIRN_OK;
}

/* ---- Making an engine ---- */

/* Creates LLVM's engine with an empty module, and removes that module. If there is a target for
 * llvm.experimental.deoptimize, binds it to the name that LLVM calls; LLVM copies the name and does
 * not keep a reference to the module. */
static enum cairn_status create_llvm_engine(cairn_engine *engine, LLVMModuleRef like,
                                            const struct cairn_engine_options *options,
                                            struct cairn_error *error)
{
    struct LLVMMCJITCompilerOptions compiler;
    LLVMInitializeMCJITCompilerOptions(&compiler, sizeof compiler);
    compiler.OptLevel = options->optimisation_level;
    if (options->code_model != LLVMCodeModelDefault)
        compiler.CodeModel = options->code_model;
    compiler.EnableFastISel = options->enable_fast_isel;
    compiler.MCJMM = cairn_memory_manager_llvm(engine->manager);

    LLVMContextRef context = LLVMGetModuleContext(like);
    LLVMModuleRef empty = LLVMModuleCreateWithNameInContext("cairn", context);
    LLVMSetTarget(empty, LLVMGetTarget(like));
    char *message = NULL;
    if (LLVMCreateMCJITCompilerForModule(&engine->llvm, empty, &compiler, sizeof compiler,
                                         &message) != 0) {
        /* LLVM has destroyed the empty module and the memory manager. */
        engine->llvm = NULL;
        engine->manager = NULL;
        error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM cannot make an engine: %s", message);
        LLVMDisposeMessage(message);
        return CAIRN_ERROR_LLVM;
    }
    if (options->deoptimize_target != NULL) {
        LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
        LLVMAddGlobalMapping(engine->llvm, LLVMAddFunction(empty, MCJIT_DEOPTIMIZE, type),
                             (void *)(uintptr_t)options->deoptimize_target);
    }
    LLVMModuleRef removed = NULL;
    if (LLVMRemoveModule(engine->llvm, empty, &removed, &message) == 0)
        LLVMDisposeModule(removed);
    return CAIRN_OK;
}

/* Creates the memory manager and LLVM's engine, and adds the module. The names of the architecture,
 * which end at the first '-' of a triple, must agree. */
static enum cairn_status create_parts(cairn_engine *engine, LLVMModuleRef module,
                                      const struct cairn_engine_options *options,
                                      struct cairn_error *error)
{
    static pthread_once_t initialised = PTHREAD_ONCE_INIT;
    struct cairn_memory_manager_options manager = options->memory_manager;
    manager.code_model = options->code_model;
    pthread_once(&initialised, initialise_llvm);
    if (options->liveness == CAIRN_LIVENESS_OFF)
        compile_set_option(COMPILE_WITHOUT_LIVENESS, cairn_architecture_host());
    if (options->implicit_null_checks)
        compile_set_option(COMPILE_IMPLICIT_NULL_CHECKS, cairn_architecture_host());
    const char *triple = LLVMGetTarget(module);
    char *host = LLVMGetDefaultTargetTriple();
    size_t length = strcspn(triple, "-");
    enum cairn_status status = CAIRN_OK;
    if (length > 0 && (length != strcspn(host, "-") || strncmp(triple, host, length) != 0))
        status = error_set(error, CAIRN_ERROR_LLVM, 0,
                           "the module is for '%s'; this process runs on '%s'", triple, host);
    LLVMDisposeMessage(host);
    if (status == CAIRN_OK)
        status = cairn_memory_manager_create(engine->runtime, &manager, &engine->manager, error);
    if (status == CAIRN_OK)
        status = create_llvm_engine(engine, module, options, error);
    if (status != CAIRN_OK)
        return status;
    cairn_memory_manager_set_engine(engine->manager, engine->llvm);
    return cairn_engine_add_module(engine, module, error);
}

enum cairn_status cairn_engine_create(cairn_runtime *runtime, LLVMModuleRef module,
                                      const struct cairn_engine_options *options,
                                      cairn_engine **engine, struct cairn_error *error)
{
    static const struct cairn_engine_options defaults;
    if (module == NULL || engine == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_engine_create needs a module and a place for the engine");
    if (options == NULL)
        options = &defaults;
    if (options->optimisation_level > 3)
        return error_set(error, CAIRN_ERROR_ARGUMENT, options->optimisation_level,
                         "optimisation level %u is not one of 0 to 3", options->optimisation_level);

    enum cairn_status status = CAIRN_OK;
    if (runtime == NULL)
        status = cairn_runtime_create(NULL, &runtime, error);
    else
        cairn_runtime_retain(runtime);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    cairn_engine *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL) {
        cairn_runtime_destroy(runtime);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an engine");
    }
    *created = (struct cairn_engine){
        .runtime = runtime,
        .allocator = *allocator,
        .check = {.liveness = options->liveness,
                  .optimisation_level = options->optimisation_level,
                  .enable_fast_isel = options->enable_fast_isel,
                  .is_verified = options->is_verified,
                  .finding = options->finding,
                  .user = options->finding_user,
                  .gc_strategies = options->gc_strategies,
                  .gc_strategy_count = options->gc_strategy_count},
        .skip_check = options->skip_check,
    };
    status = create_parts(created, module, options, error);
    if (status != CAIRN_OK) {
        cairn_engine_destroy(created);
        return status;
    }
    *engine = created;
    return CAIRN_OK;
}

void cairn_engine_destroy(cairn_engine *engine)
{
    if (engine == NULL)
        return;
    if (engine->llvm != NULL)
        LLVMDisposeExecutionEngine(engine->llvm); /* this also disposes of the memory manager */
    else if (engine->manager != NULL)
        LLVMDisposeMCJITMemoryManager(cairn_memory_manager_llvm(engine->manager));
    cairn_runtime *runtime = engine->runtime;
    struct cairn_allocator allocator = engine->allocator;
    memory_free(&allocator, engine->contexts, engine->context_capacity * sizeof *engine->contexts);
    memory_free(&allocator, engine, sizeof *engine);
    cairn_runtime_destroy(runtime);
}

/* ---- Finalising ---- */

/* Finalises all modules. LLVM does so when it is asked for the address of any function. It is asked
 * for one that nothing defines, because the modules need not have functions. A weak symbol may be
 * undefined. */
static void finalise_all(cairn_engine *engine)
{
    struct cairn_error *first = memory_manager_begin(engine->manager);
    LLVMContextRef context = engine->contexts[0].context;
    for (size_t i = 0; i < engine->context_count; i++)
        diagnostics_begin(&engine->contexts[i], engine->contexts[i].context, first);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("cairn", context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(module, "cairn.undefined", type);
    LLVMSetLinkage(function, LLVMExternalWeakLinkage);
    LLVMGetPointerToGlobal(engine->llvm, function);
    LLVMDisposeModule(module);
    for (size_t i = 0; i < engine->context_count; i++)
        diagnostics_end(&engine->contexts[i]);
    engine->context_count = 0;
    memory_manager_end(engine->manager);
}

enum cairn_status cairn_engine_finalise(cairn_engine *engine, struct cairn_error *error)
{
    if (engine == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no engine to finalise");
    if (engine->context_count > 0)
        finalise_all(engine);
    return cairn_memory_manager_status(engine->manager, error);
}

void *cairn_engine_function(cairn_engine *engine, const char *name, struct cairn_error *error)
{
    if (engine == NULL || name == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                  "cairn_engine_function needs an engine and a name");
        return NULL;
    }
    struct cairn_error failure;
    LLVMValueRef definition;
    enum cairn_status status = cairn_engine_finalise(engine, &failure);
    uint64_t address = LLVMGetFunctionAddress(engine->llvm, name);
    bool is_loaded = cairn_runtime_find_module(engine->runtime, address) != NULL;
    /* Functions that were loaded before the failed finalisation are still valid. LLVM knows the
     * addresses of others, too: of a module whose finalisation failed, so that it is not
     * executable, or which the host has retired. */
    if (status == CAIRN_OK && address == 0)
        error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "no module of the engine defines '%s'", name);
    else if (status == CAIRN_OK && !is_loaded &&
             LLVMFindFunction(engine->llvm, name, &definition) == 0)
        error_set(
            error, CAIRN_ERROR_NOT_FOUND, 0,
            "the module that defines '%s' has been retired, or could not be loaded when it was "
            "finalised",
            name);
    else if (status == CAIRN_OK || is_loaded)
        return (void *)(uintptr_t)address;
    else if (error != NULL)
        *error = failure;
    return NULL;
}

cairn_site *cairn_engine_site(cairn_engine *engine, uint64_t id, struct cairn_error *error)
{
    if (engine == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_engine_site needs an engine");
        return NULL;
    }
    if (cairn_engine_finalise(engine, error) != CAIRN_OK)
        return NULL;
    return cairn_runtime_find_site(engine->runtime, id, error);
}

LLVMExecutionEngineRef cairn_engine_llvm(cairn_engine *engine) { return engine->llvm; }
