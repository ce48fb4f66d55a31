/*
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <string.h>

struct support_allocator allocations;
cairn_runtime *runtime;
struct ic_program program;
cairn_ic *ic;
struct ic_access access_0;
uint64_t random_state;
/* ---- Calling conventions ---- */

bool has_convention(uint32_t convention)
{
    switch (cairn_architecture_host()) {
    case CAIRN_ARCHITECTURE_X86_64:
        return true;
    case CAIRN_ARCHITECTURE_AARCH64:
        return convention != COLDCC;
    default:
        return convention != FASTCC && convention != PRESERVE_MOSTCC;
    }
}

/* ---- The handler ---- */

struct ic_seen seen;

static void handle(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    bool has_answer = seen.answer.type.kind != CAIRN_TYPE_VOID;
    seen.operand_count = miss->operand_count;
    ck_assert_uint_le(miss->operand_count, CAIRN_IC_OPERANDS_MAX);
    for (uint32_t i = 0; i < miss->operand_count; i++)
        seen.operands[i] = miss->operands[i];
    ic_assert_done(cairn_ic_return(miss, has_answer ? &seen.answer : NULL, &error), error);
    if (seen.also != NULL)
        seen.also(miss);
}

void missed(struct cairn_ic_miss *miss, void *user)
{
    ck_assert_ptr_eq(user, &seen);
    seen.misses++;
    handle(miss);
}

void missed_as_megamorphic(struct cairn_ic_miss *miss, void *user)
{
    ck_assert_ptr_eq(user, &seen);
    seen.megamorphic_misses++;
    handle(miss);
}

/* ---- Programs ---- */

const struct ic_function get = {
    .calling_convention = ANYREG,
    .result = INTEGER(64),
    .operand_count = 2,
    .operands = {POINTER, INTEGER(64)},
};

const struct ic_function get_by_c = {
    .calling_convention = C,
    .result = INTEGER(64),
    .operand_count = 2,
    .operands = {POINTER, INTEGER(64)},
};

const struct ic_function set = {
    .calling_convention = ANYREG,
    .operand_count = 2,
    .operands = {POINTER, INTEGER(64)},
};

void set_up(void)
{
    struct cairn_error error = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations)};
    allocations = (struct support_allocator){.fail_at = 0};
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    memset(&seen, 0, sizeof seen);
    program = (struct ic_program){.engine = NULL};
    ic = NULL;
    random_state = 20261122;
}

void tear_down(void)
{
    if (program.engine != NULL)
        ic_unload(&program);
    cairn_runtime_quiesce(runtime);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}

cairn_ic *create(cairn_site *site, struct cairn_ic_options options)
{
    struct cairn_error error = {0};
    cairn_ic *made = NULL;
    if (options.handler == NULL)
        options.handler = missed;
    options.user = &seen;
    ic_assert_done(cairn_ic_create(site, &options, &made, &error), error);
    return made;
}

void load(const struct ic_function *functions, uint32_t count)
{
    ic_load(&program, runtime, functions, count, IC_FIRST_SITE);
}

void load_one(const struct ic_function *function, struct cairn_ic_options options)
{
    load(function, 1);
    ic = create(program.sites[0], options);
}

void add(const struct cairn_ic_case *added)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_add(ic, added, CAIRN_RELAXED, &error), error);
}

void reset(void)
{
    struct cairn_error error = {0};
    ic_assert_done(ic_reset(ic, CAIRN_RELAXED, &error), error);
}

/* ---- Objects ---- */

struct cairn_ic_guard shape_guard(uint32_t shape)
{
    return (struct cairn_ic_guard){
        .offset = offsetof(struct object, shape), .width = sizeof(uint32_t), .key = shape};
}

struct cairn_ic_case constant_case(uint32_t shape, uint64_t constant)
{
    return (struct cairn_ic_case){
        .guard = shape_guard(shape), .action = CAIRN_IC_CONSTANT, .constant = constant};
}

struct cairn_ic_case load_case(uint32_t shape, unsigned field)
{
    return (struct cairn_ic_case){
        .guard = shape_guard(shape),
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)(offsetof(struct object, fields) + field * sizeof(uint64_t)),
                  .width = sizeof(uint64_t)},
    };
}

void add_constant(uint32_t shape, uint64_t constant)
{
    struct cairn_ic_case added = constant_case(shape, constant);
    add(&added);
}

uint64_t run_function(uint32_t index, const void *receiver)
{
    uint64_t result;
    ic_set_pointer(&access_0, 0, receiver);
    memset(access_0.result, 0xEE, sizeof access_0.result);
    program.functions[index](&access_0);
    memcpy(&result, access_0.result, sizeof result);
    return result;
}

uint64_t run_shape(uint32_t shape)
{
    struct object object = {.shape = shape, .fields = {10, 11, 12, 13, 14, 15}};
    return run_function(0, &object);
}

void answer(uint64_t number) { seen.answer = cairn_value_of_integer(64, (int64_t)number); }

void expect_miss(uint32_t shape)
{
    unsigned before = seen.misses + seen.megamorphic_misses;
    answer(ANSWER + shape);
    ck_assert_uint_eq(run_shape(shape), ANSWER + shape);
    ck_assert_uint_eq(seen.misses + seen.megamorphic_misses, before + 1);
}

void expect_hit(uint32_t shape, uint64_t result)
{
    unsigned before = seen.misses + seen.megamorphic_misses;
    ck_assert_uint_eq(run_shape(shape), result);
    ck_assert_uint_eq(seen.misses + seen.megamorphic_misses, before);
}

const struct ic_function *const getters[] = {&get, &get_by_c};

const uint32_t conventions[] = {ANYREG, C};

const struct cairn_ic_options no_options;

/* ---- Expectations ---- */

void expect_state(enum cairn_ic_state state, uint32_t count)
{
    struct cairn_ic_description description;
    cairn_ic_describe(ic, NULL, 0, &description);
    ck_assert_int_eq(cairn_ic_state(ic), state);
    ck_assert_uint_eq(ic_case_count(ic), count);
    ck_assert_int_eq(description.state, state);
    ck_assert_uint_eq(description.case_count, count);
}

void run_often(uint32_t shape, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        run_shape(shape);
}

int64_t first_target(const void *receiver, int64_t integer)
{
    (void)receiver;
    return integer + 77;
}

/* ---- Many caches ---- */

void add_to(cairn_ic *cache, const struct cairn_ic_case *added)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_add(cache, added, CAIRN_RELAXED, &error), error);
}

void add_constants(cairn_ic *cache, uint32_t count)
{
    for (uint32_t shape = 1; shape <= count; shape++) {
        struct cairn_ic_case added = constant_case(shape, 100 + shape);
        add_to(cache, &added);
    }
}

/* ---- Reading results ---- */

uint64_t read_bytes(const void *place, unsigned width)
{
    uint64_t number = 0;
    memcpy(&number, place, width);
    return number; /* little-endian, as every target of MCJIT */
}

/* ---- Failing allocations ---- */

void fail_each_allocation(enum cairn_status (*change)(struct cairn_error *error),
                          void (*expect_nothing)(void))
{
    enum { MANY = 1000 };
    struct cairn_error error = {0};
    for (size_t i = 1; i < MANY; i++) {
        allocations.calls = 0;
        allocations.fail_at = i;
        enum cairn_status status = change(&error);
        allocations.fail_at = 0;
        if (status == CAIRN_OK) {
            ck_assert_uint_lt(allocations.calls, i);
            return;
        }
        ck_assert_msg(status == CAIRN_ERROR_MEMORY, "%s", error.message);
        expect_nothing();
    }
    ck_abort_msg("it fails with every allocation");
}
