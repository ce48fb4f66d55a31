/*
 * llvm/target.h - the targets of patch points: which of them LLVM calls.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_TARGET_H
#define LLVM_TARGET_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* Why LLVM does not call a target, and what to write instead: parts of a sentence. */
struct target_problem {
    const char *why;
    const char *instead;
};

/* Returns NULL if LLVM of every version, at every level, calls exactly this target; otherwise the
 * reason. Static. */
const struct target_problem *target_find_problem(LLVMValueRef target,
                                                 enum cairn_architecture architecture);

/* Whether LLVM emits no-ops and no call for the target. */
bool target_is_null(LLVMValueRef target);

#endif
