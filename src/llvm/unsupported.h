/*
 * llvm/unsupported.h - finds instructions that make no record and crash the code generator.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_UNSUPPORTED_H
#define LLVM_UNSUPPORTED_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* The instruction's architecture and compiler options. */
struct unsupported_use {
    enum cairn_architecture architecture;
    unsigned optimisation_level;
    bool uses_fast_isel; /* even at levels 1 to 3 */
};

/* The reason, and what to write instead, as parts of a sentence. */
struct unsupported {
    const char *why;
    const char *instead;
};

/* Returns the reason why LLVM has no code for the instruction, in static memory; NULL if it has. */
const struct unsupported *unsupported_find(LLVMValueRef instruction,
                                           const struct unsupported_use *use);

#endif
