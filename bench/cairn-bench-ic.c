/*
 * cairn-bench-ic: the time that inline caches take. A compiled loop reads a property of each object
 * of a heap, in random order: through a cache, with the same guard and load in the IR, and through
 * a lookup in a hash table. There are three heaps: one that fits the processor's first-level cache,
 * one for the next level, and a larger one. The same is measured along a list, where each access
 * waits for the previous one. The program also measures the time and memory of adding a case. With
 * an argument, only figures whose names begin with it are measured.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/ic_code.h"
#include "bench/ic_heap.h"
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/ic.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "cairn-bench-ic: %s: %s\n", cairn_status_name(status), error->message);
    exit(1);
}

/* ---- What is measured ---- */

enum cases {
    NO_CASES,
    LOADS,
    LOADS_BY_WIDE_KEYS,
    STORES,
    CALLS,
    TRANSITIONS,
    PROTOTYPES,
    ELEMENTS
};

/* A loop, and the properties of its cache. `kind` 0 is a site with anyregcc. */
struct subject {
    const char *name;
    enum ic_loop_kind kind;
    uint32_t shape_count; /* number of shapes in the heap */
    enum cases cases;
    struct cairn_ic_options options;
    bool is_slow; /* whether it is slow, so that only the smallest heap is measured */
    bool is_c;    /* whether the loop is C code */
    bool is_along_list;
};

static void missed(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_error error;
    struct cairn_value value = cairn_value_of_integer(
        64, ic_look_up((const struct ic_object *)cairn_value_pointer(&miss->operands[0])));
    (void)user;
    check(cairn_ic_return(miss, &value, &error), &error);
}

static bool missed_lightly(cairn_ic *ic, const uint64_t *operands, uint64_t *result, void *user)
{
    (void)ic, (void)user;
    *result = (uint64_t)ic_look_up((const struct ic_object *)(uintptr_t)operands[0]);
    return true;
}

/* Loops with more branches take longer at some places in a cache line, so that they are at several.
 */
enum { POSITIONS = 4, POSITION_PADDING = 16 };

enum {
    WRITTEN,
    HIT,
    HIT_NARROW,
    HIT_WIDE,
    HIT_COUNTED,
    HIT_C,
    LOOKUP,
    LOOKUP_CALLED,
    WRITTEN_STORE,
    STORE,
    WRITTEN_TRANSITION,
    TRANSITION,
    WRITTEN_PROTOTYPE,
    PROTOTYPE,
    WRITTEN_ELEMENT,
    ELEMENT,
    WRITTEN_CALL,
    WRITTEN_CALL_LAST = WRITTEN_CALL + POSITIONS - 1,
    CALL,
    CALL_LAST = CALL + POSITIONS - 1,
    WRITTEN_TWO,
    WRITTEN_TWO_LAST = WRITTEN_TWO + POSITIONS - 1,
    TWO,
    TWO_LAST = TWO + POSITIONS - 1,
    WRITTEN_FOUR,
    FOUR,
    FOUR_COUNTED,
    FOUR_C,
    LOOKUP_FOUR,
    LIST_WRITTEN,
    LIST_HIT,
    LIST_LOOKUP,
    LIST_FOUR,
    LIST_LOOKUP_FOUR,
    MISS,
    LIGHT_MISS,
    MEGAMORPHIC,
    MEGAMORPHIC_WIDE,
    MEGAMORPHIC_MISS,
    MEGAMORPHIC_TARGET,
    SUBJECTS
};

static struct subject subjects[SUBJECTS] = {
    [WRITTEN] = {.name = "guard and load in the IR", .kind = IC_LOOP_WRITTEN, .shape_count = 1},
    [HIT] = {.name = "a monomorphic hit", .shape_count = 1, .cases = LOADS},
    [HIT_NARROW] = {.name = "a hit in code elsewhere",
                    .kind = IC_LOOP_SITE_NARROW,
                    .shape_count = 1,
                    .cases = LOADS},
    [HIT_WIDE] = {.name = "key of 8 bytes", .shape_count = 1, .cases = LOADS_BY_WIDE_KEYS},
    [HIT_COUNTED] = {.name = "counting",
                     .shape_count = 1,
                     .cases = LOADS,
                     .options = {.counts_hits = true}},
    [HIT_C] = {.name = "C convention", .kind = IC_LOOP_SITE_C, .shape_count = 1, .cases = LOADS},
    [LOOKUP] = {.name = "open addressing", .shape_count = 1, .is_c = true},
    [LOOKUP_CALLED] = {.name = "a call of open addressing",
                       .kind = IC_LOOP_CALLED,
                       .shape_count = 1},
    [WRITTEN_STORE] = {.name = "guard and store in the IR",
                       .kind = IC_LOOP_WRITTEN_STORE,
                       .shape_count = 1},
    [STORE] = {.name = "store", .kind = IC_LOOP_SITE_STORE, .shape_count = 1, .cases = STORES},
    [WRITTEN_TRANSITION] = {.name = "guard and two stores in the IR",
                            .kind = IC_LOOP_WRITTEN_TRANSITION,
                            .shape_count = 1},
    [TRANSITION] = {.name = "transition",
                    .kind = IC_LOOP_SITE_FORM_STORE,
                    .shape_count = 1,
                    .cases = TRANSITIONS},
    [WRITTEN_PROTOTYPE] = {.name = "guards of object and prototype in the IR",
                           .kind = IC_LOOP_WRITTEN_PROTOTYPE,
                           .shape_count = 1},
    [PROTOTYPE] = {.name = "prototype",
                   .kind = IC_LOOP_SITE_FORM,
                   .shape_count = 1,
                   .cases = PROTOTYPES},
    [WRITTEN_ELEMENT] = {.name = "guard, bounds check and load in the IR",
                         .kind = IC_LOOP_WRITTEN_ELEMENT,
                         .shape_count = 1},
    [ELEMENT] = {.name = "element",
                 .kind = IC_LOOP_SITE_ELEMENT,
                 .shape_count = 1,
                 .cases = ELEMENTS},
    [WRITTEN_CALL] = {.name = "guard and direct call in the IR",
                      .kind = IC_LOOP_WRITTEN_CALL,
                      .shape_count = 1},
    [CALL] = {.name = "call", .kind = IC_LOOP_SITE_C, .shape_count = 1, .cases = CALLS},
    [WRITTEN_TWO] = {.name = "two guards in the IR", .kind = IC_LOOP_WRITTEN_TWO, .shape_count = 2},
    [TWO] = {.name = "two cases", .shape_count = 2, .cases = LOADS},
    [WRITTEN_FOUR] = {.name = "four guards in the IR",
                      .kind = IC_LOOP_WRITTEN_FOUR,
                      .shape_count = IC_SHAPES},
    [FOUR] = {.name = "four cases", .shape_count = IC_SHAPES, .cases = LOADS},
    [FOUR_COUNTED] = {.name = "counting",
                      .shape_count = IC_SHAPES,
                      .cases = LOADS,
                      .options = {.counts_hits = true}},
    [FOUR_C] = {.name = "C convention",
                .kind = IC_LOOP_SITE_C,
                .shape_count = IC_SHAPES,
                .cases = LOADS},
    [LOOKUP_FOUR] = {.name = "open addressing", .shape_count = IC_SHAPES, .is_c = true},
    [LIST_WRITTEN] = {.name = "guard and load in the IR",
                      .kind = IC_LOOP_WRITTEN,
                      .shape_count = 1,
                      .is_along_list = true},
    [LIST_HIT] = {.name = "a monomorphic hit",
                  .shape_count = 1,
                  .cases = LOADS,
                  .is_along_list = true},
    [LIST_LOOKUP] = {.name = "open addressing",
                     .shape_count = 1,
                     .is_c = true,
                     .is_along_list = true},
    [LIST_FOUR] = {.name = "four cases",
                   .shape_count = IC_SHAPES,
                   .cases = LOADS,
                   .is_along_list = true},
    [LIST_LOOKUP_FOUR] = {.name = "open addressing",
                          .shape_count = IC_SHAPES,
                          .is_c = true,
                          .is_along_list = true},
    [MISS] = {.name = "miss", .shape_count = 1, .is_slow = true},
    [LIGHT_MISS] = {.name = "miss with a light handler",
                    .shape_count = 1,
                    .options = {.light_handler = missed_lightly},
                    .is_slow = true},
    [MEGAMORPHIC] = {.name = "megamorphic",
                     .shape_count = IC_SHAPES,
                     .cases = LOADS,
                     .options = {.case_limit = 1, .has_table = true}},
    [MEGAMORPHIC_WIDE] = {.name = "megamorphic by keys of 8 bytes",
                          .shape_count = IC_SHAPES,
                          .cases = LOADS_BY_WIDE_KEYS,
                          .options = {.case_limit = 1, .has_table = true}},
    [MEGAMORPHIC_MISS] = {.name = "megamorphic without a table",
                          .shape_count = IC_SHAPES,
                          .cases = LOADS,
                          .options = {.case_limit = 1},
                          .is_slow = true},
    [MEGAMORPHIC_TARGET] = {.name = "megamorphic",
                            .kind = IC_LOOP_SITE_C,
                            .shape_count = IC_SHAPES,
                            .cases = LOADS,
                            .options = {.case_limit = 1,
                                        .megamorphic_target = (void *)(uintptr_t)ic_look_up},
                            .is_slow = true},
};

static const size_t moved[] = {WRITTEN_CALL, CALL, WRITTEN_TWO, TWO};
enum { MOVED = sizeof moved / sizeof *moved };

/* Returns the first of the subjects that differ from this one only in their position. */
static size_t first_position(size_t subject)
{
    for (size_t i = 0; i < MOVED; i++)
        if (subject >= moved[i] && subject < moved[i] + POSITIONS)
            return moved[i];
    return subject;
}

struct figure {
    const char *name;
    int subject;
    int peer;
    double ratio_limit;
    double limit; /* ns */
};

static const struct figure figures[] = {
    {"ic.hit", HIT, WRITTEN, 1.1, 0},
    {"ic.hit-elsewhere", HIT_NARROW, WRITTEN, 2, 0},
    {"ic.call", CALL, WRITTEN_CALL, 1.15, 0},
    {"ic.two", TWO, WRITTEN_TWO, 1.5, 0},
    {"ic.hit-or-lookup", HIT, LOOKUP, 1.0 / 3, 0},
    {"ic.hit-or-call-of-lookup", HIT, LOOKUP_CALLED, 1.0 / 3, 0},
    {"ic.hit-by-8-byte-key", HIT_WIDE, WRITTEN, 0, 0},
    {"ic.hit-counted", HIT_COUNTED, WRITTEN, 0, 0},
    {"ic.hit-with-c-convention", HIT_C, WRITTEN, 0, 0},
    {"ic.store", STORE, WRITTEN_STORE, 0, 0},
    {"ic.transition", TRANSITION, WRITTEN_TRANSITION, 0, 0},
    {"ic.prototype", PROTOTYPE, WRITTEN_PROTOTYPE, 0, 0},
    {"ic.element", ELEMENT, WRITTEN_ELEMENT, 0, 0},
    {"ic.four", FOUR, HIT_NARROW, 2.5, 0},
    {"ic.four-counted", FOUR_COUNTED, HIT, 0, 0},
    {"ic.four-with-c-convention", FOUR_C, HIT, 0, 0},
    {"ic.four-guards-in-ir", WRITTEN_FOUR, HIT, 0, 0},
    {"ic.four-or-guards-in-ir", FOUR, WRITTEN_FOUR, 0, 0},
    {"ic.four-or-lookup", FOUR, LOOKUP_FOUR, 0, 0},
    {"ic.list", LIST_HIT, LIST_WRITTEN, 0, 0},
    {"ic.list-or-lookup", LIST_HIT, LIST_LOOKUP, 1.0 / 3, 0},
    {"ic.list-four", LIST_FOUR, LIST_HIT, 0, 0},
    {"ic.list-four-or-lookup", LIST_FOUR, LIST_LOOKUP_FOUR, 0, 0},
    {"ic.miss", MISS, LOOKUP_CALLED, 0, 0},
    {"ic.light-miss", LIGHT_MISS, LOOKUP_CALLED, 0, 60},
    {"ic.megamorphic", MEGAMORPHIC, LOOKUP_CALLED, 3, 0},
    {"ic.megamorphic-by-8-byte-key", MEGAMORPHIC_WIDE, LOOKUP_CALLED, 3, 0},
    {"ic.megamorphic-miss", MEGAMORPHIC_MISS, LOOKUP_CALLED, 0, 0},
    {"ic.megamorphic-target", MEGAMORPHIC_TARGET, LOOKUP_CALLED, 0, 0},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* ---- Caches ---- */

struct bench {
    struct bench_options options;
    LLVMContextRef context;
    cairn_runtime *runtime;
    cairn_engine *engine;
};

/* Pointer to the compiled function that the calls reach. */
static const void *method;

static struct cairn_ic_case case_of(enum cases cases, size_t shape)
{
    struct cairn_ic_case made = {
        .guard = {.operand = 0, .offset = 0, .width = 4, .key = ic_shapes[shape]},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)ic_offsets[shape], .width = 8},
    };
    if (cases == LOADS_BY_WIDE_KEYS) {
        const struct ic_object object = {.shape = ic_shapes[shape], .flags = IC_FLAGS};
        made.guard.width = 8;
        memcpy(&made.guard.key, &object, sizeof made.guard.key);
    }
    if (cases == CALLS) {
        made.action = CAIRN_IC_CALL;
        made.target = method;
    }
    if (cases == STORES || cases == TRANSITIONS) {
        made.action = CAIRN_IC_STORE;
        made.field.offset = IC_WRITTEN_OFFSET;
        made.operand = 1;
    }
    /* The shape stays the same, for the next pass. */
    made.changes_key = cases == TRANSITIONS;
    made.new_key = cases == TRANSITIONS ? made.guard.key : 0;
    if (cases == PROTOTYPES)
        made.holder =
            (struct cairn_ic_holder){&ic_prototype, {.width = 4, .key = ic_prototype.shape}};
    if (cases == ELEMENTS) {
        made.field.offset = offsetof(struct ic_object, fields);
        made.elements = (struct cairn_ic_elements){
            .length_width = 4, .length_offset = offsetof(struct ic_object, flags), .index = 1};
    }
    return made;
}

static void add_case(cairn_ic *ic, enum cases cases, size_t shape)
{
    struct cairn_error error;
    const struct cairn_ic_case added = case_of(cases, shape);
    check(cairn_ic_add(ic, &added, CAIRN_RELAXED, &error), &error);
}

static cairn_ic *create_cache(const struct bench *bench, uint64_t id,
                              struct cairn_ic_options options)
{
    struct cairn_error error;
    cairn_ic *ic;
    cairn_site *site = cairn_runtime_find_site(bench->runtime, id, &error);
    if (site == NULL)
        check(error.status, &error);
    options.handler = missed;
    check(cairn_ic_create(site, &options, &ic, &error), &error);
    return ic;
}

static bool has_site(const struct subject *subject)
{
    return !subject->is_c && subject->kind < IC_LOOP_WRITTEN;
}

static void create_caches(const struct bench *bench)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        const struct subject *subject = &subjects[i];
        if (!has_site(subject))
            continue;
        cairn_ic *ic = create_cache(bench, i, subject->options);
        for (uint32_t shape = 0; shape < subject->shape_count; shape++)
            if (subject->cases != NO_CASES)
                add_case(ic, subject->cases, shape);
    }
    /* At the end of the first period, sites leave their bytes; at that of the second one, they have
     * two cases there. */
    for (int i = 0; i < 2; i++)
        cairn_runtime_quiesce(bench->runtime);
}

/* ---- Loading ---- */

typedef int64_t loop(struct ic_object *const *objects, int64_t count);
static loop *loops[SUBJECTS];

/* Number of caches that cases are added to, each in a function of its own. */
enum { ADDED = 64 };

static void load(struct bench *bench)
{
    static char names[SUBJECTS + ADDED][16];
    static struct ic_loop all[SUBJECTS + ADDED];
    struct cairn_error error;
    const struct cairn_engine_options options = {.optimisation_level = 2};
    for (size_t i = 0; i < SUBJECTS; i++)
        subjects[i] = subjects[first_position(i)];
    for (size_t i = 0; i < SUBJECTS + ADDED; i++) {
        snprintf(names[i], sizeof names[i], "loop%zu", i);
        all[i] = (struct ic_loop){.kind = IC_LOOP_SITE, .name = names[i], .id = i};
        if (i < SUBJECTS) {
            all[i].kind = subjects[i].kind;
            all[i].is_along_list = subjects[i].is_along_list;
            all[i].padding = POSITION_PADDING * (unsigned)(i - first_position(i));
        }
    }
    bench->context = LLVMContextCreate();
    LLVMModuleRef module = ic_build_module(bench->context, all, SUBJECTS + ADDED);
    check(cairn_runtime_create(NULL, &bench->runtime, &error), &error);
    check(cairn_engine_create(bench->runtime, module, &options, &bench->engine, &error), &error);
    check(cairn_engine_compile(bench->engine, &error), &error);
    method = cairn_engine_function(bench->engine, ic_method_name, &error);
    if (method == NULL)
        check(error.status, &error);
    for (size_t i = 0; i < SUBJECTS; i++) {
        *(void **)&loops[i] = cairn_engine_function(bench->engine, names[i], &error);
        if (loops[i] == NULL)
            check(error.status, &error);
        if (subjects[i].is_c)
            loops[i] = subjects[i].is_along_list ? ic_look_up_along : ic_look_up_all;
    }
}

static void unload(struct bench *bench)
{
    cairn_engine_destroy(bench->engine);
    LLVMContextDispose(bench->context);
    cairn_runtime_destroy(bench->runtime);
}

/* ---- Hits ---- */

enum { SETS = 3, BLOCKS = 8, ROUNDS_MAX = 50 };
static const double sample_ns = 20000;
static const struct {
    size_t objects;
    size_t rounds; /* rounds in each block */
} sets[SETS] = {{200, ROUNDS_MAX}, {4000, ROUNDS_MAX}, {100000, 8}};

/* Results are nanoseconds for each object, at this fraction of the sorted samples. The fraction is
 * small because other programs evict lines from the processor's caches, and affect slow loops more
 * often than fast ones. */
static const double fraction = 0.1;
static double results[SUBJECTS][SETS];

static bool is_measured(const struct bench *bench, size_t subject, size_t set)
{
    subject = first_position(subject);
    if (subjects[subject].is_slow && set != 0)
        return false;
    for (size_t i = 0; i < FIGURES; i++) {
        bool is_in = figures[i].subject == (int)subject || figures[i].peer == (int)subject;
        if (is_in && bench_wants(&bench->options, figures[i].name))
            return true;
    }
    return false;
}

static int64_t expected_of(enum ic_loop_kind kind, const struct ic_heap *heap)
{
    switch (kind) {
    case IC_LOOP_SITE_STORE:
    case IC_LOOP_SITE_FORM_STORE:
    case IC_LOOP_WRITTEN_STORE:
    case IC_LOOP_WRITTEN_TRANSITION:
        return (int64_t)heap->count;
    case IC_LOOP_SITE_FORM:
    case IC_LOOP_WRITTEN_PROTOTYPE:
        return (int64_t)heap->count * ic_prototype.fields[2];
    case IC_LOOP_SITE_ELEMENT:
    case IC_LOOP_WRITTEN_ELEMENT:
        return heap->element_sum;
    default:
        return heap->sum;
    }
}

static void run(size_t subject, const struct ic_heap *heap)
{
    int64_t expected = expected_of(subjects[subject].kind, heap);
    if (loops[subject](heap->order, (int64_t)heap->count) == expected)
        return;
    fprintf(stderr, "cairn-bench-ic: %s: wrong sum\n", subjects[subject].name);
    exit(1);
}

/* Measures one sample. The first run is not counted, because it brings data into the processor's
 * caches. */
static double sample(size_t subject, const struct ic_heap *heap)
{
    double begun = bench_now();
    run(subject, heap);
    double once = bench_now() - begun;
    int runs = once > sample_ns ? 1 : (int)(sample_ns / once) + 1;
    begun = bench_now_of_thread();
    for (int i = 0; i < runs; i++)
        run(subject, heap);
    return (bench_now_of_thread() - begun) / runs / (double)heap->count;
}

/* Heaps with one shape, with two and with four, and then lists. */
enum { SHAPE_COUNTS = 3, HEAPS = 2 * SHAPE_COUNTS };
static const uint32_t shape_counts[SHAPE_COUNTS] = {1, 2, IC_SHAPES};

static double samples[SUBJECTS][BLOCKS * ROUNDS_MAX];

static size_t heap_of(const struct subject *subject)
{
    size_t heap = 0;
    while (heap < SHAPE_COUNTS - 1 && shape_counts[heap] != subject->shape_count)
        heap++;
    return heap + (subject->is_along_list ? SHAPE_COUNTS : 0);
}

/* Measures all subjects of one heap in turn, so that other load affects all of them equally. The
 * first round is not counted, because the processor's caches may take time to adapt to the heap. */
static void measure_block(const struct bench *bench, size_t set, size_t heap,
                          const struct ic_heap *objects, size_t block)
{
    size_t rounds = sets[set].rounds;
    for (size_t i = 0; i <= rounds; i++)
        for (size_t j = 0; j < SUBJECTS; j++) {
            if (!is_measured(bench, j, set) || heap_of(&subjects[j]) != heap)
                continue;
            double value = sample(j, objects);
            if (i > 0)
                samples[j][block * rounds + i - 1] = value;
        }
}

/* Makes the first subject's result the geometric mean of all positions. */
static void average_positions(size_t first, size_t set)
{
    double logarithms = 0;
    for (size_t i = first; i < first + POSITIONS; i++)
        logarithms += log(results[i][set]);
    results[first][set] = exp(logarithms / (double)POSITIONS);
}

/* Measures the heaps in turn, too, in longer blocks. */
static void measure_set(const struct bench *bench, size_t set)
{
    struct ic_heap heaps[HEAPS];
    for (size_t i = 0; i < HEAPS; i++)
        ic_heap_create(&heaps[i], sets[set].objects, shape_counts[i % SHAPE_COUNTS],
                       i >= SHAPE_COUNTS);
    for (size_t i = 0; i < BLOCKS * HEAPS; i++)
        measure_block(bench, set, i % HEAPS, &heaps[i % HEAPS], i / HEAPS);
    for (size_t j = 0; j < SUBJECTS; j++)
        if (is_measured(bench, j, set))
            results[j][set] = bench_percentile(samples[j], BLOCKS * sets[set].rounds, fraction);
    for (size_t i = 0; i < MOVED; i++)
        average_positions(moved[i], set);
    for (size_t i = 0; i < HEAPS; i++)
        ic_heap_destroy(&heaps[i]);
}

static void print_figure(const struct bench *bench, const struct figure *figure, const char *set,
                         double value, double peer_value)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", figure->name, set);
    const struct bench_figure line = {
        .name = name,
        .value = value,
        .unit = "ns",
        .peer = subjects[figure->peer].name,
        .peer_value = peer_value,
        .ratio_limit = figure->ratio_limit,
        .limit = figure->limit,
    };
    bench_print(&bench->options, &line);
}

static double mean_of(int subject)
{
    double logarithms = 0;
    for (size_t i = 0; i < SETS; i++)
        logarithms += log(results[subject][i]);
    return exp(logarithms / (double)SETS);
}

static void print_figures(const struct bench *bench)
{
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure *figure = &figures[i];
        if (!bench_wants(&bench->options, figure->name))
            continue;
        bool is_slow = subjects[figure->subject].is_slow;
        for (size_t set = 0; set < (is_slow ? 1 : SETS); set++) {
            char objects[24];
            snprintf(objects, sizeof objects, "%zu", sets[set].objects);
            print_figure(bench, figure, objects, results[figure->subject][set],
                         results[figure->peer][set]);
        }
        if (!is_slow)
            print_figure(bench, figure, "mean", mean_of(figure->subject), mean_of(figure->peer));
    }
}

/* ---- Adding ---- */

enum { ROUNDS = 200 };

static void reset_caches(const struct bench *bench, cairn_ic *const *caches)
{
    struct cairn_error error;
    struct cairn_ic_change changes[ADDED];
    for (size_t i = 0; i < ADDED; i++)
        changes[i] = (struct cairn_ic_change){.ic = caches[i], .kind = CAIRN_IC_CHANGE_RESET};
    check(cairn_ics_change(changes, ADDED, CAIRN_RELAXED, &error), &error);
    cairn_runtime_quiesce(bench->runtime);
}

static void add_singly(cairn_ic *const *caches, size_t shape, double *each)
{
    for (size_t i = 0; i < ADDED; i++) {
        double begun = bench_now();
        add_case(caches[i], LOADS, shape);
        each[i] = bench_now() - begun;
    }
}

static double add_together(cairn_ic *const *caches, size_t shape)
{
    double begun = bench_now_of_thread();
    for (size_t i = 0; i < ADDED; i++)
        add_case(caches[i], LOADS, shape);
    return bench_now_of_thread() - begun;
}

static void print_addition(const struct bench *bench, size_t shape, const char *what, double value)
{
    char name[64];
    snprintf(name, sizeof name, "ic.add.case-%zu.%s", shape + 1, what);
    const struct bench_figure figure = {.name = name, .value = value, .unit = "ns", .limit = 1000};
    bench_print(&bench->options, &figure);
}

/* Measures each addition separately for the median, which includes reading the clock, and all
 * together for the mean. Quiescence and resets are not counted, and memory is available. */
static void measure_additions(const struct bench *bench)
{
    static double singly[IC_SHAPES][ROUNDS * ADDED];
    static double sum[IC_SHAPES];
    cairn_ic *caches[ADDED];
    const struct cairn_ic_options options = {.case_limit = IC_SHAPES};
    for (size_t i = 0; i < ADDED; i++)
        caches[i] = create_cache(bench, SUBJECTS + i, options);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t shape = 0; shape < IC_SHAPES; shape++)
            add_singly(caches, shape, &singly[shape][round * ADDED]);
        reset_caches(bench, caches);
        for (size_t shape = 0; shape < IC_SHAPES; shape++)
            sum[shape] += add_together(caches, shape);
        reset_caches(bench, caches);
    }
    for (size_t shape = 0; shape < IC_SHAPES; shape++) {
        size_t count = (size_t)ROUNDS * ADDED;
        print_addition(bench, shape, "median", bench_percentile(singly[shape], count, 0.5));
        print_addition(bench, shape, "mean", sum[shape] / (double)count);
    }
}

/* ---- Bytes ---- */

static void print_bytes(const struct bench *bench, const char *key, cairn_ic *ic)
{
    char name[64];
    struct cairn_ic_description is;
    cairn_ic_describe(ic, NULL, 0, &is);
    snprintf(name, sizeof name, "ic.bytes-a-case.%s.%" PRIu32 "-cases", key, is.case_count);
    const struct bench_figure of_case = {
        .name = name, .value = (double)is.case_bytes / is.case_count, .unit = "bytes", .limit = 64};
    bench_print(&bench->options, &of_case);
    snprintf(name, sizeof name, "ic.bytes-of-code.%s.%" PRIu32 "-cases", key, is.case_count);
    const struct bench_figure of_code = {
        .name = name, .value = (double)is.code_bytes, .unit = "bytes"};
    bench_print(&bench->options, &of_code);
}

static void measure_bytes(const struct bench *bench, const char *key, enum cases cases)
{
    struct cairn_error error;
    cairn_ic *ic = create_cache(bench, SUBJECTS, (struct cairn_ic_options){0});
    for (size_t shape = 0; shape < IC_SHAPES; shape++) {
        add_case(ic, cases, shape);
        print_bytes(bench, key, ic);
    }
    check(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), &error);
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {.only = argc > 1 ? argv[1] : NULL}};
    ic_table_create();
    load(&bench);
    measure_bytes(&bench, "4-byte-keys", LOADS);
    measure_bytes(&bench, "8-byte-keys", LOADS_BY_WIDE_KEYS);
    measure_additions(&bench);
    create_caches(&bench);
    for (size_t set = 0; set < SETS; set++)
        measure_set(&bench, set);
    print_figures(&bench);
    unload(&bench);
    ic_table_destroy();
    return 0;
}
