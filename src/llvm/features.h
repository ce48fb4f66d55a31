/*
 * llvm/features.h - what a function's "target-features" say.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_FEATURES_H
#define LLVM_FEATURES_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdbool.h>

/* Returns the number of bits of the widest vector that LLVM puts into one register in this
 * function, on x86-64: 128, or more if the attribute "target-features" says so. The features that
 * "target-cpu" implies are not known here; the result is then 128. `function` may be NULL. */
unsigned features_vector_bits(LLVMValueRef function);

/* Returns the features that decide which vector registers the module's code can hold, if `machine`
 * compiles it for this architecture: for struct cairn_load_options. NULL if they may be any, which
 * includes functions for CPUs that are known only by name. */
const char *features_of_vectors(LLVMModuleRef module, enum cairn_architecture architecture,
                                LLVMTargetMachineRef machine);

/* Whether the feature is on for the function: its "target-features" turn it on, as "+name", or it
 * is on by default and they do not turn it off. `function` may be NULL. */
bool features_has(LLVMValueRef function, const char *name, bool by_default);

#endif
