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
#include "base/error.h"
#include "base/memory.h"
#include "llvm/diagnostics.h"
#include "llvm/mcjit.h"
#include "llvm/option.h"

#include <cairn/llvm.h>
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

static void prepare_process(const struct cairn_engine_options *options)
{
    static pthread_once_t initialised = PTHREAD_ONCE_INIT;
    pthread_once(&initialised, initialise_llvm);
    if (options->liveness == CAIRN_LIVENESS_OFF)
        option_turn_liveness_off(cairn_architecture_host());
    if (options->implicit_null_checks)
        option_turn_implicit_null_checks_on();
}

/* ---- Modules ---- */

static enum cairn_status check(const cairn_engine *engine, LLVMModuleRef module,
                               struct cairn_error *error)
{
    if (engine->skip_check)
        return CAIRN_OK;
    return cairn_check_module(module, &engine->check, error);
}

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

static enum cairn_status check_resolved(const cairn_engine *engine, struct cairn_error *error)
{
    const struct cairn_error *unresolved = memory_manager_unresolved(engine->manager);
    if (unresolved->status == CAIRN_OK)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_STATE, 0,
                     "this engine can load no more modules, another one can (%.160s)",
                     unresolved->message);
}

/* Makes space for one more context. */
static enum cairn_status reserve_context(cairn_engine *engine, struct cairn_error *error)
{
    if (engine->context_count < engine->context_capacity)
        return CAIRN_OK;
    size_t capacity = engine->context_capacity == 0 ? 1 : 2 * engine->context_capacity;
    void *resized = memory_resize(&engine->allocator, engine->contexts,
                                  engine->context_capacity * sizeof *engine->contexts,
                                  capacity * sizeof *engine->contexts);
    if (resized == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a module's context");
    engine->contexts = resized;
    engine->context_capacity = capacity;
    return CAIRN_OK;
}

static void note_context(cairn_engine *engine, LLVMContextRef context)
{
    for (size_t i = 0; i < engine->context_count; i++)
        if (engine->contexts[i].context == context)
            return;
    engine->contexts[engine->context_count++] = (struct diagnostics){.context = context};
}

enum cairn_status cairn_engine_add_module(cairn_engine *engine, LLVMModuleRef module,
                                          struct cairn_error *error)
{
    if (engine == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_engine_add_module needs an engine and a module");
    enum cairn_status status = check_resolved(engine, error);
    if (status == CAIRN_OK)
        status = check_data_layout(engine, module, error);
    if (status == CAIRN_OK)
        status = check(engine, module, error);
    if (status == CAIRN_OK)
        status = reserve_context(engine, error);
    if (status == CAIRN_OK)
        status = cairn_memory_manager_declare(engine->manager, module, error);
    if (status != CAIRN_OK)
        return status;
    LLVMAddModule(engine->llvm, module);
    note_context(engine, LLVMGetModuleContext(module));
    return CAIRN_OK;
}

/* ---- Making an engine ---- */

static LLVMModuleRef create_empty_module(LLVMModuleRef like)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("cairn", LLVMGetModuleContext(like));
    LLVMSetTarget(module, LLVMGetTarget(like));
    return module;
}

static void fill_in_compiler_options(struct LLVMMCJITCompilerOptions *compiler,
                                     const struct cairn_engine_options *options)
{
    LLVMInitializeMCJITCompilerOptions(compiler, sizeof *compiler);
    compiler->OptLevel = options->optimisation_level;
    if (options->code_model != LLVMCodeModelDefault)
        compiler->CodeModel = options->code_model;
    compiler->EnableFastISel = options->enable_fast_isel;
}

/* Whether two triples have the same architecture name, which ends at the first '-'. */
static bool same_architecture(const char *triple, const char *other)
{
    size_t length = strcspn(triple, "-");
    return length == strcspn(other, "-") && strncmp(triple, other, length) == 0;
}

static enum cairn_status check_triple(LLVMModuleRef module, struct cairn_error *error)
{
    const char *triple = LLVMGetTarget(module);
    if (triple == NULL || *triple == '\0')
        return CAIRN_OK;
    char *host = LLVMGetDefaultTargetTriple();
    enum cairn_status status = CAIRN_OK;
    if (!same_architecture(triple, host))
        status = error_set(error, CAIRN_ERROR_LLVM, 0,
                           "the module is for '%s'; this process runs on '%s'", triple, host);
    LLVMDisposeMessage(host);
    return status;
}

/* Binds what llvm.experimental.deoptimize calls to `target`. LLVM copies the name and does not keep
 * a reference to the module. */
static void bind_deoptimize(LLVMExecutionEngineRef llvm, LLVMModuleRef module, const void *target)
{
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(LLVMGetModuleContext(module)), NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(module, MCJIT_DEOPTIMIZE, type);
    LLVMAddGlobalMapping(llvm, function, (void *)(uintptr_t)target);
}

static enum cairn_status create_llvm_engine(cairn_engine *engine, LLVMModuleRef module,
                                            const struct cairn_engine_options *options,
                                            struct cairn_error *error)
{
    struct LLVMMCJITCompilerOptions compiler;
    fill_in_compiler_options(&compiler, options);
    compiler.MCJMM = cairn_memory_manager_llvm(engine->manager);

    LLVMModuleRef empty = create_empty_module(module);
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
    if (options->deoptimize_target != NULL)
        bind_deoptimize(engine->llvm, empty, options->deoptimize_target);
    LLVMModuleRef removed = NULL;
    if (LLVMRemoveModule(engine->llvm, empty, &removed, &message) == 0)
        LLVMDisposeModule(removed);
    return CAIRN_OK;
}

static enum cairn_status create_parts(cairn_engine *engine, LLVMModuleRef module,
                                      const struct cairn_engine_options *options,
                                      struct cairn_error *error)
{
    enum cairn_status status = check_triple(module, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_memory_manager_options manager = options->memory_manager;
    manager.code_model = options->code_model;
    status = cairn_memory_manager_create(engine->runtime, &manager, &engine->manager, error);
    if (status != CAIRN_OK)
        return status;
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
    if (runtime == NULL || module == NULL || engine == NULL)
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, 0,
            "cairn_engine_create needs a runtime, a module and a place for the engine");
    if (options == NULL)
        options = &defaults;
    if (options->optimisation_level > 3)
        return error_set(error, CAIRN_ERROR_ARGUMENT, options->optimisation_level,
                         "optimisation level %u is not one of 0 to 3", options->optimisation_level);
    prepare_process(options);

    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    cairn_engine *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an engine");
    created->runtime = runtime;
    created->allocator = *allocator;
    created->check.liveness = options->liveness;
    created->check.optimisation_level = options->optimisation_level;
    created->check.enable_fast_isel = options->enable_fast_isel;
    created->check.is_verified = options->is_verified;
    created->check.gc_strategies = options->gc_strategies;
    created->check.gc_strategy_count = options->gc_strategy_count;
    created->check.finding = options->finding;
    created->check.user = options->finding_user;
    created->skip_check = options->skip_check;
    cairn_runtime_retain(runtime);
    enum cairn_status status = create_parts(created, module, options, error);
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

/* Makes LLVM finalise all modules, which it does when it is asked for the address of any function.
 * It is asked for one that nothing defines, because the modules need not have functions. A weak
 * symbol may be undefined. */
static void ask_for_function(LLVMExecutionEngineRef llvm, LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("cairn", context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(module, "cairn.undefined", type);
    LLVMSetLinkage(function, LLVMExternalWeakLinkage);
    LLVMGetPointerToGlobal(llvm, function);
    LLVMDisposeModule(module);
}

/* Finalises all modules. */
static void finalise_all(cairn_engine *engine)
{
    struct cairn_error *first = memory_manager_begin(engine->manager);
    for (size_t i = 0; i < engine->context_count; i++)
        diagnostics_begin(&engine->contexts[i], engine->contexts[i].context, first);
    ask_for_function(engine->llvm, engine->contexts[0].context);
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

static bool is_loaded(const cairn_engine *engine, uint64_t address)
{
    return cairn_runtime_find_module(engine->runtime, address) != NULL;
}

/* Whether the function belongs to a module that is not loaded: its finalisation failed, so that it
 * is not executable, or the host has retired it. LLVM still knows the function's address. */
static bool is_of_lost_module(const cairn_engine *engine, const char *name, uint64_t address)
{
    LLVMValueRef definition;
    return !is_loaded(engine, address) && LLVMFindFunction(engine->llvm, name, &definition) == 0;
}

void *cairn_engine_function(cairn_engine *engine, const char *name, struct cairn_error *error)
{
    if (engine == NULL || name == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                  "cairn_engine_function needs an engine and a name");
        return NULL;
    }
    struct cairn_error failure;
    enum cairn_status status = cairn_engine_finalise(engine, &failure);
    uint64_t address = LLVMGetFunctionAddress(engine->llvm, name);
    /* Functions that were loaded before the failed finalisation are still valid. */
    if (status != CAIRN_OK && !is_loaded(engine, address)) {
        if (error != NULL)
            *error = failure;
        return NULL;
    }
    if (address == 0) {
        error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "no module of the engine defines '%s'", name);
        return NULL;
    }
    if (is_of_lost_module(engine, name, address)) {
        error_set(
            error, CAIRN_ERROR_NOT_FOUND, 0,
            "the module that defines '%s' has been retired, or could not be loaded when it was "
            "finalised",
            name);
        return NULL;
    }
    return (void *)(uintptr_t)address;
}

LLVMExecutionEngineRef cairn_engine_llvm(cairn_engine *engine) { return engine->llvm; }
