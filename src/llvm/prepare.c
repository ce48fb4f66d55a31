/*
 * Prepares functions and modules for Cairn, and reads the signatures of functions.
 *
 * Sources: llvm/lib/Transforms/Scalar/RewriteStatepointsForGC.cpp and llvm/IR/Statepoint.h
 * (DefaultStatepointID), for the IDs of statepoints.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/ir.h"
#include "llvm/site_call.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <string.h>

void cairn_prepare_function(LLVMValueRef function)
{
    ir_set_attribute(function, "uwtable", VERSION_UWTABLE_VALUE);
    ir_set_string_attribute(function, "frame-pointer", "all");
    ir_set_string_attribute(function, "branch-target-enforcement", "true");
}

enum cairn_status cairn_number_statepoints(LLVMModuleRef module, uint64_t *next_id,
                                           struct cairn_error *error)
{
    if (module == NULL || next_id == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_number_statepoints: `%s` is NULL",
                         module == NULL ? "module" : "next_id");
    for (LLVMValueRef call = NULL; (call = site_call_next(module, call)) != NULL;)
        if (site_call_kind(call) == CAIRN_RECORD_STATEPOINT)
            site_call_set_id(call, (*next_id)++);
    return CAIRN_OK;
}

/* LLVM makes a constant the second operand of a comparison. */
enum cairn_status cairn_make_implicit(LLVMValueRef branch, struct cairn_error *error)
{
    static const char name[] = "make.implicit";
    bool is_conditional =
        branch != NULL && LLVMIsABranchInst(branch) != NULL && LLVMIsConditional(branch);
    LLVMValueRef check = is_conditional ? LLVMIsAICmpInst(LLVMGetCondition(branch)) : NULL;
    LLVMIntPredicate predicate = check == NULL ? LLVMIntUGT : LLVMGetICmpPredicate(check);
    LLVMValueRef other = check == NULL ? NULL : LLVMGetOperand(check, 1);
    if ((predicate != LLVMIntEQ && predicate != LLVMIntNE) ||
        LLVMGetTypeKind(LLVMTypeOf(other)) != LLVMPointerTypeKind || !LLVMIsConstant(other) ||
        !LLVMIsNull(other))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "only a conditional branch on a comparison of a pointer with null (eq or "
                         "ne) can be made implicit");
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(LLVMGetCondition(branch)));
    unsigned kind = LLVMGetMDKindIDInContext(context, name, (unsigned)strlen(name));
    LLVMMetadataRef nothing = LLVMMDNodeInContext2(context, NULL, 0);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(context, nothing));
    return CAIRN_OK;
}

enum cairn_status cairn_signature_of_function(const struct cairn_allocator *allocator,
                                              LLVMTypeRef function_type,
                                              cairn_signature **signature,
                                              struct cairn_error *error)
{
    LLVMTypeRef types[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    struct cairn_type arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    if (function_type == NULL || LLVMGetTypeKind(function_type) != LLVMFunctionTypeKind)
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, 0,
            "cairn_signature_of_function: `function_type` is not the type of a function");
    if (LLVMIsFunctionVarArg(function_type))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "the function takes variable arguments, which a signature does not have");
    unsigned count = LLVMCountParamTypes(function_type);
    if (count > CAIRN_SIGNATURE_ARGUMENTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, count,
                         "a signature has at most %d arguments, not %u",
                         CAIRN_SIGNATURE_ARGUMENTS_MAX, count);
    struct cairn_results results = types_results(LLVMGetReturnType(function_type));
    if (!results.is_known)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "a signature has at most %d results, and the function returns more",
                         CAIRN_FUNCTION_RESULTS_MAX);
    LLVMGetParamTypes(function_type, types);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = types_convert(types[i]);
    return cairn_signature_create(allocator, results.types, results.count, arguments, count,
                                  signature, error);
}
