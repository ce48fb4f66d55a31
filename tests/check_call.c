/*
 * Tests of calls of functions by their signatures, and of closures: against calls by the C
 * compiler, and against each other with random signatures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "base/type.h"
#include "stackmap_support.h"
#include "value/representation.h"

#include <cairn/cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3000, THREADS = 4, CALLS_OF_THREAD = 2000 };

/* Standard C has no 128-bit integers, and compilers warn about the name __int128. */
typedef int wide __attribute__((mode(TI)));

static cairn_runtime *runtime;

static void set_up(void) { ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL)); }
static void tear_down(void) { cairn_runtime_destroy(runtime); }

/* ---- Types and values ---- */

static struct cairn_type of_bits(uint32_t bits) { return CAIRN_INTEGER(bits); }
static struct cairn_type four_integers(void) { return cairn_type_vector(of_bits(32), 4); }

static struct cairn_value value_of(struct cairn_type type, const void *bytes)
{
    struct cairn_value value;
    ck_assert_ok(value_of_bytes(type, bytes, cairn_type_size(type), &value, NULL));
    return value;
}

static struct cairn_value integer(uint32_t bits, int64_t number)
{
    return cairn_value_of_integer(bits, number);
}

static struct cairn_value single(float number) { return value_of(CAIRN_FLOAT, &number); }

static struct cairn_value wide_integer(wide number)
{
    return value_of(CAIRN_INTEGER(128), &number);
}

static bool same_value(const struct cairn_value *left, const struct cairn_value *right)
{
    return type_equal(left->type, right->type) && left->size == right->size &&
           memcmp(left->bytes, right->bytes, sizeof left->bytes) == 0;
}

/* ---- Signatures ---- */

static cairn_signature *signature_of(const struct cairn_type *results, uint32_t result_count,
                                     const struct cairn_type *arguments, uint32_t argument_count)
{
    cairn_signature *signature;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_signature_create(NULL, results, result_count, arguments,
                                                      argument_count, &signature, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return signature;
}

/* Returns a signature with the arguments' types. */
static cairn_signature *signature_for(struct cairn_type result, const struct cairn_value *arguments,
                                      uint32_t count)
{
    struct cairn_type types[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    for (uint32_t i = 0; i < count; i++)
        types[i] = arguments[i].type;
    return signature_of(&result, result.kind != CAIRN_TYPE_VOID, types, count);
}

/* Returns the same integer with a type that is sign-extended in a signature. */
static struct cairn_value extended(struct cairn_value value)
{
    value.type.extends_sign = 1;
    return value;
}

static const struct {
    struct cairn_type type;
    const char *sentence;
} refused_arguments[] = {
    {{.kind = CAIRN_TYPE_VOID}, "argument 1 is void, which Cairn does not pass"},
    {{.kind = CAIRN_TYPE_INTEGER, .bits = 96}, "argument 1 is i96, which Cairn does not pass"},
    {{.kind = CAIRN_TYPE_X86_FP80, .bits = 80}, "argument 1 is x86_fp80, which"},
    {{.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 3}, "argument 1 is <3 x float>,"},
    {{.kind = CAIRN_TYPE_INTEGER, .bits = 1, .element_count = 16}, "argument 1 is <16 x i1>,"},
};

START_TEST(a_type_that_is_not_passed_is_refused_by_its_number)
{
    const struct cairn_type types[] = {of_bits(64), refused_arguments[_i].type};
    cairn_signature *signature = NULL;
    struct cairn_error error;
    ck_assert_int_eq(cairn_signature_create(NULL, NULL, 0, types, 2, &signature, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, refused_arguments[_i].sentence));
    ck_assert_ptr_null(signature);
}
END_TEST

START_TEST(more_arguments_or_results_than_there_may_be_are_refused)
{
    struct cairn_type types[CAIRN_SIGNATURE_ARGUMENTS_MAX + 1];
    cairn_signature *signature = NULL;
    struct cairn_error error;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        types[i] = of_bits(64);
    ck_assert_int_eq(cairn_signature_create(NULL, NULL, 0, types, 65, &signature, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "a signature has at most 64 arguments, not 65");
    ck_assert_int_eq(cairn_signature_create(NULL, types, 5, types, 1, &signature, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "a signature has at most 4 results, not 5");
    types[0] = (struct cairn_type){.kind = CAIRN_TYPE_VOID};
    ck_assert_int_eq(cairn_signature_create(NULL, types, 1, NULL, 0, &signature, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "result 0 is void, which is not returned in registers");
    ck_assert_int_eq(cairn_signature_create(NULL, NULL, 1, NULL, 0, &signature, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_signature_create: `results` is NULL");
    ck_assert_int_eq(cairn_signature_create(NULL, NULL, 0, NULL, 1, &signature, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_signature_create: `arguments` is NULL");
    ck_assert_int_eq(cairn_signature_create(NULL, NULL, 0, NULL, 0, NULL, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_signature_create: `signature` is NULL");
    ck_assert_ptr_null(signature);
    cairn_signature_destroy(NULL);
}
END_TEST

START_TEST(an_integer_of_two_registers_with_one_left_is_refused_where_compilers_differ)
{
    const struct cairn_type types[] = {of_bits(64), of_bits(64), of_bits(64),
                                       of_bits(64), of_bits(64), of_bits(128)};
    cairn_signature *signature = NULL;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_signature_create(NULL, NULL, 0, types, 6, &signature, &error);
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64) {
        ck_assert_int_eq(status, CAIRN_OK);
        cairn_signature_destroy(signature);
        return;
    }
    ck_assert_int_eq(status, CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "argument 5 is i128 with one register left for it, where "
                                    "compilers do not agree on its place");
    ck_assert_ptr_null(signature);
}
END_TEST

START_TEST(a_signature_without_memory_is_refused_and_leaves_nothing)
{
    const struct cairn_type types[] = {of_bits(64), CAIRN_DOUBLE};
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at++) {
        struct support_allocator counts = {.fail_at = fail_at};
        const struct cairn_allocator allocator = support_counting(&counts);
        cairn_signature *signature = NULL;
        enum cairn_status status =
            cairn_signature_create(&allocator, types, 1, types, 2, &signature, NULL);
        ck_assert((status == CAIRN_OK) == (signature != NULL));
        cairn_signature_destroy(signature);
        ck_assert_uint_eq(counts.outstanding_bytes, 0);
        if (status == CAIRN_OK)
            break;
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        failures++;
    }
    ck_assert_uint_eq(failures, 1);
}
END_TEST

static void add_two(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    int64_t sum = cairn_value_signed(&arguments[0]) + cairn_value_signed(&arguments[1]);
    ck_assert_int_eq(cairn_value_signed(&results[0]), 0);
    ck_assert_uint_eq(results[0].type.bits, 32);
    *(int *)user += 1;
    results[0] = integer(32, sum);
}

/* ---- Calls of C functions ---- */

static struct cairn_value call(const cairn_signature *signature, void (*function)(void),
                               const struct cairn_value *arguments, uint32_t count)
{
    struct cairn_value results[CAIRN_FUNCTION_RESULTS_MAX] = {{.size = 0}};
    struct cairn_error error = {0};
    const void *pointer;
    memcpy(&pointer, &function, sizeof pointer);
    enum cairn_status status = cairn_call(signature, pointer, arguments, count, results, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return results[0];
}

/* Multiplies each argument by a different factor, so that exchanged arguments change the result. */
static double mixed(int64_t a, double b, const char *c, int32_t d, float e, uint8_t f, double g,
                    int16_t h, int64_t i, float j, uint32_t k, double l, int8_t m, int64_t n,
                    double o, double p, double q, float r, double s, int64_t t)
{
    return (double)a + 2 * b + 3 * (double)*c + 5 * (double)d + 7 * (double)e + 11 * (double)f +
           13 * g + 17 * (double)h + 19 * (double)i + 23 * (double)j + 29 * (double)k + 31 * l +
           37 * (double)m + 41 * (double)n + 43 * o + 47 * p + 53 * q + 59 * (double)r + 61 * s +
           67 * (double)t;
}

START_TEST(a_c_function_gets_arguments_in_registers_and_on_the_stack)
{
    static const char letter = 'x';
    const struct cairn_value arguments[] = {
        integer(64, -3),
        cairn_value_of_double(0.5),
        cairn_value_of_pointer(&letter),
        extended(integer(32, -70000)),
        single(2.25F),
        integer(8, 200),
        cairn_value_of_double(-9),
        extended(integer(16, -1234)),
        integer(64, (int64_t)1 << 40),
        single(-1.5F),
        integer(32, 4000000000),
        cairn_value_of_double(77),
        extended(integer(8, -100)),
        integer(64, -9),
        cairn_value_of_double(1),
        cairn_value_of_double(2),
        cairn_value_of_double(3),
        single(4),
        cairn_value_of_double(5),
        integer(64, 6),
    };
    cairn_signature *signature = signature_for(CAIRN_DOUBLE, arguments, 20);
    struct cairn_value result = call(signature, (void (*)(void))mixed, arguments, 20);
    ck_assert_double_eq(cairn_value_double(&result),
                        mixed(-3, 0.5, &letter, -70000, 2.25F, 200, -9, -1234, (int64_t)1 << 40,
                              -1.5F, 4000000000, 77, -100, -9, 1, 2, 3, 4, 5, 6));
    cairn_signature_destroy(signature);
}
END_TEST

/* Passes pairs at odd and even registers, with none, one and two registers before the last one. */
static wide weigh(int64_t a, wide b, wide c, int64_t d, wide e, int64_t f, int64_t g, wide h)
{
    return (wide)a + 3 * b + 5 * c + 7 * (wide)d + 11 * e + 13 * (wide)f + 17 * (wide)g + 19 * h;
}
static wide weigh_less(wide a, int64_t b, wide c, int64_t d, wide e, int64_t f)
{
    return a + 3 * (wide)b + 5 * c + 7 * (wide)d + 11 * e + 13 * (wide)f;
}

START_TEST(a_c_function_gets_integers_of_two_registers)
{
    const wide b = 0x123456789ABCDEF * ((wide)UINT64_MAX + 1) + 5;
    const wide c = -b;
    const struct cairn_value arguments[] = {integer(64, 1),  wide_integer(b), wide_integer(c),
                                            integer(64, -2), wide_integer(7), integer(64, 3),
                                            integer(64, 4),  wide_integer(c)};
    cairn_signature *signature = signature_for(CAIRN_INTEGER(128), arguments, 8);
    struct cairn_value result = call(signature, (void (*)(void))weigh, arguments, 8);
    struct cairn_value expected = wide_integer(weigh(1, b, c, -2, 7, 3, 4, c));
    ck_assert(same_value(&result, &expected));
    cairn_signature_destroy(signature);
    const struct cairn_value others[] = {wide_integer(b), integer(64, -2), wide_integer(c),
                                         integer(64, 9),  wide_integer(c), integer(64, 8)};
    signature = signature_for(CAIRN_INTEGER(128), others, 6);
    result = call(signature, (void (*)(void))weigh_less, others, 6);
    expected = wide_integer(weigh_less(b, -2, c, 9, c, 8));
    ck_assert(same_value(&result, &expected));
    cairn_signature_destroy(signature);
}
END_TEST

static bool negate(bool value) { return !value; }
static int8_t narrow_result(int8_t value) { return (int8_t)-value; }
static uint32_t as_seen(int64_t value) { return (uint32_t)value; }
static float half_of(float value) { return value / 2; }
static const void *itself(const void *value) { return value; }
static void count_call(int64_t *calls) { ++*calls; }

START_TEST(a_c_function_returns_scalars_of_every_kind)
{
    int64_t calls = 0;
    const struct cairn_value arguments[] = {integer(1, 1), extended(integer(8, -5)),
                                            integer(64, -1), single(3),
                                            cairn_value_of_pointer(&calls)};
    cairn_signature *signature = signature_for(of_bits(1), &arguments[0], 1);
    struct cairn_value result = call(signature, (void (*)(void))negate, &arguments[0], 1);
    ck_assert(same_value(&result, &(struct cairn_value[]){integer(1, 0)}[0]));
    cairn_signature_destroy(signature);
    signature = signature_for(of_bits(8), &arguments[1], 1);
    result = call(signature, (void (*)(void))narrow_result, &arguments[1], 1);
    ck_assert_int_eq(cairn_value_signed(&result), 5);
    cairn_signature_destroy(signature);
    signature = signature_for(of_bits(32), &arguments[2], 1);
    result = call(signature, (void (*)(void))as_seen, &arguments[2], 1);
    ck_assert_uint_eq(value_unsigned(&result), UINT32_MAX);
    ck_assert_uint_eq(result.size, 4);
    cairn_signature_destroy(signature);
    signature = signature_for(CAIRN_FLOAT, &arguments[3], 1);
    result = call(signature, (void (*)(void))half_of, &arguments[3], 1);
    ck_assert_double_eq(cairn_value_double(&result), 1.5);
    cairn_signature_destroy(signature);
    signature = signature_for(CAIRN_POINTER, &arguments[4], 1);
    result = call(signature, (void (*)(void))itself, &arguments[4], 1);
    ck_assert_ptr_eq(cairn_value_pointer(&result), &calls);
    cairn_signature_destroy(signature);
    signature = signature_for((struct cairn_type){.kind = CAIRN_TYPE_VOID}, &arguments[4], 1);
    call(signature, (void (*)(void))count_call, &arguments[4], 1);
    ck_assert_int_eq(calls, 1);
    cairn_signature_destroy(signature);
}
END_TEST

static int64_t ninth(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g,
                     int64_t h, int64_t i)
{
    (void)(a | b | c | d | e | f | g | h);
    return i;
}
static int64_t first(int64_t a) { return a; }

/* Checks the bits above a narrow integer in the callee, in a register and on the stack. */
START_TEST(narrow_integers_are_extended_by_zeros_or_by_their_sign)
{
    static const uint32_t widths[] = {1, 7, 8, 13, 16, 24, 31, 32, 63};
    uint32_t bits = widths[_i / 2];
    bool is_signed = _i % 2 == 1;
    const struct cairn_value number = integer(bits, -1);
    const struct cairn_value value = is_signed ? extended(number) : number;
    int64_t expected = is_signed ? -1 : (int64_t)(UINT64_MAX >> (64 - bits));
    struct cairn_value arguments[9] = {value, value, value, value, value,
                                       value, value, value, value};
    cairn_signature *one = signature_for(of_bits(64), arguments, 1);
    cairn_signature *nine = signature_for(of_bits(64), arguments, 9);
    struct cairn_value result = call(one, (void (*)(void))first, arguments, 1);
    ck_assert_int_eq(cairn_value_signed(&result), expected);
    result = call(nine, (void (*)(void))ninth, arguments, 9);
    ck_assert_int_eq(cairn_value_signed(&result), expected);
    cairn_signature_destroy(one);
    cairn_signature_destroy(nine);
}
END_TEST

struct integers {
    int64_t first;
    int64_t second;
};
struct numbers {
    double first;
    double second;
};
struct both {
    int64_t first;
    double second;
};
static struct integers two_integers(int64_t a) { return (struct integers){a, -a}; }
static struct numbers two_numbers(int64_t a)
{
    return (struct numbers){(double)a / 2, (double)a / 4};
}
static struct both one_of_each(int64_t a) { return (struct both){a, (double)a / 2}; }

START_TEST(a_c_function_returns_structures_in_registers)
{
    const struct cairn_type integers[] = {of_bits(64), of_bits(64)};
    const struct cairn_type numbers[] = {CAIRN_DOUBLE, CAIRN_DOUBLE};
    const struct cairn_value argument = integer(64, 5);
    struct cairn_value results[2];
    const void *function;
    cairn_signature *signature = signature_of(integers, 2, &argument.type, 1);
    function = (const void *)(uintptr_t)two_integers;
    ck_assert_ok(cairn_call(signature, function, &argument, 1, results, NULL));
    ck_assert_int_eq(cairn_value_signed(&results[0]), 5);
    ck_assert_int_eq(cairn_value_signed(&results[1]), -5);
    cairn_signature_destroy(signature);
    signature = signature_of(numbers, 2, &argument.type, 1);
    function = (const void *)(uintptr_t)two_numbers;
    ck_assert_ok(cairn_call(signature, function, &argument, 1, results, NULL));
    ck_assert_double_eq(cairn_value_double(&results[0]), 2.5);
    ck_assert_double_eq(cairn_value_double(&results[1]), 1.25);
    cairn_signature_destroy(signature);
}
END_TEST

START_TEST(a_structure_of_both_kinds_is_returned_where_c_has_it_in_registers_of_both)
{
    const struct cairn_type types[] = {of_bits(64), CAIRN_DOUBLE};
    const struct cairn_value argument = integer(64, 5);
    const void *function = (const void *)(uintptr_t)one_of_each;
    struct cairn_value results[2];
    struct cairn_error error = {0};
    cairn_closure *closure;
    cairn_signature *signature = signature_of(types, 2, &argument.type, 1);
    if (cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64) {
        ck_assert_ok(cairn_call(signature, function, &argument, 1, results, NULL));
        ck_assert_int_eq(cairn_value_signed(&results[0]), 5);
        ck_assert_double_eq(cairn_value_double(&results[1]), 2.5);
    } else {
        ck_assert_int_eq(cairn_closure_create(runtime, signature, add_two, NULL, &closure, &error),
                         CAIRN_ERROR_UNSUPPORTED);
        ck_assert_str_eq(error.message, "result 1: libffi closures do not support double");
    }
    cairn_signature_destroy(signature);
}
END_TEST

typedef int32_t vector_of_four __attribute__((vector_size(16)));

/* Takes more arguments than there are registers, between scalars that use registers and places,
 * too. */
static vector_of_four weigh_vectors(double a, vector_of_four b, int32_t c, vector_of_four d,
                                    vector_of_four e, vector_of_four f, float g, vector_of_four h,
                                    vector_of_four i, vector_of_four j, vector_of_four k, int64_t l,
                                    vector_of_four m, vector_of_four n, vector_of_four o,
                                    vector_of_four p, vector_of_four q)
{
    return b + 3 * d + 5 * e + 7 * f + 11 * h + 13 * i + 17 * j + 19 * k + 23 * m + 29 * n +
           31 * o + 37 * p + 41 * q + (int32_t)a + 2 * c + 4 * (int32_t)g + 6 * (int32_t)l;
}

START_TEST(a_c_function_gets_and_returns_vectors)
{
    static const bool is_vector[17] = {0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
    struct cairn_value arguments[17] = {
        cairn_value_of_double(1000), [2] = extended(integer(32, -2000)), [6] = single(3000),
        [11] = integer(64, -4000)};
    vector_of_four v[17];
    for (int i = 0; i < 17; i++) {
        v[i] = (vector_of_four){i, 10 * i, -i, 7};
        if (is_vector[i])
            arguments[i] = value_of(four_integers(), &v[i]);
    }
    cairn_signature *signature = signature_for(four_integers(), arguments, 17);
    struct cairn_value result = call(signature, (void (*)(void))weigh_vectors, arguments, 17);
    vector_of_four expected = weigh_vectors(1000, v[1], -2000, v[3], v[4], v[5], 3000, v[7], v[8],
                                            v[9], v[10], -4000, v[12], v[13], v[14], v[15], v[16]);
    ck_assert_mem_eq(result.bytes, &expected, sizeof expected);
    cairn_signature_destroy(signature);
}
END_TEST

/* ---- Refusals ---- */

static void never_called(void) { ck_abort_msg("it was called"); }

static void expect_refusal(const cairn_signature *signature, const struct cairn_value *arguments,
                           uint32_t count, enum cairn_status expected, const char *sentence)
{
    struct cairn_error error = {0};
    const void *function = (const void *)(uintptr_t)never_called;
    ck_assert_int_eq(cairn_call(signature, function, arguments, count, NULL, &error), expected);
    ck_assert_str_eq(error.message, sentence);
}

START_TEST(other_arguments_than_the_signatures_are_refused)
{
    const struct cairn_type types[] = {of_bits(64), of_bits(64), of_bits(64)};
    const struct cairn_value arguments[] = {integer(64, 1), integer(64, 1),
                                            cairn_value_of_double(1)};
    cairn_signature *signature = signature_of(NULL, 0, types, 3);
    expect_refusal(signature, arguments, 2, CAIRN_ERROR_ARGUMENT,
                   "the function takes 3 arguments, and not 2");
    expect_refusal(signature, arguments, 3, CAIRN_ERROR_ARGUMENT,
                   "argument 2 is double, and not i64");
    cairn_signature_destroy(signature);
    signature = signature_of(NULL, 0, types, 1);
    expect_refusal(signature, arguments, 0, CAIRN_ERROR_ARGUMENT,
                   "the function takes 1 argument, and not 0");
    cairn_signature_destroy(signature);
}
END_TEST

START_TEST(results_without_a_register_are_refused_by_the_call)
{
    const struct cairn_type results[] = {of_bits(64), of_bits(64), of_bits(64)};
    const struct cairn_type half = {.kind = CAIRN_TYPE_HALF, .bits = 16};
    cairn_signature *signature = signature_of(results, 3, NULL, 0);
    expect_refusal(signature, NULL, 0, CAIRN_ERROR_UNSUPPORTED,
                   "result 2, of type i64, has no register to be returned in");
    cairn_signature_destroy(signature);
    signature = signature_of(&half, 1, NULL, 0);
    expect_refusal(signature, NULL, 0, CAIRN_ERROR_UNSUPPORTED,
                   "result 0, of type half, has no register to be returned in");
    cairn_signature_destroy(signature);
}
END_TEST

START_TEST(types_that_libffi_does_not_know_are_refused_by_closures)
{
    const struct cairn_type types[] = {of_bits(64), four_integers()};
    cairn_closure *closure = NULL;
    cairn_signature *signature = signature_of(NULL, 0, types, 2);
    struct cairn_error error;
    ck_assert_int_eq(cairn_closure_create(runtime, signature, add_two, NULL, &closure, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "argument 1: libffi closures do not support <4 x i32>");
    cairn_signature_destroy(signature);
    signature = signature_of(&types[1], 1, NULL, 0);
    ck_assert_int_eq(cairn_closure_create(runtime, signature, add_two, NULL, &closure, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "result 0: libffi closures do not support <4 x i32>");
    ck_assert_ptr_null(closure);
    cairn_signature_destroy(signature);
}
END_TEST

/* ---- Closures ---- */

START_TEST(c_calls_a_closure)
{
    struct cairn_type types[] = {of_bits(32), of_bits(32)};
    types[0].extends_sign = 1;
    types[1].extends_sign = 1;
    cairn_signature *signature = signature_of(types, 1, types, 2);
    cairn_closure *closure;
    int calls = 0;
    int32_t (*function)(int32_t, int32_t);
    ck_assert_ok(cairn_closure_create(runtime, signature, add_two, &calls, &closure, NULL));
    const void *target = cairn_closure_target(closure);
    memcpy(&function, &target, sizeof function);
    ck_assert_int_eq(function(20, -62), -42);
    ck_assert_int_eq(function(-2000000000, -100000000), -2100000000);
    ck_assert_int_eq(calls, 2);
    cairn_closure_destroy(closure);
    cairn_closure_destroy(NULL);
    cairn_signature_destroy(signature);
}
END_TEST

static void return_another_type(const struct cairn_value *arguments, struct cairn_value *results,
                                void *user)
{
    (void)arguments;
    (void)user;
    results[0] = cairn_value_of_double(-1);
}

START_TEST(a_result_of_another_type_counts_as_zero)
{
    const struct cairn_type type = of_bits(64);
    cairn_signature *signature = signature_of(&type, 1, NULL, 0);
    cairn_closure *closure;
    struct cairn_value result;
    ck_assert_ok(
        cairn_closure_create(runtime, signature, return_another_type, NULL, &closure, NULL));
    ck_assert_ok(cairn_call(signature, cairn_closure_target(closure), NULL, 0, &result, NULL));
    ck_assert_int_eq(cairn_value_signed(&result), 0);
    cairn_closure_destroy(closure);
    cairn_signature_destroy(signature);
}
END_TEST

START_TEST(a_parameter_of_a_closure_that_is_null_is_named)
{
    cairn_signature *signature = signature_of(NULL, 0, NULL, 0);
    cairn_closure *closure = NULL;
    struct cairn_error error;
    ck_assert_int_eq(cairn_closure_create(NULL, signature, add_two, NULL, &closure, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_closure_create: `runtime` is NULL");
    ck_assert_int_eq(cairn_closure_create(runtime, NULL, add_two, NULL, &closure, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_closure_create: `signature` is NULL");
    ck_assert_int_eq(cairn_closure_create(runtime, signature, NULL, NULL, &closure, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_closure_create: `handler` is NULL");
    ck_assert_int_eq(cairn_closure_create(runtime, signature, add_two, NULL, NULL, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "cairn_closure_create: `closure` is NULL");
    ck_assert_ptr_null(closure);
    cairn_signature_destroy(signature);
}
END_TEST

START_TEST(a_closure_without_memory_is_refused_and_leaves_nothing)
{
    cairn_signature *signature = signature_of(NULL, 0, NULL, 0);
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at++) {
        struct support_allocator counts = {0};
        const struct cairn_runtime_options options = {.allocator = support_counting(&counts)};
        cairn_runtime *failing;
        cairn_closure *closure = NULL;
        ck_assert_ok(cairn_runtime_create(&options, &failing, NULL));
        counts.calls = 0;
        counts.fail_at = fail_at;
        enum cairn_status status =
            cairn_closure_create(failing, signature, add_two, NULL, &closure, NULL);
        counts.fail_at = 0;
        ck_assert((status == CAIRN_OK) == (closure != NULL));
        cairn_closure_destroy(closure);
        cairn_runtime_destroy(failing);
        ck_assert_uint_eq(counts.outstanding_bytes, 0);
        if (status == CAIRN_OK)
            break;
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        failures++;
    }
    ck_assert_uint_gt(failures, 0);
    cairn_signature_destroy(signature);
}
END_TEST

/* Whether /proc/self/maps has a mapping that is writable and executable. */
static bool has_writable_code(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, " rwx") != NULL;
    fclose(maps);
    return found;
}

START_TEST(no_page_of_a_closure_is_writable_and_executable)
{
    cairn_signature *signature = signature_of(NULL, 0, NULL, 0);
    cairn_closure *closure;
    if (has_writable_code()) {
        puts("skipped: the process has writable code without Cairn");
        cairn_signature_destroy(signature);
        return;
    }
    ck_assert_ok(cairn_closure_create(runtime, signature, add_two, NULL, &closure, NULL));
    ck_assert(!has_writable_code());
    cairn_closure_destroy(closure);
    cairn_signature_destroy(signature);
}
END_TEST

/* ---- Random signatures ---- */

struct trial {
    uint32_t count;
    uint32_t result_count;
    struct cairn_value arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    struct cairn_value results[CAIRN_FUNCTION_RESULTS_MAX];
    uint32_t seen;
};

static struct cairn_type random_scalar(uint64_t *random)
{
    static const uint32_t widths[] = {1, 8, 16, 32, 64, 64};
    switch (sample_random(random, 8)) {
    case 0:
        return CAIRN_FLOAT;
    case 1:
    case 2:
        return CAIRN_DOUBLE;
    case 3:
        return CAIRN_POINTER;
    case 4:
        return of_bits(1 + sample_random(random, 64));
    default:
        return of_bits(widths[sample_random(random, 6)]);
    }
}

static struct cairn_type random_argument(uint64_t *random)
{
    return sample_random(random, 10) == 0 ? of_bits(128) : random_scalar(random);
}

static uint64_t random_bits(uint64_t *random)
{
    return (uint64_t)sample_random(random, UINT32_MAX) << 32 | sample_random(random, UINT32_MAX);
}

/* Returns a random value. NaNs are quiet, because a conversion to double makes signalling ones
 * quiet. */
static struct cairn_value random_value(struct cairn_type type, uint64_t *random)
{
    uint64_t words[2] = {random_bits(random), random_bits(random)};
    uint32_t single = (uint32_t)words[0];
    if (type.kind == CAIRN_TYPE_INTEGER && type.bits <= 64)
        return integer(type.bits, (int64_t)words[0]);
    if (type.kind == CAIRN_TYPE_FLOAT && (single >> 23 & 0xFF) == 0xFF)
        single |= UINT32_C(1) << 22;
    return type.kind == CAIRN_TYPE_FLOAT ? value_of(type, &single) : value_of(type, words);
}

static void choose_results(struct trial *trial, uint64_t *random)
{
    struct cairn_type type = random_argument(random);
    bool is_pair = type.bits == 128;
    trial->result_count = sample_random(random, is_pair ? 2 : 3);
    for (uint32_t i = 0; i < trial->result_count; i++)
        trial->results[i] = random_value(type, random);
}

/* Returns NULL if the types cannot be passed: an i128 that compilers pass in different ways. */
static cairn_signature *try_types(const struct cairn_type *results, uint32_t result_count,
                                  const struct cairn_type *arguments, uint32_t argument_count)
{
    cairn_signature *signature;
    struct cairn_error error = {0};
    if (cairn_signature_create(NULL, results, result_count, arguments, argument_count, &signature,
                               &error) == CAIRN_OK)
        return signature;
    ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "is i128 with one register left"));
    return NULL;
}

static cairn_signature *choose_signature(struct trial *trial, uint64_t *random)
{
    struct cairn_type arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    struct cairn_type results[CAIRN_FUNCTION_RESULTS_MAX];
    uint32_t most = sample_random(random, 20) == 0 ? CAIRN_SIGNATURE_ARGUMENTS_MAX : 20;
    trial->count = sample_random(random, most + 1);
    for (uint32_t i = 0; i < trial->count; i++) {
        arguments[i] = random_argument(random);
        trial->arguments[i] = random_value(arguments[i], random);
        if (arguments[i].kind == CAIRN_TYPE_INTEGER)
            arguments[i].extends_sign = sample_random(random, 3) == 0;
    }
    choose_results(trial, random);
    uint32_t extends_sign = sample_random(random, 2);
    for (uint32_t i = 0; i < trial->result_count; i++) {
        results[i] = trial->results[i].type;
        if (results[i].kind == CAIRN_TYPE_INTEGER)
            results[i].extends_sign = extends_sign;
    }
    return try_types(results, trial->result_count, arguments, trial->count);
}

static void compare_arguments(const struct cairn_value *arguments, struct cairn_value *results,
                              void *user)
{
    struct trial *trial = user;
    trial->seen++;
    for (uint32_t i = 0; i < trial->count; i++)
        expect(same_value(&arguments[i], &trial->arguments[i]));
    for (uint32_t i = 0; i < trial->result_count; i++)
        results[i] = trial->results[i];
}

static void try_signature(uint64_t *random)
{
    struct trial trial = {.count = 0};
    struct cairn_value returned[CAIRN_FUNCTION_RESULTS_MAX];
    struct cairn_error error = {0};
    cairn_closure *closure;
    cairn_signature *signature = choose_signature(&trial, random);
    if (signature == NULL)
        return;
    ck_assert_ok(
        cairn_closure_create(runtime, signature, compare_arguments, &trial, &closure, NULL));
    enum cairn_status status = cairn_call(signature, cairn_closure_target(closure), trial.arguments,
                                          trial.count, returned, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_eq(trial.seen, 1);
    for (uint32_t i = 0; i < trial.result_count; i++)
        expect(same_value(&returned[i], &trial.results[i]));
    cairn_closure_destroy(closure);
    cairn_signature_destroy(signature);
}

static int rounds(void)
{
    const char *wanted = getenv("CAIRN_TEST_ROUNDS");
    return wanted == NULL ? ROUNDS : (int)strtol(wanted, NULL, 10) * 20;
}

START_TEST(closures_of_random_signatures_get_what_calls_pass)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < rounds(); i++) {
        try_signature(&random);
        if (i % 100 == 0)
            cairn_runtime_quiesce(runtime);
    }
}
END_TEST

/* ---- Threads ---- */

static cairn_signature *shared_signature;
static cairn_closure *shared_closure;

static void subtract(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    (void)user;
    results[0] = cairn_value_of_double(cairn_value_double(&arguments[0]) -
                                       (double)cairn_value_signed(&arguments[1]));
}

static void *call_often(void *user)
{
    size_t wrong = 0;
    const void *target = cairn_closure_target(shared_closure);
    for (int i = 0; i < CALLS_OF_THREAD; i++) {
        struct cairn_value result;
        const struct cairn_value arguments[] = {cairn_value_of_double((double)(uintptr_t)user),
                                                integer(64, i)};
        if (cairn_call(shared_signature, target, arguments, 2, &result, NULL) != CAIRN_OK ||
            cairn_value_double(&result) != (double)(uintptr_t)user - i)
            wrong++;
    }
    return (void *)wrong;
}

START_TEST(threads_share_a_signature_and_a_closure)
{
    const struct cairn_type types[] = {CAIRN_DOUBLE, of_bits(64)};
    pthread_t threads[THREADS];
    shared_signature = signature_of(types, 1, types, 2);
    ck_assert_ok(
        cairn_closure_create(runtime, shared_signature, subtract, NULL, &shared_closure, NULL));
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    cairn_closure_destroy(shared_closure);
    cairn_signature_destroy(shared_signature);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("call");
    TCase *signatures = tcase_create("signatures");
    tcase_add_loop_test(signatures, a_type_that_is_not_passed_is_refused_by_its_number, 0,
                        (int)(sizeof refused_arguments / sizeof *refused_arguments));
    tcase_add_test(signatures, more_arguments_or_results_than_there_may_be_are_refused);
    tcase_add_test(signatures,
                   an_integer_of_two_registers_with_one_left_is_refused_where_compilers_differ);
    tcase_add_test(signatures, a_signature_without_memory_is_refused_and_leaves_nothing);
    suite_add_tcase(suite, signatures);
    TCase *calls = tcase_create("calls");
    tcase_add_checked_fixture(calls, set_up, tear_down);
    tcase_add_test(calls, a_c_function_gets_arguments_in_registers_and_on_the_stack);
    tcase_add_test(calls, a_c_function_gets_integers_of_two_registers);
    tcase_add_loop_test(calls, narrow_integers_are_extended_by_zeros_or_by_their_sign, 0, 2 * 9);
    tcase_add_test(calls, a_c_function_returns_scalars_of_every_kind);
    tcase_add_test(calls, a_c_function_gets_and_returns_vectors);
    tcase_add_test(calls, a_c_function_returns_structures_in_registers);
    tcase_add_test(calls,
                   a_structure_of_both_kinds_is_returned_where_c_has_it_in_registers_of_both);
    tcase_add_test(calls, other_arguments_than_the_signatures_are_refused);
    tcase_add_test(calls, results_without_a_register_are_refused_by_the_call);
    tcase_add_test(calls, types_that_libffi_does_not_know_are_refused_by_closures);
    suite_add_tcase(suite, calls);
    TCase *closures = tcase_create("closures");
    tcase_add_checked_fixture(closures, set_up, tear_down);
    tcase_add_test(closures, c_calls_a_closure);
    tcase_add_test(closures, a_result_of_another_type_counts_as_zero);
    tcase_add_test(closures, a_parameter_of_a_closure_that_is_null_is_named);
    tcase_add_test(closures, a_closure_without_memory_is_refused_and_leaves_nothing);
    tcase_add_test(closures, no_page_of_a_closure_is_writable_and_executable);
    tcase_add_test(closures, closures_of_random_signatures_get_what_calls_pass);
    tcase_add_test(closures, threads_share_a_signature_and_a_closure);
    suite_add_tcase(suite, closures);
    return run_suite(suite);
}
