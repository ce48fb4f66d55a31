/*
 * llvm/gc_passes.h - checks of modules for LLVM's passes that make statepoints.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_GC_PASSES_H
#define LLVM_GC_PASSES_H

#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the passes contain rewrite-statepoints-for-gc. Stores where it begins, if it is an
 * element of the list itself; otherwise 0. */
bool gc_passes_rewrite(const char *passes, size_t *start);

/* Checks that the module has what the pass place-safepoints calls, if it is one of the passes. */
CAIRN_MUST_CHECK enum cairn_status gc_passes_check_poll(LLVMModuleRef module, const char *passes,
                                                        struct cairn_error *error);

/* Checks the module before rewrite-statepoints-for-gc for code on which the pass crashes, or of
 * which it loses GC pointers. */
CAIRN_MUST_CHECK enum cairn_status gc_passes_check(LLVMModuleRef module, struct cairn_error *error);

/* Checks that the pass has left the module valid. */
CAIRN_MUST_CHECK enum cairn_status gc_passes_verify(LLVMModuleRef module,
                                                    struct cairn_error *error);

#endif
