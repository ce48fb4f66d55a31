/*
 * Finding what is known to crash LLVM's code generator, before it gets to see it.
 *
 * Each rule was found by compiling with LLVM 14, 15, 16 and 19; a test compiles what the rules
 * refuse, to see that it still crashes, and random modules, to see that nothing else does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/site_call.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <stdio.h>
#include <string.h>

/* ---- Saying what is refused ---- */

static enum cairn_status refuse(LLVMValueRef instruction, const char *why, const char *instead,
                                struct cairn_error *error)
{
    char *text = LLVMPrintValueToString(instruction);
    const char *start = text + strspn(text, " ");
    error_set(error, CAIRN_ERROR_LLVM, 0, "in '%.40s': %.60s%s: %s; write %s",
              site_call_function(instruction), start, strlen(start) > 60 ? "..." : "", why,
              instead);
    LLVMDisposeMessage(text);
    return CAIRN_ERROR_LLVM;
}

/* ---- Types of live values ---- */

static bool is_small_constant(LLVMValueRef value)
{
    LLVMValueRef integer = LLVMIsAConstantInt(value);
    return integer != NULL && LLVMGetIntTypeWidth(LLVMTypeOf(integer)) <= 64;
}

static enum cairn_status check_live_value(const struct site_call *call, LLVMValueRef value,
                                          enum cairn_architecture architecture,
                                          bool may_be_constant, struct cairn_error *error)
{
    const char *instead = "";
    if ((may_be_constant && is_small_constant(value)) ||
        types_live_value(LLVMTypeOf(value), architecture, &instead) == LIVE_VALUE_FITS)
        return CAIRN_OK;
    char *type = LLVMPrintTypeToString(LLVMTypeOf(value));
    char why[80];
    snprintf(why, sizeof why, "LLVM %d crashes on a live value of type %.24s", LLVM_VERSION_MAJOR,
             type);
    LLVMDisposeMessage(type);
    return refuse(call->call, why, instead, error);
}

static enum cairn_status check_live_values(const struct site_call *call,
                                           enum cairn_architecture architecture,
                                           struct cairn_error *error)
{
    /* Operands that anyregcc puts into any register are recorded like live values. */
    bool anyreg = call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    unsigned first = anyreg ? 0 : call->argument_count;
    unsigned end = call->argument_count + call->live_value_count;
    for (unsigned i = first; i < end; i++) {
        /* Constants among the arguments are put into registers, and not just recorded. */
        bool may_be_constant = i >= call->argument_count;
        enum cairn_status status =
            check_live_value(call, site_call_value(call, i), architecture, may_be_constant, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- Registers (llvm-project #56880) ---- */

enum { GENERAL_REGISTERS = 13, VECTOR_REGISTERS = 15 };

struct register_count {
    unsigned general;
    unsigned vector;
};

static bool needs_register(LLVMValueRef value)
{
    return !LLVMIsConstant(value) && LLVMIsAAllocaInst(value) == NULL;
}

static bool is_repeated(const struct site_call *call, unsigned index)
{
    for (unsigned i = 0; i < index; i++)
        if (site_call_value(call, i) == site_call_value(call, index))
            return true;
    return false;
}

/* Registers that one value takes; a structure or an array takes some for each element. */
static void count_type(LLVMTypeRef type, struct register_count *count)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            count_type(LLVMStructGetTypeAtIndex(type, i), count);
    } else if (kind == LLVMArrayTypeKind) {
        for (unsigned i = 0; i < LLVMGetArrayLength(type); i++)
            count_type(LLVMGetElementType(type), count);
    } else if (kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind) {
        count->general++;
    } else {
        count->vector++;
    }
}

/* Of the arguments and live values up to `end`. */
static struct register_count count_registers(const struct site_call *call, unsigned end)
{
    struct register_count count = {0};
    for (unsigned i = 0; i < end; i++) {
        LLVMValueRef value = site_call_value(call, i);
        if (needs_register(value) && !is_repeated(call, i))
            count_type(LLVMTypeOf(value), &count);
    }
    return count;
}

/* At -O0 all live values are kept in registers at once, and with anyregcc the arguments always. */
static enum cairn_status check_registers(const struct site_call *call, unsigned optimisation_level,
                                         struct cairn_error *error)
{
    bool anyreg = call->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    unsigned end = call->argument_count;
    if (call->kind == CAIRN_RECORD_STATEPOINT)
        return CAIRN_OK;
    if (optimisation_level == 0)
        end += call->live_value_count;
    else if (!anyreg)
        return CAIRN_OK;
    struct register_count count = count_registers(call, end);
    if (count.general <= GENERAL_REGISTERS && count.vector <= VECTOR_REGISTERS)
        return CAIRN_OK;
    if (optimisation_level == 0)
        return refuse(call->call, "at -O0 LLVM runs out of registers for so many values",
                      "at most 13 variable ones (15 in vector registers), or compile at -O1",
                      error);
    return refuse(call->call, "anyregcc has no registers for so many arguments",
                  "at most 13 arguments, and the others as live values", error);
}

/* The x87 stack is none of the registers in which anyregcc may leave a result. */
static enum cairn_status check_result(const struct site_call *call, struct cairn_error *error)
{
    if (call->calling_convention != CAIRN_CALLING_CONVENTION_ANYREG ||
        LLVMGetTypeKind(LLVMTypeOf(call->call)) != LLVMX86_FP80TypeKind)
        return CAIRN_OK;
    return refuse(call->call, "anyregcc has no register for a result of type x86_fp80",
                  "a double, or another calling convention", error);
}

/* ---- Bytes ---- */

static enum cairn_status check_bytes(const struct site_call *call, LLVMModuleRef module,
                                     struct cairn_error *error)
{
    if (call->byte_count > CAIRN_PATCHPOINT_BYTES_MAX)
        return refuse(call->call, "LLVM fills that many bytes with no-ops",
                      "a number of bytes up to 1048576", error);
    bool emits_call = call->kind == CAIRN_RECORD_PATCHPOINT && call->has_target;
    if (emits_call && call->byte_count < cairn_patchpoint_minimum_bytes(module, true))
        return refuse(call->call, "LLVM's call of the target does not fit into its bytes",
                      "the number that cairn_patchpoint_minimum_bytes gives, or more", error);
    bool fixed_width = types_architecture(module) == CAIRN_ARCHITECTURE_AARCH64 ||
                       types_architecture(module) == CAIRN_ARCHITECTURE_PPC64_ELFV1 ||
                       types_architecture(module) == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    if (fixed_width && call->byte_count % 4 != 0)
        return refuse(call->call, "instructions have 4 bytes here", "a multiple of 4", error);
    return CAIRN_OK;
}

/* ---- Statepoints ---- */

static enum cairn_status check_statepoint(const struct site_call *call,
                                          enum cairn_architecture architecture,
                                          struct cairn_error *error)
{
    bool selected = architecture == CAIRN_ARCHITECTURE_X86_64 ||
                    architecture == CAIRN_ARCHITECTURE_AARCH64 ||
                    (architecture == CAIRN_ARCHITECTURE_RISCV64 && LLVM_VERSION_MAJOR >= 19);
    if (call->kind != CAIRN_RECORD_STATEPOINT || selected)
        return CAIRN_OK;
    return refuse(call->call, "LLVM cannot select statepoints for this architecture",
                  "patch points with the roots as live values", error);
}

/* ---- Liveness (llvm-project #53828, #85828) ---- */

/* Calls that are certainly none in machine code. Anything else may become one. */
static bool is_surely_no_call(LLVMValueRef instruction)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (opcode != LLVMCall && opcode != LLVMInvoke)
        return true;
    if (site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED)
        return true;
    LLVMValueRef function = LLVMIsAFunction(LLVMGetCalledValue(instruction));
    if (function == NULL)
        return false;
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    return strncmp(name, "llvm.dbg.", 9) == 0 || strncmp(name, "llvm.lifetime.", 14) == 0;
}

static LLVMValueRef find_instruction(LLVMValueRef function, bool (*wanted)(LLVMValueRef))
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction))
            if (wanted(instruction))
                return instruction;
    return NULL;
}

static bool is_patchpoint(LLVMValueRef instruction)
{
    return site_call_kind(instruction) == CAIRN_RECORD_PATCHPOINT;
}

static bool may_be_call(LLVMValueRef instruction) { return !is_surely_no_call(instruction); }

static bool may_set_fpcr(LLVMValueRef instruction)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    return opcode == LLVMSIToFP || opcode == LLVMUIToFP || opcode == LLVMFPToSI ||
           opcode == LLVMFPToUI || opcode == LLVMFAdd || opcode == LLVMFSub || opcode == LLVMFMul ||
           opcode == LLVMFDiv || opcode == LLVMFRem || opcode == LLVMFPTrunc ||
           opcode == LLVMFPExt || opcode == LLVMFCmp;
}

static enum cairn_status check_liveness(LLVMValueRef function, enum cairn_architecture architecture,
                                        struct cairn_error *error)
{
    LLVMValueRef patchpoint = find_instruction(function, is_patchpoint);
    if (patchpoint == NULL)
        return CAIRN_OK;
    if (architecture == CAIRN_ARCHITECTURE_X86_64 &&
        find_instruction(function, may_be_call) != NULL)
        return refuse(patchpoint,
                      "with patch point liveness on, LLVM crashes on functions that also have "
                      "ordinary calls",
                      "all calls as patch points, or leave liveness off (CAIRN_LIVENESS_OFF)",
                      error);
    if (architecture == CAIRN_ARCHITECTURE_AARCH64 &&
        find_instruction(function, may_set_fpcr) != NULL)
        return refuse(patchpoint,
                      "with patch point liveness on, LLVM crashes where floating-point "
                      "instructions follow",
                      "no floating point in this function, or leave liveness off "
                      "(CAIRN_LIVENESS_OFF)",
                      error);
    return CAIRN_OK;
}

/* ---- A module ---- */

static enum cairn_status check_call(LLVMValueRef instruction, LLVMModuleRef module,
                                    const struct cairn_check_options *options,
                                    struct cairn_error *error)
{
    struct site_call call;
    enum cairn_architecture architecture = types_architecture(module);
    enum cairn_status status = site_call_read(instruction, &call, error);
    if (status == CAIRN_OK)
        status = check_statepoint(&call, architecture, error);
    if (status == CAIRN_OK)
        status = check_bytes(&call, module, error);
    if (status == CAIRN_OK)
        status = check_live_values(&call, architecture, error);
    if (status == CAIRN_OK)
        status = check_registers(&call, options->optimisation_level, error);
    if (status == CAIRN_OK)
        status = check_result(&call, error);
    return status;
}

static enum cairn_status check_function(LLVMValueRef function, LLVMModuleRef module,
                                        const struct cairn_check_options *options,
                                        struct cairn_error *error)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block)) {
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction)) {
            if (site_call_kind(instruction) == CAIRN_RECORD_UNDECLARED)
                continue;
            enum cairn_status status = check_call(instruction, module, options, error);
            if (status != CAIRN_OK)
                return status;
        }
    }
    if (options->liveness != CAIRN_LIVENESS_KEEP)
        return CAIRN_OK;
    return check_liveness(function, types_architecture(module), error);
}

enum cairn_status cairn_check_module(LLVMModuleRef module,
                                     const struct cairn_check_options *options,
                                     struct cairn_error *error)
{
    static const struct cairn_check_options defaults;
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no module to check");
    if (options == NULL)
        options = &defaults;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        enum cairn_status status = check_function(function, module, options, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}
