/*
 * Tests in which a thread is stopped at one instruction of a site with an inline cache, or of the
 * cache's code, the cache goes through its states, and the thread continues: for every instruction,
 * every pair of states, and objects of all shapes, with a single and with a dual mapping.
 *
 * The processor's trap flag raises SIGTRAP after each instruction, and the handler changes the
 * cache. A thread that has not reached the site yet must do what the last state says. One that has
 * reached it must do what one of the states says that the cache had meanwhile.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/space.h"
#include "runtime/runtime.h"

#include "tests/ic_fixture.h"
#include "tests/landing_support.h"
#include "tests/mode_support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100, MANY = 200, LARGE = 120, SHAPES = 4, LIMIT = 3, FIELDS = 6 };

/* ---- States ---- */

enum deed { EMPTY, ONE, TWO, OTHERS, SELECTED, MEGAMORPHIC, DEEDS };

/* The shapes of the cases of each state, in their order. */
static const uint32_t shapes_of[DEEDS][LIMIT + 1] = {
    [ONE] = {1},
    [TWO] = {1, 2},
    [OTHERS] = {2, 1},
    [SELECTED] = {1, 2, 3},
    [MEGAMORPHIC] = {1, 2, 3, 4},
};

/* What the cases of most states do. A site that is called after some states never holds a case
 * again, so calls need a new site for each call of the function. */
static enum forms { CONSTANTS, CALLS, READS, WRITES } forms;

/* Stores to different fields, some of which change the shape or mark a card. What the function
 * returns is then the state of the object and its card. */
enum { CARD_SHIFT = 9, STORED = 900, INDEX = 4 };
static unsigned char card;

static bool changes_shape(enum deed deed) { return deed == ONE || deed == TWO; }

static uint64_t written_state(uint32_t shape, unsigned fields, bool is_marked)
{
    return shape + 100 * fields + (is_marked ? 10000 : 0);
}

static uint64_t result_of(enum deed deed, uint32_t shape)
{
    bool hits = false;
    for (uint32_t i = 0; deed != MEGAMORPHIC && i < LIMIT; i++)
        hits |= shapes_of[deed][i] == shape;
    if (forms == WRITES)
        return hits ? written_state(shape + (changes_shape(deed) ? 10 : 0), 1U << deed, deed == TWO)
                    : written_state(shape, 0, false);
    if (!hits)
        return ANSWER;
    if (forms == READS && deed == TWO)
        return 10 + INDEX;
    return deed == SELECTED ? 10 + shape : 100 * (unsigned)deed + shape;
}

/* Compiled functions that return what cases for shape 1 do. */
static const char functions[] = "define i64 @call101(ptr %r, i64 %i) { ret i64 101 }\n"
                                "define i64 @call201(ptr %r, i64 %i) { ret i64 201 }\n"
                                "define i64 @call301(ptr %r, i64 %i) { ret i64 301 }\n";

static struct object prototypes[DEEDS][SHAPES + 1];

static struct cairn_ic_case make_read(enum deed deed, uint32_t shape)
{
    struct cairn_ic_case made = load_case(shape, deed == TWO ? 0 : 2);
    struct object *prototype = &prototypes[deed][shape];
    if (deed == TWO) {
        made.elements = (struct cairn_ic_elements){
            .length_width = 4, .length_offset = offsetof(struct object, flags), .index = 1};
    } else {
        prototype->shape = 70 + shape;
        prototype->fields[2] = result_of(deed, shape);
        made.holder = (struct cairn_ic_holder){prototype, shape_guard(prototype->shape)};
    }
    return made;
}

static struct cairn_ic_case make_write(const struct object *object, enum deed deed, uint32_t shape)
{
    struct cairn_ic_case made = load_case(shape, (unsigned)deed);
    made.action = CAIRN_IC_STORE;
    made.operand = 1;
    made.changes_key = changes_shape(deed);
    made.new_key = made.changes_key ? shape + 10 : 0;
    if (deed == TWO)
        made.barrier = (struct cairn_ic_barrier){
            .kind = CAIRN_IC_BARRIER_CARD,
            .card_shift = CARD_SHIFT,
            .card = 1,
            .cards = (uintptr_t)&card - ((uintptr_t)object >> CARD_SHIFT),
        };
    return made;
}

static struct object object;

static struct cairn_ic_case make_case(enum deed deed, uint32_t shape)
{
    struct cairn_ic_case made = constant_case(shape, result_of(deed, shape));
    char name[16];
    if (forms == WRITES)
        return make_write(&object, deed, shape);
    if (deed == SELECTED)
        return load_case(shape, shape);
    if (forms == READS && deed != MEGAMORPHIC)
        return make_read(deed, shape);
    if (forms == CALLS && shape == 1 && deed != MEGAMORPHIC) {
        snprintf(name, sizeof name, "call%u", (unsigned)result_of(deed, shape));
        made.action = CAIRN_IC_CALL;
        made.target = ic_find(&program, name);
    }
    return made;
}

static struct cairn_error error_of_change;

static enum cairn_status perform(enum deed deed)
{
    struct cairn_ic_case added;
    struct cairn_ic_change changes[LIMIT + 2] = {ic_resetting(ic)};
    size_t count = 1;
    for (uint32_t i = 0; i <= LIMIT && shapes_of[deed][i] != 0; i++) {
        uint32_t shape = shapes_of[deed][i];
        added = make_case(deed, shape);
        changes[count++] = ic_adding(ic, &added);
    }
    return cairn_ics_change(changes, count, CAIRN_RELAXED, &error_of_change);
}

/* ---- Stepping ---- */

static struct {
    struct cairn_site_description site;
    enum deed to;
    bool through_all; /* whether the cache has all other states before */
    int stop_at;
    /* About one call of the function. */
    int steps;
    bool inside;
    bool has_reached; /* whether the thread has executed the site's first instruction */
    bool is_changed;
    bool had_reached; /* when the cache was changed */
    bool has_failed;
    uint64_t caller; /* return address of the function */
    struct landing landing;
    uint64_t lost; /* an instruction from which a walk has not found the caller; or 0 */
} step;

static bool is_compiled(uint64_t pc)
{
    return cairn_runtime_find_module(runtime, pc) != NULL ||
           code_space_find_stub_owner(runtime->space, pc) != NULL;
}

/* A walk that begins at any instruction of the site or of the cache finds the function's caller. */
static void look_for_caller(uint64_t pc, const void *ucontext)
{
    struct cairn_context context;
    struct cairn_frame frame;
    if (cairn_context_from_signal(&context, ucontext, NULL) != CAIRN_OK ||
        cairn_frame_from_context(runtime, &context, false, &frame, NULL) != CAIRN_OK ||
        frame.module == NULL || cairn_frame_caller(&frame, NULL) != CAIRN_OK ||
        frame.pc != step.caller)
        step.lost = pc;
}

static void change_here(void)
{
    step.is_changed = true;
    step.had_reached = step.has_reached;
    for (enum deed deed = EMPTY; step.through_all && deed < DEEDS; deed++)
        step.has_failed |= perform(deed) != CAIRN_OK;
    step.has_failed |= perform(step.to) != CAIRN_OK;
}

static void stepped(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t pc = (uint64_t)registers[REG_RIP];
    if (!step.inside && pc == (uintptr_t)program.functions[0]) {
        step.inside = true;
        memcpy(&step.caller, (const void *)(uintptr_t)registers[REG_RSP], sizeof step.caller);
    }
    if (!step.inside)
        return;
    landing_step(&step.landing, runtime, pc);
    if (!is_compiled(pc)) { /* the thread has returned, or is in the handler of a miss */
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    bool is_near = pc - step.site.address <= step.site.byte_count;
    if (is_near || code_space_find_stub_owner(runtime->space, pc) != NULL) {
        look_for_caller(pc, context);
        if (step.steps++ == step.stop_at)
            change_here();
    }
    step.has_reached |= pc == step.site.instruction_address;
}

static void make_object(uint32_t shape)
{
    const struct cairn_value index = cairn_value_of_integer(64, forms == WRITES ? STORED : INDEX);
    object = (struct object){.shape = shape, .flags = FIELDS, .fields = {10, 11, 12, 13, 14, 15}};
    card = 0;
    ic_set_operand(&access_0, 1, &index);
}

/* Returns what the function has done. */
static uint64_t effect(uint64_t result)
{
    unsigned fields = 0;
    for (unsigned i = 0; i < FIELDS; i++)
        fields |= object.fields[i] == STORED ? 1U << i : 0;
    return forms == WRITES ? written_state(object.shape, fields, card == 1) : result;
}

static uint64_t run_once(uint32_t shape)
{
    make_object(shape);
    return effect(run_function(0, &object));
}

static uint64_t run_stepping(uint32_t shape)
{
    uint64_t result;
    step.steps = 0;
    step.inside = false;
    step.has_reached = false;
    step.is_changed = false;
    make_object(shape);
    ic_set_pointer(&access_0, 0, &object);
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    program.functions[0](&access_0);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    memcpy(&result, access_0.result, sizeof result);
    return effect(result);
}

/* ---- All pairs of states ---- */

static bool is_expected(enum deed from, uint32_t shape, uint64_t result)
{
    if (result == result_of(step.to, shape))
        return true;
    if (!step.had_reached)
        return false;
    for (enum deed deed = EMPTY; step.through_all && deed < DEEDS; deed++)
        if (result == result_of(deed, shape))
            return true;
    return result == result_of(from, shape);
}

static void load_site(void)
{
    if (program.engine != NULL)
        ic_unload(&program);
    struct ic_function function = forms == CALLS ? get_by_c : get;
    if (forms == READS || forms == WRITES)
        function.byte_count = LARGE;
    if (forms == WRITES)
        function.result.kind = CAIRN_TYPE_VOID;
    ic_load_with(&program, runtime, &function, 1, IC_FIRST_SITE, functions);
    ic = create(program.sites[0], (struct cairn_ic_options){.case_limit = LIMIT});
    cairn_site_describe(program.sites[0], &step.site);
}

static void stop_everywhere(enum deed from, uint32_t shape)
{
    for (step.stop_at = 0; step.stop_at < MANY; step.stop_at++) {
        if (forms == CALLS)
            load_site();
        ck_assert_int_eq(perform(from), CAIRN_OK);
        cairn_runtime_quiesce(runtime); /* the first case is in the site's bytes if it can be */
        ck_assert_uint_eq(run_once(shape), result_of(from, shape));
        uint64_t result = run_stepping(shape);
        ck_assert_msg(!step.has_failed, "%s", error_of_change.message);
        ck_assert_uint_eq(step.lost, 0);
        ck_assert_uint_eq(step.landing.wrong, 0);
        if (!step.is_changed)
            break;
        ck_assert_msg(is_expected(from, shape, result),
                      "from %d to %d, shape %u, stopped at %d: %llu", (int)from, (int)step.to,
                      shape, step.stop_at, (unsigned long long)result);
        ck_assert_uint_eq(run_once(shape), result_of(step.to, shape));
        cairn_runtime_quiesce(runtime);
        ck_assert_uint_eq(run_once(shape), result_of(step.to, shape));
    }
    ck_assert_int_ge(step.stop_at, 3);
    ck_assert_int_lt(step.stop_at, MANY);
}

static void stop_between_all_states(void)
{
    for (enum deed from = EMPTY; from < DEEDS; from++)
        for (step.to = EMPTY; step.to < DEEDS; step.to++)
            for (uint32_t shape = 1; shape <= SHAPES; shape++)
                stop_everywhere(from, shape);
}

static void begin(enum cairn_code_mode mode, bool through_all)
{
    struct cairn_error error = {0};
    const struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations),
                                                  .code_mode = mode};
    cairn_runtime_destroy(runtime);
    ic_assert_done(cairn_runtime_create(&options, &runtime, &error), error);
    load_site();
    step.through_all = through_all;
    if (forms != WRITES)
        answer(ANSWER);
    sigaction(SIGTRAP, &action, NULL);
}

START_TEST(the_cache_changes_once)
{
    begin(site_modes[_i], false);
    stop_between_all_states();
}
END_TEST

START_TEST(the_cache_has_calls)
{
    forms = CALLS;
    begin(site_modes[_i], false);
    for (enum deed from = EMPTY; from <= TWO; from++)
        for (step.to = EMPTY; step.to < DEEDS; step.to++)
            for (uint32_t shape = 1; shape <= 2; shape++)
                stop_everywhere(from, shape);
}
END_TEST

/* Shape 1 is that of the first case or the second one; shape 4 misses. */
static void stop_between_states_of_forms(void)
{
    for (enum deed from = EMPTY; from < DEEDS; from++)
        for (step.to = EMPTY; step.to < DEEDS; step.to++)
            for (uint32_t shape = 1; shape <= SHAPES; shape += SHAPES - 1)
                stop_everywhere(from, shape);
}

START_TEST(the_cache_has_holders_and_elements)
{
    forms = READS;
    begin(site_modes[_i], false);
    stop_between_states_of_forms();
}
END_TEST

START_TEST(the_cache_has_transitions_and_barriers)
{
    forms = WRITES;
    begin(site_modes[_i], false);
    stop_between_states_of_forms();
}
END_TEST

START_TEST(forms_go_through_all_states)
{
    forms = _i == 0 ? READS : WRITES;
    begin(site_modes[site_first_mode()], true);
    for (enum deed from = ONE; from <= TWO; from++)
        for (step.to = EMPTY; step.to < DEEDS; step.to++)
            stop_everywhere(from, 1);
}
END_TEST

START_TEST(the_cache_goes_through_all_states)
{
    begin(site_modes[_i], true);
    stop_between_all_states();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads stopped in inline caches");
    TCase *tests = tcase_create("stopped");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_cache_changes_once, site_first_mode(), SITE_MODES);
    tcase_add_loop_test(tests, the_cache_has_calls, site_first_mode(), SITE_MODES);
    tcase_add_loop_test(tests, the_cache_goes_through_all_states, site_first_mode(), SITE_MODES);
    tcase_add_loop_test(tests, the_cache_has_holders_and_elements, site_first_mode(), SITE_MODES);
    tcase_add_loop_test(tests, the_cache_has_transitions_and_barriers, site_first_mode(),
                        SITE_MODES);
    tcase_add_loop_test(tests, forms_go_through_all_states, 0, 2);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
