/*
 * Reads the operands of calls that make records.
 *
 * Source: LLVM Language Reference, "Stack Map Intrinsics"; "Garbage Collection Safepoints in LLVM",
 * section 'llvm.experimental.gc.statepoint' Intrinsic.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/site_call.h"

#include "base/error.h"
#include "llvm/target.h"
#include "llvm/version.h"

#include <stdio.h>
#include <string.h>

enum { OPERAND_ID = 0, OPERAND_BYTES = 1 };
enum { STACKMAP_FIRST_LIVE_VALUE = 2 };
enum { PATCHPOINT_TARGET = 2, PATCHPOINT_ARGUMENT_COUNT = 3, PATCHPOINT_FIRST_ARGUMENT = 4 };
enum {
    STATEPOINT_CALLEE = 2,
    STATEPOINT_ARGUMENT_COUNT = 3,
    STATEPOINT_FLAGS = 4,
    STATEPOINT_FIRST_ARGUMENT = 5
};
enum { FLAG_TRANSITION = 1, FLAG_LIVE_IN = 2 };

/* ---- Calls that make records ---- */

static const struct {
    const char *prefix;
    enum cairn_record_kind kind;
} intrinsics[] = {
    {"llvm.experimental.stackmap", CAIRN_RECORD_STACKMAP},
    {"llvm.experimental.patchpoint.", CAIRN_RECORD_PATCHPOINT},
    {"llvm.experimental.gc.statepoint", CAIRN_RECORD_STATEPOINT},
    {"llvm.experimental.deoptimize", CAIRN_RECORD_STATEPOINT},
};

/* The ID that LLVM gives to calls that it compiles as statepoints because of their "deopt"
 * bundle. */
#define DEFAULT_DEOPT_ID UINT64_C(0xABCDEF0F)

static bool is_call(LLVMValueRef instruction)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    return opcode == LLVMCall || opcode == LLVMInvoke;
}

enum cairn_record_kind site_call_intrinsic_kind(LLVMValueRef function)
{
    if (LLVMGetIntrinsicID(function) == 0)
        return CAIRN_RECORD_UNDECLARED;
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++)
        if (strncmp(name, intrinsics[i].prefix, strlen(intrinsics[i].prefix)) == 0)
            return intrinsics[i].kind;
    return CAIRN_RECORD_UNDECLARED;
}

bool site_call_calls(LLVMValueRef value, LLVMValueRef function)
{
    return LLVMIsAInstruction(value) != NULL && is_call(value) &&
           LLVMGetCalledValue(value) == function;
}

/* Bundles of other intrinsics and of inline assembly never make a statepoint. */
bool site_call_has_deopt_bundle(LLVMValueRef instruction)
{
    if (!is_call(instruction) || !bundles_has_deopt(instruction))
        return false;
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    LLVMValueRef function = LLVMIsAFunction(callee);
    return LLVMIsAInlineAsm(callee) == NULL &&
           (function == NULL || LLVMGetIntrinsicID(function) == 0);
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

static LLVMValueRef called_function(LLVMValueRef instruction)
{
    return is_call(instruction) ? LLVMIsAFunction(LLVMGetCalledValue(instruction)) : NULL;
}

enum cairn_record_kind site_call_kind(LLVMValueRef instruction)
{
    LLVMValueRef function = called_function(instruction);
    enum cairn_record_kind kind =
        function == NULL ? CAIRN_RECORD_UNDECLARED : site_call_intrinsic_kind(function);
    if (kind == CAIRN_RECORD_UNDECLARED && site_call_has_deopt_bundle(instruction))
        return CAIRN_RECORD_STATEPOINT;
    return kind;
}

static bool calls_intrinsic(LLVMValueRef instruction, const char *prefix)
{
    LLVMValueRef function = called_function(instruction);
    size_t length;
    return function != NULL && LLVMGetIntrinsicID(function) != 0 &&
           strncmp(LLVMGetValueName2(function, &length), prefix, strlen(prefix)) == 0;
}

static bool is_deoptimize(LLVMValueRef instruction)
{
    return calls_intrinsic(instruction, "llvm.experimental.deoptimize");
}

/* Whether the call is a statepoint whose ID and size are operands. Other statepoints have
 * attributes for them. */
static bool is_gc_statepoint(LLVMValueRef instruction)
{
    return calls_intrinsic(instruction, "llvm.experimental.gc.statepoint");
}

const char *site_call_function(LLVMValueRef instruction)
{
    size_t length;
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction));
    return LLVMGetValueName2(function, &length);
}

/* ---- Calls with a "deopt" bundle ---- */

static const char id_attribute[] = "statepoint-id";
static const char bytes_attribute[] = "statepoint-num-patch-bytes";

/* Reads an attribute as LLVM does: a number has only decimal digits, any other text is ignored.
 * Returns false if there is no number up to `max`. */
static bool read_attribute(LLVMValueRef call, const char *name, uint64_t max, uint64_t *value)
{
    LLVMAttributeRef attribute = LLVMGetCallSiteStringAttribute(
        call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, name, (unsigned)strlen(name));
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

static void set_id_attribute(LLVMValueRef call, uint64_t id)
{
    char text[24];
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(call));
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)id);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateStringAttribute(context, id_attribute,
                                                       sizeof id_attribute - 1, text,
                                                       (unsigned)length));
}

/* Reads a call with a "deopt" bundle. LLVM calls the function of llvm.experimental.deoptimize as
 * one that returns void: the intrinsic's result is what the frame returns. (SelectionDAGBuilder:
 * LowerCallSiteWithDeoptBundleImpl, LowerDeoptimizeCall) */
static enum cairn_status read_deopt_call(struct site_call *call, struct cairn_error *error)
{
    struct bundles bundles;
    enum cairn_status status = bundles_read(call->call, &bundles, error);
    if (status != CAIRN_OK)
        return status;
    call->id = DEFAULT_DEOPT_ID;
    call->has_default_id = !read_attribute(call->call, id_attribute, UINT64_MAX, &call->id);
    if (!read_attribute(call->call, bytes_attribute, UINT32_MAX, &call->byte_count))
        call->byte_count = 0;
    call->has_target = call->byte_count == 0;
    call->result = is_deoptimize(call->call)
                       ? LLVMVoidTypeInContext(LLVMGetTypeContext(LLVMTypeOf(call->call)))
                       : LLVMTypeOf(call->call);
    call->argument_count = LLVMGetNumArgOperands(call->call);
    call->live_values = bundles.deopt;
    return CAIRN_OK;
}

/* ---- Operands ---- */

static enum cairn_status read_constant(const struct site_call *call, unsigned operand,
                                       const char *what, uint64_t *value, struct cairn_error *error)
{
    LLVMValueRef constant = LLVMIsAConstantInt(LLVMGetOperand(call->call, operand));
    if (constant == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "in '%s': the %s of a %s is not a constant",
                         site_call_function(call->call), what, cairn_record_kind_name(call->kind));
    *value = LLVMConstIntGetZExtValue(constant);
    return CAIRN_OK;
}

static enum cairn_status split_operands(struct site_call *call, unsigned first, uint64_t count,
                                        struct cairn_error *error)
{
    unsigned operands = LLVMGetNumArgOperands(call->call);
    if (first > operands || count > operands - first)
        return error_set(error, CAIRN_ERROR_CORRUPT, call->id,
                         "in '%s': the %s with ID %llu says that it has %llu arguments, and has %u "
                         "operands",
                         site_call_function(call->call), cairn_record_kind_name(call->kind),
                         (unsigned long long)call->id, (unsigned long long)count, operands);
    call->first_argument = first;
    call->argument_count = (unsigned)count;
    call->live_values.first = first + (unsigned)count;
    call->live_values.count = operands - call->live_values.first;
    return CAIRN_OK;
}

static enum cairn_status read_patchpoint(struct site_call *call, struct cairn_error *error)
{
    uint64_t arguments;
    enum cairn_status status =
        read_constant(call, PATCHPOINT_ARGUMENT_COUNT, "number of arguments", &arguments, error);
    if (status != CAIRN_OK)
        return status;
    call->target = LLVMGetOperand(call->call, PATCHPOINT_TARGET);
    call->has_target = !target_is_null(call->target);
    call->result = LLVMTypeOf(call->call);
    return split_operands(call, PATCHPOINT_FIRST_ARGUMENT, arguments, error);
}

/* Reads a statepoint. Whatever the order of the bundles is, the record holds the deopt values
 * first, then the GC pointers. It does not hold the operands of "gc-transition" or other bundles,
 * nor the arguments. Source: LLVM, StatepointLowering.cpp, lowerStatepointMetaArgs. */
static enum cairn_status read_statepoint(struct site_call *call, struct cairn_error *error)
{
    uint64_t arguments;
    enum cairn_status status =
        read_constant(call, STATEPOINT_ARGUMENT_COUNT, "number of arguments", &arguments, error);
    if (status != CAIRN_OK)
        return status;
    LLVMTypeRef callee =
        version_statepoint_callee_type(call->call, LLVMGetOperand(call->call, STATEPOINT_CALLEE));
    call->result = callee == NULL ? NULL : LLVMGetReturnType(callee);
    call->has_target = call->byte_count == 0;
    uint64_t flags = 0;
    struct bundles bundles;
    status = read_constant(call, STATEPOINT_FLAGS, "flags", &flags, error);
    if (status == CAIRN_OK)
        status = split_operands(call, STATEPOINT_FIRST_ARGUMENT, arguments, error);
    if (status == CAIRN_OK)
        status = bundles_read(call->call, &bundles, error);
    if (status != CAIRN_OK)
        return status;
    call->is_transition = (flags & FLAG_TRANSITION) != 0;
    call->is_live_in = (flags & FLAG_LIVE_IN) != 0;
    call->live_values = bundles.deopt;
    call->gc_live_values = bundles.gc_live;
    call->transition_values = bundles.gc_transition;
    return CAIRN_OK;
}

static enum cairn_status read_operands(struct site_call *call, struct cairn_error *error)
{
    if (call->kind == CAIRN_RECORD_STACKMAP)
        return split_operands(call, STACKMAP_FIRST_LIVE_VALUE, 0, error);
    if (call->kind == CAIRN_RECORD_PATCHPOINT)
        return read_patchpoint(call, error);
    return read_statepoint(call, error);
}

static enum cairn_status read_intrinsic(struct site_call *call, struct cairn_error *error)
{
    enum cairn_status status = read_constant(call, OPERAND_ID, "ID", &call->id, error);
    if (status == CAIRN_OK)
        status = read_constant(call, OPERAND_BYTES, "number of bytes", &call->byte_count, error);
    return status == CAIRN_OK ? read_operands(call, error) : status;
}

enum cairn_status site_call_read(LLVMValueRef instruction, enum cairn_record_kind kind,
                                 struct site_call *call, struct cairn_error *error)
{
    *call = (struct site_call){
        .call = instruction,
        .kind = kind,
        .calling_convention = LLVMGetInstructionCallConv(instruction),
    };
    bool is_deopt_call = kind == CAIRN_RECORD_STATEPOINT && !is_gc_statepoint(instruction);
    enum cairn_status status =
        is_deopt_call ? read_deopt_call(call, error) : read_intrinsic(call, error);
    if (kind == CAIRN_RECORD_STATEPOINT && !LLVM_HAS_WIDE_STATEPOINT_IDS)
        call->id = (uint32_t)call->id;
    call->live_value_count = call->live_values.count + call->gc_live_values.count;
    return status;
}

void site_call_set_id(LLVMValueRef instruction, uint64_t id)
{
    if (site_call_kind(instruction) == CAIRN_RECORD_STATEPOINT && !is_gc_statepoint(instruction)) {
        set_id_attribute(instruction, id);
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
