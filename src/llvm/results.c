/*
 * Tells which results of statepoints and patch points LLVM takes from registers.
 *
 * LLVM returns results in memory if there are not enough registers. Then the nodes after the call
 * are loads, but the lowering of statepoints and of patch points expects copies from registers. It
 * crashes, or it emits a second call, of address 0, after the call (llvm-project #74612). Patch
 * points are lowered correctly only if their result is in one register.
 *
 * Sources: lib/CodeGen/SelectionDAG/StatepointLowering.cpp, lowerCallFromStatepointLoweringInfo;
 * SelectionDAGBuilder.cpp, visitPatchpoint; lib/Target/…/…CallingConv.td, for the C calling
 * convention; trials with LLVM 15, 16, 19 and 22.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/results.h"

#include "llvm/features.h"
#include "llvm/ir.h"
#include "llvm/version.h"

/* Registers of each kind. On x86-64, `floating` counts those of scalars, which are the first of the
 * vector registers. */
struct registers {
    unsigned general;
    unsigned floating;
    unsigned vector;
    unsigned x87;
};

enum { GENERAL_BITS = 64, VECTOR_BITS = 128, SMALLEST_LANE_BITS = 8, PROMOTED_LANE_BITS = 16 };

static unsigned parts(uint64_t bits, unsigned part_bits)
{
    return (unsigned)((bits + part_bits - 1) / part_bits);
}

static unsigned scalar_bits(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type);
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return 16;
    case LLVMFloatTypeKind:
        return 32;
    case LLVMX86_FP80TypeKind:
    case LLVMFP128TypeKind:
    case LLVMPPC_FP128TypeKind:
        return 128;
    default:
        return 64;
    }
}

static void count_scalar(LLVMTypeRef type, unsigned times, struct registers *count)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        count->general += times * parts(LLVMGetIntTypeWidth(type), GENERAL_BITS);
        break;
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMFP128TypeKind:
        count->floating += times;
        break;
    case LLVMPPC_FP128TypeKind:
        count->floating += 2 * times;
        break;
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        count->vector += times;
        break;
    case LLVMX86_FP80TypeKind:
        count->x87 += times;
        break;
    default:
        count->general += times;
        break;
    }
}

/* LLVM widens a vector with an odd number of elements if it then fills a register. Otherwise it
 * returns each element on its own, as it does on machines without vectors. */
static void count_vector(LLVMTypeRef type, unsigned register_bits, struct registers *count)
{
    LLVMTypeRef element = LLVMGetElementType(type);
    unsigned elements = LLVMGetVectorSize(type);
    unsigned bits = scalar_bits(element);
    unsigned lanes = 1;
    while (lanes < elements)
        lanes *= 2;
    bits = bits < SMALLEST_LANE_BITS ? PROMOTED_LANE_BITS : bits;
    bool is_whole = lanes == elements || (uint64_t)lanes * bits == VECTOR_BITS;
    if (register_bits == 0 || bits > GENERAL_BITS || !is_whole)
        count_scalar(element, elements, count);
    else
        count->vector += parts((uint64_t)lanes * bits, register_bits);
}

/* Returns false if there are more values than any registers. */
static bool count_result(LLVMTypeRef result, enum cairn_architecture architecture,
                         LLVMValueRef function, struct registers *count)
{
    enum { VALUES_MAX = 32 };
    LLVMTypeRef types[VALUES_MAX];
    unsigned values = ir_flatten(result, types, VALUES_MAX);
    unsigned register_bits = architecture == CAIRN_ARCHITECTURE_RISCV64 ? 0
                             : architecture == CAIRN_ARCHITECTURE_X86_64
                                 ? features_vector_bits(function)
                                 : VECTOR_BITS;
    *count = (struct registers){0};
    for (unsigned i = 0; i < values; i++)
        if (LLVMGetTypeKind(types[i]) == LLVMVectorTypeKind)
            count_vector(types[i], register_bits, count);
        else if (LLVMGetTypeKind(types[i]) != LLVMVoidTypeKind)
            count_scalar(types[i], 1, count);
    return values < VALUES_MAX;
}

/* On x86-64, the first two vector registers also return scalars, and further scalars are returned
 * on the x87 stack. */
static bool fits_x86_64(const struct registers *count)
{
    enum { GENERAL = 3, FLOATING = 2, VECTOR = 4, X87 = 2 };
    unsigned shared = count->floating + count->vector;
    return count->general <= GENERAL &&
           count->x87 <= (LLVM_RETURNS_X87_OF_STATEPOINTS ? X87 : 0U) &&
           shared <= (count->floating > 0 ? FLOATING : VECTOR);
}

bool results_fit_statepoint(LLVMTypeRef result, enum cairn_architecture architecture,
                            LLVMValueRef function)
{
    struct registers count;
    bool is_countable = count_result(result, architecture, function, &count);
    unsigned limit = architecture == CAIRN_ARCHITECTURE_RISCV64 ? 2 : 8;
    if (architecture == CAIRN_ARCHITECTURE_X86_64)
        return is_countable && fits_x86_64(&count);
    return is_countable && count.general <= limit && count.floating + count.vector <= limit;
}

bool results_fit_patchpoint(LLVMTypeRef result, enum cairn_architecture architecture,
                            LLVMValueRef function)
{
    struct registers count;
    return count_result(result, architecture, function, &count) && count.x87 == 0 &&
           count.general + count.floating + count.vector <= 1;
}
