/*
 * Compiles modules to objects in memory.
 *
 * Objects are position-independent: what is out of reach of the small code model, Cairn's loader
 * reaches through slots and stubs (cairn/load.h).
 *
 * Process-wide state: LLVM's targets are global to the process. So their initialisation, and the
 * flag that it was done, are process-wide, too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/machine.h"

#include "base/error.h"
#include "base/memory.h"
#include "llvm/compile.h"
#include "llvm/gc_passes.h"
#include "llvm/modules.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <string.h>

struct machine {
    struct cairn_allocator allocator;
    LLVMTargetMachineRef llvm;
    LLVMTargetDataRef layout;
    /* An engine that owns `llvm`; or NULL. */
    LLVMExecutionEngineRef owner;
    LLVMCodeModel code_model;
};

static void initialise_llvm(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
#if !LLVM_SETS_FAST_ISEL
    LLVMLinkInMCJIT();
#endif
}

/* ---- Creating ---- */

/* Before LLVM 18, the C API can turn on FastISel above level 0 only for MCJIT's target machine,
 * whose code is not position-independent. */
static enum cairn_status create_with_fast_isel(struct machine *machine, const char *triple,
                                               const struct cairn_engine_options *options,
                                               struct cairn_error *error)
{
#if LLVM_SETS_FAST_ISEL
    (void)triple;
    (void)options;
    (void)error;
    LLVMSetTargetMachineFastISel(machine->llvm, 1);
#else
    struct LLVMMCJITCompilerOptions compiler;
    LLVMInitializeMCJITCompilerOptions(&compiler, sizeof compiler);
    compiler.OptLevel = options->optimisation_level;
    compiler.EnableFastISel = 1;
    if (options->code_model != LLVMCodeModelDefault)
        compiler.CodeModel = options->code_model;
    char *message = NULL;
    LLVMModuleRef empty = LLVMModuleCreateWithName("cairn");
    LLVMSetTarget(empty, triple);
    if (LLVMCreateMCJITCompilerForModule(&machine->owner, empty, &compiler, sizeof compiler,
                                         &message) != 0) {
        machine->owner = NULL;
        error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM has no code generator with FastISel: %s",
                  message);
        LLVMDisposeMessage(message);
        return CAIRN_ERROR_LLVM;
    }
    LLVMDisposeTargetMachine(machine->llvm);
    machine->llvm = LLVMGetExecutionEngineTargetMachine(machine->owner);
    machine->code_model = compiler.CodeModel;
#endif
    return CAIRN_OK;
}

static enum cairn_status create_llvm(struct machine *machine, const char *triple,
                                     const struct cairn_engine_options *options,
                                     struct cairn_error *error)
{
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message) != 0) {
        error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM has no code generator for '%.80s': %s", triple,
                  message);
        LLVMDisposeMessage(message);
        return CAIRN_ERROR_LLVM;
    }
    machine->llvm = LLVMCreateTargetMachine(
        target, triple, options->cpu == NULL ? "" : options->cpu,
        options->features == NULL ? "" : options->features,
        (LLVMCodeGenOptLevel)options->optimisation_level, LLVMRelocPIC, options->code_model);
    if (machine->llvm == NULL)
        return error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM has no code generator for '%.80s'",
                         triple);
    if (options->enable_fast_isel)
        return create_with_fast_isel(machine, triple, options, error);
    return CAIRN_OK;
}

enum cairn_status machine_create(const struct cairn_allocator *allocator, const char *triple,
                                 const struct cairn_engine_options *options,
                                 struct machine **machine, struct cairn_error *error)
{
    static pthread_once_t initialised = PTHREAD_ONCE_INIT;
    struct machine *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a target machine");
    *created = (struct machine){.allocator = *allocator, .code_model = options->code_model};
    pthread_once(&initialised, initialise_llvm);
    char *host = LLVMGetDefaultTargetTriple();
    if (*triple == '\0')
        triple = host;
    enum cairn_architecture architecture = types_triple_architecture(triple);
    if (options->liveness == CAIRN_LIVENESS_OFF)
        compile_set_option(COMPILE_WITHOUT_LIVENESS, architecture);
    if (options->implicit_null_checks)
        compile_set_option(COMPILE_IMPLICIT_NULL_CHECKS, architecture);
    enum cairn_status status = create_llvm(created, triple, options, error);
    LLVMDisposeMessage(host);
    if (status != CAIRN_OK) {
        machine_destroy(created);
        return status;
    }
    created->layout = LLVMCreateTargetDataLayout(created->llvm);
    *machine = created;
    return CAIRN_OK;
}

void machine_destroy(struct machine *machine)
{
    if (machine == NULL)
        return;
    struct cairn_allocator allocator = machine->allocator;
    if (machine->layout != NULL)
        LLVMDisposeTargetData(machine->layout);
    if (machine->owner != NULL)
        LLVMDisposeExecutionEngine(machine->owner);
    else if (machine->llvm != NULL)
        LLVMDisposeTargetMachine(machine->llvm);
    memory_free(&allocator, machine, sizeof *machine);
}

LLVMTargetMachineRef machine_llvm(const struct machine *machine) { return machine->llvm; }

uint8_t machine_address_bytes(const struct machine *machine)
{
    return modules_address_bytes(machine->code_model, machine->owner != NULL);
}

/* ---- Modules ---- */

static enum cairn_status fail(struct cairn_error *error, const struct cairn_error *reported)
{
    if (error != NULL)
        *error = *reported;
    return reported->status;
}

enum cairn_status machine_check_layout(const struct machine *machine, LLVMModuleRef module,
                                       struct cairn_error *error)
{
    const char *layout = LLVMGetDataLayoutStr(module);
    if (layout == NULL || *layout == '\0')
        return CAIRN_OK;
    char *native = LLVMCopyStringRepOfTargetData(machine->layout);
    enum cairn_status status = CAIRN_OK;
    if (strcmp(layout, native) != 0)
        status = error_set(error, CAIRN_ERROR_LLVM, 0,
                           "the module's data layout \"%s\" is not this machine's \"%s\": leave it "
                           "out, or set LLVM's",
                           layout, native);
    LLVMDisposeMessage(native);
    return status;
}

/* Passes ask the module for the sizes of types and for the names of library functions. */
void machine_set_target(const struct machine *machine, LLVMModuleRef module)
{
    LLVMSetModuleDataLayout(module, machine->layout);
    if (*LLVMGetTarget(module) != '\0')
        return;
    char *triple = LLVMGetTargetMachineTriple(machine->llvm);
    LLVMSetTarget(module, triple);
    LLVMDisposeMessage(triple);
}

static enum cairn_status run(const struct machine *machine, LLVMModuleRef module,
                             const char *passes, struct cairn_error *error)
{
    struct cairn_error reported = {0};
    struct diagnostics diagnostics;
    enum cairn_status status = CAIRN_OK;
    diagnostics_begin(&diagnostics, LLVMGetModuleContext(module), &reported);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failure = LLVMRunPasses(module, passes, machine->llvm, options);
    LLVMDisposePassBuilderOptions(options);
    diagnostics_end(&diagnostics);
    if (failure != NULL) {
        char *message = LLVMGetErrorMessage(failure);
        status = error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                           "LLVM cannot run the passes \"%.80s\": %s", passes, message);
        LLVMDisposeErrorMessage(message);
    } else if (reported.status != CAIRN_OK) {
        status = fail(error, &reported);
    }
    return status;
}

/* Runs the passes before `rest`, which the comma before it separates from them. */
static enum cairn_status run_first(const struct machine *machine, LLVMModuleRef module,
                                   const char *passes, const char *rest, struct cairn_error *error)
{
    size_t length = (size_t)(rest - passes);
    while (length > 0 && passes[length - 1] != ',')
        length--;
    if (length <= 1)
        return CAIRN_OK;
    char *first = memory_copy_string(&machine->allocator, passes, length - 1);
    if (first == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a list of passes");
    enum cairn_status status = run(machine, module, first, error);
    memory_free_string(&machine->allocator, first);
    return status;
}

/* The pass rewrite-statepoints-for-gc crashes on some code, which the passes before it may remove
 * or make. So the module is checked between them. */
enum cairn_status machine_run_passes(const struct machine *machine, LLVMModuleRef module,
                                     const char *passes, struct cairn_error *error)
{
    size_t start;
    bool rewrites = gc_passes_rewrite(passes, &start);
    machine_set_target(machine, module);
    enum cairn_status status = gc_passes_check_poll(module, passes, error);
    if (status == CAIRN_OK)
        status = run_first(machine, module, passes, passes + start, error);
    if (status == CAIRN_OK && rewrites)
        status = gc_passes_check(module, error);
    if (status == CAIRN_OK)
        status = run(machine, module, passes + start, error);
    if (status == CAIRN_OK && rewrites)
        status = gc_passes_verify(module, error);
    return status;
}

enum cairn_status machine_emit(const struct machine *machine, LLVMModuleRef module,
                               LLVMMemoryBufferRef *object, struct cairn_error *error)
{
    struct cairn_error reported = {0};
    struct diagnostics diagnostics;
    LLVMMemoryBufferRef emitted = NULL;
    char *message = NULL;
    diagnostics_begin(&diagnostics, LLVMGetModuleContext(module), &reported);
    bool failed = LLVMTargetMachineEmitToMemoryBuffer(machine->llvm, module, LLVMObjectFile,
                                                      &message, &emitted) != 0;
    diagnostics_end(&diagnostics);
    if (failed) {
        if (reported.status == CAIRN_OK)
            error_set(&reported, CAIRN_ERROR_LLVM, 0, "LLVM: %s", message);
        LLVMDisposeMessage(message);
    } else if (reported.status != CAIRN_OK) {
        LLVMDisposeMemoryBuffer(emitted);
    } else {
        *object = emitted;
        return CAIRN_OK;
    }
    return fail(error, &reported);
}
