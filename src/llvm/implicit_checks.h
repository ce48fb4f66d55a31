/*
 * llvm/implicit_checks.h - leaves null checks explicit where LLVM's pass for implicit ones crashes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_IMPLICIT_CHECKS_H
#define LLVM_IMPLICIT_CHECKS_H

#include <llvm-c/Core.h>

/* Removes the mark of cairn_make_implicit from the module's branches on which the pass may crash.
 * They stay checks. To be done after all passes over the IR. Takes O(basic blocks) time. */
void implicit_checks_restrict(LLVMModuleRef module);

#endif
