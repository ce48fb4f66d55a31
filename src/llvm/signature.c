/*
 * Converts LLVM's function types to signatures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/types.h"

#include <cairn/llvm.h>

static enum cairn_status check_type(LLVMTypeRef function_type, struct cairn_error *error)
{
    if (function_type == NULL || LLVMGetTypeKind(function_type) != LLVMFunctionTypeKind)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_signature_of_function needs a function's type");
    if (LLVMIsFunctionVarArg(function_type))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "the function takes variable arguments, which a signature does not have");
    if (LLVMCountParamTypes(function_type) > CAIRN_SIGNATURE_ARGUMENTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, LLVMCountParamTypes(function_type),
                         "a signature has at most %d arguments, not %u",
                         CAIRN_SIGNATURE_ARGUMENTS_MAX, LLVMCountParamTypes(function_type));
    return CAIRN_OK;
}

enum cairn_status cairn_signature_of_function(const struct cairn_allocator *allocator,
                                              LLVMTypeRef function_type,
                                              cairn_signature **signature,
                                              struct cairn_error *error)
{
    LLVMTypeRef types[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    struct cairn_type arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    enum cairn_status status = check_type(function_type, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_results results = types_results(LLVMGetReturnType(function_type));
    if (!results.is_known)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "a signature has at most %d results, and the function returns more",
                         CAIRN_FUNCTION_RESULTS_MAX);
    unsigned count = LLVMCountParamTypes(function_type);
    LLVMGetParamTypes(function_type, types);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = types_convert(types[i]);
    return cairn_signature_create(allocator, results.types, results.count, arguments, count,
                                  signature, error);
}
