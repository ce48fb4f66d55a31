/*
 * Tests of inline caches and engines in forked children. A child has the caches of the
 * fork, regardless of what the parent adds, removes and frees later. A child can call every entry
 * point of both.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/fork_support.h"
#include "tests/ic_support.h"
#include "tests/mode_support.h"
#include "llvm/engine.h"

#include "code/state.h"
#include "runtime/runtime.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child that hangs terminates itself. */
enum { CHILD_SECONDS = 30 };

/* Assertion for children, and for threads of a process that forks: Check's assertions take a lock.
 */
static void expect_at(bool condition, const char *condition_text, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, condition_text);
    _exit(1);
}
#define expect(condition) expect_at((condition), #condition, __LINE__)

static void wait_for(pid_t child)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child died of signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

enum { SHAPE = 7, OTHER_SHAPE = 8, MISSED = 1, FIRST_VALUE = 100 };

struct object {
    uint32_t shape;
};

static const struct ic_function functions[] = {
    {.calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
     .result = INTEGER(64),
     .operand_count = 1,
     .operands = {POINTER}},
    {.calling_convention = CAIRN_CALLING_CONVENTION_C,
     .result = INTEGER(64),
     .operand_count = 1,
     .operands = {POINTER}},
    /* Creates no cache. */
    {.calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
     .result = INTEGER(64),
     .operand_count = 1,
     .operands = {POINTER}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, CACHES = FUNCTIONS - 1 };

struct world {
    cairn_runtime *runtime;
    struct ic_program program;
    cairn_ic *caches[CACHES];
    cairn_engine *engine; /* its module is not loaded yet */
    LLVMContextRef context;
    /* The number of finished changes. The memory is private, so a child has the value of the moment
     * of the fork. */
    _Atomic uint64_t finished;
    _Atomic bool stop;
};

static void missed(struct cairn_ic_miss *miss, void *user)
{
    struct cairn_value result = cairn_value_of_integer(64, MISSED);
    (void)user;
    expect(cairn_ic_return(miss, &result, NULL) == CAIRN_OK);
}

static void leave_nothing(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static struct cairn_ic_case constant(uint32_t shape, uint64_t value)
{
    return (struct cairn_ic_case){
        .guard = {.width = 4, .key = shape}, .action = CAIRN_IC_CONSTANT, .constant = value};
}

static const char *const text = "define i64 @f(i64 %x) {\n"
                                "  %y = add i64 %x, 17\n"
                                "  ret i64 %y\n"
                                "}\n";

static void create_world(struct world *world, enum cairn_code_mode mode)
{
    struct cairn_error error = {0};
    const struct cairn_ic_options options = {.handler = missed, .counts_hits = true};
    const struct cairn_runtime_options runtime_options = {.code_mode = mode};
    memset(world, 0, sizeof *world);
    ic_assert_done(cairn_runtime_create(&runtime_options, &world->runtime, &error), error);
    ic_load(&world->program, world->runtime, functions, FUNCTIONS, IC_FIRST_SITE);
    for (int i = 0; i < CACHES; i++) {
        struct cairn_ic_case added = constant(SHAPE, FIRST_VALUE);
        ic_assert_done(
            cairn_ic_create(world->program.sites[i], &options, &world->caches[i], &error), error);
        ic_assert_done(cairn_ic_add(world->caches[i], &added, CAIRN_RELAXED, &error), error);
    }
    world->context = LLVMContextCreate();
    ic_assert_done(cairn_engine_create(world->runtime, support_parse_valid(world->context, text),
                                       NULL, &world->engine, &error),
                   error);
}

static void destroy_world(struct world *world)
{
    cairn_engine_destroy(world->engine);
    LLVMContextDispose(world->context);
    ic_unload(&world->program);
    cairn_runtime_destroy(world->runtime);
}

static uint64_t get(const struct world *world, int function, uint32_t shape)
{
    struct ic_access access = {.signs = {0}};
    const struct object object = {.shape = shape};
    uint64_t result;
    ic_set_pointer(&access, 0, &object);
    world->program.functions[function](&access);
    memcpy(&result, access.result, sizeof result);
    return result;
}

static void wait_some(void)
{
    const struct timespec some = {.tv_nsec = 300000};
    nanosleep(&some, NULL);
}

static void set_all(struct world *world, uint64_t value, enum cairn_strength strength)
{
    for (int i = 0; i < CACHES; i++) {
        struct cairn_ic_case added = constant(SHAPE, value);
        expect(cairn_ic_add(world->caches[i], &added, strength, NULL) == CAIRN_OK);
    }
}

/* Changes the cache in a loop. Each change makes new code, so the place of the old code is soon
 * reused. */
static void *change_all_the_time(void *user)
{
    struct world *world = user;
    while (!atomic_load(&world->stop)) {
        uint64_t next = atomic_load(&world->finished) + 1;
        set_all(world, FIRST_VALUE + next, CAIRN_RELAXED);
        atomic_store(&world->finished, next);
        if (next % 3 == 0)
            cairn_runtime_quiesce(world->runtime);
    }
    return NULL;
}

static void expect_what_was_finished(struct world *world, int function)
{
    uint64_t finished = FIRST_VALUE + atomic_load(&world->finished);
    uint64_t first = get(world, function, SHAPE);
    expect(first == finished || first == finished + 1);
    for (int i = 0; i < 3; i++) {
        wait_some();
        expect(get(world, function, SHAPE) == first);
        expect(get(world, function, OTHER_SHAPE) == MISSED);
    }
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    cairn_ic_describe(world->caches[function], cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    expect(description.case_count == 1 && description.seen[0].entry.constant == first);
    expect(description.misses >= 3 && description.seen[0].hits >= 1);
}

static void change_in_child(struct world *world, int function)
{
    struct cairn_ic_case added = constant(OTHER_SHAPE, 5);
    expect(cairn_ic_add(world->caches[function], &added, CAIRN_RELAXED, NULL) == CAIRN_OK);
    uint64_t first = get(world, function, SHAPE);
    wait_some();
    expect(get(world, function, SHAPE) == first);
    expect(get(world, function, OTHER_SHAPE) == 5);
    cairn_runtime_quiesce(world->runtime);
    set_all(world, 6, CAIRN_RELAXED);
    expect(get(world, function, SHAPE) == 6);
    expect(ic_reset(world->caches[function], CAIRN_RELAXED, NULL) == CAIRN_OK);
    expect(get(world, function, SHAPE) == MISSED);
}

START_TEST(child_has_the_caches_of_the_moment_of_the_fork)
{
    enum { CHILDREN = 60 };
    struct world world;
    pthread_t thread;
    if (fork_breaks_the_allocator())
        return;
    create_world(&world, site_modes[_i]);
    ck_assert_int_eq(pthread_create(&thread, NULL, change_all_the_time, &world), 0);
    for (int i = 0; i < fork_rounds(CHILDREN); i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            fork_limit_time(CHILD_SECONDS);
            expect_what_was_finished(&world, i % CACHES);
            change_in_child(&world, i % CACHES);
            _exit(0);
        }
        wait_for(child);
    }
    atomic_store(&world.stop, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < CACHES; i++)
        ck_assert_uint_eq(get(&world, i, SHAPE), FIRST_VALUE + world.finished);
    destroy_world(&world);
}
END_TEST

/* ---- Both directions at once ---- */

/* The cache that one process's thread leaves alone, while the other process changes it. */
enum { CHANGED_BY_THREAD, KEPT };

/* Changes one cache, calls it, and loads and retires functions in a loop. Each change retires code,
 * so the place of freed code is soon reused, by caches and by functions. */
static void *change_one_all_the_time(void *user)
{
    struct world *world = user;
    cairn_exit *exit;
    for (uint64_t i = 1; !atomic_load(&world->stop); i++) {
        struct cairn_ic_case added = constant(SHAPE, FIRST_VALUE + i);
        expect(cairn_ic_add(world->caches[CHANGED_BY_THREAD], &added, CAIRN_RELAXED, NULL) ==
               CAIRN_OK);
        expect(get(world, CHANGED_BY_THREAD, SHAPE) == FIRST_VALUE + i);
        expect(cairn_exit_create(world->runtime, leave_nothing, NULL, &exit, NULL) == CAIRN_OK);
        cairn_exit_destroy(exit);
        cairn_runtime_quiesce(world->runtime);
        atomic_store(&world->finished, i);
    }
    return NULL;
}

static void start_changing(struct world *world, pthread_t *thread)
{
    atomic_store(&world->stop, false);
    atomic_store(&world->finished, 0);
    expect(pthread_create(thread, NULL, change_one_all_the_time, world) == 0);
}

static void stop_changing(struct world *world, pthread_t thread)
{
    while (atomic_load(&world->finished) < 3)
        wait_some();
    atomic_store(&world->stop, true);
    expect(pthread_join(thread, NULL) == 0);
}

/* The child's thread changes the cache that the parent's thread changes, and the child changes the
 * other one, which its parent keeps. */
static void change_both_in_child(struct world *world)
{
    pthread_t thread;
    expect(get(world, KEPT, SHAPE) == FIRST_VALUE);
    start_changing(world, &thread);
    for (uint64_t i = 0; i < 20; i++) {
        struct cairn_ic_case added = constant(SHAPE, 1 + i);
        expect(cairn_ic_add(world->caches[KEPT], &added, CAIRN_RELAXED, NULL) == CAIRN_OK);
        expect(get(world, KEPT, SHAPE) == 1 + i);
        expect(get(world, KEPT, OTHER_SHAPE) == MISSED);
        if (i % 5 == 0)
            expect(ic_reset(world->caches[KEPT], CAIRN_RELAXED, NULL) == CAIRN_OK);
    }
    stop_changing(world, thread);
}

static void expect_kept(const struct world *world)
{
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    struct cairn_ic_description description;
    ck_assert_uint_eq(get(world, KEPT, SHAPE), FIRST_VALUE);
    ck_assert_uint_eq(get(world, KEPT, OTHER_SHAPE), MISSED);
    cairn_ic_describe(world->caches[KEPT], cases, CAIRN_IC_CASE_LIMIT_MAX, &description);
    ck_assert_uint_eq(description.case_count, 1);
    ck_assert_uint_eq(description.seen[0].entry.constant, FIRST_VALUE);
}

START_TEST(neither_sees_the_caches_that_the_other_changes)
{
    enum { CHILDREN = 20 };
    struct world world;
    pthread_t thread;
    if (fork_breaks_the_allocator())
        return;
    create_world(&world, site_modes[_i]);
    start_changing(&world, &thread);
    for (int i = 0; i < fork_rounds(CHILDREN); i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            fork_limit_time(CHILD_SECONDS);
            change_both_in_child(&world);
            _exit(0);
        }
        expect_kept(&world);
        wait_for(child);
        expect_kept(&world);
    }
    stop_changing(&world, thread);
    destroy_world(&world);
}
END_TEST

/* ---- Every entry point ---- */

typedef enum cairn_status enter_function(struct world *world);

static enum cairn_status enter_create(struct world *world)
{
    const struct cairn_ic_options options = {.handler = missed};
    cairn_ic *ic;
    return cairn_ic_create(world->program.sites[CACHES], &options, &ic, NULL);
}

static enum cairn_status enter_add(struct world *world)
{
    struct cairn_ic_case added = constant(OTHER_SHAPE, 5);
    return cairn_ic_add(world->caches[0], &added, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_remove(struct world *world)
{
    struct cairn_ic_case added = constant(SHAPE, 0);
    return ic_remove(world->caches[0], &added.guard, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_reset(struct world *world)
{
    return ic_reset(world->caches[0], CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_destroy(struct world *world)
{
    return cairn_ic_destroy(world->caches[0], CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_describe(struct world *world)
{
    struct cairn_ic_description description;
    cairn_ic_describe(world->caches[0], NULL, 0, &description);
    expect(description.case_count == 1);
    return CAIRN_OK;
}

static enum cairn_status enter_state(struct world *world)
{
    expect(cairn_ic_state(world->caches[0]) == CAIRN_IC_MONOMORPHIC);
    return CAIRN_OK;
}

static enum cairn_status enter_site_ic(struct world *world)
{
    expect(cairn_site_ic(world->program.sites[0]) == world->caches[0]);
    return CAIRN_OK;
}

static bool count_one(const struct cairn_ic_description *description, void *user)
{
    (void)description;
    ++*(int *)user;
    return true;
}

static enum cairn_status enter_visit(struct world *world)
{
    int count = 0;
    cairn_runtime_visit_ics(world->runtime, count_one, &count);
    expect(count == CACHES);
    return CAIRN_OK;
}

static enum cairn_status enter_module_reset(struct world *world)
{
    cairn_module *module =
        cairn_runtime_find_module(world->runtime, (uintptr_t)world->program.functions[0]);
    return ic_reset_module(world->runtime, module, CAIRN_RELAXED, NULL, NULL);
}

static enum cairn_status enter_remove_key(struct world *world)
{
    return ic_remove_key(world->runtime, SHAPE, CAIRN_RELAXED, NULL, NULL);
}

static enum cairn_status enter_change(struct world *world)
{
    struct cairn_ic_case added = constant(OTHER_SHAPE, 3);
    const struct cairn_ic_change changes[] = {ic_adding(world->caches[0], &added),
                                              ic_adding(world->caches[1], &added)};
    return cairn_ics_change(changes, 2, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_hit(struct world *world)
{
    expect(get(world, 0, SHAPE) >= FIRST_VALUE);
    return CAIRN_OK;
}

static enum cairn_status enter_miss(struct world *world)
{
    expect(get(world, 1, OTHER_SHAPE) == MISSED);
    return CAIRN_OK;
}

static enum cairn_status call_engine(cairn_engine *engine)
{
    struct cairn_error error;
    int64_t (*f)(int64_t) =
        (int64_t(*)(int64_t))(uintptr_t)support_compiled_function(engine, "f", &error);
    if (f == NULL)
        return error.status;
    expect(f(3) == 20);
    return CAIRN_OK;
}

static enum cairn_status enter_engine_function(struct world *world)
{
    return call_engine(world->engine);
}

static enum cairn_status enter_engine_finalise(struct world *world)
{
    return cairn_engine_compile(world->engine, NULL);
}

static enum cairn_status enter_engine_add(struct world *world)
{
    LLVMModuleRef module =
        support_parse_valid(world->context, "define i64 @g(i64 %x) {\n  ret i64 %x\n}\n");
    return cairn_engine_add_module(world->engine, module, NULL);
}

static enum cairn_status enter_engine_create(struct world *world)
{
    cairn_engine *engine;
    enum cairn_status status = cairn_engine_create(
        world->runtime, support_parse_valid(world->context, text), NULL, &engine, NULL);
    if (status == CAIRN_OK)
        status = call_engine(engine);
    if (status == CAIRN_OK)
        cairn_engine_destroy(engine);
    return status;
}

static enum cairn_status enter_engine_destroy(struct world *world)
{
    cairn_engine_destroy(world->engine);
    return CAIRN_OK;
}

static enum cairn_status enter_program_dispose(struct world *world)
{
    cairn_engine_destroy(world->program.engine);
    return CAIRN_OK;
}

static enum cairn_status enter_memory_manager(struct world *world)
{
    cairn_memory_manager *manager;
    enum cairn_status status = cairn_memory_manager_create(world->runtime, NULL, &manager, NULL);
    if (status == CAIRN_OK)
        LLVMDisposeMCJITMemoryManager(cairn_memory_manager_llvm(manager));
    return status;
}

static const struct entry {
    const char *name;
    enter_function *enter;
} entries[] = {
    {"cairn_ic_create", enter_create},
    {"cairn_ic_add", enter_add},
    {"the removal of a case", enter_remove},
    {"the reset of a cache", enter_reset},
    {"cairn_ic_destroy", enter_destroy},
    {"cairn_ic_describe", enter_describe},
    {"cairn_ic_state", enter_state},
    {"cairn_site_ic", enter_site_ic},
    {"cairn_runtime_visit_ics", enter_visit},
    {"the reset of a module", enter_module_reset},
    {"the removal of a key", enter_remove_key},
    {"cairn_ics_change", enter_change},
    {"a hit", enter_hit},
    {"a miss", enter_miss},
    {"cairn_engine_function", enter_engine_function},
    {"cairn_engine_compile", enter_engine_finalise},
    {"cairn_engine_add_module", enter_engine_add},
    {"cairn_engine_create", enter_engine_create},
    {"cairn_engine_destroy", enter_engine_destroy},
    {"cairn_engine_destroy with caches", enter_program_dispose},
    {"cairn_memory_manager_create", enter_memory_manager},
};
enum { ENTRY_COUNT = sizeof entries / sizeof *entries };

static void enter_in_child(struct world *world, const struct entry *entry)
{
    fork_limit_time(CHILD_SECONDS);
    enum cairn_status status = entry->enter(world);
    if (status != CAIRN_OK)
        fprintf(stderr, "%s: %s\n", entry->name, cairn_status_name(status));
    expect(status == CAIRN_OK);
    if (entry->enter != enter_program_dispose && entry->enter != enter_destroy)
        change_in_child(world, 1);
    _exit(0);
}

START_TEST(every_entry_point_works_in_a_child_while_caches_change)
{
    enum { CHILDREN_EACH = 2 };
    struct world world;
    pthread_t thread;
    if (fork_breaks_the_allocator())
        return;
    create_world(&world, site_modes[_i]);
    ck_assert_int_eq(pthread_create(&thread, NULL, change_all_the_time, &world), 0);
    for (int i = 0; i < CHILDREN_EACH * ENTRY_COUNT; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            enter_in_child(&world, &entries[i % ENTRY_COUNT]);
        wait_for(child);
    }
    atomic_store(&world.stop, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(get(&world, 0, SHAPE), FIRST_VALUE + world.finished);
    destroy_world(&world);
}
END_TEST

/* Creates a child as _Fork does: no fork handler is called. */
START_TEST(after_fork_renews_all_locks_for_every_entry_point)
{
    struct world world;
    create_world(&world, site_modes[_i]);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        pthread_mutex_lock(&world.runtime->ics.lock);
        pthread_mutex_lock(&world.runtime->lock);
        pthread_mutex_lock(&world.runtime->space->lock);
        pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0, 0, 0, 0);
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            fork_limit_time(CHILD_SECONDS);
            expect(cairn_runtime_after_fork(world.runtime, NULL) == CAIRN_OK);
            enter_in_child(&world, &entries[i]);
        }
        pthread_mutex_unlock(&world.runtime->space->lock);
        pthread_mutex_unlock(&world.runtime->lock);
        pthread_mutex_unlock(&world.runtime->ics.lock);
        wait_for(child);
    }
    destroy_world(&world);
}
END_TEST

/* ---- A fork while a module is being loaded ---- */

/* LLVM holds a lock of this engine meanwhile, so the child cannot use it. It can use other engines.
 */
static void fork_in_hook(cairn_module *module, void *user)
{
    struct world *world = user;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fork_limit_time(CHILD_SECONDS);
        expect(cairn_module_publish(module, NULL) == CAIRN_OK);
        expect(call_engine(world->engine) == CAIRN_OK);
        change_in_child(world, 0);
        _exit(0);
    }
    wait_for(child);
}

START_TEST(child_forked_while_a_module_is_loaded_has_a_runtime_that_works)
{
    struct world world;
    cairn_engine *engine;
    struct cairn_error error = {0};
    create_world(&world, site_modes[_i]);
    const struct cairn_engine_options options = {
        .modules = {.before_publish = fork_in_hook, .user = &world}};
    ic_assert_done(cairn_engine_create(world.runtime, support_parse_valid(world.context, text),
                                       &options, &engine, &error),
                   error);
    ck_assert_ok(call_engine(engine));
    cairn_engine_destroy(engine);
    destroy_world(&world);
}
END_TEST

/* ---- A fork in a visitor, which holds the lock of the caches ---- */

static bool fork_in_visitor(const struct cairn_ic_description *description, void *user)
{
    pid_t *child = user;
    (void)description;
    fflush(NULL);
    if (*child == 0) {
        *child = fork();
        if (*child == 0) {
            fork_limit_time(CHILD_SECONDS);
            *child = -1;
        }
    }
    return true;
}

START_TEST(visitor_may_fork)
{
    struct world world;
    pid_t child = 0;
    create_world(&world, site_modes[_i]);
    cairn_runtime_visit_ics(world.runtime, fork_in_visitor, &child);
    if (child == -1) {
        change_in_child(&world, 0);
        _exit(0);
    }
    wait_for(child);
    change_in_child(&world, 0);
    destroy_world(&world);
}
END_TEST

struct visit {
    pid_t child;
    int count;
};

/* Forks in the first visit. */
static bool change_after_fork(const struct cairn_ic_description *description, void *user)
{
    struct visit *visit = user;
    struct cairn_ic_case added = constant(OTHER_SHAPE, 5);
    if (visit->count++ == 0) {
        fflush(NULL);
        visit->child = fork();
    }
    if (visit->child == 0) {
        fork_limit_time(CHILD_SECONDS);
        expect(cairn_ic_add(description->ic, &added, CAIRN_RELAXED, NULL) == CAIRN_ERROR_STATE);
        expect(cairn_ic_destroy(description->ic, CAIRN_RELAXED, NULL) == CAIRN_ERROR_STATE);
    }
    return true;
}

START_TEST(visit_goes_on_in_the_child_of_its_visitor)
{
    struct world world;
    struct visit visit = {0};
    create_world(&world, site_modes[_i]);
    cairn_runtime_visit_ics(world.runtime, change_after_fork, &visit);
    if (visit.child == 0) {
        expect(visit.count == CACHES);
        change_in_child(&world, 0);
        _exit(0);
    }
    ck_assert_int_eq(visit.count, CACHES);
    wait_for(visit.child);
    destroy_world(&world);
}
END_TEST

static void *fork_all_the_time(void *user)
{
    struct world *world = user;
    while (!atomic_load(&world->stop)) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        expect(waitpid(child, NULL, 0) == child);
    }
    return NULL;
}

/* Each of these waits for a thread that forks. */
static bool fork_or_create_runtime(const struct cairn_ic_description *description, void *user)
{
    struct visit *visit = user;
    cairn_runtime *runtime;
    (void)description;
    if (++visit->count % 2 == 0) {
        expect(cairn_runtime_create(NULL, &runtime, NULL) == CAIRN_OK);
        cairn_runtime_destroy(runtime);
        return true;
    }
    visit->child = fork();
    if (visit->child == 0)
        _exit(0);
    expect(waitpid(visit->child, NULL, 0) == visit->child);
    return true;
}

START_TEST(visitor_may_fork_and_create_runtimes_while_another_thread_forks)
{
    enum { VISITS = 300 };
    struct world world;
    struct visit visit = {0};
    pthread_t thread;
    create_world(&world, site_modes[_i]);
    fflush(NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, fork_all_the_time, &world), 0);
    for (int i = 0; i < VISITS; i++)
        cairn_runtime_visit_ics(world.runtime, fork_or_create_runtime, &visit);
    atomic_store(&world.stop, true);
    pthread_join(thread, NULL);
    destroy_world(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forks of inline caches and engines");
    TCase *tests = tcase_create("fork");
    int first = site_first_mode();
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, child_has_the_caches_of_the_moment_of_the_fork, first, SITE_MODES);
    tcase_add_loop_test(tests, neither_sees_the_caches_that_the_other_changes, first, SITE_MODES);
    tcase_add_loop_test(tests, every_entry_point_works_in_a_child_while_caches_change, first,
                        SITE_MODES);
    tcase_add_loop_test(tests, after_fork_renews_all_locks_for_every_entry_point, first,
                        SITE_MODES);
    tcase_add_loop_test(tests, child_forked_while_a_module_is_loaded_has_a_runtime_that_works,
                        first, SITE_MODES);
    tcase_add_loop_test(tests, visitor_may_fork, first, SITE_MODES);
    tcase_add_loop_test(tests, visit_goes_on_in_the_child_of_its_visitor, first, SITE_MODES);
    tcase_add_loop_test(tests, visitor_may_fork_and_create_runtimes_while_another_thread_forks,
                        first, SITE_MODES);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
