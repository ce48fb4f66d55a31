/*
 * reload: threads whose code is replaced while they run. When they are at a safepoint, the host
 * frees the old versions that no thread is in.
 *
 *     cc reload.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * Each thread has an outer frame in the first version until the end, and calls the newest version
 * again and again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <llvm-c/IRReader.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, VERSIONS = 10 };

static const char text[] = "declare void @go_on(i64)\n"
                           "define void @step(i64 %thread) uwtable {\n"
                           "  call void @go_on(i64 %thread)\n"
                           "  ret void\n"
                           "}\n";

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "reload: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. The threads ---- */

struct thread {
    pthread_t id;
    bool is_in_loop;
    struct cairn_context context; /* while it is stopped */
};

typedef void step_function(uint64_t thread);

static struct thread threads[THREADS];
static _Atomic(step_function *) newest;
static atomic_bool must_stop;
static atomic_bool must_end;
static pthread_barrier_t stopped;
static pthread_barrier_t resumed;

static void stop_at_safepoint(struct thread *thread)
{
    if (!must_stop || cairn_context_save(&thread->context) != 0)
        return;
    pthread_barrier_wait(&stopped);
    pthread_barrier_wait(&resumed);
}

/* Called by each version: by the first one it runs the thread's loop. */
static void go_on(uint64_t number)
{
    struct thread *thread = &threads[number];
    if (thread->is_in_loop) {
        stop_at_safepoint(thread);
        return;
    }
    thread->is_in_loop = true;
    while (!must_end) {
        step_function *step = newest;
        step(number);
    }
}

static void *run_thread(void *user)
{
    step_function *step = newest;
    step((uint64_t)((struct thread *)user - threads));
    return NULL;
}

/* ---- 2. The versions ---- */

static LLVMContextRef llvm;
static cairn_runtime *runtime;

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)go_on;
    return strcmp(name, "go_on") == 0;
}

static cairn_engine *load_version(void)
{
    const struct cairn_engine_options options = {.load = {.find_symbol = find_symbol}};
    struct cairn_error error;
    cairn_engine *engine;
    LLVMModuleRef module;
    char *message;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "reload", 1);
    if (LLVMParseIRInContext(llvm, buffer, &module, &message) != 0)
        fail(message);
    check(cairn_engine_create(runtime, module, &options, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    newest = (step_function *)(uintptr_t)cairn_engine_function(engine, "step", &error);
    if (newest == NULL)
        fail(error.message);
    return engine;
}

/* ---- 3. What the host does while all threads are stopped ---- */

/* Frees the old versions that no thread is in. The calling thread never calls compiled code, so its
 * own stack is not needed. */
static size_t free_versions(void)
{
    struct cairn_walk walks[THREADS];
    struct cairn_error error;
    size_t freed;
    for (int i = 0; i < THREADS; i++) {
        struct cairn_frame frame;
        check(cairn_frame_from_context(runtime, &threads[i].context, true, &frame, &error), &error);
        cairn_walk_begin(&walks[i], &frame);
        walks[i].foreign = cairn_walk_native;
    }
    check(cairn_runtime_free_unused(runtime, walks, THREADS, &freed, &error), &error);
    return freed;
}

/* Retires the current version, in which each thread is stopped, and frees older ones. */
static size_t replace_version(cairn_engine **current, bool is_last)
{
    must_stop = true;
    pthread_barrier_wait(&stopped);
    must_stop = false;
    cairn_engine *next = load_version();
    cairn_engine_destroy(*current);
    *current = next;
    size_t freed = free_versions();
    must_end = is_last;
    pthread_barrier_wait(&resumed);
    return freed;
}

/* ---- 4. Run it ---- */

int main(void)
{
    size_t freed = 0;
    struct cairn_error error;
    llvm = LLVMContextCreate();
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    cairn_engine *current = load_version();
    pthread_barrier_init(&stopped, NULL, THREADS + 1);
    pthread_barrier_init(&resumed, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0)
            fail("no thread");
    for (int i = 1; i < VERSIONS; i++)
        freed += replace_version(&current, i == VERSIONS - 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    printf("%d versions; %zu were freed while %d threads were in the first one\n", VERSIONS, freed,
           THREADS);
    cairn_engine_destroy(current);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(llvm);
    return freed == VERSIONS - 3 ? 0 : 1;
}
