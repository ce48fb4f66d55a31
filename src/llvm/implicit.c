/* SPDX-License-Identifier: MIT */
#include "base/error.h"
#include "llvm/option.h"

#include <cairn/llvm.h>

#include <string.h>

void cairn_enable_implicit_null_checks(void) { option_turn_implicit_null_checks_on(); }

static bool is_equality(LLVMValueRef comparison)
{
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(comparison);
    return predicate == LLVMIntEQ || predicate == LLVMIntNE;
}

/* Whether the value is a comparison of a pointer with null. LLVM makes a constant the second
 * operand. */
static bool is_null_check(LLVMValueRef value)
{
    if (LLVMIsAICmpInst(value) == NULL || !is_equality(value))
        return false;
    LLVMValueRef other = LLVMGetOperand(value, 1);
    return LLVMGetTypeKind(LLVMTypeOf(other)) == LLVMPointerTypeKind &&
           LLVMIsConstant(other) != 0 && LLVMIsNull(other) != 0;
}

static bool is_null_branch(LLVMValueRef branch)
{
    return LLVMIsABranchInst(branch) != NULL && LLVMIsConditional(branch) != 0 &&
           is_null_check(LLVMGetCondition(branch));
}

enum cairn_status cairn_make_implicit(LLVMValueRef branch, struct cairn_error *error)
{
    static const char name[] = "make.implicit";
    if (branch == NULL || !is_null_branch(branch))
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, 0,
            "only a conditional branch on a comparison of a pointer with null (eq or ne) "
            "can be made implicit");
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(LLVMGetCondition(branch)));
    unsigned kind = LLVMGetMDKindIDInContext(context, name, (unsigned)strlen(name));
    LLVMMetadataRef nothing = LLVMMDNodeInContext2(context, NULL, 0);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(context, nothing));
    return CAIRN_OK;
}
