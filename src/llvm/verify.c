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

/* Checks that LLVM knows the function's GC strategy. */
static enum cairn_status check_strategy(LLVMValueRef function,
                                        const struct cairn_check_options *options,
                                        struct cairn_error *error)
{
    static const char *const built_in[] = {"statepoint-example", "coreclr", "shadow-stack",
                                           "erlang", "ocaml"};
    const char *name = LLVMGetGC(function);
    size_t length;
    if (name == NULL)
        return CAIRN_OK;
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(built_in[i], name) == 0)
            return CAIRN_OK;
    for (size_t i = 0; i < options->gc_strategy_count; i++)
        if (strcmp(options->gc_strategies[i], name) == 0)
            return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_LLVM, 0,
                     "in '%.40s': LLVM ends the process at the GC strategy \"%.40s\", which it "
                     "does not know; write \"statepoint-example\", or register a strategy and "
                     "name it in gc_strategies",
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

enum cairn_status verify_module(LLVMModuleRef module, const struct cairn_check_options *options,
                                struct cairn_error *error)
{
    char *message = NULL;
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef relocate = LLVMGetFirstFunction(module); relocate != NULL;
         relocate = LLVMGetNextFunction(relocate)) {
        LLVMUseRef use = ir_is_intrinsic(relocate, "llvm.experimental.gc.relocate")
                             ? LLVMGetFirstUse(relocate)
                             : NULL;
        for (; use != NULL && status == CAIRN_OK; use = LLVMGetNextUse(use)) {
            LLVMValueRef call = LLVMGetUser(use);
            LLVMValueRef function = LLVMIsAInstruction(call) == NULL ? NULL : ir_function_of(call);
            if (function == NULL || ir_called_function(call) != relocate)
                continue;
            status = LLVMGetGC(function) != NULL
                         ? check_strategy(function, options, error)
                         : error_set(error, CAIRN_ERROR_LLVM, 0,
                                     "in '%.40s': LLVM's verifier ends the process at a "
                                     "gc.relocate in a function without a GC strategy; write gc "
                                     "\"statepoint-example\" after its type",
                                     ir_function_name(call));
        }
    }
    if (status != CAIRN_OK)
        return status;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0) {
        ir_join_lines(message);
        status = error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM's verifier says: %.220s", message);
    }
    LLVMDisposeMessage(message);
    return status;
}
