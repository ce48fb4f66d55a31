/*
 * LLVM's pass ImplicitNullChecks compares the access that replaces a check with the accesses before
 * it, and dereferences the IR value of each. An access that LLVM has made of several, or of parts
 * of one, has none, and the pass of LLVM 14 to 22 crashes (llvm-project #63585). SelectionDAG makes
 * such accesses in two ways: it loads from a selected address instead of selecting between two
 * loaded values (DAGCombiner.cpp, SimplifySelectOps), and it loads an element instead of a vector
 * (scalarizeExtractedVectorLoad).
 *
 * So a check stays explicit if one of the blocks that may be part of its machine block selects
 * between two computed values, or has values that LLVM splits. The blocks are those that its
 * successors branch to unconditionally, which LLVM appends, and those that follow these, from which
 * LLVM may hoist common instructions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/implicit_checks.h"

#include "llvm/ir.h"

#include <stdbool.h>
#include <string.h>

/* Whether one register holds each value of the type, and LLVM does not split accesses to it. */
static bool is_plain(LLVMTypeRef type)
{
    enum { VALUES_MAX = 8 };
    LLVMTypeRef types[VALUES_MAX];
    unsigned count = ir_flatten(type, types, VALUES_MAX);
    bool is_plain = count < VALUES_MAX;
    for (unsigned i = 0; i < count && is_plain; i++)
        switch (LLVMGetTypeKind(types[i])) {
        case LLVMIntegerTypeKind:
            is_plain = ir_is_integer(types[i], 64);
            break;
        case LLVMVectorTypeKind:
        case LLVMScalableVectorTypeKind:
        case LLVMX86_FP80TypeKind:
        case LLVMFP128TypeKind:
        case LLVMPPC_FP128TypeKind:
            is_plain = false;
            break;
        default:
            break;
        }
    return is_plain;
}

/* Whether the value may come from a load of the same block. */
static bool is_computed(LLVMValueRef value)
{
    return LLVMIsAInstruction(value) != NULL && LLVMIsAPHINode(value) == NULL;
}

/* Whether the instruction selects between values of which two are computed. Intrinsics such as
 * llvm.smin become selections. */
static bool selects_computed(LLVMValueRef instruction)
{
    LLVMValueRef function = ir_called_function(instruction);
    bool is_call = function != NULL && LLVMGetIntrinsicID(function) != 0;
    unsigned computed = 0;
    if (!is_call && LLVMIsASelectInst(instruction) == NULL)
        return false;
    unsigned end =
        is_call ? LLVMGetNumArgOperands(instruction) : (unsigned)LLVMGetNumOperands(instruction);
    for (unsigned i = is_call ? 0 : 1; i < end; i++)
        computed += is_computed(LLVMGetOperand(instruction, i));
    return computed > 1;
}

static bool is_risk(LLVMValueRef instruction)
{
    bool is_risk = !is_plain(LLVMTypeOf(instruction)) || selects_computed(instruction);
    for (int i = 0; i < LLVMGetNumOperands(instruction) && !is_risk; i++)
        is_risk = !is_plain(LLVMTypeOf(LLVMGetOperand(instruction, (unsigned)i)));
    return is_risk;
}

/* Whether the block has a risk, or more instructions than the limit, which bounds the time of all
 * checks. Reduces the limit by the number of instructions. */
static bool has_risk(LLVMBasicBlockRef block, unsigned *limit)
{
    LLVMValueRef instruction = LLVMGetFirstInstruction(block);
    for (; instruction != NULL && *limit > 0 && !is_risk(instruction); (*limit)--)
        instruction = LLVMGetNextInstruction(instruction);
    return instruction != NULL;
}

/* Whether a block that LLVM may make part of the block, or of which it may take instructions, has a
 * risk. The pass looks at eight machine instructions, so a longer chain of blocks has no effect. */
static bool reaches_risk(LLVMBasicBlockRef block)
{
    enum { CHAIN_MAX = 16, INSTRUCTIONS_MAX = 1000 };
    unsigned limit = INSTRUCTIONS_MAX;
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        if (has_risk(block, &limit))
            return true;
        if (LLVMGetNumSuccessors(terminator) != 1)
            break;
        block = LLVMGetSuccessor(terminator, 0);
        terminator = LLVMGetBasicBlockTerminator(block);
    }
    for (unsigned i = 0; i < LLVMGetNumSuccessors(terminator); i++)
        if (has_risk(LLVMGetSuccessor(terminator, i), &limit))
            return true;
    return false;
}

void implicit_checks_restrict(LLVMModuleRef module)
{
    static const char name[] = "make.implicit";
    unsigned kind =
        LLVMGetMDKindIDInContext(LLVMGetModuleContext(module), name, (unsigned)strlen(name));
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
             block = LLVMGetNextBasicBlock(block)) {
            LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
            if (branch == NULL || LLVMGetNumSuccessors(branch) != 2 ||
                LLVMGetMetadata(branch, kind) == NULL)
                continue;
            if (reaches_risk(LLVMGetSuccessor(branch, 0)) ||
                reaches_risk(LLVMGetSuccessor(branch, 1)))
                LLVMSetMetadata(branch, kind, NULL);
        }
}
