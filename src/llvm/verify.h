/*
 * llvm/verify.h - runs LLVM's verifier, and finds what ends the process there or later because of a
 * function's garbage collector.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_VERIFY_H
#define LLVM_VERIFY_H

#include <cairn/status.h>
#include <llvm-c/Core.h>

/* The names of the GC strategies that the host has registered, in addition to LLVM's own. */
struct verify_strategies {
    const char *const *names;
    size_t count;
};

/* Runs LLVM's verifier. LLVM if it refuses the module, or would end the process. */
enum cairn_status verify_module(LLVMModuleRef module, const struct verify_strategies *strategies,
                                struct cairn_error *error);

/* Checks that LLVM knows the GC strategies of all functions that the module defines; the code
 * generator ends the process otherwise. LLVM if it does not. */
enum cairn_status verify_strategies(LLVMModuleRef module,
                                    const struct verify_strategies *strategies,
                                    struct cairn_error *error);

#endif
