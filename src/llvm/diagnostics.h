/*
 * llvm/diagnostics.h - what LLVM reports through a context while Cairn compiles.
 *
 * LLVM's own way with an error that nobody handles is to print it and to call exit(1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_DIAGNOSTICS_H
#define LLVM_DIAGNOSTICS_H

#include <cairn/status.h>
#include <llvm-c/Core.h>

/* An observed context. It stays where it is while it is observed. */
struct diagnostics {
    LLVMContextRef context;
    struct cairn_error *first;
    LLVMDiagnosticHandler host_handler;
    void *host_user;
};

/* From now on the first error that LLVM reports is kept in `first`, with status LLVM, unless there
 * is one; and all that LLVM reports is handed on to the handler that the context has had, if any.
 */
void diagnostics_begin(struct diagnostics *diagnostics, LLVMContextRef context,
                       struct cairn_error *first);

/* Gives the context its handler back, unless somebody has set another one meanwhile. */
void diagnostics_end(const struct diagnostics *diagnostics);

/* Keeps LLVM's text of `info`, if that is an error, as the first one. */
void diagnostics_keep_first(LLVMDiagnosticInfoRef info, struct cairn_error *first);

#endif
