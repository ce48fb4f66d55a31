/*
 * Support for the tests of libcairn-llvm: IR from text for every LLVM, children that may crash,
 * compiling for any target.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LLVM_SUPPORT_H
#define TESTS_LLVM_SUPPORT_H

#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <check.h>
#include <llvm/Config/llvm-config.h>
#include <stdbool.h>

#define ck_assert_ok(status) ck_assert_int_eq((status), CAIRN_OK)

/* Declares the intrinsics that are not overloaded, and the ones for void and i64. */
#define SUPPORT_INTRINSICS                                                                         \
    "declare void @llvm.experimental.stackmap(i64, i32, ...)\n"                                    \
    "declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)\n"                   \
    "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)\n"

/* The operand of `personality`: a function that is declared as i32 (...). */
#if LLVM_VERSION_MAJOR >= 15
#define SUPPORT_PERSONALITY "ptr @__gxx_personality_v0"
#else
#define SUPPORT_PERSONALITY "i32 (...)* @__gxx_personality_v0"
#endif

/* Returns a module from IR in the syntax of LLVM 15: `ptr` and `ptr addrspace(1)` become pointers
 * to i8 for an LLVM that has typed pointers. Fails the test if the IR cannot be parsed. */
LLVMModuleRef support_parse(LLVMContextRef context, const char *text);

/* Does the same as support_parse, and fails the test if LLVM's verifier refuses the module. */
LLVMModuleRef support_parse_valid(LLVMContextRef context, const char *text);

/* Prints the module and parses it again. Consumes `module`. */
LLVMModuleRef support_print_and_parse(LLVMModuleRef module);

void support_verify(LLVMModuleRef module);

/* Options of engines by which their code finds functions of the test. The last element of `symbols`
 * has no name; the array must be valid as long as the engine. */
struct support_symbol {
    const char *name;
    const void *address;
};
struct cairn_load_options support_symbols(const struct support_symbol *symbols);

/* Whether the LLVM in use has a code generator for the architecture. */
bool support_has_target(const char *triple);

/* Compiles in a child process, which may crash, and suppresses LLVM's output. Changes the module.
 * With the address sanitizer the child's memory is not limited, so callers must not compile
 * anything that fills it. */
enum support_outcome { SUPPORT_COMPILED, SUPPORT_CRASHED, SUPPORT_HUNG };
struct support_compilation {
    const char *triple; /* NULL: the host's */
    unsigned optimisation_level;
    enum cairn_liveness liveness;
    /* Whether FastISel is used at levels above 0, too; only in the child. */
    bool uses_fast_isel;
    /* Whether the child has little memory, for code that would fill all of it. */
    bool is_confined;
};
enum support_outcome support_compile(LLVMModuleRef module,
                                     const struct support_compilation *compilation);

/* Compiles in this process and returns the object. Fails the test if LLVM reports an error. Changes
 * the module. The caller frees the result with LLVMDisposeMemoryBuffer. */
LLVMMemoryBufferRef support_compile_to_memory(LLVMModuleRef module,
                                              const struct support_compilation *compilation);

/* Returns the number in a variable of the environment. */
uint64_t support_read_number(const char *variable, uint64_t otherwise);
/* Returns CAIRN_TEST_SEED, or `usual`, and prints it. 0 means a seed from the clock. */
uint64_t support_seed_or(uint64_t usual);

/* Runs the suite and returns the status for main. */
int support_run(Suite *suite);
/* Does the same. Under an emulator, it compiles a module first, which makes the tests faster. */
int support_main(Suite *suite);

/* LLVM cannot select statepoints for PPC64 (cairn_check_module refuses them). */
static inline bool support_has_statepoints(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    return host == CAIRN_ARCHITECTURE_X86_64 || host == CAIRN_ARCHITECTURE_AARCH64;
}

/* Compile what was added to the engine, and find a function or a site. Return NULL on failure. */
static inline void *support_compiled_function(cairn_engine *engine, const char *name,
                                              struct cairn_error *error)
{
    return cairn_engine_compile(engine, error) == CAIRN_OK
               ? cairn_engine_function(engine, name, error)
               : NULL;
}

static inline cairn_site *support_compiled_site(cairn_engine *engine, uint64_t id,
                                                struct cairn_error *error)
{
    return cairn_engine_compile(engine, error) == CAIRN_OK ? cairn_engine_site(engine, id, error)
                                                           : NULL;
}

#endif
