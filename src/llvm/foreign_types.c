/*
 * Finds types of another architecture: x86_fp80 without an x87 unit.
 *
 * Before version 16, LLVM crashes on every use of the type; on SystemZ, all versions do. Elsewhere
 * they move such numbers in general registers. But 22 ends the process at every computation with
 * them, and the others at some; for the rest they call functions that no library has.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/version.h"

static bool contains_fp80(LLVMTypeRef type)
{
    unsigned count;
    switch (LLVMGetTypeKind(type)) {
    case LLVMX86_FP80TypeKind:
        return true;
    case LLVMArrayTypeKind:
    case LLVMVectorTypeKind:
    case LLVMScalableVectorTypeKind:
        return contains_fp80(LLVMGetElementType(type));
    case LLVMStructTypeKind:
        count = LLVMCountStructElementTypes(type);
        for (unsigned i = 0; i < count; i++)
            if (contains_fp80(LLVMStructGetTypeAtIndex(type, i)))
                return true;
        return false;
    default:
        return false;
    }
}

static bool has_operand_with_fp80(LLVMValueRef instruction)
{
    int count = LLVMGetNumOperands(instruction);
    for (int i = 0; i < count; i++)
        if (contains_fp80(LLVMTypeOf(LLVMGetOperand(instruction, (unsigned)i))))
            return true;
    return contains_fp80(LLVMTypeOf(instruction));
}

static bool has_parameter_with_fp80(LLVMValueRef function)
{
    for (LLVMValueRef parameter = LLVMGetFirstParam(function); parameter != NULL;
         parameter = LLVMGetNextParam(parameter))
        if (contains_fp80(LLVMTypeOf(parameter)))
            return true;
    return false;
}

static bool is_first_in_function(LLVMValueRef instruction)
{
    return LLVMGetPreviousInstruction(instruction) == NULL &&
           LLVMGetInstructionParent(instruction) ==
               LLVMGetEntryBasicBlock(ir_function_of(instruction));
}

/* Whether the instruction computes. Of the intrinsics, only those that record values or change a
 * sign are known to do nothing else than moving their operands. */
static bool computes(LLVMValueRef instruction)
{
    LLVMValueRef function = ir_called_function(instruction);
    if (function == NULL)
        return ir_is_float_arithmetic(LLVMGetInstructionOpcode(instruction));
    if (ir_is_intrinsic(function, "llvm.experimental."))
        return ir_is_intrinsic(function, "llvm.experimental.constrained.");
    return ir_is_intrinsic(function, "") && !ir_is_intrinsic(function, "llvm.fabs.") &&
           !ir_is_intrinsic(function, "llvm.copysign.");
}

const struct problem *foreign_type_find(LLVMValueRef instruction,
                                        enum cairn_architecture architecture)
{
    static const struct problem parameter = {
        "a parameter has the type x86_fp80, of which LLVM has code for x86-64 only",
        "a double, or a pointer to it"};
    static const struct problem value = {"LLVM has code for the type x86_fp80 on x86-64 only",
                                         "a double, or pass a pointer to it"};
    static const struct problem computation = {
        "LLVM has arithmetic of the type x86_fp80 on x86-64 only",
        "a double, or pass a pointer to it"};
    bool moves = LLVM_STORES_FOREIGN_FP80 && architecture != CAIRN_ARCHITECTURE_SYSTEMZ;
    if (architecture == CAIRN_ARCHITECTURE_X86_64 || architecture == CAIRN_ARCHITECTURE_UNKNOWN)
        return NULL;
    if (!moves && is_first_in_function(instruction) &&
        has_parameter_with_fp80(ir_function_of(instruction)))
        return &parameter;
    if ((moves && !computes(instruction)) || !has_operand_with_fp80(instruction))
        return NULL;
    return moves ? &computation : &value;
}
