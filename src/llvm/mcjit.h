/*
 * llvm/mcjit.h - what engines need of memory managers besides cairn/llvm.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_MCJIT_H
#define LLVM_MCJIT_H

#include <cairn/llvm.h>

/* What LLVM calls for llvm.experimental.deoptimize. */
#define MCJIT_DEOPTIMIZE "__llvm_deoptimize"

/* Around what LLVM compiles and finalises. In between, an error that is written where the first one
 * says, if none is there, fails the finalisation. */
struct cairn_error *memory_manager_begin(cairn_memory_manager *manager);
void memory_manager_end(cairn_memory_manager *manager);

/* What LLVM could not resolve, with status LLVM: it ends the process at the engine's next module.
 * Status OK: everything so far. */
const struct cairn_error *memory_manager_unresolved(const cairn_memory_manager *manager);

#endif
