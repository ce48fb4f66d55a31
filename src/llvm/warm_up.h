/*
 * llvm/warm_up.h - a module with which LLVM is warmed up.
 *
 * LLVM makes tables and other objects when it compiles for the first time, and its code is not in
 * the caches of the processor yet. That takes some milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_WARM_UP_H
#define LLVM_WARM_UP_H

#include <llvm-c/Core.h>

/* Returns a module of one function, in which instructions occur that JIT compilers emit often: a
 * loop, integers and floating-point numbers, memory, calls, and a patch point with live values. */
LLVMModuleRef warm_up_module(LLVMContextRef context);

#endif
