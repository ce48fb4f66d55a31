/*
 * Finds live registers that have no DWARF number.
 *
 * LLVM records the registers that are live across a patch point by their DWARF numbers, and crashes
 * on registers that have none (llvm-project #53828, #85828). An instruction that reads such a
 * register, and does not write it, makes it live in all code before the instruction:
 *
 *     x86-64, LLVM 14 to 22       calls: the shadow stack's pointer; floating-point arithmetic:
 *                                 the control registers, mxcsr and fpcw
 *     AArch64, LLVM 16 and later  floating-point arithmetic: the control register, fpcr
 *
 * No such register was found on PPC64 and SystemZ.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/site_call.h"
#include "llvm/version.h"

#include <stdbool.h>
#include <string.h>

/* ---- Floating point ---- */

static bool is_floating_point(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMX86_FP80TypeKind:
    case LLVMFP128TypeKind:
    case LLVMPPC_FP128TypeKind:
        return true;
    case LLVMVectorTypeKind:
    case LLVMScalableVectorTypeKind:
        return is_floating_point(LLVMGetElementType(type));
    default:
        return false;
    }
}

/* Whether the type matters for one of the first `count` operands, or for the result. */
static bool uses_type(LLVMValueRef instruction, unsigned count, bool matters(LLVMTypeRef type))
{
    for (unsigned i = 0; i < count; i++)
        if (matters(LLVMTypeOf(LLVMGetOperand(instruction, i))))
            return true;
    return matters(LLVMTypeOf(instruction));
}

/* Whether live values of the type crash LLVM even without arithmetic. This was seen with x86_fp80
 * at -O0, and with bfloat. */
static bool is_awkward(LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMX86_FP80TypeKind || kind == LLVMBFloatTypeKind;
}

/* ---- Calls ---- */

/* Whether an operand is or contains the address of a thread-local variable, which a call may
 * compute. */
static bool uses_thread_local(LLVMValueRef user)
{
    int count = LLVMGetNumOperands(user);
    for (int i = 0; i < count; i++) {
        LLVMValueRef operand = LLVMGetOperand(user, (unsigned)i);
        if (LLVMIsAGlobalVariable(operand) != NULL
                ? LLVMIsThreadLocal(operand)
                : LLVMIsAConstantExpr(operand) != NULL && uses_thread_local(operand))
            return true;
    }
    return false;
}

/* Whether integers of the type are too wide for a single instruction to divide, or to read or write
 * atomically. */
static bool is_wide(LLVMTypeRef type)
{
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        return is_wide(LLVMGetElementType(type));
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) > 64;
}

/* Whether the instruction becomes a call of the run-time library, at least on some processors. For
 * atomic accesses to types other than integers, only read-modify-write instructions compute, and so
 * read a control register. */
static bool calls_library(LLVMValueRef instruction, LLVMOpcode opcode)
{
    LLVMTypeRef type = LLVMTypeOf(instruction); /* that is divided, or accessed atomically */
    switch (opcode) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return is_wide(type);
    case LLVMResume:
    case LLVMCleanupRet:
        return true;
    case LLVMLoad:
    case LLVMStore:
        if (LLVMGetOrdering(instruction) == LLVMAtomicOrderingNotAtomic)
            return false;
        if (opcode == LLVMStore)
            type = LLVMTypeOf(LLVMGetOperand(instruction, 0));
        break;
    case LLVMAtomicCmpXchg:
        type = LLVMTypeOf(LLVMGetOperand(instruction, 1));
        break;
    case LLVMAtomicRMW:
        break;
    default:
        return false;
    }
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
        return opcode == LLVMAtomicRMW;
    return is_wide(type) || 8 * LLVMGetAlignment(instruction) < LLVMGetIntTypeWidth(type);
}

/* ---- By architecture ---- */

/* Calls of some intrinsics certainly leave no call in machine code. Any other may become a call. */
static bool is_culprit(LLVMValueRef instruction, bool is_aarch64)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    bool is_call = ir_is_call(instruction) || opcode == LLVMCallBr;
    LLVMValueRef function = is_call ? LLVMIsAFunction(LLVMGetCalledValue(instruction)) : NULL;
    bool is_hidden =
        ir_is_intrinsic(function, "") &&
        (site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED ||
         ir_is_intrinsic(function, "llvm.dbg.") || ir_is_intrinsic(function, "llvm.lifetime."));
    if (is_aarch64 && is_call)
        return ir_is_intrinsic(function, "") && !is_hidden &&
               uses_type(instruction, LLVMGetNumArgOperands(instruction), is_floating_point);
    if (is_aarch64)
        return ir_is_float_arithmetic(opcode);
    if (uses_type(instruction, (unsigned)LLVMGetNumOperands(instruction), is_awkward))
        return true;
    if (is_call)
        return !is_hidden;
    return ir_is_float_arithmetic(opcode) || calls_library(instruction, opcode) ||
           uses_thread_local(instruction);
}

LLVMValueRef liveness_find_culprit(LLVMValueRef function, enum cairn_architecture architecture)
{
    LLVMValueRef instruction = NULL;
    bool is_aarch64 = architecture == CAIRN_ARCHITECTURE_AARCH64 && LLVM_HAS_LIVE_FPCR;
    if (architecture != CAIRN_ARCHITECTURE_X86_64 && !is_aarch64)
        return NULL;
    while ((instruction = ir_next_instruction(function, instruction)) != NULL &&
           !is_culprit(instruction, is_aarch64))
        continue;
    return instruction;
}
