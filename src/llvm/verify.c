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
#include "llvm/verify.h"

#include "base/error.h"
#include "llvm/site_call.h"

#include <llvm-c/Analysis.h>
#include <string.h>

/* ---- GC strategies ---- */

static bool contains(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_known(const char *name, const struct verify_strategies *strategies)
{
    static const char *const built_in[] = {"statepoint-example", "coreclr", "shadow-stack",
                                           "erlang", "ocaml"};
    return contains(built_in, sizeof built_in / sizeof *built_in, name) ||
           contains(strategies->names, strategies->count, name);
}

static enum cairn_status check_strategy(LLVMValueRef function,
                                        const struct verify_strategies *strategies,
                                        struct cairn_error *error)
{
    const char *name = LLVMGetGC(function);
    if (name == NULL || is_known(name, strategies))
        return CAIRN_OK;
    size_t length;
    return error_set(
        error, CAIRN_ERROR_LLVM, 0,
        "in '%.40s': LLVM ends the process at the GC strategy \"%.40s\", which it does "
        "not know; write \"statepoint-example\", or register a strategy and name it "
        "in gc_strategies",
        LLVMGetValueName2(function, &length), name);
}

enum cairn_status verify_strategies(LLVMModuleRef module,
                                    const struct verify_strategies *strategies,
                                    struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef function = LLVMGetFirstFunction(module);
         function != NULL && status == CAIRN_OK; function = LLVMGetNextFunction(function))
        if (!LLVMIsDeclaration(function))
            status = check_strategy(function, strategies, error);
    return status;
}

static enum cairn_status check_relocate(LLVMValueRef call,
                                        const struct verify_strategies *strategies,
                                        struct cairn_error *error)
{
    LLVMBasicBlockRef block = LLVMGetInstructionParent(call);
    LLVMValueRef function = block == NULL ? NULL : LLVMGetBasicBlockParent(block);
    if (function == NULL)
        return CAIRN_OK;
    if (LLVMGetGC(function) != NULL)
        return check_strategy(function, strategies, error);
    return error_set(error, CAIRN_ERROR_LLVM, 0,
                     "in '%.40s': LLVM's verifier ends the process at a gc.relocate in a function "
                     "without a GC strategy; write gc \"statepoint-example\" after its type",
                     site_call_function(call));
}

static enum cairn_status check_relocates(LLVMModuleRef module,
                                         const struct verify_strategies *strategies,
                                         struct cairn_error *error)
{
    static const char prefix[] = "llvm.experimental.gc.relocate";
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        size_t length;
        if (LLVMGetIntrinsicID(function) == 0 ||
            strncmp(LLVMGetValueName2(function, &length), prefix, sizeof prefix - 1) != 0)
            continue;
        for (LLVMUseRef use = LLVMGetFirstUse(function); use != NULL && status == CAIRN_OK;
             use = LLVMGetNextUse(use))
            if (site_call_calls(LLVMGetUser(use), function))
                status = check_relocate(LLVMGetUser(use), strategies, error);
    }
    return status;
}

/* ---- The verifier ---- */

static void join_lines(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    for (; *text != '\0'; text++)
        if (*text == '\n')
            *text = ' ';
}

enum cairn_status verify_module(LLVMModuleRef module, const struct verify_strategies *strategies,
                                struct cairn_error *error)
{
    char *message = NULL;
    enum cairn_status status = check_relocates(module, strategies, error);
    if (status != CAIRN_OK)
        return status;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0) {
        join_lines(message);
        status = error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM's verifier says: %.220s", message);
    }
    LLVMDisposeMessage(message);
    return status;
}
