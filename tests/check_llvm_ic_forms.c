/*
 * Tests of cases that do more than one access: second guards on holders, transitions, elements with
 * a bounds check, write barriers, and constant arguments. Each is tested in the site's own bytes
 * and in code elsewhere, with both calling conventions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <stdio.h>
#include <string.h>

enum { SMALL = 0, LARGE = 120, SIZES = 2, LOOPS = 4 };

/* Returns the variant of the function with this number: by convention, and by size. Function 0 has
 * an even ID; sites of the usual size may have space for short cases. */
static struct ic_function variant(const struct ic_function *function, int number)
{
    struct ic_function made = *function;
    made.calling_convention = conventions[number / SIZES];
    made.byte_count = number % SIZES == 0 ? SMALL : LARGE;
    return made;
}

static void load_variant(const struct ic_function *function, int number)
{
    const struct ic_function made = variant(function, number);
    load_one(&made, no_options);
}

/* ---- The array ---- */

enum { ELEMENTS = 5 };

struct array {
    uint32_t shape;
    uint32_t length;
    uint64_t *outside;
    uint64_t elements[ELEMENTS];
};

static uint64_t get_element(const struct array *array, uint64_t index)
{
    struct cairn_value value = cairn_value_of_integer(64, (int64_t)index);
    ic_set_operand(&access_0, 1, &value);
    return run_function(0, array);
}

static void set_two(const void *receiver, uint64_t first, uint64_t second)
{
    struct cairn_value value = cairn_value_of_integer(64, (int64_t)first);
    ic_set_operand(&access_0, 1, &value);
    value = cairn_value_of_integer(64, (int64_t)second);
    ic_set_operand(&access_0, 2, &value);
    run_function(0, receiver);
}

static struct cairn_ic_case element_case(bool is_out_of_line)
{
    struct cairn_ic_case made = load_case(1, 0);
    made.field.is_out_of_line = is_out_of_line;
    made.field.offset = is_out_of_line ? 0 : (int32_t)offsetof(struct array, elements);
    made.field.pointer_offset = offsetof(struct array, outside);
    made.elements = (struct cairn_ic_elements){
        .length_width = 4, .length_offset = offsetof(struct array, length), .index = 1};
    return made;
}

static void expect_elements(bool is_out_of_line)
{
    static const uint64_t past[] = {ELEMENTS, ELEMENTS + 1, UINT32_MAX, UINT64_MAX,
                                    UINT64_C(1) << 63};
    uint64_t outside[ELEMENTS] = {30, 31, 32, 33, 34};
    const struct array array = {1, ELEMENTS, outside, {20, 21, 22, 23, 24}};
    unsigned before = seen.misses;
    for (uint64_t i = 0; i < ELEMENTS; i++)
        ck_assert_uint_eq(get_element(&array, i), (is_out_of_line ? 30 : 20) + i);
    ck_assert_uint_eq(seen.misses, before);
    for (size_t i = 0; i < sizeof past / sizeof *past; i++)
        ck_assert_uint_eq(get_element(&array, past[i]), ANSWER);
    ck_assert_uint_eq(seen.misses, before + sizeof past / sizeof *past);
}

START_TEST(elements_are_loaded_if_the_index_is_less_than_the_length)
{
    load_variant(&get, _i);
    answer(ANSWER);
    for (int is_out_of_line = 0; is_out_of_line < 2; is_out_of_line++) {
        const struct cairn_ic_case added = element_case(is_out_of_line);
        add(&added);
        expect_elements(is_out_of_line);
    }
}
END_TEST

static const struct ic_function set_element = {
    .operand_count = 3,
    .operands = {POINTER, INTEGER(32), INTEGER(64)},
};

START_TEST(elements_are_stored_at_an_index_of_32_bits)
{
    struct array array = {1, ELEMENTS, NULL, {0}};
    struct cairn_ic_case added = element_case(false);
    load_variant(&set_element, _i);
    added.action = CAIRN_IC_STORE;
    added.operand = 2;
    add(&added);
    for (uint64_t i = 0; i <= ELEMENTS; i++)
        set_two(&array, i | UINT64_C(0x5A) << 32, 70 + i);
    for (uint64_t i = 0; i < ELEMENTS; i++)
        ck_assert_uint_eq(array.elements[i], 70 + i);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

/* ---- Holders ---- */

START_TEST(fields_of_a_prototype_are_loaded_while_its_shape_is_the_same)
{
    struct object prototype = {.shape = 50, .fields = {40, 41, 42}};
    struct cairn_ic_case added = load_case(1, 2);
    load_variant(&get, _i);
    added.holder.object = &prototype;
    added.holder.guard = shape_guard(50);
    add(&added);
    expect_hit(1, 42);
    expect_miss(2);
    prototype.shape = 51;
    expect_miss(1);
    prototype.shape = 50;
    prototype.fields[2] = 43;
    expect_hit(1, 43);
}
END_TEST

START_TEST(the_guard_of_a_holder_is_tested_before_constants_and_calls)
{
    struct object prototype = {.shape = 50};
    struct cairn_ic_case added = constant_case(1, 5);
    load_variant(&get, _i);
    added.holder = (struct cairn_ic_holder){&prototype, shape_guard(50)};
    add(&added);
    added = constant_case(2, 0);
    added.action = CAIRN_IC_CALL;
    added.target = (const void *)(uintptr_t)first_target;
    added.holder = (struct cairn_ic_holder){&prototype, shape_guard(50)};
    add(&added);
    memset(access_0.operands[1], 0, sizeof access_0.operands[1]);
    for (uint32_t shape = 50; shape < 52; shape++) {
        prototype.shape = shape;
        if (shape == 50) {
            expect_hit(1, 5);
            expect_hit(2, 77);
        } else {
            expect_miss(1);
            expect_miss(2);
        }
    }
}
END_TEST

/* ---- Stores ---- */

static struct cairn_ic_case store_case(unsigned field)
{
    struct cairn_ic_case made = load_case(1, field);
    made.action = CAIRN_IC_STORE;
    made.operand = 1;
    return made;
}

static void store_into(struct object *object, uint64_t number)
{
    struct cairn_value value = cairn_value_of_integer(64, (int64_t)number);
    ic_set_operand(&access_0, 1, &value);
    run_function(0, object);
}

START_TEST(a_store_that_adds_a_property_changes_the_shape)
{
    struct object object = {.shape = 1, .flags = 0x77};
    struct cairn_ic_case added = store_case(3);
    load_variant(&set, _i);
    added.changes_key = true;
    added.new_key = 2;
    add(&added);
    store_into(&object, 900);
    ck_assert_uint_eq(object.fields[3], 900);
    ck_assert_uint_eq(object.shape, 2);
    ck_assert_uint_eq(object.flags, 0x77);
    store_into(&object, 901);
    ck_assert_uint_eq(object.fields[3], 900);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

START_TEST(a_store_marks_the_card_of_the_receiver)
{
    enum { SHIFT = 9, CARDS = 3 };
    unsigned char cards[CARDS] = {1, 1, 1};
    struct object object = {.shape = 1};
    struct cairn_ic_case added = store_case(0);
    load_variant(&set, _i);
    added.barrier = (struct cairn_ic_barrier){
        .kind = CAIRN_IC_BARRIER_CARD,
        .card_shift = SHIFT,
        .card = (uint8_t)(_i % 2 == 0 ? 0 : 0xC4),
        .cards = (uintptr_t)&cards[1] - ((uintptr_t)&object >> SHIFT),
    };
    add(&added);
    store_into(&object, 8);
    ck_assert_uint_eq(object.fields[0], 8);
    ck_assert_uint_eq(cards[0], 1);
    ck_assert_uint_eq(cards[1], added.barrier.card);
    ck_assert_uint_eq(cards[2], 1);
}
END_TEST

/* ---- Refusals ---- */

static const struct object some_object;

/* Cases of a site that takes a pointer, an i64 and a double, and has a result unless it stores. */
static const struct refusal {
    struct cairn_ic_case given;
    bool stores;
    const char *says;
} refusals[] = {
    {{.action = CAIRN_IC_LOAD, .field = {.width = 8}, .elements = {.length_width = 3}},
     false,
     "a length has 1, 2, 4 or 8 bytes, not 3"},
    {{.action = CAIRN_IC_LOAD, .field = {.width = 8}, .elements = {.length_width = 4, .index = 9}},
     false,
     "so the index cannot be number 9"},
    {{.action = CAIRN_IC_LOAD, .field = {.width = 8}, .elements = {.length_width = 4, .index = 2}},
     false,
     "the index, of type double, is neither i32 nor i64"},
    {{.action = CAIRN_IC_LOAD,
      .field = {.width = 8},
      .elements = {.length_width = 4, .index = 1},
      .holder = {&some_object, {.width = 4}}},
     false,
     "such a load cannot have a holder"},
    {{.action = CAIRN_IC_CONSTANT, .elements = {.length_width = 4, .index = 1}},
     false,
     "only loads and stores access elements"},
    {{.action = CAIRN_IC_LOAD, .field = {.width = 8}, .holder = {&some_object, {.width = 5}}},
     false,
     "a guard compares 1, 2, 4 or 8 bytes, not 5"},
    {{.action = CAIRN_IC_LOAD,
      .field = {.width = 8},
      .holder = {&some_object, {.width = 1, .key = 256}}},
     false,
     "the key 0x100 has bits that the guard's mask 0xff does not have"},
    {{.action = CAIRN_IC_CONSTANT, .changes_key = true}, false, "only stores change the key"},
    {{.action = CAIRN_IC_LOAD, .field = {.width = 8}, .barrier = {.kind = CAIRN_IC_BARRIER_CARD}},
     false,
     "only stores have a barrier"},
    {{.action = CAIRN_IC_STORE,
      .operand = 1,
      .field = {.width = 8},
      .guard = {.width = 4, .mask = 0xFF},
      .changes_key = true},
     true,
     "a store whose guard has a mask cannot change the key"},
    {{.action = CAIRN_IC_STORE,
      .operand = 1,
      .field = {.width = 8},
      .guard = {.width = 2},
      .changes_key = true,
      .new_key = 0x10000},
     true,
     "the new key 0x10000 has more bits than the guard's 2 bytes"},
    {{.action = CAIRN_IC_STORE,
      .operand = 1,
      .field = {.width = 8},
      .barrier = {.kind = CAIRN_IC_BARRIER_CARD, .card_shift = 9, .cards = UINT64_C(1) << 54}},
     true,
     "the cards at 0x40000000000000, shifted left by 9 bits, are not less than 2^63"},
    {{.action = CAIRN_IC_STORE,
      .operand = 1,
      .field = {.width = 8},
      .barrier = {.kind = CAIRN_IC_BARRIER_CARD, .card_shift = 64}},
     true,
     "shifted left by 64 bits"},
    {{.action = CAIRN_IC_STORE, .operand = 1, .field = {.width = 8}, .barrier = {.kind = 2}},
     true,
     "unknown kind of barrier 2"},
};

START_TEST(impossible_forms_are_refused)
{
    static const struct ic_function functions[] = {
        {.calling_convention = ANYREG,
         .result = INTEGER(64),
         .operand_count = 3,
         .operands = {POINTER, INTEGER(64), DOUBLE}},
        {.calling_convention = ANYREG,
         .operand_count = 3,
         .operands = {POINTER, INTEGER(64), DOUBLE}},
    };
    load(functions, 2);
    cairn_ic *caches[] = {create(program.sites[0], no_options),
                          create(program.sites[1], no_options)};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *refusal = &refusals[i];
        struct cairn_ic_case given = refusal->given;
        struct cairn_error error = {0};
        cairn_ic *cache = caches[refusal->stores];
        if (given.guard.width == 0)
            given.guard.width = 4;
        ck_assert_int_eq(cairn_ic_add(cache, &given, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
        ck_assert_msg(strstr(error.message, refusal->says) != NULL, "%zu: %s", i, error.message);
        ck_assert_uint_eq(ic_case_count(cache), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forms of cases");
    TCase *tests = tcase_create("forms");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, elements_are_loaded_if_the_index_is_less_than_the_length, 0, LOOPS);
    tcase_add_loop_test(tests, elements_are_stored_at_an_index_of_32_bits, 0, LOOPS);
    tcase_add_loop_test(tests, fields_of_a_prototype_are_loaded_while_its_shape_is_the_same, 0,
                        LOOPS);
    tcase_add_loop_test(tests, the_guard_of_a_holder_is_tested_before_constants_and_calls, 0,
                        LOOPS);
    tcase_add_loop_test(tests, a_store_that_adds_a_property_changes_the_shape, 0, LOOPS);
    tcase_add_loop_test(tests, a_store_marks_the_card_of_the_receiver, 0, LOOPS);
    tcase_add_test(tests, impossible_forms_are_refused);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
