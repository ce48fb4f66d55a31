/*
 * Tests of typed values: converting them to and from C, and reading and writing them at the
 * locations that LLVM uses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/type.h"
#include "stackmap_support.h"
#include "value/representation.h"

#include <cairn/value.h>
#include <math.h>
#include <string.h>

enum { ROUNDS = 100000 };

static const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

static struct cairn_type type_of(enum cairn_type_kind kind, uint32_t bits, uint32_t count)
{
    return (struct cairn_type){.kind = kind, .bits = bits, .element_count = count};
}

static struct cairn_value value_of(struct cairn_type type, const void *bytes)
{
    struct cairn_value value;
    ck_assert_ok(value_of_bytes(type, bytes, cairn_type_size(type), &value, NULL));
    return value;
}

static struct cairn_value value_of_half_bits(enum cairn_type_kind kind, uint16_t bits)
{
    return value_of(type_of(kind, 16, 0), &bits);
}

static bool same_bits(double left, double right)
{
    uint64_t left_bits;
    uint64_t right_bits;
    memcpy(&left_bits, &left, sizeof left);
    memcpy(&right_bits, &right, sizeof right);
    return left_bits == right_bits;
}

/* Compares the bytes after the value, too, which are zero. */
static bool same_value(const struct cairn_value *left, const struct cairn_value *right)
{
    return type_equal(left->type, right->type) && left->size == right->size &&
           memcmp(left->bytes, right->bytes, sizeof left->bytes) == 0;
}

static uint64_t random_bits(uint64_t *random)
{
    return (uint64_t)sample_random(random, UINT32_MAX) << 32 | sample_random(random, UINT32_MAX);
}

static void fill(unsigned char *bytes, size_t size, uint64_t *random)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)sample_random(random, 256);
}

/* ---- Types ---- */

START_TEST(a_type_has_the_bytes_of_its_elements)
{
    static const struct {
        struct cairn_type type;
        size_t size;
    } cases[] = {
        {{.kind = CAIRN_TYPE_INTEGER, .bits = 1}, 1},
        {{.kind = CAIRN_TYPE_INTEGER, .bits = 24}, 3},
        {{.kind = CAIRN_TYPE_INTEGER, .bits = 65}, 9},
        {{.kind = CAIRN_TYPE_INTEGER, .bits = 512}, 64},
        {{.kind = CAIRN_TYPE_INTEGER, .bits = 520}, 0},
        {{.kind = CAIRN_TYPE_POINTER, .bits = 64}, 8},
        {{.kind = CAIRN_TYPE_X86_FP80, .bits = 80}, 10},
        {{.kind = CAIRN_TYPE_FP128, .bits = 128}, 16},
        {{.kind = CAIRN_TYPE_INTEGER, .bits = 1, .element_count = 4}, 4},
        {{.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 16}, 64},
        {{.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 17}, 0},
        {{.kind = CAIRN_TYPE_INTEGER, .bits = UINT32_MAX, .element_count = UINT32_MAX}, 0},
        {{.kind = CAIRN_TYPE_VOID}, 0},
        {{.kind = CAIRN_TYPE_OTHER, .bits = 32}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(cairn_type_size(cases[i].type), cases[i].size);
}
END_TEST

START_TEST(types_are_equal_in_all_but_the_address_space)
{
    struct cairn_type pointer = CAIRN_POINTER;
    struct cairn_type other = pointer;
    other.address_space = 1;
    ck_assert(type_equal(pointer, other));
    ck_assert(!type_equal(pointer, CAIRN_INTEGER(64)));
    ck_assert(!type_equal(CAIRN_INTEGER(32), CAIRN_INTEGER(33)));
    ck_assert(!type_equal(CAIRN_FLOAT, cairn_type_vector(CAIRN_FLOAT, 1)));
}
END_TEST

/* ---- Integers and pointers ---- */

START_TEST(an_integer_of_any_width_is_returned)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t bits = 1 + sample_random(&random, 64);
        uint64_t number = random_bits(&random);
        struct cairn_value value = cairn_value_of_integer(bits, (int64_t)number);
        uint64_t kept = bits == 64 ? number : number & ((UINT64_C(1) << bits) - 1);
        bool negative = (kept >> (bits - 1) & 1) != 0;
        uint64_t sign = negative && bits < 64 ? UINT64_MAX << bits : 0;
        expect(value_unsigned(&value) == kept);
        expect(cairn_value_signed(&value) == (int64_t)(kept | sign));
        expect(value.size == (bits + 7) / 8);
    }
}
END_TEST

START_TEST(of_a_wide_integer_the_lowest_bits_count)
{
    unsigned char bytes[16] = {0};
    bytes[is_big_endian ? 15 : 0] = 7;
    bytes[is_big_endian ? 0 : 15] = 0x80;
    struct cairn_value value = value_of(CAIRN_INTEGER(128), bytes);
    ck_assert_int_eq(cairn_value_signed(&value), 7);
    ck_assert_uint_eq(value_unsigned(&value), 7);
}
END_TEST

START_TEST(a_pointer_is_a_pointer_and_a_number)
{
    int here = 0;
    struct cairn_value value = cairn_value_of_pointer(&here);
    ck_assert_ptr_eq(cairn_value_pointer(&value), &here);
    ck_assert_uint_eq(value_unsigned(&value), (uintptr_t)&here);
    struct cairn_value number = cairn_value_of_integer(64, 5);
    ck_assert_ptr_null(cairn_value_pointer(&number));
}
END_TEST

START_TEST(invalid_numbers_are_zero_or_nan)
{
    struct cairn_value floating = cairn_value_of_double(1);
    struct cairn_value integer = cairn_value_of_integer(32, 1);
    struct cairn_value vector = value_of(type_of(CAIRN_TYPE_INTEGER, 32, 2), "01234567");
    ck_assert_int_eq(cairn_value_signed(&floating), 0);
    ck_assert(isnan(cairn_value_double(&integer)));
    ck_assert_int_eq(cairn_value_signed(&vector), 0);
    ck_assert(isnan(cairn_value_double(&vector)));
}
END_TEST

/* ---- Floating-point numbers ---- */

START_TEST(every_half_is_the_double_that_its_parts_make)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        struct cairn_value value = value_of_half_bits(CAIRN_TYPE_HALF, (uint16_t)bits);
        double found = cairn_value_double(&value);
        uint32_t exponent = bits >> 10 & 31;
        double fraction = bits & 1023;
        double sign = bits >> 15 != 0 ? -1.0 : 1.0;
        if (exponent == 31 && fraction > 0)
            expect(isnan(found) && !signbit(found) == !(bits >> 15));
        else if (exponent == 31)
            expect(same_bits(found, sign * HUGE_VAL));
        else if (exponent == 0)
            expect(same_bits(found, sign * ldexp(fraction, -24)));
        else
            expect(same_bits(found, sign * ldexp(fraction + 1024, (int)exponent - 25)));
    }
}
END_TEST

START_TEST(every_bfloat_is_the_upper_half_of_a_float)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        uint32_t wide = bits << 16;
        float expected;
        memcpy(&expected, &wide, sizeof expected);
        struct cairn_value value = value_of_half_bits(CAIRN_TYPE_BFLOAT, (uint16_t)bits);
        double found = cairn_value_double(&value);
        expect(isnan(expected) ? isnan(found) : same_bits(found, (double)expected));
    }
}
END_TEST

START_TEST(floats_and_doubles_come_back)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bits = random_bits(&random);
        uint32_t low = (uint32_t)bits;
        double number;
        float narrow;
        memcpy(&number, &bits, sizeof number);
        memcpy(&narrow, &low, sizeof narrow);
        struct cairn_value wide = cairn_value_of_double(number);
        struct cairn_value value = value_of(CAIRN_FLOAT, &narrow);
        expect(same_bits(cairn_value_double(&wide), number));
        expect(memcmp(value.bytes, &low, sizeof low) == 0);
        if (!isnan(narrow))
            expect(same_bits(cairn_value_double(&value), (double)narrow));
        else
            expect(isnan(cairn_value_double(&value)));
    }
}
END_TEST

/* ---- Vectors and other bytes ---- */

START_TEST(elements_are_scalars_in_their_order)
{
    const double numbers[4] = {1, -2, 3, -4};
    struct cairn_value vector = value_of(cairn_type_vector(CAIRN_DOUBLE, 4), numbers);
    for (uint32_t i = 0; i < 4; i++) {
        struct cairn_value element =
            value_of(cairn_type_vector(vector.type, 0), vector.bytes + i * 8);
        ck_assert(type_equal(element.type, CAIRN_DOUBLE));
        ck_assert_double_eq(cairn_value_double(&element), numbers[i]);
    }
}
END_TEST

START_TEST(bytes_that_are_no_value_are_refused)
{
    struct cairn_value value = {.size = 77};
    struct cairn_error error;
    struct cairn_type nothing = {.kind = CAIRN_TYPE_OTHER};
    ck_assert_int_eq(value_of_bytes(nothing, "", 0, &value, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_int_eq(value_of_bytes(CAIRN_INTEGER(32), "12345", 5, &value, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_str_eq(error.message, "i32 has 4 bytes, not 5");
    ck_assert_uint_eq(value.size, 77);
}
END_TEST

/* ---- Places ---- */

/* Writes `value` to its position in a location, and arbitrary bytes next to it. */
static void put(const struct cairn_value *value, size_t lane, size_t count, unsigned char *place)
{
    size_t size = value->size / count;
    for (size_t i = 0; i < count; i++)
        memcpy(place + i * lane + (is_big_endian ? lane - size : 0), value->bytes + i * size, size);
}

START_TEST(an_integer_is_in_the_low_bytes_of_a_register)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char bytes[8];
        uint32_t bits = 1 + sample_random(&random, 64);
        struct cairn_value value = cairn_value_of_integer(bits, (int64_t)random_bits(&random));
        struct storage place = {STORAGE_GENERAL, 8};
        ck_assert_uint_eq(storage_part(value.type, place), value.size);
        memcpy(bytes, value.bytes, value.size);
        struct cairn_value found;
        storage_read(value.type, place, bytes, &found);
        expect(same_value(&found, &value));
    }
}
END_TEST

START_TEST(bits_beside_an_integer_do_not_count)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bits = random_bits(&random);
        uint32_t width = 1 + sample_random(&random, 32);
        struct storage place = {STORAGE_MEMORY, sizeof bits};
        struct cairn_value found;
        storage_read(CAIRN_INTEGER(width), place, &bits, &found);
        expect(value_unsigned(&found) == (bits & ((UINT64_C(1) << width) - 1)));
    }
}
END_TEST

START_TEST(a_float_is_the_lowest_lane_of_a_vector_register)
{
    struct cairn_value value = value_of(CAIRN_FLOAT, &(float){1.5F});
    struct storage place = {STORAGE_VECTOR, 16};
    unsigned char bytes[16] = {0};
    storage_write(&value, place, bytes);
    ck_assert_uint_eq(storage_part(value.type, place), 4);
    ck_assert_mem_eq(bytes, value.bytes, 4);
}
END_TEST

START_TEST(a_float_is_a_double_where_registers_are_doubles)
{
    uint64_t random = sample_seed();
    struct storage place = {STORAGE_DOUBLE, 8};
    ck_assert_uint_eq(storage_part(CAIRN_FLOAT, place), 8);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t bits = sample_random(&random, UINT32_MAX);
        float narrow;
        double number;
        memcpy(&narrow, &bits, sizeof narrow);
        struct cairn_value value = value_of(CAIRN_FLOAT, &narrow);
        storage_write(&value, place, &number);
        expect(isnan(narrow) ? isnan(number) : same_bits(number, (double)narrow));
        struct cairn_value found;
        storage_read(value.type, place, &number, &found);
        expect(same_value(&found, &value));
    }
}
END_TEST

START_TEST(a_double_is_itself_where_registers_are_doubles)
{
    struct storage place = {STORAGE_DOUBLE, 8};
    double number = 0;
    struct cairn_value value = cairn_value_of_double(-2.25);
    storage_write(&value, place, &number);
    ck_assert_double_eq(number, -2.25);
    struct cairn_value found;
    storage_read(value.type, place, &number, &found);
    ck_assert_double_eq(cairn_value_double(&found), -2.25);
}
END_TEST

START_TEST(small_elements_are_in_wider_lanes)
{
    uint64_t random = sample_seed();
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t count = 2U << sample_random(&random, 4);
        size_t lane = 16 / count;
        uint32_t bits = 1 + sample_random(&random, (uint32_t)lane * 8);
        struct cairn_type type = type_of(CAIRN_TYPE_INTEGER, bits, count);
        struct storage place = {STORAGE_VECTOR, 16};
        struct cairn_value value = {.type = type, .size = (uint32_t)cairn_type_size(type)};
        for (uint32_t k = 0; k < count; k++) {
            struct cairn_value element =
                cairn_value_of_integer(bits, (int64_t)random_bits(&random));
            memcpy(value.bytes + k * element.size, element.bytes, element.size);
        }
        unsigned char bytes[16];
        fill(bytes, sizeof bytes, &random);
        if (bits % 8 == 0)
            put(&value, lane, count, bytes);
        else
            storage_write(&value, place, bytes);
        expect(storage_part(type, place) == 16);
        struct cairn_value found;
        storage_read(type, place, bytes, &found);
        expect(same_value(&found, &value));
    }
}
END_TEST

START_TEST(what_is_written_reads_back_from_every_place)
{
    static const struct storage places[] = {
        {STORAGE_MEMORY, 4},  {STORAGE_MEMORY, 8},  {STORAGE_MEMORY, 16}, {STORAGE_MEMORY, 64},
        {STORAGE_GENERAL, 8}, {STORAGE_VECTOR, 16}, {STORAGE_VECTOR, 32}, {STORAGE_VECTOR, 64},
        {STORAGE_DOUBLE, 8},  {STORAGE_DOUBLE, 16},
    };
    static const struct cairn_type types[] = {
        {.kind = CAIRN_TYPE_INTEGER, .bits = 16},
        {.kind = CAIRN_TYPE_INTEGER, .bits = 64},
        {.kind = CAIRN_TYPE_POINTER, .bits = 64},
        {.kind = CAIRN_TYPE_HALF, .bits = 16},
        {.kind = CAIRN_TYPE_DOUBLE, .bits = 64},
        {.kind = CAIRN_TYPE_X86_FP80, .bits = 80},
        {.kind = CAIRN_TYPE_FP128, .bits = 128},
        {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 4},
        {.kind = CAIRN_TYPE_DOUBLE, .bits = 64, .element_count = 8},
    };
    uint64_t random = sample_seed();
    size_t tried = 0;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
            unsigned char place[CAIRN_VALUE_BYTES_MAX];
            fill(bytes, sizeof bytes, &random);
            if (storage_part(types[t], places[p]) == 0)
                continue;
            struct cairn_value value = value_of(types[t], bytes);
            storage_write(&value, places[p], place);
            struct cairn_value found;
            storage_read(types[t], places[p], place, &found);
            ck_assert(same_value(&found, &value));
            tried++;
        }
    ck_assert_uint_gt(tried, 40);
}
END_TEST

START_TEST(places_that_cannot_hold_the_value_are_known)
{
    struct cairn_type floats = cairn_type_vector(CAIRN_FLOAT, 4);
    struct cairn_type nothing = {.kind = CAIRN_TYPE_OTHER};
    ck_assert_uint_eq(storage_part(CAIRN_INTEGER(64), (struct storage){STORAGE_MEMORY, 4}), 0);
    ck_assert_uint_eq(storage_part(floats, (struct storage){STORAGE_GENERAL, 16}), 0);
    ck_assert_uint_eq(storage_part(floats, (struct storage){STORAGE_VECTOR, 8}), 0);
    ck_assert_uint_eq(storage_part(floats, (struct storage){STORAGE_VECTOR, 32}), 0);
    ck_assert_uint_eq(storage_part(nothing, (struct storage){STORAGE_MEMORY, 8}), 0);
    ck_assert_uint_eq(storage_part(CAIRN_FLOAT, (struct storage){STORAGE_DOUBLE, 4}), 0);
}
END_TEST

/* ---- Constants ---- */

START_TEST(constants_are_cut_to_their_type)
{
    struct cairn_value value;
    ck_assert(storage_read_constant(CAIRN_INTEGER(1), UINT64_MAX, &value));
    ck_assert_uint_eq(value_unsigned(&value), 1);
    ck_assert(storage_read_constant(CAIRN_INTEGER(32), UINT64_MAX, &value));
    ck_assert_int_eq(cairn_value_signed(&value), -1);
    ck_assert_uint_eq(value_unsigned(&value), UINT32_MAX);
    ck_assert(storage_read_constant(CAIRN_POINTER, 0, &value));
    ck_assert_ptr_null(cairn_value_pointer(&value));
    ck_assert(storage_read_constant(CAIRN_FLOAT, 0x3FC00000, &value));
    ck_assert_double_eq(cairn_value_double(&value), 1.5);
}
END_TEST

START_TEST(wide_constants_are_extended_by_their_sign)
{
    struct cairn_value value;
    unsigned char ones[16];
    memset(ones, 0xFF, sizeof ones);
    ck_assert(storage_read_constant(CAIRN_INTEGER(128), UINT64_MAX, &value));
    ck_assert_mem_eq(value.bytes, ones, sizeof ones);
    ck_assert(!storage_read_constant(type_of(CAIRN_TYPE_FP128, 128, 0), 0, &value));
    ck_assert(!storage_read_constant(type_of(CAIRN_TYPE_INTEGER, 32, 2), 0, &value));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values");
    TCase *values = tcase_create("values");
    tcase_add_test(values, a_type_has_the_bytes_of_its_elements);
    tcase_add_test(values, types_are_equal_in_all_but_the_address_space);
    tcase_add_test(values, an_integer_of_any_width_is_returned);
    tcase_add_test(values, of_a_wide_integer_the_lowest_bits_count);
    tcase_add_test(values, a_pointer_is_a_pointer_and_a_number);
    tcase_add_test(values, invalid_numbers_are_zero_or_nan);
    tcase_add_test(values, every_half_is_the_double_that_its_parts_make);
    tcase_add_test(values, every_bfloat_is_the_upper_half_of_a_float);
    tcase_add_test(values, floats_and_doubles_come_back);
    tcase_add_test(values, elements_are_scalars_in_their_order);
    tcase_add_test(values, bytes_that_are_no_value_are_refused);
    suite_add_tcase(suite, values);
    TCase *places = tcase_create("places");
    tcase_add_test(places, an_integer_is_in_the_low_bytes_of_a_register);
    tcase_add_test(places, bits_beside_an_integer_do_not_count);
    tcase_add_test(places, a_float_is_the_lowest_lane_of_a_vector_register);
    tcase_add_test(places, a_float_is_a_double_where_registers_are_doubles);
    tcase_add_test(places, a_double_is_itself_where_registers_are_doubles);
    tcase_add_test(places, small_elements_are_in_wider_lanes);
    tcase_add_test(places, what_is_written_reads_back_from_every_place);
    tcase_add_test(places, places_that_cannot_hold_the_value_are_known);
    tcase_add_test(places, constants_are_cut_to_their_type);
    tcase_add_test(places, wide_constants_are_extended_by_their_sign);
    suite_add_tcase(suite, places);
    return run_suite(suite);
}
