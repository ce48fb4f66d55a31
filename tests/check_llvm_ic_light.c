/*
 * Tests of the light handlers of inline caches: the operands that they get, the registers that
 * misses preserve, and what they may do.
 *
 * Environment: CAIRN_TEST_SEED selects other random functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/type.h"
#include "tests/ic_fixture.h"
#include "value/representation.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static unsigned light_misses;
static uint64_t operands_seen[CAIRN_IC_OPERANDS_MAX];
static uint32_t operands_wanted;
static bool makes_accesses;
static cairn_ic *cache_seen;
static void (*also)(void);

/* Changes registers that a C function may change. */
static void clobber(void)
{
#if defined(__x86_64__)
    __asm__ volatile("movl $7, %%eax\n\tmovd %%eax, %%xmm0\n\tpshufd $0, %%xmm0, %%xmm0\n\t"
                     "movaps %%xmm0, %%xmm7\n\tmovaps %%xmm0, %%xmm15\n\tmovl %%eax, %%ecx\n\t"
                     "movl %%eax, %%edx\n\tmovl %%eax, %%esi\n\tmovl %%eax, %%edi\n\t"
                     "movl %%eax, %%r8d\n\tmovl %%eax, %%r9d\n\tmovl %%eax, %%r10d"
                     :
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm7",
                       "xmm15", "cc");
#elif defined(__aarch64__)
    __asm__ volatile("mov x1, #7\n\tmov x9, x1\n\tmov x15, x1\n\tmov x18, x18\n\t"
                     "dup v0.2d, x1\n\tmov v7.16b, v0.16b\n\tmov v31.16b, v0.16b\n\tcmp x1, x9"
                     :
                     :
                     : "x1", "x9", "x15", "v0", "v7", "v31", "cc");
#elif defined(__powerpc64__)
    __asm__ volatile("li 4, 7\n\tmr 9, 4\n\tmr 10, 4\n\tmr 11, 4\n\tcmpdi 4, 7\n\tmtctr 4"
                     :
                     :
                     : "4", "9", "10", "11", "cr0", "ctr");
#endif
}

static bool missed_lightly(cairn_ic *cache, const uint64_t *operands, uint64_t *result, void *user)
{
    ck_assert_ptr_eq(user, &seen);
    cache_seen = cache;
    memcpy(operands_seen, operands, operands_wanted * sizeof *operands);
    light_misses++;
    if (also != NULL)
        also();
    clobber();
    if (!makes_accesses)
        return false;
    if (seen.answer.type.kind != CAIRN_TYPE_VOID)
        memcpy(result, seen.answer.bytes, sizeof *result);
    return true;
}

static const struct cairn_ic_options lightly = {.light_handler = missed_lightly};

static void begin(void)
{
    set_up();
    light_misses = 0;
    operands_wanted = 2;
    makes_accesses = true;
    also = NULL;
}

/* ---- Operands and registers ---- */

static struct cairn_type random_type(uint32_t convention)
{
    static const struct cairn_type types[] = {
        INTEGER(8), INTEGER(16), INTEGER(32), INTEGER(64), POINTER, FLOAT, DOUBLE,
    };
    for (;;) {
        struct cairn_type type = types[ic_below(&random_state, 7)];
        if (ic_can_pass(type, convention))
            return type;
    }
}

static struct ic_function random_function(uint32_t convention)
{
    struct ic_function function = {
        .calling_convention = convention,
        .result = INTEGER(64),
        .operand_count = 1 + ic_below(&random_state, 10),
        .keeps_operands = true,
        .kept_count = ic_below(&random_state, 20),
        .sign_count = ic_below(&random_state, 3),
        .order = ic_random(&random_state) | 1,
    };
    for (uint32_t i = 0; i < function.operand_count; i++)
        function.operands[i] = random_type(convention);
    for (uint32_t i = 0; i < function.kept_count; i++)
        function.kept[i] = ic_below(&random_state, 4) == 0 ? cairn_type_vector(CAIRN_INTEGER(32), 4)
                                                           : random_type(ANYREG);
    return function;
}

/* Whether all misses must call the light handler. */
static bool is_light(const struct ic_function *function)
{
    enum cairn_architecture host = cairn_architecture_host();
    bool is_ppc64 = host != CAIRN_ARCHITECTURE_X86_64 && host != CAIRN_ARCHITECTURE_AARCH64;
    for (uint32_t i = 0; i < function->operand_count; i++)
        if (is_ppc64 && function->operands[i].kind == CAIRN_TYPE_FLOAT)
            return false;
    return function->calling_convention == ANYREG;
}

static void check_operands(const struct ic_function *function, const struct cairn_value *given)
{
    for (uint32_t i = 0; i < function->operand_count; i++) {
        uint64_t word = 0;
        char name[64];
        uint32_t size = given[i].size;
        bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        memcpy((unsigned char *)&word + (is_big_endian ? sizeof word - size : 0), given[i].bytes,
               size);
        cairn_type_format(given[i].type, name, sizeof name);
        ck_assert_msg(operands_seen[i] == word,
                      "operand %" PRIu32 ", %s: 0x%" PRIx64 ", not 0x%" PRIx64, i, name,
                      operands_seen[i], word);
    }
}

static void check_misses(const struct ic_function *function, uint32_t index)
{
    struct cairn_value values[CAIRN_IC_OPERANDS_MAX];
    struct cairn_error error = {0};
    ic = create(program.sites[index], lightly);
    operands_wanted = function->operand_count;
    for (int round = 0; round < 6; round++) {
        unsigned before = light_misses;
        unsigned heavy = seen.misses;
        ic_fill_kept(function, &access_0, &random_state);
        for (uint32_t i = 0; i < function->operand_count; i++) {
            values[i] = ic_random_value(function->operands[i], &random_state);
            ic_set_operand(&access_0, i, &values[i]);
        }
        answer(ic_random(&random_state));
        makes_accesses = round % 2 == 0;
        program.functions[index](&access_0);
        ck_assert(!is_light(function) || light_misses == before + 1);
        ck_assert_uint_le(light_misses, before + 1);
        if (light_misses != before)
            check_operands(function, values);
        ck_assert_uint_eq(seen.misses - heavy, light_misses == before || !makes_accesses);
        ck_assert_mem_eq(access_0.result, seen.answer.bytes, 8);
        ic_check_kept(function, &access_0, "a miss");
    }
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
}

static const uint32_t tested_conventions[] = {ANYREG, C, FASTCC, COLDCC, PRESERVE_MOSTCC};
enum { CONVENTIONS = sizeof tested_conventions / sizeof *tested_conventions };

START_TEST(light_handlers_get_the_bits_of_all_operands_and_registers_are_preserved)
{
    enum { FUNCTIONS = 16 };
    struct ic_function functions[FUNCTIONS];
    uint64_t rounds = ic_rounds(6);
    random_state = support_seed_or(20261123);
    if (!has_convention(tested_conventions[_i]))
        return;
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < FUNCTIONS; i++)
            functions[i] = random_function(tested_conventions[_i]);
        load(functions, FUNCTIONS);
        for (unsigned i = 0; i < FUNCTIONS; i++)
            check_misses(&functions[i], i);
        ic_unload(&program);
        cairn_runtime_quiesce(runtime);
    }
    program.engine = NULL;
    ck_assert_uint_gt(light_misses, 0);
}
END_TEST

START_TEST(results_of_all_types_arrive)
{
    static const struct cairn_type types[] = {
        INTEGER(8), INTEGER(16), INTEGER(32), INTEGER(64), POINTER, FLOAT, DOUBLE,
    };
    struct ic_function function = get;
    function.result = types[_i];
    function.kept_count = 20;
    for (uint32_t i = 0; i < function.kept_count; i++)
        function.kept[i] = i % 3 == 0 ? CAIRN_DOUBLE : CAIRN_INTEGER(64);
    random_state = support_seed_or(20261123);
    if (!ic_can_return(function.result))
        return;
    load_one(&function, lightly);
    for (int round = 0; round < 20; round++) {
        seen.answer = ic_random_value(ic_declared_result(function.result), &random_state);
        uint64_t low = 0;
        value_copy_low(&low, sizeof low, seen.answer.bytes, seen.answer.size);
        ic_fill_kept(&function, &access_0, &random_state);
        struct cairn_value light = seen.answer;
        memcpy(seen.answer.bytes, &low, sizeof low);
        run_function(0, NULL);
        seen.answer = light;
        ck_assert_mem_eq(access_0.result, light.bytes, (size_t)function.result.bits / 8);
        ic_check_kept(&function, &access_0, "a miss");
    }
    ck_assert_uint_gt(light_misses + seen.misses, 0);
}
END_TEST

START_TEST(a_site_without_a_result_continues)
{
    load_one(&set, lightly);
    run_shape(1);
    ck_assert_uint_eq(light_misses, 1);
    ck_assert_uint_eq(seen.misses, 0);
}
END_TEST

/* ---- What light handlers may do ---- */

START_TEST(the_handler_is_called_with_the_operands_that_the_light_handler_refused)
{
    load_one(getters[_i], lightly);
    makes_accesses = false;
    expect_miss(1);
    ck_assert_uint_eq(light_misses, 1);
    ck_assert_uint_eq(seen.operand_count, 2);
    ck_assert_mem_eq(seen.operands[0].bytes, &operands_seen[0], sizeof operands_seen[0]);
    add_constant(1, 101);
    expect_hit(1, 101);
    ck_assert_uint_eq(light_misses, 1);
}
END_TEST

START_TEST(light_handlers_also_come_before_megamorphic_handlers_and_misses_are_counted)
{
    struct cairn_ic_description is;
    struct cairn_ic_options options = lightly;
    options.counts_hits = true;
    options.case_limit = 1;
    options.megamorphic_handler = missed_as_megamorphic;
    load_one(getters[_i], options);
    add_constant(1, 101);
    answer(ANSWER);
    ck_assert_uint_eq(run_shape(2), ANSWER);
    add_constant(2, 102);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    ck_assert_uint_eq(run_shape(3), ANSWER);
    ck_assert_uint_eq(light_misses, 2);
    ck_assert_uint_eq(seen.megamorphic_misses, 0);
    cairn_ic_describe(ic, NULL, 0, &is);
    ck_assert_uint_eq(is.misses, 2);
    makes_accesses = false;
    ck_assert_uint_eq(run_shape(3), ANSWER);
    ck_assert_uint_eq(seen.megamorphic_misses, 1);
    cairn_ic_describe(ic, NULL, 0, &is);
    ck_assert_uint_eq(is.misses, 3);
}
END_TEST

static unsigned depth;
static void go_deeper(void)
{
    struct object object = {.shape = 100 + depth};
    struct ic_access inner = access_0;
    if (++depth > 5)
        return;
    ic_set_pointer(&inner, 0, &object);
    program.functions[0](&inner);
    ck_assert_uint_eq(read_bytes(inner.result, 8), ANSWER);
}

START_TEST(a_light_handler_may_reach_the_same_site)
{
    load_one(getters[_i], lightly);
    depth = 0;
    also = go_deeper;
    answer(ANSWER);
    ck_assert_uint_eq(run_shape(1), ANSWER);
    ck_assert_uint_eq(light_misses, 6);
}
END_TEST

/* Walks from this function through the exit to the frame of the site. */
static unsigned frames_found;
static void walk(void)
{
    static struct cairn_context context;
    struct cairn_frame frame;
    struct cairn_record record;
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_context_save(&context), 0);
    enum cairn_status status = cairn_frame_from_context(runtime, &context, true, &frame, &error);
    for (int i = 0; i < 20 && status == CAIRN_OK && frame.pc != 0 && frame.module == NULL; i++)
        status = cairn_frame_caller(&frame, &error);
    ic_assert_done(status, error);
    ck_assert_ptr_nonnull(frame.module);
    ck_assert(cairn_frame_record(&frame, &record));
    ck_assert_uint_eq(cairn_record_id(record), IC_FIRST_SITE);
    ic_assert_done(cairn_frame_caller(&frame, &error), error);
    ck_assert_ptr_null(frame.module);
    ic_assert_done(cairn_frame_caller(&frame, &error), error);
    frames_found++;
}

START_TEST(the_stack_can_be_walked_from_a_light_handler)
{
    load_one(getters[_i], lightly);
    also = walk;
    answer(ANSWER);
    frames_found = 0;
    ck_assert_uint_eq(run_shape(1), ANSWER);
    ck_assert_uint_eq(frames_found, 1);
}
END_TEST

static void destroy(void)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
}

START_TEST(a_light_handler_may_destroy_its_cache)
{
    load_one(getters[_i], lightly);
    also = destroy;
    answer(ANSWER);
    ck_assert_uint_eq(run_shape(1), ANSWER);
    cairn_runtime_quiesce(runtime);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
}
END_TEST

START_TEST(a_light_handler_gets_its_cache)
{
    load_one(getters[_i], lightly);
    answer(ANSWER);
    ck_assert_uint_eq(run_shape(1), ANSWER);
    ck_assert_ptr_eq(cache_seen, ic);
}
END_TEST

static jmp_buf outside;

static void jump_outside(void) { longjmp(outside, 1); }

START_TEST(a_light_handler_may_longjmp_over_compiled_frames)
{
    load_one(getters[_i], lightly);
    also = jump_outside;
    answer(ANSWER);
    for (volatile unsigned i = 1; i <= 3; i++) {
        if (setjmp(outside) == 0)
            ck_assert_uint_eq(run_shape(1), 0); /* does not return */
        ck_assert_uint_eq(light_misses, i);
    }
    also = NULL;
    ck_assert_uint_eq(run_shape(1), ANSWER);
}
END_TEST

static struct cairn_context saved;

static void resume_saved(void) { cairn_context_resume(&saved); }

START_TEST(a_light_handler_may_resume_a_context)
{
    load_one(getters[_i], lightly);
    also = resume_saved;
    answer(ANSWER);
    for (volatile unsigned i = 1; i <= 3; i++) {
        if (cairn_context_save(&saved) == 0)
            ck_assert_uint_eq(run_shape(1), 0); /* does not return */
        ck_assert_uint_eq(light_misses, i);
    }
    also = NULL;
    ck_assert_uint_eq(run_shape(1), ANSWER);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("light handlers of inline caches");
    TCase *tests = tcase_create("light handlers");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, tear_down);
    tcase_add_loop_test(tests,
                        light_handlers_get_the_bits_of_all_operands_and_registers_are_preserved, 0,
                        CONVENTIONS);
    tcase_add_loop_test(tests, results_of_all_types_arrive, 0, 7);
    tcase_add_test(tests, a_site_without_a_result_continues);
    tcase_add_loop_test(
        tests, the_handler_is_called_with_the_operands_that_the_light_handler_refused, 0, 2);
    tcase_add_loop_test(
        tests, light_handlers_also_come_before_megamorphic_handlers_and_misses_are_counted, 0, 2);
    tcase_add_loop_test(tests, a_light_handler_may_reach_the_same_site, 0, 2);
    tcase_add_loop_test(tests, the_stack_can_be_walked_from_a_light_handler, 0, 2);
    tcase_add_loop_test(tests, a_light_handler_may_destroy_its_cache, 0, 2);
    tcase_add_loop_test(tests, a_light_handler_gets_its_cache, 0, 2);
    tcase_add_loop_test(tests, a_light_handler_may_longjmp_over_compiled_frames, 0, 2);
    tcase_add_loop_test(tests, a_light_handler_may_resume_a_context, 0, 2);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
