/*
 * A peer that modifies code while it runs, with XRay: prints the times of __xray_patch_function and
 * __xray_unpatch_function for one function, in nanoseconds: median, 99th percentile, maximum.
 *
 * Must be compiled with clang -fxray-instrument.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <stdint.h>
#include <stdio.h>

extern int __xray_patch_function(int32_t function_id);
extern int __xray_unpatch_function(int32_t function_id);
extern int __xray_set_handler(void (*handler)(int32_t, int));

enum { SAMPLES = 2000, FUNCTION_ID = 1 };

static volatile int sink;

__attribute__((xray_always_instrument, noinline)) static void instrumented(int value)
{
    sink += value;
}

static void handler(int32_t function_id, int kind)
{
    (void)function_id;
    (void)kind;
}

int main(void)
{
    static double samples[SAMPLES];
    instrumented(1);
    __xray_set_handler(handler);
    for (int i = 0; i < SAMPLES; i++) {
        double start = bench_now();
        int status =
            i % 2 == 0 ? __xray_patch_function(FUNCTION_ID) : __xray_unpatch_function(FUNCTION_ID);
        samples[i] = bench_now() - start;
        if (status != 1)
            return 1;
        instrumented(i);
    }
    double median = bench_percentile(samples, SAMPLES, 0.5);
    double rare = bench_percentile(samples, SAMPLES, 0.99);
    printf("%f %f %f\n", median, rare, bench_percentile(samples, SAMPLES, 1));
    return 0;
}
