/*
 * Finds the operands of operand bundles.
 *
 * A call's bundle operands follow its arguments, bundle after bundle, in any order. From LLVM 18
 * on, the C API tells where each bundle ends. The C API of older versions does not know bundles;
 * only the printed call shows them. So a clone of the call is printed, in which every operand is
 * replaced by its own operand number:
 *
 *     call token (...) @llvm.experimental.gc.statepoint.p0(i64 0, i64 1, i64 2, i64 3, i64 4,
 *         i64 5, i64 6) [ "deopt"(i64 7, i64 8), "gc-live"(i64 9) ]
 *
 * The printed operands then contain no name, type or constant of the program. LLVM escapes the
 * strings in the remaining text, so every quotation mark begins or ends a string.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/site_call.h"
#include "llvm/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_tag(const char *tag, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(tag, wanted, length) == 0;
}

/* Stores the bundle if it has one of the known tags. LLVM's verifier allows one bundle of each of
 * these tags. */
static void note_bundle(struct bundles *bundles, const char *tag, size_t length,
                        struct bundle bundle)
{
    if (has_tag(tag, length, "deopt")) {
        bundles->deopt = bundle;
        bundles->has_deopt = LLVM_TELLS_BUNDLES || bundle.count > 0;
    } else if (has_tag(tag, length, "gc-live"))
        bundles->gc_live = bundle;
    else if (has_tag(tag, length, "gc-transition"))
        bundles->gc_transition = bundle;
}

#if LLVM_TELLS_BUNDLES

enum cairn_status bundles_read(LLVMValueRef call, struct bundles *bundles,
                               struct cairn_error *error)
{
    (void)error;
    unsigned next = LLVMGetNumArgOperands(call);
    unsigned count = LLVMGetNumOperandBundles(call);
    *bundles = (struct bundles){0};
    for (unsigned i = 0; i < count; i++) {
        LLVMOperandBundleRef bundle = LLVMGetOperandBundleAtIndex(call, i);
        size_t length;
        const char *tag = LLVMGetOperandBundleTag(bundle, &length);
        unsigned operands = LLVMGetNumOperandBundleArgs(bundle);
        note_bundle(bundles, tag, length, (struct bundle){next, operands});
        next += operands;
        LLVMDisposeOperandBundle(bundle);
    }
    return CAIRN_OK;
}

#else

/* ---- Printing a call with numbered operands ---- */

/* Returns the end of the arguments and bundle operands. In a call, only the callee follows them; in
 * an invoke, two blocks and the callee. */
static unsigned operands_end(LLVMValueRef call)
{
    unsigned others = LLVMGetInstructionOpcode(call) == LLVMInvoke ? 3 : 1;
    return (unsigned)LLVMGetNumOperands(call) - others;
}

/* Prints a clone of the call with numbered operands. The program is unchanged afterwards. The clone
 * is put into a block outside of the program: LLVM 14 cannot delete an instruction that is not in a
 * block, and LLVM numbers all values of a function before it prints one of its instructions. The
 * caller frees the text with LLVMDisposeMessage. */
static char *print_numbered(LLVMValueRef call)
{
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(call));
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("scratch", context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(module, "scratch", type);
    LLVMBasicBlockRef block = LLVMAppendBasicBlockInContext(context, function, "scratch");
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef clone = LLVMInstructionClone(call);
    unsigned end = operands_end(clone);
    for (unsigned i = 0; i < end; i++)
        LLVMSetOperand(clone, i, LLVMConstInt(LLVMInt64TypeInContext(context), i, 0));
    if (LLVMGetInstructionOpcode(clone) == LLVMInvoke) {
        LLVMSetNormalDest(clone, block);
        LLVMSetUnwindDest(clone, block);
    }
    LLVMPositionBuilderAtEnd(builder, block);
    LLVMInsertIntoBuilder(builder, clone);
    char *text = LLVMPrintValueToString(clone);
    LLVMInstructionEraseFromParent(clone);
    LLVMDisposeBuilder(builder);
    LLVMDisposeModule(module);
    return text;
}

/* ---- Parsing the printed call ---- */

static bool skip(const char **at, const char *expected)
{
    size_t length = strlen(expected);
    if (strncmp(*at, expected, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Parses `[ "tag"(i64 7, i64 8), "other"(i64 9) ]`. The list begins at the first "[ " that a tag
 * follows; the bracket of an array type is followed by a number instead. Returns false also if the
 * operand numbers do not continue from `*next`. */
static bool parse_list(const char *text, unsigned *next, struct bundles *bundles)
{
    bool is_quoted = false;
    const char *at = text;
    for (; *at != '\0' && (is_quoted || strncmp(at, "[ \"", 3) != 0); at++)
        is_quoted ^= *at == '"';
    if (!skip(&at, "[ "))
        return false;
    do {
        struct bundle bundle = {.first = *next};
        const char *tag = at + 1;
        size_t length = strcspn(tag, "\"");
        if (!skip(&at, "\"") || tag[length] == '\0')
            return false;
        for (at = tag + length; !skip(&at, bundle.count == 0 ? "\"()" : ")"); bundle.count++) {
            char *end;
            if (!skip(&at, bundle.count == 0 ? "\"(i64 " : ", i64 ") ||
                strtoul(at, &end, 10) != bundle.first + bundle.count)
                return false;
            at = end;
        }
        note_bundle(bundles, tag, length, bundle);
        *next += bundle.count;
    } while (skip(&at, ", "));
    return skip(&at, " ]");
}

enum cairn_status bundles_read(LLVMValueRef call, struct bundles *bundles,
                               struct cairn_error *error)
{
    unsigned next = LLVMGetNumArgOperands(call);
    *bundles = (struct bundles){0};
    if (next == operands_end(call))
        return CAIRN_OK;
    char *text = print_numbered(call);
    bool is_read = parse_list(text, &next, bundles) && next == operands_end(call);
    enum cairn_status status = CAIRN_OK;
    if (!is_read)
        status = error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                           "LLVM %d writes operand bundles in a way that is not known: %.150s",
                           LLVM_VERSION_MAJOR, text);
    LLVMDisposeMessage(text);
    return status;
}

#endif

/* Returns true also if the bundles cannot be parsed, so that the caller treats the call as one with
 * such a bundle, and bundles_read rejects it. */
bool bundles_has_deopt(LLVMValueRef call)
{
    struct bundles bundles;
    return bundles_read(call, &bundles, NULL) != CAIRN_OK || bundles.has_deopt;
}

/* ---- Bundles at which LLVM ends the process ---- */

#if LLVM_ENDS_AT_FOREIGN_BUNDLES

/* The bundles that the code generator accepts. Sources: trials with LLVM 22; its
 * SelectionDAGBuilder.cpp, visitCall and visitInvoke. */
static const struct {
    const char *tag;
    bool of_calls;
    bool of_invokes;
} known_bundles[] = {
    {"deopt", true, true},
    {"funclet", true, true},
    {"cfguardtarget", true, true},
    {"preallocated", true, true},
    {"clang.arc.attachedcall", true, true},
    {"ptrauth", true, true},
    {"kcfi", true, true},
    {"convergencectrl", true, false},
    {"deactivation-symbol", true, false},
    {"gc-transition", false, true},
    {"gc-live", false, true},
};

bool bundles_find_foreign(LLVMValueRef call, char tag[BUNDLE_TAG_SIZE])
{
    bool is_foreign = false;
    bool is_invoke = LLVMIsAInvokeInst(call) != NULL;
    unsigned count = LLVMGetNumOperandBundles(call);
    LLVMValueRef callee = LLVMGetCalledValue(call);
    /* The code generator compiles calls of intrinsics and of inline assembly before it checks the
     * bundles, but not invokes. */
    if (!is_invoke && (LLVMIsAInlineAsm(callee) != NULL ||
                       (LLVMIsAFunction(callee) != NULL && LLVMGetIntrinsicID(callee) != 0)))
        return false;
    for (unsigned i = 0; i < count && !is_foreign; i++) {
        LLVMOperandBundleRef bundle = LLVMGetOperandBundleAtIndex(call, i);
        size_t length;
        const char *name = LLVMGetOperandBundleTag(bundle, &length);
        is_foreign = true;
        for (size_t k = 0; k < sizeof known_bundles / sizeof *known_bundles; k++)
            if (has_tag(name, length, known_bundles[k].tag))
                is_foreign = !(is_invoke ? known_bundles[k].of_invokes : known_bundles[k].of_calls);
        snprintf(tag, BUNDLE_TAG_SIZE, "%.*s", (int)length, name);
        LLVMDisposeOperandBundle(bundle);
    }
    return is_foreign;
}

#else

bool bundles_find_foreign(LLVMValueRef call, char tag[BUNDLE_TAG_SIZE])
{
    (void)call;
    (void)tag;
    return false;
}

#endif
