/*
 * Tests of inline caches at patch points that LLVM has compiled: guards and actions compared with a
 * simple model, arguments and actions of handlers, states, counts, lists, reports, and every
 * error.
 *
 * Environment: CAIRN_TEST_SEED selects other random values.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_support.h"

#include <inttypes.h>
#include <llvm-c/ExecutionEngine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ANYREG = CAIRN_CALLING_CONVENTION_ANYREG, C = CAIRN_CALLING_CONVENTION_C };
enum { FASTCC = 8, COLDCC = 9, PRESERVE_MOSTCC = 14, SWIFTCC = 16 };

#define INTEGER(width)                                                                             \
    {                                                                                              \
        .kind = CAIRN_TYPE_INTEGER, .bits = (width)                                                \
    }
#define POINTER                                                                                    \
    {                                                                                              \
        .kind = CAIRN_TYPE_POINTER, .bits = 64                                                     \
    }
#define FLOAT                                                                                      \
    {                                                                                              \
        .kind = CAIRN_TYPE_FLOAT, .bits = 32                                                       \
    }
#define DOUBLE                                                                                     \
    {                                                                                              \
        .kind = CAIRN_TYPE_DOUBLE, .bits = 64                                                      \
    }

static struct support_allocator allocations;
static cairn_runtime *runtime;
static struct ic_program program;
static cairn_ic *ic;
static struct ic_access access_0;
static uint64_t random_state;

/* ---- Calling conventions ---- */

/* Where LLVM knows the calling convention and passes arguments as C does. */
static bool has_convention(uint32_t convention)
{
    switch (cairn_architecture_host()) {
    case CAIRN_ARCHITECTURE_X86_64:
        return true;
    case CAIRN_ARCHITECTURE_AARCH64:
        return convention != COLDCC;
    default:
        return convention != FASTCC && convention != PRESERVE_MOSTCC;
    }
}

/* ---- The handler ---- */

static struct {
    unsigned misses;
    unsigned megamorphic_misses;
    uint32_t operand_count;
    struct cairn_value operands[CAIRN_IC_OPERANDS_MAX];
    struct cairn_value answer; /* kind void: no answer */
    void (*also)(struct cairn_ic_miss *miss);
} seen;

static void handle(struct cairn_ic_miss *miss)
{
    struct cairn_error error = {0};
    bool has_answer = seen.answer.type.kind != CAIRN_TYPE_VOID;
    seen.operand_count = miss->operand_count;
    ck_assert_uint_le(miss->operand_count, CAIRN_IC_OPERANDS_MAX);
    for (uint32_t i = 0; i < miss->operand_count; i++)
        seen.operands[i] = miss->operands[i];
    ic_assert_done(cairn_ic_return(miss, has_answer ? &seen.answer : NULL, &error), error);
    if (seen.also != NULL)
        seen.also(miss);
}

static void missed(struct cairn_ic_miss *miss, void *user)
{
    ck_assert_ptr_eq(user, &seen);
    seen.misses++;
    handle(miss);
}

static void missed_as_megamorphic(struct cairn_ic_miss *miss, void *user)
{
    ck_assert_ptr_eq(user, &seen);
    seen.megamorphic_misses++;
    handle(miss);
}

/* ---- Programs ---- */

static const struct ic_function get = {
    .calling_convention = ANYREG,
    .result = INTEGER(64),
    .operand_count = 2,
    .operands = {POINTER, INTEGER(64)},
};
static const struct ic_function get_by_c = {
    .calling_convention = C,
    .result = INTEGER(64),
    .operand_count = 2,
    .operands = {POINTER, INTEGER(64)},
};
static const struct ic_function set = {
    .calling_convention = ANYREG,
    .operand_count = 2,
    .operands = {POINTER, INTEGER(64)},
};

static void set_up(void)
{
    struct cairn_error error = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations)};
    allocations = (struct support_allocator){.fail_at = 0};
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    memset(&seen, 0, sizeof seen);
    program = (struct ic_program){.engine = NULL};
    ic = NULL;
    random_state = 20261122;
}

static void tear_down(void)
{
    if (program.engine != NULL)
        ic_unload(&program);
    cairn_runtime_quiesce(runtime);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}

static cairn_ic *create(cairn_site *site, struct cairn_ic_options options)
{
    struct cairn_error error = {0};
    cairn_ic *made = NULL;
    if (options.handler == NULL)
        options.handler = missed;
    options.user = &seen;
    ic_assert_done(cairn_ic_create(site, &options, &made, &error), error);
    return made;
}

static void load(const struct ic_function *functions, uint32_t count)
{
    ic_load(&program, runtime, functions, count, IC_FIRST_SITE);
}

/* Loads the function alone and creates a cache for its site. */
static void load_one(const struct ic_function *function, struct cairn_ic_options options)
{
    load(function, 1);
    ic = create(program.sites[0], options);
}

static void add(const struct cairn_ic_case *added)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_add(ic, added, CAIRN_RELAXED, &error), error);
}

static void reset(void)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_reset(ic, CAIRN_RELAXED, &error), error);
}

/* ---- Objects ---- */

struct object {
    uint32_t shape;
    uint32_t flags;
    uint64_t fields[6];
    void *outside;
};

static struct cairn_ic_guard shape_guard(uint32_t shape)
{
    return (struct cairn_ic_guard){
        .offset = offsetof(struct object, shape), .width = sizeof(uint32_t), .key = shape};
}

static struct cairn_ic_case constant_case(uint32_t shape, uint64_t constant)
{
    return (struct cairn_ic_case){
        .guard = shape_guard(shape), .action = CAIRN_IC_CONSTANT, .constant = constant};
}

static struct cairn_ic_case load_case(uint32_t shape, unsigned field)
{
    return (struct cairn_ic_case){
        .guard = shape_guard(shape),
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)(offsetof(struct object, fields) + field * sizeof(uint64_t)),
                  .width = sizeof(uint64_t)},
    };
}

static void add_constant(uint32_t shape, uint64_t constant)
{
    struct cairn_ic_case added = constant_case(shape, constant);
    add(&added);
}

/* Loads function `index`, whose result is an i64. */
static uint64_t run_function(uint32_t index, const void *receiver)
{
    uint64_t result;
    ic_set_pointer(&access_0, 0, receiver);
    memset(access_0.result, 0xEE, sizeof access_0.result);
    program.functions[index](&access_0);
    memcpy(&result, access_0.result, sizeof result);
    return result;
}

static uint64_t run_shape(uint32_t shape)
{
    struct object object = {.shape = shape, .fields = {10, 11, 12, 13, 14, 15}};
    return run_function(0, &object);
}

enum { ANSWER = 4711 };

static void answer(uint64_t number) { seen.answer = cairn_value_of_integer(64, (int64_t)number); }

/* Expects a miss, and the handler's answer. */
static void expect_miss(uint32_t shape)
{
    unsigned before = seen.misses + seen.megamorphic_misses;
    answer(ANSWER + shape);
    ck_assert_uint_eq(run_shape(shape), ANSWER + shape);
    ck_assert_uint_eq(seen.misses + seen.megamorphic_misses, before + 1);
}

static void expect_hit(uint32_t shape, uint64_t result)
{
    unsigned before = seen.misses + seen.megamorphic_misses;
    ck_assert_uint_eq(run_shape(shape), result);
    ck_assert_uint_eq(seen.misses + seen.megamorphic_misses, before);
}

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

static uint64_t read_bytes(const unsigned char *place, unsigned width)
{
    uint64_t number = 0;
    memcpy(&number, place, width);
    return number; /* little-endian, as every target of MCJIT */
}

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

static const struct ic_function *const getters[] = {&get, &get_by_c};

START_TEST(guards_compare_the_masked_bytes_at_their_offset_and_read_no_others)
{
    uint64_t number = 0;
    random_state = ic_seed(20261122);
    make_page();
    load_one(getters[_i / 2], (struct cairn_ic_options){.keeps_flags = _i % 2 != 0});
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

static const uint32_t conventions[] = {ANYREG, C};

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
    random_state = ic_seed(20261122);
    make_page();
    for (uint32_t i = 0; i < count; i++) {
        ic = create(program.sites[i], (struct cairn_ic_options){.keeps_flags = i % 2 != 0});
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
    random_state = ic_seed(20261122);
    for (uint32_t i = 0; i < count; i++) {
        ic = create(program.sites[i], (struct cairn_ic_options){.handler = NULL});
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
    random_state = ic_seed(20261122);
    make_page();
    ck_assert_uint_le(page_size, 1 << 16);
    for (uint32_t i = 0; i < count; i++) {
        ic = create(program.sites[i], (struct cairn_ic_options){.keeps_flags = i % 2 != 0});
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
    load_one(&set, (struct cairn_ic_options){.handler = NULL});
    add(&added);
    run_function(0, &object);
    ck_assert_ptr_eq(object.outside, &object);
    ck_assert_uint_eq(seen.misses, 0);
}
END_TEST

/* ---- Calls ---- */

static struct {
    unsigned calls;
    const void *receiver;
    int64_t integer;
    double number;
} called;

static int64_t getter(const void *receiver, int64_t integer, double number)
{
    called.calls++;
    called.receiver = receiver;
    called.integer = integer;
    called.number = number;
    return integer * 3;
}

static void setter(const void *receiver, int64_t integer, double number)
{
    getter(receiver, integer, number);
}

static double numeric_getter(const void *receiver, int64_t integer, double number)
{
    getter(receiver, integer, number);
    return number * 2;
}

/* The declaration of a compiled function in the test's module. */
static const char compiled_getter[] =
    "define i64 @getter(ptr %receiver, i64 %integer, double %number) {\n"
    "  %n = fptosi double %number to i64\n"
    "  %p = ptrtoint ptr %receiver to i64\n"
    "  %a = add i64 %n, %p\n"
    "  %b = xor i64 %a, %integer\n"
    "  ret i64 %b\n"
    "}\n";

static struct ic_function calling(uint32_t convention, struct cairn_type result)
{
    return (struct ic_function){
        .calling_convention = convention,
        .result = result,
        .operand_count = 3,
        .operands = {POINTER, INTEGER(64), DOUBLE},
        .keeps_operands = true,
        .kept_count = 6,
        .kept = {INTEGER(64), DOUBLE, INTEGER(64), DOUBLE, INTEGER(64), INTEGER(64)},
    };
}

static void add_call(const void *target)
{
    const struct cairn_ic_case added = {
        .guard = shape_guard(1), .action = CAIRN_IC_CALL, .target = target};
    add(&added);
}

static void run_call(const struct ic_function *function, const struct object *object)
{
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    struct cairn_value number = cairn_value_of_double(2.5);
    ic_fill_kept(function, &access_0, &random_state);
    ic_set_operand(&access_0, 1, &integer);
    ic_set_operand(&access_0, 2, &number);
    called.calls = 0;
    run_function(0, object);
    ck_assert_uint_eq(seen.misses, 0);
    ic_check_kept(function, &access_0, "a call");
}

static void expect_called_with(const struct object *object)
{
    ck_assert_uint_eq(called.calls, 1);
    ck_assert_ptr_eq(called.receiver, object);
    ck_assert_int_eq(called.integer, 1000);
    ck_assert_double_eq(called.number, 2.5);
}

/* coldcc and preserve_mostcc are missing because C functions change registers that these
 * conventions preserve. */
static const uint32_t calling_conventions[] = {ANYREG, C, FASTCC};
enum { CALLING_CONVENTIONS = sizeof calling_conventions / sizeof *calling_conventions };

START_TEST(a_c_function_is_called_with_the_sites_arguments)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    load_one(&function, (struct cairn_ic_options){.handler = NULL});
    add_call((const void *)(uintptr_t)getter);
    run_call(&function, &object);
    expect_called_with(&object);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 3000);
}
END_TEST

START_TEST(a_c_function_without_result_is_called)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type){0});
    if (!has_convention(function.calling_convention))
        return;
    load_one(&function, (struct cairn_ic_options){.handler = NULL});
    add_call((const void *)(uintptr_t)setter);
    run_call(&function, &object);
    expect_called_with(&object);
}
END_TEST

START_TEST(a_c_function_returns_a_double)
{
    struct object object = {.shape = 1};
    double result;
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)DOUBLE);
    if (!has_convention(function.calling_convention) || !ic_can_return(function.result))
        return;
    load_one(&function, (struct cairn_ic_options){.handler = NULL});
    add_call((const void *)(uintptr_t)numeric_getter);
    run_call(&function, &object);
    expect_called_with(&object);
    memcpy(&result, access_0.result, sizeof result);
    ck_assert_double_eq(result, 5);
}
END_TEST

START_TEST(a_compiled_function_is_called_with_the_sites_arguments)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    ic_load_with(&program, runtime, &function, 1, IC_FIRST_SITE, compiled_getter);
    ic = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    add_call(ic_find(&program, "getter"));
    run_call(&function, &object);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), (2 + (uintptr_t)&object) ^ 1000);
}
END_TEST

/* The called function reaches the same site again, in deeper frames. */
static int64_t recursive_getter(const void *receiver, int64_t integer, double number)
{
    struct ic_access inner = {.signs = {0}};
    int64_t result;
    called.calls++;
    if (integer == 0)
        return (int64_t)number;
    struct cairn_value less = cairn_value_of_integer(64, integer - 1);
    struct cairn_value same = cairn_value_of_double(number);
    ic_set_pointer(&inner, 0, receiver);
    ic_set_operand(&inner, 1, &less);
    ic_set_operand(&inner, 2, &same);
    program.functions[0](&inner);
    memcpy(&result, inner.result, sizeof result);
    return result + integer;
}

START_TEST(a_function_that_is_called_may_come_to_the_site_again)
{
    enum { DEPTH = 20 };
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    struct cairn_value depth = cairn_value_of_integer(64, DEPTH);
    struct cairn_value number = cairn_value_of_double(7);
    load_one(&function, (struct cairn_ic_options){.handler = NULL});
    add_call((const void *)(uintptr_t)recursive_getter);
    ic_set_operand(&access_0, 1, &depth);
    ic_set_operand(&access_0, 2, &number);
    called.calls = 0;
    ck_assert_uint_eq(run_function(0, &object), 7 + DEPTH * (DEPTH + 1) / 2);
    ck_assert_uint_eq(called.calls, DEPTH + 1);
}
END_TEST

/* ---- Many cases ---- */

static uint64_t expected_of(uint32_t shape) { return 10 + shape % 6; }

/* Keys that are close to each other, and keys that are far apart. */
static uint32_t spread(uint32_t number, bool is_spread)
{
    return is_spread ? (number + 1) * 0x9E3779B1u : 100 + number;
}

static struct cairn_ic_options options_number(int number)
{
    return (struct cairn_ic_options){
        .case_limit = CAIRN_IC_CASE_LIMIT_MAX,
        .dispatch = (number & 1) != 0 ? CAIRN_IC_DISPATCH_IN_ORDER : CAIRN_IC_DISPATCH_AUTOMATIC,
        .counts_hits = (number & 2) != 0,
        .keeps_flags = (number & 4) != 0,
    };
}
enum { OPTIONS = 8 };

static void check_all(uint32_t count, bool is_spread)
{
    for (uint32_t i = 0; i < CAIRN_IC_CASE_LIMIT_MAX + 2; i++) {
        if (i < count)
            expect_hit(spread(i, is_spread), expected_of(i));
        else
            expect_miss(spread(i, is_spread));
    }
    expect_miss(0);
    expect_miss(UINT32_MAX);
}

static void add_and_remove(bool is_spread)
{
    struct cairn_error error = {0};
    for (uint32_t i = 0; i < CAIRN_IC_CASE_LIMIT_MAX; i++) {
        struct cairn_ic_case added = load_case(spread(i, is_spread), i % 6);
        add(&added);
        check_all(i + 1, is_spread);
    }
    cairn_runtime_quiesce(runtime);
    for (uint32_t i = CAIRN_IC_CASE_LIMIT_MAX; i-- > 0;) {
        struct cairn_ic_guard guard = shape_guard(spread(i, is_spread));
        ic_assert_done(cairn_ic_remove(ic, &guard, CAIRN_RELAXED, &error), error);
        check_all(i, is_spread);
    }
    cairn_runtime_quiesce(runtime);
}

START_TEST(each_of_many_cases_hits_and_everything_else_misses)
{
    load_one(getters[_i / OPTIONS], options_number(_i % OPTIONS));
    add_and_remove(false);
    add_and_remove(true);
}
END_TEST

/* Cases of all kinds in one cache, so that none of the branchless methods of selecting a case is
 * applicable. */
START_TEST(cases_with_different_guards_and_actions_are_tried_in_order)
{
    struct object object = {.shape = 7, .flags = 0x80000001, .fields = {41, 42}};
    const struct cairn_ic_case narrow = {
        .guard = {.offset = 4, .width = 1, .mask = 1, .key = 1},
        .action = CAIRN_IC_CONSTANT,
        .constant = 1,
    };
    load_one(&get, options_number(_i));
    add_constant(6, 6);
    struct cairn_ic_case added = load_case(7, 1);
    add(&added);
    add(&narrow);
    ck_assert_uint_eq(run_function(0, &object), 42);
    object.shape = 8;
    ck_assert_uint_eq(run_function(0, &object), 1);
    object.shape = 6;
    ck_assert_uint_eq(run_function(0, &object), 6);
    object.shape = 8;
    object.flags = 0x80000000;
    answer(ANSWER);
    ck_assert_uint_eq(run_function(0, &object), ANSWER);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

/* The receiver is an integer that holds an address. It is not the first operand, and guards read
 * other operands, too. */
START_TEST(guards_look_at_the_operand_that_they_name)
{
    struct object first = {.shape = 1};
    struct object second = {.shape = 2};
    const struct ic_function function = {
        .calling_convention = conventions[_i],
        .result = INTEGER(64),
        .operand_count = 4,
        .operands = {DOUBLE, POINTER, INTEGER(32), INTEGER(64)},
    };
    struct cairn_ic_case of_first = constant_case(1, 11);
    struct cairn_ic_case of_second = constant_case(2, 22);
    load_one(&function, (struct cairn_ic_options){.handler = NULL});
    of_first.guard.operand = 1;
    of_second.guard.operand = 3;
    add(&of_first);
    add(&of_second);
    answer(ANSWER);
    ic_set_pointer(&access_0, 1, &first);
    ic_set_pointer(&access_0, 3, &first);
    program.functions[0](&access_0);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 11);
    ic_set_pointer(&access_0, 1, &second);
    program.functions[0](&access_0);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), ANSWER);
    ic_set_pointer(&access_0, 3, &second);
    program.functions[0](&access_0);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 22);
}
END_TEST

/* ---- States ---- */

static void expect_state(enum cairn_ic_state state, uint32_t count)
{
    struct cairn_ic_description description;
    cairn_ic_describe(ic, &description);
    ck_assert_int_eq(cairn_ic_state(ic), state);
    ck_assert_uint_eq(ic_case_count(ic), count);
    ck_assert_int_eq(description.state, state);
    ck_assert_uint_eq(description.case_count, count);
}

static void go_through_states(void)
{
    expect_state(CAIRN_IC_EMPTY, 0);
    expect_miss(1);
    add_constant(1, 101);
    expect_state(CAIRN_IC_MONOMORPHIC, 1);
    expect_hit(1, 101);
    expect_miss(2);
    add_constant(2, 102);
    expect_state(CAIRN_IC_POLYMORPHIC, 2);
    add_constant(3, 103);
    expect_state(CAIRN_IC_POLYMORPHIC, 3);
    for (uint32_t shape = 1; shape <= 3; shape++)
        expect_hit(shape, 100 + shape);
    ck_assert_uint_eq(seen.megamorphic_misses, 0);
    add_constant(4, 104);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
}

START_TEST(a_cache_becomes_megamorphic_at_its_limit_until_it_is_reset)
{
    load_one(getters[_i], (struct cairn_ic_options){.case_limit = 3,
                                                    .megamorphic_handler = missed_as_megamorphic});
    for (int i = 0; i < 3; i++) {
        memset(&seen, 0, sizeof seen);
        go_through_states();
        for (uint32_t shape = 1; shape <= 5; shape++)
            expect_miss(shape);
        ck_assert_uint_eq(seen.megamorphic_misses, 5);
        add_constant(1, 101);
        expect_state(CAIRN_IC_MEGAMORPHIC, 0);
        expect_miss(1);
        reset();
    }
    expect_state(CAIRN_IC_EMPTY, 0);
}
END_TEST

START_TEST(without_a_megamorphic_handler_the_handler_is_called)
{
    load_one(&get, (struct cairn_ic_options){.case_limit = 1});
    add_constant(1, 101);
    add_constant(2, 102);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    expect_miss(1);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

START_TEST(a_megamorphic_function_is_called_straight)
{
    struct object object = {.shape = 1};
    struct ic_function function = calling(calling_conventions[_i], (struct cairn_type)INTEGER(64));
    if (!has_convention(function.calling_convention))
        return;
    const struct cairn_ic_options options = {
        .case_limit = 1,
        .megamorphic_handler = missed_as_megamorphic,
        .megamorphic_target = (const void *)(uintptr_t)getter,
    };
    load_one(&function, options);
    add_constant(1, 101);
    add_constant(2, 102);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
    run_call(&function, &object);
    expect_called_with(&object);
    ck_assert_uint_eq(read_bytes(access_0.result, 8), 3000);
    reset();
    answer(ANSWER);
    ck_assert_uint_eq(run_function(0, &object), ANSWER);
    ck_assert_uint_eq(seen.megamorphic_misses, 0);
}
END_TEST

START_TEST(the_usual_limit_is_the_one_in_the_header)
{
    struct cairn_ic_description description;
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.case_limit, CAIRN_IC_CASE_LIMIT_DEFAULT);
    for (uint32_t i = 0; i < CAIRN_IC_CASE_LIMIT_DEFAULT; i++)
        add_constant(i, i);
    expect_state(CAIRN_IC_POLYMORPHIC, CAIRN_IC_CASE_LIMIT_DEFAULT);
    add_constant(CAIRN_IC_CASE_LIMIT_DEFAULT, 1);
    expect_state(CAIRN_IC_MEGAMORPHIC, 0);
}
END_TEST

START_TEST(a_case_with_the_same_guard_takes_the_others_place)
{
    struct cairn_ic_description description;
    load_one(&get, (struct cairn_ic_options){.case_limit = 2});
    add_constant(1, 101);
    add_constant(2, 102);
    struct cairn_ic_case replacing = load_case(1, 3);
    replacing.guard.mask = UINT32_MAX; /* the meaning of 0 */
    add(&replacing);
    expect_state(CAIRN_IC_POLYMORPHIC, 2);
    expect_hit(1, 13);
    expect_hit(2, 102);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.cases[0].guard.key, 1);
    ck_assert_int_eq(description.cases[0].action, CAIRN_IC_LOAD);
    ck_assert_uint_eq(description.cases[1].guard.key, 2);
}
END_TEST

START_TEST(guards_that_differ_in_anything_are_of_different_cases)
{
    const struct cairn_ic_guard guards[] = {
        {.offset = 0, .width = 4, .key = 5},
        {.offset = 1, .width = 4, .key = 5},
        {.offset = 0, .width = 2, .key = 5},
        {.offset = 0, .width = 4, .key = 6},
        {.offset = 0, .width = 4, .mask = 0xFF, .key = 5},
        {.operand = 1, .offset = 0, .width = 4, .key = 5},
    };
    enum { GUARDS = sizeof guards / sizeof *guards };
    load_one(&get, (struct cairn_ic_options){.case_limit = GUARDS});
    for (uint32_t i = 0; i < GUARDS; i++) {
        const struct cairn_ic_case added = {.guard = guards[i], .action = CAIRN_IC_CONSTANT};
        add(&added);
        ck_assert_uint_eq(ic_case_count(ic), i + 1);
    }
}
END_TEST

START_TEST(a_case_is_removed_and_the_others_stay_in_order)
{
    struct cairn_error error = {0};
    struct cairn_ic_description description;
    struct cairn_ic_guard second = shape_guard(2);
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    for (uint32_t shape = 1; shape <= 4; shape++)
        add_constant(shape, 100 + shape);
    ic_assert_done(cairn_ic_remove(ic, &second, CAIRN_RELAXED, &error), error);
    expect_state(CAIRN_IC_POLYMORPHIC, 3);
    expect_hit(1, 101);
    expect_miss(2);
    expect_hit(3, 103);
    expect_hit(4, 104);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.cases[0].guard.key, 1);
    ck_assert_uint_eq(description.cases[1].guard.key, 3);
    ck_assert_uint_eq(description.cases[2].guard.key, 4);
}
END_TEST

START_TEST(names_of_states_and_actions)
{
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_EMPTY), "empty");
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_MONOMORPHIC), "monomorphic");
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_POLYMORPHIC), "polymorphic");
    ck_assert_str_eq(cairn_ic_state_name(CAIRN_IC_MEGAMORPHIC), "megamorphic");
    ck_assert_ptr_nonnull(cairn_ic_state_name((enum cairn_ic_state)99));
}
END_TEST

/* ---- Counts ---- */

static void run_often(uint32_t shape, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        run_shape(shape);
}

START_TEST(hits_and_misses_of_one_thread_are_counted_exactly)
{
    struct cairn_ic_description description;
    load_one(getters[_i / 2],
             (struct cairn_ic_options){.counts_hits = true, .keeps_flags = _i % 2 != 0});
    answer(ANSWER);
    run_often(1, 5);
    for (uint32_t shape = 1; shape <= 3; shape++)
        add_constant(shape, shape);
    run_often(1, 1000);
    run_often(2, 3);
    run_often(3, 70);
    run_often(9, 20);
    cairn_ic_describe(ic, &description);
    ck_assert(description.counts_hits);
    ck_assert_uint_eq(description.hits[0], 1000);
    ck_assert_uint_eq(description.hits[1], 3);
    ck_assert_uint_eq(description.hits[2], 70);
    ck_assert_uint_eq(description.misses, 25);
    ck_assert_uint_eq(seen.misses, 25);
    reset();
    add_constant(2, 2);
    run_often(2, 4);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.hits[0], 4);
    ck_assert_uint_eq(description.misses, 0);
}
END_TEST

START_TEST(counts_of_a_case_survive_changes_of_others)
{
    struct cairn_error error = {0};
    struct cairn_ic_description description;
    struct cairn_ic_guard first = shape_guard(1);
    load_one(&get, (struct cairn_ic_options){.counts_hits = true});
    add_constant(1, 1);
    add_constant(2, 2);
    run_often(2, 11);
    add_constant(3, 3);
    run_often(2, 11);
    ic_assert_done(cairn_ic_remove(ic, &first, CAIRN_RELAXED, &error), error);
    run_often(2, 11);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.cases[0].guard.key, 2);
    ck_assert_uint_eq(description.hits[0], 33);
    ck_assert_uint_eq(description.hits[1], 0);
}
END_TEST

/* There are as many counters as cases, so the new case needs a counter that is in use. */
START_TEST(counters_begin_at_zero_also_when_all_are_in_use)
{
    struct cairn_error error = {0};
    struct cairn_ic_description description;
    struct cairn_ic_guard third = shape_guard(3);
    struct cairn_ic_case added = constant_case(99, 99);
    load_one(&get, (struct cairn_ic_options){.counts_hits = true, .case_limit = 16});
    for (uint32_t shape = 1; shape <= 16; shape++) {
        add_constant(shape, shape);
        run_often(shape, shape);
    }
    const struct cairn_ic_change changes[] = {ic_removing(ic, &third), ic_adding(ic, &added)};
    ic_assert_done(cairn_ics_change(changes, 2, CAIRN_RELAXED, &error), error);
    run_often(99, 2);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.cases[15].guard.key, 99);
    ck_assert_uint_eq(description.hits[15], 2);
    ck_assert_uint_eq(description.hits[14], 16);
}
END_TEST

START_TEST(what_is_not_counted_is_zero)
{
    struct cairn_ic_description description;
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    add_constant(1, 1);
    answer(ANSWER);
    run_often(1, 10);
    run_often(2, 10);
    cairn_ic_describe(ic, &description);
    ck_assert(!description.counts_hits);
    ck_assert_uint_eq(description.hits[0], 0);
    ck_assert_uint_eq(description.misses, 0);
}
END_TEST

START_TEST(the_cases_that_hit_most_often_come_first)
{
    static const unsigned times[] = {5, 70, 0, 1000};
    static const uint64_t sorted[] = {4, 2, 1, 3};
    struct cairn_error error = {0};
    struct cairn_ic_description description;
    load_one(&get, (struct cairn_ic_options){.counts_hits = true});
    for (uint32_t i = 0; i < 4; i++)
        add_constant(i + 1, 101 + i);
    for (uint32_t i = 0; i < 4; i++)
        run_often(i + 1, times[i]);
    ic_assert_done(ic_order(ic, CAIRN_RELAXED, &error), error);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.case_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(description.cases[i].guard.key, sorted[i]);
        ck_assert_uint_eq(description.hits[i], times[sorted[i] - 1]);
    }
    for (uint32_t i = 0; i < 4; i++)
        expect_hit(i + 1, 101 + i);
    cairn_ic_describe(ic, &description);
    ck_assert_uint_eq(description.hits[0], 1001);
}
END_TEST

START_TEST(a_cache_that_does_not_count_cannot_be_ordered)
{
    struct cairn_error error = {0};
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    add_constant(1, 1);
    ck_assert_int_eq(ic_order(ic, CAIRN_RELAXED, &error), CAIRN_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(error.message, "count"));
    expect_hit(1, 1);
}
END_TEST

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
    ck_assert_msg(cairn_type_equal(got->type, given->type) && got->size == given->size &&
                      memcmp(got->bytes, given->bytes, given->size) == 0,
                  "operand %u of %u, %s, in calling convention %u", index, function->operand_count,
                  name, function->calling_convention);
}

static void check_operands(const struct ic_function *function, uint32_t index)
{
    struct cairn_value values[CAIRN_IC_OPERANDS_MAX];
    struct cairn_error error = {0};
    ic = create(program.sites[index], (struct cairn_ic_options){.handler = NULL});
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
    random_state = ic_seed(20261122);
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
    ck_assert_uint_eq(cairn_record_id(miss->deopt->record), IC_FIRST_SITE);
    ck_assert(cairn_runtime_find_function(miss->deopt->frame.runtime,
                                          miss->deopt->frame.pc - miss->deopt->frame.is_calling,
                                          &function));
    const struct cairn_declaration *site = cairn_record_declaration(miss->deopt->record);
    struct cairn_location location =
        cairn_record_location(miss->deopt->record, site->result.kind != CAIRN_TYPE_VOID);
    ic_assert_done(
        cairn_frame_at_location(&miss->deopt->frame, location, site->types[0], &operand, &error),
        error);
    ck_assert_mem_eq(operand.bytes, miss->operands[0].bytes, 8);
}

START_TEST(handlers_get_the_cache_and_the_frame)
{
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
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
    load_one(getters[_i], (struct cairn_ic_options){.handler = NULL});
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

START_TEST(a_handler_may_come_to_the_same_site)
{
    struct object object = {.shape = 999};
    load_one(getters[_i], (struct cairn_ic_options){.handler = NULL});
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
    ic_assert_done(cairn_deopt_return(miss->deopt, NULL, 0, &error), error);
}

START_TEST(a_handler_may_return_from_the_function)
{
    load_one(getters[_i], (struct cairn_ic_options){.handler = NULL});
    seen.also = leave_function;
    answer(ANSWER);
    ck_assert_uint_eq(run_shape(1), 0xEEEEEEEEEEEEEEEE);
    ck_assert_uint_eq(seen.misses, 1);
    add_constant(1, 101);
    expect_hit(1, 101);
}
END_TEST

static void say_nothing(struct cairn_ic_miss *miss, void *user)
{
    (void)user;
    seen.misses++;
    seen.operands[0] = miss->operands[0];
}

START_TEST(a_handler_that_returns_nothing_leaves_the_code_going_on)
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
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    seen.also = return_wrongly;
    expect_miss(1);
    ck_assert_int_eq(return_status, CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(return_error.message, "i64"));
    ck_assert_ptr_nonnull(strstr(return_error.message, "float"));
}
END_TEST

START_TEST(a_result_where_the_site_has_none_is_refused)
{
    struct object object = {.shape = 1};
    load_one(&set, (struct cairn_ic_options){.handler = NULL});
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
    load_one(getters[_i], (struct cairn_ic_options){.handler = NULL});
    seen.also = destroy_cache;
    expect_miss(1);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    run_shape(1);
    ck_assert_uint_eq(seen.misses, 1);
}
END_TEST

/* ---- Binding and unbinding ---- */

static int64_t first_target(const void *receiver, int64_t integer)
{
    (void)receiver;
    return integer + 77;
}

START_TEST(a_destroyed_cache_leaves_the_site_as_it_was)
{
    struct cairn_error error = {0};
    struct cairn_site_description before;
    struct cairn_site_description after;
    struct ic_function function = *getters[_i / 2];
    function.target = _i % 2 == 0 ? NULL : (const void *)(uintptr_t)first_target;
    load(&function, 1);
    cairn_site_describe(program.sites[0], &before);
    unsigned char bytes[64];
    ck_assert_uint_le(before.byte_count, sizeof bytes);
    memcpy(bytes, before.bytes, before.byte_count);
    ic = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    add_constant(1, 101);
    expect_hit(1, 101);
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_SYNC, &error), error);
    cairn_site_describe(program.sites[0], &after);
    ck_assert_int_eq(after.state, before.state);
    ck_assert_uint_eq(after.target, before.target);
    ck_assert_mem_eq(after.bytes, bytes, before.byte_count);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    cairn_runtime_quiesce(runtime);
    ic = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    expect_miss(1);
}
END_TEST

START_TEST(a_restored_site_calls_its_first_target_again)
{
    struct cairn_error error = {0};
    struct ic_function function = get_by_c;
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    function.target = (const void *)(uintptr_t)first_target;
    load(&function, 1);
    ic_set_operand(&access_0, 1, &integer);
    ck_assert_uint_eq(run_shape(1), 1077);
    ic = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    expect_miss(1);
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(run_shape(1), 1077);
}
END_TEST

START_TEST(destroying_nothing_is_allowed)
{
    struct cairn_error error;
    ck_assert_ok(cairn_ic_destroy(NULL, CAIRN_RELAXED, &error));
}
END_TEST

START_TEST(a_site_and_its_cache_know_each_other)
{
    struct cairn_ic_description description;
    struct cairn_site_description site;
    load(&get, 1);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    ic = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    ck_assert_ptr_eq(cairn_site_ic(program.sites[0]), ic);
    cairn_ic_describe(ic, &description);
    ck_assert_ptr_eq(description.site, program.sites[0]);
    add_constant(1, 1);
    cairn_site_describe(program.sites[0], &site);
    cairn_ic_describe(ic, &description);
    ck_assert_ptr_eq(description.ic, ic);
    ck_assert_ptr_eq(description.site, program.sites[0]);
    ck_assert_uint_eq(description.id, IC_FIRST_SITE);
    ck_assert_uint_eq(description.address, site.address);
    ck_assert_uint_gt(description.case_bytes, 0);
    ck_assert_uint_gt(description.code_bytes, description.case_bytes);
}
END_TEST

static bool count_visit(const struct cairn_ic_description *description, void *user)
{
    unsigned *count = user;
    (void)description;
    ++*count;
    return true;
}

static unsigned count_caches(void)
{
    unsigned count = 0;
    cairn_runtime_visit_ics(runtime, count_visit, &count);
    return count;
}

START_TEST(a_modules_caches_go_with_it)
{
    struct ic_program other;
    const struct ic_function functions[] = {get, set};
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    add_constant(1, 101);
    ic_load(&other, runtime, functions, 2, 2 * IC_FIRST_SITE);
    create(other.sites[0], (struct cairn_ic_options){.counts_hits = true});
    create(other.sites[1], (struct cairn_ic_options){.counts_hits = true});
    ck_assert_uint_eq(count_caches(), 3);
    struct cairn_ic_case added = constant_case(1, 5);
    ck_assert_ok(cairn_ic_add(cairn_site_ic(other.sites[0]), &added, CAIRN_RELAXED, NULL));
    ic_unload(&other);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(count_caches(), 1);
    expect_hit(1, 101);
    expect_miss(2);
}
END_TEST

/* ---- Many caches ---- */

static cairn_ic *caches[4];

/* Creates four caches in two modules, two in each. */
static struct ic_program second_program;

static void load_two_modules(struct cairn_ic_options options)
{
    const struct ic_function functions[] = {get, get_by_c};
    load(functions, 2);
    ic_load(&second_program, runtime, functions, 2, 2 * IC_FIRST_SITE);
    for (int i = 0; i < 4; i++)
        caches[i] = create(i < 2 ? program.sites[i] : second_program.sites[i - 2], options);
    ic = caches[0];
}

static void unload_second(void) { ic_unload(&second_program); }

static cairn_module *module_of(const cairn_ic *cache)
{
    struct cairn_ic_description described;
    struct cairn_site_description description;
    cairn_ic_describe((cairn_ic *)(uintptr_t)cache, &described);
    cairn_site_describe(described.site, &description);
    return cairn_record_module(description.record);
}

static void add_to(cairn_ic *cache, const struct cairn_ic_case *added)
{
    struct cairn_error error = {0};
    ic_assert_done(cairn_ic_add(cache, added, CAIRN_RELAXED, &error), error);
}

static void add_constants(cairn_ic *cache, uint32_t count)
{
    for (uint32_t shape = 1; shape <= count; shape++) {
        struct cairn_ic_case added = constant_case(shape, 100 + shape);
        add_to(cache, &added);
    }
}

/* The result of cache `index` for an object of this shape; ANSWER on a miss. */
static uint64_t run_cache(int index, uint32_t shape)
{
    uint64_t result;
    struct object object = {.shape = shape};
    ic_set_pointer(&access_0, 0, &object);
    answer(ANSWER);
    (index < 2 ? program.functions[index] : second_program.functions[index - 2])(&access_0);
    memcpy(&result, access_0.result, sizeof result);
    return result;
}

START_TEST(a_modules_caches_are_reset_together)
{
    struct cairn_error error = {0};
    size_t count = 99;
    load_two_modules((struct cairn_ic_options){.case_limit = 2});
    add_constants(caches[0], 1);
    add_constants(caches[1], 3);
    add_constants(caches[2], 2);
    ck_assert_int_eq(cairn_ic_state(caches[1]), CAIRN_IC_MEGAMORPHIC);
    ic_assert_done(ic_reset_module(runtime, module_of(caches[0]), CAIRN_SYNC, &count, &error),
                   error);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(cairn_ic_state(caches[0]), CAIRN_IC_EMPTY);
    ck_assert_int_eq(cairn_ic_state(caches[1]), CAIRN_IC_EMPTY);
    ck_assert_int_eq(cairn_ic_state(caches[2]), CAIRN_IC_POLYMORPHIC);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    ck_assert_uint_eq(run_cache(2, 1), 101);
    ic_assert_done(ic_reset_module(runtime, module_of(caches[2]), CAIRN_SYNC, NULL, &error), error);
    ck_assert_uint_eq(run_cache(2, 1), ANSWER);
    ic_assert_done(ic_reset_module(runtime, module_of(caches[2]), CAIRN_SYNC, &count, &error),
                   error);
    ck_assert_uint_eq(count, 0);
    unload_second();
}
END_TEST

START_TEST(all_cases_of_a_key_are_removed_from_all_caches)
{
    struct cairn_error error = {0};
    size_t count = 99;
    struct cairn_ic_case masked = constant_case(2, 55);
    masked.guard.mask = 0xFF;
    load_two_modules((struct cairn_ic_options){.handler = NULL});
    add_constants(caches[0], 3);
    add_constants(caches[1], 1);
    add_constants(caches[3], 2);
    add_to(caches[3], &masked);
    ic_assert_done(ic_remove_key(runtime, 2, CAIRN_SYNC, &count, &error), error);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(ic_case_count(caches[0]), 2);
    ck_assert_uint_eq(ic_case_count(caches[1]), 1);
    ck_assert_uint_eq(ic_case_count(caches[2]), 0);
    ck_assert_uint_eq(ic_case_count(caches[3]), 1);
    ck_assert_uint_eq(run_cache(0, 2), ANSWER);
    ck_assert_uint_eq(run_cache(0, 3), 103);
    ck_assert_uint_eq(run_cache(3, 2), ANSWER);
    ck_assert_uint_eq(run_cache(3, 1), 101);
    ic_assert_done(ic_remove_key(runtime, 2, CAIRN_SYNC, &count, &error), error);
    ck_assert_uint_eq(count, 0);
    ic_assert_done(ic_remove_key(runtime, 1, CAIRN_RELAXED, NULL, &error), error);
    ck_assert_uint_eq(run_cache(3, 1), ANSWER);
    unload_second();
}
END_TEST

/* Gives caches[0] two cases, of which one has shape 3 and one shape 9; caches[1] none; caches[2]
 * one of shape 9. */
enum { NOTED = 5 };

static void note_changes(struct cairn_ic_change changes[NOTED])
{
    struct cairn_ic_guard first = shape_guard(1);
    struct cairn_ic_guard second = shape_guard(2);
    struct cairn_ic_case ninth = constant_case(9, 109);
    changes[0] = ic_removing(caches[0], &first);
    changes[1] = ic_resetting(caches[1]);
    changes[2] = ic_adding(caches[2], &ninth);
    changes[3] = ic_removing(caches[0], &second);
    changes[4] = ic_adding(caches[0], &ninth);
}

static void expect_unchanged(void)
{
    ck_assert_uint_eq(ic_case_count(caches[0]), 3);
    ck_assert_uint_eq(ic_case_count(caches[1]), 1);
    ck_assert_uint_eq(ic_case_count(caches[2]), 0);
    for (uint32_t shape = 1; shape <= 3; shape++)
        ck_assert_uint_eq(run_cache(0, shape), 100 + shape);
    ck_assert_uint_eq(run_cache(1, 1), 101);
    ck_assert_uint_eq(run_cache(0, 9), ANSWER);
    ck_assert_uint_eq(run_cache(2, 9), ANSWER);
}

static void expect_changed(void)
{
    ck_assert_uint_eq(ic_case_count(caches[0]), 2);
    ck_assert_uint_eq(ic_case_count(caches[1]), 0);
    ck_assert_uint_eq(ic_case_count(caches[2]), 1);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(0, 2), ANSWER);
    ck_assert_uint_eq(run_cache(0, 3), 103);
    ck_assert_uint_eq(run_cache(0, 9), 109);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    ck_assert_uint_eq(run_cache(2, 9), 109);
}

static void load_for_list(void)
{
    load_two_modules((struct cairn_ic_options){.handler = NULL});
    add_constants(caches[0], 3);
    add_constants(caches[1], 1);
}

START_TEST(a_list_of_changes_is_made_together)
{
    struct cairn_error error = {0};
    struct cairn_ic_change changes[NOTED];
    load_for_list();
    note_changes(changes);
    expect_unchanged();
    ic_assert_done(cairn_ics_change(changes, NOTED, CAIRN_SYNC, &error), error);
    expect_changed();
    ic_assert_done(cairn_ics_change(NULL, 0, CAIRN_SYNC, &error), error);
    expect_changed();
    unload_second();
}
END_TEST

START_TEST(a_list_that_cannot_be_made_changes_nothing)
{
    struct cairn_error error = {0};
    char site[32];
    struct cairn_ic_guard missing = shape_guard(77);
    struct cairn_ic_case late = constant_case(77, 1);
    struct cairn_ic_change changes[NOTED + 1];
    load_for_list();
    note_changes(changes);
    changes[NOTED] = ic_removing(caches[3], &missing);
    ck_assert_int_eq(cairn_ics_change(changes, NOTED + 1, CAIRN_SYNC, &error),
                     CAIRN_ERROR_NOT_FOUND);
    snprintf(site, sizeof site, "site %d", 2 * IC_FIRST_SITE + 1);
    ck_assert_msg(strstr(error.message, site) != NULL, "%s", error.message);
    expect_unchanged();
    changes[NOTED].kind = (enum cairn_ic_change_kind)4;
    ck_assert_int_eq(cairn_ics_change(changes, NOTED + 1, CAIRN_SYNC, &error),
                     CAIRN_ERROR_ARGUMENT);
    expect_unchanged();
    changes[NOTED].kind = CAIRN_IC_CHANGE_REMOVE;
    add_to(caches[3], &late);
    ic_assert_done(cairn_ics_change(changes, NOTED + 1, CAIRN_SYNC, &error), error);
    expect_changed();
    unload_second();
}
END_TEST

START_TEST(changes_of_one_cache_are_made_in_their_order)
{
    struct cairn_error error = {0};
    struct cairn_ic_guard first = shape_guard(1);
    struct cairn_ic_case again = constant_case(1, 201);
    load_for_list();
    const struct cairn_ic_change removing = ic_removing(caches[0], &first);
    const struct cairn_ic_change adding = ic_adding(caches[0], &again);
    /* The case can be removed twice because it is added in between. */
    const struct cairn_ic_change fourfold[] = {removing, adding, removing, adding};
    ic_assert_done(cairn_ics_change(fourfold, 4, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(ic_case_count(caches[0]), 3);
    ck_assert_uint_eq(run_cache(0, 1), 201);
    ck_assert_uint_eq(run_cache(0, 2), 102);
    const struct cairn_ic_change twice[] = {removing, removing};
    ck_assert_int_eq(cairn_ics_change(twice, 2, CAIRN_RELAXED, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(run_cache(0, 1), 201);
    const struct cairn_ic_change emptying[] = {adding, ic_resetting(caches[0])};
    ic_assert_done(cairn_ics_change(emptying, 2, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(ic_case_count(caches[0]), 0);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    unload_second();
}
END_TEST

START_TEST(a_list_goes_over_the_limit_as_adding_does)
{
    struct cairn_error error = {0};
    struct cairn_ic_change changes[3];
    load_two_modules((struct cairn_ic_options){.case_limit = 2});
    for (uint32_t i = 0; i < 3; i++) {
        struct cairn_ic_case added = constant_case(i + 1, i + 1);
        changes[i] = ic_adding(caches[0], &added);
    }
    ic_assert_done(cairn_ics_change(changes, 3, CAIRN_RELAXED, &error), error);
    ck_assert_int_eq(cairn_ic_state(caches[0]), CAIRN_IC_MEGAMORPHIC);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    unload_second();
}
END_TEST

START_TEST(a_list_has_caches_of_one_runtime_only)
{
    struct cairn_error error = {0};
    cairn_runtime *other;
    cairn_ic *foreign;
    struct ic_program foreign_program;
    const struct cairn_ic_options options = {.handler = missed};
    struct cairn_ic_case added = constant_case(1, 1);
    ck_assert_ok(cairn_runtime_create(NULL, &other, NULL));
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    ic_load(&foreign_program, other, &get, 1, IC_FIRST_SITE);
    ck_assert_ok(cairn_ic_create(foreign_program.sites[0], &options, &foreign, NULL));
    const struct cairn_ic_change changes[] = {ic_adding(ic, &added), ic_adding(foreign, &added)};
    ck_assert_int_eq(cairn_ics_change(changes, 2, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "runtime"));
    expect_state(CAIRN_IC_EMPTY, 0);
    ck_assert_int_eq(cairn_ic_state(foreign), CAIRN_IC_EMPTY);
    ic_unload(&foreign_program);
    cairn_runtime_destroy(other);
}
END_TEST

/* ---- Reports ---- */

struct visits {
    cairn_ic *seen[8];
    unsigned count;
    unsigned wanted;
};

static bool note_visit(const struct cairn_ic_description *description, void *user)
{
    struct visits *visits = user;
    ck_assert_uint_lt(visits->count, 8);
    visits->seen[visits->count++] = description->ic;
    return visits->count < visits->wanted;
}

START_TEST(caches_are_visited_oldest_first_until_the_visitor_has_enough)
{
    struct cairn_error error = {0};
    struct visits all = {.wanted = 8};
    struct visits two = {.wanted = 2};
    load_two_modules((struct cairn_ic_options){.handler = NULL});
    cairn_runtime_visit_ics(runtime, note_visit, &all);
    ck_assert_uint_eq(all.count, 4);
    ck_assert_mem_eq(all.seen, caches, sizeof caches);
    cairn_runtime_visit_ics(runtime, note_visit, &two);
    ck_assert_uint_eq(two.count, 2);
    ic_assert_done(cairn_ic_destroy(caches[1], CAIRN_RELAXED, &error), error);
    all.count = 0;
    cairn_runtime_visit_ics(runtime, note_visit, &all);
    ck_assert_uint_eq(all.count, 3);
    ck_assert_ptr_eq(all.seen[1], caches[2]);
    unload_second();
}
END_TEST

/* Replaces addresses by "0x". */
static void replace_addresses(char *text)
{
    char *out = text;
    for (char *in = text; *in != '\0';) {
        bool is_address = strncmp(in, " at 0x", 6) == 0 || strncmp(in, "call 0x", 7) == 0;
        *out++ = *in++;
        if (!is_address)
            continue;
        while (strncmp(in, "0x", 2) != 0)
            *out++ = *in++;
        *out++ = *in++;
        *out++ = *in++;
        in += strspn(in, "0123456789abcdef");
    }
    *out = '\0';
}

static void add_all_kinds(cairn_ic *getting)
{
    struct cairn_ic_case loads = load_case(0x51, 1);
    struct cairn_ic_case constant = constant_case(0x52, 7);
    struct cairn_ic_case outside = load_case(0x53, 0);
    struct cairn_ic_case calls = {.guard = shape_guard(0x54),
                                  .action = CAIRN_IC_CALL,
                                  .target = (const void *)(uintptr_t)first_target};
    constant.guard.mask = 0xFF;
    outside.field = (struct cairn_ic_field){
        .offset = -8,
        .width = 2,
        .is_signed = true,
        .is_out_of_line = true,
        .pointer_offset = offsetof(struct object, outside),
    };
    add_to(getting, &loads);
    add_to(getting, &constant);
    add_to(getting, &outside);
    add_to(getting, &calls);
}

static void make_report(void)
{
    const struct ic_function functions[] = {get, set, get_by_c};
    struct cairn_ic_case stores = {
        .guard = {.operand = 0, .offset = -4, .width = 8, .key = UINT64_MAX},
        .action = CAIRN_IC_STORE,
        .field = {.offset = 24, .width = 4},
        .operand = 1,
    };
    load(functions, 3);
    cairn_ic *getting = create(program.sites[0], (struct cairn_ic_options){.counts_hits = true});
    cairn_ic *setting = create(program.sites[1], (struct cairn_ic_options){.case_limit = 1});
    cairn_ic *another = create(program.sites[2], (struct cairn_ic_options){.case_limit = 1});
    add_all_kinds(getting);
    add_to(setting, &stores);
    add_constants(another, 2);
    answer(ANSWER);
    run_often(0x51, 3);
    run_often(0x52, 2);
    run_often(0x99, 2);
}

static const char report[] =
    "site 100 at 0x: polymorphic, 4 of 4 cases, 5 hits, 2 misses\n"
    "    [operand 0 + 0] 4 bytes = 0x51: load 8 bytes at 16, 3 hits\n"
    "    [operand 0 + 0] 4 bytes & 0xff = 0x52: constant 0x7, 2 hits\n"
    "    [operand 0 + 0] 4 bytes = 0x53: load signed 2 bytes at -8 from the pointer at 56, 0 hits\n"
    "    [operand 0 + 0] 4 bytes = 0x54: call 0x, 0 hits\n"
    "site 101 at 0x: monomorphic, 1 of 1 cases\n"
    "    [operand 0 - 4] 8 bytes = 0xffffffffffffffff: store operand 1, 4 bytes at 24\n"
    "site 102 at 0x: megamorphic, 0 of 1 cases\n";

START_TEST(a_report_has_a_line_for_each_cache_and_each_case)
{
    char text[4096];
    make_report();
    size_t length = cairn_runtime_format_ics(runtime, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    replace_addresses(text);
    ck_assert_str_eq(text, report);
}
END_TEST

START_TEST(a_report_is_cut_to_its_size_and_tells_its_length)
{
    char whole[4096];
    char text[4096];
    make_report();
    size_t length = cairn_runtime_format_ics(runtime, whole, sizeof whole);
    ck_assert_uint_eq(cairn_runtime_format_ics(runtime, NULL, 0), length);
    for (size_t size = 1; size <= length + 1; size++) {
        memset(text, 0x55, sizeof text);
        ck_assert_uint_eq(cairn_runtime_format_ics(runtime, text, size), length);
        ck_assert_uint_eq(strlen(text), size - 1);
        ck_assert_mem_eq(text, whole, size - 1);
        ck_assert_int_eq(text[size], 0x55);
    }
}
END_TEST

START_TEST(a_report_of_no_caches_is_empty)
{
    char text[8] = "before";
    ck_assert_uint_eq(cairn_runtime_format_ics(runtime, text, sizeof text), 0);
    ck_assert_str_eq(text, "");
}
END_TEST

/* ---- Errors of creating ---- */

static void expect_no_cache(cairn_site *site, const struct cairn_ic_options *options,
                            enum cairn_status expected, const char *says)
{
    struct cairn_error error = {0};
    cairn_ic *made = (cairn_ic *)&seen;
    enum cairn_status status = cairn_ic_create(site, options, &made, &error);
    ck_assert_msg(status == expected, "%d and not %d: %s", (int)status, (int)expected,
                  error.message);
    ck_assert_int_eq(error.status, expected);
    ck_assert_msg(strstr(error.message, says) != NULL, "no '%s' in '%s'", says, error.message);
    ck_assert_ptr_eq(made, (cairn_ic *)&seen);
}

START_TEST(what_no_cache_can_be_made_of_is_refused)
{
    const struct cairn_ic_options good = {.handler = missed, .user = &seen};
    struct cairn_ic_options bad = good;
    struct cairn_site_description before;
    struct cairn_site_description after;
    load(&get, 1);
    cairn_site_describe(program.sites[0], &before);
    expect_no_cache(NULL, &good, CAIRN_ERROR_ARGUMENT, "site");
    expect_no_cache(program.sites[0], NULL, CAIRN_ERROR_ARGUMENT, "options");
    bad.handler = NULL;
    expect_no_cache(program.sites[0], &bad, CAIRN_ERROR_ARGUMENT, "handler");
    bad = good;
    bad.case_limit = CAIRN_IC_CASE_LIMIT_MAX + 1;
    expect_no_cache(program.sites[0], &bad, CAIRN_ERROR_ARGUMENT, "17");
    bad = good;
    bad.megamorphic_target = (const void *)(uintptr_t)first_target;
    expect_no_cache(program.sites[0], &bad, CAIRN_ERROR_ARGUMENT, "number 13");
    cairn_site_describe(program.sites[0], &after);
    ck_assert_int_eq(after.state, before.state);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
}
END_TEST

START_TEST(a_site_has_one_cache)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    add_constant(1, 101);
    expect_no_cache(program.sites[0], &options, CAIRN_ERROR_CONFLICT, "");
    ck_assert_ptr_eq(cairn_site_ic(program.sites[0]), ic);
    expect_hit(1, 101);
}
END_TEST

static const char other_sites[] = SUPPORT_INTRINSICS
    "define i64 @stackmap(i64 %a) uwtable {\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 16, i64 %a)\n"
    "  %r = mul i64 %a, 3\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @swift(i64 %a) uwtable {\n"
    "  %r = call swiftcc i64 (i64, i32, ptr, i32, ...)\n"
    "      @llvm.experimental.patchpoint.i64(i64 2, i32 16, ptr null, i32 1, i64 %a)\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @wide(i128 %a) uwtable {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...)\n"
    "      @llvm.experimental.patchpoint.i64(i64 3, i32 16, ptr null, i32 1, i128 %a)\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @narrow(i64 %a) uwtable {\n"
    "  %r = call anyregcc i64 (i64, i32, ptr, i32, ...)\n"
    "      @llvm.experimental.patchpoint.i64(i64 4, i32 0, ptr null, i32 1, i64 %a)\n"
    "  ret i64 %r\n"
    "}\n";

static cairn_site *site(uint64_t id)
{
    struct cairn_error error = {0};
    cairn_site *found = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(found != NULL, "%s", error.message);
    return found;
}

START_TEST(sites_that_can_have_no_cache_say_why)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    ic_load_with(&program, runtime, &get, 1, IC_FIRST_SITE, other_sites);
    expect_no_cache(site(1), &options, CAIRN_ERROR_UNMANAGED, "");
    expect_no_cache(site(2), &options, CAIRN_ERROR_UNSUPPORTED, "convention");
    expect_no_cache(site(4), &options, CAIRN_ERROR_UNMANAGED, "");
}
END_TEST

__extension__ typedef __int128 wide_integer;

/* The halves of an i128 are not separate values in records. It depends on the ABI whether a handler
 * can get the value: the handler gets it unchanged, or the cache is refused. */
START_TEST(an_operand_of_128_bits_arrives_or_is_refused)
{
    struct cairn_error error = {0};
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    cairn_ic *made = NULL;
    ic_load_with(&program, runtime, &get, 1, IC_FIRST_SITE, other_sites);
    enum cairn_status status = cairn_ic_create(site(3), &options, &made, &error);
    ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_UNSUPPORTED);
    if (status == CAIRN_OK) {
        wide_integer (*function)(wide_integer);
        const void *address = ic_find(&program, "wide");
        memcpy(&function, &address, sizeof address);
        wide_integer wide = ((wide_integer)0x1122334455667788 << 64) + 0x99;
        answer(ANSWER);
        function(wide);
        ck_assert_mem_eq(seen.operands[0].bytes, &wide, sizeof wide);
    }
}
END_TEST

START_TEST(a_site_with_too_many_operands_has_no_cache)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    struct ic_function function = get_by_c;
    function.operand_count = CAIRN_IC_OPERANDS_MAX + 1;
    for (uint32_t i = 1; i < function.operand_count; i++)
        function.operands[i] = CAIRN_INTEGER(64);
    load(&function, 1);
    expect_no_cache(program.sites[0], &options, CAIRN_ERROR_UNSUPPORTED, "17");
}
END_TEST

/* ---- Errors of cases ---- */

/* Operands of all kinds; operand 12 is on the stack on every architecture. */
enum { ON_STACK = 12 };
static const struct ic_function many_by_c = {
    .calling_convention = C,
    .result = INTEGER(32),
    .operand_count = ON_STACK + 1,
    .operands = {POINTER,
                 DOUBLE,
                 INTEGER(32),
                 {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 4},
                 INTEGER(64),
                 FLOAT,
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 INTEGER(64),
                 POINTER},
};
static const struct ic_function many = {
    .calling_convention = ANYREG,
    .operand_count = 6,
    .operands = {POINTER,
                 DOUBLE,
                 INTEGER(32),
                 {.kind = CAIRN_TYPE_FLOAT, .bits = 32, .element_count = 4},
                 INTEGER(64),
                 FLOAT},
};

#define GUARD                                                                                      \
    {                                                                                              \
        .offset = 0, .width = 4, .key = 1                                                          \
    }

static const struct bad_case {
    struct cairn_ic_case given;
    enum cairn_status status;
    bool by_c; /* otherwise it is a site without a result */
    const char *says;
} bad_cases[] = {
    {{.guard = {.operand = 6, .width = 4}, .action = CAIRN_IC_CALL},
     CAIRN_ERROR_ARGUMENT,
     false,
     "number 6"},
    {{.guard = {.operand = UINT32_MAX, .width = 4}, .action = CAIRN_IC_CALL},
     CAIRN_ERROR_ARGUMENT,
     false,
     "number 4294967295"},
    {{.guard = {.operand = 1, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "the receiver, of type double"},
    {{.guard = {.operand = 2, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "the receiver, of type i32"},
    {{.guard = {.operand = 3, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "the receiver, of type <4 x float>"},
    {{.guard = {.width = 0}, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, true, "not 0"},
    {{.guard = {.width = 3}, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, true, "not 3"},
    {{.guard = {.width = 16}, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, true, "not 16"},
    {{.guard = {.width = 2, .key = 0x10000}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "key"},
    {{.guard = {.width = 4, .mask = 0xF0, .key = 0x18}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "key"},
    {{.guard = {.width = 1, .mask = 0x1FF, .key = 1}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_ARGUMENT,
     true,
     "mask"},
    {{.guard = GUARD, .action = (enum cairn_ic_action)9}, CAIRN_ERROR_ARGUMENT, true, "action"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 0}},
     CAIRN_ERROR_ARGUMENT,
     true,
     "not 0"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 3}},
     CAIRN_ERROR_ARGUMENT,
     true,
     "not 3"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 16}},
     CAIRN_ERROR_ARGUMENT,
     true,
     "not 16"},
    {{.guard = GUARD, .action = CAIRN_IC_LOAD, .field = {.width = 8}},
     CAIRN_ERROR_ARGUMENT,
     false,
     "result"},
    {{.guard = GUARD, .action = CAIRN_IC_CONSTANT}, CAIRN_ERROR_ARGUMENT, false, "result"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 6},
     CAIRN_ERROR_ARGUMENT,
     false,
     "number 6"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 2},
     CAIRN_ERROR_ARGUMENT,
     false,
     "the stored operand, of type i32, is narrower"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 4}, .operand = 1},
     CAIRN_ERROR_ARGUMENT,
     false,
     "the stored operand, of type double, has another size"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 5},
     CAIRN_ERROR_ARGUMENT,
     false,
     "the stored operand, of type float, has another size"},
    {{.guard = GUARD, .action = CAIRN_IC_STORE, .field = {.width = 8}, .operand = 3},
     CAIRN_ERROR_UNSUPPORTED,
     false,
     "the stored operand, of type <4 x float>"},
    {{.guard = GUARD, .action = CAIRN_IC_CALL}, CAIRN_ERROR_ARGUMENT, true, "NULL"},
    {{.guard = {.operand = ON_STACK, .width = 4}, .action = CAIRN_IC_CONSTANT},
     CAIRN_ERROR_UNSUPPORTED,
     true,
     "the receiver, of type ptr, is not in a register"},
};
enum { BAD_CASES = sizeof bad_cases / sizeof *bad_cases };

static bool same_case(const struct cairn_ic_case *left, const struct cairn_ic_case *right)
{
    return left->guard.operand == right->guard.operand &&
           left->guard.offset == right->guard.offset && left->guard.width == right->guard.width &&
           left->guard.mask == right->guard.mask && left->guard.key == right->guard.key &&
           left->action == right->action && left->constant == right->constant &&
           left->field.offset == right->field.offset && left->field.width == right->field.width;
}

static void expect_same(const struct cairn_ic_description *before)
{
    struct cairn_ic_description now;
    cairn_ic_describe(before->ic, &now);
    ck_assert_int_eq(now.state, before->state);
    ck_assert_uint_eq(now.case_count, before->case_count);
    ck_assert_uint_eq(now.code_bytes, before->code_bytes);
    for (uint32_t i = 0; i < now.case_count; i++)
        ck_assert(same_case(&now.cases[i], &before->cases[i]));
}

static void expect_bad(cairn_ic *cache, const struct bad_case *bad)
{
    struct cairn_error error = {0};
    struct cairn_ic_description before;
    cairn_ic_describe(cache, &before);
    enum cairn_status status = cairn_ic_add(cache, &bad->given, CAIRN_RELAXED, &error);
    ck_assert_msg(status == bad->status, "case %d: %d: %s", (int)(bad - bad_cases), (int)status,
                  error.message);
    ck_assert_int_eq(error.status, bad->status);
    ck_assert_msg(strstr(error.message, bad->says) != NULL, "case %d: no '%s' in '%s'",
                  (int)(bad - bad_cases), bad->says, error.message);
    expect_same(&before);
    expect_same(&before);
}

START_TEST(cases_that_do_not_fit_are_refused_and_the_cache_is_as_it_was)
{
    const struct ic_function functions[] = {many_by_c, many};
    const struct cairn_ic_case good = {.guard = {.width = 1, .key = 9},
                                       .action = CAIRN_IC_STORE,
                                       .field = {.width = 1},
                                       .operand = 4};
    struct cairn_ic_case constant = constant_case(9, 1);
    load(functions, 2);
    cairn_ic *by_c = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    cairn_ic *setting = create(program.sites[1], (struct cairn_ic_options){.handler = NULL});
    add_to(by_c, &constant);
    add_to(setting, &good);
    for (int i = 0; i < BAD_CASES; i++)
        expect_bad(bad_cases[i].by_c ? by_c : setting, &bad_cases[i]);
}
END_TEST

START_TEST(a_field_is_not_wider_than_the_result)
{
    struct ic_function functions[2] = {get, get};
    struct cairn_ic_case wide = load_case(1, 0);
    struct cairn_error error = {0};
    functions[0].result = CAIRN_INTEGER(32);
    functions[1].result = CAIRN_DOUBLE;
    if (!ic_can_return(functions[1].result))
        return;
    load(functions, 2);
    ic = create(program.sites[0], (struct cairn_ic_options){.handler = NULL});
    ck_assert_int_eq(cairn_ic_add(ic, &wide, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "i32"));
    expect_state(CAIRN_IC_EMPTY, 0);
    ic = create(program.sites[1], (struct cairn_ic_options){.handler = NULL});
    wide.field.width = 4;
    ck_assert_int_eq(cairn_ic_add(ic, &wide, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "double"));
    expect_state(CAIRN_IC_EMPTY, 0);
}
END_TEST

START_TEST(a_case_that_is_not_there_cannot_be_removed)
{
    struct cairn_error error = {0};
    struct cairn_ic_description before;
    struct cairn_ic_guard guard = shape_guard(2);
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    add_constant(1, 101);
    cairn_ic_describe(ic, &before);
    ck_assert_int_eq(cairn_ic_remove(ic, &guard, CAIRN_RELAXED, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    expect_same(&before);
    guard = shape_guard(1);
    guard.offset = 4;
    ck_assert_int_eq(cairn_ic_remove(ic, &guard, CAIRN_RELAXED, &error), CAIRN_ERROR_NOT_FOUND);
    expect_same(&before);
    expect_hit(1, 101);
}
END_TEST

START_TEST(what_is_left_out_is_refused)
{
    struct cairn_error error = {0};
    struct cairn_ic_case good = constant_case(1, 1);
    load_one(&get, (struct cairn_ic_options){.handler = NULL});
    ck_assert_int_eq(cairn_ic_add(NULL, &good, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ic_add(ic, NULL, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ic_remove(NULL, &good.guard, CAIRN_RELAXED, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ic_remove(ic, NULL, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ic_reset(NULL, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(ic_order(NULL, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_ics_change(NULL, 1, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    const struct cairn_ic_change changes[] = {ic_adding(ic, &good), ic_adding(NULL, &good)};
    ck_assert_int_eq(cairn_ics_change(changes, 2, CAIRN_RELAXED, &error), CAIRN_ERROR_ARGUMENT);
    expect_state(CAIRN_IC_EMPTY, 0);
}
END_TEST

/* ---- Errors of memory allocation ---- */

/* Whichever allocation fails, nothing has changed. In the end `change` succeeds. */
static void fail_each_allocation(enum cairn_status (*change)(struct cairn_error *error),
                                 void (*expect_nothing)(void))
{
    enum { MANY = 1000 };
    struct cairn_error error = {0};
    for (size_t i = 1; i < MANY; i++) {
        allocations.calls = 0;
        allocations.fail_at = i;
        enum cairn_status status = change(&error);
        allocations.fail_at = 0;
        if (status == CAIRN_OK) {
            ck_assert_uint_lt(allocations.calls, i);
            return;
        }
        ck_assert_msg(status == CAIRN_ERROR_MEMORY, "%s", error.message);
        expect_nothing();
    }
    ck_abort_msg("there is no end of allocations");
}

static enum cairn_status change_create(struct cairn_error *error)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    return cairn_ic_create(program.sites[0], &options, &ic, error);
}

static void expect_not_created(void)
{
    struct cairn_site_description description;
    cairn_site_describe(program.sites[0], &description);
    ck_assert_int_eq(description.state, CAIRN_SITE_NOP);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    ck_assert_ptr_null(ic);
}

START_TEST(creating_fails_with_each_allocation)
{
    load(getters[_i], 1);
    fail_each_allocation(change_create, expect_not_created);
    expect_miss(1);
}
END_TEST

static uint32_t added_shape;

static enum cairn_status change_add(struct cairn_error *error)
{
    struct cairn_ic_case added = constant_case(added_shape, 200 + added_shape);
    return cairn_ic_add(ic, &added, CAIRN_RELAXED, error);
}

static void expect_not_added(void)
{
    ck_assert_uint_eq(ic_case_count(ic), added_shape - 1);
    for (uint32_t shape = 1; shape < added_shape; shape++)
        expect_hit(shape, 200 + shape);
    expect_miss(added_shape);
}

START_TEST(adding_fails_with_each_allocation)
{
    load_one(getters[_i], (struct cairn_ic_options){.case_limit = 16});
    for (added_shape = 1; added_shape <= 16; added_shape++)
        fail_each_allocation(change_add, expect_not_added);
    for (uint32_t shape = 1; shape <= 16; shape++)
        expect_hit(shape, 200 + shape);
}
END_TEST

/* Adds a case that calls; with anyregcc the call goes through Cairn. */
static enum cairn_status change_add_call(struct cairn_error *error)
{
    const struct cairn_ic_case added = {.guard = shape_guard(1),
                                        .action = CAIRN_IC_CALL,
                                        .target = (const void *)(uintptr_t)first_target};
    return cairn_ic_add(ic, &added, CAIRN_RELAXED, error);
}

START_TEST(adding_a_call_fails_with_each_allocation)
{
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    load_one(getters[_i], (struct cairn_ic_options){.handler = NULL});
    added_shape = 1;
    fail_each_allocation(change_add_call, expect_not_added);
    ic_set_operand(&access_0, 1, &integer);
    expect_hit(1, 1077);
}
END_TEST

static enum cairn_status change_by_list(struct cairn_error *error)
{
    struct cairn_ic_change changes[NOTED];
    note_changes(changes);
    return cairn_ics_change(changes, NOTED, CAIRN_RELAXED, error);
}

START_TEST(a_list_fails_with_each_allocation)
{
    load_for_list();
    fail_each_allocation(change_by_list, expect_unchanged);
    expect_changed();
    unload_second();
}
END_TEST

static enum cairn_status change_by_key(struct cairn_error *error)
{
    return ic_remove_key(runtime, 1, CAIRN_RELAXED, NULL, error);
}

START_TEST(removing_a_key_fails_with_each_allocation)
{
    load_for_list();
    fail_each_allocation(change_by_key, expect_unchanged);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    unload_second();
}
END_TEST

static enum cairn_status change_by_reset(struct cairn_error *error)
{
    return ic_reset_module(runtime, module_of(caches[0]), CAIRN_RELAXED, NULL, error);
}

START_TEST(resetting_a_modules_caches_fails_with_each_allocation)
{
    load_for_list();
    fail_each_allocation(change_by_reset, expect_unchanged);
    ck_assert_uint_eq(run_cache(0, 1), ANSWER);
    ck_assert_uint_eq(run_cache(1, 1), ANSWER);
    unload_second();
}
END_TEST

/* ---- Errors of code memory ---- */

static void set_up_small(void)
{
    const struct cairn_runtime_options options = {
        .allocator = support_counting(&allocations), .slab_size = 1 << 20, .slab_limit = 1};
    set_up();
    cairn_runtime_destroy(runtime);
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
}

START_TEST(without_a_quiescent_point_code_memory_ends_and_the_cache_is_as_it_was)
{
    struct cairn_error error = {0};
    struct cairn_ic_description before;
    load_one(&get, (struct cairn_ic_options){.case_limit = 16});
    for (uint32_t shape = 1; shape <= 15; shape++)
        add_constant(shape, 100 + shape);
    enum cairn_status status = CAIRN_OK;
    for (int i = 0; i < 100000 && status == CAIRN_OK; i++) {
        struct cairn_ic_case added = constant_case(16, (uint64_t)i);
        cairn_ic_describe(ic, &before);
        status = cairn_ic_add(ic, &added, CAIRN_RELAXED, &error);
    }
    ck_assert_msg(status == CAIRN_ERROR_FULL, "%s", error.message);
    expect_same(&before);
    for (uint32_t shape = 1; shape <= 15; shape++)
        expect_hit(shape, 100 + shape);
    expect_hit(16, before.cases[15].constant);
    cairn_runtime_quiesce(runtime);
    add_constant(16, 116);
    expect_hit(16, 116);
}
END_TEST

/* ---- The suite ---- */

static void add_tests_of_guards(Suite *suite)
{
    TCase *tests = tcase_create("guards");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, guards_compare_the_masked_bytes_at_their_offset_and_read_no_others,
                        0, 4);
    tcase_add_loop_test(tests, guards_look_at_the_operand_that_they_name, 0, 2);
    tcase_add_loop_test(tests, each_of_many_cases_hits_and_everything_else_misses, 0, 2 * OPTIONS);
    tcase_add_loop_test(tests, cases_with_different_guards_and_actions_are_tried_in_order, 0,
                        OPTIONS);
    suite_add_tcase(suite, tests);
}

static void add_tests_of_actions(Suite *suite)
{
    TCase *tests = tcase_create("actions");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, loads_extend_the_field_into_the_result, 0, 2);
    tcase_add_loop_test(tests, constants_are_the_result_of_each_type, 0, 2);
    tcase_add_loop_test(tests, stores_write_the_operand_into_the_field_and_nothing_else, 0, 2);
    tcase_add_test(tests, the_receiver_can_be_stored_into_itself);
    tcase_add_loop_test(tests, a_c_function_is_called_with_the_sites_arguments, 0,
                        CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_c_function_without_result_is_called, 0, CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_c_function_returns_a_double, 0, CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_compiled_function_is_called_with_the_sites_arguments, 0,
                        CALLING_CONVENTIONS);
    tcase_add_loop_test(tests, a_function_that_is_called_may_come_to_the_site_again, 0,
                        CALLING_CONVENTIONS);
    suite_add_tcase(suite, tests);
}

static void add_tests_of_states(Suite *suite)
{
    TCase *tests = tcase_create("states");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_cache_becomes_megamorphic_at_its_limit_until_it_is_reset, 0, 2);
    tcase_add_test(tests, without_a_megamorphic_handler_the_handler_is_called);
    tcase_add_loop_test(tests, a_megamorphic_function_is_called_straight, 1, CALLING_CONVENTIONS);
    tcase_add_test(tests, the_usual_limit_is_the_one_in_the_header);
    tcase_add_test(tests, a_case_with_the_same_guard_takes_the_others_place);
    tcase_add_test(tests, guards_that_differ_in_anything_are_of_different_cases);
    tcase_add_test(tests, a_case_is_removed_and_the_others_stay_in_order);
    tcase_add_test(tests, names_of_states_and_actions);
    tcase_add_loop_test(tests, hits_and_misses_of_one_thread_are_counted_exactly, 0, 4);
    tcase_add_test(tests, counts_of_a_case_survive_changes_of_others);
    tcase_add_test(tests, counters_begin_at_zero_also_when_all_are_in_use);
    tcase_add_test(tests, what_is_not_counted_is_zero);
    tcase_add_test(tests, the_cases_that_hit_most_often_come_first);
    tcase_add_test(tests, a_cache_that_does_not_count_cannot_be_ordered);
    suite_add_tcase(suite, tests);
}

static void add_tests_of_handlers(Suite *suite)
{
    TCase *tests = tcase_create("handlers");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, handlers_get_all_operands_with_their_types, 0, OPERAND_CONVENTIONS);
    tcase_add_test(tests, handlers_get_the_cache_and_the_frame);
    tcase_add_loop_test(tests, a_handler_adds_the_case_that_was_missing, 0, 2);
    tcase_add_loop_test(tests, a_handler_may_come_to_the_same_site, 0, 2);
    tcase_add_loop_test(tests, a_handler_may_return_from_the_function, 0, 2);
    tcase_add_test(tests, a_handler_that_returns_nothing_leaves_the_code_going_on);
    tcase_add_test(tests, a_result_of_another_type_is_refused);
    tcase_add_test(tests, a_result_where_the_site_has_none_is_refused);
    tcase_add_loop_test(tests, a_handler_may_destroy_the_cache_that_it_is_called_by, 0, 2);
    suite_add_tcase(suite, tests);
}

static void add_tests_of_binding(Suite *suite)
{
    TCase *tests = tcase_create("binding");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_destroyed_cache_leaves_the_site_as_it_was, 0, 4);
    tcase_add_test(tests, a_restored_site_calls_its_first_target_again);
    tcase_add_test(tests, destroying_nothing_is_allowed);
    tcase_add_test(tests, a_site_and_its_cache_know_each_other);
    tcase_add_test(tests, a_modules_caches_go_with_it);
    suite_add_tcase(suite, tests);
}

static void add_tests_of_many(Suite *suite)
{
    TCase *tests = tcase_create("many");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_modules_caches_are_reset_together);
    tcase_add_test(tests, all_cases_of_a_key_are_removed_from_all_caches);
    tcase_add_test(tests, a_list_of_changes_is_made_together);
    tcase_add_test(tests, a_list_that_cannot_be_made_changes_nothing);
    tcase_add_test(tests, changes_of_one_cache_are_made_in_their_order);
    tcase_add_test(tests, a_list_goes_over_the_limit_as_adding_does);
    tcase_add_test(tests, a_list_has_caches_of_one_runtime_only);
    tcase_add_test(tests, caches_are_visited_oldest_first_until_the_visitor_has_enough);
    tcase_add_test(tests, a_report_has_a_line_for_each_cache_and_each_case);
    tcase_add_test(tests, a_report_is_cut_to_its_size_and_tells_its_length);
    tcase_add_test(tests, a_report_of_no_caches_is_empty);
    suite_add_tcase(suite, tests);
}

static void add_tests_of_errors(Suite *suite)
{
    TCase *tests = tcase_create("errors");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_no_cache_can_be_made_of_is_refused);
    tcase_add_test(tests, a_site_has_one_cache);
    tcase_add_test(tests, sites_that_can_have_no_cache_say_why);
    tcase_add_test(tests, an_operand_of_128_bits_arrives_or_is_refused);
    tcase_add_test(tests, a_site_with_too_many_operands_has_no_cache);
    tcase_add_test(tests, cases_that_do_not_fit_are_refused_and_the_cache_is_as_it_was);
    tcase_add_test(tests, a_field_is_not_wider_than_the_result);
    tcase_add_test(tests, a_case_that_is_not_there_cannot_be_removed);
    tcase_add_test(tests, what_is_left_out_is_refused);
    tcase_add_loop_test(tests, creating_fails_with_each_allocation, 0, 2);
    tcase_add_loop_test(tests, adding_fails_with_each_allocation, 0, 2);
    tcase_add_loop_test(tests, adding_a_call_fails_with_each_allocation, 0, 2);
    tcase_add_test(tests, a_list_fails_with_each_allocation);
    tcase_add_test(tests, removing_a_key_fails_with_each_allocation);
    tcase_add_test(tests, resetting_a_modules_caches_fails_with_each_allocation);
    suite_add_tcase(suite, tests);
    TCase *small = tcase_create("small");
    tcase_set_timeout(small, 60);
    tcase_add_checked_fixture(small, set_up_small, tear_down);
    tcase_add_test(small, without_a_quiescent_point_code_memory_ends_and_the_cache_is_as_it_was);
    suite_add_tcase(suite, small);
}

int main(void)
{
    Suite *suite = suite_create("inline caches");
    add_tests_of_guards(suite);
    add_tests_of_actions(suite);
    add_tests_of_states(suite);
    add_tests_of_handlers(suite);
    add_tests_of_binding(suite);
    add_tests_of_many(suite);
    add_tests_of_errors(suite);
    return support_main(suite);
}
