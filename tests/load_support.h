/*
 * Support for the tests of loading: IR, compiled to an object in memory, becomes a module.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LOAD_SUPPORT_H
#define TESTS_LOAD_SUPPORT_H

#include "llvm_support.h"

#include <cairn/load.h>

/* The types of pointers to functions; IR that is parsed by support_parse has none. */
#if LLVM_VERSION_MAJOR >= 15
#define LOAD_FUNCTION "ptr"
#define LOAD_DESTROYER "ptr"
#else
#define LOAD_FUNCTION "void ()*"
#define LOAD_DESTROYER "void (i8*)*"
#endif

struct support_allocator;

/* The runtime of one test, and its allocator. */
extern cairn_runtime *runtime;
extern struct support_allocator counting;

/* Runs the tests that `add_tests` adds, each with its own runtime. Nothing may be left of it. */
int load_main(const char *name, void (*add_tests)(TCase *tests));

/* Compiles IR in the syntax of support_parse to an object, which the caller disposes of. */
LLVMMemoryBufferRef compile(const char *text);

/* Loads an object. `options` NULL means all zero. */
enum cairn_status load_object(LLVMMemoryBufferRef object, const struct cairn_load_options *options,
                              cairn_module **module, struct cairn_error *error);

/* Loads IR in the syntax of support_parse. `options` NULL means all zero. */
enum cairn_status load_ir(const char *text, const struct cairn_load_options *options,
                          cairn_module **module, struct cairn_error *error);

/* Loads IR and publishes the module. Fails the test if that is impossible. */
cairn_module *load(const char *text, const struct cairn_load_options *options);

/* Calls a function i32 (i32) of a module, which must define it. */
int call(const cairn_module *module, const char *name, int argument);

/* Retires a module and ends a grace period. Returns the number of modules that were freed. */
size_t retire(cairn_module *module);

/* Returns the name of the function at an address, or "" if it is not known. */
const char *name_at(const void *address);

/* Returns the first byte of the code of a function: on PPC64 ELFv1, what its descriptor holds. */
const void *code_of(const void *function);

/* Whether the host is PPC64, where the C library follows the chain of frames, and LLVM's default is
 * the medium code model. */
bool is_ppc64(void);

/* Asserts that the message contains the text. */
void assert_says(const struct cairn_error *error, const char *text);

#endif
