/*
 * cairn-bench-stub: the time to create and to destroy exits and closures, and the memory that each
 * of them takes: its code, its description, and what Cairn allocates for it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 20, BATCH = 500, COUNT = BATCHES * BATCH };

static const struct bench_options options = {.json = false};

static void fail(const char *message)
{
    fprintf(stderr, "cairn-bench-stub: %s\n", message);
    exit(1);
}

/* ---- Memory ---- */

static size_t allocated_bytes;

static void *reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    allocated_bytes += new_size - old_size;
    if (new_size > 0)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

/* Returns the bytes of the runtime's pages, and those that it has allocated. */
static size_t bytes_of(cairn_runtime *runtime)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    return statistics.code_bytes + statistics.data_bytes + allocated_bytes;
}

/* ---- What is created ---- */

static cairn_runtime *runtime;
static cairn_signature *signature;
static void *created[COUNT];

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static void handle(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    (void)user;
    results[0] = arguments[0];
}

static bool create_exit(void **place)
{
    cairn_exit *exit;
    bool done = cairn_exit_create(runtime, leave, NULL, &exit, NULL) == CAIRN_OK;
    *place = exit;
    return done;
}

static void destroy_exit(void *exit) { cairn_exit_destroy(exit); }

static bool create_closure(void **place)
{
    cairn_closure *closure;
    bool done = cairn_closure_create(runtime, signature, handle, NULL, &closure, NULL) == CAIRN_OK;
    *place = closure;
    return done;
}

static void destroy_closure(void *closure) { cairn_closure_destroy(closure); }

/* ---- Figures ---- */

struct subject {
    const char *name;
    bool (*create)(void **place);
    void (*destroy)(void *created);
};

static void print(const char *name, const char *what, double value, const char *unit, double limit)
{
    char text[64];
    snprintf(text, sizeof text, "%s.%s", name, what);
    bench_print(&options,
                &(struct bench_figure){.name = text, .value = value, .unit = unit, .limit = limit});
}

static void measure(const struct subject *subject)
{
    double creating[BATCHES];
    double destroying[BATCHES];
    size_t before = bytes_of(runtime);
    for (int batch = 0; batch < BATCHES; batch++) {
        double begun = bench_now_of_thread();
        for (int i = 0; i < BATCH; i++)
            if (!subject->create(&created[batch * BATCH + i])) {
                bench_print_missing(&options, subject->name, "it cannot be created here");
                return;
            }
        creating[batch] = (bench_now_of_thread() - begun) / (double)BATCH / 1000;
    }
    double bytes = (double)(bytes_of(runtime) - before) / (double)COUNT;
    for (int batch = 0; batch < BATCHES; batch++) {
        double begun = bench_now_of_thread();
        for (int i = 0; i < BATCH; i++)
            subject->destroy(created[batch * BATCH + i]);
        cairn_runtime_quiesce(runtime);
        destroying[batch] = (bench_now_of_thread() - begun) / (double)BATCH / 1000;
    }
    print(subject->name, "create", bench_percentile(creating, BATCHES, 0.5), "us", 5);
    print(subject->name, "destroy", bench_percentile(destroying, BATCHES, 0.5), "us", 5);
    print(subject->name, "memory", bytes, "bytes", 128);
}

int main(void)
{
    static const struct subject subjects[] = {
        {"exit", create_exit, destroy_exit},
        {"closure", create_closure, destroy_closure},
    };
    const struct cairn_runtime_options runtime_options = {.allocator = {reallocate, NULL}};
    const struct cairn_type type = CAIRN_INTEGER(64);
    struct cairn_error error = {0};
    if (cairn_runtime_create(&runtime_options, &runtime, &error) != CAIRN_OK ||
        cairn_signature_create(NULL, &type, 1, &type, 1, &signature, &error) != CAIRN_OK)
        fail(error.message);
    bench_begin(&options);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        measure(&subjects[i]);
    bench_end(&options);
    cairn_signature_destroy(signature);
    cairn_runtime_destroy(runtime);
    return 0;
}
