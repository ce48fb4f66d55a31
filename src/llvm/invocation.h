/*
 * llvm/invocation.h - functions that call the functions of a module with arguments from memory.
 * Used by `cairn compile` and `cairn run`.
 *
 * A caller that knows a function's type only at run time cannot pass values in the right registers.
 * So each defined function F gets a function `cairn.call.F`, which loads the arguments, calls F,
 * and stores the result. It is compiled with F, so that both always agree.
 *
 * The types of all functions are in the constant `cairn.signatures`: for each function its name and
 * a text, both with a terminating zero byte, and at the end an empty name. The text is
 *
 *     i32 (ptr, { i8, [2 x double] }, <4 x float>, ...)     types in LLVM's syntax, without names
 *     zeroext i8 ()                                         the result has no sign
 *     !'f' has LLVM's calling convention 9: ...             why F cannot be called
 *     (nothing)                                             F is only declared
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_INVOCATION_H
#define LLVM_INVOCATION_H

#include <cairn/status.h>
#include <llvm-c/Core.h>

/* The name of the constant, and what the names of the calling functions begin with. */
#define INVOCATION_SIGNATURES "cairn.signatures"
#define INVOCATION_PREFIX "cairn.call."

/*
 * A calling function is `void (ptr arguments, ptr results)`. Both point to slots of 16 bytes, one
 * for each scalar in the order of the type. In a slot, an integer or an address is two words of 64
 * bits, the low one first, extended to 128 bits; a floating-point number is as in memory.
 */
enum { INVOCATION_SLOT_BYTES = 16 };

/* Adds these functions and the constant to the module. MEMORY. */
CAIRN_MUST_CHECK enum cairn_status invocations_add(LLVMModuleRef module, struct cairn_error *error);

#endif
