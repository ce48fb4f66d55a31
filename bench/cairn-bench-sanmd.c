/*
 * cairn-bench-sanmd: the time that libcairn-sanmd takes to read metadata and to answer queries.
 *
 * The sections are those of a large program as clang 19 writes them: functions one after another,
 * each with accesses. A query is one random PC, and half of the queries for accesses find none. The
 * peers are a hash table of the same PCs that is half full, without the code that makes queries
 * safe while libraries are loaded and unloaded, and a linear scan of the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"
#include "sanmd/callbacks.h"

#include <cairn/sanmd_runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FUNCTIONS = 100000,
    ATOMICS_EACH = 10,
    ATOMICS = FUNCTIONS * ATOMICS_EACH,
    FUNCTION_BYTES = 320,
    QUERIES = 1 << 20,
    SCANS = 64,
    PLACES = 1 << 21,
    ROUNDS = 9
};

static struct {
    uint8_t covered[FUNCTIONS * 8];
    uint8_t atomics[ATOMICS * 4];
    size_t covered_bytes;
    uint64_t code; /* address of the functions, which do not exist */
} program;

static uint64_t queries[QUERIES];
static uint64_t places[PLACES];
static volatile uint64_t kept;

static uint64_t random_state = 88172645463325252;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* ---- The program ---- */

static void put_distance(uint8_t *bytes, uint64_t pc)
{
    int32_t distance = (int32_t)(int64_t)(pc - (uint64_t)(uintptr_t)bytes);
    __builtin_memcpy(bytes, &distance, sizeof distance);
}

static void put_function(uint64_t address)
{
    uint8_t *bytes = &program.covered[program.covered_bytes];
    put_distance(bytes, address);
    bytes[4] = (FUNCTION_BYTES & 0x7F) | 0x80;
    bytes[5] = FUNCTION_BYTES >> 7;
    bytes[6] = CAIRN_SANMD_FEATURE_ATOMICS;
    program.covered_bytes += 7;
}

static uint64_t access_pc(unsigned number)
{
    return program.code + (uint64_t)FUNCTION_BYTES / ATOMICS_EACH * number + number % 7;
}

static void make_program(void)
{
    program.code = ((uint64_t)(uintptr_t)&program & ~UINT64_C(0xFFF)) + (1 << 26);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        put_function(program.code + (uint64_t)FUNCTION_BYTES * i);
    for (unsigned i = 0; i < ATOMICS; i++)
        put_distance(&program.atomics[4 * i], access_pc(i));
}

static void add(void)
{
    __sanitizer_metadata_covered_add(2, program.covered, program.covered + program.covered_bytes);
    __sanitizer_metadata_atomics_add(2, program.atomics, program.atomics + sizeof program.atomics);
}

static void forget(void)
{
    __sanitizer_metadata_covered_del(2, program.covered, program.covered + program.covered_bytes);
    __sanitizer_metadata_atomics_del(2, program.atomics, program.atomics + sizeof program.atomics);
}

/* ---- The peers ---- */

static uint64_t *place_of(uint64_t pc)
{
    size_t place = (pc * UINT64_C(0x9E3779B97F4A7C15)) >> 43;
    while (places[place] != 0 && places[place] != pc)
        place = (place + 1) % PLACES;
    return &places[place];
}

static bool scan(uint64_t pc)
{
    for (size_t i = 0; i < sizeof program.atomics; i += 4) {
        int32_t distance;
        __builtin_memcpy(&distance, &program.atomics[i], sizeof distance);
        if ((uint64_t)(uintptr_t)&program.atomics[i] + (uint64_t)(int64_t)distance == pc)
            return true;
    }
    return false;
}

/* ---- Measuring ---- */

static double median_of(void (*run)(void))
{
    double samples[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        double begun = bench_now_of_thread();
        run();
        samples[i] = bench_now_of_thread() - begun;
    }
    return bench_percentile(samples, ROUNDS, 0.5);
}

static void read_and_forget(void)
{
    add();
    forget();
}

/* Returns the query, in a way that it cannot begin before the previous answer is known. */
static uint64_t after(uint64_t found, uint64_t query) { return query + (found >> 63); }

static void ask_accesses(void)
{
    uint64_t found = 0;
    for (size_t i = 0; i < QUERIES; i++)
        found += cairn_sanmd_is_atomic(after(found, queries[i]));
    kept = found;
}

static void ask_functions(void)
{
    struct cairn_sanmd_entry function = {0};
    uint64_t found = 0;
    for (size_t i = 0; i < QUERIES; i++)
        found += cairn_sanmd_find_function(after(found, queries[i]), &function);
    kept = found + function.address;
}

static void ask_hash_table(void)
{
    uint64_t found = 0;
    for (size_t i = 0; i < QUERIES; i++)
        found += *place_of(after(found, queries[i])) != 0;
    kept = found;
}

static void ask_scans(void)
{
    uint64_t found = 0;
    for (size_t i = 0; i < SCANS; i++)
        found += scan(queries[i]);
    kept = found;
}

/* Makes queries: half of them for accesses, half of them for random places. */
static void make_queries(void)
{
    for (size_t i = 0; i < QUERIES; i++)
        queries[i] = random_number() % 2 == 0
                         ? access_pc((unsigned)(random_number() % ATOMICS))
                         : program.code + random_number() % ((uint64_t)FUNCTIONS * FUNCTION_BYTES);
    for (unsigned i = 0; i < ATOMICS; i++)
        *place_of(access_pc(i)) = access_pc(i);
}

static void print_size(const struct bench_options *options)
{
    struct cairn_sanmd_statistics statistics;
    cairn_sanmd_get_statistics(&statistics);
    const struct bench_figure figure = {
        .name = "sanmd.memory",
        .value = (double)statistics.table_bytes /
                 (double)(statistics.atomic_count + statistics.function_count),
        .unit = "bytes/entry"};
    bench_print(options, &figure);
}

int main(void)
{
    const struct bench_options options = {0};
    make_program();
    make_queries();
    bench_begin(&options);
    const struct bench_figure reading = {.name = "sanmd.read",
                                         .value =
                                             median_of(read_and_forget) / (FUNCTIONS + ATOMICS),
                                         .unit = "ns/entry"};
    bench_print(&options, &reading);
    add();
    print_size(&options);
    double access = median_of(ask_accesses) / (double)QUERIES;
    const struct bench_figure against_table = {.name = "sanmd.atomic",
                                               .value = access,
                                               .unit = "ns",
                                               .peer = "hash table",
                                               .peer_value =
                                                   median_of(ask_hash_table) / (double)QUERIES};
    bench_print(&options, &against_table);
    const struct bench_figure against_scan = {.name = "sanmd.atomic-scan",
                                              .value = access,
                                              .unit = "ns",
                                              .peer = "scan",
                                              .peer_value = median_of(ask_scans) / (double)SCANS};
    bench_print(&options, &against_scan);
    const struct bench_figure function = {.name = "sanmd.function",
                                          .value = median_of(ask_functions) / (double)QUERIES,
                                          .unit = "ns"};
    bench_print(&options, &function);
    forget();
    bench_end(&options);
    return 0;
}
