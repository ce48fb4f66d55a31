/*
 * llvm/liveness.h - finds code that crashes LLVM's liveness of patch points.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_LIVENESS_H
#define LLVM_LIVENESS_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>

/* Returns an instruction at which LLVM crashes if the function has patch points and their liveness
 * is on; NULL if there is no such instruction. All instructions of the function count, because the
 * code generator may move any of them after a patch point. */
LLVMValueRef liveness_find_culprit(LLVMValueRef function, enum cairn_architecture architecture);

#endif
