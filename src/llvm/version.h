/*
 * llvm/version.h - the differences between LLVM versions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_VERSION_H
#define LLVM_VERSION_H

#include <llvm-c/Core.h>
#include <llvm/Config/llvm-config.h>
#include <stddef.h>

/* Whether pointers have no pointee types. */
#define LLVM_HAS_OPAQUE_POINTERS (LLVM_VERSION_MAJOR >= 15)

/* ---- The code generator. 20 has not been tried. ---- */

/* Whether patch points return any type. Before 19, they return void and i64. */
#define LLVM_PATCHPOINT_RETURNS_ANY_TYPE (LLVM_VERSION_MAJOR >= 19)
/* Whether live values are promoted if the machine has no registers for their integer type. */
#define LLVM_PROMOTES_LIVE_INTEGERS (LLVM_VERSION_MAJOR >= 15)
/* Whether live values may be of type half on x86-64; on SystemZ, too; on PPC64, too; and of type
 * bfloat, also in vectors in memory. */
#define LLVM_SELECTS_LIVE_HALF (LLVM_VERSION_MAJOR >= 15)
#define LLVM_SELECTS_LIVE_HALF_ON_SYSTEMZ (LLVM_VERSION_MAJOR >= 21)
#define LLVM_SELECTS_LIVE_HALF_ANYWHERE (LLVM_VERSION_MAJOR >= 22)
#define LLVM_SELECTS_LIVE_BFLOAT (LLVM_VERSION_MAJOR >= 16)
/* Whether AArch64's registers may hold vectors of bfloat. */
#define LLVM_HAS_BFLOAT_VECTORS (LLVM_VERSION_MAJOR >= 19)
/* Whether scalars of type bfloat may be in memory, and arguments of functions on x86-64. */
#define LLVM_STORES_BFLOAT (LLVM_VERSION_MAJOR >= 15)
/* Whether parameters and results may be of type bfloat. */
#define LLVM_PASSES_BFLOAT (LLVM_VERSION_MAJOR >= 16)
/* Whether x86_fp80 may be moved, and be in memory, on machines that do not have the type. SystemZ
 * is not one of them. */
#define LLVM_STORES_FOREIGN_FP80 (LLVM_VERSION_MAJOR >= 16)
/* The width up to which negative constants are recorded at all levels. SelectionDAG cannot expand
 * wider ones, or reads 64 bits that they do not have. 17 and 18 have not been tried. */
#define LLVM_NEGATIVE_CONSTANT_BITS_MAX                                                            \
    (LLVM_VERSION_MAJOR < 15 ? 1U << 23 : LLVM_VERSION_MAJOR < 20 ? 128U : 64U)
/* Whether a personality may be an alias of a function. Before 16, LLVM emits only functions. */
#define LLVM_HAS_GLOBALS_AS_PERSONALITIES (LLVM_VERSION_MAJOR >= 16)
/* Whether RISC-V has stack maps, patch points and statepoints. */
#define LLVM_HAS_RISCV_STACKMAPS (LLVM_VERSION_MAJOR >= 18)
/* Whether big-endian PPC64 has AltiVec's vectors by default. */
#define LLVM_HAS_ALTIVEC_BY_DEFAULT (LLVM_VERSION_MAJOR >= 21)
/* Whether RISC-V without the extension D keeps floating-point numbers in general registers. */
#define LLVM_SELECTS_SOFT_FLOAT (LLVM_VERSION_MAJOR >= 22)
/* Whether the code generator ends the process at an unknown operand bundle, which earlier versions
 * ignore, and at a tail call that it cannot make, of which they make an ordinary call. */
#define LLVM_ENDS_AT_FOREIGN_BUNDLES (LLVM_VERSION_MAJOR >= 20)
#define LLVM_ENDS_AT_IMPOSSIBLE_TAIL_CALLS (LLVM_VERSION_MAJOR >= 22)
/* Whether the TOC reload is part of a patch point's bytes on PPC64 (llvm-project #177453). */
#define LLVM_COUNTS_TOC_RELOAD (LLVM_VERSION_MAJOR >= 22)
/* Whether statepoints have IDs of 64 bits. Before 19, a record holds the low 32 bits (llvm-project
 * #85908). */
#define LLVM_HAS_WIDE_STATEPOINT_IDS (LLVM_VERSION_MAJOR >= 19)
/* Whether statepoints may call functions that return on the x87 stack. Later, LLVM emits a call of
 * address 0, or crashes. 20 has not been tried. */
#define LLVM_RETURNS_X87_OF_STATEPOINTS (LLVM_VERSION_MAJOR < 20)
/* Whether the code generator compiles !pcsections metadata. */
#define LLVM_HAS_PC_SECTIONS (LLVM_VERSION_MAJOR >= 16)

/* Whether rewrite-statepoints-for-gc finds the base of a pointer that atomicrmw returns. 17 and 18
 * have not been tried. */
#define LLVM_REWRITES_EXCHANGES (LLVM_VERSION_MAJOR >= 19)
/* Whether it keeps the attributes of arguments that decide how they are passed. 17 and 18 have not
 * been tried. */
#define LLVM_REWRITES_ATTRIBUTES (LLVM_VERSION_MAJOR >= 19)

/* ---- The C API ---- */

/* Whether it supports operand bundles, and distinguishes the kinds of tail calls. */
#define LLVM_TELLS_BUNDLES (LLVM_VERSION_MAJOR >= 18)
#define LLVM_TELLS_TAIL_CALL_KIND (LLVM_VERSION_MAJOR >= 18)
/* Whether ORC's RuntimeDyld layer has callbacks for memory. */
#define LLVM_HAS_ORC_CALLBACKS (LLVM_VERSION_MAJOR >= 16)
/* Whether a resource tracker may be removed while its functions are looked up. LLVM 16 continues to
 * link such an object after it has deleted the memory manager (jitLinkForORC in RuntimeDyld.cpp
 * calls OnEmitted and does not return). 17 and 18 have not been tried. */
#define LLVM_MAY_REMOVE_WHILE_LINKING (LLVM_VERSION_MAJOR >= 19)

/* Whether it can turn on FastISel for any target machine, and not only for MCJIT's. */
#define LLVM_SETS_FAST_ISEL (LLVM_VERSION_MAJOR >= 18)

/* The value of the attribute uwtable. It has one from 15 on: 2 is "async", exact at every
 * instruction. */
#define VERSION_UWTABLE_VALUE (LLVM_VERSION_MAJOR >= 15 ? 2 : 0)

/* Returns the type of a pointer to bytes, which the intrinsics take. */
static inline LLVMTypeRef version_byte_pointer_type(LLVMContextRef context)
{
#if LLVM_HAS_OPAQUE_POINTERS
    return LLVMPointerTypeInContext(context, 0);
#else
    return LLVMPointerType(LLVMInt8TypeInContext(context), 0);
#endif
}

/* Returns the function type of a statepoint's callee operand. */
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
