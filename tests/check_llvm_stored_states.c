/*
 * Tests of frame states with more values than there are registers: guards leave with up to 300
 * values of all types at each level of optimisation, and random functions leave at random guards.
 *
 * Environment: CAIRN_TEST_SEED selects other functions (0 means the clock's time), and
 * CAIRN_TEST_ROUNDS is the number of functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "value/representation.h" /* before the global `context` */

#include "llvm_engine_support.h"
#include "value_generator.h"
#include "llvm/types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 300, VALUE_BYTES = 16, GUARDS = 3, EXTRA = 4, PATHS = 6, ROUNDS = 24 };

static cairn_exit *the_exit;
static unsigned left;
static void (*check_frame)(const struct cairn_frame_state *state,
                           const struct cairn_interpreter_frame *frame);

/* Reads the state, and returns its position from the compiled function. */
static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error = {0};
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    (void)user;
    left++;
    enum cairn_status status =
        cairn_frame_state_read(&call->frame, call->record, 0, &state, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_ok(cairn_frame_state_frame(&state, 0, &frame, NULL));
    check_frame(&state, &frame);
    const struct cairn_value result = cairn_value_of_integer(64, (int64_t)frame.position);
    ck_assert_ok(cairn_exit_return(call, &result, 1, NULL));
}

static struct cairn_value slot_of(const struct cairn_frame_state *state,
                                  const struct cairn_interpreter_frame *frame, uint32_t index)
{
    struct cairn_error error = {0};
    struct cairn_value value;
    enum cairn_status status = cairn_frame_state_value(state, frame, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "slot %u: %s", index, error.message);
    return value;
}

/* ---- A function: int64_t f(const void *input, int64_t at), which leaves at guard `at` ---- */

struct ir {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef word;
    LLVMValueRef function;
};

static struct ir begin_function(void)
{
    struct ir ir = {
        .module = LLVMModuleCreateWithNameInContext("states", context),
        .builder = LLVMCreateBuilderInContext(context),
        .word = LLVMInt64TypeInContext(context),
    };
    LLVMTypeRef parameters[] = {version_byte_pointer_type(context), ir.word};
    ir.function = LLVMAddFunction(ir.module, "f", LLVMFunctionType(ir.word, parameters, 2, 0));
    LLVMPositionBuilderAtEnd(ir.builder, LLVMAppendBasicBlockInContext(context, ir.function, ""));
    return ir;
}

static LLVMModuleRef end_function(const struct ir *ir, LLVMValueRef result)
{
    LLVMBuildRet(ir->builder, result);
    LLVMDisposeBuilder(ir->builder);
    support_verify(ir->module);
    return ir->module;
}

static LLVMValueRef number(const struct ir *ir, uint64_t value)
{
    return LLVMConstInt(ir->word, value, 0);
}

static void build_guard(const struct ir *ir, LLVMValueRef condition, struct cairn_guard guard,
                        const struct cairn_encoded_frame *frame)
{
    struct cairn_error error = {0};
    guard.exit = the_exit;
    guard.frames = frame;
    guard.frame_count = 1;
    ck_assert_msg(cairn_build_guard(ir->builder, condition, &guard, &error) != NULL, "%s",
                  error.message);
}

typedef int64_t compiled(const void *input, int64_t at);

/* The levels, then two of them with FastISel. */
static const struct cairn_engine_options paths[PATHS] = {
    {.optimisation_level = 0},
    {.optimisation_level = 1},
    {.optimisation_level = 2},
    {.optimisation_level = 3},
    {.optimisation_level = 1, .enable_fast_isel = true},
    {.optimisation_level = 2, .enable_fast_isel = true},
};

static cairn_engine *compile(LLVMModuleRef module, unsigned path, compiled **f)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &paths[path], &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    *f = (compiled *)(uintptr_t)get(engine, "f");
    return engine;
}

/* ---- Values of all types, loaded from the input ---- */

static unsigned char input[VALUES_MAX][VALUE_BYTES];
static uint32_t value_count;

static LLVMTypeRef type_of(uint32_t index)
{
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef real = LLVMDoubleTypeInContext(context);
    LLVMTypeRef types[] = {
        word,
        LLVMInt1TypeInContext(context),
        LLVMInt8TypeInContext(context),
        real,
        LLVMIntTypeInContext(context, 33),
        LLVMVectorType(LLVMInt32TypeInContext(context), 4),
        LLVMInt16TypeInContext(context),
        version_byte_pointer_type(context),
        LLVMFloatTypeInContext(context),
        LLVMInt32TypeInContext(context),
        LLVMPointerType(LLVMInt8TypeInContext(context), 1),
        LLVMVectorType(real, 2),
        LLVMIntTypeInContext(context, 24),
    };
    return types[index % (sizeof types / sizeof *types)];
}

static LLVMValueRef load(const struct ir *ir, LLVMTypeRef type, uint32_t index)
{
    LLVMTypeRef byte = LLVMInt8TypeInContext(context);
    LLVMValueRef offset = number(ir, (uint64_t)index * VALUE_BYTES);
    LLVMValueRef place =
        LLVMBuildGEP2(ir->builder, byte, LLVMGetParam(ir->function, 0), &offset, 1, "");
    place = LLVMBuildPointerCast(ir->builder, place, LLVMPointerType(type, 0), "");
    LLVMValueRef loaded = LLVMBuildLoad2(ir->builder, type, place, "");
    LLVMSetAlignment(loaded, 1);
    return loaded;
}

/* Loads a value. Integers are the low bits of a word. */
static LLVMValueRef load_value(const struct ir *ir, uint32_t index)
{
    LLVMTypeRef type = type_of(index);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || type == ir->word)
        return load(ir, type, index);
    return LLVMBuildTrunc(ir->builder, load(ir, ir->word, index), type, "");
}

/* The values are followed by the first one, a constant, and two dead locals. */
static void load_values(const struct ir *ir, LLVMValueRef *values)
{
    values[0] = load_value(ir, 0);
    for (uint32_t i = 1; i < value_count; i++)
        values[i] = load_value(ir, i);
    values[value_count] = values[0];
    values[value_count + 1] = LLVMConstReal(LLVMDoubleTypeInContext(context), 0.1);
    values[value_count + 2] = NULL;
    values[value_count + 3] = LLVMGetUndef(ir->word);
}

static void expect_value(uint32_t index, const struct cairn_value *value)
{
    struct cairn_type type = types_convert(type_of(index));
    uint64_t low;
    memcpy(&low, input[index], sizeof low);
    ck_assert_int_eq(value->type.kind, type.kind);
    ck_assert_uint_eq(value->type.bits, type.bits);
    ck_assert_uint_eq(value->type.element_count, type.element_count);
    ck_assert_uint_eq(value->type.address_space, type.address_space);
    if (type.kind == CAIRN_TYPE_INTEGER && type.element_count == 0)
        ck_assert_uint_eq(value_unsigned(value), low & UINT64_MAX >> (64 - type.bits));
    else
        ck_assert_mem_eq(value->bytes, input[index], value->size);
}

static void expect_values(const struct cairn_frame_state *state,
                          const struct cairn_interpreter_frame *frame)
{
    ck_assert_uint_eq(frame->local_count, value_count + EXTRA);
    for (uint32_t i = 0; i <= value_count; i++) {
        struct cairn_value value = slot_of(state, frame, i);
        expect_value(i % value_count, &value);
    }
    struct cairn_value constant = slot_of(state, frame, value_count + 1);
    ck_assert_double_eq(cairn_value_double(&constant), 0.1);
    for (uint32_t i = value_count + 2; i < value_count + EXTRA; i++)
        ck_assert_int_eq(slot_of(state, frame, i).type.kind, CAIRN_TYPE_VOID);
}

static void set_input(void)
{
    uint64_t random = value_count;
    for (uint32_t i = 0; i < value_count; i++)
        for (uint32_t k = 0; k < VALUE_BYTES; k++)
            input[i][k] = (unsigned char)(generate_below(&random, 63) + 1); /* not a NaN */
}

/* `counts` and `assumption` are tested with each path. */
static const uint32_t counts[] = {5, 14, 25, 100, VALUES_MAX};

enum { COUNTS = sizeof counts / sizeof *counts };

static void begin_values(uint32_t count)
{
    value_count = count;
    left = 0;
    check_frame = expect_values;
    set_input();
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
}

static LLVMModuleRef build_guards(void)
{
    LLVMValueRef values[VALUES_MAX + EXTRA];
    struct ir ir = begin_function();
    load_values(&ir, values);
    for (uint64_t i = 0; i < GUARDS; i++) {
        LLVMValueRef at = LLVMGetParam(ir.function, 1);
        build_guard(&ir, LLVMBuildICmp(ir.builder, LLVMIntNE, at, number(&ir, i), ""),
                    (struct cairn_guard){.id = i},
                    &(struct cairn_encoded_frame){
                        .position = i, .locals = values, .local_count = value_count + EXTRA});
    }
    return end_function(&ir, number(&ir, GUARDS));
}

START_TEST(guards_leave_with_all_values)
{
    compiled *f;
    begin_values(counts[_i % COUNTS]);
    cairn_engine *engine = compile(build_guards(), (unsigned)_i / COUNTS, &f);
    for (int64_t at = 0; at <= GUARDS; at++)
        ck_assert_int_eq(f(input, at), at);
    ck_assert_uint_eq(left, GUARDS);
    cairn_engine_destroy(engine);
    cairn_exit_destroy(the_exit);
}
END_TEST

static LLVMModuleRef build_assumption_guard(cairn_assumption *assumption)
{
    LLVMValueRef values[VALUES_MAX + EXTRA];
    struct ir ir = begin_function();
    load_values(&ir, values);
    build_guard(&ir, NULL,
                (struct cairn_guard){.id = 1, .assumptions = &assumption, .assumption_count = 1},
                &(struct cairn_encoded_frame){
                    .position = 9, .locals = values, .local_count = value_count + EXTRA});
    return end_function(&ir, number(&ir, 0));
}

START_TEST(broken_assumptions_leave_with_all_values)
{
    compiled *f;
    cairn_assumption *assumption;
    begin_values(counts[_i % COUNTS]);
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, NULL));
    cairn_engine *engine = compile(build_assumption_guard(assumption), (unsigned)_i / COUNTS, &f);
    ck_assert_int_eq(f(input, 0), 0);
    ck_assert_ok(cairn_assumption_break(assumption, CAIRN_SYNC, NULL));
    ck_assert_int_eq(f(input, 0), 9);
    ck_assert_uint_eq(left, 1);
    cairn_assumption_destroy(assumption);
    cairn_engine_destroy(engine);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* ---- What is changed ---- */

static void count_text(LLVMModuleRef module, const char *text, unsigned *count)
{
    char *printed = LLVMPrintModuleToString(module);
    *count = 0;
    for (const char *at = printed; (at = strstr(at, text)) != NULL; at++)
        ++*count;
    LLVMDisposeMessage(printed);
}

/* All guards of a function share the memory, and values that fit into registers stay there. */
START_TEST(only_level_0_stores_values_without_registers)
{
    static const struct {
        unsigned level;
        uint32_t count;
        bool stores;
    } cases[] = {{0, 3, false}, {0, 100, true}, {1, 100, false}};
    const struct cairn_check_options check = {.optimisation_level = cases[_i].level};
    unsigned allocas;
    unsigned stores;
    begin_values(cases[_i].count);
    LLVMModuleRef module = build_guards();
    for (unsigned i = 0; i < 2; i++) { /* the second check changes nothing */
        ck_assert_ok(cairn_check_module(module, &check, NULL));
        count_text(module, "alloca ", &allocas);
        count_text(module, "  store ", &stores);
        ck_assert_uint_eq(allocas, cases[_i].stores ? cases[_i].count : 0);
        ck_assert_uint_eq(stores, GUARDS * allocas);
    }
    support_verify(module);
    LLVMDisposeModule(module);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* A value that is live for the host itself has no other place than a register. */
START_TEST(values_outside_of_a_state_are_refused_at_level_0)
{
    LLVMValueRef values[VALUES_MAX + EXTRA];
    struct cairn_error error = {0};
    begin_values(VALUES_MAX);
    struct ir ir = begin_function();
    load_values(&ir, values);
    const struct cairn_patchpoint site = {.id = 1,
                                          .byte_count =
                                              cairn_patchpoint_minimum_bytes(ir.module, false),
                                          .live_values = values,
                                          .live_value_count = VALUES_MAX};
    ck_assert_ptr_nonnull(cairn_build_patchpoint(ir.builder, &site, &error));
    LLVMModuleRef module = end_function(&ir, number(&ir, 0));
    char *before = LLVMPrintModuleToString(module);
    ck_assert_int_eq(cairn_check_module(module, NULL, &error), CAIRN_ERROR_LLVM);
    char *after = LLVMPrintModuleToString(module);
    ck_assert_str_eq(before, after);
    assert_says(&error, "at -O0 LLVM runs out of registers for so many values");
    LLVMDisposeMessage(before);
    LLVMDisposeMessage(after);
    LLVMDisposeModule(module);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* ---- Random functions, and an interpreter of them ---- */

enum { STEPS = 120, VARIABLES = 64, KINDS = 4 };

/* `to` = `left` operation `right`, of variables; then perhaps a guard with the first `count`. */
struct step {
    unsigned operation;
    unsigned to;
    unsigned left;
    unsigned right;
    bool has_guard;
    uint32_t count;
};

static struct step steps[STEPS];
static uint64_t variables[VARIABLES];
static uint64_t seed;

/* The type of a variable: its value is the low bits of a word. */
static unsigned bits_of(uint32_t variable)
{
    static const unsigned bits[KINDS] = {64, 32, 8, 1};
    return bits[variable % KINDS];
}

static void make_steps(uint64_t *random)
{
    for (unsigned i = 0; i < STEPS; i++)
        steps[i] = (struct step){
            .operation = generate_below(random, 4),
            .to = generate_below(random, VARIABLES),
            .left = generate_below(random, VARIABLES),
            .right = generate_below(random, VARIABLES),
            .has_guard = generate_below(random, 4) == 0,
            .count = 1 + generate_below(random, VARIABLES),
        };
}

static uint64_t compute(const struct step *step, const uint64_t *words)
{
    uint64_t a = words[step->left];
    uint64_t b = words[step->right];
    const uint64_t results[] = {a + b, a - b, a * b, a ^ b};
    return results[step->operation];
}

/* Runs the steps up to `at`. */
static void interpret(int64_t at, uint64_t *words)
{
    memcpy(words, variables, sizeof variables);
    for (int64_t i = 0; i < STEPS && i <= at; i++)
        words[steps[i].to] = compute(&steps[i], words);
}

static LLVMValueRef build_operation(const struct ir *ir, const struct step *step,
                                    LLVMValueRef *words)
{
    LLVMValueRef a = words[step->left];
    LLVMValueRef b = words[step->right];
    switch (step->operation) {
    case 0:
        return LLVMBuildAdd(ir->builder, a, b, "");
    case 1:
        return LLVMBuildSub(ir->builder, a, b, "");
    case 2:
        return LLVMBuildMul(ir->builder, a, b, "");
    default:
        return LLVMBuildXor(ir->builder, a, b, "");
    }
}

static void build_step_guard(const struct ir *ir, unsigned number_of_step, LLVMValueRef *words)
{
    LLVMValueRef slots[VARIABLES];
    uint32_t count = steps[number_of_step].count;
    LLVMValueRef at = LLVMGetParam(ir->function, 1);
    for (uint32_t i = 0; i < count; i++)
        slots[i] =
            LLVMBuildTrunc(ir->builder, words[i], LLVMIntTypeInContext(context, bits_of(i)), "");
    build_guard(ir, LLVMBuildICmp(ir->builder, LLVMIntNE, at, number(ir, number_of_step), ""),
                (struct cairn_guard){.id = number_of_step},
                &(struct cairn_encoded_frame){.position = number_of_step,
                                              .locals = slots,
                                              .local_count = count / 2,
                                              .stack = slots + count / 2,
                                              .stack_count = count - count / 2});
}

static LLVMModuleRef build_steps(void)
{
    LLVMValueRef words[VARIABLES];
    struct ir ir = begin_function();
    for (uint32_t i = 0; i < VARIABLES; i++) {
        LLVMValueRef index = number(&ir, i);
        LLVMValueRef base = LLVMBuildPointerCast(ir.builder, LLVMGetParam(ir.function, 0),
                                                 LLVMPointerType(ir.word, 0), "");
        words[i] = LLVMBuildLoad2(ir.builder, ir.word,
                                  LLVMBuildGEP2(ir.builder, ir.word, base, &index, 1, ""), "");
    }
    for (unsigned i = 0; i < STEPS; i++) {
        words[steps[i].to] = build_operation(&ir, &steps[i], words);
        if (steps[i].has_guard)
            build_step_guard(&ir, i, words);
    }
    return end_function(&ir, number(&ir, UINT64_MAX));
}

static void expect_variables(const struct cairn_frame_state *state,
                             const struct cairn_interpreter_frame *frame)
{
    uint64_t words[VARIABLES];
    uint32_t count = frame->local_count + frame->stack_count;
    interpret((int64_t)frame->position, words);
    ck_assert_uint_eq(count, steps[frame->position].count);
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_value value = slot_of(state, frame, i);
        ck_assert_uint_eq(value.type.bits, bits_of(i));
        ck_assert_msg(value_unsigned(&value) == (words[i] & UINT64_MAX >> (64 - bits_of(i))),
                      "variable %u at step %u; CAIRN_TEST_SEED=%" PRIu64, i,
                      (unsigned)frame->position, seed);
    }
}

static void run_steps(unsigned path)
{
    compiled *f;
    cairn_engine *engine = compile(build_steps(), path, &f);
    for (int64_t at = 0; at < STEPS; at++) {
        int64_t expected = steps[at].has_guard ? at : -1;
        ck_assert_msg(f(variables, at) == expected, "step %d; CAIRN_TEST_SEED=%" PRIu64, (int)at,
                      seed);
    }
    cairn_engine_destroy(engine);
}

START_TEST(random_functions_leave_with_what_an_interpreter_computes)
{
    const char *rounds = getenv("CAIRN_TEST_ROUNDS");
    long count = rounds == NULL ? ROUNDS : strtol(rounds, NULL, 10);
    check_frame = expect_variables;
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    seed = support_seed_or(20261129);
    for (long i = 0; i < count; i++, seed++) {
        uint64_t random = seed * UINT64_C(0x9E3779B97F4A7C15);
        for (unsigned k = 0; k < VARIABLES; k++)
            variables[k] = (uint64_t)generate_below(&random, UINT32_C(1) << 31) << 33 |
                           generate_below(&random, UINT32_C(1) << 31);
        make_steps(&random);
        run_steps((unsigned)(i % PATHS));
    }
    cairn_exit_destroy(the_exit);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, guards_leave_with_all_values, 0, COUNTS * PATHS);
    tcase_add_loop_test(tests, broken_assumptions_leave_with_all_values, 0, COUNTS * PATHS);
    tcase_add_loop_test(tests, only_level_0_stores_values_without_registers, 0, 3);
    tcase_add_test(tests, values_outside_of_a_state_are_refused_at_level_0);
    tcase_add_test(tests, random_functions_leave_with_what_an_interpreter_computes);
}

int main(void) { return engine_main("stored values of frame states", add_tests); }
