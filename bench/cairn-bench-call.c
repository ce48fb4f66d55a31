/*
 * cairn-bench-call: the time that an OSR entry takes, which is a call of a function with 8 values
 * by a signature, compared with C's call of the same function; and the time that a closure takes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 1001, GROUP = 1000, VALUES = 8 };

/* ---- The callee: like an OSR version of a loop, with its live values ---- */

typedef double entered(int64_t, double, const void *, int32_t, int64_t, double, const void *,
                       int32_t);

__attribute__((noinline)) static double enter(int64_t a, double b, const void *c, int32_t d,
                                              int64_t e, double f, const void *g, int32_t h)
{
    return b + f + (double)(a + e + d + h + (c == g));
}

/* Volatile, so that the compiler does not know the function, as with JIT-compiled code. */
static entered *volatile function = enter;

static struct cairn_value values[VALUES];
static cairn_signature *signature;
static double sum;

static double time_direct(void)
{
    double begun = bench_now();
    for (int i = 0; i < GROUP; i++)
        sum += function(i, 2, values, 4, 5, 6, values, 8);
    return (bench_now() - begun) / (double)GROUP;
}

/* Measures calls with the interpreter's values, of which one changes. */
static double time_call(const void *target)
{
    struct cairn_value result;
    double begun = bench_now();
    for (int i = 0; i < GROUP; i++) {
        int64_t first = i;
        memcpy(values[0].bytes, &first, sizeof first);
        if (cairn_call(signature, target, values, VALUES, &result, NULL) != CAIRN_OK)
            abort();
        sum += cairn_value_double(&result);
    }
    return (bench_now() - begun) / (double)GROUP;
}

static void handle(const struct cairn_value *arguments, struct cairn_value *results, void *user)
{
    (void)user;
    results[0] = arguments[1];
}

/* ---- Figures ---- */

/* Prints the difference of the medians of both kinds of calls, which are measured in turn. */
static void compare(const char *name, const void *target, double limit)
{
    static double direct[SAMPLES];
    static double by_signature[SAMPLES];
    const struct bench_options options = {.json = false};
    for (int i = 0; i < SAMPLES; i++) {
        direct[i] = time_direct();
        by_signature[i] = time_call(target);
    }
    double peer = bench_percentile(direct, SAMPLES, 0.5);
    const struct bench_figure figure = {
        .name = name,
        .value = bench_percentile(by_signature, SAMPLES, 0.5) - peer,
        .unit = "ns",
        .peer = "direct call",
        .peer_value = peer,
        .limit = limit,
    };
    bench_print(&options, &figure);
}

static void fail(const char *message)
{
    fprintf(stderr, "cairn-bench-call: %s\n", message);
    exit(1);
}

static void prepare(void)
{
    struct cairn_error error = {0};
    struct cairn_type types[VALUES];
    const struct cairn_type result = CAIRN_DOUBLE;
    for (int i = 0; i < VALUES; i += 4) {
        values[i] = cairn_value_of_integer(64, i + 1);
        values[i + 1] = cairn_value_of_double(i + 2);
        values[i + 2] = cairn_value_of_pointer(values);
        values[i + 3] = cairn_value_of_integer(32, i + 4);
    }
    for (int i = 0; i < VALUES; i++)
        types[i] = values[i].type;
    types[3].extends_sign = 1;
    types[7].extends_sign = 1;
    if (cairn_signature_create(NULL, &result, 1, types, VALUES, &signature, &error) != CAIRN_OK)
        fail(error.message);
}

int main(void)
{
    struct cairn_error error = {0};
    cairn_runtime *runtime;
    cairn_closure *closure = NULL;
    const void *target;
    entered *pointer = function;
    prepare();
    memcpy(&target, &pointer, sizeof target);
    compare("osr.entry.8-values", target, 60);
    if (cairn_runtime_create(NULL, &runtime, &error) != CAIRN_OK ||
        cairn_closure_create(runtime, signature, handle, NULL, &closure, &error) != CAIRN_OK)
        fail(error.message);
    compare("closure.8-values", cairn_closure_target(closure), 0);
    cairn_closure_destroy(closure);
    cairn_runtime_destroy(runtime);
    cairn_signature_destroy(signature);
    return sum < 0;
}
