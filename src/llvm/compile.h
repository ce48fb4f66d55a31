/*
 * llvm/compile.h - IR into an object for any machine that LLVM has a code generator for: what
 * `cairn run` shows of programs that this machine cannot run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_COMPILE_H
#define LLVM_COMPILE_H

#include "llvm/program.h"

#include <cairn/architecture.h>

struct compiled {
    LLVMMemoryBufferRef buffer;
    const void *bytes;
    size_t size;
};

/* Of a triple; UNKNOWN where Cairn knows none. */
enum cairn_architecture compile_find_architecture(const char *triple);

/* Of the module's triple; the host's if it has none, and UNKNOWN where Cairn knows none. */
enum cairn_architecture compile_architecture(const struct program *program);

/* From now on the program is for `triple`, whatever its IR says. UNSUPPORTED (neither LLVM nor
 * Cairn knows all triples). */
enum cairn_status compile_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error);

/* Compiles the module, which is spent by it, as LLVM does for objects that are to be linked; patch
 * point liveness is off in this process then (cairn/llvm.h). UNSUPPORTED, LLVM. */
enum cairn_status compile_object(struct program *program, unsigned optimisation_level,
                                 struct compiled *compiled, struct cairn_error *error);

void compile_release(struct compiled *compiled);

#endif
