/*
 * Tests of runtimes in forked children. A child is a copy of its parent at the moment of the fork,
 * even if other threads of the parent patch, load and free during the fork and after it. Every
 * entry point can be called in a child.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "tests/code_support.h"
#include "tests/fork_support.h"
#include "tests/site_support.h"

#include "code/state.h"
#include "runtime/loader.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "site/site.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A child that hangs is ended by a signal after this time. */
enum { CHILD_SECONDS = 20 };

/* Limits the time of a child, which must not wait for locks that the parent's threads held. */
static void limit_time(void) { fork_limit_time(CHILD_SECONDS); }

/* Waits long enough for the parent to change something. */
static void wait_some(void)
{
    const struct timespec some = {.tv_nsec = 300000};
    nanosleep(&some, NULL);
}

/* Makes a child for which no fork handlers run, as _Fork does. */
static pid_t clone_process(void) { return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0, 0, 0, 0); }

/* ---- A site that is patched all the time ---- */

#define TARGETS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
enum { TARGET_COUNT = 8 };

/* The functions are in the test program, so that the site calls them through veneers. */
#define DEFINE_TARGET(value)                                                                       \
    static long target_##value(void) { return value; }
TARGETS(DEFINE_TARGET)
#define TARGET_ADDRESS(value) (const void *)(uintptr_t)target_##value,
static const void *const far_targets[TARGET_COUNT] = {TARGETS(TARGET_ADDRESS)};

enum { PATCHERS_MAX = 3 };

struct patchers {
    struct site_fixture fixture;
    const void *targets[TARGET_COUNT]; /* function number i returns i */
    enum cairn_strength strength;
    /* Number of patches that have returned. It is in private memory, so a child has the value at
     * its fork. */
    _Atomic uint64_t finished;
    _Atomic bool stop;
    int count;
    pthread_t threads[PATCHERS_MAX];
};

static void patch(const struct patchers *patchers, uint64_t number)
{
    support_expect(cairn_site_call(patchers->fixture.site, patchers->targets[number % TARGET_COUNT],
                                   patchers->strength, NULL) == CAIRN_OK);
}

/* A single patcher also calls its target, which must not be that of a child. */
static void *patch_all_the_time(void *user)
{
    struct patchers *patchers = user;
    while (!atomic_load(&patchers->stop)) {
        uint64_t next = atomic_load(&patchers->finished) + 1;
        patch(patchers, next);
        if (patchers->count == 1)
            support_expect(patchers->fixture.function() == (long)(next % TARGET_COUNT));
        atomic_store(&patchers->finished, next);
    }
    return NULL;
}

static void load_site(struct patchers *patchers, enum cairn_code_mode mode)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_shape shape = site_calling_patchpoint(region);
    site_load(&patchers->fixture, mode, &shape);
    memcpy(patchers->targets, far_targets, sizeof far_targets);
    if (!support_runtime_statistics(patchers->fixture.runtime).can_synchronise)
        patchers->strength = CAIRN_RELAXED;
    patch(patchers, 0);
}

static void start_patching(struct patchers *patchers, int count)
{
    patchers->count = count;
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&patchers->threads[i], NULL, patch_all_the_time, patchers),
                         0);
}

static void stop_patching(struct patchers *patchers)
{
    atomic_store(&patchers->stop, true);
    for (int i = 0; i < patchers->count; i++)
        pthread_join(patchers->threads[i], NULL);
    long last = (long)(patchers->finished % TARGET_COUNT);
    if (patchers->count == 1)
        ck_assert_int_eq(patchers->fixture.function(), last);
    site_unload(&patchers->fixture);
}

/* The child's site must keep its target, and then the target that the child sets. */
static void expect_to_stay(struct patchers *patchers, long first)
{
    for (int i = 0; i < 3; i++) {
        wait_some();
        support_expect(patchers->fixture.function() == first);
    }
    struct cairn_site_description description = site_describe(patchers->fixture.site);
    support_expect(description.state == CAIRN_SITE_CALL);
    support_expect(description.target == (uintptr_t)patchers->targets[first]);
    patch(patchers, (uint64_t)first + 3);
    for (int i = 0; i < 2; i++) {
        support_expect(patchers->fixture.function() == (first + 3) % TARGET_COUNT);
        wait_some();
    }
}

/* The site must call the target at the fork, or that of a patch that had not returned yet. */
static void expect_what_was_finished(struct patchers *patchers)
{
    uint64_t finished = atomic_load(&patchers->finished);
    long first = patchers->fixture.function();
    support_expect(first == (long)(finished % TARGET_COUNT) ||
                   first == (long)((finished + 1) % TARGET_COUNT));
    expect_to_stay(patchers, first);
}

/* With several patchers, the site must call the target of some patch. */
static void expect_some_target(struct patchers *patchers)
{
    long first = patchers->fixture.function();
    support_expect(first >= 0 && first < TARGET_COUNT);
    expect_to_stay(patchers, first);
}

static void expect_the_same_in_a_grandchild(struct patchers *patchers)
{
    long first = patchers->fixture.function();
    pid_t child = fork();
    support_expect(child >= 0);
    support_expect(patchers->fixture.function() == first);
    expect_to_stay(patchers, first);
    if (child > 0)
        support_wait(child);
}

static void fork_and_expect(struct patchers *patchers, int children,
                            void (*expect)(struct patchers *patchers))
{
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            limit_time();
            expect(patchers);
            _exit(0);
        }
        support_wait(child);
    }
}

/* ---- Patches by the parent ---- */

enum { CHILDREN = 40 };

static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC};

START_TEST(child_calls_the_far_target_of_the_moment_of_the_fork)
{
    struct patchers patchers = {.strength = strengths[_i % 2]};
    load_site(&patchers, support_modes[_i / 2]);
    start_patching(&patchers, 1);
    fork_and_expect(&patchers, fork_rounds(CHILDREN), expect_what_was_finished);
    stop_patching(&patchers);
}
END_TEST

START_TEST(child_calls_the_near_or_far_target_of_the_moment_of_the_fork)
{
    struct patchers patchers = {.strength = strengths[_i % 2]};
    load_site(&patchers, support_modes[_i / 2]);
    patchers.targets[1] = patchers.fixture.near_one;
    patchers.targets[2] = patchers.fixture.near_two;
    start_patching(&patchers, 1);
    fork_and_expect(&patchers, fork_rounds(CHILDREN), expect_what_was_finished);
    stop_patching(&patchers);
}
END_TEST

START_TEST(child_calls_a_target_where_several_threads_patch_one_site)
{
    struct patchers patchers = {.strength = CAIRN_RELAXED};
    load_site(&patchers, support_modes[_i]);
    patchers.targets[1] = patchers.fixture.near_one;
    start_patching(&patchers, PATCHERS_MAX);
    fork_and_expect(&patchers, fork_rounds(CHILDREN), expect_some_target);
    stop_patching(&patchers);
}
END_TEST

START_TEST(grandchild_calls_what_its_parent_calls)
{
    struct patchers patchers = {.strength = CAIRN_RELAXED};
    load_site(&patchers, support_modes[_i]);
    start_patching(&patchers, 1);
    fork_and_expect(&patchers, fork_rounds(CHILDREN / 4), expect_the_same_in_a_grandchild);
    stop_patching(&patchers);
}
END_TEST

/* Two patchers that overlap may leave the noted bits of one and the word of the other. A fork must
 * use the word. */
START_TEST(child_has_the_words_whatever_the_notes_are)
{
    struct patchers patchers = {.strength = CAIRN_RELAXED};
    load_site(&patchers, support_modes[_i]);
    patch(&patchers, 3);
    uint64_t noted = patchers.fixture.site->noted_bits;
    patch(&patchers, 5);
    patchers.fixture.site->noted_bits = noted;
    patchers.finished = 5;
    fork_and_expect(&patchers, 1, expect_what_was_finished);
    stop_patching(&patchers);
}
END_TEST

/* ---- Loading and freeing by the parent ---- */

enum { FILLING_BYTES = 64 << 10, SMALL_BYTES = 64 };

/* Loads a module of one function that returns `value`. */
static cairn_module *load_function(cairn_runtime *runtime, int value, size_t bytes,
                                   uint8_t **function)
{
    cairn_loader *loader;
    cairn_module *module;
    support_expect(cairn_loader_create(runtime, "function", &loader, NULL) == CAIRN_OK);
    *function = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, bytes, 64, NULL, NULL);
    support_expect(*function != NULL);
    arch_host()->fill_nops(arch_host(), *function, bytes);
    arch_host()->encode_self_test(arch_host(), value, *function);
    support_expect(cairn_loader_finish(loader, &module, NULL) == CAIRN_OK);
    support_expect(cairn_module_publish(module, NULL) == CAIRN_OK);
    return module;
}

static void unload_all(cairn_runtime *runtime, cairn_module *module)
{
    cairn_module_retire(module);
    cairn_runtime_quiesce(runtime);
}

START_TEST(child_runs_what_its_parent_has_freed_and_loaded_over)
{
    cairn_runtime *runtime = site_runtime(support_modes[_i]);
    uint8_t *function;
    cairn_module *module = load_function(runtime, 11, FILLING_BYTES, &function);
    int ends[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        limit_time();
        support_expect(read(ends[0], &byte, 1) == 1);
        support_expect(support_call(function) == 11);
        support_expect(cairn_runtime_find_module(runtime, (uintptr_t)function) == module);
        /* The child also loads over memory that it has freed. */
        uint8_t *another;
        unload_all(runtime, module);
        support_expect(load_function(runtime, 33, FILLING_BYTES, &another) != NULL);
        support_expect(another == function && support_call(another) == 33);
        _exit(0);
    }
    uint8_t *second;
    unload_all(runtime, module);
    module = load_function(runtime, 22, FILLING_BYTES, &second);
    ck_assert_ptr_eq(second, function);
    ck_assert_int_eq(write(ends[1], &byte, 1), 1);
    support_wait(child);
    ck_assert_int_eq(support_call(second), 22);
    unload_all(runtime, module);
    cairn_runtime_destroy(runtime);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- Both directions at once ---- */

enum { KEPT = 24, CHANGED = 8 };

/* A runtime in which one thread patches a site and another loads and retires modules, and modules
 * that both leave alone. */
struct traffic {
    struct patchers patchers;
    cairn_runtime *runtime;
    cairn_module *kept[KEPT];
    uint8_t *code[KEPT];
    int values[KEPT];
    _Atomic bool stop;
    pthread_t loader;
};

/* Loads small and large modules, as objects and as MCJIT load them, over what was just freed. */
static cairn_module *load_some(cairn_runtime *runtime, int i, uint8_t **function)
{
    cairn_loader *loader;
    cairn_module *module;
    struct code_place place;
    size_t bytes = i % 5 == 0 ? FILLING_BYTES : SMALL_BYTES;
    int value = 1 + i % 100;
    if (i % 2 == 0)
        return load_function(runtime, value, bytes, function);
    support_expect(cairn_loader_create(runtime, "reserved", &loader, NULL) == CAIRN_OK);
    support_expect(loader_reserve(loader, CAIRN_SECTION_CODE, bytes, 64, NULL, &place, NULL) ==
                   CAIRN_OK);
    *function = (uint8_t *)(uintptr_t)place.address;
    arch_host()->fill_nops(arch_host(), place.bytes, bytes);
    arch_host()->encode_self_test(arch_host(), value, place.bytes);
    support_expect(cairn_loader_finish(loader, &module, NULL) == CAIRN_OK);
    support_expect(cairn_module_publish(module, NULL) == CAIRN_OK);
    return module;
}

static void *load_all_the_time(void *user)
{
    enum { LOADED = 6 };
    struct traffic *traffic = user;
    cairn_module *modules[LOADED];
    uint8_t *function;
    for (int i = 0; !atomic_load(&traffic->stop); i++) {
        for (int k = 0; k < LOADED; k++) {
            modules[k] = load_some(traffic->runtime, i + k, &function);
            support_expect(support_call(function) == 1 + (i + k) % 100);
        }
        for (int k = 0; k < LOADED; k++)
            cairn_module_retire(modules[k]);
        cairn_runtime_quiesce(traffic->runtime);
    }
    return NULL;
}

static void start_traffic(struct traffic *traffic)
{
    atomic_store(&traffic->stop, false);
    atomic_store(&traffic->patchers.stop, false);
    traffic->patchers.count = 1;
    support_expect(pthread_create(&traffic->patchers.threads[0], NULL, patch_all_the_time,
                                  &traffic->patchers) == 0);
    support_expect(pthread_create(&traffic->loader, NULL, load_all_the_time, traffic) == 0);
}

static void end_traffic(struct traffic *traffic)
{
    atomic_store(&traffic->stop, true);
    atomic_store(&traffic->patchers.stop, true);
    support_expect(pthread_join(traffic->patchers.threads[0], NULL) == 0);
    support_expect(pthread_join(traffic->loader, NULL) == 0);
}

static void expect_kept(const struct traffic *traffic)
{
    for (int i = 0; i < KEPT; i++)
        support_expect(support_call(traffic->code[i]) == traffic->values[i]);
}

/* What the child changes, while its own threads are busy, its parent must not see. */
static void change_kept(struct traffic *traffic)
{
    expect_kept(traffic);
    expect_what_was_finished(&traffic->patchers);
    traffic->patchers.finished = 0;
    start_traffic(traffic);
    for (int i = 0; i < CHANGED; i++) {
        int k = i * KEPT / CHANGED;
        cairn_module_retire(traffic->kept[k]);
        traffic->kept[k] = load_some(traffic->runtime, 50 + i, &traffic->code[k]);
        traffic->values[k] = 1 + (50 + i) % 100;
        expect_kept(traffic);
    }
    end_traffic(traffic);
    expect_kept(traffic);
}

START_TEST(neither_sees_what_the_threads_of_the_other_do)
{
    static struct traffic traffic;
    if (fork_breaks_the_allocator())
        return;
    memset(&traffic, 0, sizeof traffic);
    traffic.patchers.strength = CAIRN_RELAXED;
    load_site(&traffic.patchers, support_modes[_i]);
    traffic.runtime = traffic.patchers.fixture.runtime;
    for (int i = 0; i < KEPT; i++) {
        traffic.values[i] = 1 + i;
        traffic.kept[i] = load_some(traffic.runtime, i, &traffic.code[i]);
    }
    start_traffic(&traffic);
    for (int i = 0; i < fork_rounds(CHILDREN / 4); i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            limit_time();
            change_kept(&traffic);
            _exit(0);
        }
        expect_kept(&traffic);
        support_wait(child);
        expect_kept(&traffic);
    }
    end_traffic(&traffic);
    for (int i = 0; i < KEPT; i++)
        cairn_module_retire(traffic.kept[i]);
    cairn_runtime_quiesce(traffic.runtime);
    site_unload(&traffic.patchers.fixture);
}
END_TEST

/* ---- Every entry point ---- */

static void continue_after(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static void return_nothing(const struct cairn_value *arguments, struct cairn_value *results,
                           void *user)
{
    (void)arguments;
    (void)results;
    (void)user;
}

/* The objects that exist when the process forks. */
struct world {
    struct patchers patchers;
    struct site_fixture empty; /* a patch point whose call has no effect */
    cairn_runtime *runtime;
    cairn_module *unpublished;
    cairn_module *published;
    cairn_loader *loader;
    cairn_exit *exit;
    cairn_signature *signature;
    cairn_closure *closure;
    cairn_invalidation *invalidation;
    struct site_fixture invalid; /* the code that `invalidation` has invalidated */
};

static enum cairn_status invalidate(const struct world *world, cairn_module *module,
                                    cairn_invalidation **invalidation)
{
    const struct cairn_invalidation_options options = {.module = module,
                                                       .target = cairn_exit_target(world->exit)};
    return cairn_invalidate(world->runtime, &options, CAIRN_RELAXED, invalidation, NULL);
}

static void create_world(struct world *world, enum cairn_code_mode mode)
{
    uint8_t region[SITE_REGION_MAX];
    uint8_t *function;
    memset(world, 0, sizeof *world);
    load_site(&world->patchers, mode);
    world->runtime = world->patchers.fixture.runtime;
    struct site_shape shape = site_null_patchpoint(region, 16);
    site_load_into(&world->empty, world->runtime, &shape);
    site_load_into(&world->invalid, world->runtime, &shape);
    shape.publish = false;
    struct site_fixture unpublished;
    site_load_into(&unpublished, world->runtime, &shape);
    world->unpublished = unpublished.module;
    world->published = load_function(world->runtime, 1, 64, &function);
    ck_assert_ok(cairn_loader_create(world->runtime, "loader", &world->loader, NULL));
    ck_assert_ptr_nonnull(
        cairn_loader_allocate(world->loader, CAIRN_SECTION_CODE, 64, 64, NULL, NULL));
    ck_assert_ok(cairn_exit_create(world->runtime, continue_after, NULL, &world->exit, NULL));
    ck_assert_ok(cairn_signature_create(NULL, NULL, 0, NULL, 0, &world->signature, NULL));
    ck_assert_ok(cairn_closure_create(world->runtime, world->signature, return_nothing, NULL,
                                      &world->closure, NULL));
    ck_assert_ok(invalidate(world, world->invalid.module, &world->invalidation));
}

static void destroy_world(struct world *world)
{
    cairn_invalidation_destroy(world->invalidation);
    cairn_closure_destroy(world->closure);
    cairn_signature_destroy(world->signature);
    cairn_exit_destroy(world->exit);
    cairn_loader_destroy(world->loader);
    cairn_runtime_quiesce(world->runtime);
    cairn_runtime_destroy(world->runtime);
}

typedef enum cairn_status enter_function(struct world *world);

static enum cairn_status enter_site_call(struct world *world)
{
    return cairn_site_call(world->empty.site, SITE_TWO, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_site_jump(struct world *world)
{
    return cairn_site_jump(world->empty.site, world->empty.near_three, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_site_nop(struct world *world)
{
    return cairn_site_nop(world->empty.site, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_site_restore(struct world *world)
{
    return cairn_site_restore(world->empty.site, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_site_describe(struct world *world)
{
    struct cairn_site_description description = site_describe(world->empty.site);
    support_expect(description.state == CAIRN_SITE_NOP);
    return CAIRN_OK;
}

static enum cairn_status enter_site_ic(struct world *world)
{
    support_expect(cairn_site_ic(world->empty.site) == NULL);
    return CAIRN_OK;
}

static enum cairn_status enter_sites_change(struct world *world)
{
    const struct cairn_site_change change = {world->empty.site, CAIRN_SITE_CALL, SITE_ONE};
    return cairn_sites_change(&change, 1, CAIRN_RELAXED, NULL);
}

static enum cairn_status enter_statistics(struct world *world)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(world->runtime, &statistics);
    support_expect(statistics.slab_count >= 1 && statistics.module_count >= 3);
    return CAIRN_OK;
}

static enum cairn_status enter_quiesce(struct world *world)
{
    cairn_runtime_quiesce(world->runtime);
    return CAIRN_OK;
}

static enum cairn_status enter_after_fork(struct world *world)
{
    return cairn_runtime_after_fork(world->runtime, NULL);
}

static enum cairn_status enter_runtime_create(struct world *world)
{
    cairn_runtime *runtime = NULL;
    (void)world;
    enum cairn_status status = cairn_runtime_create(NULL, &runtime, NULL);
    cairn_runtime_destroy(runtime);
    return status;
}

static enum cairn_status enter_runtime_destroy(struct world *world)
{
    cairn_loader_destroy(world->loader);
    cairn_runtime_destroy(world->runtime);
    return CAIRN_OK;
}

static enum cairn_status enter_lookups(struct world *world)
{
    uint64_t pc = (uintptr_t)world->empty.code;
    struct cairn_record records[4];
    support_expect(cairn_runtime_find_module(world->runtime, pc) == world->empty.module);
    support_expect(cairn_runtime_find_id(world->runtime, 42, records, 4) == 3);
    return CAIRN_OK;
}

static enum cairn_status enter_loader_create(struct world *world)
{
    uint8_t *function;
    cairn_module *module = load_function(world->runtime, 5, FILLING_BYTES, &function);
    support_expect(support_call(function) == 5);
    unload_all(world->runtime, module);
    return CAIRN_OK;
}

static enum cairn_status enter_loader_allocate(struct world *world)
{
    support_expect(cairn_loader_allocate(world->loader, CAIRN_SECTION_CODE, 5000, 16, NULL, NULL) !=
                   NULL);
    support_expect(cairn_loader_allocate(world->loader, CAIRN_SECTION_DATA, 5000, 16, NULL, NULL) !=
                   NULL);
    support_expect(cairn_loader_allocate(world->loader, CAIRN_SECTION_READ_ONLY_DATA, 5000, 16,
                                         NULL, NULL) != NULL);
    return CAIRN_OK;
}

static enum cairn_status enter_loader_finish(struct world *world)
{
    cairn_module *module;
    return cairn_loader_finish(world->loader, &module, NULL);
}

static enum cairn_status enter_loader_destroy(struct world *world)
{
    cairn_loader_destroy(world->loader);
    return CAIRN_OK;
}

static enum cairn_status enter_publish(struct world *world)
{
    return cairn_module_publish(world->unpublished, NULL);
}

static enum cairn_status enter_retire(struct world *world)
{
    cairn_module_retire(world->published);
    return CAIRN_OK;
}

static bool visit_none(const struct cairn_ic_description *description, void *user)
{
    (void)description;
    (void)user;
    return true;
}

static enum cairn_status enter_visit_ics(struct world *world)
{
    cairn_runtime_visit_ics(world->runtime, visit_none, NULL);
    return CAIRN_OK;
}

static enum cairn_status enter_exit_create(struct world *world)
{
    cairn_exit *exit;
    return cairn_exit_create(world->runtime, continue_after, NULL, &exit, NULL);
}

static enum cairn_status enter_exit_destroy(struct world *world)
{
    cairn_exit_destroy(world->exit);
    return CAIRN_OK;
}

static enum cairn_status enter_closure_create(struct world *world)
{
    cairn_closure *closure;
    return cairn_closure_create(world->runtime, world->signature, return_nothing, NULL, &closure,
                                NULL);
}

static enum cairn_status enter_closure_destroy(struct world *world)
{
    cairn_closure_destroy(world->closure);
    return CAIRN_OK;
}

static enum cairn_status enter_invalidate(struct world *world)
{
    cairn_invalidation *invalidation;
    return invalidate(world, world->empty.module, &invalidation);
}

static enum cairn_status enter_undo(struct world *world)
{
    return cairn_invalidation_undo(world->invalidation, CAIRN_RELAXED, NULL);
}

static const struct entry {
    const char *name;
    enter_function *enter;
    bool destroys; /* whether it destroys the runtime */
} entries[] = {
    {.name = "cairn_site_call", .enter = enter_site_call},
    {.name = "cairn_site_jump", .enter = enter_site_jump},
    {.name = "cairn_site_nop", .enter = enter_site_nop},
    {.name = "cairn_site_restore", .enter = enter_site_restore},
    {.name = "cairn_site_describe", .enter = enter_site_describe},
    {.name = "cairn_site_ic", .enter = enter_site_ic},
    {.name = "cairn_sites_change", .enter = enter_sites_change},
    {.name = "cairn_runtime_statistics", .enter = enter_statistics},
    {.name = "cairn_runtime_quiesce", .enter = enter_quiesce},
    {.name = "cairn_runtime_after_fork", .enter = enter_after_fork},
    {.name = "cairn_runtime_create", .enter = enter_runtime_create},
    {.name = "cairn_runtime_destroy", .enter = enter_runtime_destroy, .destroys = true},
    {.name = "lookups", .enter = enter_lookups},
    {.name = "cairn_loader_create", .enter = enter_loader_create},
    {.name = "cairn_loader_allocate", .enter = enter_loader_allocate},
    {.name = "cairn_loader_finish", .enter = enter_loader_finish},
    {.name = "cairn_loader_destroy", .enter = enter_loader_destroy},
    {.name = "cairn_module_publish", .enter = enter_publish},
    {.name = "cairn_module_retire", .enter = enter_retire},
    {.name = "cairn_runtime_visit_ics", .enter = enter_visit_ics},
    {.name = "cairn_exit_create", .enter = enter_exit_create},
    {.name = "cairn_exit_destroy", .enter = enter_exit_destroy},
    {.name = "cairn_closure_create", .enter = enter_closure_create},
    {.name = "cairn_closure_destroy", .enter = enter_closure_destroy},
    {.name = "cairn_invalidate", .enter = enter_invalidate},
    {.name = "cairn_invalidation_undo", .enter = enter_undo},
};
enum { ENTRY_COUNT = sizeof entries / sizeof *entries };

/* Calls the entry point, and then some others, to check that the runtime works. */
static void enter_in_child(struct world *world, const struct entry *entry)
{
    limit_time();
    enum cairn_status status = entry->enter(world);
    if (status != CAIRN_OK)
        fprintf(stderr, "%s: %s\n", entry->name, cairn_status_name(status));
    support_expect(status == CAIRN_OK);
    if (!entry->destroys) {
        enter_statistics(world);
        support_expect(enter_loader_create(world) == CAIRN_OK);
        patch(&world->patchers, 4);
        support_expect(world->patchers.fixture.function() == 4);
    }
    _exit(0);
}

/* ---- While other threads run the entry points ---- */

/* Loads and frees modules, changes sites, and looks them up, so that every lock is taken. */
static void *work_all_the_time(void *user)
{
    struct world *world = user;
    for (uint64_t i = 0; !atomic_load(&world->patchers.stop); i++) {
        uint8_t *function;
        cairn_exit *exit;
        struct cairn_runtime_statistics statistics;
        cairn_module *module = load_function(world->runtime, 1, 64 + i % 7 * 3000, &function);
        support_expect(cairn_exit_create(world->runtime, continue_after, NULL, &exit, NULL) ==
                       CAIRN_OK);
        const struct cairn_site_change change = {world->patchers.fixture.site, CAIRN_SITE_CALL,
                                                 far_targets[i % TARGET_COUNT]};
        support_expect(cairn_sites_change(&change, 1, CAIRN_RELAXED, NULL) == CAIRN_OK);
        cairn_runtime_statistics(world->runtime, &statistics);
        cairn_exit_destroy(exit);
        cairn_module_retire(module);
        cairn_runtime_quiesce(world->runtime);
    }
    return NULL;
}

START_TEST(every_entry_point_works_in_a_child_of_busy_threads)
{
    enum { CHILDREN_EACH = 4, WORKERS = 2 };
    struct world world;
    pthread_t threads[WORKERS];
    if (fork_breaks_the_allocator())
        return;
    create_world(&world, support_modes[_i]);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work_all_the_time, &world), 0);
    for (int i = 0; i < CHILDREN_EACH * ENTRY_COUNT; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            enter_in_child(&world, &entries[i % ENTRY_COUNT]);
        support_wait(child);
    }
    atomic_store(&world.patchers.stop, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    patch(&world.patchers, 6);
    ck_assert_int_eq(world.patchers.fixture.function(), 6);
    destroy_world(&world);
}
END_TEST

/* ---- In a child for which no handler was called ---- */

static void hold_locks(const struct world *world)
{
    pthread_mutex_lock(&world->runtime->ics.lock);
    pthread_mutex_lock(&world->runtime->lock);
    pthread_mutex_lock(&world->runtime->space->lock);
}

static void release_locks(const struct world *world)
{
    pthread_mutex_unlock(&world->runtime->space->lock);
    pthread_mutex_unlock(&world->runtime->lock);
    pthread_mutex_unlock(&world->runtime->ics.lock);
}

START_TEST(after_fork_renews_all_locks_for_every_entry_point)
{
    struct world world;
    create_world(&world, support_modes[_i]);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        hold_locks(&world);
        pid_t child = clone_process();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            limit_time();
            support_expect(cairn_runtime_after_fork(world.runtime, NULL) == CAIRN_OK);
            enter_in_child(&world, &entries[i]);
        }
        release_locks(&world);
        support_wait(child);
    }
    destroy_world(&world);
}
END_TEST

static void expect_no_change(struct world *world)
{
    struct cairn_error error = {0};
    cairn_module *module;
    support_expect(cairn_site_call(world->patchers.fixture.site, far_targets[5], CAIRN_RELAXED,
                                   &error) == CAIRN_ERROR_SYSTEM);
    support_expect(strstr(error.message, "cairn_runtime_after_fork") != NULL);
    support_expect(cairn_loader_finish(world->loader, &module, NULL) == CAIRN_ERROR_SYSTEM);
    support_expect(cairn_runtime_quiesce(world->runtime) == 0);
}

START_TEST(child_without_handlers_cannot_change_its_parents_code)
{
    struct world world;
    create_world(&world, support_modes[_i]);
    patch(&world.patchers, 3);
    pid_t child = clone_process();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        limit_time();
        expect_no_change(&world);
        _exit(0);
    }
    support_wait(child);
    ck_assert_int_eq(world.patchers.fixture.function(), 3);
    destroy_world(&world);
}
END_TEST

/* The parent changes the word after the child is made and before the child's first call of Cairn.
 * The child must call the target of its fork. */
START_TEST(child_without_handlers_has_its_own_words)
{
    struct patchers patchers = {.strength = CAIRN_RELAXED};
    int ends[2];
    char byte = 0;
    load_site(&patchers, support_modes[_i]);
    ck_assert_int_eq(pipe(ends), 0);
    patch(&patchers, 3);
    patchers.finished = 3;
    pid_t child = clone_process();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        limit_time();
        support_expect(read(ends[0], &byte, 1) == 1);
        support_expect(cairn_runtime_after_fork(patchers.fixture.runtime, NULL) == CAIRN_OK);
        support_expect(patchers.fixture.function() == 3);
        expect_what_was_finished(&patchers);
        _exit(0);
    }
    patch(&patchers, 5);
    ck_assert_int_eq(write(ends[1], &byte, 1), 1);
    support_wait(child);
    ck_assert_int_eq(patchers.fixture.function(), 5);
    site_unload(&patchers.fixture);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tests = tcase_create("fork");
    int modes = support_mode_count();
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, child_calls_the_far_target_of_the_moment_of_the_fork, 0, 2 * modes);
    tcase_add_loop_test(tests, child_calls_the_near_or_far_target_of_the_moment_of_the_fork, 0,
                        2 * modes);
    tcase_add_loop_test(tests, child_calls_a_target_where_several_threads_patch_one_site, 0, modes);
    tcase_add_loop_test(tests, grandchild_calls_what_its_parent_calls, 0, modes);
    tcase_add_loop_test(tests, child_has_the_words_whatever_the_notes_are, 0, modes);
    tcase_add_loop_test(tests, child_runs_what_its_parent_has_freed_and_loaded_over, 0, modes);
    tcase_add_loop_test(tests, neither_sees_what_the_threads_of_the_other_do, 0, modes);
    tcase_add_loop_test(tests, every_entry_point_works_in_a_child_of_busy_threads, 0, modes);
    tcase_add_loop_test(tests, after_fork_renews_all_locks_for_every_entry_point, 0, modes);
    tcase_add_loop_test(tests, child_without_handlers_cannot_change_its_parents_code, 0, modes);
    tcase_add_loop_test(tests, child_without_handlers_has_its_own_words, 0, modes);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
