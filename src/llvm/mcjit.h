/*
 * llvm/mcjit.h - functions of memory managers that engines need in addition to cairn/llvm.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_MCJIT_H
#define LLVM_MCJIT_H

#include <cairn/llvm.h>

/* The name of the function that LLVM calls for llvm.experimental.deoptimize. */
#define MCJIT_DEOPTIMIZE "__llvm_deoptimize"

/* Enclose the compilation and finalisation by LLVM. memory_manager_begin returns where to store an
 * error, if none is stored there; an error stored before memory_manager_end makes the finalisation
 * fail. */
struct cairn_error *memory_manager_begin(cairn_memory_manager *manager);
void memory_manager_end(cairn_memory_manager *manager);

/* Returns the error for a symbol that LLVM could not resolve, with status LLVM: LLVM ends the
 * process at the engine's next module. The status is OK if LLVM has resolved all symbols so far. */
const struct cairn_error *memory_manager_unresolved(const cairn_memory_manager *manager);

#endif
