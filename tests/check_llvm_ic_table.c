/*
 * Tests of the tables of megamorphic caches: random cases of many keys are added, replaced and
 * removed, and each access is compared with a model. A key without a case must miss. A key with a
 * case hits, unless a newer case has replaced it.
 *
 * Environment: CAIRN_TEST_SEED selects other keys and changes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { KEYS = 400, FIELDS = 32, SMALL = 24 };

struct wide_object {
    uint64_t key;
    uint64_t fields[FIELDS];
};

static const struct cairn_ic_options with_table = {.case_limit = 1, .has_table = true};

/* ---- Accesses ---- */

/* The guard's width, and what is accessed. */
static const struct form {
    uint8_t key_width;
    uint8_t field_width;
    bool is_signed;
    bool is_store;
    struct cairn_type type;
    uint32_t convention;
} forms[] = {
    {4, 8, false, false, INTEGER(64), ANYREG}, {8, 8, false, false, INTEGER(64), ANYREG},
    {4, 2, true, false, INTEGER(64), ANYREG},  {8, 1, true, false, INTEGER(64), ANYREG},
    {4, 4, false, false, INTEGER(64), C},      {8, 8, false, false, INTEGER(64), C},
    {4, 8, false, true, INTEGER(64), ANYREG},  {8, 4, false, true, INTEGER(64), ANYREG},
    {4, 8, false, false, DOUBLE, ANYREG},      {8, 8, false, true, DOUBLE, ANYREG},
};
enum { FORMS = sizeof forms / sizeof *forms };

static struct ic_function function_of(const struct form *form)
{
    struct ic_function function = {
        .calling_convention = form->convention,
        .operand_count = 2,
        .operands = {POINTER, INTEGER(64)},
        .keeps_operands = true,
        .kept_count = 10,
    };
    for (uint32_t i = 0; i < function.kept_count; i++)
        function.kept[i] = i % 2 == 0 ? CAIRN_INTEGER(64) : CAIRN_DOUBLE;
    if (form->is_store)
        function.operands[1] = form->type;
    else
        function.result = form->type;
    return function;
}

static struct cairn_ic_case case_of(const struct form *form, uint64_t key, unsigned field)
{
    bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    bool is_narrow = form->key_width == 4;
    return (struct cairn_ic_case){
        .guard = {.offset = is_big_endian && is_narrow ? 4 : 0,
                  .width = form->key_width,
                  .key = key},
        .action = form->is_store ? CAIRN_IC_STORE : CAIRN_IC_LOAD,
        .operand = form->is_store ? 1 : 0,
        .field = {.offset = (int32_t)(offsetof(struct wide_object, fields) + 8 * field),
                  .width = form->field_width,
                  .is_signed = form->is_signed},
    };
}

static uint64_t field_bits(const struct wide_object *object, const struct form *form,
                           unsigned field)
{
    uint64_t bits = read_bytes(&object->fields[field], form->field_width);
    unsigned unused = 64 - 8u * form->field_width;
    return form->is_signed ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

static void fill(struct wide_object *object, uint64_t key)
{
    object->key = key;
    for (unsigned i = 0; i < FIELDS; i++) {
        struct cairn_value number = ic_random_value(CAIRN_DOUBLE, &random_state);
        memcpy(&object->fields[i], number.bytes, sizeof object->fields[i]);
    }
}

/* Accesses an object with the key. Returns whether that was a hit, which must access the field. */
static bool access_key(const struct ic_function *function, const struct form *form, uint64_t key,
                       unsigned field)
{
    struct wide_object object;
    unsigned before = seen.misses + seen.megamorphic_misses;
    fill(&object, key);
    struct wide_object wanted = object;
    struct cairn_value stored = ic_random_value(function->operands[1], &random_state);
    ic_fill_kept(function, &access_0, &random_state);
    ic_set_pointer(&access_0, 0, &object);
    ic_set_operand(&access_0, 1, &stored);
    program.functions[0](&access_0);
    ic_check_kept(function, &access_0, "an access");
    bool is_hit = seen.misses + seen.megamorphic_misses == before;
    if (is_hit && form->is_store) {
        uint64_t word = read_bytes(stored.bytes, 8);
        unsigned char *place = (unsigned char *)&wanted.fields[field];
        bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        memcpy(place, (unsigned char *)&word + (is_big_endian ? 8 - form->field_width : 0),
               form->field_width);
    } else if (is_hit) {
        ck_assert_uint_eq(read_bytes(access_0.result, 8), field_bits(&object, form, field));
    }
    ck_assert_mem_eq(&object, &wanted, sizeof object);
    return is_hit;
}

/* ---- The model ---- */

static struct {
    uint64_t key;
    unsigned field;
    bool is_there;
} model[KEYS];

static uint64_t random_key(const struct form *form)
{
    uint64_t key = ic_random(&random_state);
    switch (ic_below(&random_state, 3)) {
    case 0:
        return key % 5000;
    case 1: /* like a pointer */
        return form->key_width == 8 ? 0x7F0000000000 + key % 100000 * 16 : key % 100000 * 64;
    default:
        return form->key_width == 8 ? key >> 16 : key & UINT32_MAX;
    }
}

static void make_keys(const struct form *form, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bool is_new;
        do {
            model[i].key = random_key(form);
            is_new = true;
            for (unsigned j = 0; j < i; j++)
                is_new &= model[j].key != model[i].key;
        } while (!is_new);
        model[i].is_there = false;
    }
}

static void add_key(const struct form *form, unsigned i)
{
    model[i].field = ic_below(&random_state, FIELDS);
    model[i].is_there = true;
    const struct cairn_ic_case added = case_of(form, model[i].key, model[i].field);
    add(&added);
}

static void remove_key(const struct form *form, unsigned i)
{
    struct cairn_error error = {0};
    const struct cairn_ic_case removed = case_of(form, model[i].key, 0);
    model[i].is_there = false;
    ic_assert_done(ic_remove(ic, &removed.guard, CAIRN_RELAXED, &error), error);
}

static void change_several(const struct form *form, unsigned count)
{
    struct cairn_ic_change changes[6];
    struct cairn_error error = {0};
    size_t made = 0;
    while (made < 6) {
        unsigned i = ic_below(&random_state, count);
        struct cairn_ic_case one = case_of(form, model[i].key, ic_below(&random_state, FIELDS));
        model[i].is_there = ic_below(&random_state, 3) > 0;
        model[i].field = (unsigned)(one.field.offset - 8) / 8;
        changes[made++] = model[i].is_there ? ic_adding(ic, &one) : ic_removing(ic, &one.guard);
    }
    ic_assert_done(cairn_ics_change(changes, made, CAIRN_RELAXED, &error), error);
}

static void make_megamorphic(const struct form *form)
{
    for (unsigned i = 0; i < 2; i++)
        add_key(form, i);
    ck_assert_int_eq(cairn_ic_state(ic), CAIRN_IC_MEGAMORPHIC);
}

/* ---- Tests ---- */

static unsigned hits, present;
static void check_key(const struct ic_function *function, const struct form *form, unsigned i)
{
    bool is_hit = access_key(function, form, model[i].key, model[i].field);
    ck_assert_msg(!is_hit || model[i].is_there, "key 0x%" PRIx64 " has no case, but hits",
                  model[i].key);
    hits += is_hit;
    present += model[i].is_there;
}

static void run_random(const struct form *form, unsigned count)
{
    const struct ic_function function = function_of(form);
    struct cairn_error error = {0};
    seen.answer = (struct cairn_value){.size = 0};
    if (!form->is_store)
        seen.answer = ic_random_value(ic_declared_result(form->type), &random_state);
    make_keys(form, count);
    ic = create(program.sites[0], with_table);
    for (uint64_t round = ic_rounds(60) * 20; round > 0; round--) {
        if (cairn_ic_state(ic) != CAIRN_IC_MEGAMORPHIC)
            make_megamorphic(form);
        unsigned i = ic_below(&random_state, count);
        switch (ic_below(&random_state, 16)) {
        case 0:
            remove_key(form, i);
            break;
        case 1:
            change_several(form, count);
            break;
        case 2:
            cairn_runtime_quiesce(runtime);
            break;
        case 3:
            if (ic_below(&random_state, 20) > 0)
                break;
            reset();
            for (unsigned j = 0; j < count; j++)
                model[j].is_there = false;
            break;
        default:
            if (!model[i].is_there || ic_below(&random_state, 4) == 0)
                add_key(form, i);
            break;
        }
        for (int j = 0; j < 6 && cairn_ic_state(ic) == CAIRN_IC_MEGAMORPHIC; j++)
            check_key(&function, form, ic_below(&random_state, count));
    }
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
    cairn_runtime_quiesce(runtime);
}

START_TEST(random_changes_match_a_model)
{
    const struct form *form = &forms[_i];
    const struct ic_function function = function_of(form);
    random_state = support_seed_or(20261123) + (unsigned)_i;
    if (!ic_can_return(function.result))
        return;
    load(&function, 1);
    hits = present = 0;
    run_random(form, SMALL);
    /* There is a table in which all of these have slots of their own. */
    ck_assert_msg(hits >= present * 9 / 10, "%u of %u hit", hits, present);
    hits = present = 0;
    run_random(form, KEYS);
    printf("check_llvm_ic_table: %u of %u accesses of %d keys hit\n", hits, present, KEYS);
    ck_assert_uint_gt(hits, present / 2);
}
END_TEST

START_TEST(words_that_differ_from_a_key_in_any_bit_miss)
{
    const struct form *form = &forms[_i];
    const struct ic_function function = function_of(form);
    unsigned bits = form->key_width * 8u;
    random_state = support_seed_or(20261123);
    load(&function, 1);
    ic = create(program.sites[0], with_table);
    answer(ANSWER);
    make_keys(form, 8);
    for (unsigned i = 0; i < 8; i++)
        add_key(form, i);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned bit = 0; bit < bits; bit++) {
            uint64_t other = model[i].key ^ UINT64_C(1) << bit;
            bool is_key = false;
            for (unsigned j = 0; j < 8; j++)
                is_key |= model[j].key == other;
            ck_assert(is_key || !access_key(&function, form, other, 0));
        }
    for (unsigned i = 0; i < 8; i++)
        check_key(&function, form, i);
    /* Zero belongs to the first slot. */
    bool has_zero = false;
    for (unsigned i = 0; i < 8; i++)
        has_zero |= model[i].key == 0;
    ck_assert(has_zero || !access_key(&function, form, 0, 0));
}
END_TEST

START_TEST(cases_of_other_forms_miss)
{
    const struct form *form = &forms[0];
    const struct ic_function function = function_of(form);
    struct cairn_ic_description is;
    load(&function, 1);
    ic = create(program.sites[0], with_table);
    answer(ANSWER);
    for (unsigned i = 0; i < 4; i++) {
        const struct cairn_ic_case added = case_of(form, 100 + i, i);
        add(&added);
    }
    struct cairn_ic_case other = case_of(form, 200, 1);
    other.field.width = 4;
    add(&other);
    other = case_of(form, 201, 1);
    other.guard.mask = 0xFFFF;
    add(&other);
    other = case_of(form, 202, 1);
    other.action = CAIRN_IC_CONSTANT;
    add(&other);
    other = case_of(form, 203, 1);
    other.field.offset = -8;
    add(&other);
    other = case_of(&forms[1], 204, 1);
    add(&other);
    for (uint64_t key = 200; key < 205; key++)
        ck_assert(!access_key(&function, form, key, 1));
    for (unsigned i = 0; i < 4; i++)
        ck_assert(access_key(&function, form, 100 + i, i));
    cairn_ic_describe(ic, NULL, 0, &is);
    ck_assert_int_eq(is.state, CAIRN_IC_MEGAMORPHIC);
    ck_assert_uint_eq(is.case_count, 0);
    ck_assert_uint_eq(is.table_case_count, 4);
    reset();
    cairn_ic_describe(ic, NULL, 0, &is);
    ck_assert_uint_eq(is.table_case_count, 0);
    ck_assert(!access_key(&function, form, 100, 0));
}
END_TEST

START_TEST(caches_without_a_table_and_those_that_count_take_no_cases)
{
    static const struct cairn_ic_options options[] = {
        {.case_limit = 1},
        {.case_limit = 1, .has_table = true, .counts_hits = true},
    };
    const struct form *form = &forms[0];
    const struct ic_function function = function_of(form);
    load(&function, 1);
    ic = create(program.sites[0], options[_i]);
    answer(ANSWER);
    for (unsigned i = 0; i < 4; i++) {
        const struct cairn_ic_case added = case_of(form, 100 + i, i);
        add(&added);
    }
    for (unsigned i = 0; i < 4; i++)
        ck_assert(!access_key(&function, form, 100 + i, i));
}
END_TEST

START_TEST(keys_that_are_not_in_the_table_reach_the_megamorphic_target)
{
    struct cairn_ic_options options = with_table;
    const struct form *form = &forms[_i];
    const struct ic_function function = function_of(form);
    options.megamorphic_target = (const void *)(uintptr_t)first_target;
    load(&function, 1);
    ic = create(program.sites[0], options);
    for (unsigned i = 0; i < 4; i++) {
        const struct cairn_ic_case added = case_of(form, 100 + i, i);
        add(&added);
    }
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 4; i++)
            ck_assert(access_key(&function, form, 100 + i, i));
        struct wide_object object = {.key = 104};
        const struct cairn_value stored = cairn_value_of_integer(64, 1000);
        ic_set_pointer(&access_0, 0, &object);
        ic_set_operand(&access_0, 1, &stored);
        program.functions[0](&access_0);
        ck_assert_uint_eq(read_bytes(access_0.result, 8), 1077);
    }
    ck_assert_uint_eq(seen.misses + seen.megamorphic_misses, 0);
}
END_TEST

static enum cairn_status add_four(struct cairn_error *error)
{
    struct cairn_ic_change changes[4];
    struct cairn_ic_case added[4];
    for (unsigned i = 0; i < 4; i++) {
        added[i] = case_of(&forms[0], 100 + i, i);
        changes[i] = ic_adding(ic, &added[i]);
    }
    return cairn_ics_change(changes, 4, CAIRN_RELAXED, error);
}

static enum cairn_status add_fifth(struct cairn_error *error)
{
    const struct cairn_ic_case added = case_of(&forms[0], 104, 4);
    return cairn_ic_add(ic, &added, CAIRN_RELAXED, error);
}

static void expect_empty(void) { ck_assert_int_eq(cairn_ic_state(ic), CAIRN_IC_EMPTY); }

static void expect_four(void)
{
    struct cairn_ic_description is;
    cairn_ic_describe(ic, NULL, 0, &is);
    ck_assert_uint_eq(is.table_case_count, 4);
}

START_TEST(a_change_without_memory_changes_nothing)
{
    const struct ic_function function = function_of(&forms[0]);
    load(&function, 1);
    ic = create(program.sites[0], with_table);
    fail_each_allocation(add_four, expect_empty);
    fail_each_allocation(add_fifth, expect_four);
    for (unsigned i = 0; i < 5; i++)
        ck_assert(access_key(&function, &forms[0], 100 + i, i));
}
END_TEST

/* ---- Threads ---- */

enum { THREADS = 3, THREAD_KEYS = 64 };
static atomic_bool stops;
static atomic_uint wrong;
static atomic_ulong hits_of_threads;

/* The field is the key modulo FIELDS, and holds the key. */
static void *read_keys(void *argument)
{
    static const struct ic_function function = {.calling_convention = ANYREG};
    struct ic_access access;
    struct wide_object object;
    uint64_t random = 1 + (uintptr_t)argument;
    (void)function;
    memset(&access, 0, sizeof access);
    while (!atomic_load(&stops)) {
        object.key = 1 + ic_below(&random, THREAD_KEYS);
        for (unsigned i = 0; i < FIELDS; i++)
            object.fields[i] = i == object.key % FIELDS ? object.key : UINT64_MAX;
        ic_set_pointer(&access, 0, &object);
        program.functions[0](&access);
        uint64_t result = read_bytes(access.result, 8);
        if (result != object.key && result != ANSWER)
            atomic_fetch_add(&wrong, 1);
        if (result == object.key)
            atomic_fetch_add(&hits_of_threads, 1);
    }
    return NULL;
}

static void missed_in_thread(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_value value = cairn_value_of_integer(64, ANSWER);
    (void)user;
    if (cairn_ic_return(miss, &value, NULL) != CAIRN_OK)
        atomic_fetch_add(&wrong, 1);
}

static void change_among_threads(const struct form *form)
{
    struct cairn_error error = {0};
    for (uint64_t i = ic_rounds(60) * 200; i > 0 || atomic_load(&hits_of_threads) < 100; i--) {
        uint64_t key = 1 + ic_below(&random_state, THREAD_KEYS);
        const struct cairn_ic_case one = case_of(form, key, key % FIELDS);
        if (ic_below(&random_state, 200) == 0)
            reset();
        else if (ic_below(&random_state, 4) > 0)
            add(&one);
        else if (cairn_ic_state(ic) == CAIRN_IC_MEGAMORPHIC)
            ic_assert_done(ic_remove(ic, &one.guard, CAIRN_RELAXED, &error), error);
        i += i == 0;
    }
}

START_TEST(threads_read_while_a_table_changes)
{
    struct cairn_ic_options options = with_table;
    pthread_t threads[THREADS];
    struct cairn_error error = {0};
    const struct form *form = &forms[_i];
    const struct ic_function function = function_of(form);
    random_state = support_seed_or(20261123);
    load(&function, 1);
    options.handler = missed_in_thread;
    for (int round = 0; round < 4; round++) {
        ic = create(program.sites[0], options);
        atomic_store(&stops, false);
        atomic_store(&hits_of_threads, 0);
        for (uintptr_t i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, read_keys, (void *)i), 0);
        change_among_threads(form);
        atomic_store(&stops, true);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
        cairn_runtime_quiesce(runtime);
    }
    ck_assert_uint_eq(atomic_load(&wrong), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tables of inline caches");
    TCase *tests = tcase_create("tables");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, random_changes_match_a_model, 0, FORMS);
    tcase_add_loop_test(tests, words_that_differ_from_a_key_in_any_bit_miss, 0, 2);
    tcase_add_test(tests, cases_of_other_forms_miss);
    tcase_add_loop_test(tests, caches_without_a_table_and_those_that_count_take_no_cases, 0, 2);
    tcase_add_loop_test(tests, keys_that_are_not_in_the_table_reach_the_megamorphic_target, 4, 6);
    tcase_add_test(tests, a_change_without_memory_changes_nothing);
    tcase_add_loop_test(tests, threads_read_while_a_table_changes, 0, 2);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
