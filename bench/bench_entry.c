/*
 * bench/bench_entry.c - the time of a call through an entry, beside a call of the function itself,
 * and of the installation of a version.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_entry.h"

#include <cairn/cairn.h>
#include <stdio.h>

enum { SAMPLES = 501, GROUP = 1000 };

typedef long function(long number);

static __attribute__((noinline)) long one(long number) { return number + 1; }
static __attribute__((noinline)) long two(long number) { return number + 2; }

static double time_calls(function *called)
{
    function *volatile hidden = called;
    called = hidden;
    long sum = 0;
    double begun = bench_now_of_thread();
    for (long i = 0; i < GROUP; i++)
        sum = called(sum);
    double elapsed = bench_now_of_thread() - begun;
    return sum > 0 ? elapsed / (double)GROUP : 0;
}

static double time_installations(cairn_entry *entry)
{
    static const struct cairn_entry_version versions[2] = {
        {.code = (const void *)(uintptr_t)one},
        {.code = (const void *)(uintptr_t)two},
    };
    enum cairn_status status = CAIRN_OK;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++)
        status |= cairn_entry_install(entry, &versions[i % 2], CAIRN_RELAXED, NULL);
    double elapsed = bench_now_of_thread() - begun;
    return status == CAIRN_OK ? elapsed / (double)GROUP : 0;
}

static void measure(const struct bench_options *options, cairn_entry *entry)
{
    static double values[SAMPLES];
    static double peer_values[SAMPLES];
    static double installations[SAMPLES];
    function *target = (function *)(uintptr_t)cairn_entry_target(entry);
    for (int i = 0; i < SAMPLES; i++) {
        values[i] = time_calls(target);
        peer_values[i] = time_calls(one);
        installations[i] = time_installations(entry);
    }
    bench_print(options, &(struct bench_figure){
                             .name = "entry.call",
                             .value = bench_percentile(values, SAMPLES, 0.5),
                             .unit = "ns",
                             .peer = "the function itself",
                             .peer_value = bench_percentile(peer_values, SAMPLES, 0.5),
                         });
    bench_print(options,
                &(struct bench_figure){.name = "entry.install",
                                       .value = bench_percentile(installations, SAMPLES, 0.5),
                                       .unit = "ns"});
}

bool bench_entry(const struct bench_options *options)
{
    cairn_runtime *runtime;
    cairn_entry *entry;
    struct cairn_error error;
    if (!bench_wants(options, "entry"))
        return true;
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK) {
        fprintf(stderr, "cairn-bench: %s\n", error.message);
        return false;
    }
    enum cairn_status status =
        cairn_entry_create(runtime, "one", NULL, (const void *)(uintptr_t)one, &entry, &error);
    if (status == CAIRN_OK) {
        measure(options, entry);
        cairn_entry_destroy(entry);
    } else {
        fprintf(stderr, "cairn-bench: %s\n", error.message);
    }
    cairn_runtime_destroy(runtime);
    return status == CAIRN_OK;
}
