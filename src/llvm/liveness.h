/*
 * llvm/liveness.h - what crashes LLVM's liveness of patch points.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_LIVENESS_H
#define LLVM_LIVENESS_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>

/* An instruction that makes LLVM crash on a function with patch points as long as their liveness
 * is on; NULL if there is none. The last word is the code generator's, which may put any of the
 * function's instructions behind a patch point, so all of them count. */
LLVMValueRef liveness_find_culprit(LLVMValueRef function, enum cairn_architecture architecture);

#endif
