/*
 * Support for the tests of engines: a context and a runtime, modules, and sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LLVM_ENGINE_SUPPORT_H
#define TESTS_LLVM_ENGINE_SUPPORT_H

#include "llvm_support.h"
#include "llvm/version.h"

/* The context and the runtime of one test. */
extern LLVMContextRef context;
extern cairn_runtime *runtime;

/* Runs the tests that `add_tests` adds, each with its own context and runtime. */
int engine_main(const char *name, void (*add_tests)(TCase *tests));

typedef int64_t function(int64_t x);

/* Adds a function NAME: a patch point with a null target, which returns its argument. */
LLVMModuleRef parse_site(const char *name, unsigned id);
/* Adds a function NAME that returns `value`. */
LLVMModuleRef parse_constant(const char *name, int value);
/* Adds a function NAME that calls another one. */
LLVMModuleRef parse_call(const char *name, const char *callee);

cairn_engine *create_engine(LLVMModuleRef module);
/* Creates an engine of this level, which also runs LLVM's passes of this level. */
cairn_engine *create_engine_at(LLVMModuleRef module, unsigned level);
void add(cairn_engine *engine, LLVMModuleRef module);

/* Returns the number of loaded records with the ID. */
size_t count_records(uint64_t id);

/* Returns a function that is loaded. */
function *get(cairn_engine *engine, const char *name);

int64_t add_hundred(int64_t x);
int64_t add_thousand(int64_t x);

/* Makes the site call the target. */
void call_target(uint64_t id, function *target);

struct cairn_runtime_statistics statistics(void);

/* Asserts that the message contains the text. */
void assert_says(const struct cairn_error *error, const char *text);

/* Asserts that the function is not found, with an error whose message contains the text. */
void assert_not_loaded(cairn_engine *engine, const char *name, enum cairn_status status,
                       const char *text);

#endif
