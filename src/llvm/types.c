/* SPDX-License-Identifier: MIT */
#include "llvm/types.h"

#include "llvm/features.h"
#include "llvm/ir.h"
#include "llvm/version.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Conversion ---- */

struct cairn_type types_convert(LLVMTypeRef type)
{
    static const struct cairn_type scalars[] = {
        [LLVMHalfTypeKind] = {.kind = CAIRN_TYPE_HALF, .bits = 16},
        [LLVMBFloatTypeKind] = {.kind = CAIRN_TYPE_BFLOAT, .bits = 16},
        [LLVMFloatTypeKind] = {.kind = CAIRN_TYPE_FLOAT, .bits = 32},
        [LLVMDoubleTypeKind] = {.kind = CAIRN_TYPE_DOUBLE, .bits = 64},
        [LLVMX86_FP80TypeKind] = {.kind = CAIRN_TYPE_X86_FP80, .bits = 80},
        [LLVMFP128TypeKind] = {.kind = CAIRN_TYPE_FP128, .bits = 128},
        [LLVMPPC_FP128TypeKind] = {.kind = CAIRN_TYPE_PPC_FP128, .bits = 128},
    };
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    struct cairn_type result = {.kind = CAIRN_TYPE_OTHER};
    switch (kind) {
    case LLVMVoidTypeKind:
        result.kind = CAIRN_TYPE_VOID;
        break;
    case LLVMIntegerTypeKind:
        result = (struct cairn_type){.kind = CAIRN_TYPE_INTEGER, .bits = LLVMGetIntTypeWidth(type)};
        break;
    case LLVMPointerTypeKind:
        result = (struct cairn_type){.kind = CAIRN_TYPE_POINTER, .bits = 64};
        result.address_space = LLVMGetPointerAddressSpace(type);
        break;
    case LLVMVectorTypeKind:
        result = types_convert(LLVMGetElementType(type));
        result.element_count = LLVMGetVectorSize(type);
        break;
    default:
        if ((size_t)kind < sizeof scalars / sizeof *scalars && scalars[kind].bits != 0)
            result = scalars[kind];
        break;
    }
    return result;
}

struct cairn_results types_results(LLVMTypeRef returned)
{
    LLVMTypeRef types[CAIRN_FUNCTION_RESULTS_MAX + 1];
    struct cairn_results results = {.is_known = true};
    if (LLVMGetTypeKind(returned) == LLVMVoidTypeKind)
        return results;
    unsigned count = ir_flatten(returned, types, CAIRN_FUNCTION_RESULTS_MAX + 1);
    if (count > CAIRN_FUNCTION_RESULTS_MAX)
        return (struct cairn_results){.is_known = false};
    for (unsigned i = 0; i < count; i++)
        results.types[results.count++] = types_convert(types[i]);
    return results;
}

struct cairn_results types_function_results(LLVMValueRef function)
{
    struct cairn_results results =
        types_results(LLVMGetReturnType(LLVMGlobalGetValueType(function)));
    results.extends_sign =
        results.count > 0 && ir_attribute(function, LLVMAttributeReturnIndex, "signext") != NULL;
    return results;
}

/* ---- Declared types ---- */

static unsigned declared_kind(LLVMValueRef call)
{
    static const char name[] = "cairn.types";
    return LLVMGetMDKindIDInContext(LLVMGetTypeContext(LLVMTypeOf(call)), name, sizeof name - 1);
}

void types_write_declared(LLVMValueRef call, const unsigned *widths, unsigned count)
{
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(call));
    LLVMValueRef *strings = calloc(count, sizeof *strings);
    if (strings == NULL)
        return; /* the operands' types describe the values then */
    for (unsigned i = 0; i < count; i++) {
        char text[16] = "";
        if (widths[i] != 0)
            snprintf(text, sizeof text, "i%u", widths[i]);
        strings[i] = LLVMMDStringInContext(context, text, (unsigned)strlen(text));
    }
    LLVMSetMetadata(call, declared_kind(call), LLVMMDNodeInContext(context, strings, count));
    free(strings);
}

void types_read_declared(LLVMValueRef call, struct cairn_type *types, unsigned count)
{
    if (count == 0 || !LLVMHasMetadata(call)) /* avoids the lookup of the kind by its name */
        return;
    LLVMValueRef node = LLVMGetMetadata(call, declared_kind(call));
    if (node == NULL || LLVMGetMDNodeNumOperands(node) != count)
        return;
    LLVMValueRef *strings = calloc(count, sizeof *strings);
    if (strings == NULL)
        return;
    LLVMGetMDNodeOperands(node, strings);
    for (unsigned i = 0; i < count; i++) {
        unsigned length = 0;
        const char *text = strings[i] == NULL ? NULL : LLVMGetMDString(strings[i], &length);
        bool is_integer = text != NULL && (length == 2 || length == 3) && text[0] == 'i';
        unsigned width = 0;
        for (unsigned k = 1; is_integer && k < length; k++) {
            unsigned digit = (unsigned)text[k] - '0';
            is_integer = digit <= 9;
            width = 10 * width + digit;
        }
        if (is_integer && types[i].kind == CAIRN_TYPE_INTEGER && types[i].element_count == 0 &&
            width > 0 && width < types[i].bits)
            types[i].bits = width;
    }
    free(strings);
}

/* ---- Types that fit into a register ---- */

/* What to write instead of a type without a value. */
static const char nothing[] = "nothing: it contains no value";

/* Returns the type of the first value in a structure or an array, or the type itself. A record
 * holds only that value. NULL if there is no value. */
static LLVMTypeRef first_value(LLVMTypeRef type)
{
    LLVMTypeRef first = NULL;
    return ir_flatten(type, &first, 1) == 0 ? NULL : first;
}

static bool is_machine_integer(unsigned bits, enum cairn_architecture architecture)
{
    bool has_small_registers = architecture == CAIRN_ARCHITECTURE_X86_64;
    return bits == 32 || bits == 64 || (has_small_registers && (bits == 8 || bits == 16));
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

/* Whether one register holds the vector: of 128 bits, on AArch64 also of 64, and on x86-64 of up to
 * `widest`. Other vectors would have to be split or widened, which instruction selection does not
 * do for these operands. */
static bool is_register_vector(LLVMTypeRef type, enum cairn_architecture architecture,
                               unsigned widest)
{
    struct cairn_type vector = types_convert(type);
    uint64_t bits = (uint64_t)vector.bits * vector.element_count;
    if (!has_vectors(architecture) || !is_lane(LLVMGetElementType(type), architecture))
        return false;
    return bits == 128 || (bits == 64 && architecture == CAIRN_ARCHITECTURE_AARCH64) ||
           ((bits == 256 || bits == 512) && bits <= widest);
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
        return architecture == CAIRN_ARCHITECTURE_AARCH64 ||
               architecture == CAIRN_ARCHITECTURE_RISCV64 ||
               (architecture == CAIRN_ARCHITECTURE_X86_64 && LLVM_SELECTS_LIVE_HALF) ||
               (architecture == CAIRN_ARCHITECTURE_SYSTEMZ && LLVM_SELECTS_LIVE_HALF_ON_SYSTEMZ) ||
               LLVM_SELECTS_LIVE_HALF_ANYWHERE;
    case LLVMBFloatTypeKind:
        return has_bfloat(architecture);
    case LLVMX86_FP80TypeKind:
        return architecture == CAIRN_ARCHITECTURE_X86_64;
    case LLVMFP128TypeKind:
        return architecture != CAIRN_ARCHITECTURE_RISCV64;
    case LLVMVectorTypeKind:
        return is_register_vector(type, architecture, 128);
    default:
        return false;
    }
}

/* ---- Types that the code generator can keep live ---- */

/* Whether LLVM promotes the type: small integers, and vectors of integers that are narrower than
 * the lanes to which LLVM widens them, so that the vector fills a register. On architectures other
 * than AArch64, a vector that is too short but whose elements are valid lanes gets more lanes
 * instead, which does not work. */
static bool is_promoted(LLVMTypeRef type, enum cairn_architecture architecture)
{
    struct cairn_type integer = types_convert(type);
    unsigned count = integer.element_count;
    bool is_aarch64 = architecture == CAIRN_ARCHITECTURE_AARCH64;
    if (!LLVM_PROMOTES_LIVE_INTEGERS || integer.kind != CAIRN_TYPE_INTEGER)
        return false;
    if (count == 0)
        return integer.bits <= 64;
    if (!is_aarch64 && is_lane(LLVMGetElementType(type), architecture))
        return false;
    bool has_lanes = count > 1 && count <= 16 && (count & (count - 1)) == 0;
    unsigned register_bits = is_aarch64 && integer.bits * count < 64 ? 64 : 128;
    return has_lanes && has_vectors(architecture) && integer.bits < register_bits / count;
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

bool types_is_unrecorded(LLVMTypeRef type, enum cairn_architecture architecture)
{
    LLVMTypeRef value = first_value(type);
    return value != NULL && LLVMGetTypeKind(value) == LLVMX86_FP80TypeKind &&
           architecture == CAIRN_ARCHITECTURE_X86_64;
}

/* Big-endian PPC64 and RISC-V have the registers for some types only if the function requests them.
 * Little-endian PPC64 always has VSX, because its oldest supported processor is POWER8. */
const char *types_live_value(LLVMTypeRef type, enum cairn_architecture architecture,
                             LLVMValueRef function)
{
    enum { REGISTER_BITS = 128, ALTIVEC_LANE_BITS = 32 };
    LLVMTypeRef value = first_value(type);
    if (value == NULL)
        return nothing;
    LLVMTypeKind kind = LLVMGetTypeKind(value);
    bool is_vector = kind == LLVMVectorTypeKind;
    bool is_float = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    bool is_wide = !is_vector || REGISTER_BITS / LLVMGetVectorSize(value) > ALTIVEC_LANE_BITS;
    if (types_is_unrecorded(value, architecture))
        return "a double, or a pointer to it";
    if (!types_fits_register(value, architecture) && !is_promoted(value, architecture) &&
        !(is_vector && architecture == CAIRN_ARCHITECTURE_X86_64 &&
          is_register_vector(value, architecture, features_vector_bits(function))))
        return say_what_instead(value);
    if (architecture == CAIRN_ARCHITECTURE_RISCV64 && is_float && !LLVM_SELECTS_SOFT_FLOAT &&
        !features_has(function, "d", false))
        return "the function's feature +d, if the processor has it, or an integer";
    if (architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1 &&
        (is_vector || kind == LLVMFP128TypeKind) && !features_has(function, "vsx", false) &&
        (is_wide || !features_has(function, "altivec", LLVM_HAS_ALTIVEC_BY_DEFAULT)))
        return "the function's feature +vsx, if the processor has it, or a pointer to it";
    return NULL;
}

/* Compares the constant with what the reader of a record gets: the low 64 bits, sign-extended. */
const char *types_live_constant(LLVMValueRef constant)
{
    LLVMTypeRef type = LLVMTypeOf(constant);
    if (ir_is_integer(type, 64))
        return NULL;
    LLVMTypeRef word = LLVMIntTypeInContext(LLVMGetTypeContext(type), 64);
    long long low = LLVMConstIntGetSExtValue(LLVMConstTrunc(constant, word));
    /* LLVM uniques constants, so equal ones are the same object. */
    if (LLVMConstInt(type, (unsigned long long)low, true) != constant)
        return "LLVM records only the low 64 bits of a constant, which are not this one extended "
               "by its sign";
    return low < 0 && !ir_is_integer(type, LLVM_NEGATIVE_CONSTANT_BITS_MAX)
               ? "LLVM crashes on negative constants of that many bits, or records garbage"
               : NULL;
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
    default:
        return types_convert(type).kind != CAIRN_TYPE_OTHER;
    }
}

const char *types_statepoint_value(LLVMTypeRef type, enum cairn_architecture architecture)
{
    LLVMTypeRef value = first_value(type);
    if (value == NULL)
        return nothing;
    return is_storable(value, architecture) ? NULL : "a pointer to it";
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

bool types_triple_has_elf(const char *triple)
{
    static const char *const other_formats[] = {"darwin", "macho", "apple", "windows",
                                                "coff",   "wasm",  "aix",   "xcoff"};
    for (size_t i = 0; i < sizeof other_formats / sizeof *other_formats; i++)
        if (strstr(triple, other_formats[i]) != NULL)
            return false;
    return true;
}
