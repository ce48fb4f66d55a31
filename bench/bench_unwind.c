/*
 * bench-unwind FILE...: tables of unwind rules for ELF files: their memory, building them, looking
 * up rules, and applying rules. It is not a part of `make bench`, because it needs files with many
 * functions.
 *
 * The PCs are the middles of functions in random order. Lookups repeat 64 of them (hot), or use all
 * of them (random).
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"
#include "tests/unwind_apply.h"

#include <cairn/object.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOKUPS = 1 << 18, SAMPLE = 1024, SAMPLES = LOOKUPS / SAMPLE, HOT = 64, BUILDS = 11 };

struct subject {
    const struct cairn_arch *arch;
    struct function_list list;
    struct unwind *unwind;
    uint64_t pcs[LOOKUPS];
};

static const struct bench_options options = {0};

static void print(const char *name, double value, const char *unit)
{
    const struct bench_figure figure = {.name = name, .value = value, .unit = unit};
    bench_print(&options, &figure);
}

static void choose_pcs(struct subject *subject)
{
    uint64_t random = 1;
    for (size_t i = 0; i < LOOKUPS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t number = (size_t)(random >> 33) % subject->list.count;
        struct eh_frame_function function = subject->list.entries[number].function;
        subject->pcs[i] = function.address + function.size / 2 + 1;
    }
}

/* ---- Looking up ---- */

/* Looks up rules. Each PC depends on the result of the previous lookup, so that lookups do not
 * overlap, as in a walk. */
static uint64_t look_up(const struct subject *subject, const uint64_t *pcs, size_t mask)
{
    uint64_t found = 0;
    for (size_t i = 0; i < SAMPLE; i++)
        found = unwind_find_return(subject->unwind, pcs[i & mask] + (found >> 8))->loaded_count;
    return found;
}

/* Applies rules. The stack is synthetic; the CFA is in its middle, whatever the rules are. */
static uint64_t step(const struct subject *subject, const uint64_t *pcs, size_t mask)
{
    static uint64_t stack[1 << 14];
    static uint64_t slots[ARCH_UNWIND_SLOTS_MAX];
    uint64_t next = 0;
    for (size_t i = 0; i < SAMPLE; i++) {
        const struct unwind_row *row = unwind_find_return(subject->unwind, pcs[i & mask] + next);
        slots[row->cfa_slot] =
            (uint64_t)(uintptr_t)&stack[1 << 13] - (uint64_t)(int64_t)row->cfa_offset;
        unwind_apply(row, unwind_cfa(row, slots), slots);
        next = slots[ARCH_UNWIND_RETURN_ADDRESS]; /* always 0 */
    }
    return next;
}

typedef uint64_t measured(const struct subject *subject, const uint64_t *pcs, size_t mask);

static void time_lookups(const struct subject *subject, measured *function, bool is_hot,
                         const char *name)
{
    static double samples[SAMPLES];
    static volatile uint64_t sink;
    for (size_t i = 0; i < SAMPLES; i++) {
        const uint64_t *pcs = is_hot ? subject->pcs : subject->pcs + i * SAMPLE;
        double begin = bench_now_of_thread();
        sink = function(subject, pcs, is_hot ? HOT - 1 : SAMPLE - 1);
        samples[i] = bench_now_of_thread() - begin;
    }
    (void)sink;
    print(name, bench_percentile(samples, SAMPLES, 0.5) / (double)SAMPLE, "ns");
}

/* ---- Building ---- */

static enum cairn_status build(const struct eh_frame *frame, struct subject *subject,
                               struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    double samples[BUILDS];
    for (size_t i = 0; i < BUILDS; i++) {
        unwind_destroy(subject->unwind);
        function_list_release(&subject->list);
        double begin = bench_now_of_thread();
        enum cairn_status status = function_list_read(frame, 1, &allocator, &subject->list, error);
        if (status == CAIRN_OK)
            status = unwind_create(&subject->list, subject->arch, &subject->unwind, error);
        if (status != CAIRN_OK)
            return status;
        samples[i] = bench_now_of_thread() - begin;
    }
    print("build, a function", bench_percentile(samples, BUILDS, 0.5) / (double)subject->list.count,
          "ns");
    return CAIRN_OK;
}

static enum cairn_status measure(const struct eh_frame *frame, struct subject *subject,
                                 struct cairn_error *error)
{
    subject->list.allocator = memory_allocator(NULL);
    enum cairn_status status = build(frame, subject, error);
    if (status != CAIRN_OK || subject->unwind == NULL)
        return status;
    struct unwind_size size = unwind_size(subject->unwind);
    double functions = (double)subject->list.count;
    print("functions", functions, "");
    print("entries, a function", (double)size.entries / functions, "");
    print("rows that differ", (double)size.rows, "");
    print("memory, a function", (double)size.bytes / functions, "bytes");
    print("memory, an entry", (double)size.bytes / (double)size.entries, "bytes");
    choose_pcs(subject);
    time_lookups(subject, look_up, true, "lookup, hot");
    time_lookups(subject, look_up, false, "lookup, random");
    time_lookups(subject, step, true, "lookup and step, hot");
    time_lookups(subject, step, false, "lookup and step, random");
    return CAIRN_OK;
}

static enum cairn_status measure_file(const char *path, struct subject *subject,
                                      struct cairn_error *error)
{
    cairn_object *object = NULL;
    struct cairn_object_section section = {0};
    enum cairn_status status = cairn_object_open(path, NULL, &object, error);
    if (status != CAIRN_OK)
        return status;
    subject->arch = arch_find(cairn_object_header(object).architecture);
    const struct cairn_object_filter filter = {.name = ".eh_frame"};
    status = cairn_object_next_section(object, &filter, &section, error);
    const struct eh_frame frame = {section.contents, section.address};
    if (status == CAIRN_OK)
        status = measure(&frame, subject, error);
    unwind_destroy(subject->unwind);
    function_list_release(&subject->list);
    cairn_object_destroy(object);
    return status;
}

int main(int count, char **arguments)
{
    static struct subject subject;
    for (int i = 1; i < count; i++) {
        struct cairn_error error;
        subject = (struct subject){0};
        printf("%s\n", arguments[i]);
        if (measure_file(arguments[i], &subject, &error) != CAIRN_OK) {
            fprintf(stderr, "bench-unwind: %s: %s\n", arguments[i], error.message);
            return 1;
        }
    }
    return 0;
}
