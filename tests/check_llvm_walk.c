/*
 * Tests of walks over whole stacks. Compiled functions call each other and the host's functions,
 * which call compiled ones again, in chains of random functions. The last function stops, and the
 * stack is walked from there: by its own thread, by a signal handler, or by another thread.
 *
 * Each compiled function keeps values across its call. Walks read and change these values, wherever
 * the callees have saved their registers. The chain's result shows the values after the walk.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "arch/arch.h"
#include "tests/stackmap_support.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include "tests/libunwind_support.h"

#include <libunwind.h>
#endif

enum { FUNCTIONS = 8, DEPTH_MAX = 40, KEPT_MAX = 7 };

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;

/* ---- A chain: its calls, and the result that is expected of its values ---- */

typedef int64_t compiled_function(int64_t depth, int64_t argument);

static struct {
    uint64_t random;
    /* For each function: its callee, and whether the call goes through the host. */
    unsigned next[FUNCTIONS];
    bool through_host[FUNCTIONS];
    unsigned kept[FUNCTIONS];
    compiled_function *functions[FUNCTIONS];
    unsigned depth;
    /* For each frame, the outermost first: its function, its argument, and the number that a walk
     * added to the values. */
    unsigned called[DEPTH_MAX];
    int64_t argument[DEPTH_MAX];
    int64_t added[DEPTH_MAX][KEPT_MAX];
} chain;

static int64_t kept_value(unsigned frame, unsigned number)
{
    return chain.argument[frame] * (2 * (int64_t)number + 3);
}

/* ---- The host's functions ---- */

static void (*stopped)(void);

/* Has all callee-saved registers in its call frame, so that a walk which changes a caller's value
 * in a register changes what this function restores. */
static int64_t stop(int64_t argument)
{
    __builtin_unwind_init();
    stopped();
    return argument + 7;
}

/* The frames at which compiled code was left, the innermost first, for hosts without unwind tables.
 */
struct entry {
    struct cairn_frame frame;
    struct cairn_context context;
    struct entry *outer;
};

static _Thread_local struct entry *entries;
static bool keeps_entries;

static void note_entry(struct entry *entry)
{
    ck_assert_int_eq(cairn_context_save(&entry->context), 0);
    ck_assert_ok(cairn_frame_from_context(runtime, &entry->context, true, &entry->frame, NULL));
    while (entry->frame.module == NULL)
        ck_assert_ok(cairn_frame_caller(&entry->frame, NULL));
    entry->outer = entries;
    entries = entry;
}

/* Saves all callee-saved registers, and so those of the compiled code. */
static int64_t call_on(int64_t depth, int64_t argument, int64_t next)
{
    __builtin_unwind_init();
    struct entry entry;
    struct entry *outer = entries;
    if (keeps_entries)
        note_entry(&entry);
    int64_t result = chain.functions[next](depth, argument);
    entries = outer;
    return result;
}

/* ---- Code ---- */

struct text {
    char bytes[64 << 10];
    size_t size;
};

#define put(text, ...)                                                                             \
    ((text)->size += (size_t)snprintf((text)->bytes + (text)->size,                                \
                                      sizeof(text)->bytes - (text)->size, __VA_ARGS__))

static void put_call(struct text *text, unsigned number)
{
    unsigned next = chain.next[number];
    if (!chain.through_host[number]) {
        put(text, "  %%r = call i64 @f%u(i64 %%m, i64 %%b)\n", next);
        return;
    }
    put(text,
        "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 %u,\n"
        "      i32 48, ptr inttoptr (i64 %llu to ptr), i32 3, i64 %%m, i64 %%b, i64 %u",
        number, (unsigned long long)(uintptr_t)call_on, next);
    for (unsigned i = 0; i < chain.kept[number]; i++)
        put(text, ", i64 %%v%u", i);
    put(text, ")\n");
}

static void put_function(struct text *text, unsigned number)
{
    put(text, "define i64 @f%u(i64 %%n, i64 %%a) noinline uwtable {\nentry:\n", number);
    for (unsigned i = 0; i < chain.kept[number]; i++)
        put(text, "  %%v%u = mul i64 %%a, %u\n", i, 2 * i + 3);
    put(text,
        "  %%b = add i64 %%a, %u\n"
        "  %%m = sub i64 %%n, 1\n"
        "  %%last = icmp eq i64 %%m, 0\n"
        "  br i1 %%last, label %%end, label %%more\n"
        "end:\n"
        "  %%q = call i64 @stop(i64 %%b)\n"
        "  br label %%out\n"
        "more:\n",
        number + 1);
    put_call(text, number);
    put(text, "  br label %%out\n"
              "out:\n"
              "  %%s0 = phi i64 [ %%q, %%end ], [ %%r, %%more ]\n");
    for (unsigned i = 0; i < chain.kept[number]; i++)
        put(text, "  %%p%u = mul i64 %%s%u, 5\n  %%s%u = add i64 %%p%u, %%v%u\n", i, i, i + 1, i,
            i);
    put(text, "  ret i64 %%s%u\n}\n", chain.kept[number]);
}

static void load(void)
{
    static struct text text;
    struct cairn_error error = {0};
    text.size = 0;
    put(&text, SUPPORT_INTRINSICS "declare i64 @stop(i64)\n");
    for (unsigned i = 0; i < FUNCTIONS; i++)
        put_function(&text, i);
    ck_assert_uint_lt(text.size, sizeof text.bytes);
    LLVMModuleRef module = support_parse_valid(context, text.bytes);
    const struct support_symbol symbols[] = {{"stop", (const void *)(uintptr_t)stop}, {NULL, NULL}};
    struct cairn_engine_options options = {.optimisation_level = 2,
                                           .load = support_symbols(symbols)};
    options.load.registers_unwind_tables = true; /* for libunwind */
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        void *address = support_compiled_function(engine, name, &error);
        ck_assert_msg(address != NULL, "%s", error.message);
        chain.functions[i] = (compiled_function *)(uintptr_t)address;
    }
}

static void unload(void)
{
#ifdef WITH_LIBUNWIND
    libunwind_forget();
#endif
    cairn_engine_destroy(engine);
    engine = NULL;
}

static void choose_chain(void)
{
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        chain.next[i] = sample_random(&chain.random, FUNCTIONS);
        chain.through_host[i] = sample_random(&chain.random, 3) != 0;
        chain.kept[i] = sample_random(&chain.random, KEPT_MAX + 1);
    }
    load();
}

/* Runs the chain and returns its result. */
static int64_t run_chain(void)
{
    unsigned number = sample_random(&chain.random, FUNCTIONS);
    int64_t first = (int64_t)sample_random(&chain.random, 1000);
    int64_t argument = first;
    chain.depth = 1 + sample_random(&chain.random, DEPTH_MAX);
    memset(chain.added, 0, sizeof chain.added);
    for (unsigned i = 0; i < chain.depth; i++) {
        chain.called[i] = number;
        chain.argument[i] = argument;
        argument += (int64_t)number + 1;
        number = chain.next[number];
    }
    return chain.functions[chain.called[0]]((int64_t)chain.depth, first);
}

/* Computes the expected result. */
static int64_t model(void)
{
    unsigned last = chain.depth - 1;
    int64_t result = chain.argument[last] + (int64_t)chain.called[last] + 1 + 7;
    for (unsigned i = chain.depth; i-- > 0;) {
        unsigned number = chain.called[i];
        for (unsigned j = 0; j < chain.kept[number]; j++)
            result = (int64_t)((uint64_t)result * 5 + (uint64_t)kept_value(i, j) +
                               (uint64_t)chain.added[i][j]);
    }
    return result;
}

static void set_up(void)
{
    context = LLVMContextCreate();
    engine = NULL;
    keeps_entries = false;
    chain.random = sample_seed();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
}

static void tear_down(void)
{
    unload();
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* ---- Walks ---- */

static void next(struct cairn_walk *walk)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_walk_next(walk, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* Reads those of the frame's values that are available, and changes every other one. */
static unsigned values_seen;
static unsigned values_in_registers;

static void use_values(struct cairn_frame *frame, unsigned number)
{
    struct cairn_record record;
    if (!cairn_frame_record(frame, &record))
        return;
    ck_assert_uint_eq(cairn_record_live_value_count(record), chain.kept[chain.called[number]]);
    for (uint32_t i = 0; i < chain.kept[chain.called[number]]; i++) {
        struct cairn_value value;
        if (cairn_frame_value(frame, record, i, &value, NULL) != CAIRN_OK)
            continue;
        ck_assert_int_eq(cairn_value_signed(&value),
                         kept_value(number, i) + chain.added[number][i]);
        values_seen++;
        values_in_registers += cairn_record_location(record, i).kind == CAIRN_LOCATION_REGISTER;
        if ((number + i) % 2 == 0)
            continue;
        value = cairn_value_of_integer(64, cairn_value_signed(&value) + 1000 + i);
        ck_assert_ok(cairn_frame_set_value(frame, record, i, &value, NULL));
        chain.added[number][i] += 1000 + i;
    }
}

/* The walk must find the chain's functions, beginning with the innermost one, and nothing else. */
static void assert_chain(struct cairn_walk *walk)
{
    for (unsigned i = chain.depth; i-- > 0;) {
        struct cairn_function function;
        next(walk);
        ck_assert(!walk->has_ended);
        ck_assert(cairn_frame_function(&walk->frame, &function));
        ck_assert_uint_eq(function.address, (uintptr_t)chain.functions[chain.called[i]]);
        use_values(&walk->frame, i);
    }
    next(walk);
    ck_assert(walk->has_ended);
    ck_assert_ptr_null(walk->frame.module);
}

static void walk_by_tables(const struct cairn_frame *first)
{
    struct cairn_walk walk;
    cairn_walk_begin(&walk, first);
    walk.foreign = cairn_walk_native;
    assert_chain(&walk);
    ck_assert_uint_eq(walk.frame.pc, 0);
}

static struct cairn_frame frame_of(struct cairn_context *saved)
{
    struct cairn_frame frame;
    ck_assert_ok(cairn_frame_from_context(runtime, saved, true, &frame, NULL));
    return frame;
}

static __attribute__((noinline)) void walk_own_stack(void)
{
    struct cairn_context saved;
    ck_assert_int_eq(cairn_context_save(&saved), 0);
    struct cairn_frame frame = frame_of(&saved);
    walk_by_tables(&frame);
}

enum { CHAINS = 12, RUNS = 6 };

static void run_chains(void (*at_the_end)(void))
{
    stopped = at_the_end;
    values_seen = 0;
    values_in_registers = 0;
    for (unsigned i = 0; i < CHAINS; i++) {
        choose_chain();
        for (unsigned j = 0; j < RUNS; j++) {
            int64_t result = run_chain();
            ck_assert_int_eq(result, model());
        }
        unload();
    }
}

START_TEST(a_stack_is_walked_through_compiled_and_native_frames_to_its_end)
{
    run_chains(walk_own_stack);
    ck_assert_uint_gt(values_seen, 0);
    ck_assert_uint_gt(values_in_registers, 0);
}
END_TEST

/* ---- Signals ---- */

static void walk_interrupted(int number, siginfo_t *information, void *ucontext)
{
    static struct cairn_context interrupted;
    struct cairn_frame frame;
    (void)number;
    (void)information;
    ck_assert_ok(cairn_context_from_signal(&interrupted, ucontext, NULL));
    ck_assert_ok(cairn_frame_from_context(runtime, &interrupted, false, &frame, NULL));
    walk_by_tables(&frame);
}

static void walk_own_stack_in_handler(int number)
{
    (void)number;
    walk_own_stack();
}

static void on_signal(void (*plain)(int), void (*with_context)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_handler = plain};
    if (with_context != NULL) {
        action.sa_sigaction = with_context;
        action.sa_flags = SA_SIGINFO;
    }
    action.sa_flags |= SA_ONSTACK;
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

static void raise_signal(void) { ck_assert_int_eq(raise(SIGUSR1), 0); }

START_TEST(a_stack_is_walked_from_interrupted_code)
{
    on_signal(NULL, walk_interrupted);
    run_chains(raise_signal);
}
END_TEST

static bool has_trampolines(void)
{
    bool has = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    if (!has)
        printf("skipped: signals' trampolines have rules on x86-64 alone\n");
    return has;
}

START_TEST(a_stack_is_walked_through_a_signal_handler)
{
    if (!has_trampolines())
        return;
    on_signal(walk_own_stack_in_handler, NULL);
    run_chains(raise_signal);
}
END_TEST

START_TEST(a_walk_continues_from_a_signals_stack_to_the_interrupted_one)
{
    enum { SIZE = 1 << 18 };
    if (!has_trampolines())
        return;
    stack_t stack = {.ss_sp = malloc(SIZE), .ss_size = SIZE};
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
    on_signal(walk_own_stack_in_handler, NULL);
    run_chains(raise_signal);
    ck_assert_int_eq(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL), 0);
    free(stack.ss_sp);
}
END_TEST

/* ---- Other threads ---- */

static struct {
    pthread_t thread;
    sem_t is_ready;
    sem_t is_stopped;
    sem_t may_go_on;
    struct cairn_context context;
    int64_t result;
} other;

static void wait_in_handler(int number, siginfo_t *information, void *ucontext)
{
    (void)number;
    (void)information;
    ck_assert_ok(cairn_context_from_signal(&other.context, ucontext, NULL));
    sem_post(&other.is_stopped);
    while (sem_wait(&other.may_go_on) != 0)
        ;
}

static volatile sig_atomic_t is_walked;

/* Waits until the signal was delivered and answered. */
static void spin(void)
{
    is_walked = 0;
    sem_post(&other.is_ready);
    while (!is_walked)
        ;
}

static void *run_in_thread(void *unused)
{
    other.result = run_chain();
    return unused;
}

static void walk_other_thread(void)
{
    struct cairn_frame frame;
    ck_assert_int_eq(pthread_create(&other.thread, NULL, run_in_thread, NULL), 0);
    sem_wait(&other.is_ready);
    ck_assert_int_eq(pthread_kill(other.thread, SIGUSR1), 0);
    sem_wait(&other.is_stopped);
    ck_assert_ok(cairn_frame_from_context(runtime, &other.context, false, &frame, NULL));
    walk_by_tables(&frame);
    is_walked = 1;
    sem_post(&other.may_go_on);
    ck_assert_int_eq(pthread_join(other.thread, NULL), 0);
    ck_assert_int_eq(other.result, model());
}

START_TEST(the_stack_of_a_stopped_thread_is_walked_by_another)
{
    sem_init(&other.is_ready, 0, 0);
    sem_init(&other.is_stopped, 0, 0);
    sem_init(&other.may_go_on, 0, 0);
    on_signal(NULL, wait_in_handler);
    stopped = spin;
    for (unsigned i = 0; i < 4; i++) {
        choose_chain();
        for (unsigned j = 0; j < RUNS; j++)
            walk_other_thread();
        unload();
    }
}
END_TEST

/* ---- The host's hook ---- */

static enum cairn_walk_answer take_next_entry(struct cairn_walk *walk, void *user)
{
    struct entry **entry = user;
    while (*entry != NULL && (*entry)->frame.sp <= walk->frame.sp)
        *entry = (*entry)->outer;
    if (*entry == NULL)
        return CAIRN_WALK_END;
    walk->frame = (*entry)->frame;
    return CAIRN_WALK_MOVED;
}

static __attribute__((noinline)) void walk_by_entries(void)
{
    struct entry innermost;
    note_entry(&innermost);
    struct entry *entry = &innermost;
    struct cairn_walk walk;
    cairn_walk_begin(&walk, &innermost.frame);
    walk.foreign = take_next_entry;
    walk.user = &entry;
    assert_chain(&walk);
    ck_assert_uint_ne(walk.frame.pc, 0);
    entries = innermost.outer;
}

START_TEST(a_hook_skips_to_the_frames_that_the_host_has_noted)
{
    keeps_entries = true;
    run_chains(walk_by_entries);
}
END_TEST

static enum cairn_walk_answer answer(struct cairn_walk *walk, void *user)
{
    (void)walk;
    return *(enum cairn_walk_answer *)user;
}

/* Finds the innermost compiled frame and its compiled callers, and returns the walk at the first
 * foreign frame outside of them. */
static struct cairn_walk walk_with(enum cairn_walk_answer *answered)
{
    static struct cairn_context saved;
    struct cairn_walk walk;
    ck_assert_int_eq(cairn_context_save(&saved), 0);
    struct cairn_frame frame = frame_of(&saved);
    while (frame.module == NULL)
        ck_assert_ok(cairn_frame_caller(&frame, NULL));
    cairn_walk_begin(&walk, &frame);
    walk.foreign = answered == NULL ? NULL : answer;
    walk.user = answered;
    return walk;
}

static enum cairn_status walk_on(struct cairn_walk *walk, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    while (status == CAIRN_OK && !walk->has_ended)
        status = cairn_walk_next(walk, error);
    return status;
}

static void end_walks(void)
{
    enum cairn_walk_answer end = CAIRN_WALK_END;
    enum cairn_walk_answer *answers[] = {&end, NULL};
    for (size_t i = 0; i < 2; i++) {
        struct cairn_walk walk = walk_with(answers[i]);
        ck_assert_ok(walk_on(&walk, NULL));
        ck_assert(walk.has_ended);
        ck_assert_ptr_null(walk.frame.module);
        ck_assert_uint_ne(walk.frame.pc, 0);
        ck_assert_ok(cairn_walk_next(&walk, NULL));
        ck_assert(walk.has_ended);
    }
}

START_TEST(a_walk_ends_at_a_foreign_frame_where_the_hook_says_so_or_there_is_none)
{
    run_chains(end_walks);
}
END_TEST

static void misuse_walks(void)
{
    struct cairn_error error;
    enum cairn_walk_answer moved = CAIRN_WALK_MOVED;
    enum cairn_walk_answer switched = CAIRN_WALK_SWITCHED;
    enum cairn_walk_answer unknown = (enum cairn_walk_answer)77;
    struct cairn_walk walk = walk_with(&moved);
    ck_assert_int_eq(walk_on(&walk, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "not further out"));
    walk = walk_with(&switched);
    ck_assert_int_eq(walk_on(&walk, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "from stack to stack 64 times"));
    walk = walk_with(&unknown);
    ck_assert_int_eq(walk_on(&walk, &error), CAIRN_ERROR_ARGUMENT);
}

START_TEST(answers_that_cannot_be_right_are_refused) { run_chains(misuse_walks); }
END_TEST

/* ---- Bad stacks ---- */

static void walk_beyond_the_end(void)
{
    enum cairn_walk_answer end = CAIRN_WALK_END;
    struct cairn_error error;
    struct cairn_walk walk = walk_with(&end);
    walk.stack_end = walk.frame.sp + 8;
    ck_assert_int_eq(walk_on(&walk, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "would end at"));
}

START_TEST(a_frame_beyond_the_stacks_end_is_refused) { run_chains(walk_beyond_the_end); }
END_TEST

/* A PC on the stack that is not in any code, such as one of a module that was freed. */
static void walk_to_nowhere(void)
{
    struct cairn_error error;
    struct cairn_walk walk = walk_with(NULL);
    struct cairn_frame frame = walk.frame;
    uint64_t pc = frame.pc;
    frame.module = NULL;
    frame.pc = frame.sp;
    ck_assert_int_eq(cairn_frame_caller(&frame, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "neither in a module nor in an object"));
    ck_assert_uint_eq(frame.pc, frame.sp);
    frame.pc = pc;
    ck_assert_int_eq(cairn_frame_caller(&frame, NULL), CAIRN_ERROR_NOT_FOUND);
}

START_TEST(a_frame_of_unknown_code_is_refused) { run_chains(walk_to_nowhere); }
END_TEST

/* ---- libunwind ---- */

#ifdef WITH_LIBUNWIND

static bool is_told(uint16_t dwarf) { return dwarf < (arch_host()->has_link_register ? 32 : 16); }

static unsigned registers_compared;

static void assert_same(const struct cairn_frame *frame, unw_cursor_t *cursor)
{
    const struct cairn_arch *arch = arch_host();
    unw_word_t expected;
    ck_assert_int_eq(unw_get_reg(cursor, UNW_REG_IP, &expected), 0);
    ck_assert_uint_eq(frame->pc, expected);
    ck_assert_int_eq(unw_get_reg(cursor, UNW_REG_SP, &expected), 0);
    ck_assert_uint_eq(frame->sp, expected);
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS + 1; i < arch->unwind_slot_count; i++) {
        uint64_t value;
        uint16_t dwarf = arch->unwind_slots[i].dwarf;
        if (!is_told(dwarf) || unw_get_reg(cursor, dwarf, &expected) != 0)
            continue;
        ck_assert_ok(cairn_frame_read(frame, dwarf, &value, sizeof value, NULL));
        ck_assert_uint_eq(value, expected);
        registers_compared++;
    }
}

static void step(struct cairn_frame *frame)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_caller(frame, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* The first frame is skipped, because the two walks began at different PCs in it. */
static void compare_frames(struct cairn_frame frame, unw_cursor_t *cursor)
{
    unsigned compiled = 0;
    step(&frame);
    while (unw_step(cursor) > 0) {
        assert_same(&frame, cursor);
        compiled += frame.module != NULL;
        step(&frame);
    }
    ck_assert_uint_eq(compiled, chain.depth);
    ck_assert_uint_eq(frame.pc, 0);
}

static __attribute__((noinline)) void walk_beside_libunwind(void)
{
    struct cairn_context saved;
    unw_context_t registers;
    unw_cursor_t cursor;
    libunwind_register();
    ck_assert_int_eq(cairn_context_save(&saved), 0);
    unw_getcontext(&registers);
    ck_assert_int_eq(unw_init_local(&cursor, &registers), 0);
    compare_frames(frame_of(&saved), &cursor);
}

START_TEST(frames_and_their_registers_are_those_of_libunwind)
{
    registers_compared = 0;
    run_chains(walk_beside_libunwind);
    ck_assert_uint_gt(registers_compared, 1000);
}
END_TEST

#endif

int main(void)
{
    Suite *suite = suite_create("walks");
    TCase *walks = tcase_create("walks");
    tcase_add_checked_fixture(walks, set_up, tear_down);
    tcase_set_timeout(walks, 60);
    tcase_add_test(walks, a_stack_is_walked_through_compiled_and_native_frames_to_its_end);
    tcase_add_test(walks, a_stack_is_walked_from_interrupted_code);
    tcase_add_test(walks, a_stack_is_walked_through_a_signal_handler);
    tcase_add_test(walks, a_walk_continues_from_a_signals_stack_to_the_interrupted_one);
    tcase_add_test(walks, the_stack_of_a_stopped_thread_is_walked_by_another);
    tcase_add_test(walks, a_hook_skips_to_the_frames_that_the_host_has_noted);
    tcase_add_test(walks, a_walk_ends_at_a_foreign_frame_where_the_hook_says_so_or_there_is_none);
    tcase_add_test(walks, answers_that_cannot_be_right_are_refused);
    tcase_add_test(walks, a_frame_beyond_the_stacks_end_is_refused);
    tcase_add_test(walks, a_frame_of_unknown_code_is_refused);
#ifdef WITH_LIBUNWIND
    tcase_add_test(walks, frames_and_their_registers_are_those_of_libunwind);
#else
    printf("skipped: libunwind was not found\n");
#endif
    suite_add_tcase(suite, walks);
    return support_main(suite);
}
