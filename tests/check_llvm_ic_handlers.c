/*
 * Tests of the handlers of inline caches: the operands and the frame that they get, and what they
 * may do.
 *
 * Environment: CAIRN_TEST_SEED selects other random functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/type.h"
#include "tests/ic_fixture.h"

#include <string.h>

/* ---- Arguments of handlers ---- */

static struct cairn_type random_type(uint32_t convention)
{
    static const struct cairn_type types[] = {
        INTEGER(8), INTEGER(16), INTEGER(32), INTEGER(64), POINTER, FLOAT, DOUBLE,
    };
    static const struct cairn_type elements[] = {INTEGER(8), INTEGER(32), FLOAT, DOUBLE};
    for (;;) {
        uint32_t choice = ic_below(&random_state, 8);
        struct cairn_type type = types[choice % 7];
        if (choice == 7) {
            type = elements[ic_below(&random_state, 4)];
            type = cairn_type_vector(type, 128 / type.bits);
        }
        if (ic_can_pass(type, convention))
            return type;
    }
}

static struct ic_function random_function(uint32_t convention)
{
    struct ic_function function = {
        .calling_convention = convention,
        .result = INTEGER(64),
        .operand_count =
            1 + ic_below(&random_state, convention == ANYREG ? 10 : CAIRN_IC_OPERANDS_MAX),
        .keeps_operands = true,
        .kept_count = ic_below(&random_state, 12),
        .sign_count = ic_below(&random_state, 3),
        .order = ic_random(&random_state) | 1,
    };
    for (uint32_t i = 0; i < function.operand_count; i++)
        function.operands[i] = random_type(convention);
    for (uint32_t i = 0; i < function.kept_count; i++)
        function.kept[i] = random_type(ANYREG);
    return function;
}

static void compare_operand(const struct ic_function *function, uint32_t index,
                            const struct cairn_value *given)
{
    char name[64];
    const struct cairn_value *got = &seen.operands[index];
    cairn_type_format(given->type, name, sizeof name);
    ck_assert_msg(type_equal(got->type, given->type) && got->size == given->size &&
                      memcmp(got->bytes, given->bytes, given->size) == 0,
                  "operand %u of %u, %s, in calling convention %u", index, function->operand_count,
                  name, function->calling_convention);
}

static void check_operands(const struct ic_function *function, uint32_t index)
{
    struct cairn_value values[CAIRN_IC_OPERANDS_MAX];
    struct cairn_error error = {0};
    ic = create(program.sites[index], no_options);
    for (int round = 0; round < 3; round++) {
        ic_fill_kept(function, &access_0, &random_state);
        for (uint32_t i = 0; i < function->operand_count; i++) {
            values[i] = ic_random_value(function->operands[i], &random_state);
            ic_set_operand(&access_0, i, &values[i]);
        }
        answer(ic_random(&random_state));
        program.functions[index](&access_0);
        ck_assert_uint_eq(seen.operand_count, function->operand_count);
        for (uint32_t i = 0; i < function->operand_count; i++)
            compare_operand(function, i, &values[i]);
        ck_assert_mem_eq(access_0.result, seen.answer.bytes, 8);
        ic_check_kept(function, &access_0, "a miss");
    }
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
}

static const uint32_t operand_conventions[] = {ANYREG, C, FASTCC, COLDCC, PRESERVE_MOSTCC};

enum { OPERAND_CONVENTIONS = sizeof operand_conventions / sizeof *operand_conventions };

START_TEST(handlers_get_all_operands_with_their_types)
{
    enum { FUNCTIONS = 16 };
    struct ic_function functions[FUNCTIONS];
    uint32_t convention = operand_conventions[_i];
    uint64_t rounds = ic_rounds(6);
    random_state = support_seed_or(20261122);
    if (!has_convention(convention))
        return;
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < FUNCTIONS; i++)
            functions[i] = random_function(convention);
        load(functions, FUNCTIONS);
        for (unsigned i = 0; i < FUNCTIONS; i++)
            check_operands(&functions[i], i);
        ic_unload(&program);
        cairn_runtime_quiesce(runtime);
    }
    program.engine = NULL;
}
END_TEST

static void check_miss(struct cairn_ic_miss *miss)
{
    struct cairn_function function;
    struct cairn_value operand;
    struct cairn_error error = {0};
    ck_assert_ptr_eq(miss->ic, ic);
    ck_assert_uint_eq(cairn_record_id(miss->call->record), IC_FIRST_SITE);
    ck_assert(cairn_frame_function(&miss->call->frame, &function));
    const struct cairn_declaration *site = cairn_record_declaration(miss->call->record);
    struct cairn_location location =
        cairn_record_location(miss->call->record, site->result.kind != CAIRN_TYPE_VOID);
    ic_assert_done(
        cairn_frame_at_location(&miss->call->frame, location, site->types[0], &operand, &error),
        error);
    ck_assert_mem_eq(operand.bytes, miss->operands[0].bytes, 8);
}

START_TEST(handlers_get_the_cache_and_the_frame)
{
    load_one(&get, no_options);
    seen.also = check_miss;
    expect_miss(1);
}
END_TEST

/* ---- Actions of handlers ---- */

static void add_missed_case(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    struct cairn_ic_case added = load_case(object->shape, 2);
    ic_assert_done(cairn_ic_add(miss->ic, &added, CAIRN_SYNC, &error), error);
}

START_TEST(a_handler_adds_the_case_that_was_missing)
{
    load_one(getters[_i], no_options);
    seen.also = add_missed_case;
    for (uint32_t shape = 1; shape <= 4; shape++) {
        expect_miss(shape);
        expect_hit(shape, 12);
    }
    expect_miss(5);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
}
END_TEST

enum { DEPTH = 10 };

static unsigned depth;

/* Reaches the same site recursively, each time with an object of another shape; the innermost call
 * adds a case. */
static void go_deeper(struct cairn_ic_miss *miss)
{
    struct ic_access inner = {.signs = {0}};
    struct object object = {.shape = 1000 + depth};
    struct cairn_error error = {0};
    if (depth == DEPTH) {
        add_missed_case(miss);
        return;
    }
    unsigned mine = ++depth;
    seen.answer = cairn_value_of_integer(64, 500 + mine);
    ic_set_pointer(&inner, 0, &object);
    program.functions[0](&inner);
    ck_assert_uint_eq(read_bytes(inner.result, 8), 500 + mine);
    struct cairn_value outer = cairn_value_of_integer(64, 500 + mine - 1);
    ic_assert_done(cairn_ic_return(miss, &outer, &error), error);
}

START_TEST(a_handler_may_reach_the_same_site)
{
    struct object object = {.shape = 999};
    load_one(getters[_i], no_options);
    depth = 0;
    seen.also = go_deeper;
    answer(500);
    ck_assert_uint_eq(run_function(0, &object), 500);
    ck_assert_uint_eq(seen.misses, DEPTH + 1);
    expect_state(CAIRN_IC_MONOMORPHIC, 1);
    expect_hit(1000 + DEPTH - 1, 12);
}
END_TEST

static void leave_function(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_exit_return(miss->call, NULL, 0, &error), error);
}

START_TEST(a_handler_may_return_from_the_function)
{
    load_one(getters[_i], no_options);
    seen.also = leave_function;
    answer(ANSWER);
    ck_assert_uint_eq(run_shape(1), 0xEEEEEEEEEEEEEEEE);
    ck_assert_uint_eq(seen.misses, 1);
    add_constant(1, 101);
    expect_hit(1, 101);
}
END_TEST

/* Continues without the compiled function: it would have stored what the site returns. */
static void interpret(struct ic_access *access, int64_t integer)
{
    const uint64_t result = 70000 + (uint64_t)integer;
    memcpy(access->result, &result, sizeof result);
}

static cairn_signature *interpret_signature;

static void deoptimise(struct cairn_ic_miss *miss, void *user)
{
    const struct cairn_value arguments[] = {cairn_value_of_pointer(&access_0), miss->operands[1]};
    struct cairn_error error = {0};
    ck_assert_ptr_eq(user, &seen);
    seen.megamorphic_misses++;
    ic_assert_done(cairn_exit_enter(miss->call, interpret_signature,
                                    (const void *)(uintptr_t)interpret, arguments, 2, &error),
                   error);
}

START_TEST(a_megamorphic_handler_may_leave_by_deoptimisation)
{
    const struct cairn_type types[] = {POINTER, INTEGER(64)};
    struct cairn_value value = cairn_value_of_integer(64, 9);
    ck_assert_ok(cairn_signature_create(NULL, NULL, 0, types, 2, &interpret_signature, NULL));
    load_one(getters[_i],
             (struct cairn_ic_options){.case_limit = 1, .megamorphic_handler = deoptimise});
    add_constants(ic, 2);
    ic_set_operand(&access_0, 1, &value);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_uint_eq(run_shape(i), 70009);
        ck_assert_uint_eq(seen.megamorphic_misses, i);
    }
    ck_assert_uint_eq(seen.misses, 0);
    reset();
    add_constant(1, 101);
    expect_hit(1, 101);
    cairn_signature_destroy(interpret_signature);
}
END_TEST

static void say_nothing(struct cairn_ic_miss *miss, void *user)
{
    (void)user;
    seen.misses++;
    seen.operands[0] = miss->operands[0];
}

START_TEST(the_code_continues_after_a_handler_that_returns_nothing)
{
    load_one(&get, (struct cairn_ic_options){.handler = say_nothing});
    run_shape(1);
    ck_assert_uint_eq(seen.misses, 1);
    add_constant(1, 101);
    expect_hit(1, 101);
}
END_TEST

static enum cairn_status return_status;

static struct cairn_error return_error;

static void return_wrongly(struct cairn_ic_miss *miss)
{
    struct cairn_value value = ic_value(CAIRN_FLOAT, &(float){1});
    return_status = cairn_ic_return(miss, &value, &return_error);
}

START_TEST(a_result_of_another_type_is_refused)
{
    load_one(&get, no_options);
    seen.also = return_wrongly;
    expect_miss(1);
    ck_assert_int_eq(return_status, CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(return_error.message, "i64"));
    ck_assert_ptr_nonnull(strstr(return_error.message, "float"));
}
END_TEST

START_TEST(a_result_at_a_site_without_one_is_refused)
{
    struct object object = {.shape = 1};
    load_one(&set, no_options);
    seen.also = return_wrongly;
    run_function(0, &object);
    ck_assert_uint_eq(seen.misses, 1);
    ck_assert_int_eq(return_status, CAIRN_ERROR_ARGUMENT);
}
END_TEST

static void destroy_cache(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_destroy(miss->ic, CAIRN_RELAXED, &error), error);
}

START_TEST(a_handler_may_destroy_the_cache_that_it_is_called_by)
{
    load_one(getters[_i], no_options);
    seen.also = destroy_cache;
    expect_miss(1);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    run_shape(1);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handlers of inline caches");
    TCase *tests = tcase_create("handlers");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, handlers_get_all_operands_with_their_types, 0, OPERAND_CONVENTIONS);
    tcase_add_test(tests, handlers_get_the_cache_and_the_frame);
    tcase_add_loop_test(tests, a_handler_adds_the_case_that_was_missing, 0, 2);
    tcase_add_loop_test(tests, a_handler_may_reach_the_same_site, 0, 2);
    tcase_add_loop_test(tests, a_megamorphic_handler_may_leave_by_deoptimisation, 0, 2);
    tcase_add_loop_test(tests, a_handler_may_return_from_the_function, 0, 2);
    tcase_add_test(tests, the_code_continues_after_a_handler_that_returns_nothing);
    tcase_add_test(tests, a_result_of_another_type_is_refused);
    tcase_add_test(tests, a_result_at_a_site_without_one_is_refused);
    tcase_add_loop_test(tests, a_handler_may_destroy_the_cache_that_it_is_called_by, 0, 2);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
