/*
 * llvm/version.h - what differs between the LLVM versions, in one place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_VERSION_H
#define LLVM_VERSION_H

#include <llvm-c/Core.h>
#include <llvm/Config/llvm-config.h>
#include <stddef.h>

/* Pointers have no pointee types from 15 on. */
#define LLVM_HAS_OPAQUE_POINTERS (LLVM_VERSION_MAJOR >= 15)
/* llvm.experimental.patchpoint takes any result type from 19 on; before, void and i64. */
#define LLVM_PATCHPOINT_RETURNS_ANY_TYPE (LLVM_VERSION_MAJOR >= 19)
/* Live values of integer types that the machine has no registers for are promoted from 15 on. */
#define LLVM_PROMOTES_LIVE_INTEGERS (LLVM_VERSION_MAJOR >= 15)
/* Live values of type half on x86-64; of type bfloat, and vectors of those in memory. */
#define LLVM_SELECTS_LIVE_HALF (LLVM_VERSION_MAJOR >= 15)
#define LLVM_SELECTS_LIVE_BFLOAT (LLVM_VERSION_MAJOR >= 16)
/* And of type half on PPC64 and SystemZ; 20 and 21 have not been tried. */
#define LLVM_SELECTS_LIVE_HALF_ANYWHERE (LLVM_VERSION_MAJOR >= 22)
/* Vectors of bfloat in AArch64's registers. */
#define LLVM_HAS_BFLOAT_VECTORS (LLVM_VERSION_MAJOR >= 19)
/* Scalars of type bfloat in memory and as arguments of functions on x86-64. */
#define LLVM_STORES_BFLOAT (LLVM_VERSION_MAJOR >= 15)

/* x86_fp80 in memory of machines that do not have it. */
#define LLVM_STORES_FOREIGN_FP80 (LLVM_VERSION_MAJOR >= 16)

/* Width of the negative constants that are recorded at all levels. SelectionDAG cannot expand wider
 * ones, or takes their 64 bits from where there are none: 17, 18, 20 and 21 have not been tried. */
#if LLVM_VERSION_MAJOR < 15
#define LLVM_NEGATIVE_CONSTANT_BITS_MAX (1U << 23)
#elif LLVM_VERSION_MAJOR < 20
#define LLVM_NEGATIVE_CONSTANT_BITS_MAX 128
#else
#define LLVM_NEGATIVE_CONSTANT_BITS_MAX 64
#endif

/* Aliases of functions as personalities; before, LLVM writes functions alone. */
#define LLVM_HAS_GLOBALS_AS_PERSONALITIES (LLVM_VERSION_MAJOR >= 16)

/* AArch64's floating-point control register is read by instructions, and so may be live. */
#define LLVM_HAS_LIVE_FPCR (LLVM_VERSION_MAJOR >= 16)
/* Stack maps, patch points and statepoints on RISC-V. */
#define LLVM_HAS_RISCV_STACKMAPS (LLVM_VERSION_MAJOR >= 18)

/* PPC64 big-endian has the vectors of AltiVec without being asked; 20 and 21 have not been tried.
 */
#define LLVM_HAS_ALTIVEC_BY_DEFAULT (LLVM_VERSION_MAJOR >= 22)
/* RISC-V without the extension D keeps floating-point numbers in general registers. */
#define LLVM_SELECTS_SOFT_FLOAT (LLVM_VERSION_MAJOR >= 22)
/* The code generator ends the process at an operand bundle that it has no meaning for, where it
 * ignored it before; 20 and 21 have not been tried. */
#define LLVM_ENDS_AT_FOREIGN_BUNDLES (LLVM_VERSION_MAJOR >= 20)
/* The TOC reload counts among a patch point's bytes on PPC64 (llvm-project #177453). */
#define LLVM_COUNTS_TOC_RELOAD (LLVM_VERSION_MAJOR >= 22)
/* Statepoints have IDs of 64 bits; before, a record has the low 32 (llvm-project #85908). */
#define LLVM_HAS_WIDE_STATEPOINT_IDS (LLVM_VERSION_MAJOR >= 19)

/* The C API has operand bundles from 18 on. */
#define LLVM_TELLS_BUNDLES (LLVM_VERSION_MAJOR >= 18)

/* Metadata !pcsections is compiled. */
#define LLVM_HAS_PC_SECTIONS (LLVM_VERSION_MAJOR >= 16)

/* Parameters and results of type bfloat. */
#define LLVM_PASSES_BFLOAT (LLVM_VERSION_MAJOR >= 16)

/* uwtable has a value from 15 on: 2 is "async", exact at every instruction. */
#define VERSION_UWTABLE_VALUE (LLVM_VERSION_MAJOR >= 15 ? 2 : 0)

/* A pointer to bytes, as the intrinsics take it. */
static inline LLVMTypeRef version_byte_pointer_type(LLVMContextRef context)
{
#if LLVM_HAS_OPAQUE_POINTERS
    return LLVMPointerTypeInContext(context, 0);
#else
    return LLVMPointerType(LLVMInt8TypeInContext(context), 0);
#endif
}

/* The function type behind the callee operand of a statepoint. */
static inline LLVMTypeRef version_statepoint_callee_type(LLVMValueRef call, LLVMValueRef callee)
{
#if LLVM_HAS_OPAQUE_POINTERS
    (void)callee;
    unsigned kind = LLVMGetEnumAttributeKindForName("elementtype", 11);
    LLVMAttributeRef attribute = LLVMGetCallSiteEnumAttribute(call, 3, kind);
    return attribute == NULL ? NULL : LLVMGetTypeAttributeValue(attribute);
#else
    (void)call;
    return LLVMGetElementType(LLVMTypeOf(callee));
#endif
}

#endif
