/*
 * llvm/target.h - finds the targets of patch points that LLVM cannot call.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_TARGET_H
#define LLVM_TARGET_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* The reason why LLVM does not call a target, and what to write instead, as parts of a sentence. */
struct target_problem {
    const char *why;
    const char *instead;
};

/* Returns NULL if LLVM calls exactly this target in all versions, at all levels; otherwise the
 * reason why not, in static memory. */
const struct target_problem *target_find_problem(LLVMValueRef target,
                                                 enum cairn_architecture architecture);

/* Whether LLVM emits no-ops instead of a call for the target. */
bool target_is_null(LLVMValueRef target);

#endif
