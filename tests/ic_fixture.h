/*
 * A runtime, a program and a cache for the tests of inline caches. The operand 0 of the usual
 * functions is an object; the guards of the usual cases compare its shape.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_IC_FIXTURE_H
#define TESTS_IC_FIXTURE_H

#include "tests/ic_support.h"

enum { ANYREG = CAIRN_CALLING_CONVENTION_ANYREG, C = CAIRN_CALLING_CONVENTION_C };
enum { FASTCC = 8, COLDCC = 9, PRESERVE_MOSTCC = 14 };

/* Returns whether LLVM knows the calling convention and passes arguments as in C. */
bool has_convention(uint32_t convention);

/* ---- The fixture ---- */

extern struct support_allocator allocations;
extern cairn_runtime *runtime;
extern struct ic_program program;
extern cairn_ic *ic;
extern struct ic_access access_0;
extern uint64_t random_state;

void set_up(void);
void tear_down(void);

/* ---- Handlers ---- */

/* What the handlers were called with, and what they return. */
struct ic_seen {
    unsigned misses;
    unsigned megamorphic_misses;
    uint32_t operand_count;
    struct cairn_value operands[CAIRN_IC_OPERANDS_MAX];
    struct cairn_value answer;                /* kind void: no answer */
    void (*also)(struct cairn_ic_miss *miss); /* called at the end of each handler, unless NULL */
};
extern struct ic_seen seen;

void missed(struct cairn_ic_miss *miss, void *user);
void missed_as_megamorphic(struct cairn_ic_miss *miss, void *user);
/* Sets the answer of the handlers. */
void answer(uint64_t number);

/* ---- Functions and caches ---- */

extern const struct ic_function get; /* an i64 of a pointer and an i64, anyregcc */
extern const struct ic_function get_by_c;
extern const struct ic_function set; /* the same without a result */
extern const struct ic_function *const getters[2];
extern const uint32_t conventions[2];
extern const struct cairn_ic_options no_options;

/* Creates a cache; the handler is `missed` unless the options name another one. */
cairn_ic *create(cairn_site *site, struct cairn_ic_options options);
void load(const struct ic_function *functions, uint32_t count);
/* Loads the function alone and creates a cache for its site. */
void load_one(const struct ic_function *function, struct cairn_ic_options options);

/* ---- Cases ---- */

struct object {
    uint32_t shape;
    uint32_t flags;
    uint64_t fields[6];
    void *outside;
};

struct cairn_ic_guard shape_guard(uint32_t shape);
struct cairn_ic_case constant_case(uint32_t shape, uint64_t constant);
struct cairn_ic_case load_case(uint32_t shape, unsigned field);

void add(const struct cairn_ic_case *added);
void add_constant(uint32_t shape, uint64_t constant);
void add_to(cairn_ic *cache, const struct cairn_ic_case *added);
/* Adds cases for the shapes from 1 to `count`; the result for shape 1 is 101, and so on. */
void add_constants(cairn_ic *cache, uint32_t count);
void reset(void);

/* A C function that a site or a case can call; returns `integer` + 77. */
int64_t first_target(const void *receiver, int64_t integer);

/* ---- Running ---- */

/* Runs function `index` and returns the first 64 bits of its result. */
uint64_t run_function(uint32_t index, const void *receiver);
/* Runs function 0 with an object of this shape, whose fields are 10 to 15. */
uint64_t run_shape(uint32_t shape);
void run_often(uint32_t shape, unsigned times);
uint64_t read_bytes(const void *place, unsigned width);

/* ---- Expectations ---- */

enum { ANSWER = 4711 };

/* Expects a miss, and the handler's answer. */
void expect_miss(uint32_t shape);
void expect_hit(uint32_t shape, uint64_t result);
void expect_state(enum cairn_ic_state state, uint32_t count);

/* Calls `change` with each of its allocations failing, one after the other, and then
 * `expect_nothing`, until `change` succeeds. */
void fail_each_allocation(enum cairn_status (*change)(struct cairn_error *error),
                          void (*expect_nothing)(void));

#endif
