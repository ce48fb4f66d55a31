/*
 * cairn-bench-roots: the time to relocate the roots of a frame that is stopped at a statepoint.
 *
 * The frames are written by hand, with places on the stack as LLVM spills pointers. The mover
 * returns each object unchanged, so only the time for finding and writing roots and for calling the
 * mover is measured. A loop over a list of places shows the time for the calls alone. With an
 * argument, only one frame is measured.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "bench/report.h"

#include <cairn/roots.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 501,
    GROUP = 200,
    PAIRS_MAX = 256,
    HEADER_LOCATIONS = 3,
    CODE = 0x1000,
    BOUND_FROM = 8
};

/* ---- A record ---- */

static struct {
    unsigned char bytes[1 << 14];
    size_t size;
} section;

static void put(uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        size_t byte = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        section.bytes[section.size++] = (unsigned char)(value >> 8 * byte);
    }
}

static void put_location(enum cairn_location_kind kind, uint16_t dwarf, uint32_t offset)
{
    put(kind, 1);
    put(0, 1);
    put(sizeof(void *), 2);
    put(dwarf, 2);
    put(0, 2);
    put(offset, 4);
}

static void align(void)
{
    while (section.size % 8 != 0)
        put(0, 1);
}

/* Writes pairs. One of `derived_every` pairs has a derived pointer in a place after its base; none
 * has if it is 0. */
static void put_pairs(uint32_t count, uint32_t derived_every)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_derived = derived_every != 0 && i % derived_every == 0;
        put_location(CAIRN_LOCATION_INDIRECT, arch_host_layout.stack_pointer, 8 * place);
        put_location(CAIRN_LOCATION_INDIRECT, arch_host_layout.stack_pointer,
                     8 * (place + is_derived));
        place += 1 + is_derived;
    }
}

static void put_map(uint32_t count, uint32_t derived_every)
{
    section.size = 0;
    put(3, 1);
    put(0, 3);
    put(1, 4); /* function count */
    put(0, 4);
    put(1, 4); /* record count */
    put(CODE, 8);
    put(8, 8);
    put(1, 8);
    put(1, 8); /* ID */
    put(0, 4);
    put(0, 2);
    put(HEADER_LOCATIONS + 2 * (uint64_t)count, 2);
    for (int i = 0; i < HEADER_LOCATIONS; i++)
        put_location(CAIRN_LOCATION_CONSTANT, 0, 0);
    put_pairs(count, derived_every);
    align();
    put(0, 4);
    align();
}

static cairn_table *make_table(uint32_t count, uint32_t derived_every)
{
    cairn_table *table;
    struct cairn_error error;
    put_map(count, derived_every);
    const struct cairn_section view = {
        .bytes = section.bytes, .size = section.size, .byte_order = CAIRN_BYTE_ORDER_NATIVE};
    if (cairn_table_create(&view, 1, NULL, &table, &error) == CAIRN_OK)
        return table;
    fprintf(stderr, "cairn-bench-roots: %s\n", error.message);
    exit(1);
}

/* ---- One frame's roots, in nanoseconds ---- */

static void *leave(void *object, void *user)
{
    (void)user;
    return object;
}

static double time_relocations(struct cairn_frame *frame, struct cairn_record record)
{
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++)
        if (cairn_frame_relocate(frame, record, leave, NULL, NULL) != CAIRN_OK)
            exit(1);
    return (bench_now_of_thread() - begun) / (double)GROUP;
}

static double time_enumerations(struct cairn_frame *frame, struct cairn_record record)
{
    static struct cairn_root roots[PAIRS_MAX];
    size_t count;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++)
        if (cairn_frame_roots(frame, record, roots, PAIRS_MAX, &count, NULL) != CAIRN_OK)
            exit(1);
    return (bench_now_of_thread() - begun) / (double)GROUP;
}

/* Measures a collector that has a list of places without repetitions. */
static double time_list(void **places, uint32_t count, cairn_root_mover *volatile move)
{
    cairn_root_mover *mover = move;
    double begun = bench_now_of_thread();
    for (int i = 0; i < GROUP; i++)
        for (uint32_t j = 0; j < count; j++)
            places[j] = mover(places[j], NULL);
    return (bench_now_of_thread() - begun) / (double)GROUP;
}

/* ---- Figures ---- */

/* Prints a figure. Frames with fewer than BOUND_FROM roots have no limit, because each frame takes
 * a constant time of its own. */
static void print(const char *way, const char *name, double *values, double *list_values,
                  double limit)
{
    char whole_name[64];
    const struct bench_options options = {.json = false};
    snprintf(whole_name, sizeof whole_name, "roots.%s.%s", way, name);
    const struct bench_figure figure = {
        .name = whole_name,
        .value = bench_percentile(values, SAMPLES, 0.5),
        .unit = "ns/root",
        .peer = list_values == NULL ? NULL : "a list of places",
        .peer_value = list_values == NULL ? 0 : bench_percentile(list_values, SAMPLES, 0.5),
        .limit = limit,
    };
    bench_print(&options, &figure);
}

/* Prints medians of the time for each root. The ways are measured in turn. */
static void bench_roots(const char *name, uint32_t count, uint32_t derived_every)
{
    static uint64_t stack[2 * PAIRS_MAX];
    static double relocations[SAMPLES];
    static double enumerations[SAMPLES];
    static double lists[SAMPLES];
    cairn_table *table = make_table(count, derived_every);
    const struct cairn_record record = {table, 0};
    struct cairn_frame frame = {.pc = CODE, .sp = (uintptr_t)stack, .is_calling = true};
    /* A derived pointer with a place of its own is another root. */
    uint32_t roots = count + (derived_every == 0 ? 0 : (count + derived_every - 1) / derived_every);
    double limit = roots < BOUND_FROM ? 0 : 3;
    memset(stack, 0x10, sizeof stack);
    for (int i = 0; i < SAMPLES; i++) {
        relocations[i] = time_relocations(&frame, record) / roots;
        enumerations[i] = time_enumerations(&frame, record) / roots;
        lists[i] = time_list((void **)stack, roots, leave) / roots;
    }
    print("enumerate", name, enumerations, NULL, limit);
    print("relocate", name, relocations, lists, limit);
    cairn_table_destroy(table);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint32_t count;
        uint32_t derived_every;
    } all[] = {
        {"1", 1, 0},           {"2", 2, 0},
        {"4", 4, 0},           {"8", 8, 0},
        {"16", 16, 0},         {"16-derived-4", 16, 4},
        {"256", PAIRS_MAX, 0}, {"256-derived-64", PAIRS_MAX, 4},
    };
    if (arch_host() == NULL) {
        fputs("cairn-bench-roots: no frames on this machine\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc < 2 || strcmp(argv[1], all[i].name) == 0)
            bench_roots(all[i].name, all[i].count, all[i].derived_every);
    return 0;
}
