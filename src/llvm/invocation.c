/* SPDX-License-Identifier: MIT */
#include "llvm/invocation.h"

#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PIECES_MAX = 256, INTEGER_BITS_MAX = 128, WORD_BITS = 64 };

/* LLVM's numbers of the conventions that any function may call (llvm/IR/CallingConv.h). */
enum { CONVENTION_C = 0, CONVENTION_FAST = 8, CONVENTION_COLD = 9 };

/* ---- Types ---- */

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

/* Whether values of the type can be passed. `*pieces` counts scalars and brackets. */
static bool is_passable(LLVMTypeRef type, unsigned *pieces)
{
    static const uint32_t passable =
        1U << CAIRN_TYPE_INTEGER | 1U << CAIRN_TYPE_POINTER | 1U << CAIRN_TYPE_HALF |
        1U << CAIRN_TYPE_FLOAT | 1U << CAIRN_TYPE_DOUBLE | 1U << CAIRN_TYPE_X86_FP80 |
        1U << CAIRN_TYPE_FP128 | (LLVM_PASSES_BFLOAT ? 1U << CAIRN_TYPE_BFLOAT : 0);
    unsigned count;
    if (++*pieces > PIECES_MAX)
        return false;
    if (elements_of(type, &count) == NULL) {
        struct cairn_type scalar = types_convert(type);
        return (passable >> scalar.kind & 1) != 0 && scalar.bits <= INTEGER_BITS_MAX;
    }
    bool fits = ++*pieces <= PIECES_MAX;
    for (unsigned i = 0; i < count && fits; i++)
        fits = is_passable(element_type(type, i), pieces);
    return fits;
}

/* ---- Signatures as text ---- */

/* The contents of the constant. */
struct text {
    struct cairn_allocator allocator;
    char *bytes;
    size_t size;
    size_t capacity;
    bool failed; /* memory has run out */
};

static void put_bytes(struct text *text, const char *bytes, size_t size)
{
    char *reserved =
        array_reserve(&text->allocator, text->bytes, text->size, size + 1, &text->capacity, 1);
    if (reserved == NULL) {
        text->failed = true;
        return;
    }
    text->bytes = reserved;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    char bytes[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(bytes, sizeof bytes, format, arguments);
    va_end(arguments);
    put_bytes(text, bytes, length < (int)sizeof bytes ? (size_t)length : sizeof bytes - 1);
}

static void put_type(struct text *text, LLVMTypeRef type)
{
    char name[64];
    unsigned count;
    const char *brackets = elements_of(type, &count);
    bool is_struct = LLVMGetTypeKind(type) == LLVMStructTypeKind;
    if (brackets == NULL) {
        cairn_type_format(types_convert(type), name, sizeof name);
        put(text, "%s", name);
        return;
    }
    put(text, is_struct ? "%c " : "%c", brackets[0]);
    if (!is_struct)
        put(text, "%u x ", count);
    for (unsigned i = 0; i < (is_struct ? count : 1); i++) {
        put(text, "%s", i > 0 ? ", " : "");
        put_type(text, element_type(type, i));
    }
    put(text, is_struct && count > 0 ? " %c" : "%c", brackets[1]);
}

/* Writes why a value cannot be passed. `index` is LLVM's attribute index: 0 is the result. */
static void put_refusal(struct text *text, LLVMValueRef function, unsigned index, LLVMTypeRef type)
{
    char name[64];
    char what[32];
    snprintf(what, sizeof what, index == 0 ? "the result" : "parameter %u", index);
    put(text,
        "!%s of '%.40s' is %s, which cannot be passed from here: call it from an IR function with "
        "integers of up to %d bits, pointers, %s, or small structures, arrays and vectors of these",
        what, LLVMGetValueName(function), ir_print_type(type, name, sizeof name), INTEGER_BITS_MAX,
        LLVM_PASSES_BFLOAT ? "floating-point numbers" : "floating-point numbers other than bfloat");
}

/* Writes why a function cannot be called, and returns false; true if it can be. Parameters with
 * certain attributes are not passed as ordinary values of their types. */
static bool check_callable(LLVMValueRef function, struct text *text)
{
    static const char *const special[] = {"byval",        "sret",       "inalloca",
                                          "preallocated", "nest",       "inreg",
                                          "swiftself",    "swifterror", "swiftasync"};
    LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(function));
    unsigned convention = LLVMGetFunctionCallConv(function);
    unsigned pieces = 0;
    if (convention != CONVENTION_C && convention != CONVENTION_FAST &&
        convention != CONVENTION_COLD) {
        put(text,
            "!'%.64s' has LLVM's calling convention %u: only the C, fast and cold conventions can "
            "be called from here; call it from an IR function that has one of them",
            LLVMGetValueName(function), convention);
        return false;
    }
    if (LLVMGetTypeKind(result) != LLVMVoidTypeKind && !is_passable(result, &pieces)) {
        put_refusal(text, function, 0, result);
        return false;
    }
    for (unsigned i = 0; i < LLVMCountParams(function); i++) {
        LLVMTypeRef type = LLVMTypeOf(LLVMGetParam(function, i));
        for (size_t k = 0; k < sizeof special / sizeof *special; k++) {
            if (ir_attribute(function, i + 1, special[k]) == NULL)
                continue;
            put(text,
                "!parameter %u of '%.64s' is '%s', which cannot be passed from here: call it from "
                "an IR function with ordinary parameters",
                i + 1, LLVMGetValueName(function), special[k]);
            return false;
        }
        pieces = 0;
        if (!is_passable(type, &pieces)) {
            put_refusal(text, function, i + 1, type);
            return false;
        }
    }
    return true;
}

static void put_signature(struct text *text, LLVMValueRef function)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(function);
    unsigned count = LLVMCountParams(function);
    put(text, "%s", ir_attribute(function, 0, "zeroext") != NULL ? "zeroext " : "");
    put_type(text, LLVMGetReturnType(type));
    put(text, " (");
    for (unsigned i = 0; i < count; i++) {
        put(text, "%s", i > 0 ? ", " : "");
        put_type(text, LLVMTypeOf(LLVMGetParam(function, i)));
    }
    if (LLVMIsFunctionVarArg(type))
        put(text, "%s...", count > 0 ? ", " : "");
    put(text, ")");
}

/* ---- Slots ---- */

/* The slots of the arguments or the result, while code is built that loads or stores them. */
struct slots {
    LLVMBuilderRef builder;
    LLVMContextRef context;
    LLVMValueRef base;
    unsigned index;
    bool is_unsigned; /* integers are zero-extended */
};

/* Returns a pointer to a value of the type, at an offset in the present slot. */
static LLVMValueRef place_of(const struct slots *slots, LLVMTypeRef type, unsigned offset)
{
    LLVMValueRef index =
        LLVMConstInt(LLVMInt64TypeInContext(slots->context),
                     (unsigned long long)slots->index * INVOCATION_SLOT_BYTES + offset, 0);
    LLVMValueRef place = LLVMBuildGEP2(slots->builder, LLVMInt8TypeInContext(slots->context),
                                       slots->base, &index, 1, "");
    return LLVMBuildBitCast(slots->builder, place, LLVMPointerType(type, 0), "");
}

static LLVMValueRef load_word(const struct slots *slots, unsigned offset)
{
    LLVMTypeRef word = LLVMInt64TypeInContext(slots->context);
    return LLVMBuildLoad2(slots->builder, word, place_of(slots, word, offset), "");
}

static LLVMValueRef load_integer(const struct slots *slots, LLVMTypeRef type)
{
    LLVMBuilderRef builder = slots->builder;
    LLVMValueRef low = load_word(slots, 0);
    unsigned bits = LLVMGetIntTypeWidth(type);
    if (bits <= WORD_BITS)
        return LLVMBuildTrunc(builder, low, type, "");
    LLVMTypeRef wide = LLVMIntTypeInContext(slots->context, INTEGER_BITS_MAX);
    LLVMValueRef high = LLVMBuildZExt(builder, load_word(slots, WORD_BITS / 8), wide, "");
    high = LLVMBuildShl(builder, high, LLVMConstInt(wide, WORD_BITS, 0), "");
    LLVMValueRef both = LLVMBuildOr(builder, high, LLVMBuildZExt(builder, low, wide, ""), "");
    return LLVMBuildTrunc(builder, both, type, "");
}

/* Loads a value from the next slots. */
static LLVMValueRef load(struct slots *slots, LLVMTypeRef type)
{
    LLVMBuilderRef builder = slots->builder;
    LLVMValueRef value;
    unsigned count = 0;
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    if (elements_of(type, &count) != NULL) {
        value = LLVMGetUndef(type);
        for (unsigned i = 0; i < count; i++) {
            LLVMValueRef element = load(slots, element_type(type, i));
            LLVMValueRef index = LLVMConstInt(LLVMInt32TypeInContext(slots->context), i, 0);
            value = is_vector ? LLVMBuildInsertElement(builder, value, element, index, "")
                              : LLVMBuildInsertValue(builder, value, element, i, "");
        }
        return value;
    }
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
        value = LLVMBuildIntToPtr(builder, load_word(slots, 0), type, "");
    else if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind)
        value = load_integer(slots, type);
    else
        value = LLVMBuildLoad2(builder, type, place_of(slots, type, 0), "");
    slots->index++;
    return value;
}

static void store_integer(const struct slots *slots, LLVMValueRef value)
{
    LLVMBuilderRef builder = slots->builder;
    LLVMTypeRef word = LLVMInt64TypeInContext(slots->context);
    LLVMTypeRef wide = LLVMIntTypeInContext(slots->context, INTEGER_BITS_MAX);
    value = slots->is_unsigned ? LLVMBuildZExt(builder, value, wide, "")
                               : LLVMBuildSExt(builder, value, wide, "");
    LLVMValueRef high = LLVMBuildLShr(builder, value, LLVMConstInt(wide, WORD_BITS, 0), "");
    LLVMBuildStore(builder, LLVMBuildTrunc(builder, value, word, ""), place_of(slots, word, 0));
    LLVMBuildStore(builder, LLVMBuildTrunc(builder, high, word, ""),
                   place_of(slots, word, WORD_BITS / 8));
}

/* Stores a value into the next slots. */
static void store(struct slots *slots, LLVMValueRef value)
{
    LLVMBuilderRef builder = slots->builder;
    LLVMTypeRef type = LLVMTypeOf(value);
    unsigned count = 0;
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    if (elements_of(type, &count) != NULL) {
        for (unsigned i = 0; i < count; i++) {
            LLVMValueRef index = LLVMConstInt(LLVMInt32TypeInContext(slots->context), i, 0);
            store(slots, is_vector ? LLVMBuildExtractElement(builder, value, index, "")
                                   : LLVMBuildExtractValue(builder, value, i, ""));
        }
        return;
    }
    if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind) {
        store_integer(slots, value);
    } else if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) {
        LLVMTypeRef word = LLVMInt64TypeInContext(slots->context);
        LLVMBuildStore(builder, LLVMBuildPtrToInt(builder, value, word, ""),
                       place_of(slots, word, 0));
        LLVMBuildStore(builder, LLVMConstInt(word, 0, 0), place_of(slots, word, WORD_BITS / 8));
    } else {
        LLVMBuildStore(builder, value, place_of(slots, type, 0));
    }
    slots->index++;
}

/* ---- The calling functions ---- */

/* Adds the function that calls `called`. It has the attributes that determine the available vector
 * registers, because the passing of values depends on them. */
static LLVMValueRef add_function(LLVMModuleRef module, LLVMValueRef called, const char *name)
{
    static const char *const names[] = {"target-cpu", "target-features", "min-legal-vector-width"};
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef pointer = version_byte_pointer_type(context);
    LLVMTypeRef parameters[] = {pointer, pointer};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 2, 0);
    LLVMValueRef function = LLVMAddFunction(module, name, type);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(called, IR_FUNCTION, names[i],
                                                                   (unsigned)strlen(names[i]));
        if (attribute != NULL)
            LLVMAddAttributeAtIndex(function, IR_FUNCTION, attribute);
    }
    return function;
}

/* Both sides must agree on the extension of small integers. */
static LLVMValueRef build_call(struct slots *slots, LLVMValueRef function, LLVMValueRef *arguments)
{
    static const char *const extensions[] = {"zeroext", "signext"};
    unsigned count = LLVMCountParams(function);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = load(slots, LLVMTypeOf(LLVMGetParam(function, i)));
    LLVMValueRef call = LLVMBuildCall2(slots->builder, LLVMGlobalGetValueType(function), function,
                                       arguments, count, "");
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(function));
    for (unsigned index = 0; index <= count; index++)
        for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
            LLVMAttributeRef attribute = ir_attribute(function, index, extensions[i]);
            if (attribute != NULL)
                LLVMAddCallSiteAttribute(call, index, attribute);
        }
    return call;
}

static bool add_caller(LLVMModuleRef module, LLVMValueRef called,
                       const struct cairn_allocator *allocator)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    size_t name_size = strlen(LLVMGetValueName(called)) + sizeof INVOCATION_PREFIX;
    size_t count = (size_t)LLVMCountParams(called) + 1;
    char *name = memory_new(allocator, name_size, 1);
    LLVMValueRef *arguments = memory_new(allocator, count, sizeof *arguments);
    if (name != NULL && arguments != NULL) {
        snprintf(name, name_size, "%s%s", INVOCATION_PREFIX, LLVMGetValueName(called));
        LLVMValueRef function = add_function(module, called, name);
        LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
        LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
        struct slots slots = {.builder = builder,
                              .context = context,
                              .base = LLVMGetParam(function, 0),
                              .is_unsigned = ir_attribute(called, 0, "zeroext") != NULL};
        LLVMValueRef call = build_call(&slots, called, arguments);
        slots.base = LLVMGetParam(function, 1);
        slots.index = 0;
        if (LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMVoidTypeKind)
            store(&slots, call);
        LLVMBuildRetVoid(builder);
        LLVMDisposeBuilder(builder);
    }
    bool is_added = name != NULL && arguments != NULL;
    memory_free(allocator, arguments, count * sizeof *arguments);
    memory_free(allocator, name, name_size);
    return is_added;
}

/* Adds the constant. */
static void add_signatures(LLVMModuleRef module, const struct text *text)
{
    LLVMValueRef contents = LLVMConstStringInContext(LLVMGetModuleContext(module), text->bytes,
                                                     (unsigned)text->size, 1);
    LLVMValueRef global = LLVMAddGlobal(module, LLVMTypeOf(contents), INVOCATION_SIGNATURES);
    LLVMSetInitializer(global, contents);
    LLVMSetGlobalConstant(global, 1);
}

enum cairn_status invocations_add(LLVMModuleRef module, struct cairn_error *error)
{
    struct text text = {.allocator = memory_allocator(NULL)};
    LLVMValueRef last = LLVMGetLastFunction(module); /* the functions after it are added here */
    LLVMValueRef function = LLVMGetFirstFunction(module);
    for (bool is_end = function == NULL; !is_end && !text.failed;
         is_end = function == last, function = LLVMGetNextFunction(function)) {
        size_t length;
        const char *name = LLVMGetValueName2(function, &length);
        bool is_defined = !LLVMIsDeclaration(function) &&
                          LLVMGetLinkage(function) != LLVMAvailableExternallyLinkage;
        if (length == 0 || strlen(name) != length || strncmp(name, "llvm.", 5) == 0)
            continue;
        put_bytes(&text, name, length + 1);
        if (is_defined && check_callable(function, &text)) {
            put_signature(&text, function);
            text.failed |= !add_caller(module, function, &text.allocator);
        }
        put_bytes(&text, "", 1);
    }
    put_bytes(&text, "", 1);
    if (!text.failed)
        add_signatures(module, &text);
    memory_free(&text.allocator, text.bytes, text.capacity);
    return text.failed ? error_set(error, CAIRN_ERROR_MEMORY, 0,
                                   "no memory for the types of the module's functions")
                       : CAIRN_OK;
}
