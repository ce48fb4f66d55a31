/*
 * Tests of cairn_runtime_free_unused: of the retired modules, exactly those are freed in which no
 * frame of the given stacks is.
 *
 * Each version is a module with one function, which calls a function of C. That calls the next
 * version of the path, so frames of versions and of C alternate.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "llvm_support.h"
#include "runtime_support.h"
#include "llvm/version.h"

#include <cairn/walk.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

enum { VERSIONS = 6, PATH_MAX_LENGTH = 24, TEXT_BYTES = 512 };

struct path;
typedef int64_t step_function(struct path *path);
typedef int64_t compiled(step_function *next, struct path *path);

static struct version {
    cairn_engine *engine; /* NULL: retired */
    compiled *function;   /* NULL: freed, by the model */
} versions[VERSIONS];

/* A chain of calls. `visit` is called at its end, and after each return. */
struct path {
    unsigned numbers[PATH_MAX_LENGTH]; /* of versions, the outermost first */
    unsigned length;
    unsigned depth; /* versions that have been entered and have not returned */
    void (*visit)(struct path *path);
};

static LLVMContextRef llvm;
static cairn_runtime *runtime;

/* ---- Versions ---- */

static void load(unsigned number, const char *attributes)
{
    static const struct cairn_engine_options options = {.optimisation_level = 0};
    struct version *version = &versions[number];
    struct cairn_error error = {0};
    char text[TEXT_BYTES];
    snprintf(text, sizeof text,
             "define i64 @f(%s %%next, ptr %%path) noinline %s {\n"
             "  %%r = call i64 %%next(ptr %%path)\n"
             "  %%s = add i64 %%r, 1\n"
             "  ret i64 %%s\n"
             "}\n",
             LLVM_HAS_OPAQUE_POINTERS ? "ptr" : "i64 (ptr)*", attributes);
    enum cairn_status status = cairn_engine_create(runtime, support_parse_valid(llvm, text),
                                                   &options, &version->engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    version->function =
        (compiled *)(uintptr_t)support_compiled_function(version->engine, "f", &error);
    ck_assert_msg(version->function != NULL, "%s", error.message);
}

static void retire(unsigned number)
{
    cairn_engine_destroy(versions[number].engine);
    versions[number].engine = NULL;
}

static void set_up(void)
{
    const struct cairn_runtime_options options = {.allocator = support_poisoning()};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    llvm = LLVMContextCreate();
    for (unsigned i = 0; i < VERSIONS; i++)
        load(i, "uwtable");
}

static void tear_down(void)
{
    for (unsigned i = 0; i < VERSIONS; i++)
        retire(i);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(llvm);
}

/* ---- Paths ---- */

static __attribute__((noinline)) int64_t step(struct path *path)
{
    if (path->depth == path->length) {
        path->visit(path);
        return 0;
    }
    compiled *function = versions[path->numbers[path->depth]].function;
    path->depth++;
    int64_t result = function(step, path);
    path->depth--;
    path->visit(path);
    return result;
}

static bool is_on(const struct path *path, unsigned number)
{
    for (unsigned i = 0; i < path->depth; i++)
        if (path->numbers[i] == number)
            return true;
    return false;
}

static void begin_walk(struct cairn_context *context, struct cairn_walk *walk)
{
    struct cairn_frame frame;
    ck_assert_ok(cairn_frame_from_context(runtime, context, true, &frame, NULL));
    cairn_walk_begin(walk, &frame);
    walk->foreign = cairn_walk_native;
}

/* ---- Freeing ---- */

/* Frees what neither the thread's own stack nor the others are in. Returns the number. */
static __attribute__((noinline)) size_t free_unused(struct cairn_walk *walks, size_t others)
{
    struct cairn_context context;
    struct cairn_error error = {0};
    size_t freed = SIZE_MAX;
    ck_assert_int_eq(cairn_context_save(&context), 0);
    begin_walk(&context, &walks[others]);
    enum cairn_status status =
        cairn_runtime_free_unused(runtime, walks, others + 1, &freed, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return freed;
}

/* Does the same to the model: a version on none of these paths is freed if it is retired. */
static size_t free_in_model(struct path *const *paths, size_t count)
{
    size_t freed = 0;
    for (unsigned i = 0; i < VERSIONS; i++) {
        bool is_used = versions[i].engine != NULL || versions[i].function == NULL;
        for (size_t j = 0; j < count; j++)
            is_used |= is_on(paths[j], i);
        if (!is_used) {
            versions[i].function = NULL;
            freed++;
        }
    }
    return freed;
}

static unsigned retired_count(void) { return support_runtime_statistics(runtime).retired_count; }

static void assert_frees_unused(struct path *path)
{
    struct cairn_walk walk;
    unsigned before = retired_count();
    size_t expected = free_in_model(&path, 1);
    ck_assert_uint_eq(free_unused(&walk, 0), expected);
    ck_assert_uint_eq(retired_count(), before - expected);
}

static void retire_all_at_the_end(struct path *path)
{
    for (unsigned i = 0; i < VERSIONS && path->depth == path->length; i++)
        retire(i);
    assert_frees_unused(path);
}

START_TEST(each_version_is_freed_when_its_last_frame_has_returned)
{
    struct path path = {
        .numbers = {0, 1, 0, 2, 3, 1, 1, 3}, .length = 8, .visit = retire_all_at_the_end};
    ck_assert_int_eq(step(&path), path.length);
    ck_assert_uint_eq(retired_count(), 0);
}
END_TEST

static void keep_reference(struct path *path)
{
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)versions[0].function);
    struct cairn_walk walk;
    (void)path;
    cairn_module_retain(module);
    retire(0);
    ck_assert_uint_eq(free_unused(&walk, 0), 0);
    cairn_module_release(module);
    ck_assert_uint_eq(free_unused(&walk, 0), 1);
}

START_TEST(a_module_with_references_is_kept_until_they_are_removed)
{
    struct path path = {.visit = keep_reference};
    ck_assert_int_eq(step(&path), 0);
}
END_TEST

START_TEST(without_stacks_all_retired_modules_are_freed)
{
    size_t freed = 0;
    retire(0);
    retire(3);
    ck_assert_ok(cairn_runtime_free_unused(runtime, NULL, 0, &freed, NULL));
    ck_assert_uint_eq(freed, 2);
    ck_assert_uint_eq(retired_count(), 0);
}
END_TEST

/* ---- A frame that a walk cannot leave ---- */

static void assert_nothing_is_freed(struct path *path)
{
    struct cairn_context context;
    struct cairn_walk walk;
    struct cairn_error error = {0};
    size_t freed = SIZE_MAX;
    if (path->depth < path->length)
        return;
    retire(1);
    ck_assert_int_eq(cairn_context_save(&context), 0);
    begin_walk(&context, &walk);
    ck_assert_int_eq(cairn_runtime_free_unused(runtime, &walk, 1, &freed, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(error.offset, walk.frame.pc);
    ck_assert_ptr_eq(walk.frame.module,
                     cairn_runtime_find_module(runtime, (uintptr_t)versions[0].function));
    ck_assert_uint_eq(freed, SIZE_MAX);
    ck_assert_uint_eq(retired_count(), 1);
}

START_TEST(nothing_is_freed_if_a_frame_has_no_unwind_rules)
{
    struct path path = {.numbers = {0, 2}, .length = 2, .visit = assert_nothing_is_freed};
    retire(0);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    load(0, "nounwind");
    ck_assert_int_eq(step(&path), path.length);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(walks_that_could_miss_frames_are_refused)
{
    cairn_runtime *other;
    struct cairn_context context;
    struct cairn_walk walk;
    ck_assert_ok(cairn_runtime_create(NULL, &other, NULL));
    ck_assert_int_eq(cairn_context_save(&context), 0);
    begin_walk(&context, &walk);
    ck_assert_int_eq(cairn_runtime_free_unused(NULL, &walk, 1, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_runtime_free_unused(runtime, NULL, 1, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_runtime_free_unused(other, &walk, 1, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    walk.foreign = NULL;
    ck_assert_int_eq(cairn_runtime_free_unused(runtime, &walk, 1, NULL, NULL),
                     CAIRN_ERROR_ARGUMENT);
    begin_walk(&context, &walk);
    ck_assert_ok(cairn_walk_next(&walk, NULL));
    ck_assert_int_eq(cairn_runtime_free_unused(runtime, &walk, 1, NULL, NULL),
                     CAIRN_ERROR_ARGUMENT);
    cairn_runtime_destroy(other);
}
END_TEST

/* ---- Threads ---- */

enum { THREADS = 3 };

static struct worker {
    struct path path; /* first, so that a path's worker is found */
    pthread_t thread;
    struct cairn_context context;
    int64_t result;
} workers[THREADS];

static pthread_barrier_t stopped;
static pthread_barrier_t resumed;

static void stop(struct path *path)
{
    struct worker *worker = (struct worker *)(void *)path;
    if (path->depth < path->length || cairn_context_save(&worker->context) != 0)
        return;
    pthread_barrier_wait(&stopped);
    pthread_barrier_wait(&resumed);
}

static void *run_worker(void *user)
{
    struct worker *worker = user;
    worker->result = step(&worker->path);
    return NULL;
}

START_TEST(stopped_threads_keep_what_they_are_in)
{
    struct cairn_walk walks[THREADS + 1];
    struct path *paths[THREADS];
    pthread_barrier_init(&stopped, NULL, THREADS + 1);
    pthread_barrier_init(&resumed, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].path = (struct path){.numbers = {i, i + 1, i}, .length = 3, .visit = stop};
        paths[i] = &workers[i].path;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    pthread_barrier_wait(&stopped);
    for (unsigned i = 0; i < VERSIONS; i++)
        retire(i);
    for (unsigned i = 0; i < THREADS; i++)
        begin_walk(&workers[i].context, &walks[i]);
    ck_assert_uint_eq(free_unused(walks, THREADS), free_in_model(paths, THREADS));
    ck_assert_uint_eq(retired_count(), THREADS + 1);
    pthread_barrier_wait(&resumed);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_int_eq(workers[i].result, 3);
    }
    ck_assert_uint_eq(free_unused(walks, 0), THREADS + 1);
}
END_TEST

/* ---- Coroutines ---- */

static struct {
    struct path path;
    ucontext_t own;
    ucontext_t main;
    struct cairn_context context;
    uintptr_t outermost; /* in the frame of run_coroutine */
    char stack[1 << 18];
    int64_t result;
} coroutine;

static void suspend(struct path *path)
{
    if (path->depth == path->length && cairn_context_save(&coroutine.context) == 0)
        swapcontext(&coroutine.own, &coroutine.main);
}

static void run_coroutine(void)
{
    coroutine.outermost = (uintptr_t)__builtin_frame_address(0);
    coroutine.result = step(&coroutine.path);
}

/* The C library's code that has called run_coroutine may have no unwind rules. */
static enum cairn_walk_answer end_at_coroutine(struct cairn_walk *walk, void *user)
{
    (void)user;
    return walk->frame.sp > coroutine.outermost ? CAIRN_WALK_END : CAIRN_WALK_NATIVE;
}

START_TEST(a_suspended_coroutine_is_one_more_stack)
{
    struct cairn_walk walks[2];
    coroutine.path = (struct path){.numbers = {4, 5}, .length = 2, .visit = suspend};
    getcontext(&coroutine.own);
    coroutine.own.uc_stack.ss_sp = coroutine.stack;
    coroutine.own.uc_stack.ss_size = sizeof coroutine.stack;
    coroutine.own.uc_link = &coroutine.main;
    makecontext(&coroutine.own, run_coroutine, 0);
    swapcontext(&coroutine.main, &coroutine.own);
    retire(3);
    retire(4);
    begin_walk(&coroutine.context, &walks[0]);
    walks[0].foreign = end_at_coroutine;
    ck_assert_uint_eq(free_unused(walks, 1), 1);
    ck_assert_uint_eq(retired_count(), 1);
    swapcontext(&coroutine.main, &coroutine.own);
    ck_assert_int_eq(coroutine.result, 2);
    ck_assert_uint_eq(free_unused(walks, 0), 1);
}
END_TEST

/* ---- Exits ---- */

/* The stack of the handler has the frame that was left. */
static void free_in_handler(struct cairn_exit_call *call, void *user)
{
    struct cairn_walk walk;
    (void)call;
    (void)user;
    retire(0);
    retire(1);
    ck_assert_uint_eq(free_unused(&walk, 0), 1);
    ck_assert_uint_eq(retired_count(), 1);
}

/* Version 0 calls the exit in place of `step`. Returns what it returns. */
static int64_t leave_version(cairn_exit_handler *handler, struct path *path)
{
    cairn_exit *exit;
    ck_assert_ok(cairn_exit_create(runtime, handler, path, &exit, NULL));
    int64_t result =
        versions[0].function((step_function *)(uintptr_t)cairn_exit_target(exit), path);
    cairn_exit_destroy(exit);
    return result;
}

START_TEST(a_handler_of_an_exit_keeps_the_frame_that_was_left)
{
    struct path path = {.length = 0};
    struct cairn_walk walk;
    leave_version(free_in_handler, &path);
    ck_assert_uint_eq(free_unused(&walk, 0), 1);
}
END_TEST

static void enter_version(struct cairn_exit_call *call, void *user)
{
    const struct cairn_type types[] = {CAIRN_POINTER, CAIRN_POINTER};
    const struct cairn_type result = CAIRN_INTEGER(64);
    const struct cairn_value values[] = {cairn_value_of_pointer((const void *)(uintptr_t)step),
                                         cairn_value_of_pointer(user)};
    struct cairn_error error = {0};
    cairn_signature *signature;
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, types, 2, &signature, NULL));
    enum cairn_status status = cairn_exit_enter(
        call, signature, (const void *)(uintptr_t)versions[1].function, values, 2, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    cairn_signature_destroy(signature);
}

static void free_what_was_left(struct path *path)
{
    struct cairn_walk walk;
    (void)path;
    retire(0);
    retire(1);
    ck_assert_uint_eq(free_unused(&walk, 0), 1);
    ck_assert_uint_eq(retired_count(), 1);
}

START_TEST(a_function_that_was_entered_in_place_of_a_frame_is_kept_instead_of_it)
{
    struct path path = {.visit = free_what_was_left};
    struct cairn_walk walk;
    ck_assert_int_eq(leave_version(enter_version, &path), 1);
    ck_assert_uint_eq(free_unused(&walk, 0), 1);
}
END_TEST

/* ---- Grace periods ---- */

static struct {
    uint64_t token;
    size_t freed;
} period;

static void *end_period(void *user)
{
    (void)user;
    period.freed = cairn_runtime_grace_end(runtime, period.token);
    return NULL;
}

/* Version 0 was retired before the period and has no frame; version 1 later, and has one. */
static void end_period_meanwhile(struct path *path)
{
    struct cairn_walk walk;
    pthread_t thread;
    if (path->depth < path->length)
        return;
    retire(0);
    period.token = cairn_runtime_grace_start(runtime);
    retire(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, end_period, NULL), 0);
    size_t freed = free_unused(&walk, 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(freed + period.freed, 1);
    ck_assert_uint_eq(retired_count(), 1);
}

START_TEST(a_grace_period_may_end_meanwhile_in_another_thread)
{
    for (int round = 0; round < 50; round++) {
        struct path path = {.numbers = {1}, .length = 1, .visit = end_period_meanwhile};
        struct cairn_walk walk;
        ck_assert_int_eq(step(&path), 1);
        ck_assert_uint_eq(free_unused(&walk, 0), 1);
        load(0, "uwtable");
        load(1, "uwtable");
    }
}
END_TEST

/* A period that was started before the call ends after it. */
static void free_during_period(struct path *path)
{
    struct cairn_walk walk;
    if (path->depth < path->length)
        return;
    retire(0);
    retire(1);
    period.token = cairn_runtime_grace_start(runtime);
    ck_assert_uint_eq(free_unused(&walk, 0), 1);
}

START_TEST(a_grace_period_frees_afterwards_what_was_kept)
{
    struct path path = {.numbers = {1}, .length = 1, .visit = free_during_period};
    ck_assert_int_eq(step(&path), 1);
    ck_assert_uint_eq(cairn_runtime_grace_end(runtime, period.token), 1);
    ck_assert_uint_eq(retired_count(), 0);
}
END_TEST

/* ---- A model ---- */

static unsigned seed;

static unsigned below(unsigned limit) { return (unsigned)rand_r(&seed) % limit; }

/* Nothing is entered after the first call: the path returns from then on. */
static void retire_some(struct path *path)
{
    unsigned number = below(VERSIONS);
    if (below(3) == 0 && versions[number].engine != NULL)
        retire(number);
    if (below(2) == 0)
        assert_frees_unused(path);
}

START_TEST(random_calls_free_exactly_what_has_no_frame)
{
    enum { ROUNDS = 60 };
    const char *given = getenv("CAIRN_TEST_SEED");
    seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
    printf("seed: %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        struct path path = {.length = below(PATH_MAX_LENGTH + 1), .visit = retire_some};
        for (unsigned i = 0; i < VERSIONS; i++)
            if (versions[i].engine == NULL) {
                assert_frees_unused(&path);
                load(i, "uwtable");
            }
        for (unsigned i = 0; i < path.length; i++)
            path.numbers[i] = below(VERSIONS);
        ck_assert_int_eq(step(&path), path.length);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("free_unused");
    TCase *tests = tcase_create("free_unused");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, each_version_is_freed_when_its_last_frame_has_returned);
    tcase_add_test(tests, a_module_with_references_is_kept_until_they_are_removed);
    tcase_add_test(tests, without_stacks_all_retired_modules_are_freed);
    tcase_add_test(tests, nothing_is_freed_if_a_frame_has_no_unwind_rules);
    tcase_add_test(tests, walks_that_could_miss_frames_are_refused);
    tcase_add_test(tests, stopped_threads_keep_what_they_are_in);
    tcase_add_test(tests, a_suspended_coroutine_is_one_more_stack);
    tcase_add_test(tests, a_handler_of_an_exit_keeps_the_frame_that_was_left);
    tcase_add_test(tests, a_function_that_was_entered_in_place_of_a_frame_is_kept_instead_of_it);
    tcase_add_test(tests, a_grace_period_may_end_meanwhile_in_another_thread);
    tcase_add_test(tests, a_grace_period_frees_afterwards_what_was_kept);
    tcase_add_test(tests, random_calls_free_exactly_what_has_no_frame);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
