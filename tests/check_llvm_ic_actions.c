/*
 * Tests of the guards and actions of inline caches at patch points that LLVM has compiled: every
 * width, offset and mask, compared with a simple model.
 *
 * Environment: CAIRN_TEST_SEED selects other random values.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Memory between inaccessible pages ---- */

/* Maps a page between two inaccessible pages. */
static unsigned char *page;

static size_t page_size;

static void make_page(void)
{
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mmap(NULL, 3 * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    page = pages + page_size;
    ck_assert_int_eq(mprotect(page, page_size, PROT_READ | PROT_WRITE), 0);
}

/* Returns a place of `width` bytes at one of the page's edges. */
static unsigned char *edge(uint64_t which, unsigned width)
{
    return which % 2 == 0 ? page : page + page_size - width;
}

/* Returns the base of an offset; the memory there need not be mapped. */
static const void *before_offset(const unsigned char *place, int32_t offset)
{
    return (const void *)((uintptr_t)place - (uintptr_t)(intptr_t)offset);
}

static const int32_t offsets[] = {
    0,     1,         -1,      3,         7,         8,         16,     127,    128,    -128,
    -129,  255,       256,     -255,      -256,      -257,      4094,   4095,   4096,   -4096,
    8190,  16380,     16384,   32760,     32764,     32767,     32768,  -32768, -32769, 65535,
    65536, (1 << 24), 0xfffff, 0x7ffffff, INT32_MAX, INT32_MIN, -65536, -65535, 131071, 524280,
};

enum { OFFSETS = sizeof offsets / sizeof *offsets };

static int32_t random_offset(void)
{
    if (ic_below(&random_state, 2) == 0)
        return offsets[ic_below(&random_state, OFFSETS)];
    return (int32_t)ic_random(&random_state) >> ic_below(&random_state, 32);
}

static const uint8_t widths[] = {1, 2, 4, 8};

enum { WIDTHS = sizeof widths / sizeof *widths };

static uint64_t ones(unsigned width) { return width == 8 ? UINT64_MAX : (1ULL << 8 * width) - 1; }

static void write_bytes(unsigned char *place, uint64_t number, unsigned width)
{
    memcpy(place, &number, width);
}

/* ---- Guards ---- */

enum { MASKS = 10 };

static uint64_t mask_number(unsigned index, unsigned width)
{
    uint64_t random = ic_random(&random_state);
    switch (index) {
    case 0:
        return 0;
    case 1:
        return ones(width);
    case 2:
        return 1;
    case 3:
        return 1ULL << (8 * width - 1);
    case 4:
        return 0xFFULL << 8 * ic_below(&random_state, width);
    case 5:
        return 1ULL << ic_below(&random_state, 8 * width);
    case 6:
        return 0x0F0F0F0F0F0F0F0F & ones(width);
    case 7:
        return ones(width) - 1;
    case 8:
        return ones(width) >> 1;
    default:
        return (random & ones(width)) | 1;
    }
}

static uint64_t effective_mask(const struct cairn_ic_guard *guard)
{
    return guard->mask == 0 ? ones(guard->width) : guard->mask;
}

static struct cairn_ic_guard random_guard(unsigned width, int32_t offset, unsigned mask_index)
{
    static const uint64_t edges[] = {0, UINT64_MAX, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x8000};
    struct cairn_ic_guard guard = {
        .offset = offset, .width = (uint8_t)width, .mask = mask_number(mask_index, width)};
    uint64_t key = ic_below(&random_state, 2) == 0 ? ic_random(&random_state)
                                                   : edges[ic_below(&random_state, 6)];
    guard.key = key & effective_mask(&guard);
    return guard;
}

/* Returns one bit of the mask. */
static uint64_t random_bit(uint64_t mask)
{
    for (;;) {
        uint64_t bit = 1ULL << ic_below(&random_state, 64);
        if ((mask & bit) != 0)
            return bit;
    }
}

static void try_guard(const struct cairn_ic_guard *guard, uint64_t number, uint64_t which)
{
    enum { HIT = 1234567 };
    unsigned char *place = edge(which, guard->width);
    write_bytes(place, number, guard->width);
    bool hits = (read_bytes(place, guard->width) & effective_mask(guard)) == guard->key;
    unsigned misses = seen.misses;
    answer(ANSWER);
    uint64_t result = run_function(0, before_offset(place, guard->offset));
    ck_assert_msg(result == (hits ? HIT : ANSWER) && seen.misses == misses + !hits,
                  "%u bytes at %d, mask 0x%" PRIx64 ", key 0x%" PRIx64 ": %s with 0x%" PRIx64,
                  guard->width, guard->offset, guard->mask, guard->key, hits ? "misses" : "hits",
                  number);
}

static void check_guard(const struct cairn_ic_guard *guard)
{
    enum { HIT = 1234567 };
    uint64_t mask = effective_mask(guard);
    uint64_t noise = ic_random(&random_state) & ~mask;
    const struct cairn_ic_case added = {
        .guard = *guard, .action = CAIRN_IC_CONSTANT, .constant = HIT};
    reset();
    add(&added);
    try_guard(guard, guard->key, 0);
    try_guard(guard, guard->key | noise, 1);
    try_guard(guard, (guard->key | noise) ^ random_bit(mask), 1);
    try_guard(guard, guard->key ^ random_bit(mask), 0);
    try_guard(guard, ~guard->key, 1);
    try_guard(guard, ic_random(&random_state), 0);
}

/* All of them natively, and some of them under emulators. */
static bool is_left_out(uint64_t number)
{
    return ic_rounds(60) < 60 && number % 7 != random_state % 7;
}

START_TEST(guards_compare_the_masked_bytes_at_their_offset_and_read_no_others)
{
    uint64_t number = 0;
    random_state = support_seed_or(20261122);
    make_page();
    load_one(getters[_i], no_options);
    for (unsigned width = 0; width < WIDTHS; width++)
        for (unsigned offset = 0; offset < OFFSETS; offset++)
            for (unsigned mask = 0; mask < MASKS; mask++, number++) {
                struct cairn_ic_guard guard = random_guard(widths[width], offsets[offset], mask);
                if (is_left_out(number))
                    continue;
                check_guard(&guard);
                if (number % 64 == 0)
                    cairn_runtime_quiesce(runtime);
            }
}
END_TEST

/* ---- Loads ---- */

static const struct cairn_type value_types[] = {
    INTEGER(8), INTEGER(16), INTEGER(32), INTEGER(64), POINTER, FLOAT, DOUBLE,
};

enum { VALUE_TYPES = sizeof value_types / sizeof *value_types };

static bool is_general(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER;
}

/* The number as a general register then holds it. */
static uint64_t extend(uint64_t number, const struct cairn_ic_field *field)
{
    unsigned unused = 64 - 8u * field->width;
    if (!field->is_signed)
        return number;
    return (uint64_t)((int64_t)(number << unused) >> unused);
}

static struct cairn_ic_field random_field(unsigned width)
{
    return (struct cairn_ic_field){
        .offset = random_offset(),
        .width = (uint8_t)width,
        .is_signed = ic_below(&random_state, 2) == 0,
        .is_out_of_line = ic_below(&random_state, 2) == 0,
        .pointer_offset = random_offset(),
    };
}

/* The field is at one of the page's edges. The pointer to an out-of-line field is in the middle. */
struct layout {
    struct cairn_ic_field field;
    unsigned char *place; /* type of the field */
    unsigned char *pointer;
    const void *receiver;
};

static struct layout lay_out(struct cairn_ic_field field)
{
    struct layout layout = {.field = field, .place = edge(ic_random(&random_state), field.width)};
    layout.pointer = page + page_size / 2;
    if (!field.is_out_of_line) {
        layout.receiver = before_offset(layout.place, field.offset);
        return layout;
    }
    const void *outside = before_offset(layout.place, field.offset);
    memcpy(layout.pointer, &outside, sizeof outside);
    layout.receiver = before_offset(layout.pointer, field.pointer_offset);
    return layout;
}

/* The place of the guard's byte: next to the receiver's field or pointer. */
static unsigned char *base_of(const struct layout *layout)
{
    return layout->field.is_out_of_line ? layout->pointer : layout->place;
}

static int64_t guard_offset(const struct layout *layout)
{
    enum { DISTANCE = 100 };
    int64_t offset =
        layout->field.is_out_of_line ? layout->field.pointer_offset : layout->field.offset;
    return offset + (base_of(layout) < page + DISTANCE ? DISTANCE : -DISTANCE);
}

static struct cairn_ic_guard guard_beside(const struct layout *layout)
{
    enum { KEY = 0x5A };
    struct cairn_ic_guard guard = {.width = 1, .offset = (int32_t)guard_offset(layout), .key = KEY};
    unsigned char *key =
        (unsigned char *)((uintptr_t)layout->receiver + (uintptr_t)(intptr_t)guard.offset);
    *key = KEY;
    return guard;
}

static bool fits(const struct layout *layout)
{
    int64_t offset = guard_offset(layout);
    return offset == (int32_t)offset;
}

static struct layout random_layout(unsigned width)
{
    struct layout layout;
    do
        layout = lay_out(random_field(width));
    while (!fits(&layout));
    return layout;
}

static void check_load(uint32_t index, struct cairn_type type, unsigned width)
{
    char name[64];
    struct layout layout = random_layout(width);
    uint64_t number = ic_random(&random_state);
    const struct cairn_ic_case added = {
        .guard = guard_beside(&layout), .action = CAIRN_IC_LOAD, .field = layout.field};
    write_bytes(layout.place, number, width);
    uint64_t expected = extend(read_bytes(layout.place, width), &layout.field);
    reset();
    add(&added);
    unsigned misses = seen.misses;
    uint64_t result = run_function(index, layout.receiver);
    cairn_type_format(type, name, sizeof name);
    ck_assert_uint_eq(seen.misses, misses);
    ck_assert_msg(memcmp(&result, &expected, cairn_type_size(type)) == 0,
                  "%u bytes at %d, signed %d, out of line %d at %d, as %s: 0x%" PRIx64
                  " and not 0x%" PRIx64,
                  width, layout.field.offset, layout.field.is_signed, layout.field.is_out_of_line,
                  layout.field.pointer_offset, name, result, expected);
}

/* The widths that a field of the declared type may have. */
static bool may_have_width(struct cairn_type type, unsigned width)
{
    size_t size = cairn_type_size(type);
    return is_general(type) ? width <= size : width == size;
}

/* Loads one function for each type, with one operand in addition to the receiver. */
static uint32_t load_results(uint32_t convention, struct cairn_type *types)
{
    struct ic_function functions[VALUE_TYPES];
    uint32_t count = 0;
    for (unsigned i = 0; i < VALUE_TYPES; i++) {
        if (!ic_can_return(value_types[i]))
            continue;
        types[count] = value_types[i];
        functions[count] = get;
        functions[count].calling_convention = convention;
        functions[count].result = value_types[i];
        count++;
    }
    load(functions, count);
    return count;
}

START_TEST(loads_extend_the_field_into_the_result)
{
    struct cairn_type types[VALUE_TYPES];
    uint32_t count = load_results(conventions[_i], types);
    uint64_t rounds = ic_rounds(300);
    random_state = support_seed_or(20261122);
    make_page();
    for (uint32_t i = 0; i < count; i++) {
        ic = create(program.sites[i], no_options);
        for (uint64_t round = 0; round < rounds; round++) {
            unsigned width = widths[round % WIDTHS];
            if (may_have_width(ic_declared_result(types[i]), width))
                check_load(i, types[i], width);
            if (round % 64 == 0)
                cairn_runtime_quiesce(runtime);
        }
    }
}
END_TEST

/* ---- Constants ---- */

START_TEST(constants_are_the_result_of_each_type)
{
    static const uint64_t edges[] = {
        0,          1,          UINT64_MAX,         0x80,
        0xFFFF,     0x7FFFFFFF, 0x80000000,         0xFFFFFFFF,
        1ULL << 32, 1ULL << 63, 0xFFFFFFFF00000000, 0x3FF0000000000000,
        0x3F800000, 0xBF800000, 0x00FF00FF00FF00FF, 0xFFFFFFFFFFFF8000};
    enum { EDGES = sizeof edges / sizeof *edges };
    struct cairn_type types[VALUE_TYPES];
    uint32_t count = load_results(conventions[_i], types);
    random_state = support_seed_or(20261122);
    for (uint32_t i = 0; i < count; i++) {
        ic = create(program.sites[i], no_options);
        for (uint64_t round = 0; round < EDGES + ic_rounds(60); round++) {
            struct cairn_value wanted = ic_random_value(types[i], &random_state);
            uint64_t constant = round < EDGES ? edges[round] : read_bytes(wanted.bytes, 8);
            reset();
            add_constant(1, constant);
            struct object object = {.shape = 1};
            uint64_t result = run_function(i, &object);
            ck_assert_uint_eq(seen.misses, 0);
            ck_assert_mem_eq(&result, &constant, cairn_type_size(types[i]));
        }
        cairn_runtime_quiesce(runtime);
    }
}
END_TEST

/* ---- Stores ---- */

static uint32_t load_setters(uint32_t convention, struct cairn_type *types)
{
    struct ic_function functions[VALUE_TYPES];
    uint32_t count = 0;
    for (unsigned i = 0; i < VALUE_TYPES; i++) {
        if (!ic_can_pass(value_types[i], convention))
            continue;
        types[count] = value_types[i];
        functions[count] = set;
        functions[count].calling_convention = convention;
        functions[count].operands[1] = value_types[i];
        count++;
    }
    load(functions, count);
    return count;
}

static void check_store(uint32_t index, struct cairn_type type, unsigned width)
{
    char name[64];
    struct layout layout = random_layout(width);
    struct cairn_value value = ic_random_value(type, &random_state);
    const struct cairn_ic_case added = {.guard = guard_beside(&layout),
                                        .action = CAIRN_IC_STORE,
                                        .field = layout.field,
                                        .operand = 1};
    static unsigned char expected[1 << 16];
    reset();
    add(&added);
    ic_set_operand(&access_0, 1, &value);
    memcpy(expected, page, page_size);
    memcpy(expected + (layout.place - page), value.bytes, width);
    unsigned misses = seen.misses;
    run_function(index, layout.receiver);
    cairn_type_format(type, name, sizeof name);
    ck_assert_uint_eq(seen.misses, misses);
    ck_assert_msg(memcmp(expected, page, page_size) == 0,
                  "%u bytes at %d, out of line %d at %d, of %s", width, layout.field.offset,
                  layout.field.is_out_of_line, layout.field.pointer_offset, name);
}

START_TEST(stores_write_the_operand_into_the_field_and_nothing_else)
{
    struct cairn_type types[VALUE_TYPES];
    uint32_t count = load_setters(conventions[_i], types);
    uint64_t rounds = ic_rounds(300);
    random_state = support_seed_or(20261122);
    make_page();
    ck_assert_uint_le(page_size, 1 << 16);
    for (uint32_t i = 0; i < count; i++) {
        ic = create(program.sites[i], no_options);
        for (uint64_t round = 0; round < rounds; round++) {
            unsigned width = widths[round % WIDTHS];
            if (may_have_width(types[i], width))
                check_store(i, types[i], width);
            if (round % 64 == 0)
                cairn_runtime_quiesce(runtime);
        }
    }
}
END_TEST

/* The object itself, like a link in a list of its kind. */
START_TEST(the_receiver_can_be_stored_into_itself)
{
    struct object object = {.shape = 1};
    const struct cairn_ic_case added = {
        .guard = shape_guard(1),
        .action = CAIRN_IC_STORE,
        .field = {.offset = offsetof(struct object, outside), .width = sizeof(void *)},
        .operand = 0,
    };
    load_one(&set, no_options);
    add(&added);
    run_function(0, &object);
    ck_assert_ptr_eq(object.outside, &object);
    ck_assert_uint_eq(seen.misses, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("actions of inline caches");
    TCase *tests = tcase_create("actions");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, guards_compare_the_masked_bytes_at_their_offset_and_read_no_others,
                        0, 2);
    tcase_add_loop_test(tests, loads_extend_the_field_into_the_result, 0, 2);
    tcase_add_loop_test(tests, constants_are_the_result_of_each_type, 0, 2);
    tcase_add_loop_test(tests, stores_write_the_operand_into_the_field_and_nothing_else, 0, 2);
    tcase_add_test(tests, the_receiver_can_be_stored_into_itself);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
