/*
 * llvm/program.h - IR from a file, looked at before and after it is compiled: for `cairn run`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_PROGRAM_H
#define LLVM_PROGRAM_H

#include <cairn/declaration.h>
#include <cairn/llvm.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One LLVM module in a context of its own. */
struct program;

/* Reads text or bitcode and verifies it. The sentence begins with the path and, where LLVM knows
 * it, line and column. SYSTEM, LLVM, MEMORY. */
enum cairn_status program_read(const char *path, struct program **program,
                               struct cairn_error *error);

/* The module too, unless an engine has it; then the engine goes first. NULL is allowed. */
void program_dispose(struct program *program);

/* An engine over `runtime` with the program's module, which from then on is the engine's. */
enum cairn_status program_create_engine(struct program *program, cairn_runtime *runtime,
                                        const struct cairn_engine_options *options,
                                        cairn_engine **engine, struct cairn_error *error);

/* LLVM, with the first error that LLVM's code generator has reported; CAIRN_OK if none. */
enum cairn_status program_status(const struct program *program, struct cairn_error *error);

/* What LLVM gives up on ends the process: `handler` is called before that. */
void program_on_fatal_error(void (*handler)(const char *reason));

/* ---- Functions ---- */

/* The program's, or its engine's. */
LLVMModuleRef program_module(const struct program *program);

/* A function that the module defines; NULL and NOT_FOUND, with a sentence that names those that
 * there are, if it does not. */
LLVMValueRef program_find_function(const struct program *program, const char *name,
                                   struct cairn_error *error);

/* Functions and variables that the module uses and does not define have to be in this process,
 * because LLVM ends it otherwise. NOT_FOUND. */
enum cairn_status program_check_externals(const struct program *program, struct cairn_error *error);

/* After finalisation: what llvm.global_ctors and llvm.global_dtors name. */
void program_run_constructors(cairn_engine *engine);
void program_run_destructors(cairn_engine *engine);

/* ---- Names by address ---- */

struct program_name {
    uint64_t address;
    const char *name; /* the module's */
};

struct program_names {
    struct program_name *entries;
    size_t count;
};

/* All functions that were loaded. MEMORY. */
enum cairn_status program_names_read(const struct program *program, cairn_engine *engine,
                                     struct program_names *names, struct cairn_error *error);

/* The function that begins at `address`; NULL if none does. */
const char *program_names_find(const struct program_names *names, uint64_t address);

void program_names_release(struct program_names *names);

#endif
