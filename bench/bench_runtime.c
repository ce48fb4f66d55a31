/*
 * Creating and destroying a runtime that is not used, beside the system calls that cannot be
 * avoided: reserving address space of the size of a slab, and releasing it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_runtime.h"

#include <cairn/cairn.h>
#include <stdio.h>
#include <sys/mman.h>

enum { SAMPLES = 201 };

#define LIMIT_US 100.0

struct times {
    double create[SAMPLES];
    double destroy[SAMPLES];
    double peer[SAMPLES];
};

static double time_reservation(size_t size)
{
    double begun = bench_now_of_thread();
    void *area = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area != MAP_FAILED)
        munmap(area, size);
    return (bench_now_of_thread() - begun) / 1e3;
}

static cairn_runtime *create(void)
{
    cairn_runtime *runtime;
    struct cairn_error error;
    if (cairn_runtime_create(NULL, &runtime, &error) == CAIRN_OK)
        return runtime;
    fprintf(stderr, "cairn-bench: %s\n", error.message);
    return NULL;
}

static bool time_one(size_t slab_size, double *creation, double *destruction, double *peer)
{
    double begun = bench_now_of_thread();
    cairn_runtime *runtime = create();
    double created = bench_now_of_thread();
    cairn_runtime_destroy(runtime);
    *creation = (created - begun) / 1e3;
    *destruction = (bench_now_of_thread() - created) / 1e3;
    *peer = time_reservation(slab_size);
    return runtime != NULL;
}

static void print(const struct bench_options *options, const char *name, double *values,
                  double *peer)
{
    bench_print(options, &(struct bench_figure){.name = name,
                                                .value = bench_percentile(values, SAMPLES, 0.5),
                                                .unit = "us",
                                                .peer = "mmap and munmap of a slab",
                                                .peer_value = bench_percentile(peer, SAMPLES, 0.5),
                                                .limit = LIMIT_US});
}

static bool measure(const struct bench_options *options, size_t slab_size)
{
    static struct times times;
    for (int i = 0; i < SAMPLES; i++)
        if (!time_one(slab_size, &times.create[i], &times.destroy[i], &times.peer[i]))
            return false;
    print(options, "runtime.create", times.create, times.peer);
    print(options, "runtime.destroy", times.destroy, times.peer);
    return true;
}

bool bench_runtime(const struct bench_options *options)
{
    struct cairn_runtime_statistics statistics;
    if (!bench_wants(options, "runtime"))
        return true;
    cairn_runtime *runtime = create();
    if (runtime == NULL)
        return false;
    cairn_runtime_statistics(runtime, &statistics);
    cairn_runtime_destroy(runtime);
    return measure(options, statistics.slab_size_bytes);
}
