/*
 * What the tests of libcairn-llvm share: IR from text for every LLVM, children that may crash,
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

/* What stands behind `personality`: a function, declared as returning i32 and taking anything. */
#if LLVM_VERSION_MAJOR >= 15
#define SUPPORT_PERSONALITY "ptr @__gxx_personality_v0"
#else
#define SUPPORT_PERSONALITY "i32 (...)* @__gxx_personality_v0"
#endif

/* A module from IR with the pointers of LLVM 15: `ptr` and `ptr addrspace(1)` become pointers to i8
 * where pointers still have types. Fails the test if it cannot be read. */
LLVMModuleRef support_parse(LLVMContextRef context, const char *text);

/* As support_parse, and fails the test if LLVM's verifier refuses it. */
LLVMModuleRef support_parse_valid(LLVMContextRef context, const char *text);

/* The same module, printed and parsed again. `module` is gone. */
LLVMModuleRef support_print_and_parse(LLVMModuleRef module);

void support_verify(LLVMModuleRef module);

/* Whether the LLVM in use has a code generator for the architecture. */
bool support_has_target(const char *triple);

/* Compiles in a child, which may crash, and without a word of LLVM's. Changes the module. A child
 * with the address sanitizer has all memory, so nothing that fills it may be tried there. */
enum support_outcome { SUPPORT_COMPILED, SUPPORT_CRASHED, SUPPORT_HUNG };
struct support_compilation {
    const char *triple; /* NULL means the host's */
    unsigned optimisation_level;
    enum cairn_liveness liveness;
    /* FastISel, at levels above 0, too; in the child alone. */
    bool uses_fast_isel;
    /* Little memory, for what fills all that there is. */
    bool is_confined;
};
enum support_outcome support_compile(LLVMModuleRef module,
                                     const struct support_compilation *compilation);

/* The object, compiled in this process; the test fails if LLVM reports an error. Changes the
 * module. To be freed with LLVMDisposeMemoryBuffer. */
LLVMMemoryBufferRef support_compile_to_memory(LLVMModuleRef module,
                                              const struct support_compilation *compilation);

/* Runs the suite; the status for main. */
int support_main(Suite *suite);

#endif
