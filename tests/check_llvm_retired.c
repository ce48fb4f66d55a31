/*
 * Tests of code that was retired while threads are in it: their frames are walked, read, written
 * and left as before, no further call enters it, and its memory is freed when the last frame has
 * left.
 *
 * The compiled function keeps values across a call of a function of C, which calls the compiled
 * function again or, at the end, waits.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "llvm_support.h"
#include "mode_support.h"
#include "runtime/module.h"
#include "runtime_support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What the function computes ---- */

enum { STEP = 7, DEPTH = 4, FRAMES = DEPTH + 1 };

static int64_t of_waiting(int64_t a) { return a * 2 + 1; }

static int64_t finish(int64_t a, int64_t of_call) { return a * 3 + of_call; }

static int64_t reference(int64_t a, int64_t depth)
{
    return finish(a, depth > 0 ? reference(a + STEP, depth - 1) : of_waiting(a));
}

/* ---- The function, and its calls of C ---- */

enum { ENTRY = 1, CALL = 2, AFTER_CALL = 3, TEXT_BYTES = 4096 };

typedef int64_t compiled(int64_t a, int64_t depth);
static compiled *f;
static _Thread_local void (*wait_in)(void);

/* Has all callee-saved registers in its call frame, so that a walk which changes a caller's value
 * in a register changes what this function restores. */
static int64_t call_on(int64_t a, int64_t depth)
{
    __builtin_unwind_init();
    if (depth > 0)
        return f(a + STEP, depth - 1);
    wait_in();
    return of_waiting(a);
}

static const char format[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %%a, i64 %%depth) noinline uwtable {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 16,\n"
    "      ptr null, i32 0, i64 %%a, i64 %%depth)\n"
    "  %%k = mul i64 %%a, 3\n"
    "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 48,\n"
    "      ptr inttoptr (i64 %llu to ptr), i32 2, i64 %%a, i64 %%depth, i64 %%depth, i64 %%k)\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 16,\n"
    "      ptr null, i32 0, i64 %%depth, i64 %%k, i64 %%r)\n"
    "  %%s = add i64 %%k, %%r\n"
    "  ret i64 %%s\n"
    "}\n";

/* ---- Loading it ---- */

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_module *module;
static uint64_t code; /* an address in the function */

static void load(enum cairn_code_mode mode)
{
    char text[TEXT_BYTES];
    struct cairn_error error = {0};
    const struct cairn_runtime_options options = {.code_mode = mode,
                                                  .allocator = support_poisoning()};
    const struct cairn_engine_options engine_options = {.optimisation_level = 2};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    snprintf(text, sizeof text, format, ENTRY, CALL, (unsigned long long)(uintptr_t)call_on,
             AFTER_CALL);
    context = LLVMContextCreate();
    enum cairn_status status = cairn_engine_create(runtime, support_parse_valid(context, text),
                                                   &engine_options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    f = (compiled *)(uintptr_t)support_compiled_function(engine, "f", &error);
    ck_assert_msg(f != NULL, "%s", error.message);
    struct cairn_record record;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, ENTRY, &record, 1), 1);
    module = record_module(record);
    code = cairn_record_address(record);
}

/* Retires the module. Afterwards nothing but the frames keeps it: not the engine either. */
static void retire(void)
{
    cairn_module_retire(module);
    cairn_engine_destroy(engine);
    engine = NULL;
}

static void unload(void)
{
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* ---- Threads that wait in the function ---- */

enum { THREADS = 3 };

struct worker {
    pthread_t thread;
    int64_t a;
    int64_t result;
    struct cairn_context waiting; /* the registers in the function that waits */
    unsigned left_at_entry;
    unsigned left_after_calls;
    unsigned wrong;
};

static _Thread_local struct worker *self;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    unsigned waiting;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wait_at_gate(void)
{
    self->wrong += cairn_context_save(&self->waiting) != 0;
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.is_open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void *run_worker(void *user)
{
    self = user;
    wait_in = wait_at_gate;
    self->result = f(self->a, DEPTH);
    return NULL;
}

static void start(struct worker *workers)
{
    gate.is_open = false;
    gate.waiting = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.a = 100 * i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting < THREADS)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

/* Lets the threads return. `added` is by how much a frame's value was changed. */
static void finish_all(struct worker *workers, int64_t added)
{
    pthread_mutex_lock(&gate.lock);
    gate.is_open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].wrong, 0);
        ck_assert_int_eq(workers[i].result, reference(workers[i].a, DEPTH) + added);
    }
}

/* ---- Walking over its frames ---- */

static int64_t value_at(const struct cairn_frame *frame, struct cairn_record record, uint32_t index)
{
    struct cairn_value value = {0};
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_value(frame, record, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return cairn_value_signed(&value);
}

/* Walks from a context over the frames of a call of f(a, DEPTH), and adds to a value of each. */
static void walk(struct cairn_context *from, int64_t a, int64_t added)
{
    struct cairn_frame frame;
    struct cairn_walk stack;
    struct cairn_error error = {0};
    int64_t depth = 0;
    ck_assert_ok(cairn_frame_from_context(runtime, from, true, &frame, NULL));
    cairn_walk_begin(&stack, &frame);
    stack.foreign = cairn_walk_native;
    while (cairn_walk_next(&stack, &error) == CAIRN_OK && !stack.has_ended) {
        struct cairn_function function;
        struct cairn_record record;
        ck_assert_ptr_eq(stack.frame.module, module);
        ck_assert(cairn_frame_function(&stack.frame, &function));
        ck_assert_uint_eq(function.record_count, 3);
        ck_assert(cairn_frame_record(&stack.frame, &record));
        ck_assert_uint_eq(cairn_record_id(record), CALL);
        ck_assert_int_eq(value_at(&stack.frame, record, 0), depth);
        int64_t k = value_at(&stack.frame, record, 1);
        ck_assert_int_eq(k, (a + STEP * (DEPTH - depth)) * 3);
        const struct cairn_value changed = cairn_value_of_integer(64, k + added);
        ck_assert_ok(cairn_frame_set_value(&stack.frame, record, 1, &changed, NULL));
        depth++;
    }
    ck_assert_msg(stack.has_ended, "%s", error.message);
    ck_assert_int_eq(depth, FRAMES);
}

static void assert_not_found(void)
{
    struct cairn_record record;
    struct cairn_function function;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, CALL, &record, 1), 0);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, ENTRY, NULL));
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, code));
    ck_assert(!cairn_runtime_find_address(runtime, code, &record));
    ck_assert(!cairn_runtime_find_function(runtime, code, &function));
}

static void assert_freed(size_t count)
{
    ck_assert_uint_eq(support_runtime_statistics(runtime).retired_count, count);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), count);
    ck_assert_uint_eq(support_runtime_statistics(runtime).retired_count, 0);
    assert_not_found();
}

START_TEST(frames_of_retired_code_are_walked_and_return)
{
    struct worker workers[THREADS];
    load(site_modes[_i]);
    start(workers);
    retire();
    assert_not_found();
    for (int i = 0; i < THREADS; i++)
        walk(&workers[i].waiting, workers[i].a, 0);
    finish_all(workers, 0);
    assert_freed(1);
    unload();
}
END_TEST

START_TEST(values_of_frames_of_retired_code_are_changed)
{
    struct worker workers[THREADS];
    load(site_modes[_i]);
    start(workers);
    retire();
    for (int i = 0; i < THREADS; i++)
        walk(&workers[i].waiting, workers[i].a, 1000);
    finish_all(workers, 1000 * FRAMES);
    assert_freed(1);
    unload();
}
END_TEST

/* A period that began before the module was retired does not free it. */
START_TEST(retired_code_stays_until_a_later_grace_period_ends)
{
    struct worker workers[THREADS];
    load(site_modes[_i]);
    start(workers);
    uint64_t early = cairn_runtime_grace_start(runtime);
    retire();
    uint64_t late = cairn_runtime_grace_start(runtime);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, early), 0);
    for (int i = 0; i < THREADS; i++)
        walk(&workers[i].waiting, workers[i].a, 0);
    finish_all(workers, 0);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, late), 1);
    assert_freed(0);
    unload();
}
END_TEST

/* ---- Leaving it ---- */

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)user;
    const struct cairn_frame *frame = &call->frame;
    bool is_here = frame->module == module && call->record.table != NULL;
    uint64_t id = is_here ? cairn_record_id(call->record) : 0;
    int64_t result = 0;
    if (id == ENTRY) {
        self->left_at_entry++;
        result = reference(value_at(frame, call->record, 0), value_at(frame, call->record, 1));
    } else if (id == AFTER_CALL) {
        self->left_after_calls++;
        result = value_at(frame, call->record, 1) + value_at(frame, call->record, 2);
    } else {
        self->wrong++;
    }
    const struct cairn_value value = cairn_value_of_integer(64, result);
    self->wrong += cairn_exit_return(call, &value, 1, NULL) != CAIRN_OK;
}

static cairn_exit *new_exit(void)
{
    cairn_exit *exit;
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, NULL));
    return exit;
}

static cairn_invalidation *invalidate(const cairn_exit *exit, cairn_invalidation_filter *accepts)
{
    struct cairn_error error = {0};
    cairn_invalidation *invalidation;
    const struct cairn_invalidation_options options = {
        .module = module, .target = cairn_exit_target(exit), .accepts = accepts};
    enum cairn_status status =
        cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return invalidation;
}

static void assert_left(const struct worker *workers, unsigned after_calls)
{
    for (int i = 0; i < THREADS; i++) {
        ck_assert_uint_eq(workers[i].left_after_calls, after_calls);
        ck_assert_uint_eq(workers[i].left_at_entry, 0);
    }
}

START_TEST(frames_leave_code_that_was_invalidated_and_then_retired)
{
    struct worker workers[THREADS];
    load(site_modes[_i]);
    cairn_exit *exit = new_exit();
    start(workers);
    cairn_invalidation_destroy(invalidate(exit, NULL));
    retire();
    finish_all(workers, 0);
    assert_left(workers, FRAMES);
    cairn_exit_destroy(exit);
    cairn_runtime_quiesce(runtime);
    assert_freed(0);
    unload();
}
END_TEST

/* The code that replaced it may have been based on the same assumption. */
START_TEST(frames_leave_code_that_is_invalidated_after_it_was_retired)
{
    struct worker workers[THREADS];
    load(site_modes[_i]);
    cairn_exit *exit = new_exit();
    start(workers);
    retire();
    cairn_invalidation_destroy(invalidate(exit, NULL));
    finish_all(workers, 0);
    assert_left(workers, FRAMES);
    cairn_exit_destroy(exit);
    cairn_runtime_quiesce(runtime);
    assert_freed(0);
    unload();
}
END_TEST

START_TEST(an_invalidation_of_retired_code_is_undone)
{
    struct worker workers[THREADS];
    load(site_modes[_i]);
    cairn_exit *exit = new_exit();
    start(workers);
    cairn_invalidation *invalidation = invalidate(exit, NULL);
    retire();
    ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, NULL));
    cairn_invalidation_destroy(invalidation);
    finish_all(workers, 0);
    assert_left(workers, 0);
    cairn_exit_destroy(exit);
    unload();
}
END_TEST

static bool accepts_entry(const struct cairn_site_description *site, void *user)
{
    (void)user;
    return site->id == ENTRY;
}

START_TEST(code_that_is_not_entrant_lets_its_frames_return_and_no_call_in)
{
    struct worker workers[THREADS];
    struct worker late = {0};
    load(site_modes[_i]);
    cairn_exit *exit = new_exit();
    start(workers);
    cairn_invalidation_destroy(invalidate(exit, accepts_entry));
    retire();
    self = &late;
    ck_assert_int_eq(f(5, DEPTH), reference(5, DEPTH));
    ck_assert_uint_eq(late.left_at_entry, 1);
    for (int i = 0; i < THREADS; i++)
        walk(&workers[i].waiting, workers[i].a, 0);
    finish_all(workers, 0);
    assert_left(workers, 0);
    cairn_exit_destroy(exit);
    cairn_runtime_quiesce(runtime);
    assert_freed(0);
    unload();
}
END_TEST

/* ---- Children ---- */

static pid_t child;

static void retire_and_fork(void)
{
    struct cairn_context here;
    ck_assert_int_eq(cairn_context_save(&here), 0);
    retire();
    child = fork();
    walk(&here, 1, 0);
}

/* The child has the frames of the thread that forks. */
START_TEST(a_forked_child_walks_and_leaves_its_frames_of_retired_code)
{
    load(site_modes[_i]);
    wait_in = retire_and_fork;
    ck_assert_int_eq(f(1, DEPTH), reference(1, DEPTH));
    assert_freed(1);
    unload();
    if (child == 0)
        _exit(0);
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- Misuse ---- */

START_TEST(a_retired_module_is_not_published_again)
{
    load(site_modes[_i]);
    retire();
    cairn_module_retire(module);
    ck_assert_int_eq(cairn_module_publish(module, NULL), CAIRN_ERROR_STATE);
    assert_freed(1);
    unload();
}
END_TEST

/* ---- */

int main(void)
{
    const TTest *tests[] = {
        frames_of_retired_code_are_walked_and_return,
        values_of_frames_of_retired_code_are_changed,
        retired_code_stays_until_a_later_grace_period_ends,
        frames_leave_code_that_was_invalidated_and_then_retired,
        frames_leave_code_that_is_invalidated_after_it_was_retired,
        an_invalidation_of_retired_code_is_undone,
        code_that_is_not_entrant_lets_its_frames_return_and_no_call_in,
        a_forked_child_walks_and_leaves_its_frames_of_retired_code,
        a_retired_module_is_not_published_again,
    };
    Suite *suite = suite_create("retired");
    TCase *in_every_mode = tcase_create("retired");
    tcase_set_timeout(in_every_mode, 60);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(in_every_mode, tests[i], site_first_mode(), SITE_MODES);
    suite_add_tcase(suite, in_every_mode);
    return support_main(suite);
}
