/*
 * Random functions with a site and many live values. They store everything that a test compares.
 *
 * Each function loads its values from `input`, stores them to `stored` directly before the site and
 * to `again` after it, and returns the values that it stores to `own_results`. Its caller keeps
 * `kept_input` and `signs` in registers across the call, and stores them to `kept` and `seen_signs`
 * afterwards. All loads and stores are volatile, so no value can be computed again.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_VALUE_GENERATOR_H
#define TESTS_VALUE_GENERATOR_H

#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    GENERATED_VALUES_MAX = 48, /* arguments of the site and live values */
    GENERATED_RESULTS_MAX = 2,
    GENERATED_KEPT_MAX = 40,
    GENERATED_SIGNS_MAX = 6,
    GENERATED_SLOT_BYTES = 64 /* size of the largest register */
};

typedef unsigned char generated_slot[GENERATED_SLOT_BYTES];

/* The memory of a function. Slots begin with the value in the layout of struct cairn_value. */
struct generated_buffers {
    _Alignas(16)
        generated_slot input[GENERATED_VALUES_MAX + 2]; /* element loads read past the end */
    generated_slot stored[GENERATED_VALUES_MAX];
    generated_slot again[GENERATED_VALUES_MAX];
    generated_slot site_result;
    generated_slot result_input[GENERATED_RESULTS_MAX + 2];
    generated_slot own_results[GENERATED_RESULTS_MAX];
    generated_slot returned[GENERATED_RESULTS_MAX];
    generated_slot kept_input[GENERATED_KEPT_MAX + 2];
    generated_slot kept[GENERATED_KEPT_MAX];
    int64_t signs[GENERATED_SIGNS_MAX];
    int64_t seen_signs[GENERATED_SIGNS_MAX]; /* 1: less than zero; 2: not less */
    int64_t scratch;
};

struct generated_value {
    struct cairn_type type;
    /* Whether nothing else in the function depends on the value. */
    bool is_changeable;
};

struct generated_function {
    uint64_t id;
    char name[16];
    char caller[16];
    bool is_stackmap;
    /* Number of recorded arguments of anyregcc, which come first in the buffers. */
    uint32_t argument_count;
    uint32_t live_value_count;
    struct generated_value values[GENERATED_VALUES_MAX];
    struct cairn_type site_result;
    struct cairn_type results[GENERATED_RESULTS_MAX];
    uint32_t result_count;
    struct cairn_type kept[GENERATED_KEPT_MAX];
    uint32_t kept_count;
    uint32_t sign_count;
};

uint32_t generate_below(uint64_t *random, uint32_t bound);

/* Writes a random value of the type, in the layout of struct cairn_value; halves are not NaNs. */
void generate_bytes(uint64_t *random, struct cairn_type type, unsigned char *bytes);

/* Adds the function and its caller to the module. */
void generate_function(LLVMModuleRef module, unsigned optimisation_level,
                       struct generated_buffers *buffers, uint64_t id, uint64_t *random,
                       struct generated_function *made);

/* Writes the values that replace the live values at the site to `rewritten`, which has space for
 * GENERATED_REWRITTEN_MAX, and returns their number. */
enum { GENERATED_REWRITTEN_MAX = 4096 };
struct generated_rewriting {
    uint32_t (*rewrite)(void *user, LLVMContextRef context, LLVMValueRef *live_values,
                        uint32_t count, LLVMValueRef *rewritten);
    void *user;
};

/* Does the same with other live values; `rewriting` may be NULL. */
void generate_function_rewriting(LLVMModuleRef module, unsigned optimisation_level,
                                 struct generated_buffers *buffers, uint64_t id, uint64_t *random,
                                 const struct generated_rewriting *rewriting,
                                 struct generated_function *made);

#endif
