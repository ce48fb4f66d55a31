/*
 * object_ir.h - IR with every kind of symbol and reference, compiled for any target, code model and
 * relocation model.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_OBJECT_IR_H
#define TESTS_OBJECT_IR_H

#include "llvm_support.h"

#include <llvm-c/TargetMachine.h>

struct object_ir_options {
    const char *triple; /* NULL: the host's */
    LLVMCodeModel code_model;
    LLVMRelocMode relocation_model;
    LLVMCodeGenOptLevel level;
};

/* A function i32 (i32) of the IR, and what it returns for an argument. The functions must be called
 * in this order, each once. `host_add` adds two numbers, and `host_byte` is 50. */
struct object_ir_call {
    const char *name;
    int argument;
    int result;
};
extern const struct object_ir_call object_ir_calls[];
extern const size_t object_ir_call_count;

/* Compiles the IR. Returns NULL if LLVM has no such target. The IR needs opaque pointers: NULL with
 * LLVM 14. */
LLVMMemoryBufferRef object_ir_compile(const struct object_ir_options *options);

#endif
