/*
 * LLVM's pass rewrite-statepoints-for-gc crashes on values whose base it cannot find, and does not
 * see GC pointers in structures and arrays: a collector then does not move them. Of other code it
 * makes an invalid module. The pass place-safepoints crashes without the function that it calls.
 *
 * Sources: llvm/lib/Transforms/Scalar/RewriteStatepointsForGC.cpp, findBaseDefiningValue and
 * isUnhandledGCPointerType; PlaceSafepoints.cpp; llvm-project #55308, #61917, #80673 and #87625;
 * trials with LLVM 15, 16, 19 and 22.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/gc_passes.h"

#include "base/error.h"
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/site_call.h"
#include "llvm/version.h"

#include <llvm-c/Analysis.h>
#include <string.h>

static const char rewriting[] = "rewrite-statepoints-for-gc";
static const char placing[] = "place-safepoints";
static const char poll[] = "gc.safepoint_poll";

/* ---- The list of passes ---- */

bool gc_passes_rewrite(const char *passes, size_t *start)
{
    unsigned depth = 0;
    bool begins = true;
    *start = 0;
    for (const char *at = passes; *at != '\0'; at++) {
        if (depth == 0 && begins && strncmp(at, rewriting, sizeof rewriting - 1) == 0)
            *start = (size_t)(at - passes);
        if (depth == 0 && begins && *start > 0)
            return true;
        depth += *at == '(' || *at == '<';
        depth -= (*at == ')' || *at == '>') && depth > 0;
        begins = *at == ',' || (begins && *at == ' ');
    }
    return strstr(passes, rewriting) != NULL;
}

/* ---- Functions and values ---- */

/* Whether the pass rewrites the function: its strategy is not one that LLVM knows for other
 * purposes. */
static bool is_rewritten(LLVMValueRef function)
{
    static const char *const others[] = {"shadow-stack", "erlang", "ocaml"};
    const char *strategy = LLVMIsDeclaration(function) ? NULL : LLVMGetGC(function);
    bool is_rewritten = strategy != NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others && is_rewritten; i++)
        is_rewritten = strcmp(strategy, others[i]) != 0;
    return is_rewritten;
}

static bool is_pointer(LLVMTypeRef type)
{
    enum { GC_ADDRESS_SPACE = 1 };
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMPointerTypeKind &&
           LLVMGetPointerAddressSpace(type) == GC_ADDRESS_SPACE;
}

/* Whether the type is a structure or an array with a GC pointer. */
static bool has_hidden_pointer(LLVMTypeRef type)
{
    enum { VALUES_MAX = 64 };
    LLVMTypeRef types[VALUES_MAX];
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    bool has_pointer = false;
    if (kind != LLVMStructTypeKind && kind != LLVMArrayTypeKind)
        return false;
    unsigned count = ir_flatten(type, types, VALUES_MAX);
    for (unsigned i = 0; i < count; i++)
        has_pointer |= is_pointer(types[i]);
    return has_pointer;
}

static bool has_leaf_mark(LLVMValueRef call)
{
    static const char mark[] = "gc-leaf-function";
    unsigned length;
    return LLVMGetCallSiteStringAttribute(call, IR_FUNCTION, mark, sizeof mark - 1) != NULL ||
           ir_string_attribute(ir_called_function(call), mark, &length) != NULL;
}

/* Whether the pass makes a statepoint of the instruction. Calls of library functions that LLVM
 * knows count, too. */
static bool is_safepoint(LLVMValueRef instruction)
{
    LLVMValueRef function = ir_called_function(instruction);
    if (!ir_is_call(instruction) || has_leaf_mark(instruction))
        return false;
    return function == NULL || LLVMGetIntrinsicID(function) == 0 ||
           ir_is_intrinsic(function, "llvm.experimental.deoptimize");
}

static LLVMValueRef first_safepoint(LLVMValueRef function)
{
    LLVMValueRef instruction = NULL;
    while ((instruction = ir_next_instruction(function, instruction)) != NULL &&
           !is_safepoint(instruction))
        continue;
    return instruction;
}

/* ---- Liveness ---- */

/* Returns the first safepoint of the block after `start`, or of the whole block; NULL if there is
 * none. */
static LLVMValueRef next_safepoint(LLVMBasicBlockRef block, LLVMValueRef start)
{
    LLVMValueRef instruction =
        start == NULL ? LLVMGetFirstInstruction(block) : LLVMGetNextInstruction(start);
    while (instruction != NULL && !is_safepoint(instruction))
        instruction = LLVMGetNextInstruction(instruction);
    return instruction;
}

static bool is_before(LLVMValueRef instruction, LLVMValueRef other)
{
    while (instruction != NULL && instruction != other)
        instruction = LLVMGetNextInstruction(instruction);
    return instruction != NULL && other != NULL;
}

/* Returns the block in which the value is first available. `*start` is the instruction before it,
 * or NULL for the start of the block. */
static LLVMBasicBlockRef find_start(LLVMValueRef value, LLVMValueRef *start)
{
    *start = NULL;
    if (LLVMIsAArgument(value) != NULL)
        return LLVMGetEntryBasicBlock(LLVMGetParamParent(value));
    if (LLVMIsAInvokeInst(value) != NULL)
        return LLVMGetNormalDest(value);
    *start = value;
    return LLVMGetInstructionParent(value);
}

/* Whether the value may be live at a safepoint. Uses in other blocks count, without a search for
 * safepoints between the blocks, and so do uses of pointers that are computed from the value.
 * `is_passed` tells whether an argument of the safepoint counts, too. */
static bool may_be_live(LLVMValueRef value, bool is_passed, unsigned depth)
{
    enum { DEPTH_MAX = 3 };
    LLVMValueRef start;
    LLVMBasicBlockRef block = find_start(value, &start);
    LLVMValueRef safepoint = next_safepoint(block, start);
    for (LLVMUseRef use = LLVMGetFirstUse(value); use != NULL; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (depth == DEPTH_MAX || LLVMGetInstructionParent(user) != block ||
            LLVMIsAPHINode(user) != NULL)
            return true;
        if (user == safepoint ? is_passed : safepoint != NULL && is_before(safepoint, user))
            return true;
        bool is_derived = is_pointer(LLVMTypeOf(value)) && is_pointer(LLVMTypeOf(user)) &&
                          !ir_is_call(user) && LLVMIsALoadInst(user) == NULL;
        if (is_derived && may_be_live(user, is_passed, depth + 1))
            return true;
    }
    return false;
}

/* ---- Code that the pass does not support ---- */

static const struct problem on_stack = {
    "is memory of the stack in the collector's address space, on which rewrite-statepoints-for-gc "
    "crashes",
    "alloca in address space 0, or allocate an object"};
static const struct problem from_stack = {
    "is a pointer to the stack in the collector's address space, on which "
    "rewrite-statepoints-for-gc crashes",
    "pointers to the stack in address space 0"};
static const struct problem variable_argument = {
    "is a GC pointer from va_arg, on which rewrite-statepoints-for-gc crashes",
    "va_arg of an i64, and inttoptr"};
static const struct problem exchanged = {
    "is a GC pointer from atomicrmw, on which rewrite-statepoints-for-gc crashes",
    "atomicrmw with an i64, and inttoptr"};
static const struct problem cast_vector = {
    "makes a vector of GC pointers, on which rewrite-statepoints-for-gc crashes",
    "inttoptr of each element"};
static const struct problem hidden = {
    "has a GC pointer in a structure or an array, which rewrite-statepoints-for-gc does not see: "
    "after the next call it may be dangling",
    "extractvalue before the call"};
static const struct problem funclet = {
    "unwinds to a pad of Windows, on which rewrite-statepoints-for-gc crashes",
    "landingpad token, or mark the call \"gc-leaf-function\""};
static const struct problem assembly = {
    "is assembly, of which rewrite-statepoints-for-gc makes an invalid statepoint",
    "\"gc-leaf-function\" after the call"};

static const struct problem attributed = {
    "passes an argument in a way that this LLVM's rewrite-statepoints-for-gc forgets",
    "a call of a function whose declaration has the same attributes (zeroext, byval, ...)"};

/* Whether the pass removes an attribute that decides how an argument is passed, and it cannot be
 * added again because the function that is called does not have it. */
static bool loses_attribute(LLVMValueRef call)
{
    enum { FIRST_PARAMETER = 1 };
    if (LLVM_REWRITES_ATTRIBUTES)
        return false;
    LLVMValueRef function = ir_called_function(call);
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
        for (size_t k = 0; k < ir_passing_attribute_count; k++) {
            const char *name = ir_passing_attributes[k];
            unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
            bool is_there =
                kind != 0 && LLVMGetCallSiteEnumAttribute(call, FIRST_PARAMETER + i, kind) != NULL;
            if (is_there &&
                (function == NULL || ir_attribute(function, FIRST_PARAMETER + i, name) == NULL))
                return true;
        }
    return false;
}

static bool is_stack_address(LLVMValueRef value)
{
    while (LLVMIsAGetElementPtrInst(value) != NULL || LLVMIsACastInst(value) != NULL)
        value = LLVMGetOperand(value, 0);
    return LLVMIsAAllocaInst(value) != NULL;
}

/* Returns what is wrong with a GC pointer that the instruction makes and that is live at a
 * safepoint; NULL if the pass finds its base. */
static const struct problem *find_in_pointer(LLVMValueRef instruction)
{
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAlloca:
        return &on_stack;
    case LLVMAddrSpaceCast:
        return is_stack_address(instruction) ? &from_stack : NULL;
    case LLVMVAArg:
        return &variable_argument;
    case LLVMAtomicRMW:
        return LLVM_REWRITES_EXCHANGES ? NULL : &exchanged;
    case LLVMIntToPtr:
        return LLVMGetTypeKind(LLVMTypeOf(instruction)) == LLVMVectorTypeKind ? &cast_vector : NULL;
    default:
        return NULL;
    }
}

static const struct problem *find_in_call(LLVMValueRef call)
{
    if (!is_safepoint(call))
        return NULL;
    if (LLVMIsAInlineAsm(LLVMGetCalledValue(call)) != NULL)
        return &assembly;
    if (loses_attribute(call))
        return &attributed;
    if (LLVMIsAInvokeInst(call) == NULL)
        return NULL;
    LLVMValueRef pad = LLVMGetFirstInstruction(LLVMGetUnwindDest(call));
    while (LLVMIsAPHINode(pad) != NULL)
        pad = LLVMGetNextInstruction(pad);
    return LLVMIsALandingPadInst(pad) == NULL ? &funclet : NULL;
}

static const struct problem *find_problem(LLVMValueRef instruction)
{
    LLVMTypeRef type = LLVMTypeOf(instruction);
    const struct problem *problem = find_in_call(instruction);
    if (problem != NULL)
        return problem;
    if (has_hidden_pointer(type))
        return may_be_live(instruction, false, 0) ? &hidden : NULL;
    problem = is_pointer(type) ? find_in_pointer(instruction) : NULL;
    return problem != NULL && may_be_live(instruction, true, 0) ? problem : NULL;
}

static enum cairn_status refuse(LLVMValueRef function, LLVMValueRef value,
                                const struct problem *problem, struct cairn_error *error)
{
    enum { WIDTH = 50 };
    size_t length;
    char *text = LLVMPrintValueToString(value);
    enum cairn_status status =
        error_set(error, CAIRN_ERROR_LLVM, 0, "in '%.40s': %.*s %s; write %s",
                  LLVMGetValueName2(function, &length), WIDTH, text + strspn(text, " "),
                  problem->why, problem->instead);
    LLVMDisposeMessage(text);
    return status;
}

static enum cairn_status check_function(LLVMValueRef function, struct cairn_error *error)
{
    for (unsigned i = 0; i < LLVMCountParams(function); i++) {
        LLVMValueRef parameter = LLVMGetParam(function, i);
        if (has_hidden_pointer(LLVMTypeOf(parameter)) && may_be_live(parameter, false, 0))
            return refuse(function, parameter, &hidden, error);
    }
    for (LLVMValueRef instruction = NULL;
         (instruction = ir_next_instruction(function, instruction)) != NULL;) {
        const struct problem *problem = find_problem(instruction);
        if (problem != NULL)
            return refuse(function, instruction, problem, error);
    }
    return CAIRN_OK;
}

enum cairn_status gc_passes_check(LLVMModuleRef module, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (LLVMValueRef function = LLVMGetFirstFunction(module);
         function != NULL && status == CAIRN_OK; function = LLVMGetNextFunction(function))
        if (is_rewritten(function) && first_safepoint(function) != NULL)
            status = check_function(function, error);
    return status;
}

enum cairn_status gc_passes_check_poll(LLVMModuleRef module, const char *passes,
                                       struct cairn_error *error)
{
    LLVMValueRef function = LLVMGetFirstFunction(module);
    if (strstr(passes, placing) == NULL || LLVMGetNamedFunction(module, poll) != NULL)
        return CAIRN_OK;
    while (function != NULL && !is_rewritten(function))
        function = LLVMGetNextFunction(function);
    size_t length;
    return function == NULL
               ? CAIRN_OK
               : error_set(error, CAIRN_ERROR_LLVM, 0,
                           "in '%.40s': %s crashes, because no function is called %s; define it, "
                           "with a call of the collector",
                           LLVMGetValueName2(function, &length), placing, poll);
}

/* ---- After the pass ---- */

/* Whether the relocation has a base that is not among the live values of its statepoint. */
static bool lacks_base(LLVMValueRef statepoint, LLVMValueRef base_index)
{
    struct bundles bundles;
    return LLVMIsACallInst(statepoint) != NULL && LLVMIsAConstantInt(base_index) != NULL &&
           bundles_read(statepoint, &bundles, NULL) == CAIRN_OK &&
           LLVMConstIntGetZExtValue(base_index) >= bundles.gc_live.count;
}

/* Returns why a call that the pass has made is invalid; NULL if it may be valid. */
static const struct problem *explain(LLVMValueRef call)
{
    enum { OPERAND_TOKEN = 0, OPERAND_BASE = 1 };
    static const struct problem pad = {
        "is of a landingpad that is not a token, which rewrite-statepoints-for-gc expects",
        "landingpad token"};
    static const struct problem base = {
        "has no base that rewrite-statepoints-for-gc finds: it is cast from another address space",
        "a pointer of address space 1 from the start, or ptrtoint and inttoptr"};
    static const struct problem tail = {
        "was a musttail call, of which rewrite-statepoints-for-gc makes an invalid one",
        "it without musttail"};
    if (!ir_is_intrinsic(ir_called_function(call), "llvm.experimental.gc.relocate"))
        return site_call_must_be_tail_call(call) ? &tail : NULL;
    LLVMValueRef token = LLVMGetOperand(call, OPERAND_TOKEN);
    if (LLVMGetTypeKind(LLVMTypeOf(token)) != LLVMTokenTypeKind)
        return &pad;
    return lacks_base(token, LLVMGetOperand(call, OPERAND_BASE)) ? &base : NULL;
}

/* Gives advice, if the reason is known, or else what the verifier says. */
static enum cairn_status explain_invalid(LLVMModuleRef module, const char *message,
                                         struct cairn_error *error)
{
    for (LLVMValueRef call = NULL; (call = ir_next_in_module(module, call)) != NULL;) {
        const struct problem *problem = ir_is_call(call) ? explain(call) : NULL;
        if (problem != NULL)
            return refuse(ir_function_of(call), call, problem, error);
    }
    return error_set(error, CAIRN_ERROR_LLVM, 0, "after %s, LLVM's verifier says: %.200s",
                     rewriting, message);
}

enum cairn_status gc_passes_verify(LLVMModuleRef module, struct cairn_error *error)
{
    char *message = NULL;
    enum cairn_status status = CAIRN_OK;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0) {
        ir_join_lines(message);
        status = explain_invalid(module, message, error);
    }
    LLVMDisposeMessage(message);
    return status;
}
