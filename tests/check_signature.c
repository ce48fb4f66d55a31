/*
 * Tests of how the command reads types of functions and numbers: tools/run/signature.c,
 * tools/run/number.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"
#include "tools/run/number.h"
#include "tools/run/signature.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cairn_error error;

/* ---- Signatures ---- */

START_TEST(the_types_of_a_function_are_read)
{
    struct signature signature;
    ck_assert_ok(signature_parse("zeroext i7 (i128, { i8, { ptr, [2 x double] }, <2 x i16> }, "
                                 "{ }, ptr addrspace(1), half, ...)",
                                 &signature, &error));
    ck_assert(signature.is_variadic);
    ck_assert(signature.result.is_unsigned);
    ck_assert_uint_eq(signature.result.pieces[0].type.bits, 7);
    ck_assert_uint_eq(signature.parameter_count, 5);
    const struct signature_value *record = &signature.parameters[1];
    ck_assert_str_eq(record->type, "{ i8, { ptr, [2 x double] }, <2 x i16> }");
    ck_assert_uint_eq(record->scalar_count, 6);
    char text[32] = "";
    for (uint32_t i = 0; i < record->piece_count; i++)
        if (record->pieces[i].kind == PIECE_SCALAR)
            text[i] = 's';
        else
            text[i] = record->pieces[i].bracket;
    ck_assert_str_eq(text, "{s{s[ss]}<ss>}");
    ck_assert_uint_eq(signature.parameters[2].scalar_count, 0);
    ck_assert_int_eq(signature.parameters[4].pieces[0].type.kind, CAIRN_TYPE_HALF);
    signature_release(&signature);
    ck_assert_ok(signature_parse("void ()", &signature, &error));
    ck_assert_uint_eq(signature.result.piece_count, 0);
    signature_release(&signature);
}
END_TEST

START_TEST(texts_that_are_not_signatures_are_refused)
{
    static const char *const texts[] = {
        "",
        "i32",
        "i32 (",
        "i32 (i32",
        "i32 (i32,)",
        "i32 (i32) ",
        "i32 (i32 i32)",
        "i0 ()",
        "i129 ()",
        "i99999999999999999999 ()",
        "int ()",
        "i32 ([x i8])",
        "i32 ([2 x])",
        "i32 ([257 x i8])",
        "i32 ([2 x i8)",
        "i32 ({ i8 )",
        "i32 (<2 i8>)",
        "ptr addrspace(1 ()",
        "i32 (void)",
        "[300 x i8] ()",
        "i32 ([16 x [17 x i8]])",
    };
    struct signature signature;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(signature_parse(texts[i], &signature, &error) == CAIRN_ERROR_CORRUPT, "'%s'",
                      texts[i]);
}
END_TEST

/* Nesting ends at a number of pieces, and repeated types do not multiply the work. */
START_TEST(deep_and_repeated_types_are_refused_in_time)
{
    enum { DEPTH = 20000 };
    struct signature signature;
    char *text = malloc(16 * DEPTH);
    limit_cpu_seconds(10);
    strcpy(text, "void (");
    for (int i = 0; i < DEPTH; i++)
        memcpy(text + 6 + 5 * i, "[2 x ", 6);
    ck_assert_int_eq(signature_parse(text, &signature, &error), CAIRN_ERROR_CORRUPT);
    for (int i = 0; i < DEPTH; i++)
        memcpy(text + 6 + 5 * i, "[0 x ", 6);
    ck_assert_int_eq(signature_parse(text, &signature, &error), CAIRN_ERROR_CORRUPT);
    memset(text + 6, ',', 15 * DEPTH);
    text[15 * DEPTH] = '\0';
    ck_assert_int_eq(signature_parse(text, &signature, &error), CAIRN_ERROR_CORRUPT);
    free(text);
}
END_TEST

/* ---- Numbers ---- */

static void random_number(uint64_t *state, char *text)
{
    bool is_hexadecimal = sample_random(state, 6) == 0;
    uint32_t digits = 1 + sample_random(state, 40);
    uint32_t point = sample_random(state, digits + 1);
    static const uint32_t ranges[] = {1, 20, 100, 700, 10000};
    uint32_t range = ranges[sample_random(state, 5)];
    text +=
        sprintf(text, "%s%s", sample_random(state, 3) == 0 ? "-" : "", is_hexadecimal ? "0x" : "");
    for (uint32_t i = 0; i < digits; i++) {
        if (i == point)
            *text++ = '.';
        *text++ = "0123456789abcdef"[sample_random(state, is_hexadecimal ? 16 : 10)];
    }
    sprintf(text, "%c%d", is_hexadecimal ? 'p' : 'e',
            (int)sample_random(state, range) - (int)range / 2);
}

static void expect_bytes(const char *text, enum cairn_type_kind kind, const void *bytes,
                         size_t size)
{
    uint8_t found[16] = {0};
    expect(number_is_floating(text));
    expect(number_parse_floating(text, kind, found));
    if (memcmp(found, bytes, size) != 0)
        ck_abort_msg("%s is rounded wrongly in kind %d", text, (int)kind);
}

/* The C library is the second opinion for the types that it has. */
START_TEST(random_numbers_are_rounded_as_by_the_c_library)
{
    enum { ROUNDS = 3000 };
    uint64_t state = sample_seed();
    for (int round = 0; round < ROUNDS; round++) {
        char text[96];
        random_number(&state, text);
        float single = strtof(text, NULL);
        double whole = strtod(text, NULL);
        expect_bytes(text, CAIRN_TYPE_FLOAT, &single, sizeof single);
        expect_bytes(text, CAIRN_TYPE_DOUBLE, &whole, sizeof whole);
    }
}
END_TEST

START_TEST(numbers_of_types_without_a_c_type_are_rounded_to_even)
{
    static const struct {
        const char *text;
        enum cairn_type_kind kind;
        uint16_t bits;
    } cases[] = {
        {"1", CAIRN_TYPE_HALF, 0x3C00},          {"-0", CAIRN_TYPE_HALF, 0x8000},
        {"65504", CAIRN_TYPE_HALF, 0x7BFF},      {"65519.999", CAIRN_TYPE_HALF, 0x7BFF},
        {"65520", CAIRN_TYPE_HALF, 0x7C00},      {"0x1.002p0", CAIRN_TYPE_HALF, 0x3C00},
        {"0x1.006p0", CAIRN_TYPE_HALF, 0x3C02},  {"0x1.0020001p0", CAIRN_TYPE_HALF, 0x3C01},
        {"0x1p-24", CAIRN_TYPE_HALF, 1},         {"0x1p-25", CAIRN_TYPE_HALF, 0},
        {"0x1.00001p-25", CAIRN_TYPE_HALF, 1},   {"6.1e-5", CAIRN_TYPE_HALF, 0x03FF},
        {"nan", CAIRN_TYPE_HALF, 0x7E00},        {"-inf", CAIRN_TYPE_HALF, 0xFC00},
        {"1", CAIRN_TYPE_BFLOAT, 0x3F80},        {"3e38", CAIRN_TYPE_BFLOAT, 0x7F62},
        {"1e39", CAIRN_TYPE_BFLOAT, 0x7F80},     {"0x1.01p0", CAIRN_TYPE_BFLOAT, 0x3F80},
        {"0x1.03p0", CAIRN_TYPE_BFLOAT, 0x3F82},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[16];
        uint16_t bits;
        ck_assert(number_parse_floating(cases[i].text, cases[i].kind, bytes));
        memcpy(&bits, bytes, sizeof bits);
        ck_assert_msg(bits == cases[i].bits, "%s is 0x%04x", cases[i].text, bits);
    }
}
END_TEST

START_TEST(long_numbers_and_large_exponents_are_read_in_time)
{
    enum { DIGITS = 200000 };
    double found;
    uint8_t bytes[16];
    char *text = malloc(DIGITS + 32);
    limit_cpu_seconds(20);
    memset(text, '9', DIGITS);
    text[1] = '.';
    strcpy(text + DIGITS, "e-1");
    ck_assert(number_parse_floating(text, CAIRN_TYPE_DOUBLE, bytes));
    memcpy(&found, bytes, sizeof found);
    ck_assert(found == 1.0);
    ck_assert(number_parse_floating("1e999999999999999999999", CAIRN_TYPE_DOUBLE, bytes));
    memcpy(&found, bytes, sizeof found);
    ck_assert(isinf(found));
    ck_assert(number_parse_floating("1e-999999999999999999999", CAIRN_TYPE_DOUBLE, bytes));
    memcpy(&found, bytes, sizeof found);
    ck_assert(found == 0.0);
    ck_assert(number_parse_floating("0e999999999", CAIRN_TYPE_DOUBLE, bytes));
    memcpy(&found, bytes, sizeof found);
    ck_assert(found == 0.0);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signature");
    TCase *tests = tcase_create("words of the command");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_types_of_a_function_are_read);
    tcase_add_test(tests, texts_that_are_not_signatures_are_refused);
    tcase_add_test(tests, deep_and_repeated_types_are_refused_in_time);
    tcase_add_test(tests, random_numbers_are_rounded_as_by_the_c_library);
    tcase_add_test(tests, numbers_of_types_without_a_c_type_are_rounded_to_even);
    tcase_add_test(tests, long_numbers_and_large_exponents_are_read_in_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
