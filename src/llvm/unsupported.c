/*
 * Finds instructions for which LLVM has no code: intrinsics that IR passes must replace, and
 * landing pads with types that LLVM cannot return in registers. Found by trials with LLVM 14, 15,
 * 16, 19 and 22.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/unsupported.h"

#include "llvm/types.h"
#include "llvm/version.h"

#include <string.h>

/* ---- Intrinsics ---- */

static bool has_optnone(LLVMValueRef call)
{
    static const char name[] = "optnone";
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    return LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       kind) != NULL;
}

/* Whether no pass replaces the condition. Only optimisation runs that pass. */
static bool is_not_optimised(LLVMValueRef call, const struct unsupported_use *use)
{
    return use->optimisation_level == 0 || has_optnone(call);
}

/* Whether the result is used. LLVM emits no code for the intrinsic otherwise. */
static bool is_used(LLVMValueRef call, const struct unsupported_use *use)
{
    (void)use;
    return LLVMGetFirstUse(call) != NULL;
}

static bool always(LLVMValueRef call, const struct unsupported_use *use)
{
    (void)call;
    (void)use;
    return true;
}

/* Whether FastISel crashes on the call, because it selects the return of a value that the call does
 * not produce. FastISel leaves the return of a value in several registers to SelectionDAG. At -O0,
 * LLVM leaves the call to another pass. Which vectors one register holds depends on the function's
 * features, so all of them are rejected. */
static bool is_returned_by_fast_isel(LLVMValueRef call, const struct unsupported_use *use)
{
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    bool is_small = kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
    bool is_vector = kind == LLVMVectorTypeKind || kind == LLVMScalableVectorTypeKind;
    return use->optimisation_level > 0 && (use->uses_fast_isel || has_optnone(call)) &&
           (is_small || is_vector || types_fits_register(type, use->architecture));
}

static const struct {
    const char *prefix;
    bool (*is_unsupported)(LLVMValueRef call, const struct unsupported_use *use);
    struct unsupported unsupported;
} intrinsics[] = {
    {"llvm.experimental.guard",
     always,
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
enum { INTRINSIC_COUNT = sizeof intrinsics / sizeof *intrinsics };

static size_t find_intrinsic(LLVMValueRef function)
{
    size_t index = INTRINSIC_COUNT;
    if (LLVMGetIntrinsicID(function) == 0)
        return index;
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    for (index = 0; index < INTRINSIC_COUNT; index++)
        if (strncmp(name, intrinsics[index].prefix, strlen(intrinsics[index].prefix)) == 0)
            break;
    return index;
}

static const struct unsupported *find_in_call(LLVMValueRef call, const struct unsupported_use *use)
{
    LLVMValueRef function = LLVMIsAFunction(LLVMGetCalledValue(call));
    size_t index = function == NULL ? INTRINSIC_COUNT : find_intrinsic(function);
    if (index == INTRINSIC_COUNT || !intrinsics[index].is_unsupported(call, use))
        return NULL;
    return &intrinsics[index].unsupported;
}

/* ---- Landing pads ---- */

/* A landing pad has two values, in registers. LLVM extends or truncates them. */
enum { PAD_VALUES = 2 };

/* Adds the number of values in the type. Returns false if one of them is not a pointer or an
 * integer, or if there are more than `PAD_VALUES`. */
static bool add_pad_values(LLVMTypeRef type, unsigned *count)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            if (!add_pad_values(LLVMStructGetTypeAtIndex(type, i), count))
                return false;
        return true;
    }
    if (kind == LLVMArrayTypeKind) {
        for (unsigned i = 0; i < LLVMGetArrayLength(type); i++)
            if (!add_pad_values(LLVMGetElementType(type), count))
                return false;
        return true;
    }
    return (kind == LLVMPointerTypeKind || kind == LLVMIntegerTypeKind) && ++*count <= PAD_VALUES;
}

/* Whether a resume uses the pad. A token holds no values: gc.relocate may use it, but a resume must
 * not. */
static bool is_resumed(LLVMValueRef pad)
{
    for (LLVMUseRef use = LLVMGetFirstUse(pad); use != NULL; use = LLVMGetNextUse(use))
        if (LLVMIsAResumeInst(LLVMGetUser(use)) != NULL)
            return true;
    return false;
}

/* Whether the pad's personality is a function. LLVM emits no other personality, and then no table
 * of landing pads either, so exceptions skip the frame. */
static bool has_personality(LLVMValueRef pad)
{
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(pad));
    LLVMValueRef personality = LLVMGetPersonalityFn(function);
    while (LLVMIsAConstantExpr(personality) != NULL &&
           (LLVMGetConstOpcode(personality) == LLVMBitCast ||
            LLVMGetConstOpcode(personality) == LLVMAddrSpaceCast))
        personality = LLVMGetOperand(personality, 0);
    if (LLVMIsAFunction(personality) != NULL)
        return true;
    return LLVM_HAS_GLOBALS_AS_PERSONALITIES && LLVMIsAGlobalValue(personality) != NULL &&
           LLVMGetTypeKind(LLVMGlobalGetValueType(personality)) == LLVMFunctionTypeKind;
}

static const struct unsupported *find_in_pad(LLVMValueRef pad)
{
    static const struct unsupported personality = {
        "LLVM leaves out a personality that is not a function, and exceptions pass its landingpad",
        "a function as personality"};
    static const struct unsupported token = {"LLVM crashes on a resume with a token",
                                             "{ ptr, i32 } as the type of its landingpad"};
    static const struct unsupported other = {
        "LLVM has a pointer and an integer for a landingpad, and crashes on other types",
        "{ ptr, i32 } as its type"};
    unsigned count = 0;
    if (!has_personality(pad))
        return &personality;
    if (LLVMGetTypeKind(LLVMTypeOf(pad)) == LLVMTokenTypeKind)
        return is_resumed(pad) ? &token : NULL;
    return add_pad_values(LLVMTypeOf(pad), &count) && count == PAD_VALUES ? NULL : &other;
}

/* ---- Instructions ---- */

const struct unsupported *unsupported_find(LLVMValueRef instruction,
                                           const struct unsupported_use *use)
{
    static const struct unsupported funclet = {
        "LLVM has the exception handling of Windows for x86-64 only", "a landingpad"};
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMCall:
    case LLVMInvoke:
        return find_in_call(instruction, use);
    case LLVMLandingPad:
        return find_in_pad(instruction);
    case LLVMCatchSwitch:
    case LLVMCleanupPad:
        return use->architecture == CAIRN_ARCHITECTURE_X86_64 ? NULL : &funclet;
    default:
        return NULL;
    }
}
