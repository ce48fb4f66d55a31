/* SPDX-License-Identifier: MIT */
#include "llvm/invocation.h"

#include "base/error.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 256, INTEGER_BITS_MAX = 128 };

/* LLVM's numbers of the conventions that any function may call (llvm/IR/CallingConv.h). */
enum { CONVENTION_C = 0, CONVENTION_FAST = 8, CONVENTION_COLD = 9 };

/* ---- Values that can be passed ---- */

static bool is_passable(struct cairn_type type)
{
    switch (type.kind) {
    case CAIRN_TYPE_INTEGER:
        return type.bits <= INTEGER_BITS_MAX;
    case CAIRN_TYPE_BFLOAT:
        return LLVM_PASSES_BFLOAT;
    case CAIRN_TYPE_POINTER:
    case CAIRN_TYPE_HALF:
    case CAIRN_TYPE_FLOAT:
    case CAIRN_TYPE_DOUBLE:
    case CAIRN_TYPE_X86_FP80:
    case CAIRN_TYPE_FP128:
        return true;
    default:
        return false;
    }
}

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

static unsigned count_elements(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        return LLVMCountStructElementTypes(type);
    case LLVMArrayTypeKind:
        return LLVMGetArrayLength(type);
    default:
        return LLVMGetVectorSize(type);
    }
}

static LLVMTypeRef element_type(LLVMTypeRef type, unsigned index)
{
    return LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMStructGetTypeAtIndex(type, index)
                                                       : LLVMGetElementType(type);
}

/* Returns the brackets around the type's elements; NULL if the type has no elements. */
static const char *brackets_of(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        return "{}";
    case LLVMArrayTypeKind:
        return "[]";
    case LLVMVectorTypeKind:
        return "<>";
    default:
        return NULL;
    }
}

static bool describe(LLVMTypeRef type, struct invocation_value *value)
{
    const char *brackets = brackets_of(type);
    if (brackets == NULL) {
        struct cairn_type scalar = types_convert(type);
        return is_passable(scalar) &&
               add_piece(value, (struct invocation_piece){INVOCATION_SCALAR, 0, scalar});
    }
    unsigned count = count_elements(type);
    bool fits = add_piece(
        value, (struct invocation_piece){.kind = INVOCATION_OPEN, .bracket = brackets[0]});
    for (unsigned i = 0; i < count && fits; i++)
        fits = describe(element_type(type, i), value);
    return fits && add_piece(value, (struct invocation_piece){.kind = INVOCATION_CLOSE,
                                                              .bracket = brackets[1]});
}

/* ---- Signatures ---- */

static LLVMAttributeRef find_attribute(LLVMValueRef function, LLVMAttributeIndex index,
                                       const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return kind == 0 ? NULL : LLVMGetEnumAttributeAtIndex(function, index, kind);
}

/* Attributes of parameters that are not passed as ordinary values of their types. */
static const char *const special_attributes[] = {
    "byval", "sret",      "inalloca",   "preallocated", "nest",
    "inreg", "swiftself", "swifterror", "swiftasync",
};

static enum cairn_status check_parameter(LLVMValueRef function, uint32_t index,
                                         struct cairn_error *error)
{
    for (size_t i = 0; i < sizeof special_attributes / sizeof *special_attributes; i++)
        if (find_attribute(function, index + 1, special_attributes[i]) != NULL)
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                             "parameter %u of '%.64s' is '%s', which cannot be passed from here: "
                             "call it from an IR function with ordinary parameters",
                             index + 1, LLVMGetValueName(function), special_attributes[i]);
    return CAIRN_OK;
}

/* Sets the error for a value that cannot be passed. `index` is LLVM's attribute index: 0 is the
 * result. */
static enum cairn_status refuse_value(LLVMValueRef function, uint32_t index, const char *type,
                                      struct cairn_error *error)
{
    char what[32];
    snprintf(what, sizeof what, index == 0 ? "the result" : "parameter %u", index);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "%s of '%.40s' is %s, which cannot be passed from here: call it from an IR "
                     "function with integers of up to %d bits, pointers, %s, or small "
                     "structures, arrays and vectors of these",
                     what, LLVMGetValueName(function), type, INTEGER_BITS_MAX,
                     LLVM_PASSES_BFLOAT ? "floating-point numbers"
                                        : "floating-point numbers other than bfloat");
}

static void print_type(LLVMTypeRef type, struct invocation_value *value)
{
    char *text = LLVMPrintTypeToString(type);
    int length = snprintf(value->type, sizeof value->type, "%s", text);
    if (length >= (int)sizeof value->type)
        memcpy(value->type + sizeof value->type - sizeof "...", "...", sizeof "...");
    LLVMDisposeMessage(text);
}

static enum cairn_status describe_value(LLVMValueRef function, uint32_t index, LLVMTypeRef type,
                                        struct invocation_value *value, struct cairn_error *error)
{
    value->is_unsigned = find_attribute(function, index, "zeroext") != NULL;
    print_type(type, value);
    if (index == 0 && LLVMGetTypeKind(type) == LLVMVoidTypeKind)
        return CAIRN_OK;
    return describe(type, value) ? CAIRN_OK : refuse_value(function, index, value->type, error);
}

static enum cairn_status read_signature(LLVMValueRef function,
                                        struct invocation_signature *signature,
                                        struct cairn_error *error)
{
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
        status = check_parameter(function, i, error);
        if (status == CAIRN_OK)
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

static LLVMValueRef build_scalar(LLVMTypeRef type, const struct invocation_scalar *scalar)
{
    const uint64_t words[] = {scalar->low, scalar->high};
    LLVMTypeRef address = LLVMInt64TypeInContext(LLVMGetTypeContext(type));
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return LLVMConstIntOfArbitraryPrecision(type, 2, words);
    case LLVMPointerTypeKind:
        return LLVMConstIntToPtr(LLVMConstInt(address, scalar->low, 0), type);
    default:
        return LLVMConstRealOfString(type, scalar->number);
    }
}

/* Builds a constant, and consumes as many entries of `*scalars` as the type has scalars. */
static LLVMValueRef build_constant(LLVMTypeRef type, const struct invocation_scalar **scalars)
{
    LLVMValueRef elements[PIECES_MAX];
    if (brackets_of(type) == NULL)
        return build_scalar(type, (*scalars)++);
    unsigned count = count_elements(type);
    for (unsigned i = 0; i < count; i++)
        elements[i] = build_constant(element_type(type, i), scalars);
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        return LLVMConstNamedStruct(type, elements, count);
    case LLVMArrayTypeKind:
        return LLVMConstArray(LLVMGetElementType(type), elements, count);
    default:
        return LLVMConstVector(elements, count);
    }
}

/* ---- The result ---- */

struct storing {
    LLVMBuilderRef builder;
    LLVMValueRef slots;
    uint32_t index;
    bool is_unsigned;
};

static LLVMValueRef build_slot(const struct storing *storing, LLVMTypeRef type)
{
    LLVMContextRef context = LLVMGetTypeContext(type);
    LLVMValueRef offset = LLVMConstInt(LLVMInt64TypeInContext(context),
                                       storing->index * sizeof(union invocation_slot), 0);
    LLVMValueRef place = LLVMBuildGEP2(storing->builder, LLVMInt8TypeInContext(context),
                                       storing->slots, &offset, 1, "");
    return LLVMBuildBitCast(storing->builder, place, LLVMPointerType(type, 0), "");
}

static LLVMValueRef widen(const struct storing *storing, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMContextRef context = LLVMGetTypeContext(type);
    LLVMTypeRef wide = LLVMIntTypeInContext(context, INTEGER_BITS_MAX);
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
        value = LLVMBuildPtrToInt(storing->builder, value, LLVMInt64TypeInContext(context), "");
    else if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
        return value;
    else if (!storing->is_unsigned)
        return LLVMBuildSExt(storing->builder, value, wide, "");
    return LLVMBuildZExt(storing->builder, value, wide, "");
}

static void build_store(struct storing *storing, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMContextRef context = LLVMGetTypeContext(type);
    if (brackets_of(type) == NULL) {
        value = widen(storing, value);
        LLVMValueRef store =
            LLVMBuildStore(storing->builder, value, build_slot(storing, LLVMTypeOf(value)));
        LLVMSetAlignment(store, sizeof(union invocation_slot));
        storing->index++;
        return;
    }
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    unsigned count = count_elements(type);
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef index = LLVMConstInt(LLVMInt32TypeInContext(context), i, 0);
        build_store(storing, is_vector ? LLVMBuildExtractElement(storing->builder, value, index, "")
                                       : LLVMBuildExtractValue(storing->builder, value, i, ""));
    }
}

/* ---- The function ---- */

/* Copies the attributes that determine the available vector registers, because the passing of
 * values depends on them. The caller and the callee must agree on these attributes, and on the
 * extension of small integers (copy_extensions). */
static void copy_attributes(LLVMValueRef from, LLVMValueRef to)
{
    static const LLVMAttributeIndex place = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    static const char *const names[] = {"target-cpu", "target-features", "min-legal-vector-width"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        LLVMAttributeRef attribute =
            LLVMGetStringAttributeAtIndex(from, place, names[i], (unsigned)strlen(names[i]));
        if (attribute != NULL)
            LLVMAddAttributeAtIndex(to, place, attribute);
    }
}

static void copy_extensions(LLVMValueRef function, LLVMValueRef call)
{
    static const char *const names[] = {"zeroext", "signext"};
    for (unsigned index = 0; index <= LLVMCountParams(function); index++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            LLVMAttributeRef attribute = find_attribute(function, index, names[i]);
            if (attribute != NULL)
                LLVMAddCallSiteAttribute(call, index, attribute);
        }
}

static LLVMValueRef add_function(LLVMModuleRef module)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef slots = version_byte_pointer_type(context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), &slots, 1, 0);
    return LLVMAddFunction(module, "cairn.invocation", type);
}

static LLVMValueRef build_call(LLVMBuilderRef builder, LLVMValueRef function,
                               LLVMValueRef *arguments, const struct invocation_scalar *scalars)
{
    unsigned count = LLVMCountParams(function);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = build_constant(LLVMTypeOf(LLVMGetParam(function, i)), &scalars);
    LLVMValueRef call =
        LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(function));
    copy_extensions(function, call);
    return call;
}

static void build_body(LLVMValueRef invocation, LLVMValueRef function, LLVMValueRef *arguments,
                       const struct invocation_signature *signature,
                       const struct invocation_scalar *scalars)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, invocation, ""));
    LLVMValueRef call = build_call(builder, function, arguments, scalars);
    struct storing storing = {builder, LLVMGetParam(invocation, 0), 0,
                              signature->result.is_unsigned};
    if (signature->result.scalar_count > 0)
        build_store(&storing, call);
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
}

enum cairn_status invocation_build(const struct program *program, const char *function,
                                   const struct invocation_signature *signature,
                                   const struct invocation_scalar *scalars,
                                   char name[INVOCATION_NAME_BYTES], struct cairn_error *error)
{
    LLVMValueRef called = LLVMGetNamedFunction(program_module(program), function);
    LLVMValueRef *arguments = calloc(signature->parameter_count + 1, sizeof *arguments);
    if (arguments == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u arguments",
                         signature->parameter_count);
    LLVMValueRef invocation = add_function(program_module(program));
    copy_attributes(called, invocation);
    build_body(invocation, called, arguments, signature, scalars);
    free(arguments);
    /* LLVM has made the name unique in the module. */
    snprintf(name, INVOCATION_NAME_BYTES, "%s", LLVMGetValueName(invocation));
    return CAIRN_OK;
}
