/*
 * Tests of forks while other threads compile, load, patch and remove functions through ORC. A child
 * has the code of the moment of the fork, and can change it and load more. What one process
 * changes, the other does not see. A child has none of the threads that may hold locks of LLVM's,
 * so it does not use the JITs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "orc_support.h"

#include "tests/fork_support.h"
#include "tests/mode_support.h"

#include <llvm-c/Error.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#if LLVM_HAS_ORC_CALLBACKS

/* A child that hangs is ended by a signal. */
enum {
    THREADS = 2,
    CHILDREN = 40,
    CHILD_SECONDS = 60,
    KEPT_ID = 1000,
    NEW_ID,
    NAME_MAX_BYTES = 32
};

static int64_t add_hundred(int64_t x) { return x + 100; }
static int64_t add_thousand(int64_t x) { return x + 1000; }

static cairn_runtime *runtime;
static cairn_orc *orc;
static atomic_bool stop;

/* Assertion for children and threads: Check's assertions take a lock. */
static void expect_at(bool condition, const char *condition_text, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, condition_text);
    _exit(1);
}
#define expect(condition) expect_at((condition), #condition, __LINE__)

static void call_target(uint64_t id, orc_function *target)
{
    cairn_site *site = cairn_runtime_find_site(runtime, id, NULL);
    expect(site != NULL);
    expect(cairn_site_call(site, (void *)(uintptr_t)target, CAIRN_RELAXED, NULL) == CAIRN_OK);
}

/* ---- The threads of the parent ---- */

struct worker {
    pthread_t thread;
    unsigned number;
    unsigned rounds;
};

/* Each function has another ID than those before, so that a child can tell that all the IDs that it
 * finds are those of one moment. */
static void use_function(LLVMOrcLLJITRef jit, const char *name, unsigned id)
{
    uint64_t address = 0;
    LLVMOrcResourceTrackerRef tracker;
    orc_add(jit, orc_parse_site(name, id), &tracker);
    expect(cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, name), NULL) == CAIRN_OK);
    orc_function *f = (orc_function *)(uintptr_t)address;
    expect(f(1) == 1);
    call_target(id, add_hundred);
    expect(f(1) == 101);
    orc_remove(tracker);
}

static void *compile_all_the_time(void *user)
{
    struct worker *worker = user;
    LLVMOrcLLJITRef jit = orc_create_jit(orc);
    while (!atomic_load(&stop)) {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof name, "f_%u", worker->number);
        use_function(jit, name, worker->number);
        cairn_runtime_quiesce(runtime);
        worker->rounds++;
    }
    LLVMOrcDisposeLLJIT(jit);
    return NULL;
}

/* ---- The children ---- */

struct kept {
    LLVMOrcLLJITRef jit;
    orc_function *function; /* its site calls `add_hundred` in the parent */
    LLVMMemoryBufferRef object;
};

static LLVMErrorRef compile(void *user, LLVMModuleRef module)
{
    LLVMMemoryBufferRef *object = user;
    const struct support_compilation compilation = {.optimisation_level = 2};
    *object = support_compile_to_memory(module, &compilation);
    return LLVMErrorSuccess;
}

static void keep(struct kept *kept)
{
    kept->jit = orc_create_jit(orc);
    orc_add(kept->jit, orc_parse_site("kept", KEPT_ID), NULL);
    kept->function = orc_lookup(orc, kept->jit, "kept");
    call_target(KEPT_ID, add_hundred);
    LLVMOrcThreadSafeModuleRef module = orc_parse_site("fresh", NEW_ID);
    orc_assert_success(cairn_orc_transform(orc, &module, NULL));
    orc_assert_success(LLVMOrcThreadSafeModuleWithModuleDo(module, compile, &kept->object));
    LLVMOrcDisposeThreadSafeModule(module);
}

static void load_object(const struct kept *kept)
{
    cairn_loader *loader;
    cairn_module *module;
    expect(cairn_loader_create(runtime, "fresh", &loader, NULL) == CAIRN_OK);
    expect(cairn_loader_add_object(loader, LLVMGetBufferStart(kept->object),
                                   LLVMGetBufferSize(kept->object), NULL, NULL) == CAIRN_OK);
    expect(cairn_loader_finish(loader, &module, NULL) == CAIRN_OK);
    expect(cairn_module_publish(module, NULL) == CAIRN_OK);
    orc_function *fresh = (orc_function *)(uintptr_t)cairn_module_find_symbol(module, "fresh");
    expect(fresh(1) == 1);
    call_target(NEW_ID, add_thousand);
    expect(fresh(1) == 1001);
    cairn_module_retire(module);
}

/* What was published at the fork stays published. */
static void change_in_child(const struct kept *kept)
{
    cairn_site *sites[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        sites[i] = cairn_runtime_find_site(runtime, i, NULL);
    expect(kept->function(1) == 101);
    load_object(kept);
    call_target(KEPT_ID, add_thousand);
    expect(kept->function(1) == 1001);
    for (unsigned i = 0; i < THREADS; i++) {
        expect(cairn_runtime_find_site(runtime, i, NULL) == sites[i]);
        if (sites[i] != NULL)
            call_target(i, add_thousand);
    }
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)kept->function);
    cairn_runtime_quiesce(runtime);
    expect(module != NULL &&
           cairn_runtime_find_module(runtime, (uintptr_t)kept->function) == module);
    expect(kept->function(1) == 1001);
    cairn_module_retire(module);
    expect(cairn_runtime_find_site(runtime, KEPT_ID, NULL) == NULL);
}

START_TEST(child_of_a_process_whose_threads_compile_has_its_own_code)
{
    struct worker workers[THREADS];
    struct kept kept;
    if (fork_breaks_the_allocator())
        return;
    const struct cairn_runtime_options options = {.code_mode = site_modes[_i]};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_orc_create(runtime, NULL, &orc, NULL));
    keep(&kept);
    atomic_store(&stop, false);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i};
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, compile_all_the_time, &workers[i]), 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            fork_limit_time(CHILD_SECONDS);
            change_in_child(&kept);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "the child died of signal %d", WTERMSIG(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
        ck_assert_int_eq(kept.function(1), 101);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        printf("%u functions compiled\n", workers[i].rounds);
        ck_assert_uint_gt(workers[i].rounds, 0);
    }
    LLVMDisposeMemoryBuffer(kept.object);
    orc_dispose(kept.jit);
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
    ck_assert_int_eq(orc_registered_tables(), 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, child_of_a_process_whose_threads_compile_has_its_own_code,
                        site_first_mode(), SITE_MODES);
}

#else

static void add_tests(TCase *tests) { (void)tests; }

#endif

int main(void)
{
    if (!LLVM_HAS_ORC_CALLBACKS)
        return 77;
    Suite *suite = suite_create("ORC and fork");
    TCase *tests = tcase_create("fork");
    tcase_set_timeout(tests, 120);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
