/*
 * llvm/compile.h - sets LLVM's process-wide options, and observes what it reports through a
 * context while Cairn compiles.
 *
 * If an error has no handler, LLVM prints it and calls exit(1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_COMPILE_H
#define LLVM_COMPILE_H

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>

/* An observed context. The structure must not be moved while the context is observed. */
struct diagnostics {
    LLVMContextRef context;
    struct cairn_error *first;
    LLVMDiagnosticHandler host_handler;
    void *host_user;
};

/* Begins to observe the context. If `first` holds no error, the first error that LLVM reports is
 * stored there, with status LLVM. Every diagnostic is passed on to the context's previous handler,
 * if any. */
void diagnostics_begin(struct diagnostics *diagnostics, LLVMContextRef context,
                       struct cairn_error *first);

/* Restores the context's previous handler, unless another one was set in the meantime. */
void diagnostics_end(const struct diagnostics *diagnostics);

/* Stores LLVM's text of `info` in `first`, if it is an error and `first` holds none. */
void diagnostics_keep_first(LLVMDiagnosticInfoRef info, struct cairn_error *first);

/* Options of LLVM, for the whole process. */
enum compile_option {
    /* Turns the liveness of patch points off. For little-endian PPC64, also turns off a pass that
     * moves values of records, and a pass that keeps values in a register that patch points
     * change. */
    COMPILE_WITHOUT_LIVENESS,
    COMPILE_IMPLICIT_NULL_CHECKS
};

/* Sets an option for code of an architecture, once. Thread-safe. */
void compile_set_option(enum compile_option option, enum cairn_architecture architecture);

#endif
