/*
 * llvm/check.h - finds what the LLVM in use cannot compile, or compiles wrongly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_CHECK_H
#define LLVM_CHECK_H

#include <cairn/architecture.h>
#include <cairn/llvm.h>

/* The reason why LLVM does not compile something, and what to write instead, as parts of a sentence
 * in static memory. */
struct problem {
    const char *why;
    const char *instead;
};

/* Returns NULL if LLVM calls exactly this target of a patch point, in all versions and at all
 * levels; otherwise the reason why not. */
const struct problem *target_find_problem(LLVMValueRef target,
                                          enum cairn_architecture architecture);

/* Whether LLVM emits no-ops instead of a call for the target. */
bool target_is_null(LLVMValueRef target);

/* Whether there may be a reason not to compile an instruction with this opcode: calls, which may
 * also make records, and instructions of exception handling. */
bool unsupported_may_be(LLVMOpcode opcode);

/* Returns the reason why LLVM has no code for an instruction that makes no record; NULL if it
 * has. */
const struct problem *unsupported_find(LLVMValueRef instruction,
                                       enum cairn_architecture architecture,
                                       const struct cairn_check_options *options);

/* Returns the reason why LLVM has no code for the types of the instruction, or, at the first
 * instruction of a function, for those of its parameters; NULL if it has. */
const struct problem *foreign_type_find(LLVMValueRef instruction,
                                        enum cairn_architecture architecture);

/* Finds out whether GlobalISel, if LLVM tries it first, is known to leave the function to
 * SelectionDAG. MEMORY. */
enum cairn_status selection_leaves_to_dag(LLVMValueRef function, bool *leaves,
                                          struct cairn_error *error);

/* Whether LLVM may replace the call by instructions, because it knows the library function. It then
 * makes no record of a "deopt" bundle. */
bool selection_may_replace(LLVMValueRef call);

/* Runs LLVM's verifier. LLVM if it refuses the module, or would end the process because of the GC
 * strategy of a function. */
enum cairn_status verify_module(LLVMModuleRef module, const struct cairn_check_options *options,
                                struct cairn_error *error);

/* Checks that LLVM knows the GC strategies of all functions that the module defines; the code
 * generator ends the process otherwise. LLVM if it does not. */
enum cairn_status verify_strategies(LLVMModuleRef module, const struct cairn_check_options *options,
                                    struct cairn_error *error);

#endif
