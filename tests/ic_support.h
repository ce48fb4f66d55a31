/*
 * Functions with a site for an inline cache, for the tests of caches. Such a function loads the
 * site's operands, runs the site, and stores its result.
 *
 * It takes a struct ic_access and touches nothing else, so that threads and signal handlers can run
 * it at the same time. It keeps values in registers across the site, which show whether the
 * registers are preserved.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_IC_SUPPORT_H
#define TESTS_IC_SUPPORT_H

#include "allocator_support.h"
#include "llvm_support.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    IC_SLOT_BYTES = 64, /* size of the largest register */
    IC_KEPT_MAX = 40,
    IC_SIGNS_MAX = 6,
    IC_OPERANDS_MAX = CAIRN_IC_OPERANDS_MAX + 1, /* one more than allowed */
    IC_FUNCTIONS_MAX = 64,
    IC_FIRST_SITE = 100 /* ID of function 0's site; the other IDs follow */
};

/* Initialisers of types. */
#define INTEGER(width)                                                                             \
    {                                                                                              \
        .kind = CAIRN_TYPE_INTEGER, .bits = (width)                                                \
    }
#define POINTER                                                                                    \
    {                                                                                              \
        .kind = CAIRN_TYPE_POINTER, .bits = 64                                                     \
    }
#define FLOAT                                                                                      \
    {                                                                                              \
        .kind = CAIRN_TYPE_FLOAT, .bits = 32                                                       \
    }
#define DOUBLE                                                                                     \
    {                                                                                              \
        .kind = CAIRN_TYPE_DOUBLE, .bits = 64                                                      \
    }

/* Begins with the value in the layout of struct cairn_value. */
typedef unsigned char ic_slot[IC_SLOT_BYTES];

/* The data that a function reads and writes. */
struct ic_access {
    _Alignas(IC_SLOT_BYTES) ic_slot operands[IC_OPERANDS_MAX];
    ic_slot operands_after[IC_OPERANDS_MAX];
    ic_slot result;
    ic_slot kept[IC_KEPT_MAX];
    ic_slot kept_after[IC_KEPT_MAX];
    int64_t signs[IC_SIGNS_MAX];
    int64_t signs_after[IC_SIGNS_MAX]; /* 1: less than zero; 2: not less */
};

typedef void ic_run(struct ic_access *access);

/* The description of a function. Members that are left out are zero. */
struct ic_function {
    uint32_t calling_convention;
    struct cairn_type result; /* kind CAIRN_TYPE_VOID, which is 0: no result */
    uint32_t operand_count;
    struct cairn_type operands[IC_OPERANDS_MAX];
    /* C function pointer that the site calls until it is patched; NULL: no call. */
    const void *target;
    /* 0: enough for the call; without a target, every second function has space for the first case
     * of a cache. */
    uint32_t byte_count;
    /* Registers of the operands and of the result at the site, as inline assembly names them
     * ("r12"). They are hints that LLVM may ignore. NULL: any register. */
    const char *operand_registers[IC_OPERANDS_MAX];
    const char *result_register;
    /* Whether the operands must be live across the site. They are then stored again after it. */
    bool keeps_operands;
    uint32_t kept_count;
    struct cairn_type kept[IC_KEPT_MAX];
    uint32_t sign_count;
    const char *features; /* target features; NULL: the default */
    /* Seed of the order in which values are loaded and stored; 0: the order of their numbers. */
    uint64_t order;
};

/* ---- Types ---- */

/* Whether the LLVM in use can pass such an operand, or return such a result, at a patch point. */
bool ic_can_pass(struct cairn_type type, uint32_t calling_convention);
bool ic_can_return(struct cairn_type type);
/* Returns the result type that the site is declared with: i64 for integers and pointers that the
 * LLVM in use cannot return from a patch point directly; before LLVM 19, these are all. */
struct cairn_type ic_declared_result(struct cairn_type type);

struct cairn_value ic_value(struct cairn_type type, const void *bytes);
/* Returns a value of random bits. Floating-point numbers are not NaNs. */
struct cairn_value ic_random_value(struct cairn_type type, uint64_t *random);
uint32_t ic_below(uint64_t *random, uint32_t bound);
uint64_t ic_random(uint64_t *random);

/* ---- A program ---- */

struct ic_program {
    LLVMContextRef context;
    cairn_engine *engine;
    ic_run *functions[IC_FUNCTIONS_MAX];
    cairn_site *sites[IC_FUNCTIONS_MAX];
};

/* Compiles the functions into one module of the runtime; the IDs of their sites begin with
 * `first_site`. */
void ic_load(struct ic_program *program, cairn_runtime *runtime,
             const struct ic_function *functions, uint32_t count, uint64_t first_site);
/* The same, with additional compiled functions that sites may call: IR in the syntax of LLVM 15, or
 * NULL. */
void ic_load_with(struct ic_program *program, cairn_runtime *runtime,
                  const struct ic_function *functions, uint32_t count, uint64_t first_site,
                  const char *text);
const void *ic_find(struct ic_program *program, const char *name);
void ic_unload(struct ic_program *program);

/* ---- Running ---- */

/* Fills the values that the function keeps across the site with random bits. */
void ic_fill_kept(const struct ic_function *function, struct ic_access *access, uint64_t *random);
/* Fails the test if one of these values has changed. */
void ic_check_kept(const struct ic_function *function, const struct ic_access *access,
                   const char *what);
void ic_set_operand(struct ic_access *access, uint32_t index, const struct cairn_value *value);
void ic_set_pointer(struct ic_access *access, uint32_t index, const void *pointer);

/* ---- The environment ---- */

/* Returns `usual`, scaled by CAIRN_TEST_ROUNDS: that is 60 on native hosts and less under
 * emulators. */
uint64_t ic_rounds(uint64_t usual);

/* ---- Changes of caches ---- */

uint32_t ic_case_count(cairn_ic *ic);

struct cairn_ic_change ic_adding(cairn_ic *ic, const struct cairn_ic_case *added);
struct cairn_ic_change ic_removing(cairn_ic *ic, const struct cairn_ic_guard *guard);
struct cairn_ic_change ic_resetting(cairn_ic *ic);
enum cairn_status ic_remove(cairn_ic *ic, const struct cairn_ic_guard *guard,
                            enum cairn_strength strength, struct cairn_error *error);
enum cairn_status ic_reset(cairn_ic *ic, enum cairn_strength strength, struct cairn_error *error);

/* Reset the caches of a module that are not empty, and remove all cases with the key from all
 * caches. Collect the changes in a visit, and make them with one call. Set `*count` to the number
 * of changes, unless `count` is NULL. */
enum cairn_status ic_reset_module(cairn_runtime *runtime, const cairn_module *module,
                                  enum cairn_strength strength, size_t *count,
                                  struct cairn_error *error);
enum cairn_status ic_remove_key(cairn_runtime *runtime, uint64_t key, enum cairn_strength strength,
                                size_t *count, struct cairn_error *error);

#define ic_assert_done(status, error)                                                              \
    do {                                                                                           \
        enum cairn_status ic_status = (status);                                                    \
        ck_assert_msg(ic_status == CAIRN_OK, "%s", (error).message);                               \
    } while (0)

#endif
