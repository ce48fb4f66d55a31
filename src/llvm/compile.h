/*
 * llvm/compile.h - compiles IR into an object for any target that LLVM supports. `cairn run` uses
 * it for programs that cannot run on the host.
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

/* Returns the architecture of a triple, or UNKNOWN. */
enum cairn_architecture compile_find_architecture(const char *triple);

/* Returns the architecture of the module's triple, or the host's if the module has no triple;
 * UNKNOWN if Cairn does not know the triple. */
enum cairn_architecture compile_architecture(const struct program *program);

/* Sets the program's target to `triple`, whatever its IR says. UNSUPPORTED if LLVM or Cairn does
 * not know the triple. */
enum cairn_status compile_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error);

/* Compiles the module, as LLVM does for objects that are to be linked. The module must not be used
 * afterwards. Turns patch point liveness off for the process (cairn/llvm.h). UNSUPPORTED, LLVM. */
enum cairn_status compile_object(struct program *program, unsigned optimisation_level,
                                 struct compiled *compiled, struct cairn_error *error);

void compile_release(struct compiled *compiled);

#endif
