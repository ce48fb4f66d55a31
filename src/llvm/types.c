/* SPDX-License-Identifier: MIT */
#include "llvm/types.h"

#include "llvm/features.h"
#include "llvm/version.h"

#include <stdint.h>
#include <string.h>

/* ---- Conversion ---- */

static struct cairn_type scalar(enum cairn_type_kind kind, uint32_t bits)
{
    return (struct cairn_type){.kind = kind, .bits = bits};
}

static struct cairn_type convert_vector(LLVMTypeRef type)
{
    struct cairn_type element = types_convert(LLVMGetElementType(type));
    element.element_count = LLVMGetVectorSize(type);
    return element;
}

static struct cairn_type convert_pointer(LLVMTypeRef type)
{
    struct cairn_type pointer = scalar(CAIRN_TYPE_POINTER, 64);
    pointer.address_space = LLVMGetPointerAddressSpace(type);
    return pointer;
}

struct cairn_type types_convert(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
        return scalar(CAIRN_TYPE_VOID, 0);
    case LLVMIntegerTypeKind:
        return scalar(CAIRN_TYPE_INTEGER, LLVMGetIntTypeWidth(type));
    case LLVMPointerTypeKind:
        return convert_pointer(type);
    case LLVMHalfTypeKind:
        return scalar(CAIRN_TYPE_HALF, 16);
    case LLVMBFloatTypeKind:
        return scalar(CAIRN_TYPE_BFLOAT, 16);
    case LLVMFloatTypeKind:
        return scalar(CAIRN_TYPE_FLOAT, 32);
    case LLVMDoubleTypeKind:
        return scalar(CAIRN_TYPE_DOUBLE, 64);
    case LLVMX86_FP80TypeKind:
        return scalar(CAIRN_TYPE_X86_FP80, 80);
    case LLVMFP128TypeKind:
        return scalar(CAIRN_TYPE_FP128, 128);
    case LLVMPPC_FP128TypeKind:
        return scalar(CAIRN_TYPE_PPC_FP128, 128);
    case LLVMVectorTypeKind:
        return convert_vector(type);
    default:
        return scalar(CAIRN_TYPE_OTHER, 0);
    }
}

/* ---- Results of functions ---- */

/* Adds the values in the type. Returns false if there are too many. */
static bool add_results(LLVMTypeRef type, struct cairn_results *results)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            if (!add_results(LLVMStructGetTypeAtIndex(type, i), results))
                return false;
        return true;
    }
    if (kind == LLVMArrayTypeKind) {
        for (unsigned i = 0; i < LLVMGetArrayLength(type); i++)
            if (!add_results(LLVMGetElementType(type), results))
                return false;
        return true;
    }
    if (results->count == CAIRN_FUNCTION_RESULTS_MAX)
        return false;
    results->types[results->count++] = types_convert(type);
    return true;
}

static bool has_return_attribute(LLVMValueRef function, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMGetEnumAttributeAtIndex(function, LLVMAttributeReturnIndex, kind) != NULL;
}

struct cairn_results types_results(LLVMTypeRef returned)
{
    struct cairn_results results = {.is_known = true};
    if (LLVMGetTypeKind(returned) != LLVMVoidTypeKind && !add_results(returned, &results))
        return (struct cairn_results){.is_known = false};
    return results;
}

struct cairn_results types_function_results(LLVMValueRef function)
{
    struct cairn_results results =
        types_results(LLVMGetReturnType(LLVMGlobalGetValueType(function)));
    results.extends_sign = results.count > 0 && has_return_attribute(function, "signext");
    return results;
}

/* ---- Types that fit into a register ---- */

/* What to write instead of a type without a value. */
static const char nothing[] = "nothing: there is no value in it";

/* Returns the type of the first value in a structure or an array, or the type itself. A record
 * holds only that value. NULL if there is no value. */
static LLVMTypeRef first_value(LLVMTypeRef type)
{
    LLVMTypeRef first = NULL;
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type) && first == NULL; i++)
            first = first_value(LLVMStructGetTypeAtIndex(type, i));
        return first;
    case LLVMArrayTypeKind:
        return LLVMGetArrayLength(type) > 0 ? first_value(LLVMGetElementType(type)) : NULL;
    default:
        return type;
    }
}

static bool is_machine_integer(unsigned bits, enum cairn_architecture architecture)
{
    bool has_small_registers = architecture == CAIRN_ARCHITECTURE_X86_64;
    return bits == 32 || bits == 64 || (has_small_registers && (bits == 8 || bits == 16));
}

static bool has_half(enum cairn_architecture architecture)
{
    return architecture == CAIRN_ARCHITECTURE_AARCH64 ||
           architecture == CAIRN_ARCHITECTURE_RISCV64 ||
           (architecture == CAIRN_ARCHITECTURE_X86_64 && LLVM_SELECTS_LIVE_HALF) ||
           LLVM_SELECTS_LIVE_HALF_ANYWHERE;
}

static bool has_bfloat(enum cairn_architecture architecture)
{
    return architecture == CAIRN_ARCHITECTURE_AARCH64 ||
           architecture == CAIRN_ARCHITECTURE_RISCV64 ||
           (architecture == CAIRN_ARCHITECTURE_X86_64 && LLVM_SELECTS_LIVE_BFLOAT);
}

static bool is_lane(LLVMTypeRef type, enum cairn_architecture architecture)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return is_machine_integer(LLVMGetIntTypeWidth(type), CAIRN_ARCHITECTURE_X86_64);
    case LLVMPointerTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        return true;
    case LLVMHalfTypeKind:
        return architecture == CAIRN_ARCHITECTURE_AARCH64 ||
               (architecture == CAIRN_ARCHITECTURE_X86_64 && LLVM_SELECTS_LIVE_HALF);
    case LLVMBFloatTypeKind:
        return architecture == CAIRN_ARCHITECTURE_AARCH64 && LLVM_HAS_BFLOAT_VECTORS;
    default:
        return false;
    }
}

/* Whether the architecture has vector registers by default. SystemZ and RISC-V have them only on
 * request. */
static bool has_vectors(enum cairn_architecture architecture)
{
    return architecture != CAIRN_ARCHITECTURE_SYSTEMZ && architecture != CAIRN_ARCHITECTURE_RISCV64;
}

/* Whether one register holds the vector: 128 bits, and on AArch64 also 64 bits. Other vectors would
 * have to be split or widened, which instruction selection does not do for these operands. */
static bool is_register_vector(LLVMTypeRef type, enum cairn_architecture architecture)
{
    struct cairn_type vector = types_convert(type);
    uint64_t bits = (uint64_t)vector.bits * vector.element_count;
    if (!has_vectors(architecture) || !is_lane(LLVMGetElementType(type), architecture))
        return false;
    return bits == 128 || (bits == 64 && architecture == CAIRN_ARCHITECTURE_AARCH64);
}

/* Whether one of x86-64's wider registers, which the function must request, holds the vector. */
static bool is_wide_vector(LLVMTypeRef type, enum cairn_architecture architecture,
                           LLVMValueRef function)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind || architecture != CAIRN_ARCHITECTURE_X86_64)
        return false;
    struct cairn_type vector = types_convert(type);
    uint64_t bits = (uint64_t)vector.bits * vector.element_count;
    return is_lane(LLVMGetElementType(type), architecture) && (bits == 256 || bits == 512) &&
           bits <= features_vector_bits(function);
}

bool types_fits_register(LLVMTypeRef type, enum cairn_architecture architecture)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return is_machine_integer(LLVMGetIntTypeWidth(type), architecture);
    case LLVMPointerTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        return true;
    case LLVMHalfTypeKind:
        return has_half(architecture);
    case LLVMBFloatTypeKind:
        return has_bfloat(architecture);
    case LLVMX86_FP80TypeKind:
        return architecture == CAIRN_ARCHITECTURE_X86_64;
    case LLVMFP128TypeKind:
        return architecture != CAIRN_ARCHITECTURE_RISCV64;
    case LLVMVectorTypeKind:
        return is_register_vector(type, architecture);
    default:
        return false;
    }
}

/* ---- Types that the code generator can keep live ---- */

/* Whether the type needs registers that big-endian PPC64 or RISC-V has only if the function
 * requests them, and the function does not. Little-endian PPC64 always has VSX, because its oldest
 * supported processor is POWER8. */
static bool lacks_registers(LLVMTypeRef type, enum cairn_architecture architecture,
                            LLVMValueRef function)
{
    enum { REGISTER_BITS = 128, ALTIVEC_LANE_BITS = 32 };
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    bool is_vector = kind == LLVMVectorTypeKind;
    bool is_wide = !is_vector || REGISTER_BITS / LLVMGetVectorSize(type) > ALTIVEC_LANE_BITS;
    bool is_float = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    if (architecture == CAIRN_ARCHITECTURE_RISCV64)
        return is_float && !LLVM_SELECTS_SOFT_FLOAT && !features_has(function, "d", false);
    if (architecture != CAIRN_ARCHITECTURE_PPC64_ELFV1 || !(is_vector || kind == LLVMFP128TypeKind))
        return false;
    bool has_vsx = features_has(function, "vsx", false);
    return !has_vsx && (is_wide || !features_has(function, "altivec", LLVM_HAS_ALTIVEC_BY_DEFAULT));
}

/* Returns the lane width to which LLVM widens the elements of an integer vector, so that the vector
 * fills a register; 0 if there is no such register. */
static unsigned promoted_lane_bits(struct cairn_type vector, enum cairn_architecture architecture)
{
    unsigned count = vector.element_count;
    bool is_power = count > 1 && (count & (count - 1)) == 0;
    bool is_aarch64 = architecture == CAIRN_ARCHITECTURE_AARCH64;
    if (!is_power || count > 16 || !has_vectors(architecture))
        return 0;
    return is_aarch64 && vector.bits * count < 64 ? 64 / count : 128 / count;
}

/* Whether LLVM promotes the type: small integers, and vectors of integers that are narrower than
 * the promoted lanes. On architectures other than AArch64, a vector that is too short but whose
 * elements are valid lanes gets more lanes instead, which does not work. */
static bool is_promoted(LLVMTypeRef type, enum cairn_architecture architecture)
{
    struct cairn_type integer = types_convert(type);
    if (!LLVM_PROMOTES_LIVE_INTEGERS || integer.kind != CAIRN_TYPE_INTEGER)
        return false;
    if (integer.element_count == 0)
        return integer.bits <= 64;
    bool has_lanes = is_lane(LLVMGetElementType(type), architecture);
    if (has_lanes && architecture != CAIRN_ARCHITECTURE_AARCH64)
        return false;
    return integer.bits < promoted_lane_bits(integer, architecture);
}

static const char *say_what_instead(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) > 64
                   ? "two 64-bit halves, or a pointer to it"
                   : "the value extended to i32 or i64, as cairn_build_stackmap does";
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return "the value extended to float";
    case LLVMX86_FP80TypeKind:
    case LLVMFP128TypeKind:
    case LLVMPPC_FP128TypeKind:
        return "a pointer to it";
    case LLVMVectorTypeKind:
        return "vectors of 128 bits (or the function the feature +avx or +avx512f for 256 or 512), "
               "single elements, or a pointer to it";
    default:
        return "integers, pointers, floating-point numbers, or 128-bit vectors";
    }
}

enum live_value_treatment types_live_value(LLVMTypeRef type, enum cairn_architecture architecture,
                                           LLVMValueRef function, const char **instead)
{
    LLVMTypeRef value = first_value(type);
    if (value == NULL) {
        *instead = nothing;
        return LIVE_VALUE_CRASHES;
    }
    bool fits = types_fits_register(value, architecture) || is_promoted(value, architecture) ||
                is_wide_vector(value, architecture, function);
    if (fits && !lacks_registers(value, architecture, function))
        return LIVE_VALUE_FITS;
    if (fits) {
        *instead = architecture == CAIRN_ARCHITECTURE_RISCV64
                       ? "the function's feature +d, if the processor has it, or an integer"
                       : "the function's feature +vsx, if the processor has it, or a pointer to it";
        return LIVE_VALUE_CRASHES;
    }
    *instead = say_what_instead(value);
    bool is_small = LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
    return is_small ? LIVE_VALUE_WIDEN : LIVE_VALUE_CRASHES;
}

/* Compares the constant with what the reader of a record gets: the low 64 bits, sign-extended. */
enum live_value_treatment types_live_constant(LLVMValueRef constant, const char **why)
{
    enum { RECORD_BITS = 64 };
    LLVMTypeRef type = LLVMTypeOf(constant);
    unsigned bits = LLVMGetIntTypeWidth(type);
    if (bits <= RECORD_BITS)
        return LIVE_VALUE_FITS;
    LLVMTypeRef word = LLVMIntTypeInContext(LLVMGetTypeContext(type), RECORD_BITS);
    long long low = LLVMConstIntGetSExtValue(LLVMConstTrunc(constant, word));
    /* LLVM uniques constants, so equal ones are the same object. */
    if (LLVMConstInt(type, (unsigned long long)low, true) != constant)
        *why = "LLVM records only the low 64 bits of a constant, which are not this one extended "
               "by its sign";
    else if (low < 0 && bits > LLVM_NEGATIVE_CONSTANT_BITS_MAX)
        *why = "LLVM crashes on negative constants of that many bits, or records garbage";
    else
        return LIVE_VALUE_FITS;
    return LIVE_VALUE_CRASHES;
}

/* ---- Types that it can keep in memory ---- */

/* Whether the code generator can store values of the type. */
static bool is_storable(LLVMTypeRef type, enum cairn_architecture architecture)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMX86_FP80TypeKind:
        return architecture == CAIRN_ARCHITECTURE_X86_64 || LLVM_STORES_FOREIGN_FP80;
    case LLVMBFloatTypeKind:
        return architecture == CAIRN_ARCHITECTURE_AARCH64 || LLVM_STORES_BFLOAT;
    case LLVMVectorTypeKind:
        return LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMBFloatTypeKind
                   ? has_bfloat(architecture)
                   : is_storable(LLVMGetElementType(type), architecture);
    case LLVMIntegerTypeKind:
    case LLVMPointerTypeKind:
    case LLVMHalfTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMFP128TypeKind:
    case LLVMPPC_FP128TypeKind:
        return true;
    default:
        return false;
    }
}

enum live_value_treatment types_statepoint_value(LLVMTypeRef type,
                                                 enum cairn_architecture architecture,
                                                 const char **instead)
{
    LLVMTypeRef value = first_value(type);
    *instead = value == NULL ? nothing : "a pointer to it";
    return value != NULL && is_storable(value, architecture) ? LIVE_VALUE_FITS : LIVE_VALUE_CRASHES;
}

bool types_transition_value(LLVMTypeRef type, enum cairn_architecture architecture)
{
    LLVMTypeRef value = first_value(type);
    return value != NULL && LLVMGetTypeKind(value) != LLVMBFloatTypeKind &&
           types_fits_register(value, architecture);
}

/* ---- Architectures ---- */

static const struct {
    const char *prefix;
    enum cairn_architecture architecture;
} triples[] = {
    {"x86_64", CAIRN_ARCHITECTURE_X86_64},         {"aarch64", CAIRN_ARCHITECTURE_AARCH64},
    {"arm64", CAIRN_ARCHITECTURE_AARCH64},         {"powerpc64le", CAIRN_ARCHITECTURE_PPC64_ELFV2},
    {"powerpc64", CAIRN_ARCHITECTURE_PPC64_ELFV1}, {"ppc64le", CAIRN_ARCHITECTURE_PPC64_ELFV2},
    {"ppc64", CAIRN_ARCHITECTURE_PPC64_ELFV1},     {"s390x", CAIRN_ARCHITECTURE_SYSTEMZ},
    {"riscv64", CAIRN_ARCHITECTURE_RISCV64},
};

enum cairn_architecture types_triple_architecture(const char *triple)
{
    for (size_t i = 0; i < sizeof triples / sizeof *triples; i++)
        if (strncmp(triple, triples[i].prefix, strlen(triples[i].prefix)) == 0)
            return triples[i].architecture;
    return CAIRN_ARCHITECTURE_UNKNOWN;
}

enum cairn_architecture types_architecture(LLVMModuleRef module)
{
    const char *triple = LLVMGetTarget(module);
    if (triple == NULL || *triple == '\0')
        return cairn_architecture_host();
    return types_triple_architecture(triple);
}
