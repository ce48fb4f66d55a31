/*
 * cairn-bench-log: the time of an event, with a log and without one.
 *
 * The log is larger than what is recorded, so that no event is lost. The peer does the least that a
 * log with times can do: it reads clock_gettime and copies the event to an array.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 40, BATCH = 2000, NAMES = 64, SLOTS = 3 * BATCHES * BATCH, NAME_BYTES = 48 };

static const struct bench_options options = {.json = false};

static char names[NAMES][NAME_BYTES];
static char texts[NAMES][NAME_BYTES];

static void fail(const char *message)
{
    fprintf(stderr, "cairn-bench-log: %s\n", message);
    exit(1);
}

/* ---- What is measured ---- */

static cairn_runtime *runtime;
static struct cairn_log_event peer[BATCH];

static void plain(uint64_t i)
{
    const struct cairn_log_message message = {.id = i, .values = {i, i}};
    cairn_log_write(runtime, &message);
}

static void two_strings(uint64_t i)
{
    const struct cairn_log_message message = {
        .name = names[i % NAMES], .text = texts[i * 7 % NAMES], .id = i, .values = {i, i}};
    cairn_log_write(runtime, &message);
}

static void copy_with_system_clock(uint64_t i)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    peer[i % BATCH] = (struct cairn_log_event){
        .clock = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, .id = i, .a = i};
    __asm__ volatile("" : : "r"(&peer[i % BATCH]) : "memory");
}

/* Returns the median of the batches, in nanoseconds for each call. */
static double measure(void (*record)(uint64_t i))
{
    static double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double begun = bench_now_of_thread();
        for (uint64_t i = 0; i < BATCH; i++)
            record(i);
        batches[batch] = (bench_now_of_thread() - begun) / (double)BATCH;
    }
    return bench_percentile(batches, BATCHES, 0.5);
}

static void print(const char *name, double value, double peer_value, double limit)
{
    bench_print(&options, &(struct bench_figure){.name = name,
                                                 .value = value,
                                                 .unit = "ns",
                                                 .peer = "clock_gettime and a copy",
                                                 .peer_value = peer_value,
                                                 .limit = limit});
}

int main(void)
{
    char path[] = "/tmp/cairn-bench-log-XXXXXX";
    int file = mkstemp(path);
    cairn_log *log = NULL;
    const struct cairn_log_options log_options = {.slot_count = SLOTS};
    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "function_%d::with_a_name", i);
        snprintf(texts[i], sizeof texts[i], "guard %d: not a number", i);
    }
    if (file < 0 || close(file) != 0 ||
        cairn_log_create(path, &log_options, &log, NULL) != CAIRN_OK ||
        cairn_runtime_create(NULL, &runtime, NULL) != CAIRN_OK)
        fail("no log can be created here");
    bench_begin(&options);
    double peer_ns = measure(copy_with_system_clock);
    print("log.off", measure(plain), peer_ns, 0);
    if (cairn_log_attach(log, runtime, NULL) != CAIRN_OK)
        fail("the log cannot be attached");
    print("log.event", measure(plain), peer_ns, 25);
    print("log.event_with_two_strings", measure(two_strings), peer_ns, 25);
    bench_end(&options);
    cairn_runtime_destroy(runtime);
    cairn_log_destroy(log);
    unlink(path);
    return 0;
}
