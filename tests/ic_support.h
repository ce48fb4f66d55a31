/*
 * Functions with a site for an inline cache, for the tests of those: they load the site's operands,
 * come to the site, and store what it gives.
 *
 * Such a function takes a struct ic_access and touches nothing else, so that threads and signal
 * handlers run it side by side. Values that it keeps across the site show whether registers
 * survive.
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
    IC_SLOT_BYTES = 64, /* the largest register's */
    IC_KEPT_MAX = 40,
    IC_SIGNS_MAX = 6,
    IC_OPERANDS_MAX = CAIRN_IC_OPERANDS_MAX + 1, /* one too many */
    IC_FUNCTIONS_MAX = 64,
    IC_FIRST_SITE = 100 /* ID of function 0's site; those of the others follow */
};

/* Begins with the value as a struct cairn_value has it. */
typedef unsigned char ic_slot[IC_SLOT_BYTES];

/* What a function reads and writes. */
struct ic_access {
    _Alignas(IC_SLOT_BYTES) ic_slot operands[IC_OPERANDS_MAX];
    ic_slot operands_after[IC_OPERANDS_MAX];
    ic_slot result;
    ic_slot kept[IC_KEPT_MAX];
    ic_slot kept_after[IC_KEPT_MAX];
    int64_t signs[IC_SIGNS_MAX];
    int64_t signs_after[IC_SIGNS_MAX]; /* 1: less than zero; 2: not */
};

typedef void ic_run(struct ic_access *access);

/* What a function is to be. All that is left out is zero. */
struct ic_function {
    uint32_t calling_convention;
    struct cairn_type result; /* kind CAIRN_TYPE_VOID, 0: none */
    uint32_t operand_count;
    struct cairn_type operands[IC_OPERANDS_MAX];
    /* A C function pointer that the site calls until it is patched; NULL: none. */
    const void *target;
    uint32_t byte_count; /* 0: enough */
    /* Registers, as inline assembly names them ("r12"), in which operands come to the site and in
     * which the result leaves it, if LLVM takes the hint. NULL: any. */
    const char *operand_registers[IC_OPERANDS_MAX];
    const char *result_register;
    /* The operands have to survive the site, and are stored again behind it. */
    bool keeps_operands;
    uint32_t kept_count;
    struct cairn_type kept[IC_KEPT_MAX];
    uint32_t sign_count;
    const char *features; /* of the target; NULL: the default */
    /* Seed of the order in which values are loaded and stored; 0: as they are numbered. */
    uint64_t order;
};

/* ---- Types ---- */

/* Whether the LLVM in use can pass such an operand, or return such a result, at a patch point. */
bool ic_can_pass(struct cairn_type type, uint32_t calling_convention);
bool ic_can_return(struct cairn_type type);
/* What the site is declared as: LLVM before 19 has i64 alone. */
struct cairn_type ic_declared_result(struct cairn_type type);

struct cairn_value ic_value(struct cairn_type type, const void *bytes);
/* A value of random bits; numbers are no NaNs. */
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
/* Compiled functions besides, which sites may call: IR with the pointers of LLVM 15, or NULL. */
void ic_load_with(struct ic_program *program, cairn_runtime *runtime,
                  const struct ic_function *functions, uint32_t count, uint64_t first_site,
                  const char *text);
const void *ic_find(struct ic_program *program, const char *name);
void ic_unload(struct ic_program *program);

/* ---- Running ---- */

/* Fills all that the function keeps with random values. */
void ic_fill_kept(const struct ic_function *function, struct ic_access *access, uint64_t *random);
/* Fails the test if something of it has changed. */
void ic_check_kept(const struct ic_function *function, const struct ic_access *access,
                   const char *what);
void ic_set_operand(struct ic_access *access, uint32_t index, const struct cairn_value *value);
void ic_set_pointer(struct ic_access *access, uint32_t index, const void *pointer);

/* ---- The environment ---- */

uint64_t ic_read_number(const char *variable, uint64_t otherwise);
/* CAIRN_TEST_SEED, or the usual one; printed. 0 means the clock's. */
uint64_t ic_seed(uint64_t usual);
/* `usual` natively; CAIRN_TEST_ROUNDS, which is 60 then and fewer under emulators, scales it. */
uint64_t ic_rounds(uint64_t usual);

#define ic_assert_done(status, error)                                                              \
    do {                                                                                           \
        enum cairn_status ic_status = (status);                                                    \
        ck_assert_msg(ic_status == CAIRN_OK, "%s", (error).message);                               \
    } while (0)

#endif
