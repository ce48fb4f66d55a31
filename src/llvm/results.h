/*
 * llvm/results.h - tells which results of statepoints and patch points LLVM takes from registers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_RESULTS_H
#define LLVM_RESULTS_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* Whether LLVM compiles a statepoint whose callee returns the type. `function` contains it; its
 * features determine the widest vectors. */
bool results_fit_statepoint(LLVMTypeRef result, enum cairn_architecture architecture,
                            LLVMValueRef function);

/* Does the same for a patch point with a calling convention other than anyregcc. */
bool results_fit_patchpoint(LLVMTypeRef result, enum cairn_architecture architecture,
                            LLVMValueRef function);

#endif
