/*
 * Runs LLVM's verifier, after a check for what it cannot verify.
 *
 * For each gc.relocate, the verifier of LLVM 16 to 22 asks for the GC strategy of the function,
 * even if it has none. The code generator of LLVM 14 to 22 asks for the strategies of all
 * functions. An unknown name ends the process, and the C API does not tell the names that LLVM
 * knows.
 *
 * Source: llvm/lib/IR/GCStrategy.cpp, getGCStrategy; BuiltinGCs.cpp.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/check.h"
#include "llvm/ir.h"

#include <llvm-c/Analysis.h>
#include <string.h>

static bool contains(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static enum cairn_status check_strategy(LLVMValueRef function,
                                        const struct cairn_check_options *options,
                                        struct cairn_error *error)
{
    static const char *const built_in[] = {"statepoint-example", "coreclr", "shadow-stack",
                                           "erlang", "ocaml"};
    const char *name = LLVMGetGC(function);
    if (name == NULL || contains(built_in, sizeof built_in / sizeof *built_in, name) ||
        contains(options->gc_strategies, options->gc_strategy_count, name))
        return CAIRN_OK;
    size_t length;
    return error_set(
        error, CAIRN_ERROR_LLVM, 0,
        "in '%.40s': LLVM ends the process at the GC strategy \"%.40s\", which it does "
        "not know; write \"statepoint-example\", or register a strategy and name it "
        "in gc_strategies",
        LLVMGetValueName2(function, &length), name);
}

enum cairn_status verify_strategies(LLVMModuleRef module, const struct cairn_check_options *options,
                                    struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef function = LLVMGetFirstFunction(module);
         function != NULL && status == CAIRN_OK; function = LLVMGetNextFunction(function))
        if (!LLVMIsDeclaration(function))
            status = check_strategy(function, options, error);
    return status;
}

/* Checks all calls of one of the functions llvm.experimental.gc.relocate. */
static enum cairn_status check_relocates(LLVMValueRef relocate,
                                         const struct cairn_check_options *options,
                                         struct cairn_error *error)
{
    for (LLVMUseRef use = LLVMGetFirstUse(relocate); use != NULL; use = LLVMGetNextUse(use)) {
        LLVMValueRef call = LLVMGetUser(use);
        LLVMValueRef function = LLVMIsAInstruction(call) == NULL ? NULL : ir_function_of(call);
        if (function == NULL || ir_called_function(call) != relocate)
            continue;
        if (LLVMGetGC(function) == NULL)
            return error_set(
                error, CAIRN_ERROR_LLVM, 0,
                "in '%.40s': LLVM's verifier ends the process at a gc.relocate in a function "
                "without a GC strategy; write gc \"statepoint-example\" after its type",
                ir_function_name(call));
        enum cairn_status status = check_strategy(function, options, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

enum cairn_status verify_module(LLVMModuleRef module, const struct cairn_check_options *options,
                                struct cairn_error *error)
{
    char *message = NULL;
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef function = LLVMGetFirstFunction(module);
         function != NULL && status == CAIRN_OK; function = LLVMGetNextFunction(function))
        if (ir_is_intrinsic(function, "llvm.experimental.gc.relocate"))
            status = check_relocates(function, options, error);
    if (status != CAIRN_OK)
        return status;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0) {
        ir_join_lines(message);
        status = error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM's verifier says: %.220s", message);
    }
    LLVMDisposeMessage(message);
    return status;
}
