/*
 * Finds instructions for which LLVM has no code: intrinsics that IR passes must replace, and
 * landing pads with types that LLVM cannot return in registers. Found by trials with LLVM 14, 15,
 * 16, 19 and 22.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <string.h>

/* ---- Intrinsics ---- */

/* What the rules about intrinsics look at. */
struct use {
    LLVMValueRef call;
    enum cairn_architecture architecture;
    const struct cairn_check_options *options;
};

/* Whether the function that contains the call has the attribute optnone. */
static bool has_optnone(const struct use *use)
{
    return ir_attribute(ir_function_of(use->call), IR_FUNCTION, "optnone") != NULL;
}

/* Whether no pass replaces the condition. Only optimisation runs that pass. */
static bool is_not_optimised(const struct use *use)
{
    return use->options->optimisation_level == 0 || has_optnone(use);
}

/* Whether the result is used. LLVM emits no code for the intrinsic otherwise. */
static bool is_used(const struct use *use) { return LLVMGetFirstUse(use->call) != NULL; }

/* Whether FastISel crashes on the call, because it selects the return of a value that the call does
 * not produce. FastISel leaves the return of a value in several registers to SelectionDAG. At -O0,
 * LLVM leaves the call to another pass. Which vectors one register holds depends on the function's
 * features, so all of them are rejected. */
static bool is_returned_by_fast_isel(const struct use *use)
{
    LLVMTypeRef type = LLVMTypeOf(use->call);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    bool is_vector = kind == LLVMVectorTypeKind || kind == LLVMScalableVectorTypeKind;
    return use->options->optimisation_level > 0 &&
           (use->options->enable_fast_isel || has_optnone(use)) &&
           (ir_is_integer(type, 64) || is_vector || types_fits_register(type, use->architecture));
}

static const struct {
    const char *prefix;
    bool (*is_unsupported)(const struct use *use); /* NULL: always */
    struct problem problem;
} intrinsics[] = {
    {"llvm.experimental.guard",
     NULL,
     {"LLVM has no code for guards", "a branch to a call of llvm.experimental.deoptimize, as its "
                                     "pass lower-guard-intrinsic does"}},
    {"llvm.experimental.widenable.condition",
     is_not_optimised,
     {"at -O0, or with optnone, LLVM has no code for widenable conditions",
      "true, as its pass lower-widenable-condition does, or compile at -O1"}},
    {"llvm.experimental.gc.get.pointer.base",
     is_used,
     {"LLVM has no code for the base of a pointer",
      "the base itself, as its pass rewrite-statepoints-for-gc does"}},
    {"llvm.experimental.gc.get.pointer.offset",
     is_used,
     {"LLVM has no code for the offset of a pointer",
      "the difference to its base, as its pass rewrite-statepoints-for-gc does"}},
    {"llvm.experimental.deoptimize",
     is_returned_by_fast_isel,
     {"FastISel crashes on a deoptimize that returns a value",
      "the function without optnone, and compile without FastISel or at -O0"}},
};

static const struct problem *find_in_call(LLVMValueRef call, enum cairn_architecture architecture,
                                          const struct cairn_check_options *options)
{
    LLVMValueRef function = LLVMIsAFunction(LLVMGetCalledValue(call));
    if (!ir_is_intrinsic(function, "llvm.experimental."))
        return NULL;
    const struct use use = {call, architecture, options};
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++)
        if (ir_is_intrinsic(function, intrinsics[i].prefix)) {
            bool is_problem =
                intrinsics[i].is_unsupported == NULL || intrinsics[i].is_unsupported(&use);
            return is_problem ? &intrinsics[i].problem : NULL;
        }
    return NULL;
}

/* ---- Landing pads ---- */

/* LLVM emits no personality that is not a function, and then no table of landing pads either, so
 * exceptions skip the frame. A landing pad has two values, in registers. LLVM extends or truncates
 * integers. A token holds no values: gc.relocate may use it, but a resume must not. */
static const struct problem *find_in_pad(LLVMValueRef pad)
{
    static const struct problem no_function = {
        "LLVM leaves out a personality that is not a function, and exceptions pass its landingpad",
        "a function as personality"};
    static const struct problem token = {"LLVM crashes on a resume with a token",
                                         "{ ptr, i32 } as the type of its landingpad"};
    static const struct problem other = {
        "LLVM has a pointer and an integer for a landingpad, and crashes on other types",
        "{ ptr, i32 } as its type"};
    LLVMTypeRef types[3];
    LLVMValueRef personality = LLVMGetPersonalityFn(ir_function_of(pad));
    while (LLVMIsAConstantExpr(personality) != NULL &&
           (LLVMGetConstOpcode(personality) == LLVMBitCast ||
            LLVMGetConstOpcode(personality) == LLVMAddrSpaceCast))
        personality = LLVMGetOperand(personality, 0);
    bool is_alias = LLVM_HAS_GLOBALS_AS_PERSONALITIES && LLVMIsAGlobalValue(personality) != NULL &&
                    LLVMGetTypeKind(LLVMGlobalGetValueType(personality)) == LLVMFunctionTypeKind;
    if (LLVMIsAFunction(personality) == NULL && !is_alias)
        return &no_function;
    if (LLVMGetTypeKind(LLVMTypeOf(pad)) == LLVMTokenTypeKind) {
        LLVMUseRef use = LLVMGetFirstUse(pad);
        while (use != NULL && LLVMIsAResumeInst(LLVMGetUser(use)) == NULL)
            use = LLVMGetNextUse(use);
        return use == NULL ? NULL : &token;
    }
    unsigned count = ir_flatten(LLVMTypeOf(pad), types, 3);
    bool fits = count == 2;
    for (unsigned i = 0; i < count; i++)
        fits &= LLVMGetTypeKind(types[i]) == LLVMPointerTypeKind ||
                LLVMGetTypeKind(types[i]) == LLVMIntegerTypeKind;
    return fits ? NULL : &other;
}

bool unsupported_may_be(LLVMOpcode opcode)
{
    return opcode == LLVMCall || opcode == LLVMInvoke || opcode == LLVMLandingPad ||
           opcode == LLVMCatchSwitch || opcode == LLVMCleanupPad;
}

/* ORDER unsupported_may_be */
const struct problem *unsupported_find(LLVMValueRef instruction,
                                       enum cairn_architecture architecture,
                                       const struct cairn_check_options *options)
{
    static const struct problem funclet = {
        "LLVM has the exception handling of Windows for x86-64 only", "a landingpad"};
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMCall:
    case LLVMInvoke:
        return find_in_call(instruction, architecture, options);
    case LLVMLandingPad:
        return find_in_pad(instruction);
    case LLVMCatchSwitch:
    case LLVMCleanupPad:
        return architecture == CAIRN_ARCHITECTURE_X86_64 ? NULL : &funclet;
    default:
        return NULL;
    }
}
