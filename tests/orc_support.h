/*
 * Support for the tests of ORC: JITs that load into a runtime, and the unwind tables that LLVM
 * registers.
 *
 * A program that links this file has its own __register_frame and __deregister_frame, which LLVM
 * finds first, and which call the system's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_ORC_SUPPORT_H
#define TESTS_ORC_SUPPORT_H

#include "llvm_support.h"
#include "llvm/version.h"

#include <llvm-c/LLJIT.h>

/* A function NAME(x) that returns CALLEE(x). */
#define ORC_CALL                                                                                   \
    "declare i64 @%s(i64)\n"                                                                       \
    "define i64 @%s(i64 %%x) uwtable {\n"                                                          \
    "  %%r = call i64 @%s(i64 %%x)\n"                                                              \
    "  ret i64 %%r\n"                                                                              \
    "}\n"

typedef int64_t orc_function(int64_t x);

/* Fails the test if there is an error. */
void orc_assert_success(LLVMErrorRef failure);

/* Makes a JIT that loads through `orc`. */
LLVMOrcLLJITRef orc_create_jit(cairn_orc *orc);
void orc_dispose(LLVMOrcLLJITRef jit);

/* Parses a module from a format and its arguments, in a separate context. */
LLVMOrcThreadSafeModuleRef orc_parse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns a module with a function `name`: a patch point that calls a function of the test, which
 * returns its argument. */
LLVMOrcThreadSafeModuleRef orc_parse_site(const char *name, unsigned id);

/* Adds a module. If `tracker` is not NULL, it receives a resource tracker of the module, which the
 * caller releases. */
void orc_add(LLVMOrcLLJITRef jit, LLVMOrcThreadSafeModuleRef module,
             LLVMOrcResourceTrackerRef *tracker);

/* Removes what a tracker has, and releases it. */
void orc_remove(LLVMOrcResourceTrackerRef tracker);

/* Returns the function, which must be found. */
orc_function *orc_lookup(cairn_orc *orc, LLVMOrcLLJITRef jit, const char *name);

/* Looks up a function that must not be loaded, and returns why. */
struct cairn_error orc_lookup_failure(cairn_orc *orc, LLVMOrcLLJITRef jit, const char *name);

/* Defines a symbol of the host. */
void orc_define(LLVMOrcLLJITRef jit, const char *name, const void *address);

/* Returns the number of unwind tables that are registered. */
int orc_registered_tables(void);

#endif
