/*
 * llvm/unsupported.h - instructions that make no record, and that the code generator crashes on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_UNSUPPORTED_H
#define LLVM_UNSUPPORTED_H

#include <cairn/architecture.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* How the module will be compiled. */
struct unsupported_use {
    enum cairn_architecture architecture;
    unsigned optimisation_level;
    bool uses_fast_isel; /* also at levels 1 to 3 */
};

/* Parts of a sentence. */
struct unsupported {
    const char *why;
    const char *instead;
};

/* Returns NULL for an instruction that has code. Static. */
const struct unsupported *unsupported_find(LLVMValueRef instruction,
                                           const struct unsupported_use *use);

#endif
