/*
 * Repairs calls that LLVM compiles to wrong code without an error. doc/llvm-faults.md lists them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/repair.h"

#include "llvm/implicit_checks.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

/* Keeps the arguments of patch points on PPC64. There, FastISel of LLVM 14 to 22 loads them into
 * registers, and does not list these among those that the patch point reads (PPCFastISel.cpp,
 * fastLowerCall, does not set OutRegs). So the loads are removed, or other values take the
 * registers. It leaves a call to SelectionDAG if an argument is `inreg`, which has no other effect
 * on PPC64. With anyregcc, it lists the arguments. */
static void keep_arguments(const struct site_call *call)
{
    enum { FIRST_PARAMETER = 1 }; /* in the C API's numbers; 0 is the result */
    static const char name[] = "inreg";
    enum cairn_architecture architecture =
        types_architecture(LLVMGetGlobalParent(ir_function_of(call->call)));
    bool is_ppc64 = architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2 ||
                    architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1;
    if (!is_ppc64 || call->argument_count == 0 ||
        call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG)
        return;
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(call->call));
    LLVMAddCallSiteAttribute(call->call, FIRST_PARAMETER + call->first_argument,
                             LLVMCreateEnumAttribute(context, kind, 0));
}

/* Gives the callee a node of its own: `freeze` has one, and no machine instruction. */
static void freeze_callee(LLVMValueRef call, unsigned operand)
{
    LLVMValueRef callee = LLVMGetOperand(call, operand);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(callee)));
    LLVMPositionBuilderBefore(builder, call);
    LLVMSetOperand(call, operand, LLVMBuildFreeze(builder, callee, ""));
    LLVMDisposeBuilder(builder);
}

/* Separates the callee of a statepoint from the other results of what computes it. LLVM 14 to 22
 * call the first result of the callee's node, which of an aggregate is element 0
 * (StatepointLowering.cpp, lowerCallFromStatepointLoweringInfo; llvm-project #207508). Casts and
 * some intrinsics have the node of their operand, so the callee may be any instruction. */
static void separate_callee(const struct site_call *call)
{
    LLVMValueRef callee = LLVMGetOperand(call->call, call->callee_operand);
    if (LLVMIsAInstruction(callee) != NULL && LLVMIsAFreezeInst(callee) == NULL)
        freeze_callee(call->call, call->callee_operand);
}

/* Gives the arguments of a statepoint the attributes of the callee's parameters that decide how
 * they are passed. LLVM looks for those of a call at the function that is called, which is the
 * intrinsic. Before LLVM 19, rewrite-statepoints-for-gc removes those of the call. */
static void add_passing_attributes(const struct site_call *call)
{
    enum { FIRST_PARAMETER = 1 };
    LLVMValueRef callee = LLVMIsAFunction(LLVMGetOperand(call->call, call->callee_operand));
    if (callee == NULL || ir_called_function(call->call) == callee)
        return;
    unsigned count = LLVMCountParams(callee);
    for (unsigned i = 0; i < count && i < call->argument_count; i++)
        for (size_t k = 0; k < ir_passing_attribute_count; k++) {
            LLVMAttributeRef attribute =
                ir_attribute(callee, FIRST_PARAMETER + i, ir_passing_attributes[k]);
            if (attribute != NULL)
                LLVMAddCallSiteAttribute(call->call, FIRST_PARAMETER + call->first_argument + i,
                                         attribute);
        }
}

void repair_call(const struct site_call *call)
{
    if (call->kind == CAIRN_RECORD_PATCHPOINT)
        keep_arguments(call);
    if (call->kind == CAIRN_RECORD_STATEPOINT) {
        separate_callee(call);
        add_passing_attributes(call);
    }
}

#if !LLVM_TELLS_BUNDLES

static bool is_element(LLVMValueRef callee)
{
    while (LLVMIsACastInst(callee) != NULL)
        callee = LLVMGetOperand(callee, 0);
    return LLVMIsAExtractValueInst(callee) != NULL;
}

/* Before LLVM 18, a "deopt" bundle without operands, which makes a statepoint, is not found. So the
 * callees of all calls are separated if they are elements of aggregates. */
static void separate_callees(LLVMModuleRef module)
{
    for (LLVMValueRef call = NULL; (call = ir_next_in_module(module, call)) != NULL;)
        if (ir_is_call(call) && is_element(LLVMGetCalledValue(call)))
            freeze_callee(call, (unsigned)LLVMGetNumOperands(call) - 1);
}

#endif

void repair_module(LLVMModuleRef module)
{
#if !LLVM_TELLS_BUNDLES
    separate_callees(module);
#endif
    implicit_checks_restrict(module);
}
