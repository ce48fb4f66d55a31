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
#include "llvm/liveness.h"

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

/* Whether live values of the type crash LLVM even without arithmetic. This was seen with x86_fp80
 * at -O0, and with bfloat. */
static bool is_awkward(LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMX86_FP80TypeKind || kind == LLVMBFloatTypeKind;
}

static bool moves_awkward(LLVMValueRef instruction)
{
    int count = LLVMGetNumOperands(instruction);
    for (int i = 0; i < count; i++)
        if (is_awkward(LLVMTypeOf(LLVMGetOperand(instruction, (unsigned)i))))
            return true;
    return is_awkward(LLVMTypeOf(instruction));
}

/* Whether the instruction reads a floating-point control register. Instructions that only move a
 * number or change its sign do not. */
static bool is_arithmetic(LLVMOpcode opcode)
{
    return opcode == LLVMFAdd || opcode == LLVMFSub || opcode == LLVMFMul || opcode == LLVMFDiv ||
           opcode == LLVMFRem || opcode == LLVMFCmp || opcode == LLVMFPTrunc ||
           opcode == LLVMFPExt || opcode == LLVMSIToFP || opcode == LLVMUIToFP ||
           opcode == LLVMFPToSI || opcode == LLVMFPToUI;
}

static bool has_floating_point(LLVMValueRef call)
{
    unsigned count = LLVMGetNumArgOperands(call);
    for (unsigned i = 0; i < count; i++)
        if (is_floating_point(LLVMTypeOf(LLVMGetOperand(call, i))))
            return true;
    return is_floating_point(LLVMTypeOf(call));
}

/* ---- Calls ---- */

static bool is_call(LLVMOpcode opcode)
{
    return opcode == LLVMCall || opcode == LLVMInvoke || opcode == LLVMCallBr;
}

static const char *intrinsic_name(LLVMValueRef call)
{
    size_t length;
    LLVMValueRef function = LLVMIsAFunction(LLVMGetCalledValue(call));
    return function == NULL || LLVMGetIntrinsicID(function) == 0
               ? NULL
               : LLVMGetValueName2(function, &length);
}

/* Whether the call certainly leaves no call in machine code. Any intrinsic that is not listed may
 * become a call. */
static bool leaves_no_code(LLVMValueRef call)
{
    const char *name = intrinsic_name(call);
    return name != NULL && (site_call_kind(call) != CAIRN_RECORD_UNDECLARED ||
                            strncmp(name, "llvm.dbg.", strlen("llvm.dbg.")) == 0 ||
                            strncmp(name, "llvm.lifetime.", strlen("llvm.lifetime.")) == 0);
}

/* Whether the value is or contains the address of a thread-local variable, which a call may
 * compute. */
static bool is_thread_local(LLVMValueRef value)
{
    if (!LLVMIsConstant(value))
        return false;
    if (LLVMIsAGlobalVariable(value) != NULL)
        return LLVMIsThreadLocal(value);
    if (LLVMIsAConstantExpr(value) == NULL)
        return false;
    int count = LLVMGetNumOperands(value);
    for (int i = 0; i < count; i++)
        if (is_thread_local(LLVMGetOperand(value, (unsigned)i)))
            return true;
    return false;
}

static bool uses_thread_local(LLVMValueRef instruction)
{
    int count = LLVMGetNumOperands(instruction);
    for (int i = 0; i < count; i++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)i);
        if (is_thread_local(operand))
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

/* Returns the type that the instruction reads or writes atomically; NULL for other instructions. */
static LLVMTypeRef atomic_type(LLVMValueRef instruction, LLVMOpcode opcode)
{
    if (opcode == LLVMAtomicRMW)
        return LLVMTypeOf(instruction);
    if (opcode == LLVMAtomicCmpXchg)
        return LLVMTypeOf(LLVMGetOperand(instruction, 1));
    if ((opcode != LLVMLoad && opcode != LLVMStore) ||
        LLVMGetOrdering(instruction) == LLVMAtomicOrderingNotAtomic)
        return NULL;
    return LLVMTypeOf(opcode == LLVMLoad ? instruction : LLVMGetOperand(instruction, 0));
}

/* Whether the atomic access may become a call of the run-time library. For types other than
 * integers, only read-modify-write instructions compute, and so read a control register. */
static bool is_library_atomic(LLVMValueRef instruction, LLVMTypeRef type)
{
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
        return LLVMGetInstructionOpcode(instruction) == LLVMAtomicRMW;
    return is_wide(type) || 8 * LLVMGetAlignment(instruction) < LLVMGetIntTypeWidth(type);
}

/* Whether the instruction becomes a call of the run-time library, at least on some processors. */
static bool calls_library(LLVMValueRef instruction, LLVMOpcode opcode)
{
    LLVMTypeRef type = atomic_type(instruction, opcode);
    if (type != NULL)
        return is_library_atomic(instruction, type);
    if (opcode == LLVMUDiv || opcode == LLVMSDiv || opcode == LLVMURem || opcode == LLVMSRem)
        return is_wide(LLVMTypeOf(instruction));
    return opcode == LLVMResume || opcode == LLVMCleanupRet;
}

/* ---- By architecture ---- */

static bool is_culprit_on_x86_64(LLVMValueRef instruction)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (moves_awkward(instruction))
        return true;
    if (is_call(opcode))
        return !leaves_no_code(instruction);
    return is_arithmetic(opcode) || calls_library(instruction, opcode) ||
           uses_thread_local(instruction);
}

static bool is_culprit_on_aarch64(LLVMValueRef instruction)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (!is_call(opcode))
        return is_arithmetic(opcode);
    return intrinsic_name(instruction) != NULL && !leaves_no_code(instruction) &&
           has_floating_point(instruction);
}

LLVMValueRef liveness_find_culprit(LLVMValueRef function, enum cairn_architecture architecture)
{
    bool is_aarch64 = architecture == CAIRN_ARCHITECTURE_AARCH64 && LLVM_HAS_LIVE_FPCR;
    if (architecture != CAIRN_ARCHITECTURE_X86_64 && !is_aarch64)
        return NULL;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction))
            if (is_aarch64 ? is_culprit_on_aarch64(instruction) : is_culprit_on_x86_64(instruction))
                return instruction;
    return NULL;
}
