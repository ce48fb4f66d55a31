/* SPDX-License-Identifier: MIT */
#include "llvm/invocation.h"

#include "base/error.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 256, INTEGER_BITS_MAX = 128 };

/* LLVM's numbers of the conventions that any function may call (llvm/IR/CallingConv.h). */
enum { CONVENTION_C = 0, CONVENTION_FAST = 8, CONVENTION_COLD = 9 };

/* ---- Values that can be passed ---- */

/* Appends a piece. Returns false if there is no memory, or if there are more than PIECES_MAX
 * pieces. */
static bool add_piece(struct invocation_value *value, struct invocation_piece piece)
{
    if (value->pieces == NULL)
        value->pieces = calloc(PIECES_MAX, sizeof *value->pieces);
    if (value->pieces == NULL || value->piece_count == PIECES_MAX)
        return false;
    value->pieces[value->piece_count++] = piece;
    value->scalar_count += piece.kind == INVOCATION_SCALAR;
    return true;
}

/* Returns the brackets around the type's elements, and sets their number; NULL if the type has no
 * elements. */
static const char *elements_of(LLVMTypeRef type, unsigned *count)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        *count = LLVMCountStructElementTypes(type);
        return "{}";
    case LLVMArrayTypeKind:
        *count = LLVMGetArrayLength(type);
        return "[]";
    case LLVMVectorTypeKind:
        *count = LLVMGetVectorSize(type);
        return "<>";
    default:
        return NULL;
    }
}

static LLVMTypeRef element_type(LLVMTypeRef type, unsigned index)
{
    return LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMStructGetTypeAtIndex(type, index)
                                                       : LLVMGetElementType(type);
}

static bool describe(LLVMTypeRef type, struct invocation_value *value)
{
    static const uint32_t passable =
        1U << CAIRN_TYPE_INTEGER | 1U << CAIRN_TYPE_POINTER | 1U << CAIRN_TYPE_HALF |
        1U << CAIRN_TYPE_FLOAT | 1U << CAIRN_TYPE_DOUBLE | 1U << CAIRN_TYPE_X86_FP80 |
        1U << CAIRN_TYPE_FP128 | (LLVM_PASSES_BFLOAT ? 1U << CAIRN_TYPE_BFLOAT : 0);
    unsigned count;
    const char *brackets = elements_of(type, &count);
    if (brackets == NULL) {
        struct cairn_type scalar = types_convert(type);
        return (passable >> scalar.kind & 1) != 0 && scalar.bits <= INTEGER_BITS_MAX &&
               add_piece(value, (struct invocation_piece){INVOCATION_SCALAR, 0, scalar});
    }
    bool fits = add_piece(
        value, (struct invocation_piece){.kind = INVOCATION_OPEN, .bracket = brackets[0]});
    for (unsigned i = 0; i < count && fits; i++)
        fits = describe(element_type(type, i), value);
    return fits && add_piece(value, (struct invocation_piece){.kind = INVOCATION_CLOSE,
                                                              .bracket = brackets[1]});
}

/* ---- Signatures ---- */

/* Describes a value. `index` is LLVM's attribute index: 0 is the result. */
static enum cairn_status describe_value(LLVMValueRef function, uint32_t index, LLVMTypeRef type,
                                        struct invocation_value *value, struct cairn_error *error)
{
    value->is_unsigned = ir_attribute(function, index, "zeroext") != NULL;
    char *text = LLVMPrintTypeToString(type);
    int length = snprintf(value->type, sizeof value->type, "%s", text);
    if (length >= (int)sizeof value->type)
        memcpy(value->type + sizeof value->type - sizeof "...", "...", sizeof "...");
    LLVMDisposeMessage(text);
    if ((index == 0 && LLVMGetTypeKind(type) == LLVMVoidTypeKind) || describe(type, value))
        return CAIRN_OK;
    char what[32];
    snprintf(what, sizeof what, index == 0 ? "the result" : "parameter %u", index);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "%s of '%.40s' is %s, which cannot be passed from here: call it from an IR "
                     "function with integers of up to %d bits, pointers, %s, or small "
                     "structures, arrays and vectors of these",
                     what, LLVMGetValueName(function), value->type, INTEGER_BITS_MAX,
                     LLVM_PASSES_BFLOAT ? "floating-point numbers"
                                        : "floating-point numbers other than bfloat");
}

/* Describes the result and the parameters. Parameters with certain attributes are not passed as
 * ordinary values of their types. */
static enum cairn_status read_signature(LLVMValueRef function,
                                        struct invocation_signature *signature,
                                        struct cairn_error *error)
{
    static const char *const special[] = {"byval",        "sret",       "inalloca",
                                          "preallocated", "nest",       "inreg",
                                          "swiftself",    "swifterror", "swiftasync"};
    LLVMTypeRef type = LLVMGlobalGetValueType(function);
    uint32_t count = LLVMCountParams(function);
    signature->is_variadic = LLVMIsFunctionVarArg(type) != 0;
    signature->parameters = calloc(count + 1, sizeof *signature->parameters);
    if (signature->parameters == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u parameters", count);
    signature->parameter_count = count;
    enum cairn_status status =
        describe_value(function, 0, LLVMGetReturnType(type), &signature->result, error);
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++) {
        for (size_t k = 0; k < sizeof special / sizeof *special; k++)
            if (ir_attribute(function, i + 1, special[k]) != NULL)
                return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                                 "parameter %u of '%.64s' is '%s', which cannot be passed from "
                                 "here: call it from an IR function with ordinary parameters",
                                 i + 1, LLVMGetValueName(function), special[k]);
        status = describe_value(function, i + 1, LLVMTypeOf(LLVMGetParam(function, i)),
                                &signature->parameters[i], error);
    }
    return status;
}

enum cairn_status invocation_read(const struct program *program, const char *function,
                                  struct invocation_signature *signature, struct cairn_error *error)
{
    *signature = (struct invocation_signature){0};
    LLVMValueRef found = program_find_function(program, function, error);
    if (found == NULL)
        return CAIRN_ERROR_NOT_FOUND;
    unsigned convention = LLVMGetFunctionCallConv(found);
    if (convention != CONVENTION_C && convention != CONVENTION_FAST &&
        convention != CONVENTION_COLD)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, convention,
                         "'%.64s' has LLVM's calling convention %u: only the C, fast and cold "
                         "conventions can be called from here; call it from an IR function that "
                         "has one of them",
                         function, convention);
    enum cairn_status status = read_signature(found, signature, error);
    if (status != CAIRN_OK)
        invocation_release(signature);
    return status;
}

void invocation_release(struct invocation_signature *signature)
{
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        free(signature->parameters[i].pieces);
    free(signature->parameters);
    free(signature->result.pieces);
    *signature = (struct invocation_signature){0};
}

/* ---- Arguments ---- */

/* Builds a constant, and consumes as many entries of `*scalars` as the type has scalars. */
static LLVMValueRef build_constant(LLVMTypeRef type, const struct invocation_scalar **scalars)
{
    LLVMValueRef elements[PIECES_MAX];
    unsigned count = 0;
    const struct invocation_scalar *scalar = *scalars;
    if (elements_of(type, &count) == NULL)
        ++*scalars;
    for (unsigned i = 0; i < count; i++)
        elements[i] = build_constant(element_type(type, i), scalars);
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        return LLVMConstNamedStruct(type, elements, count);
    case LLVMArrayTypeKind:
        return LLVMConstArray(LLVMGetElementType(type), elements, count);
    case LLVMVectorTypeKind:
        return LLVMConstVector(elements, count);
    case LLVMIntegerTypeKind:
        return LLVMConstIntOfArbitraryPrecision(type, 2, (uint64_t[]){scalar->low, scalar->high});
    case LLVMPointerTypeKind:
        return LLVMConstIntToPtr(
            LLVMConstInt(LLVMInt64TypeInContext(LLVMGetTypeContext(type)), scalar->low, 0), type);
    default:
        return LLVMConstRealOfString(type, scalar->number);
    }
}

/* ---- The result ---- */

struct storing {
    LLVMBuilderRef builder;
    LLVMValueRef slots;
    uint32_t index;
    bool is_unsigned;
};

/* Stores the scalars of a value into the next slots. Integers and addresses are extended to 128
 * bits. */
static void build_stores(struct storing *storing, LLVMValueRef value)
{
    LLVMBuilderRef builder = storing->builder;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMContextRef context = LLVMGetTypeContext(type);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef wide = LLVMIntTypeInContext(context, INTEGER_BITS_MAX);
    unsigned count = 0;
    if (elements_of(type, &count) == NULL) {
        if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
            value = LLVMBuildZExt(builder, LLVMBuildPtrToInt(builder, value, word, ""), wide, "");
        else if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind)
            value = storing->is_unsigned ? LLVMBuildZExt(builder, value, wide, "")
                                         : LLVMBuildSExt(builder, value, wide, "");
        LLVMValueRef offset =
            LLVMConstInt(word, storing->index++ * sizeof(union invocation_slot), 0);
        LLVMValueRef place =
            LLVMBuildGEP2(builder, LLVMInt8TypeInContext(context), storing->slots, &offset, 1, "");
        place = LLVMBuildBitCast(builder, place, LLVMPointerType(LLVMTypeOf(value), 0), "");
        LLVMSetAlignment(LLVMBuildStore(builder, value, place), sizeof(union invocation_slot));
        return;
    }
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef index = LLVMConstInt(LLVMInt32TypeInContext(context), i, 0);
        build_stores(storing, is_vector ? LLVMBuildExtractElement(builder, value, index, "")
                                        : LLVMBuildExtractValue(builder, value, i, ""));
    }
}

/* ---- The function ---- */

/* Adds the function that makes the call. It has the attributes of `like` that determine the
 * available vector registers, because the passing of values depends on them. The caller and the
 * callee must agree on these attributes, and on the extension of small integers (build_call). */
static LLVMValueRef add_function(LLVMModuleRef module, LLVMValueRef like)
{
    static const char *const names[] = {"target-cpu", "target-features", "min-legal-vector-width"};
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef slots = version_byte_pointer_type(context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), &slots, 1, 0);
    LLVMValueRef function = LLVMAddFunction(module, "cairn.invocation", type);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        LLVMAttributeRef attribute =
            LLVMGetStringAttributeAtIndex(like, IR_FUNCTION, names[i], (unsigned)strlen(names[i]));
        if (attribute != NULL)
            LLVMAddAttributeAtIndex(function, IR_FUNCTION, attribute);
    }
    return function;
}

static LLVMValueRef build_call(LLVMBuilderRef builder, LLVMValueRef function,
                               LLVMValueRef *arguments, const struct invocation_scalar *scalars)
{
    static const char *const extensions[] = {"zeroext", "signext"};
    unsigned count = LLVMCountParams(function);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = build_constant(LLVMTypeOf(LLVMGetParam(function, i)), &scalars);
    LLVMValueRef call =
        LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(function));
    for (unsigned index = 0; index <= count; index++)
        for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
            LLVMAttributeRef attribute = ir_attribute(function, index, extensions[i]);
            if (attribute != NULL)
                LLVMAddCallSiteAttribute(call, index, attribute);
        }
    return call;
}

enum cairn_status invocation_build(const struct program *program, const char *function,
                                   const struct invocation_signature *signature,
                                   const struct invocation_scalar *scalars,
                                   char name[INVOCATION_NAME_BYTES], struct cairn_error *error)
{
    LLVMModuleRef module = program_module(program);
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMValueRef called = LLVMGetNamedFunction(module, function);
    LLVMValueRef *arguments = calloc(signature->parameter_count + 1, sizeof *arguments);
    if (arguments == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u arguments",
                         signature->parameter_count);
    LLVMValueRef invocation = add_function(module, called);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, invocation, ""));
    LLVMValueRef call = build_call(builder, called, arguments, scalars);
    struct storing storing = {builder, LLVMGetParam(invocation, 0), 0,
                              signature->result.is_unsigned};
    if (signature->result.scalar_count > 0)
        build_stores(&storing, call);
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
    free(arguments);
    /* LLVM has made the name unique in the module. */
    snprintf(name, INVOCATION_NAME_BYTES, "%s", LLVMGetValueName(invocation));
    return CAIRN_OK;
}
