/*
 * Support for the tests of cairn_check_module: modules that it refuses crash the LLVM in use, and
 * similar modules that it accepts compile.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LLVM_CHECK_SUPPORT_H
#define TESTS_LLVM_CHECK_SUPPORT_H

#include "llvm_support.h"
#include "llvm/version.h"

/* The context of all modules, for one test. */
extern LLVMContextRef context;

/* Runs the tests that `add_tests` adds, each with its own context. */
int check_main(const char *name, void (*add_tests)(TCase *tests));

/* How a module is checked and compiled. */
struct judgement {
    const char *triple;
    unsigned optimisation_level;
    bool fills_memory;
    bool uses_fast_isel;
};

static const struct judgement usual = {0};
static const struct judgement x86_64 = {.triple = "x86_64-linux-gnu"};
static const struct judgement aarch64 = {.triple = "aarch64-linux-gnu"};
static const struct judgement riscv64 = {.triple = "riscv64-linux-gnu"};
static const struct judgement level_0 = {.triple = "x86_64-linux-gnu"};
static const struct judgement optimised = {.triple = "x86_64-linux-gnu", .optimisation_level = 2};

static const char *const all_triples[] = {"x86_64-linux-gnu",      "aarch64-linux-gnu",
                                          "powerpc64le-linux-gnu", "powerpc64-linux-gnu",
                                          "s390x-linux-gnu",       "riscv64-linux-gnu"};
enum { ALL_TRIPLES = sizeof all_triples / sizeof *all_triples };

bool has_stackmaps(const char *triple);

LLVMModuleRef parse_for(const char *text, const char *triple);
enum support_outcome compile(LLVMModuleRef module, const struct judgement *judgement);
enum cairn_status check(LLVMModuleRef module, const struct judgement *judgement,
                        struct cairn_error *error);

/* Asserts that the module is refused, with an error message that names the function `culprit`, the
 * instruction (a call), the reason and the remedy. */
void assert_says_of(const char *instruction, const char *text, const struct judgement *judgement,
                    const char *why, const char *instead);
void assert_says(const char *text, const struct judgement *judgement, const char *why,
                 const char *instead);

/* Asserts that LLVM crashes. Undefined behaviour in LLVM need not crash the LLVM of another host:
 * the crashes were observed on x86-64. */
void assert_crashes(const char *text, const struct judgement *judgement);

/* Asserts that the module is refused, and that LLVM crashes. */
void assert_refused_rightly(const char *text, const struct judgement *judgement, const char *why,
                            const char *instead);

/* Asserts that the module is accepted, and that LLVM compiles it. */
void assert_compiles(const char *text, const struct judgement *judgement);

/* Asserts either of these. */
void assert_judged(bool is_accepted, const char *text, const struct judgement *judgement,
                   const char *why, const char *instead);

/* Compiles, and returns the size of a section; 0 if the object has none with this name. */
size_t section_size(const char *text, const struct judgement *judgement, const char *name);

/* Compiles, and returns the number of records. */
unsigned count_records(const char *text, const struct judgement *judgement);

/* Return IR in static memory. */

/* Returns the text with a pointer to the type for each `word`. */
char *with_pointer_type(const char *text, const char *word, const char *type);

/* A patch point. */
char *with_bytes(const char *bytes, const char *target);

/* A stack map with live values, or a patch point with arguments in any registers. */
char *with_values(unsigned count, bool anyreg, const char *type);

#define FAR_TARGET "inttoptr (i64 20015998343868 to ptr)"

#define STACKMAP(values)                                                                           \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0" values ")\n"
#define PATCHPOINT(bytes, target, values)                                                          \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 2, i32 " bytes   \
    ", ptr " target ", i32 0" values ")\n"

/* A statepoint with flags. */
#if LLVM_HAS_OPAQUE_POINTERS
#define STATEPOINT_DECLARATION                                                                     \
    "declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)\n"
#define STATEPOINT_WITH(flags)                                                                     \
    "call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, " \
    "ptr elementtype(void ()) @callee, i32 0, i32 " flags ", i32 0, i32 0)"
#define RELOCATE "@llvm.experimental.gc.relocate.p1"
#else
#define STATEPOINT_DECLARATION                                                                     \
    "declare token @llvm.experimental.gc.statepoint.p0f_isVoidf(i64, i32, void ()*, i32, i32, "    \
    "...)\n"
#define STATEPOINT_WITH(flags)                                                                     \
    "call token (i64, i32, void ()*, i32, i32, ...) "                                              \
    "@llvm.experimental.gc.statepoint.p0f_isVoidf(i64 1, i32 0, void ()* @callee, i32 0, "         \
    "i32 " flags ", i32 0, i32 0)"
#define RELOCATE "@llvm.experimental.gc.relocate.p1i8"
#endif
#define STATEPOINT_CALL STATEPOINT_WITH("0")
#define TRANSITION_CALL STATEPOINT_WITH("1")
#define LIVE_IN_CALL STATEPOINT_WITH("2")

#define GUARD                                                                                      \
    "declare void @llvm.experimental.guard(i1, ...)\n"                                             \
    "define void @culprit(i32 %x, i1 %c) {\n"                                                      \
    "  call void (i1, ...) @llvm.experimental.guard(i1 %c) [\"deopt\"(i32 %x)]\n  ret void\n}\n"

#endif
