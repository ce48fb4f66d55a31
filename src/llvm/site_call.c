/*
 * Reads the operands of calls that make records.
 *
 * Source: LLVM Language Reference, "Stack Map Intrinsics"; "Garbage Collection Safepoints in LLVM",
 * section 'llvm.experimental.gc.statepoint' Intrinsic.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/site_call.h"
#include "record/declarations.h"

#include "base/error.h"
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/version.h"

#include <stdio.h>
#include <string.h>

/* Operands of the intrinsics. */
enum {
    OPERAND_ID = 0,
    OPERAND_BYTES = 1,
    OPERAND_TARGET = 2, /* of a patch point, or the callee of a statepoint */
    OPERAND_ARGUMENT_COUNT = 3,
    STATEPOINT_FLAGS = 4
};
/* The first call argument, or the first live value if there are no arguments. */
static const unsigned first_arguments[] = {
    [CAIRN_RECORD_STACKMAP] = 2, [CAIRN_RECORD_PATCHPOINT] = 4, [CAIRN_RECORD_STATEPOINT] = 5};
enum { FLAG_TRANSITION = 1, FLAG_LIVE_IN = 2 };

static const char gc_statepoint[] = "llvm.experimental.gc.statepoint";
static const char deoptimize[] = "llvm.experimental.deoptimize";
static const char id_attribute[] = "statepoint-id";

/* The ID that LLVM gives to calls that it compiles as statepoints because of their "deopt"
 * bundle. */
#define DEFAULT_DEOPT_ID UINT64_C(0xABCDEF0F)

/* ---- Calls that make records ---- */

/* Bundles of other intrinsics and of inline assembly never make a statepoint. */
bool site_call_has_deopt_bundle(LLVMValueRef instruction)
{
    if (!ir_is_call(instruction) || !bundles_has_deopt(instruction))
        return false;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    return LLVMIsAInlineAsm(callee) == NULL &&
           (LLVMIsAFunction(callee) == NULL || LLVMGetIntrinsicID(callee) == 0);
}

/* Before LLVM 18, the C API does not distinguish "tail" and "musttail". */
bool site_call_must_be_tail_call(LLVMValueRef instruction)
{
    if (LLVMIsACallInst(instruction) == NULL || !LLVMIsTailCall(instruction))
        return false;
#if LLVM_TELLS_TAIL_CALL_KIND
    return LLVMGetTailCallKind(instruction) == LLVMTailCallKindMustTail;
#else
    char *text = LLVMPrintValueToString(instruction);
    bool is_musttail = strstr(text, "musttail call ") != NULL;
    LLVMDisposeMessage(text);
    return is_musttail;
#endif
}

enum cairn_record_kind site_call_kind(LLVMValueRef instruction)
{
    static const struct {
        const char *prefix;
        enum cairn_record_kind kind;
    } intrinsics[] = {
        {"llvm.experimental.stackmap", CAIRN_RECORD_STACKMAP},
        {"llvm.experimental.patchpoint.", CAIRN_RECORD_PATCHPOINT},
        {gc_statepoint, CAIRN_RECORD_STATEPOINT},
        {deoptimize, CAIRN_RECORD_STATEPOINT},
    };
    if (!ir_is_call(instruction))
        return CAIRN_RECORD_UNDECLARED;
    LLVMValueRef function = LLVMIsAFunction(LLVMGetCalledValue(instruction));
    if (function == NULL || LLVMGetIntrinsicID(function) == 0)
        return site_call_has_deopt_bundle(instruction) ? CAIRN_RECORD_STATEPOINT
                                                       : CAIRN_RECORD_UNDECLARED;
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++)
        if (ir_is_intrinsic(function, intrinsics[i].prefix))
            return intrinsics[i].kind;
    return CAIRN_RECORD_UNDECLARED;
}

LLVMValueRef site_call_next(LLVMModuleRef module, LLVMValueRef previous)
{
    do
        previous = ir_next_in_module(module, previous);
    while (previous != NULL && site_call_kind(previous) == CAIRN_RECORD_UNDECLARED);
    return previous;
}

/* Whether the call is a statepoint with attributes for its ID and size. Those of a gc.statepoint
 * are operands. */
static bool is_deopt_call(LLVMValueRef instruction, enum cairn_record_kind kind)
{
    return kind == CAIRN_RECORD_STATEPOINT &&
           !ir_is_intrinsic(ir_called_function(instruction), gc_statepoint);
}

/* ---- Calls with a "deopt" bundle ---- */

/* Reads an attribute as LLVM does: a number has only decimal digits, any other text is ignored.
 * Returns false if there is no number up to `max`. */
static bool read_attribute(LLVMValueRef call, const char *name, uint64_t max, uint64_t *value)
{
    LLVMAttributeRef attribute =
        LLVMGetCallSiteStringAttribute(call, IR_FUNCTION, name, (unsigned)strlen(name));
    unsigned length = 0;
    const char *text = attribute == NULL ? NULL : LLVMGetStringAttributeValue(attribute, &length);
    uint64_t number = 0;
    for (unsigned i = 0; i < length; i++) {
        unsigned digit = (unsigned)text[i] - '0';
        if (digit > 9 || number > (max - digit) / 10)
            return false;
        number = 10 * number + digit;
    }
    if (length > 0)
        *value = number;
    return length > 0;
}

/* ---- Operands ---- */

static enum cairn_status read_constant(const struct site_call *call, unsigned operand,
                                       const char *what, uint64_t *value, struct cairn_error *error)
{
    LLVMValueRef constant = LLVMIsAConstantInt(LLVMGetOperand(call->call, operand));
    if (constant == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "in '%s': the %s of a %s is not a constant",
                         ir_function_name(call->call), what, record_kind_name(call->kind));
    *value = LLVMConstIntGetZExtValue(constant);
    return CAIRN_OK;
}

/* Reads a call of an intrinsic. Whatever the order of a statepoint's bundles is, the record holds
 * the deopt values first, then the GC pointers. It does not hold the operands of "gc-transition" or
 * other bundles, nor the arguments. Source: LLVM, StatepointLowering.cpp, lowerStatepointMetaArgs.
 */
static enum cairn_status read_intrinsic(struct site_call *call, struct cairn_error *error)
{
    bool is_statepoint = call->kind == CAIRN_RECORD_STATEPOINT;
    unsigned first = first_arguments[call->kind];
    unsigned operands = LLVMGetNumArgOperands(call->call);
    uint64_t arguments = 0;
    uint64_t flags = 0;
    struct bundles bundles = {0};
    enum cairn_status status = read_constant(call, OPERAND_ID, "ID", &call->id, error);
    if (status == CAIRN_OK)
        status = read_constant(call, OPERAND_BYTES, "number of bytes", &call->byte_count, error);
    if (status == CAIRN_OK && call->kind != CAIRN_RECORD_STACKMAP)
        status =
            read_constant(call, OPERAND_ARGUMENT_COUNT, "number of arguments", &arguments, error);
    if (status == CAIRN_OK && is_statepoint)
        status = read_constant(call, STATEPOINT_FLAGS, "flags", &flags, error);
    if (status == CAIRN_OK && (first > operands || arguments > operands - first))
        status = error_set(error, CAIRN_ERROR_CORRUPT, call->id,
                           "in '%s': the %s with ID %llu says that it has %llu arguments, and has "
                           "%u operands",
                           ir_function_name(call->call), record_kind_name(call->kind),
                           (unsigned long long)call->id, (unsigned long long)arguments, operands);
    if (status == CAIRN_OK && is_statepoint)
        status = bundles_read(call->call, &bundles, error);
    if (status != CAIRN_OK)
        return status;
    call->first_argument = first;
    call->argument_count = (unsigned)arguments;
    call->live_values =
        (struct bundle){first + call->argument_count, operands - first - call->argument_count};
    LLVMValueRef target = LLVMGetOperand(call->call, OPERAND_TARGET);
    if (call->kind == CAIRN_RECORD_PATCHPOINT) {
        call->target = target;
        call->has_target = !target_is_null(target);
        call->result = LLVMTypeOf(call->call);
    } else if (is_statepoint) {
        LLVMTypeRef callee = version_statepoint_callee_type(call->call, target);
        call->callee_operand = OPERAND_TARGET;
        call->result = callee == NULL ? NULL : LLVMGetReturnType(callee);
        call->has_target = call->byte_count == 0;
        call->is_transition = (flags & FLAG_TRANSITION) != 0;
        call->is_live_in = (flags & FLAG_LIVE_IN) != 0;
        call->live_values = bundles.deopt;
        call->gc_live_values = bundles.gc_live;
        call->transition_values = bundles.gc_transition;
    }
    return CAIRN_OK;
}

/* LLVM calls the function of llvm.experimental.deoptimize as one that returns void: the intrinsic's
 * result is what the frame returns. (SelectionDAGBuilder: LowerCallSiteWithDeoptBundleImpl,
 * LowerDeoptimizeCall) */
enum cairn_status site_call_read(LLVMValueRef instruction, struct site_call *call,
                                 struct cairn_error *error)
{
    enum cairn_record_kind kind = site_call_kind(instruction);
    enum cairn_status status;
    *call = (struct site_call){
        .call = instruction,
        .kind = kind,
        .calling_convention = LLVMGetInstructionCallConv(instruction),
    };
    if (is_deopt_call(instruction, kind)) {
        struct bundles bundles;
        status = bundles_read(instruction, &bundles, error);
        call->id = DEFAULT_DEOPT_ID;
        call->has_default_id = !read_attribute(instruction, id_attribute, UINT64_MAX, &call->id);
        read_attribute(instruction, "statepoint-num-patch-bytes", UINT32_MAX, &call->byte_count);
        call->has_target = call->byte_count == 0;
        call->result = LLVMTypeOf(instruction);
        if (ir_is_intrinsic(ir_called_function(instruction), deoptimize))
            call->result = LLVMVoidTypeInContext(LLVMGetTypeContext(call->result));
        call->argument_count = LLVMGetNumArgOperands(instruction);
        call->callee_operand = (unsigned)LLVMGetNumOperands(instruction) - 1;
        call->live_values = bundles.deopt;
    } else {
        status = read_intrinsic(call, error);
    }
    if (kind == CAIRN_RECORD_STATEPOINT && !LLVM_HAS_WIDE_STATEPOINT_IDS)
        call->id = (uint32_t)call->id;
    call->live_value_count = call->live_values.count + call->gc_live_values.count;
    return status;
}

void site_call_set_id(LLVMValueRef instruction, uint64_t id)
{
    if (is_deopt_call(instruction, site_call_kind(instruction))) {
        char text[24];
        LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(instruction));
        int length = snprintf(text, sizeof text, "%llu", (unsigned long long)id);
        LLVMAddCallSiteAttribute(instruction, IR_FUNCTION,
                                 LLVMCreateStringAttribute(context, id_attribute,
                                                           sizeof id_attribute - 1, text,
                                                           (unsigned)length));
        return;
    }
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(instruction, OPERAND_ID));
    LLVMSetOperand(instruction, OPERAND_ID, LLVMConstInt(type, id, 0));
}

LLVMValueRef site_call_value(const struct site_call *call, unsigned index)
{
    if (index < call->argument_count)
        return LLVMGetOperand(call->call, call->first_argument + index);
    index -= call->argument_count;
    if (index < call->live_values.count)
        return LLVMGetOperand(call->call, call->live_values.first + index);
    index -= call->live_values.count;
    return LLVMGetOperand(call->call, call->gc_live_values.first + index);
}
