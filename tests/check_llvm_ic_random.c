/*
 * Tests of random properties of objects of random shapes, which threads and a timer's signal
 * handler read and write through inline caches while other threads change the caches in every way.
 *
 * The correct result of an access does not depend on the contents of the caches, because only the
 * thread itself writes to the objects that it reads. So each access is compared with a simple
 * model, which the handlers also use for their answers.
 *
 * Environment: CAIRN_TEST_SEED selects other objects, and CAIRN_TEST_ROUNDS is the number of rounds
 * (60 by default).
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"
#include "tests/ic_support.h"
#include "tests/mode_support.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum {
    ANYREG = CAIRN_CALLING_CONVENTION_ANYREG,
    C = CAIRN_CALLING_CONVENTION_C,
    SHAPES = 24,
    THREADS_MAX = 8,
    DATA_BYTES = 64,
    SHARED_OBJECTS = 32,
    OWN_OBJECTS = 8,
    CHANGES = 300,
    ACCESSES = 300,
    ROUNDS = 40
};

/* ---- Objects ---- */

/* One property of a shape, which determines what an access of one site must do. */
enum kind { INSIDE, OUTSIDE, INHERITED, CONSTANT, FUNCTION, ABSENT, KINDS };

struct property {
    enum kind kind;
    struct cairn_ic_field field;
    uint64_t constant;
};

struct object {
    uint32_t key; /* key of the shape; the lowest byte alone identifies the shape */
    uint32_t flags;
    unsigned char *outside;
    _Alignas(8) unsigned char data[DATA_BYTES];
};

enum { SITES = 7, WRITERS = 2, READERS = SITES - WRITERS };

static struct shape {
    uint32_t key;
    struct property properties[SITES];
} shapes[SHAPES];

static const struct shape *shape_of(const struct object *object)
{
    return &shapes[object->key % SHAPES];
}

/* The objects that have the inherited properties of each shape. They do not change. */
static struct object prototypes[SHAPES];

static unsigned char *place_of(const struct object *object, const struct property *property)
{
    const unsigned char *base =
        property->kind == OUTSIDE ? object->outside : (const unsigned char *)object;
    return (unsigned char *)(uintptr_t)base + property->field.offset;
}

/* ---- Sites ---- */

/* The receiver is the only pointer. Writers store the last operand. */
static const struct ic_function functions[SITES] = {
    {.calling_convention = ANYREG,
     .result = INTEGER(64),
     .operand_count = 2,
     .operands = {POINTER, INTEGER(64)}},
    {.calling_convention = C,
     .result = INTEGER(64),
     .operand_count = 2,
     .operands = {INTEGER(64), POINTER}},
    {.calling_convention = ANYREG,
     .result = INTEGER(32),
     .operand_count = 3,
     .operands = {INTEGER(64), POINTER, DOUBLE}},
    {.calling_convention = ANYREG,
     .result = INTEGER(64),
     .operand_count = 1,
     .operands = {POINTER}},
    /* uses of a double, where the LLVM in use supports it */
    {.calling_convention = ANYREG,
     .result = DOUBLE,
     .operand_count = 2,
     .operands = {POINTER, INTEGER(64)}},
    {.calling_convention = ANYREG, .operand_count = 2, .operands = {POINTER, INTEGER(64)}},
    {.calling_convention = C, .operand_count = 3, .operands = {INTEGER(64), POINTER, DOUBLE}},
};

static uint32_t receiver_of(unsigned site)
{
    uint32_t number = 0;
    while (functions[site].operands[number].kind != CAIRN_TYPE_POINTER)
        number++;
    return number;
}

static bool is_writer(unsigned site) { return site >= READERS; }
static bool is_there(unsigned site) { return ic_can_return(functions[site].result); }
static uint32_t stored_operand(unsigned site) { return functions[site].operand_count - 1; }

static struct cairn_type value_type(unsigned site)
{
    return is_writer(site) ? functions[site].operands[stored_operand(site)]
                           : functions[site].result;
}

/* ---- Functions that cases call ---- */

static uint64_t mix(const struct object *object)
{
    return object->key * UINT64_C(0x9E3779B97F4A7C15) ^ (uintptr_t)object;
}

static int64_t target_0(const struct object *object, int64_t noise)
{
    (void)noise;
    return (int64_t)mix(object);
}
static int64_t target_1(int64_t noise, const struct object *object)
{
    return target_0(object, noise);
}
static int64_t target_2(int64_t noise, const struct object *object, double number)
{
    (void)number;
    return target_0(object, noise);
}
static int64_t target_3(const struct object *object) { return target_0(object, 0); }
static double target_4(const struct object *object, int64_t noise)
{
    return (double)(target_0(object, noise) & 0xFFFFFF);
}
static void target_5(struct object *object, int64_t value)
{
    memcpy(object->data, &value, sizeof value);
}
static void target_6(int64_t noise, struct object *object, double value)
{
    (void)noise;
    memcpy(object->data, &value, sizeof value);
}

static const void *target_of(unsigned site)
{
    const void *const targets[SITES] = {
        (const void *)(uintptr_t)target_0, (const void *)(uintptr_t)target_1,
        (const void *)(uintptr_t)target_2, (const void *)(uintptr_t)target_3,
        (const void *)(uintptr_t)target_4, (const void *)(uintptr_t)target_5,
        (const void *)(uintptr_t)target_6,
    };
    return targets[site];
}

/* ---- The model ---- */

static uint64_t read_field(const struct object *object, const struct property *property)
{
    uint64_t number = 0;
    unsigned unused = 64 - 8u * property->field.width;
    memcpy(&number, place_of(object, property), property->field.width);
    if (property->field.is_signed)
        number = (uint64_t)((int64_t)(number << unused) >> unused);
    return number;
}

/* Returns the bits that a reader must return, as many as its type has. */
static uint64_t right_value(unsigned site, const struct object *object)
{
    const struct property *property = &shape_of(object)->properties[site];
    uint64_t bits = 0;
    double number = target_4(object, 0);
    switch (property->kind) {
    case INSIDE:
    case OUTSIDE:
        return read_field(object, property);
    case INHERITED:
        return read_field(&prototypes[shape_of(object) - shapes], property);
    case CONSTANT:
        return property->constant;
    default:
        if (value_type(site).kind != CAIRN_TYPE_DOUBLE)
            return mix(object);
        memcpy(&bits, &number, sizeof bits);
        return bits;
    }
}

/* Does what a writer must do. */
static void write_value(unsigned site, struct object *object, const unsigned char *bytes)
{
    const struct property *property = &shape_of(object)->properties[site];
    if (property->kind == INSIDE || property->kind == OUTSIDE)
        memcpy(place_of(object, property), bytes, property->field.width);
    else
        memcpy(object->data, bytes, 8);
}

/* ---- Random shapes and objects ---- */

static struct property random_property(unsigned site, uint64_t *random)
{
    size_t size = cairn_type_size(value_type(site));
    bool is_number = value_type(site).kind == CAIRN_TYPE_DOUBLE;
    struct property property = {.kind = (enum kind)ic_below(random, KINDS),
                                .constant = ic_random(random)};
    if (is_writer(site) && (property.kind == CONSTANT || property.kind == INHERITED))
        property.kind = INSIDE;
    unsigned width = 1u << ic_below(random, 4);
    if (is_number || width > size)
        width = (unsigned)size;
    uint32_t offset = ic_below(random, DATA_BYTES - width + 1);
    property.field = (struct cairn_ic_field){
        .offset =
            (int32_t)(property.kind == OUTSIDE ? offset : offset + offsetof(struct object, data)),
        .width = (uint8_t)width,
        .is_signed = ic_below(random, 2) == 0,
        .is_out_of_line = property.kind == OUTSIDE,
        .pointer_offset = offsetof(struct object, outside),
    };
    return property;
}

/* The remainder of a key modulo SHAPES identifies its shape, and so does the lowest byte. The other
 * bits are therefore a multiple of both. */
static void make_shapes(uint64_t *random)
{
    enum { STEP = 256 * SHAPES };
    for (uint32_t i = 0; i < SHAPES; i++) {
        shapes[i].key = i + ic_below(random, UINT32_MAX / STEP) * STEP;
        for (unsigned site = 0; site < SITES; site++)
            shapes[i].properties[site] = random_property(site, random);
        prototypes[i].key = shapes[i].key;
        for (int j = 0; j < DATA_BYTES; j++)
            prototypes[i].data[j] = (unsigned char)ic_random(random);
    }
}

static void make_object(struct object *object, unsigned char *outside, uint64_t *random)
{
    /* Some shapes are much more frequent than others. */
    uint32_t shape = ic_below(random, 1 + ic_below(random, 1 + ic_below(random, SHAPES)));
    *object = (struct object){
        .key = shapes[shape].key, .flags = (uint32_t)ic_random(random), .outside = outside};
    for (int i = 0; i < DATA_BYTES; i++) {
        object->data[i] = (unsigned char)ic_random(random);
        outside[i] = (unsigned char)ic_random(random);
    }
}

static struct object shared[SHARED_OBJECTS];
static unsigned char shared_outside[SHARED_OBJECTS][DATA_BYTES];

/* ---- The program ---- */

static cairn_runtime *runtime;
static struct ic_program program;
static cairn_ic *caches[SITES];
static cairn_module *module;
static uint64_t seed;

/* Several guards can identify the same shape. */
static struct cairn_ic_guard guard_for(unsigned site, uint32_t shape, uint32_t choice)
{
    uint32_t key = shapes[shape].key;
    struct cairn_ic_guard guard = {.operand = receiver_of(site), .width = 4, .key = key};
    switch (choice) {
    case 0:
        guard.width = 1;
        guard.key = key & 0xFF;
        break;
    case 1:
        guard.width = 8;
        guard.mask = UINT32_MAX;
        break;
    case 2:
        guard.width = 2;
        guard.mask = 0xFF;
        guard.key = key & 0xFF;
        break;
    default:
        break;
    }
    return guard;
}

static struct cairn_ic_guard random_guard(unsigned site, uint32_t shape, uint64_t *random)
{
    return guard_for(site, shape, ic_below(random, 8));
}

static bool has_case(unsigned site, uint32_t shape)
{
    return shapes[shape].properties[site].kind != ABSENT;
}

/* Some stores write the key, too, which stays the same. */
static void extend_store(struct cairn_ic_case *store, const struct property *property)
{
    store->changes_key = store->guard.mask == 0 && (property->constant & 1) != 0;
    store->new_key = store->changes_key ? store->guard.key : 0;
}

static struct cairn_ic_case make_case(unsigned site, uint32_t shape, struct cairn_ic_guard guard)
{
    struct property *property = &shapes[shape].properties[site];
    struct cairn_ic_case made = {.guard = guard, .field = property->field};
    switch (property->kind) {
    case CONSTANT:
        made.action = CAIRN_IC_CONSTANT;
        made.constant = property->constant;
        break;
    case FUNCTION:
        made.action = CAIRN_IC_CALL;
        made.target = target_of(site);
        break;
    default:
        made.action = is_writer(site) ? CAIRN_IC_STORE : CAIRN_IC_LOAD;
        made.operand = is_writer(site) ? stored_operand(site) : 0;
        if (is_writer(site))
            extend_store(&made, property);
        break;
    }
    if (property->kind == INHERITED)
        made.holder =
            (struct cairn_ic_holder){&prototypes[shape], {.width = 4, .key = shapes[shape].key}};
    return made;
}

/* ---- Threads ---- */

struct runner {
    pthread_t thread;
    uint64_t random;
    struct object own[OWN_OBJECTS];
    unsigned char outside[OWN_OBJECTS][DATA_BYTES];
    struct object wanted[OWN_OBJECTS];
    unsigned char wanted_outside[OWN_OBJECTS][DATA_BYTES];
    atomic_uint accesses;
};

static _Thread_local struct runner *self;
static _Thread_local volatile sig_atomic_t in_signal;

static atomic_bool stops;
static atomic_uint wrong;
static char first_wrong[256];
static atomic_ulong misses;
static atomic_ulong accesses;
static atomic_ulong in_signals;
static atomic_ulong full;
static unsigned long changes_made;

/* The first failure is printed at the end of the round. */
static void report_wrong(const char *what, unsigned site, const struct object *object)
{
    if (atomic_fetch_add(&wrong, 1) == 0)
        snprintf(first_wrong, sizeof first_wrong, "%s, site %u, shape %u, property kind %d%s", what,
                 site, object->key % SHAPES, (int)shape_of(object)->properties[site].kind,
                 in_signal ? ", in a signal" : "");
}

static bool is_fine(enum cairn_status status, enum cairn_status also)
{
    if (status == CAIRN_ERROR_FULL)
        atomic_fetch_add(&full, 1);
    return status == CAIRN_OK || status == CAIRN_ERROR_FULL || status == also;
}

static void expect_fine(enum cairn_status status, enum cairn_status also,
                        const struct cairn_error *error)
{
    if (!is_fine(status, also) && atomic_fetch_add(&wrong, 1) == 0)
        snprintf(first_wrong, sizeof first_wrong, "%.200s", error->message);
}

static enum cairn_strength random_strength(uint64_t *random)
{
    return ic_below(random, 16) == 0 ? CAIRN_SYNC : CAIRN_RELAXED;
}

static void add_case(unsigned site, uint32_t shape, uint64_t *random)
{
    struct cairn_error error = {0};
    struct cairn_ic_case added = make_case(site, shape, random_guard(site, shape, random));
    if (has_case(site, shape))
        expect_fine(cairn_ic_add(caches[site], &added, random_strength(random), &error), CAIRN_OK,
                    &error);
}

/* Also called in signal handlers, where Check's functions are not allowed. */
static struct cairn_value answer_of(unsigned site, const struct object *object)
{
    double number;
    uint64_t bits = right_value(site, object);
    struct cairn_type declared = ic_declared_result(functions[site].result);
    if (declared.kind == CAIRN_TYPE_INTEGER)
        return cairn_value_of_integer(declared.bits, (int64_t)bits);
    memcpy(&number, &bits, sizeof number);
    return cairn_value_of_double(number);
}

/* Mostly frequent shapes, so that caches do not become megamorphic immediately. */
static bool wants_case(unsigned site, const struct object *object, uint64_t *random)
{
    uint32_t chance = cairn_ic_state(caches[site]) == CAIRN_IC_MEGAMORPHIC ? 64 : 4;
    return object->key % SHAPES < 5 ? ic_below(random, chance) == 0 : ic_below(random, 40) == 0;
}

static void missed(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_error error = {0};
    unsigned site = (unsigned)(uintptr_t)user;
    struct object *object = cairn_value_pointer(&miss->operands[receiver_of(site)]);
    atomic_fetch_add_explicit(&misses, 1, memory_order_relaxed);
    if (is_writer(site)) {
        write_value(site, object, miss->operands[stored_operand(site)].bytes);
    } else {
        struct cairn_value answer = answer_of(site, object);
        expect_fine(cairn_ic_return(miss, &answer, &error), CAIRN_OK, &error);
    }
    if (!in_signal && self != NULL && wants_case(site, object, &self->random))
        add_case(site, object->key % SHAPES, &self->random);
}

/* ---- Accesses ---- */

static void fill_operands(struct ic_access *access, unsigned site, struct object *object,
                          uint64_t *random)
{
    const struct ic_function *function = &functions[site];
    for (uint32_t i = 0; i < function->operand_count; i++) {
        uint64_t noise = ic_random(random) >> 2; /* not a NaN */
        memcpy(access->operands[i], &noise, sizeof noise);
    }
    ic_set_pointer(access, receiver_of(site), object);
    memset(access->result, 0, sizeof access->result);
}

static void read_property(unsigned site, struct object *object, uint64_t *random)
{
    struct ic_access access;
    uint64_t bits = right_value(site, object);
    fill_operands(&access, site, object, random);
    program.functions[site](&access);
    if (memcmp(access.result, &bits, cairn_type_size(functions[site].result)) != 0)
        report_wrong("a wrong value was read", site, object);
}

static void write_property(unsigned site, unsigned number)
{
    struct ic_access access;
    struct object *object = &self->own[number];
    struct object *wanted = &self->wanted[number];
    fill_operands(&access, site, object, &self->random);
    program.functions[site](&access);
    write_value(site, wanted, access.operands[stored_operand(site)]);
    if (memcmp(object->data, wanted->data, DATA_BYTES) != 0 ||
        memcmp(self->outside[number], self->wanted_outside[number], DATA_BYTES) != 0)
        report_wrong("an object is wrong after writing", site, object);
}

static void access_something(void)
{
    unsigned site = ic_below(&self->random, SITES);
    unsigned number = ic_below(&self->random, OWN_OBJECTS);
    if (!is_there(site))
        site = 0;
    if (is_writer(site))
        write_property(site, number);
    else if (ic_below(&self->random, 2) == 0)
        read_property(site, &self->own[number], &self->random);
    else
        read_property(site, &shared[ic_below(&self->random, SHARED_OBJECTS)], &self->random);
}

static void *run(void *argument)
{
    self = argument;
    while (!atomic_load(&stops)) {
        access_something();
        if (atomic_fetch_add(&self->accesses, 1) % 64 == 0)
            sched_yield();
    }
    return NULL;
}

static void make_runner(struct runner *runner, uint64_t *random)
{
    runner->random = ic_random(random);
    atomic_store(&runner->accesses, 0);
    for (int i = 0; i < OWN_OBJECTS; i++) {
        make_object(&runner->own[i], runner->outside[i], random);
        runner->wanted[i] = runner->own[i];
        runner->wanted[i].outside = runner->wanted_outside[i];
        memcpy(runner->wanted_outside[i], runner->outside[i], DATA_BYTES);
    }
}

/* ---- The timer ---- */

/* A signal handler like a profiler's, which also runs compiled code. */
static void read_in_signal(int signal)
{
    static atomic_uint number;
    uint64_t random = atomic_fetch_add(&number, 1);
    (void)signal;
    in_signal = 1;
    for (unsigned site = 0; site < READERS; site++)
        if (is_there(site))
            read_property(site, &shared[ic_below(&random, SHARED_OBJECTS)], &random);
    in_signal = 0;
    atomic_fetch_add(&in_signals, 1);
}

static void set_timer(bool is_on)
{
    bool is_emulated = getenv("CAIRN_TEST_EMULATED") != NULL;
    suseconds_t interval = !is_on ? 0 : is_emulated ? 20000 : 500;
    const struct itimerval often = {{0, interval}, {0, interval}};
    const struct sigaction action = {.sa_handler = is_on ? read_in_signal : SIG_IGN,
                                     .sa_flags = SA_RESTART};
    if (is_on)
        sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    if (!is_on)
        sigaction(SIGPROF, &action, NULL);
}

/* ---- Changes ---- */

static unsigned random_site(uint64_t *random)
{
    unsigned site = ic_below(random, SITES);
    return is_there(site) ? site : 0;
}

static void remove_case(uint64_t *random)
{
    struct cairn_error error = {0};
    unsigned site = random_site(random);
    struct cairn_ic_guard guard = random_guard(site, ic_below(random, SHAPES), random);
    expect_fine(ic_remove(caches[site], &guard, random_strength(random), &error),
                CAIRN_ERROR_NOT_FOUND, &error);
}

static void change_many(uint64_t *random)
{
    struct cairn_error error = {0};
    struct cairn_ic_change changes[8];
    size_t count = 0;
    for (uint32_t i = ic_below(random, 8); i > 0; i--) {
        unsigned site = random_site(random);
        uint32_t shape = ic_below(random, SHAPES);
        struct cairn_ic_case made = make_case(site, shape, random_guard(site, shape, random));
        if (ic_below(random, 8) == 0)
            changes[count++] = ic_resetting(caches[site]);
        else if (ic_below(random, 12) == 0)
            changes[count++] = ic_removing(caches[site], &made.guard);
        else if (has_case(site, shape))
            changes[count++] = ic_adding(caches[site], &made);
    }
    expect_fine(cairn_ics_change(changes, count, random_strength(random), &error),
                CAIRN_ERROR_NOT_FOUND, &error);
}

static bool see_cache(const struct cairn_ic_description *description, void *unused)
{
    (void)unused;
    return description->seen_count <= CAIRN_IC_CASE_LIMIT_MAX;
}

static void look(uint64_t *random)
{
    struct cairn_ic_description description;
    cairn_ic_describe(caches[random_site(random)], NULL, 0, &description);
    cairn_runtime_visit_ics(runtime, see_cache, NULL);
}

static void change_something(uint64_t *random)
{
    struct cairn_error error = {0};
    enum cairn_strength strength = random_strength(random);
    unsigned site = random_site(random);
    if (cairn_ic_state(caches[site]) == CAIRN_IC_MEGAMORPHIC && ic_below(random, 4) == 0)
        expect_fine(ic_reset(caches[site], strength, &error), CAIRN_OK, &error);
    switch (ic_below(random, 24)) {
    case 0:
        expect_fine(ic_reset(caches[site], strength, &error), CAIRN_OK, &error);
        break;
    case 2:
        expect_fine(
            ic_remove_key(runtime, shapes[ic_below(random, SHAPES)].key, strength, NULL, &error),
            CAIRN_ERROR_NOT_FOUND, &error);
        break;
    case 3:
        if (ic_below(random, 4) == 0)
            expect_fine(ic_reset_module(runtime, module, strength, NULL, &error), CAIRN_OK, &error);
        break;
    case 4:
    case 5:
    case 6:
        change_many(random);
        break;
    case 7:
        look(random);
        break;
    case 8:
    case 9:
    case 10:
        remove_case(random);
        break;
    default:
        add_case(site, ic_below(random, 1 + ic_below(random, SHAPES)), random);
        break;
    }
}

/* Runs until there are enough changes and accesses. The first round also runs until there has been
 * a signal: the timer counts the process's own time, in ticks that few short rounds may not reach.
 */
static void change_among(struct runner *runners, unsigned count, uint64_t *random)
{
    bool is_enough = false;
    for (unsigned changes = 0; !is_enough && atomic_load(&wrong) == 0; changes++) {
        change_something(random);
        changes_made++;
        if (changes % 16 == 0)
            sched_yield();
        is_enough = changes >= CHANGES && atomic_load(&in_signals) > 0;
        for (unsigned i = 0; i < count; i++)
            is_enough = is_enough && atomic_load(&runners[i].accesses) >= ACCESSES;
    }
}

/* ---- Rounds ---- */

static void create_caches(uint64_t *random)
{
    for (unsigned site = 0; site < SITES; site++) {
        struct cairn_error error = {0};
        const struct cairn_ic_options options = {
            .handler = missed,
            .user = (void *)(uintptr_t)site,
            .case_limit = ic_below(random, CAIRN_IC_CASE_LIMIT_MAX + 1),
            .counts_hits = ic_below(random, 3) == 0,
            .has_table = ic_below(random, 3) > 0,
        };
        if (is_there(site))
            ic_assert_done(cairn_ic_create(program.sites[site], &options, &caches[site], &error),
                           error);
    }
}

static void destroy_caches(void)
{
    struct cairn_error error = {0};
    for (unsigned site = 0; site < SITES; site++)
        if (is_there(site))
            ic_assert_done(cairn_ic_destroy(caches[site], CAIRN_SYNC, &error), error);
}

/* Every case must be one that was added. */
static void check_case(unsigned site, const struct cairn_ic_case *found)
{
    uint64_t mask = found->guard.width == 1 || found->guard.width == 2 ? 0xFF : UINT32_MAX;
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        struct cairn_ic_case made = make_case(site, shape, found->guard);
        if (found->guard.key != (shapes[shape].key & mask))
            continue;
        ck_assert_int_eq(found->action, made.action);
        ck_assert_int_eq(found->field.offset, made.field.offset);
        ck_assert_ptr_eq(found->target, made.target);
        return;
    }
    ck_abort_msg("site %u has a case that nobody has added", site);
}

static void check_caches(void)
{
    for (unsigned site = 0; site < SITES; site++) {
        struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
        struct cairn_ic_description description;
        if (!is_there(site))
            continue;
        cairn_ic_describe(caches[site], cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
        ck_assert_uint_le(description.case_count, description.case_limit);
        for (uint32_t i = 0; i < description.case_count; i++)
            check_case(site, &description.seen[i].entry);
    }
}

static void check_wrong(void)
{
    ck_assert_msg(atomic_load(&wrong) == 0, "%s, and %u more; CAIRN_TEST_SEED=%" PRIu64,
                  first_wrong, atomic_load(&wrong) - 1, seed);
}

static void run_round(uint64_t *random)
{
    static struct runner runners[THREADS_MAX];
    unsigned count = 1 + ic_below(random, THREADS_MAX);
    make_shapes(random);
    for (int i = 0; i < SHARED_OBJECTS; i++)
        make_object(&shared[i], shared_outside[i], random);
    create_caches(random);
    atomic_store(&stops, false);
    for (unsigned i = 0; i < count; i++)
        make_runner(&runners[i], random);
    set_timer(true);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    change_among(runners, count, random);
    atomic_store(&stops, true);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(runners[i].thread, NULL);
        atomic_fetch_add(&accesses, atomic_load(&runners[i].accesses));
    }
    set_timer(false);
    check_wrong();
    check_caches();
    destroy_caches();
    cairn_runtime_quiesce(runtime);
}

static void load(enum cairn_code_mode mode)
{
    struct cairn_error error = {0};
    struct cairn_site_description description;
    struct ic_function there[SITES];
    const struct cairn_runtime_options options = {.code_mode = mode};
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    memcpy(there, functions, sizeof there);
    for (unsigned site = 0; site < SITES; site++)
        if (!is_there(site))
            there[site] = functions[0];
    ic_load(&program, runtime, there, SITES, IC_FIRST_SITE);
    cairn_site_describe(program.sites[0], &description);
    module = record_module(description.record);
}

START_TEST(every_access_of_every_thread_is_right_whatever_the_caches_hold)
{
    uint64_t rounds = ic_rounds(ROUNDS);
    seed = support_seed_or(20261122);
    load(site_modes[_i]);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = seed + round;
        run_round(&random);
    }
    printf("check_llvm_ic_random: %" PRIu64 " rounds, %lu changes, %lu accesses, %lu misses, %lu "
           "signals, %lu times no room\n",
           rounds, changes_made, atomic_load(&accesses), atomic_load(&misses),
           atomic_load(&in_signals), atomic_load(&full));
    ck_assert_uint_gt(atomic_load(&in_signals), 0);
    ck_assert_uint_lt(atomic_load(&misses), atomic_load(&accesses) / 10 * 9);
    ic_unload(&program);
    cairn_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random accesses through inline caches");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_access_of_every_thread_is_right_whatever_the_caches_hold,
                        site_first_mode(), SITE_MODES);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
