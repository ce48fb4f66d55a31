/* SPDX-License-Identifier: MIT */
#include "llvm/types.h"

#include "llvm/version.h"

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

/* ---- What the code generator can keep live ---- */

static bool is_machine_integer(unsigned bits, enum cairn_architecture architecture)
{
    bool has_small_registers = architecture == CAIRN_ARCHITECTURE_X86_64;
    return bits == 32 || bits == 64 || (has_small_registers && (bits == 8 || bits == 16));
}

static enum live_value_treatment treat_integer(unsigned bits, enum cairn_architecture architecture,
                                               const char **instead)
{
    if (bits > 64) {
        *instead = "two 64-bit halves, or a pointer to it";
        return LIVE_VALUE_CRASHES;
    }
    if (LLVM_PROMOTES_LIVE_INTEGERS || is_machine_integer(bits, architecture))
        return LIVE_VALUE_FITS;
    *instead = "the value extended to i32 or i64, as cairn_build_stackmap does";
    return LIVE_VALUE_WIDEN;
}

/* Only vectors that fill a 128-bit register: others are split or widened, which instruction
 * selection does not do for these operands. */
static enum live_value_treatment treat_vector(LLVMTypeRef type, const char **instead)
{
    struct cairn_type vector = types_convert(type);
    bool has_lanes = vector.kind == CAIRN_TYPE_INTEGER || vector.kind == CAIRN_TYPE_FLOAT ||
                     vector.kind == CAIRN_TYPE_DOUBLE || vector.kind == CAIRN_TYPE_POINTER;
    bool is_lane = vector.bits == 8 || vector.bits == 16 || vector.bits == 32 || vector.bits == 64;
    if (has_lanes && is_lane && vector.element_count > 1 &&
        vector.bits * vector.element_count == 128)
        return LIVE_VALUE_FITS;
    *instead = "vectors of 128 bits, single elements, or a pointer to it";
    return LIVE_VALUE_CRASHES;
}

static enum live_value_treatment treat_struct(LLVMTypeRef type,
                                              enum cairn_architecture architecture,
                                              const char **instead)
{
    unsigned count = LLVMCountStructElementTypes(type);
    for (unsigned i = 0; i < count; i++) {
        LLVMTypeRef element = LLVMStructGetTypeAtIndex(type, i);
        if (types_live_value(element, architecture, instead) != LIVE_VALUE_FITS)
            return LIVE_VALUE_CRASHES;
    }
    if (count > 0)
        return LIVE_VALUE_FITS;
    *instead = "nothing: an empty structure has no value";
    return LIVE_VALUE_CRASHES;
}

static enum live_value_treatment treat_if(bool fits, const char *otherwise, const char **instead)
{
    if (fits)
        return LIVE_VALUE_FITS;
    *instead = otherwise;
    return LIVE_VALUE_CRASHES;
}

enum live_value_treatment types_live_value(LLVMTypeRef type, enum cairn_architecture architecture,
                                           const char **instead)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return treat_integer(LLVMGetIntTypeWidth(type), architecture, instead);
    case LLVMPointerTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        return LIVE_VALUE_FITS;
    case LLVMX86_FP80TypeKind:
    case LLVMFP128TypeKind:
        return treat_if(architecture == CAIRN_ARCHITECTURE_X86_64, "a pointer to it", instead);
    case LLVMHalfTypeKind:
        return treat_if(LLVM_SELECTS_LIVE_HALF, "the value extended to float", instead);
    case LLVMBFloatTypeKind:
        return treat_if(LLVM_SELECTS_LIVE_BFLOAT, "the value extended to float", instead);
    case LLVMVectorTypeKind:
        return treat_vector(type, instead);
    case LLVMStructTypeKind:
        return treat_struct(type, architecture, instead);
    case LLVMArrayTypeKind:
        return types_live_value(LLVMGetElementType(type), architecture, instead) == LIVE_VALUE_FITS
                   ? treat_if(LLVMGetArrayLength(type) > 0, "its elements", instead)
                   : LIVE_VALUE_CRASHES;
    default:
        *instead = "integers, pointers, floating-point numbers, or 128-bit vectors";
        return LIVE_VALUE_CRASHES;
    }
}

/* ---- What it can keep in memory ---- */

/* Structures of nothing, and arrays of none or of such, have no value. */
static bool has_value(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            if (has_value(LLVMStructGetTypeAtIndex(type, i)))
                return true;
        return false;
    case LLVMArrayTypeKind:
        return LLVMGetArrayLength(type) > 0 && has_value(LLVMGetElementType(type));
    default:
        return true;
    }
}

/* Whether the code generator has a way to store values of the type at all. */
static bool is_storable(LLVMTypeRef type, enum cairn_architecture architecture)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMX86_FP80TypeKind:
        return architecture == CAIRN_ARCHITECTURE_X86_64 || LLVM_STORES_FOREIGN_FP80;
    case LLVMBFloatTypeKind:
        return LLVM_STORES_BFLOAT;
    case LLVMVectorTypeKind:
        return LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMBFloatTypeKind
                   ? LLVM_SELECTS_LIVE_BFLOAT
                   : is_storable(LLVMGetElementType(type), architecture);
    case LLVMArrayTypeKind:
        return is_storable(LLVMGetElementType(type), architecture);
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            if (!is_storable(LLVMStructGetTypeAtIndex(type, i), architecture))
                return false;
        return true;
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
    if (!has_value(type)) {
        *instead = "nothing: there is no value in it";
        return LIVE_VALUE_CRASHES;
    }
    return treat_if(is_storable(type, architecture), "a pointer to it", instead);
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

enum cairn_architecture types_architecture(LLVMModuleRef module)
{
    const char *triple = LLVMGetTarget(module);
    if (triple == NULL || *triple == '\0')
        return cairn_architecture_host();
    for (size_t i = 0; i < sizeof triples / sizeof *triples; i++)
        if (strncmp(triple, triples[i].prefix, strlen(triples[i].prefix)) == 0)
            return triples[i].architecture;
    return CAIRN_ARCHITECTURE_UNKNOWN;
}
