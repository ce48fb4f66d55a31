/*
 * llvm/mcjit.h - what engines need of memory managers besides cairn/llvm.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_MCJIT_H
#define LLVM_MCJIT_H

#include <cairn/llvm.h>

/* Before something is finalised of which the outcome will be asked. */
void memory_manager_clear_status(cairn_memory_manager *manager);

#endif
