/*
 * llvm/program.h - reads IR from a file, and inspects it before and after it is compiled. Used by
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

/* Disposes of the program, and of its module unless an engine owns it. That engine must be
 * destroyed first. NULL is allowed. */
void program_dispose(struct program *program);

/* Creates an engine for the program's module, which the engine then owns. */
enum cairn_status program_create_engine(struct program *program, cairn_runtime *runtime,
                                        const struct cairn_engine_options *options,
                                        cairn_engine **engine, struct cairn_error *error);

/* Returns LLVM, with the first error that LLVM's code generator has reported; CAIRN_OK if there is
 * none. */
enum cairn_status program_status(const struct program *program, struct cairn_error *error);

/* Sets a function that LLVM calls before a fatal error ends the process. */
void program_on_fatal_error(void (*handler)(const char *reason));

/* ---- Functions ---- */

/* Returns the program's module, which an engine may own. */
LLVMModuleRef program_module(const struct program *program);

/* Returns a function that the module defines. If no function has this name, returns NULL and
 * sets NOT_FOUND, with a message that lists the defined functions. */
LLVMValueRef program_find_function(const struct program *program, const char *name,
                                   struct cairn_error *error);

/* Checks that this process defines all functions and variables that the module uses and does not
 * define, because LLVM ends the process otherwise. NOT_FOUND. */
enum cairn_status program_check_externals(const struct program *program, struct cairn_error *error);

/* Run the functions in llvm.global_ctors and llvm.global_dtors. The engine must be finalised. */
void program_run_constructors(cairn_engine *engine);
void program_run_destructors(cairn_engine *engine);

/* ---- Compiling for another target ---- */

struct compiled {
    LLVMMemoryBufferRef buffer;
    const void *bytes;
    size_t size;
};

/* Returns the architecture of a triple, or UNKNOWN. */
enum cairn_architecture program_find_architecture(const char *triple);

/* Returns the architecture of the module's triple, or the host's if the module has no triple;
 * UNKNOWN if Cairn does not know the triple. */
enum cairn_architecture program_architecture(const struct program *program);

/* Sets the program's target to `triple`, whatever its IR says. UNSUPPORTED if LLVM or Cairn does
 * not know the triple. */
enum cairn_status program_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error);

/* Compiles the module, as LLVM does for objects that are to be linked. The module must not be used
 * afterwards. Turns patch point liveness off for the process (cairn/llvm.h). UNSUPPORTED, LLVM. */
enum cairn_status program_compile(struct program *program, unsigned optimisation_level,
                                  struct compiled *compiled, struct cairn_error *error);

void compiled_release(struct compiled *compiled);

/* ---- Names by address ---- */

struct program_name {
    uint64_t address;
    const char *name; /* owned by the module */
};

struct program_names {
    struct program_name *entries;
    size_t count;
};

/* Finds the names and addresses of all functions that were loaded. MEMORY. */
enum cairn_status program_names_read(const struct program *program, cairn_engine *engine,
                                     struct program_names *names, struct cairn_error *error);

/* Returns the name of the function that begins at `address`, or NULL. */
const char *program_names_find(const struct program_names *names, uint64_t address);

void program_names_release(struct program_names *names);

#endif
