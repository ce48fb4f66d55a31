/*
 * llvm/program.h - reads IR from a file, and compiles it to an object. Used by `cairn compile` and
 * `cairn run`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_PROGRAM_H
#define LLVM_PROGRAM_H

#include <cairn/architecture.h>
#include <cairn/llvm.h>
#include <stdint.h>

/* An LLVM module with its own context. */
struct program;

/* Reads text or bitcode and verifies it. The error message begins with the path and, if LLVM knows
 * them, line and column. SYSTEM, LLVM, MEMORY. */
enum cairn_status program_read(const char *path, struct program **program,
                               struct cairn_error *error);

/* Disposes of the program. NULL is allowed. */
void program_dispose(struct program *program);

/* Sets a function that LLVM calls before a fatal error ends the process. */
void program_on_fatal_error(void (*handler)(const char *reason));

/* Returns the architecture of a triple, or UNKNOWN. */
enum cairn_architecture program_find_architecture(const char *triple);

/* Sets the program's target to `triple`, whatever its IR says. UNSUPPORTED if LLVM or Cairn does
 * not know the triple. */
enum cairn_status program_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error);

struct program_options {
    unsigned optimisation_level; /* of the code generator: 0 to 3 */
    /* LLVM's names, for functions without attributes; "" is the architecture's oldest CPU, and the
     * CPU "host" is this machine's, with its features, which `features` adds to and overrides. */
    const char *cpu;
    const char *features;
    const char *passes; /* to run first, in the syntax of LLVM's command opt; NULL for none */
    enum cairn_id_conflicts id_conflicts;
    const struct cairn_pc_section *pc_sections; /* the PC sections to name in the manifest */
    size_t pc_section_count;
    void (*finding)(const struct cairn_finding *finding, void *user);
    void *user; /* of `finding` */
};

/* An object. */
struct compiled {
    LLVMMemoryBufferRef buffer;
    const void *bytes;
    size_t size;
};

/* Compiles the program to position-independent code, with a manifest (cairn_embed_manifest) and
 * with functions by which all of its functions can be called (llvm/invocation.h). The program can
 * only be disposed of afterwards. Turns patch point liveness off for the process (cairn/llvm.h).
 * Errors: UNSUPPORTED, LLVM, ARGUMENT (passes), and those of cairn_check_module and
 * cairn_embed_manifest. */
enum cairn_status program_compile(struct program *program, const struct program_options *options,
                                  struct compiled *compiled, struct cairn_error *error);

void compiled_release(struct compiled *compiled);

#endif
