/*
 * llvm/selection.h - determines which of LLVM's two instruction selectors compiles a function, and
 * which calls they replace.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SELECTION_H
#define LLVM_SELECTION_H

#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* Finds out whether GlobalISel, if LLVM tries it first, is known to leave the function to
 * SelectionDAG. MEMORY. */
enum cairn_status selection_leaves_to_dag(LLVMValueRef function, bool *leaves,
                                          struct cairn_error *error);

/* Whether LLVM may replace the call by instructions, because it knows the library function. It then
 * makes no record of a "deopt" bundle. */
bool selection_may_replace(LLVMValueRef call);

#endif
