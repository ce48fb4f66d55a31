/*
 * llvm/features.h - what a function asks of the processor, as far as Cairn has to know.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_FEATURES_H
#define LLVM_FEATURES_H

#include <llvm-c/Core.h>
#include <stdbool.h>

/*
 * Bits of the widest vector that LLVM has in one register of x86-64 in this function: 128, or more
 * if its attribute "target-features" says so. What "target-cpu" implies is not known here: then
 * it is 128. `function` may be NULL.
 */
unsigned features_vector_bits(LLVMValueRef function);

/* Whether the function's "target-features" turn the feature on, as "+name", or the default says so
 * and they do not turn it off. `function` may be NULL. */
bool features_has(LLVMValueRef function, const char *name, bool by_default);

#endif
