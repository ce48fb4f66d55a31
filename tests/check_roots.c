/*
 * check_roots.c - tests of the roots of statepoint frames: src/frame/roots.c.
 *
 * Frames and records are written by hand, for every machine. check_llvm_roots.c tests the records
 * that LLVM writes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/frame.h"
#include "stackmap_support.h"

#include "arch/arch.h"
#include "record/table.h"

#include <cairn/roots.h>
#include <cairn/statepoint.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE = 0x1000,
    RETURN_OFFSET = 0x20,
    STACK_WORDS = 4096, /* slots of more than one window */
    LOCATIONS_MAX = 800,
    SAVED_WORDS = FRAME_SLOTS
};

/* ---- A frame, and a record for it ---- */

static uint64_t stack[STACK_WORDS];
static uint64_t saved[SAVED_WORDS];
static struct cairn_frame frame;
static cairn_table *table;
static struct cairn_record record;
static uint16_t stack_pointer;
static uint16_t kept[2]; /* callee-saved registers */

static uint64_t *saved_place(uint16_t dwarf)
{
    const struct cairn_arch *arch = arch_host();
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < arch->unwind_slot_count; i++)
        if (arch->unwind_slots[i].dwarf == dwarf)
            return &saved[i];
    ck_abort_msg("register %u is not kept", dwarf);
}

static void set_up(void)
{
    const struct cairn_arch *arch = arch_host();
    stack_pointer = arch_host_layout.stack_pointer;
    table = NULL;
    frame = (struct cairn_frame){
        .pc = CODE + RETURN_OFFSET, .sp = (uintptr_t)stack, .is_calling = true};
    for (size_t i = 0; i < arch->unwind_slot_count; i++)
        frame.private_words[i] = &saved[i];
    for (size_t i = 0; i < 2; i++)
        kept[i] = arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS + 1 + i].dwarf;
    memset(stack, 0x5A, sizeof stack);
    memset(saved, 0xA5, sizeof saved);
}

static void tear_down(void) { cairn_table_destroy(table); }

static struct cairn_location locations[LOCATIONS_MAX];
static uint32_t location_count;

static void put(struct cairn_location location)
{
    ck_assert_uint_lt(location_count, LOCATIONS_MAX);
    locations[location_count++] = location;
}

static void put_constant(int32_t value)
{
    put((struct cairn_location){.kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = value});
}

static void begin(int32_t deopt_count)
{
    location_count = 0;
    put_constant(0);
    put_constant(0);
    put_constant(deopt_count);
}

static struct cairn_location in_register(uint16_t dwarf)
{
    return (struct cairn_location){.kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = dwarf};
}

static struct cairn_location in_stack(uint32_t word)
{
    return (struct cairn_location){.kind = CAIRN_LOCATION_INDIRECT,
                                   .size = 8,
                                   .dwarf = stack_pointer,
                                   .offset = (int32_t)(word * sizeof *stack)};
}

static struct cairn_location address_of(uint32_t word)
{
    return (struct cairn_location){.kind = CAIRN_LOCATION_DIRECT,
                                   .size = 8,
                                   .dwarf = stack_pointer,
                                   .offset = (int32_t)(word * sizeof *stack)};
}

static void end(void)
{
    static const struct cairn_stackmap_function function = {CODE, 8, 1};
    const struct sample_record sample = {
        .code_offset = RETURN_OFFSET, .location_count = location_count, .locations = locations};
    const struct sample_map map = {3, 0, 1, 0, 1, &function, NULL, &sample};
    cairn_table_destroy(table);
    table = section_make_table(&map);
    record = (struct cairn_record){table, 0};
}

/* ---- A collector ---- */

enum { OBJECT_BYTES = 0x1000, DISTANCE_MAX = 0x800 };

static uint32_t moves;

static uint64_t new_address(uint64_t object) { return 7 * object + 0x12345000; }

static void *move(void *object, void *user)
{
    ck_assert_ptr_eq(user, &moves);
    bool is_base = (uintptr_t)object % OBJECT_BYTES == 0;
    expect(is_base);
    moves++;
    return (void *)(uintptr_t)new_address((uintptr_t)object);
}

static void relocate(void)
{
    struct cairn_error error = {0};
    moves = 0;
    enum cairn_status status = cairn_frame_relocate(&frame, record, move, &moves, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* ---- Single features ---- */

START_TEST(a_base_that_occurs_often_is_moved_once)
{
    stack[3] = 5 * OBJECT_BYTES;
    begin(0);
    for (int i = 0; i < 6; i++)
        put(in_stack(3));
    end();
    relocate();
    ck_assert_uint_eq(moves, 1);
    ck_assert_uint_eq(stack[3], new_address(5 * OBJECT_BYTES));
}
END_TEST

/* Derived pointers precede and follow the pair of the base alone, and one of them occurs twice. */
START_TEST(derived_pointers_keep_their_distance)
{
    stack[0] = 5 * OBJECT_BYTES;
    stack[1] = 5 * OBJECT_BYTES + 24;
    stack[2] = 5 * OBJECT_BYTES - 8;
    begin(0);
    static const uint32_t pairs[][2] = {{0, 1}, {0, 0}, {0, 2}, {0, 1}};
    for (size_t i = 0; i < 4; i++) {
        put(in_stack(pairs[i][0]));
        put(in_stack(pairs[i][1]));
    }
    end();
    relocate();
    ck_assert_uint_eq(moves, 1);
    ck_assert_uint_eq(stack[0], new_address(5 * OBJECT_BYTES));
    ck_assert_uint_eq(stack[1], new_address(5 * OBJECT_BYTES) + 24);
    ck_assert_uint_eq(stack[2], new_address(5 * OBJECT_BYTES) - 8);
}
END_TEST

START_TEST(a_derived_pointer_that_is_a_base_too_is_moved_as_one)
{
    stack[0] = 5 * OBJECT_BYTES;
    stack[1] = 5 * OBJECT_BYTES;
    stack[2] = 5 * OBJECT_BYTES + 40;
    begin(0);
    put(in_stack(0));
    put(in_stack(1));
    put(in_stack(1));
    put(in_stack(2));
    end();
    relocate();
    ck_assert_uint_eq(stack[0], new_address(5 * OBJECT_BYTES));
    ck_assert_uint_eq(stack[1], new_address(5 * OBJECT_BYTES));
    ck_assert_uint_eq(stack[2], new_address(5 * OBJECT_BYTES) + 40);
}
END_TEST

START_TEST(null_is_not_moved)
{
    stack[0] = 0;
    stack[1] = 40;
    begin(0);
    put(in_stack(0));
    put(in_stack(0));
    put(in_stack(0));
    put(in_stack(1));
    put_constant(0);
    put_constant(0);
    put_constant(0);
    put(in_stack(2));
    end();
    relocate();
    ck_assert_uint_eq(moves, 0);
    ck_assert_uint_eq(stack[0], 0);
    ck_assert_uint_eq(stack[1], 40);
    ck_assert_uint_eq(stack[2], 0x5A5A5A5A5A5A5A5A);
}
END_TEST

START_TEST(roots_in_registers_are_changed_where_they_are_saved)
{
    *saved_place(kept[0]) = 5 * OBJECT_BYTES;
    *saved_place(kept[1]) = 5 * OBJECT_BYTES + 16;
    stack[9] = 5 * OBJECT_BYTES + 8;
    begin(1);
    put(in_register(kept[1]));
    put(in_register(kept[0]));
    put(in_register(kept[1]));
    put(in_register(kept[0]));
    put(in_stack(9));
    end();
    relocate();
    ck_assert_uint_eq(moves, 1);
    ck_assert_uint_eq(*saved_place(kept[0]), new_address(5 * OBJECT_BYTES));
    ck_assert_uint_eq(*saved_place(kept[1]), new_address(5 * OBJECT_BYTES) + 16);
    ck_assert_uint_eq(stack[9], new_address(5 * OBJECT_BYTES) + 8);
}
END_TEST

START_TEST(places_on_the_stack_are_found_by_any_register)
{
    static struct cairn_context context;
    frame.context = &context;
    *saved_place(kept[0]) = (uintptr_t)&stack[100];
    stack[99] = 5 * OBJECT_BYTES;
    stack[3] = 6 * OBJECT_BYTES;
    struct cairn_location below = in_stack((uint32_t)-1);
    below.dwarf = kept[0];
    begin(0);
    put(in_stack(3));
    put(in_stack(3));
    put(below);
    put(below);
    put(in_stack(99)); /* the same slot */
    put(in_stack(99));
    end();
    relocate();
    ck_assert_uint_eq(moves, 2);
    ck_assert_uint_eq(stack[99], new_address(5 * OBJECT_BYTES));
    ck_assert_uint_eq(stack[3], new_address(6 * OBJECT_BYTES));
}
END_TEST

/* There are more derived pointers than the code's list can hold. */
START_TEST(a_frame_may_have_hundreds_of_derived_pointers)
{
    enum { PAIRS = 300 };
    begin(0);
    for (uint32_t i = 0; i < PAIRS; i++) {
        stack[2 * i] = (i + 1) * (uint64_t)OBJECT_BYTES;
        stack[2 * i + 1] = stack[2 * i] + i;
        put(in_stack(2 * i));
        put(in_stack(2 * i + 1));
    }
    end();
    relocate();
    ck_assert_uint_eq(moves, PAIRS);
    for (uint32_t i = 0; i < PAIRS; i++) {
        ck_assert_uint_eq(stack[2 * i], new_address((i + 1) * (uint64_t)OBJECT_BYTES));
        ck_assert_uint_eq(stack[2 * i + 1], stack[2 * i] + i);
    }
}
END_TEST

START_TEST(near_places_are_enumerated_as_llvm_has_them)
{
    struct cairn_root roots[3] = {{NULL, NULL}};
    size_t count = 0;
    begin(0);
    put(in_stack(1));
    put(in_stack(2));
    put(in_stack(9));
    put(in_stack(9));
    put(in_stack(1));
    put(in_stack(2));
    end();
    ck_assert_ok(cairn_frame_roots(&frame, record, roots, 2, &count, NULL));
    ck_assert_uint_eq(count, 3);
    ck_assert_ptr_eq(roots[0].base, &stack[1]);
    ck_assert_ptr_eq(roots[0].derived, &stack[2]);
    ck_assert_ptr_eq(roots[1].base, &stack[9]);
    ck_assert_ptr_eq(roots[1].derived, &stack[9]);
    ck_assert_ptr_null(roots[2].base);
    ck_assert_ok(cairn_frame_roots(&frame, record, NULL, 0, &count, NULL));
    ck_assert_uint_eq(count, 3);
}
END_TEST

START_TEST(roots_are_enumerated_as_llvm_has_them)
{
    struct cairn_root roots[3] = {{NULL, NULL}};
    size_t count = 0;
    begin(0);
    put(in_stack(1));
    put(in_stack(2));
    put_constant(0);
    put_constant(0);
    put(in_register(kept[0]));
    put(in_register(kept[0]));
    put(in_stack(1));
    put(in_stack(2));
    put(address_of(20));
    end();
    ck_assert_ok(cairn_frame_roots(&frame, record, roots, 2, &count, NULL));
    ck_assert_uint_eq(count, 3);
    ck_assert_ptr_eq(roots[0].base, &stack[1]);
    ck_assert_ptr_eq(roots[0].derived, &stack[2]);
    ck_assert_ptr_eq(roots[1].base, saved_place(kept[0]));
    ck_assert_ptr_eq(roots[1].derived, saved_place(kept[0]));
    ck_assert_ptr_null(roots[2].base);
    ck_assert_ok(cairn_frame_roots(&frame, record, NULL, 0, &count, NULL));
    ck_assert_uint_eq(count, 3);
}
END_TEST

START_TEST(allocas_are_enumerated)
{
    struct cairn_statepoint statepoint;
    struct cairn_value address;
    begin(1);
    put(address_of(30)); /* a deopt value */
    put(in_stack(1));
    put(in_stack(1));
    put(address_of(20));
    put(address_of(10));
    end();
    ck_assert_ok(cairn_record_statepoint(record, &statepoint, NULL));
    ck_assert_uint_eq(statepoint.alloca_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct cairn_location location = cairn_record_location(record, statepoint.first_alloca + i);
        ck_assert_ok(cairn_frame_at_location(&frame, location, CAIRN_POINTER, &address, NULL));
        ck_assert_ptr_eq(cairn_value_pointer(&address), &stack[i == 0 ? 20 : 10]);
    }
}
END_TEST

/* ---- Errors ---- */

/* The first root is valid, but must be unchanged after the error, too. */
static void expect_refusal(struct cairn_location bad, enum cairn_status status, const char *words)
{
    struct cairn_error error = {0};
    struct cairn_root root;
    size_t count = 77;
    stack[0] = 5 * OBJECT_BYTES;
    begin(0);
    put(in_stack(0));
    put(in_stack(0));
    put(in_stack(0));
    put(bad);
    end();
    moves = 0;
    ck_assert_int_eq(cairn_frame_relocate(&frame, record, move, &moves, &error), status);
    ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
    ck_assert_int_eq(cairn_frame_relocate(&frame, record, move, &moves, NULL), status);
    ck_assert_int_eq(cairn_frame_roots(&frame, record, &root, 1, &count, NULL), status);
    ck_assert_uint_eq(moves, 0);
    ck_assert_uint_eq(count, 77);
    ck_assert_uint_eq(stack[0], 5 * OBJECT_BYTES);
}

START_TEST(roots_in_registers_that_calls_change_are_refused)
{
    const struct cairn_arch *arch = arch_host();
    uint16_t changed = arch->results.general[0];
    expect_refusal(in_register(changed), CAIRN_ERROR_NOT_FOUND, "is not known");
}
END_TEST

START_TEST(roots_in_registers_that_were_not_saved_are_refused)
{
    frame.private_words[ARCH_UNWIND_RETURN_ADDRESS + 1] = NULL;
    expect_refusal(in_register(kept[0]), CAIRN_ERROR_NOT_FOUND, "is not known");
}
END_TEST

START_TEST(roots_that_are_vectors_are_refused)
{
    struct cairn_location vector = in_stack(4);
    vector.size = 16;
    expect_refusal(vector, CAIRN_ERROR_UNSUPPORTED, "has 16 bytes, and not 8");
}
END_TEST

START_TEST(roots_below_the_stack_pointer_are_refused)
{
    expect_refusal(in_stack((uint32_t)-1), CAIRN_ERROR_CORRUPT, "a root of the frame");
}
END_TEST

START_TEST(roots_that_are_not_aligned_are_refused)
{
    struct cairn_location odd = in_stack(4);
    odd.offset += 4;
    expect_refusal(odd, CAIRN_ERROR_CORRUPT, "a root of the frame");
}
END_TEST

START_TEST(a_pair_of_which_one_is_an_alloca_is_refused)
{
    expect_refusal(address_of(4), CAIRN_ERROR_CORRUPT, "base and derived pointers come in pairs");
}
END_TEST

START_TEST(records_of_other_kinds_are_refused)
{
    struct cairn_error error;
    size_t count;
    location_count = 0;
    put(in_stack(1));
    put(in_stack(1));
    put(in_stack(1));
    end();
    ck_assert_int_eq(cairn_frame_relocate(&frame, record, move, NULL, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(cairn_frame_roots(&frame, record, NULL, 0, &count, &error),
                     CAIRN_ERROR_CORRUPT);
    record.table = NULL;
    ck_assert_int_eq(cairn_frame_relocate(&frame, record, move, NULL, &error),
                     CAIRN_ERROR_ARGUMENT);
    begin(0);
    end();
    ck_assert_int_eq(cairn_frame_relocate(&frame, record, NULL, NULL, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_frame_relocate(NULL, record, move, NULL, &error), CAIRN_ERROR_ARGUMENT);
    table_set_return_delta(table, 0, 5);
    ck_assert_int_eq(cairn_frame_relocate(&frame, record, move, NULL, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "is not a statepoint's"));
}
END_TEST

/* ---- Random frames ---- */

enum { BASES_MAX = 40, DERIVED_MAX = 100, ROUNDS = 500 };

/* Expected contents of a frame. */
static uint64_t expected_stack[STACK_WORDS];
static uint64_t expected_saved[SAVED_WORDS];
static uint32_t expected_moves;

/* Chooses a slot or register that no other root has. */
struct random_place {
    struct cairn_location location;
    uint64_t *now;
    uint64_t *then;
};

static bool is_taken[STACK_WORDS];
static bool is_kept_taken[2];

/* Properties of random frames, which make the code use all its methods. */
enum order { ORDER_NONE, ORDER_UP, ORDER_DOWN };
struct shape {
    uint32_t words; /* number of stack words in which there may be roots */
    uint32_t bases_max;
    uint32_t registers; /* one of this many roots may be in a register; 0: none */
    enum order order;   /* order of the stack slots */
    bool has_derived;   /* whether derived pointers have their own slots */
    bool comes_again;
    /* Whether stack slots are addressed by a register other than the stack pointer. */
    bool has_base_register;
};
enum { ANCHOR = 200 }; /* index of the word that the register points to */

static struct shape shape;
static uint32_t last_word;

static struct cairn_location random_location(uint32_t word)
{
    struct cairn_location location = in_stack(word);
    if (shape.has_base_register) {
        location.dwarf = kept[0];
        location.offset -= (int32_t)(ANCHOR * sizeof *stack);
    }
    return location;
}

/* Chooses a word that is not used yet; if there is an order, one that follows it. */
static uint32_t random_word(uint64_t *state)
{
    uint32_t word;
    if (shape.order == ORDER_UP)
        return last_word += 1 + sample_random(state, 3);
    if (shape.order == ORDER_DOWN)
        return last_word -= 1 + sample_random(state, 3);
    do
        word = sample_random(state, shape.words);
    while (is_taken[word]);
    return word;
}

static struct random_place random_place(uint64_t *state)
{
    uint32_t which = shape.registers == 0 ? 2 : sample_random(state, shape.registers);
    if (which < 2 && !is_kept_taken[which]) {
        is_kept_taken[which] = true;
        uint64_t *now = saved_place(kept[which]);
        return (struct random_place){in_register(kept[which]), now, expected_saved + (now - saved)};
    }
    uint32_t word = random_word(state);
    is_taken[word] = true;
    return (struct random_place){random_location(word), &stack[word], &expected_stack[word]};
}

static struct random_place random_base(uint64_t *state)
{
    struct random_place base = random_place(state);
    *base.now = sample_random(state, 8) == 0
                    ? 0
                    : (uint64_t)(1 + sample_random(state, 1 << 16)) * OBJECT_BYTES;
    *base.then = *base.now == 0 ? 0 : new_address(*base.now);
    expected_moves += *base.now != 0;
    return base;
}

static struct random_place random_derived(uint64_t *state, const struct random_place *base)
{
    struct random_place derived = random_place(state);
    uint64_t distance = sample_random(state, DISTANCE_MAX) - (uint64_t)DISTANCE_MAX / 4;
    *derived.now = *base->now + distance;
    *derived.then = *base->then + distance;
    return derived;
}

static void put_pair(const struct random_place *base, const struct random_place *derived)
{
    put(base->location);
    put(derived->location);
}

/* Writes each base at least once, alone or with a derived pointer, and repeats some pairs, in any
 * order. */
static void put_random_pairs(uint64_t *state)
{
    static struct random_place bases[BASES_MAX];
    static struct random_place derived[DERIVED_MAX];
    static uint32_t base_of[DERIVED_MAX];
    uint32_t base_count = 1 + sample_random(state, shape.bases_max);
    uint32_t more = shape.comes_again ? sample_random(state, DERIVED_MAX - BASES_MAX) : 0;
    for (uint32_t i = 0; i < base_count; i++)
        bases[i] = random_base(state);
    for (uint32_t i = 0; i < base_count + more; i++) {
        base_of[i] = i < base_count ? i : sample_random(state, base_count);
        const struct random_place *base = &bases[base_of[i]];
        bool is_own = !shape.has_derived || sample_random(state, 2) == 0;
        derived[i] = is_own ? *base : random_derived(state, base);
        put_pair(base, &derived[i]);
    }
    for (uint32_t again = shape.comes_again ? sample_random(state, DERIVED_MAX) : 0; again > 0;
         again--) {
        uint32_t i = sample_random(state, base_count + more);
        put_pair(&bases[base_of[i]], &derived[i]);
    }
}

static void clear_frame(void)
{
    memset(is_taken, 0, sizeof is_taken);
    memset(is_kept_taken, 0, sizeof is_kept_taken);
    memset(stack, 0x5A, sizeof stack);
    memset(saved, 0xA5, sizeof saved);
    if (shape.has_base_register) {
        is_kept_taken[0] = true;
        *saved_place(kept[0]) = (uintptr_t)&stack[ANCHOR];
    }
    last_word = shape.order == ORDER_DOWN ? shape.words : 0;
    memcpy(expected_stack, stack, sizeof stack);
    memcpy(expected_saved, saved, sizeof saved);
    expected_moves = 0;
}

static void expect_random_frame(uint64_t *state)
{
    clear_frame();
    begin((int32_t)sample_random(state, 2));
    if (locations[2].offset != 0)
        put(address_of(1));
    put_random_pairs(state);
    end();
    relocate();
    expect(memcmp(stack, expected_stack, sizeof stack) == 0);
    expect(memcmp(saved, expected_saved, sizeof saved) == 0);
    expect(moves == expected_moves);
}

static const struct shape shapes[] = {
    {300, BASES_MAX, 30, ORDER_NONE, true, true, false},
    {STACK_WORDS, BASES_MAX, 30, ORDER_NONE, true, true, false},
    {300, BASES_MAX, 0, ORDER_NONE, true, false, false},
    {300, BASES_MAX, 0, ORDER_NONE, true, true, true},
    {300, BASES_MAX, 0, ORDER_NONE, false, true, false},
    {64, 30, 0, ORDER_NONE, false, true, false},
    {65, 30, 0, ORDER_NONE, false, false, false},
    {64, 30, 0, ORDER_NONE, false, true, true},
    {300, BASES_MAX, 0, ORDER_UP, false, false, false},
    {300, BASES_MAX, 0, ORDER_DOWN, false, false, true},
    {300, BASES_MAX, 40, ORDER_UP, false, false, false},
    {STACK_WORDS, BASES_MAX, 0, ORDER_DOWN, false, false, false},
    {1028, BASES_MAX, 0, ORDER_DOWN, false, false, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(random_frames_are_relocated_as_a_model_says)
{
    static struct cairn_context context;
    uint64_t state = sample_seed() + (uint64_t)_i;
    frame.context = &context;
    shape = shapes[_i];
    for (int i = 0; i < ROUNDS; i++)
        expect_random_frame(&state);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roots");
    TCase *places = tcase_create("places");
    tcase_add_checked_fixture(places, set_up, tear_down);
    tcase_set_timeout(places, 60);
    tcase_add_test(places, a_base_that_occurs_often_is_moved_once);
    tcase_add_test(places, derived_pointers_keep_their_distance);
    tcase_add_test(places, a_derived_pointer_that_is_a_base_too_is_moved_as_one);
    tcase_add_test(places, null_is_not_moved);
    tcase_add_test(places, roots_in_registers_are_changed_where_they_are_saved);
    tcase_add_test(places, places_on_the_stack_are_found_by_any_register);
    tcase_add_test(places, a_frame_may_have_hundreds_of_derived_pointers);
    tcase_add_test(places, near_places_are_enumerated_as_llvm_has_them);
    tcase_add_test(places, roots_are_enumerated_as_llvm_has_them);
    tcase_add_test(places, allocas_are_enumerated);
    tcase_add_loop_test(places, random_frames_are_relocated_as_a_model_says, 0, SHAPES);
    suite_add_tcase(suite, places);
    TCase *refusals = tcase_create("refusals");
    tcase_add_checked_fixture(refusals, set_up, tear_down);
    tcase_add_test(refusals, roots_in_registers_that_calls_change_are_refused);
    tcase_add_test(refusals, roots_in_registers_that_were_not_saved_are_refused);
    tcase_add_test(refusals, roots_that_are_vectors_are_refused);
    tcase_add_test(refusals, roots_below_the_stack_pointer_are_refused);
    tcase_add_test(refusals, roots_that_are_not_aligned_are_refused);
    tcase_add_test(refusals, a_pair_of_which_one_is_an_alloca_is_refused);
    tcase_add_test(refusals, records_of_other_kinds_are_refused);
    suite_add_tcase(suite, refusals);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
