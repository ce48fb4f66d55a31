/* SPDX-License-Identifier: MIT */
#include "llvm/compile.h"

#include "base/error.h"
#include "llvm/option.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <string.h>

/* ---- Targets ---- */

/* Initialises all targets that LLVM was built with. */
static void initialise_llvm(void)
{
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    LLVMInitializeAllAsmParsers();
}

static enum cairn_status find_target(const char *triple, LLVMTargetRef *target,
                                     struct cairn_error *error)
{
    char *message = NULL;
    initialise_llvm();
    if (LLVMGetTargetFromTriple(triple, target, &message) == 0)
        return CAIRN_OK;
    LLVMDisposeMessage(message);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "this LLVM %d has no code generator for '%.100s'", LLVM_VERSION_MAJOR, triple);
}

enum cairn_architecture compile_find_architecture(const char *triple)
{
    char *normalised = LLVMNormalizeTargetTriple(triple);
    enum cairn_architecture architecture = types_triple_architecture(normalised);
    LLVMDisposeMessage(normalised);
    return architecture;
}

enum cairn_architecture compile_architecture(const struct program *program)
{
    return types_architecture(program_module(program));
}

/* Removes the processor and its features from all functions, because they belong to the target that
 * the IR was made for. */
static void forget_processor(LLVMModuleRef module)
{
    static const char *const names[] = {"target-cpu", "tune-cpu", "target-features"};
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            LLVMRemoveStringAttributeAtIndex(function,
                                             (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                             names[i], (unsigned)strlen(names[i]));
}

enum cairn_status compile_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error)
{
    LLVMModuleRef module = program_module(program);
    enum cairn_architecture before = types_architecture(module);
    LLVMTargetRef target;
    char *normalised = LLVMNormalizeTargetTriple(triple);
    enum cairn_status status = find_target(normalised, &target, error);
    if (status == CAIRN_OK)
        LLVMSetTarget(module, normalised);
    LLVMDisposeMessage(normalised);
    if (status != CAIRN_OK)
        return status;
    enum cairn_architecture after = types_architecture(module);
    if (after == CAIRN_ARCHITECTURE_UNKNOWN)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "Cairn does not know the architecture of '%.100s'", triple);
    if (after == before)
        return CAIRN_OK;
    forget_processor(module);
    return CAIRN_OK;
}

/* ---- Compiling ---- */

static void set_data_layout(LLVMModuleRef module, LLVMTargetMachineRef machine)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
}

static enum cairn_status emit(struct program *program, LLVMTargetMachineRef machine,
                              struct compiled *compiled, struct cairn_error *error)
{
    char *message = NULL;
    LLVMModuleRef module = program_module(program);
    set_data_layout(module, machine);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message,
                                            &compiled->buffer) != 0) {
        error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM: %s", message);
        LLVMDisposeMessage(message);
        return CAIRN_ERROR_LLVM;
    }
    compiled->bytes = LLVMGetBufferStart(compiled->buffer);
    compiled->size = LLVMGetBufferSize(compiled->buffer);
    enum cairn_status status = program_status(program, error);
    if (status != CAIRN_OK)
        compile_release(compiled);
    return status;
}

enum cairn_status compile_object(struct program *program, unsigned optimisation_level,
                                 struct compiled *compiled, struct cairn_error *error)
{
    const char *triple = LLVMGetTarget(program_module(program));
    LLVMTargetRef target;
    enum cairn_status status = find_target(triple, &target, error);
    if (status != CAIRN_OK)
        return status;
    option_turn_liveness_off(compile_architecture(program));
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, "", "", (LLVMCodeGenOptLevel)optimisation_level,
                                LLVMRelocDefault, LLVMCodeModelDefault);
    if (machine == NULL)
        return error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM has no code generator for '%.100s'",
                         triple);
    status = emit(program, machine, compiled, error);
    LLVMDisposeTargetMachine(machine);
    return status;
}

void compile_release(struct compiled *compiled)
{
    if (compiled->buffer != NULL)
        LLVMDisposeMemoryBuffer(compiled->buffer);
    *compiled = (struct compiled){0};
}
