/*
 * Tests of ORC with several threads, each of which has a JIT and an LLVM context, and with one
 * runtime for all: they compile, load, call, patch and remove functions at the same time. Also
 * tests of ORC without memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "orc_support.h"

#include "tests/allocator_support.h"
#include "tests/mode_support.h"

#include <llvm-c/Error.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if LLVM_HAS_ORC_CALLBACKS

enum { THREADS = 3, ROUNDS = 12, NAME_MAX_BYTES = 32 };

static cairn_runtime *runtime;
static cairn_orc *orc;

static int64_t add_hundred(int64_t x) { return x + 100; }

/* Compiles, calls, patches and removes functions in a JIT of its own. Check's assertions must not
 * fail in threads, so it counts what is right. */
struct worker {
    pthread_t thread;
    unsigned number;
    unsigned right;
};

static bool use_function(LLVMOrcLLJITRef jit, const char *name, unsigned id)
{
    uint64_t address = 0;
    LLVMOrcResourceTrackerRef tracker;
    orc_add(jit, orc_parse_site(name, id), &tracker);
    if (cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, name), NULL) != CAIRN_OK)
        return false;
    orc_function *f = (orc_function *)(uintptr_t)address;
    cairn_site *site = cairn_runtime_find_site(runtime, id, NULL);
    bool is_right =
        f(1) == 1 && site != NULL &&
        cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, NULL) == CAIRN_OK &&
        f(1) == 101;
    orc_remove(tracker);
    return is_right && cairn_runtime_find_site(runtime, id, NULL) == NULL;
}

/* Returns true if the lookup fails with this thread's own message. */
static bool fail_to_link(LLVMOrcLLJITRef jit, unsigned id)
{
    char callee[NAME_MAX_BYTES];
    char name[NAME_MAX_BYTES];
    struct cairn_error error = {0};
    uint64_t address = 0;
    snprintf(callee, sizeof callee, "missing_%u", id);
    snprintf(name, sizeof name, "caller_%u", id);
    orc_add(jit, orc_parse(ORC_CALL, callee, name, callee), NULL);
    return cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, name), &error) ==
               CAIRN_ERROR_LLVM &&
           strstr(error.message, callee) != NULL;
}

static void *work(void *user)
{
    struct worker *worker = user;
    LLVMOrcLLJITRef jit = orc_create_jit(orc);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char name[NAME_MAX_BYTES];
        unsigned id = worker->number * ROUNDS + round;
        snprintf(name, sizeof name, "f_%u", id);
        worker->right += use_function(jit, name, id);
        worker->right += fail_to_link(jit, id);
        cairn_runtime_quiesce(runtime);
    }
    LLVMOrcDisposeLLJIT(jit);
    return NULL;
}

START_TEST(threads_load_patch_and_remove_at_the_same_time)
{
    struct worker workers[THREADS];
    const struct cairn_runtime_options options = {.code_mode = site_modes[_i]};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_orc_create(runtime, NULL, &orc, NULL));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].right, 2 * ROUNDS);
    }
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
    ck_assert_int_eq(orc_registered_tables(), 0);
}
END_TEST

/* ---- Objects that several threads compile, for one JIT ---- */

struct compiler {
    pthread_t thread;
    unsigned number;
    LLVMMemoryBufferRef object;
};

static LLVMErrorRef compile(void *user, LLVMModuleRef module)
{
    LLVMMemoryBufferRef *object = user;
    const struct support_compilation compilation = {.optimisation_level = 2};
    *object = support_compile_to_memory(module, &compilation);
    return LLVMErrorSuccess;
}

static void *compile_function(void *user)
{
    struct compiler *compiler = user;
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "f_%u", compiler->number);
    LLVMOrcThreadSafeModuleRef module = orc_parse_site(name, compiler->number);
    if (cairn_orc_status(orc, cairn_orc_transform(orc, &module, NULL), NULL) == CAIRN_OK)
        LLVMConsumeError(LLVMOrcThreadSafeModuleWithModuleDo(module, compile, &compiler->object));
    LLVMOrcDisposeThreadSafeModule(module);
    return NULL;
}

START_TEST(threads_compile_objects_for_one_jit)
{
    struct compiler compilers[THREADS];
    const struct cairn_runtime_options options = {.code_mode = site_modes[_i]};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_orc_create(runtime, NULL, &orc, NULL));
    LLVMOrcLLJITRef jit = orc_create_jit(orc);
    for (unsigned i = 0; i < THREADS; i++) {
        compilers[i] = (struct compiler){.number = i};
        ck_assert_int_eq(
            pthread_create(&compilers[i].thread, NULL, compile_function, &compilers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        char name[NAME_MAX_BYTES];
        pthread_join(compilers[i].thread, NULL);
        ck_assert_ptr_nonnull(compilers[i].object);
        orc_assert_success(
            LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), compilers[i].object));
        snprintf(name, sizeof name, "f_%u", i);
        orc_function *f = orc_lookup(orc, jit, name);
        cairn_site *site = cairn_runtime_find_site(runtime, i, NULL);
        ck_assert_ptr_nonnull(site);
        ck_assert_ok(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, NULL));
        ck_assert_int_eq(f(1), 101);
    }
    orc_dispose(jit);
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
}
END_TEST

/* ---- Trackers that are removed while other threads look up ---- */

enum { REMOVALS = 120 };

/* One JIT. Each looker adds objects and looks their functions up, while its remover removes the
 * objects' trackers at any moment of that. */
struct pair {
    pthread_t looker;
    pthread_t remover;
    LLVMMemoryBufferRef object;
    LLVMOrcLLJITRef jit;
    LLVMOrcResourceTrackerRef tracker; /* between the barriers: of the object that is looked up */
    pthread_barrier_t barrier;
    unsigned number;
    unsigned found;
    unsigned lost;
    unsigned wrong;
};

static void *remove_trackers(void *user)
{
    struct pair *pair = user;
    for (unsigned round = 0; round < REMOVALS; round++) {
        pthread_barrier_wait(&pair->barrier);
        for (volatile unsigned i = 0; i < round * 6000; i++)
            continue;
        pair->wrong += LLVMOrcResourceTrackerRemove(pair->tracker) != LLVMErrorSuccess;
        pthread_barrier_wait(&pair->barrier);
    }
    return NULL;
}

static LLVMMemoryBufferRef copy_of(LLVMMemoryBufferRef object)
{
    return LLVMCreateMemoryBufferWithMemoryRangeCopy(LLVMGetBufferStart(object),
                                                     LLVMGetBufferSize(object), "f");
}

/* A function that was found can be called, even if its module is retired meanwhile. */
static void use_while_removed(struct pair *pair)
{
    char name[NAME_MAX_BYTES];
    uint64_t address = 0;
    snprintf(name, sizeof name, "f_%u", pair->number);
    enum cairn_status status =
        cairn_orc_status(orc, LLVMOrcLLJITLookup(pair->jit, &address, name), NULL);
    pair->found += status == CAIRN_OK;
    pair->lost += status == CAIRN_ERROR_LLVM;
    if (status == CAIRN_OK && ((orc_function *)(uintptr_t)address)(1) != 1)
        pair->wrong++;
}

/* The JIT refuses the object of a tracker that has been removed already, and consumes it. */
static void *look_up(void *user)
{
    struct pair *pair = user;
    for (unsigned round = 0; round < REMOVALS; round++) {
        pair->tracker =
            LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(pair->jit));
        LLVMErrorRef failure =
            LLVMOrcLLJITAddObjectFileWithRT(pair->jit, pair->tracker, copy_of(pair->object));
        pair->wrong += failure != LLVMErrorSuccess;
        LLVMConsumeError(failure);
        pthread_barrier_wait(&pair->barrier);
        use_while_removed(pair);
        pthread_barrier_wait(&pair->barrier);
        LLVMOrcReleaseResourceTracker(pair->tracker);
    }
    return NULL;
}

static void start_pair(struct pair *pair, unsigned number, LLVMOrcLLJITRef jit)
{
    struct compiler compiler = {.number = number};
    compile_function(&compiler);
    ck_assert_ptr_nonnull(compiler.object);
    *pair = (struct pair){.number = number, .jit = jit, .object = compiler.object};
    ck_assert_int_eq(pthread_barrier_init(&pair->barrier, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&pair->looker, NULL, look_up, pair), 0);
    ck_assert_int_eq(pthread_create(&pair->remover, NULL, remove_trackers, pair), 0);
}

START_TEST(trackers_are_removed_while_their_functions_are_looked_up)
{
    static struct pair pairs[THREADS];
    if (!LLVM_MAY_REMOVE_WHILE_LINKING) {
        printf("skipped: LLVM %d uses an object's memory after it has freed it\n",
               LLVM_VERSION_MAJOR);
        return;
    }
    struct support_allocator allocator = {.fail_at = 0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator),
                                                  .code_mode = site_modes[_i]};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_orc_create(runtime, NULL, &orc, NULL));
    LLVMOrcLLJITRef jit = orc_create_jit(orc);
    orc_add(jit, orc_parse_site("kept", 100), NULL);
    orc_function *kept = orc_lookup(orc, jit, "kept");
    for (unsigned i = 0; i < THREADS; i++)
        start_pair(&pairs[i], i, jit);
    for (unsigned i = 0; i < THREADS; i++) {
        struct pair *pair = &pairs[i];
        pthread_join(pair->looker, NULL);
        pthread_join(pair->remover, NULL);
        printf("%u found, %u removed before\n", pair->found, pair->lost);
        ck_assert_uint_eq(pair->wrong, 0);
        ck_assert_uint_eq(pair->found + pair->lost, REMOVALS);
        pthread_barrier_destroy(&pair->barrier);
        LLVMDisposeMemoryBuffer(pair->object);
    }
    /* Not before: a thread may link the object of another one, whose lookup has failed. */
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_ptr_null(cairn_runtime_find_site(runtime, i, NULL));
    ck_assert_int_eq(kept(1), 1);
    cairn_runtime_quiesce(runtime);
    orc_dispose(jit);
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    ck_assert_int_eq(orc_registered_tables(), 0);
}
END_TEST

/* ---- Without memory ---- */

/* Loads a module; the first allocation to fail is number `fail_at` after the JIT was made. */
static enum cairn_status load_without_memory(size_t fail_at, struct cairn_error *error)
{
    struct support_allocator allocator = {.fail_at = 0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator)};
    uint64_t address = 0;
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    ck_assert_ok(cairn_orc_create(runtime, NULL, &orc, NULL));
    LLVMOrcLLJITRef jit = orc_create_jit(orc);
    orc_add(jit, orc_parse_site("f", 7), NULL);
    orc_add(jit, orc_parse_site("g", 8), NULL);
    ck_assert_int_eq(orc_lookup(orc, jit, "g")(1), 1);
    allocator.fail_at = allocator.calls + fail_at;
    enum cairn_status status = cairn_orc_status(orc, LLVMOrcLLJITLookup(jit, &address, "f"), error);
    allocator.fail_at = 0;
    ck_assert_int_eq(orc_lookup(orc, jit, "g")(1), 1);
    if (status == CAIRN_OK)
        ck_assert_int_eq(((orc_function *)(uintptr_t)address)(1), 1);
    else
        ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, NULL, 0), 0);
    orc_dispose(jit);
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    ck_assert_int_eq(orc_registered_tables(), 0);
    return status;
}

START_TEST(every_allocation_of_a_load_may_fail_and_nothing_is_lost)
{
    enum { AT_LEAST = 10 };
    size_t failures = 0;
    struct cairn_error error = {0};
    while (load_without_memory(failures + 1, &error) != CAIRN_OK) {
        ck_assert_int_eq(error.status, CAIRN_ERROR_MEMORY);
        failures++;
    }
    ck_assert_uint_ge(failures, AT_LEAST);
}
END_TEST

START_TEST(every_allocation_of_a_connection_may_fail)
{
    size_t failures = 0;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    static const struct cairn_pc_section pc_section = {.section = "notes"};
    const struct cairn_orc_options orc_options = {
        .loading.modules = {.pc_sections = &pc_section, .pc_section_count = 1}};
    while (status != CAIRN_OK) {
        struct support_allocator allocator = {.fail_at = 0};
        const struct cairn_runtime_options options = {.allocator = support_counting(&allocator)};
        ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
        allocator.fail_at = allocator.calls + failures + 1;
        orc = NULL;
        status = cairn_orc_create(runtime, &orc_options, &orc, NULL);
        if (status != CAIRN_OK) {
            ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
            ck_assert_ptr_null(orc);
            failures++;
        }
        cairn_orc_destroy(orc);
        cairn_runtime_destroy(runtime);
        ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    }
    ck_assert_uint_ge(failures, 4);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, threads_load_patch_and_remove_at_the_same_time, site_first_mode(),
                        SITE_MODES);
    tcase_add_loop_test(tests, threads_compile_objects_for_one_jit, site_first_mode(), SITE_MODES);
    tcase_add_loop_test(tests, trackers_are_removed_while_their_functions_are_looked_up,
                        site_first_mode(), SITE_MODES);
    tcase_add_test(tests, every_allocation_of_a_load_may_fail_and_nothing_is_lost);
    tcase_add_test(tests, every_allocation_of_a_connection_may_fail);
}

#else

static void add_tests(TCase *tests) { (void)tests; }

#endif

int main(void)
{
    if (!LLVM_HAS_ORC_CALLBACKS)
        return 77;
    Suite *suite = suite_create("ORC with threads");
    TCase *tests = tcase_create("orc");
    tcase_set_timeout(tests, 120);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
