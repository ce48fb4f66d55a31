/*
 * Tests of invalidating compiled functions while threads execute them, and of reverting that.
 *
 * The compiled function calls itself, and then a function of C in which threads wait. At each site
 * the exit's handler interprets the remainder of the frame, so the result is always the same
 * number. Counters record which of the two has computed it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "llvm_support.h"
#include "mode_support.h"
#include "record/table.h"
#include "runtime/module.h"
#include "runtime_support.h"

#include <llvm-c/ExecutionEngine.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- What the function computes ---- */

enum { STEP = 7, NESTED_STEP = 1000, NESTED_DEPTH = 2 };

static int64_t finish(int64_t a, int64_t depth, int64_t of_call)
{
    return (of_call ^ a) * 3 + depth;
}

static int64_t of_waiting(int64_t a) { return a * 2 + 1; }

static int64_t reference(int64_t a, int64_t depth)
{
    int64_t of_call = depth > 0 ? reference(a + STEP, depth - 1) : of_waiting(a);
    return finish(a, depth, of_call);
}

/* ---- Threads ---- */

/* The work of one thread, and its results. */
struct worker {
    pthread_t thread;
    int64_t a;
    int64_t depth;
    /* Number of waits in which the thread calls the function once more instead of waiting. */
    int nested_calls;
    int64_t result;
    /* Whether all its frames leave, one after the other. */
    bool in_order;
    int64_t next_depth;
    unsigned left_at_entry;
    unsigned left_after_calls;
    unsigned wrong;
};

static _Thread_local struct worker *self;

typedef int64_t compiled(int64_t a, int64_t depth);
static compiled *f;

/* Threads wait while this is `closed`. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    unsigned waiting;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.closed)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    pthread_mutex_unlock(&gate.lock);
}

static void set_gate(bool closed)
{
    pthread_mutex_lock(&gate.lock);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void wait_for_threads_at_gate(unsigned count)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting < count)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

/* The function that compiled code calls. */
static int64_t waits(int64_t a)
{
    if (self->nested_calls > 0) {
        self->nested_calls--;
        int64_t result = f(a + NESTED_STEP, NESTED_DEPTH);
        self->wrong += result != reference(a + NESTED_STEP, NESTED_DEPTH);
    } else if (gate.closed) {
        pass_gate();
    }
    return of_waiting(a);
}

/* ---- The interpreter ---- */

enum { ENTRY = 1, AFTER_RECURSION = 2, AFTER_WAITING = 3 };

static int64_t interpret(int64_t a, int64_t depth)
{
    int64_t of_call = depth > 0 ? interpret(a + STEP, depth - 1) : waits(a);
    return finish(a, depth, of_call);
}

static int64_t value_at(const struct cairn_exit_call *call, uint32_t index)
{
    struct cairn_value value = {0};
    self->wrong += cairn_frame_value(&call->frame, call->record, index, &value, NULL) != CAIRN_OK;
    return cairn_value_signed(&value);
}

/* The frames of a thread leave in order, beginning with the innermost. */
static void check_order(uint64_t id, int64_t depth)
{
    if (id == AFTER_WAITING)
        self->next_depth = 0;
    self->wrong += self->in_order && depth != self->next_depth;
    self->next_depth = depth + 1;
}

static int64_t finish_after_call(const struct cairn_exit_call *call, uint64_t id)
{
    int64_t a = value_at(call, 0);
    int64_t depth = value_at(call, 1);
    int64_t of_call = value_at(call, 2);
    self->left_after_calls++;
    self->wrong +=
        id == AFTER_WAITING ? of_call != of_waiting(a) : of_call != reference(a + STEP, depth - 1);
    check_order(id, depth);
    return finish(a, depth, of_call);
}

/* An additional action of the handler. */
static void (*also)(const struct cairn_exit_call *call);

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)user;
    if (also != NULL)
        also(call);
    uint64_t id = call->record.table == NULL ? 0 : cairn_record_id(call->record);
    int64_t result = 0;
    if (id == ENTRY) {
        self->left_at_entry++;
        result = interpret(value_at(call, 0), value_at(call, 1));
    } else if (id == AFTER_RECURSION || id == AFTER_WAITING) {
        result = finish_after_call(call, id);
    } else {
        self->wrong++;
    }
    struct cairn_value value = cairn_value_of_integer(64, result);
    self->wrong += cairn_exit_return(call, &value, 1, NULL) != CAIRN_OK;
}

/* ---- The function ---- */

/* The IR of a site. */
struct form {
    const char *name;
    /* The format's arguments are the ID, the live values, and the ID again. */
    const char *site;
    /* On x86-64, the instructions in a shadow can be changed live only if they lie in one word.
     * Code around the site aligns them so. */
    const char *before_on_x86_64;
    const char *after_on_x86_64;
};

static const struct form forms[] = {
    {
        "patch point",
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 16,\n"
        "      ptr null, i32 0, %s)\n",
        "",
        "",
    },
    {
        "shadow of no-ops",
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 16, %s)\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9%d, i32 0)\n",
        "",
        "",
    },
    {
        "shadow of an instruction",
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 8, %s)\n",
        "  call void asm sideeffect \".p2align 3\", \"\"()\n",
        "  call void asm sideeffect \"movl $$5, %eax\", \"~{eax}\"()\n",
    },
};
enum { FORMS = sizeof forms / sizeof *forms };

enum { TEXT_BYTES = 8192 };

static void add_site(char *text, const struct form *form, int id, const char *values)
{
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    char *end = text + strlen(text);
    end = stpcpy(end, is_x86_64 ? form->before_on_x86_64 : "");
    end += snprintf(end, TEXT_BYTES / 8, form->site, id, values, id);
    stpcpy(end, is_x86_64 ? form->after_on_x86_64 : "");
}

static void write_function(char *text, const struct form *form)
{
    strcpy(text, SUPPORT_INTRINSICS "declare i64 @waits(i64)\n"
                                    "define i64 @f(i64 %a, i64 %depth) noinline uwtable {\n");
    add_site(text, form, ENTRY, "i64 %a, i64 %depth");
    strcat(text, "  %recurses = icmp sgt i64 %depth, 0\n"
                 "  br i1 %recurses, label %recursion, label %waiting\n"
                 "recursion:\n"
                 "  %next = add i64 %a, 7\n"
                 "  %left = sub i64 %depth, 1\n"
                 "  %of_f = call i64 @f(i64 %next, i64 %left)\n");
    add_site(text, form, AFTER_RECURSION, "i64 %a, i64 %depth, i64 %of_f");
    strcat(text, "  br label %end\n"
                 "waiting:\n"
                 "  %of_waits = call i64 @waits(i64 %a)\n");
    add_site(text, form, AFTER_WAITING, "i64 %a, i64 %depth, i64 %of_waits");
    strcat(text, "  br label %end\n"
                 "end:\n"
                 "  %of_call = phi i64 [ %of_f, %recursion ], [ %of_waits, %waiting ]\n"
                 "  %mixed = xor i64 %of_call, %a\n"
                 "  %tripled = mul i64 %mixed, 3\n"
                 "  %result = add i64 %tripled, %depth\n"
                 "  ret i64 %result\n"
                 "}\n");
}

/* Other contents of a module: sites of the host's own, and functions with other records or none. */
static const char others[] =
    "define i64 @traced(i64 %a) noinline uwtable {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 11, i32 16,\n"
    "      ptr null, i32 0, i64 %a)\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 50, i32 16,\n"
    "      ptr null, i32 0, i64 %a)\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 51, i32 44,\n"
    "      ptr inttoptr (i64 4096 to ptr), i32 1, i64 %a)\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 12, i32 16,\n"
    "      ptr null, i32 0, i64 %r)\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @narrow(i64 %a) noinline uwtable {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 21, i32 16,\n"
    "      ptr null, i32 0, i64 %a)\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 22, i32 0,\n"
    "      ptr null, i32 0, i64 %a)\n"
    "  ret i64 %a\n"
    "}\n"
    "define i64 @plain(i64 %a) noinline uwtable {\n"
    "  %r = add i64 %a, 1\n"
    "  ret i64 %r\n"
    "}\n";

/* ---- Loading it ---- */

static LLVMContextRef context;
static struct support_allocator allocations;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_exit *the_exit;
static cairn_site *sites_of_f[AFTER_WAITING + 1]; /* indexed by ID */
static struct worker main_worker;

static void *find(const char *name)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return address;
}

static void load(enum cairn_code_mode mode, const char *text)
{
    struct cairn_error error = {0};
    const struct cairn_runtime_options options = {.code_mode = mode,
                                                  .allocator = support_counting(&allocations)};
    const struct support_symbol symbols[] = {{"waits", (const void *)(uintptr_t)waits},
                                             {NULL, NULL}};
    const struct cairn_engine_options engine_options = {.optimisation_level = 2,
                                                        .load = support_symbols(symbols)};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    context = LLVMContextCreate();
    LLVMModuleRef module = support_parse_valid(context, text);
    enum cairn_status status =
        cairn_engine_create(runtime, module, &engine_options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    f = (compiled *)(uintptr_t)find("f");
    for (uint64_t id = ENTRY; id <= AFTER_WAITING; id++)
        sites_of_f[id] = cairn_runtime_find_site(runtime, id, NULL);
    main_worker = (struct worker){0};
    self = &main_worker;
}

static void unload(void)
{
    ck_assert_uint_eq(main_worker.wrong, 0);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}

static void load_form(enum cairn_code_mode mode, const struct form *form)
{
    char text[TEXT_BYTES];
    write_function(text, form);
    load(mode, text);
}

/* Loads a module with patch points and the other functions. */
static void load_all_in(enum cairn_code_mode mode)
{
    char text[TEXT_BYTES];
    write_function(text, &forms[0]);
    strcat(text, others);
    load(mode, text);
}

static void load_all(void) { load_all_in(CAIRN_CODE_MODE_AUTOMATIC); }

static cairn_site *site(uint64_t id)
{
    struct cairn_error error = {0};
    cairn_site *found = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(found != NULL, "%s", error.message);
    return found;
}

static struct cairn_site_description described(uint64_t id)
{
    struct cairn_site_description description;
    cairn_site_describe(site(id), &description);
    return description;
}

static enum cairn_site_state state(uint64_t id) { return described(id).state; }

/* Returns the code of a function with records; a function pointer may be the address of a
 * descriptor. */
static uint64_t code_of(uint64_t id) { return record_function(described(id).record).address; }

/* ---- Invalidating it ---- */

static struct cairn_invalidation_options options_for(uint64_t function)
{
    return (struct cairn_invalidation_options){
        .function = function,
        .target = cairn_exit_target(the_exit),
    };
}

static cairn_invalidation *invalidate_with(const struct cairn_invalidation_options *options,
                                           enum cairn_strength strength)
{
    struct cairn_error error = {0};
    cairn_invalidation *invalidation = NULL;
    enum cairn_status status = cairn_invalidate(runtime, options, strength, &invalidation, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return invalidation;
}

static cairn_invalidation *invalidate(const struct cairn_invalidation_options *options)
{
    return invalidate_with(options, CAIRN_SYNC);
}

static cairn_invalidation *invalidate_f(void)
{
    struct cairn_invalidation_options options = options_for(code_of(ENTRY));
    return invalidate(&options);
}

static void undo(cairn_invalidation *invalidation)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    cairn_invalidation_destroy(invalidation);
}

/* ---- Frames that wait for a call ---- */

enum { THREADS = 4, DEPTH = 5 };

static void *run_worker(void *user)
{
    self = user;
    self->result = f(self->a, self->depth);
    return NULL;
}

static void start_workers(struct worker *workers)
{
    set_gate(true);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .a = 100 * i, .depth = DEPTH - i % 2, .nested_calls = i % 3, .in_order = true};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    wait_for_threads_at_gate(THREADS);
}

static void finish_workers(struct worker *workers)
{
    set_gate(false);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_int_eq(workers[i].result, reference(workers[i].a, workers[i].depth));
        ck_assert_uint_eq(workers[i].wrong, 0);
    }
}

/* Each nested call starts one more run of compiled code, inside of the call that waits. */
static unsigned frames_of(const struct worker *worker, int index)
{
    return (unsigned)(worker->depth + 1 + index % 3 * (NESTED_DEPTH + 1));
}

static void check_all_left(const struct worker *workers)
{
    for (int i = 0; i < THREADS; i++) {
        ck_assert_uint_eq(workers[i].left_after_calls, frames_of(&workers[i], i));
        ck_assert_uint_eq(workers[i].left_at_entry, 0);
    }
}

static void check_none_left(const struct worker *workers)
{
    for (int i = 0; i < THREADS; i++)
        ck_assert_uint_eq(workers[i].left_after_calls + workers[i].left_at_entry, 0);
}

/* Calls the function in the main thread, and returns how many of its frames left at the entry. */
static unsigned call_and_count(void)
{
    main_worker = (struct worker){0};
    ck_assert_int_eq(f(3, 4), reference(3, 4));
    ck_assert_uint_eq(main_worker.wrong, 0);
    ck_assert_uint_eq(main_worker.left_after_calls, 0);
    return main_worker.left_at_entry;
}

static void note_states(enum cairn_site_state states[AFTER_WAITING])
{
    for (uint64_t id = ENTRY; id <= AFTER_WAITING; id++)
        states[id - ENTRY] = state(id);
}

/* Counts the sites of f that call the target. */
static unsigned count_calls_of(const void *target)
{
    unsigned count = 0;
    for (uint64_t id = ENTRY; id <= AFTER_WAITING; id++) {
        struct cairn_site_description description;
        cairn_site_describe(sites_of_f[id], &description);
        count += description.state == CAIRN_SITE_CALL && description.target == (uintptr_t)target;
    }
    return count;
}

static unsigned count_invalid(void) { return count_calls_of(cairn_exit_target(the_exit)); }

static void test_waiting_frames(enum cairn_code_mode mode, const struct form *form)
{
    struct worker workers[THREADS];
    enum cairn_site_state before[AFTER_WAITING];
    enum cairn_site_state after[AFTER_WAITING];
    load_form(mode, form);
    note_states(before);
    ck_assert_uint_eq(call_and_count(), 0);
    start_workers(workers);
    cairn_invalidation *invalidation = invalidate_f();
    ck_assert_uint_eq(count_invalid(), 3);
    finish_workers(workers);
    check_all_left(workers);
    ck_assert_uint_eq(call_and_count(), 1);
    undo(invalidation);
    note_states(after);
    for (int i = 0; i < AFTER_WAITING; i++)
        ck_assert_int_eq(after[i], before[i]);
    ck_assert_uint_eq(call_and_count(), 0);
    start_workers(workers);
    undo(invalidate_f());
    finish_workers(workers);
    check_none_left(workers);
    unload();
}

/* The last form is for x86-64 only: elsewhere, most instructions that LLVM puts in a shadow must
 * not be changed while they are executed. */
static bool has_form(int form)
{
    return form + 1 < FORMS || cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
}

START_TEST(frames_on_many_stacks_leave_as_their_calls_return)
{
    if (has_form(_i % FORMS))
        test_waiting_frames(site_modes[_i / FORMS], &forms[_i % FORMS]);
}
END_TEST

/* ---- While threads execute the function ---- */

/* The expected behaviour of runs that begin now: 2 * (number of changes), plus 1 if they are
 * interpreted. CHANGING during a change. */
enum { CHANGING = -1, ROUNDS = 3000, RUNS_TO_SEE = 20 };

static _Atomic long promised;
static atomic_bool stopping;
static atomic_ulong runs;
static atomic_ulong compiled_runs;
static atomic_ulong interpreted_runs;

static void count_run(long before, long after)
{
    bool left = self->left_at_entry + self->left_after_calls > 0;
    if (before == after && before != CHANGING) {
        bool is_interpreted = before % 2 != 0;
        self->wrong += self->left_at_entry != (is_interpreted ? 1 : 0);
        self->wrong += self->left_after_calls != 0;
    }
    atomic_fetch_add(left ? &interpreted_runs : &compiled_runs, 1);
    atomic_fetch_add(&runs, 1);
}

static void *run_on(void *user)
{
    struct worker *worker = user;
    self = worker;
    for (int64_t i = 0; !atomic_load(&stopping); i++) {
        worker->left_at_entry = 0;
        worker->left_after_calls = 0;
        long before = atomic_load(&promised);
        int64_t result = f(i, i % 4);
        long after = atomic_load(&promised);
        worker->wrong += result != reference(i, i % 4);
        count_run(before, after);
    }
    return NULL;
}

/* Lets the threads run in the current state, in some of the rounds. */
static void let_run(int round)
{
    unsigned long seen = atomic_load(&runs);
    while (round % 50 == 0 && atomic_load(&runs) < seen + RUNS_TO_SEE)
        sched_yield();
}

static void invalidate_and_undo(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        bool is_relaxed = i % 8 == 7;
        struct cairn_invalidation_options options = options_for(code_of(ENTRY));
        enum cairn_strength strength = is_relaxed ? CAIRN_RELAXED : CAIRN_SYNC;
        atomic_store(&promised, CHANGING);
        cairn_invalidation *invalidation = invalidate_with(&options, strength);
        atomic_store(&promised, is_relaxed ? CHANGING : 4 * i + 1);
        let_run(i);
        atomic_store(&promised, CHANGING);
        ck_assert_ok(cairn_invalidation_undo(invalidation, strength, NULL));
        cairn_invalidation_destroy(invalidation);
        atomic_store(&promised, is_relaxed ? CHANGING : 4 * i + 2);
        let_run(i);
    }
}

static void test_running_threads(enum cairn_code_mode mode, const struct form *form, int rounds)
{
    struct worker workers[THREADS];
    load_form(mode, form);
    atomic_store(&promised, CHANGING);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){0};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_on, &workers[i]), 0);
    }
    invalidate_and_undo(rounds);
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].wrong, 0);
    }
    printf("check_llvm_invalidate: %s: %lu runs compiled, %lu interpreted\n", form->name,
           atomic_load(&compiled_runs), atomic_load(&interpreted_runs));
    ck_assert_uint_gt(compiled_runs, 0);
    ck_assert_uint_gt(interpreted_runs, 0);
    unload();
}

START_TEST(results_are_right_while_a_function_is_invalidated_and_restored)
{
    bool is_single = _i / FORMS != 0;
    if (has_form(_i % FORMS))
        test_running_threads(site_modes[_i / FORMS], &forms[_i % FORMS],
                             is_single ? ROUNDS / 30 : ROUNDS);
}
END_TEST

/* ---- Several invalidating threads ---- */

enum { RIVALS = 3, RIVAL_ROUNDS = 30000, RIVAL_ROUNDS_IN_SINGLE_MODE = 300 };

static atomic_int owners[4]; /* indexed by site */
static atomic_ulong rival_wins;

/* Changes the count of owners of each site that calls the target. */
static unsigned change_owner(const void *target, int by, int expected)
{
    unsigned wrong = 0;
    for (uint64_t id = ENTRY; id <= AFTER_WAITING; id++) {
        struct cairn_site_description description;
        cairn_site_describe(sites_of_f[id], &description);
        if (description.target == (uintptr_t)target)
            wrong += atomic_fetch_add(&owners[id], by) != expected;
    }
    return wrong;
}

static void *invalidate_against_others(void *user)
{
    struct worker *worker = user;
    self = worker;
    cairn_site *const one_site[] = {site((uint64_t)worker->a)};
    cairn_exit *exit;
    worker->wrong += cairn_exit_create(runtime, leave, NULL, &exit, NULL) != CAIRN_OK;
    const void *target = cairn_exit_target(exit);
    bool is_single = support_runtime_statistics(runtime).code_mode == CAIRN_CODE_MODE_SINGLE;
    for (int i = 0; i < (is_single ? RIVAL_ROUNDS_IN_SINGLE_MODE : RIVAL_ROUNDS); i++) {
        struct cairn_invalidation_options options = options_for(code_of(ENTRY));
        cairn_invalidation *invalidation = NULL;
        options.target = target;
        if (i % 2 == 0) {
            options.function = 0;
            options.sites = one_site;
            options.site_count = 1;
        }
        enum cairn_status status =
            cairn_invalidate(runtime, &options, CAIRN_RELAXED, &invalidation, NULL);
        worker->wrong += status != CAIRN_OK && status != CAIRN_ERROR_CONFLICT;
        worker->wrong += (status == CAIRN_OK) != (count_calls_of(target) > 0);
        worker->wrong += i % 2 == 0 && count_calls_of(target) > 1;
        if (status != CAIRN_OK)
            continue;
        atomic_fetch_add(&rival_wins, 1);
        worker->wrong += change_owner(target, 1, 0);
        sched_yield();
        worker->wrong += change_owner(target, -1, 1);
        status = cairn_invalidation_undo(invalidation, CAIRN_RELAXED, NULL);
        worker->wrong += status != CAIRN_OK;
        cairn_invalidation_destroy(invalidation);
    }
    cairn_exit_destroy(exit);
    return NULL;
}

START_TEST(each_site_is_of_one_invalidation_at_a_time)
{
    struct worker workers[RIVALS];
    load_all();
    for (int i = 0; i < RIVALS; i++) {
        workers[i] = (struct worker){.a = i + 1};
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, invalidate_against_others, &workers[i]), 0);
    }
    for (int i = 0; i < RIVALS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].wrong, 0);
    }
    ck_assert_uint_gt(rival_wins, 0);
    for (uint64_t id = ENTRY; id <= AFTER_WAITING; id++)
        ck_assert_int_eq(state(id), CAIRN_SITE_NOP);
    unload();
}
END_TEST

START_TEST(a_second_invalidation_takes_what_the_first_has_left)
{
    struct cairn_error error;
    load_all();
    cairn_site *const entry[] = {site(ENTRY)};
    struct cairn_invalidation_options by_list = options_for(0);
    struct cairn_invalidation_options by_function = options_for(code_of(ENTRY));
    by_list.sites = entry;
    by_list.site_count = 1;
    cairn_invalidation *first = invalidate(&by_list);
    ck_assert_uint_eq(count_invalid(), 1);
    cairn_invalidation *second = invalidate(&by_function);
    cairn_invalidation *third = NULL;
    ck_assert_uint_eq(count_invalid(), 3);
    ck_assert_int_eq(cairn_invalidate(runtime, &by_function, CAIRN_SYNC, &third, &error),
                     CAIRN_ERROR_CONFLICT);
    ck_assert_str_eq(error.message, "of 3 sites, 3 call or jump already, and 0 are not live");
    ck_assert_ptr_null(third);
    undo(first);
    ck_assert_int_eq(state(ENTRY), CAIRN_SITE_NOP);
    ck_assert_int_eq(state(AFTER_RECURSION), CAIRN_SITE_CALL);
    undo(second);
    ck_assert_int_eq(state(AFTER_RECURSION), CAIRN_SITE_NOP);
    unload();
}
END_TEST

/* ---- Selected sites ---- */

static bool accepts_deopt_points(const struct cairn_site_description *description, void *user)
{
    unsigned *asked = user;
    ++*asked;
    return description->id != 50;
}

START_TEST(a_filter_keeps_the_hosts_own_sites_out)
{
    unsigned asked = 0;
    load_all();
    struct cairn_invalidation_options options = options_for(code_of(50));
    options.accepts = accepts_deopt_points;
    options.user = &asked;
    cairn_invalidation *invalidation = invalidate(&options);
    ck_assert_uint_eq(asked, 3); /* the filter is not called for the calling site */
    ck_assert_int_eq(state(11), CAIRN_SITE_CALL);
    ck_assert_int_eq(state(12), CAIRN_SITE_CALL);
    ck_assert_int_eq(state(50), CAIRN_SITE_NOP);
    ck_assert_uint_ne(described(51).target, (uintptr_t)cairn_exit_target(the_exit));
    undo(invalidation);
    unload();
}
END_TEST

START_TEST(a_module_is_invalidated_whole)
{
    load_all();
    struct cairn_invalidation_options options = options_for(0);
    options.module = record_module(described(ENTRY).record);
    cairn_invalidation *invalidation = invalidate(&options);
    const uint64_t left[] = {1, 2, 3, 11, 12, 21, 50};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        ck_assert_uint_eq(described(left[i]).target, (uintptr_t)cairn_exit_target(the_exit));
    ck_assert_uint_ne(described(51).target, (uintptr_t)cairn_exit_target(the_exit));
    undo(invalidation);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        ck_assert_int_eq(state(left[i]), CAIRN_SITE_NOP);
    unload();
}
END_TEST

START_TEST(the_sites_of_a_function_follow_each_other)
{
    load_all();
    const cairn_module *module = record_module(described(ENTRY).record);
    struct cairn_function function = record_function(described(50).record);
    uint32_t first = 0;
    ck_assert_uint_eq(module_function_sites(module, function, &first), 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct cairn_site_description description;
        cairn_site_describe(cairn_module_site(module, first + i), &description);
        ck_assert_uint_eq(record_function(description.record).address, function.address);
    }
    uint64_t plain = (uintptr_t)find("plain");
    ck_assert(cairn_runtime_find_function(runtime, plain, &function));
    ck_assert_uint_eq(module_function_sites(module, function, &first), 0);
    unload();
}
END_TEST

/* ---- Changes by others in the meantime ---- */

START_TEST(sites_that_others_have_changed_are_left_alone)
{
    load_all();
    cairn_invalidation *invalidation = invalidate_f();
    ck_assert_ok(cairn_site_call(site(ENTRY), (const void *)(uintptr_t)waits, CAIRN_SYNC, NULL));
    ck_assert_ok(cairn_site_nop(site(AFTER_RECURSION), CAIRN_SYNC, NULL));
    ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, NULL));
    ck_assert_uint_eq(described(ENTRY).target, (uintptr_t)waits);
    ck_assert_int_eq(state(AFTER_RECURSION), CAIRN_SITE_NOP);
    ck_assert_int_eq(state(AFTER_WAITING), CAIRN_SITE_NOP);
    cairn_invalidation_destroy(invalidation);
    unload();
}
END_TEST

/* Compiled code detects that a speculation has failed, and the handler invalidates the function. */
static cairn_invalidation *of_the_handler;

static void invalidate_the_rest(const struct cairn_exit_call *call)
{
    struct cairn_invalidation_options options = options_for(call->frame.pc - 1);
    of_the_handler = invalidate(&options);
}

static void take_the_rest_back(const struct cairn_exit_call *call)
{
    (void)call;
    undo(of_the_handler);
}

START_TEST(a_handler_may_invalidate_its_own_function_and_undo_that)
{
    load_all();
    cairn_site *const entry[] = {site(ENTRY)};
    struct cairn_invalidation_options options = options_for(0);
    options.sites = entry;
    options.site_count = 1;
    cairn_invalidation *first = invalidate(&options);
    also = invalidate_the_rest;
    ck_assert_uint_eq(call_and_count(), 1);
    ck_assert_uint_eq(count_invalid(), 3);
    also = take_the_rest_back;
    ck_assert_uint_eq(call_and_count(), 1);
    ck_assert_int_eq(state(AFTER_RECURSION), CAIRN_SITE_NOP);
    undo(first);
    ck_assert_uint_eq(call_and_count(), 0);
    unload();
}
END_TEST

START_TEST(taking_back_twice_does_nothing)
{
    load_all();
    cairn_invalidation *first = invalidate_f();
    ck_assert_ok(cairn_invalidation_undo(first, CAIRN_SYNC, NULL));
    ck_assert_uint_eq(count_invalid(), 0);
    cairn_invalidation *second = invalidate_f();
    ck_assert_ok(cairn_invalidation_undo(first, CAIRN_SYNC, NULL));
    ck_assert_uint_eq(call_and_count(), 1);
    undo(second);
    cairn_invalidation_destroy(first);
    unload();
}
END_TEST

START_TEST(what_is_destroyed_stays_invalidated)
{
    load_all();
    cairn_invalidation_destroy(invalidate_f());
    cairn_invalidation_destroy(NULL);
    ck_assert_uint_eq(call_and_count(), 1);
    unload();
}
END_TEST

START_TEST(a_retired_module_is_restored)
{
    struct cairn_error error;
    load_all();
    cairn_invalidation *invalidation = invalidate_f();
    struct cairn_site_description description = described(ENTRY);
    cairn_module_retire(record_module(description.record));
    ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error));
    ck_assert_uint_eq(count_invalid(), 0);
    cairn_invalidation_destroy(invalidation);
    unload();
}
END_TEST

/* ---- Errors ---- */

static void expect_refused(const struct cairn_invalidation_options *options,
                           enum cairn_status expected, const char *sentence)
{
    struct cairn_error error = {0};
    cairn_invalidation *invalidation = NULL;
    ck_assert_int_eq(cairn_invalidate(runtime, options, CAIRN_SYNC, &invalidation, &error),
                     expected);
    ck_assert_msg(strstr(error.message, sentence) != NULL, "%s", error.message);
    ck_assert_ptr_null(invalidation);
}

START_TEST(a_function_without_sites_is_not_found)
{
    load_all();
    struct cairn_invalidation_options options = options_for((uintptr_t)find("plain"));
    expect_refused(&options, CAIRN_ERROR_NOT_FOUND, "at any of 0 sites");
    options.function = (uintptr_t)waits;
    expect_refused(&options, CAIRN_ERROR_NOT_FOUND, "is in no function of a published module");
    unload();
}
END_TEST

static bool accepts_none(const struct cairn_site_description *description, void *user)
{
    (void)description;
    (void)user;
    return false;
}

START_TEST(a_filter_that_takes_no_site_leaves_none)
{
    load_all();
    struct cairn_invalidation_options options = options_for(code_of(ENTRY));
    options.accepts = accepts_none;
    expect_refused(&options, CAIRN_ERROR_NOT_FOUND, "at any of 3 sites");
    unload();
}
END_TEST

static bool accepts_all(const struct cairn_site_description *description, void *user)
{
    (void)description;
    (void)user;
    return true;
}

START_TEST(a_chosen_site_that_is_not_live_is_refused_and_nothing_changed)
{
    load_all();
    struct cairn_invalidation_options options = options_for(code_of(21));
    options.accepts = accepts_all;
    expect_refused(&options, CAIRN_ERROR_UNMANAGED, "site 22 at 0x");
    ck_assert_int_eq(state(21), CAIRN_SITE_NOP);
    cairn_site *const list[] = {site(ENTRY), site(22)};
    options = options_for(0);
    options.sites = list;
    options.site_count = 2;
    expect_refused(&options, CAIRN_ERROR_UNMANAGED, "site 22 at 0x");
    ck_assert_int_eq(state(ENTRY), CAIRN_SITE_NOP);
    options = options_for(code_of(21));
    undo(invalidate(&options));
    unload();
}
END_TEST

START_TEST(a_list_with_a_site_that_calls_or_twice_the_same_is_refused)
{
    load_all();
    cairn_site *const calling[] = {site(ENTRY), site(51)};
    cairn_site *const twice[] = {site(ENTRY), site(ENTRY)};
    cairn_site *const none[] = {site(ENTRY), NULL};
    struct cairn_invalidation_options options = options_for(0);
    options.sites = calling;
    options.site_count = 2;
    expect_refused(&options, CAIRN_ERROR_CONFLICT, "is a call already");
    options.sites = twice;
    expect_refused(&options, CAIRN_ERROR_CONFLICT, "is in the list twice");
    options.sites = none;
    expect_refused(&options, CAIRN_ERROR_ARGUMENT, "no site number 1");
    options.site_count = 0;
    expect_refused(&options, CAIRN_ERROR_NOT_FOUND, "at any of 0 sites");
    ck_assert_int_eq(state(ENTRY), CAIRN_SITE_NOP);
    unload();
}
END_TEST

START_TEST(what_is_not_said_clearly_is_refused)
{
    cairn_invalidation *invalidation = NULL;
    struct cairn_error error;
    load_all();
    struct cairn_invalidation_options options = options_for(0);
    expect_refused(&options, CAIRN_ERROR_ARGUMENT, "of a function, of a module, or of a list");
    options.function = code_of(ENTRY);
    options.module = record_module(described(ENTRY).record);
    expect_refused(&options, CAIRN_ERROR_ARGUMENT, "of a function, of a module, or of a list");
    options = options_for(code_of(ENTRY));
    options.target = NULL;
    expect_refused(&options, CAIRN_ERROR_ARGUMENT, "`options->target` is NULL");
    options = options_for(code_of(ENTRY));
    ck_assert_int_eq(
        cairn_invalidate(runtime, &options, (enum cairn_strength)9, &invalidation, &error),
        CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "strength"));
    ck_assert_int_eq(cairn_invalidate(NULL, &options, CAIRN_SYNC, &invalidation, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_invalidate(runtime, NULL, CAIRN_SYNC, &invalidation, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_invalidate(runtime, &options, CAIRN_SYNC, NULL, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_invalidation_undo(NULL, CAIRN_SYNC, &error), CAIRN_ERROR_ARGUMENT);
    unload();
}
END_TEST

START_TEST(an_invalidation_without_memory_changes_nothing)
{
    size_t failures = 0;
    load_all_in(site_modes[_i]);
    struct cairn_invalidation_options options = options_for(code_of(ENTRY));
    for (size_t fail_at = 1;; fail_at++) {
        cairn_invalidation *invalidation = NULL;
        size_t before = allocations.outstanding_bytes;
        allocations.calls = 0;
        allocations.fail_at = fail_at;
        enum cairn_status status =
            cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, NULL);
        allocations.calls = 0;
        allocations.fail_at = 1;
        if (status == CAIRN_OK)
            ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, NULL));
        allocations.fail_at = 0;
        cairn_invalidation_destroy(invalidation);
        ck_assert_int_eq(state(ENTRY), CAIRN_SITE_NOP);
        if (status == CAIRN_OK)
            break;
        ck_assert_ptr_null(invalidation);
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        /* Veneers are kept with their sites. */
        bool has_veneers = described(ENTRY).kind == CAIRN_RECORD_PATCHPOINT &&
                           allocations.outstanding_bytes > before;
        ck_assert(has_veneers || allocations.outstanding_bytes == before);
        failures++;
    }
    ck_assert_uint_ge(failures, 3);
    unload();
}
END_TEST

int main(void)
{
    enum { SECONDS = 120 };
    int first = site_first_mode() * FORMS;
    Suite *suite = suite_create("invalidation");
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, SECONDS);
    tcase_add_loop_test(threads, frames_on_many_stacks_leave_as_their_calls_return, first,
                        SITE_MODES * FORMS);
    tcase_add_loop_test(threads, results_are_right_while_a_function_is_invalidated_and_restored,
                        first, SITE_MODES * FORMS);
    tcase_add_test(threads, each_site_is_of_one_invalidation_at_a_time);
    suite_add_tcase(suite, threads);
    TCase *sites = tcase_create("sites");
    tcase_add_test(sites, a_second_invalidation_takes_what_the_first_has_left);
    tcase_add_test(sites, a_filter_keeps_the_hosts_own_sites_out);
    tcase_add_test(sites, a_module_is_invalidated_whole);
    tcase_add_test(sites, the_sites_of_a_function_follow_each_other);
    tcase_add_test(sites, sites_that_others_have_changed_are_left_alone);
    tcase_add_test(sites, a_handler_may_invalidate_its_own_function_and_undo_that);
    tcase_add_test(sites, taking_back_twice_does_nothing);
    tcase_add_test(sites, what_is_destroyed_stays_invalidated);
    tcase_add_test(sites, a_retired_module_is_restored);
    suite_add_tcase(suite, sites);
    TCase *refusals = tcase_create("refusals");
    tcase_add_test(refusals, a_function_without_sites_is_not_found);
    tcase_add_test(refusals, a_filter_that_takes_no_site_leaves_none);
    tcase_add_test(refusals, a_chosen_site_that_is_not_live_is_refused_and_nothing_changed);
    tcase_add_test(refusals, a_list_with_a_site_that_calls_or_twice_the_same_is_refused);
    tcase_add_test(refusals, what_is_not_said_clearly_is_refused);
    tcase_add_loop_test(refusals, an_invalidation_without_memory_changes_nothing, site_first_mode(),
                        SITE_MODES);
    suite_add_tcase(suite, refusals);
    return support_main(suite);
}
