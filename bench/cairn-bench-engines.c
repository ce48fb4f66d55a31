/*
 * cairn-bench-engines: lookups among many engines that are alive, each with a module of one
 * function, in random order. LLVM allocates and frees between the modules, so Cairn's memory of one
 * module is far from the next one's unless Cairn keeps it together.
 *
 * All lookups are compared with those in one table of as many records, in random order, too.
 *
 * usage: cairn-bench-engines [PREFIX]
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/generate_stackmap.h"
#include "bench/report.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ENGINES = 4096,
    SITES = 4, /* of each function, and so records */
    RECORDS = ENGINES * SITES,
    LOOKUPS = 200000,
    REPEATS = 15
};

static struct bench_options options;
static uint64_t sink;

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "cairn-bench-engines: %s: %s\n", cairn_status_name(status), error->message);
    exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 3;
}

/* ---- Engines ---- */

struct engines {
    cairn_runtime *runtime;
    LLVMContextRef contexts[ENGINES];
    cairn_engine *engines[ENGINES];
    uint32_t count;
    /* By number of the record, in order of the engines. */
    uint64_t id[RECORDS];
    uint64_t address[RECORDS];
};

/* Builds a function of its own, with patch points between which it adds to its argument. */
static LLVMModuleRef build_module(LLVMContextRef context, uint32_t number, const uint64_t *ids)
{
    char name[32];
    struct cairn_error error;
    snprintf(name, sizeof name, "function_%u", number);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext(name, context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMValueRef function = LLVMAddFunction(module, name, LLVMFunctionType(int64, &int64, 1, 0));
    LLVMValueRef value = LLVMGetParam(function, 0);
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
    for (uint32_t i = 0; i < SITES; i++) {
        const struct cairn_patchpoint patchpoint = {
            .id = ids[i],
            .byte_count = cairn_patchpoint_minimum_bytes(module, false),
            .live_values = &value,
            .live_value_count = 1,
        };
        if (cairn_build_patchpoint(builder, &patchpoint, &error) == NULL)
            check(error.status, &error);
        value = LLVMBuildAdd(builder, value, LLVMConstInt(int64, number + i, 0), "");
    }
    LLVMBuildRet(builder, value);
    LLVMDisposeBuilder(builder);
    return module;
}

static void add_engine(struct engines *engines)
{
    const struct cairn_engine_options engine_options = {.optimisation_level = 1};
    const uint32_t number = engines->count++;
    uint64_t *ids = &engines->id[number * SITES];
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15) + number;
    struct cairn_error error;
    for (uint32_t i = 0; i < SITES; i++)
        ids[i] = next_random(&state) << 20 | (number * SITES + i);
    LLVMContextRef context = LLVMContextCreate();
    engines->contexts[number] = context;
    check(cairn_engine_create(engines->runtime, build_module(context, number, ids), &engine_options,
                              &engines->engines[number], &error),
          &error);
    check(cairn_engine_compile(engines->engines[number], &error), &error);
    for (uint32_t i = 0; i < SITES; i++) {
        struct cairn_record record;
        if (cairn_runtime_find_id(engines->runtime, ids[i], &record, 1) != 1)
            abort();
        engines->address[number * SITES + i] = cairn_record_address(record);
    }
}

static void destroy(struct engines *engines)
{
    for (uint32_t i = 0; i < engines->count; i++) {
        cairn_engine_destroy(engines->engines[i]);
        LLVMContextDispose(engines->contexts[i]);
    }
    cairn_runtime_destroy(engines->runtime);
    free(engines);
}

/* ---- Lookups ---- */

static uint64_t wanted_ids[LOOKUPS];
static uint64_t wanted_addresses[LOOKUPS];
static uint64_t wanted_in_table[LOOKUPS];

typedef uint64_t lookups(const void *where);

static uint64_t find_ids(const void *runtime)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_runtime_find_id(runtime, wanted_ids[i], &record, 1) + record.index;
    return sum;
}

static uint64_t find_sites(const void *runtime)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += (uintptr_t)cairn_runtime_find_site(runtime, wanted_ids[i], NULL);
    return sum;
}

static uint64_t find_functions(const void *runtime)
{
    struct cairn_function function = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum +=
            cairn_runtime_find_function(runtime, wanted_addresses[i], &function) + function.address;
    return sum;
}

static uint64_t find_records(const void *runtime)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_runtime_find_address(runtime, wanted_addresses[i], &record) + record.index;
    return sum;
}

static uint64_t find_in_table(const void *table)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_table_find_address(table, wanted_in_table[i], &record) + record.index;
    return sum;
}

static double time_lookups(lookups *look_up, const void *where)
{
    double begun = bench_now_of_thread();
    sink += look_up(where);
    return (bench_now_of_thread() - begun) / (double)LOOKUPS;
}

static cairn_table *create_table(uint32_t records)
{
    cairn_table *table;
    size_t size;
    uint8_t *bytes =
        generate_stackmap(records, GENERATED_IDS_ASCENDING, UINT64_C(0x7F0000000000), &size);
    const struct cairn_section section = {bytes, size, CAIRN_BYTE_ORDER_NATIVE};
    if (bytes == NULL || cairn_table_create(&section, 1, NULL, &table, NULL) != CAIRN_OK)
        abort();
    free(bytes);
    return table;
}

static void measure(const struct engines *engines, const cairn_table *table, const char *what,
                    lookups *look_up, double ratio_limit)
{
    char name[64];
    double times[REPEATS];
    double peer_times[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        times[i] = time_lookups(look_up, engines->runtime);
        peer_times[i] = time_lookups(find_in_table, table);
    }
    snprintf(name, sizeof name, "engines.%s-%u", what, engines->count);
    bench_print(&options,
                &(struct bench_figure){.name = name,
                                       .value = bench_percentile(times, REPEATS, 0.5),
                                       .unit = "ns",
                                       .peer = "one table",
                                       .peer_value = bench_percentile(peer_times, REPEATS, 0.5),
                                       .ratio_limit = ratio_limit});
}

static void bench_lookups(const struct engines *engines)
{
    const uint32_t records = engines->count * SITES;
    cairn_table *table = create_table(records);
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        uint32_t number = (uint32_t)(next_random(&state) % records);
        wanted_ids[i] = engines->id[number];
        wanted_addresses[i] = engines->address[number];
        wanted_in_table[i] = cairn_record_address((struct cairn_record){table, number});
    }
    measure(engines, table, "find-id", find_ids, 0);
    measure(engines, table, "find-site", find_sites, 3);
    measure(engines, table, "find-function", find_functions, 3);
    measure(engines, table, "find-record", find_records, 3);
    cairn_table_destroy(table);
}

int main(int argc, char **argv)
{
    static const uint32_t counts[] = {64, 1024, ENGINES};
    struct cairn_error error;
    options.only = argc > 1 ? argv[1] : NULL;
    struct engines *engines = calloc(1, sizeof *engines);
    if (engines == NULL)
        abort();
    check(cairn_runtime_create(NULL, &engines->runtime, &error), &error);
    bench_begin(&options);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        while (engines->count < counts[i])
            add_engine(engines);
        bench_lookups(engines);
    }
    destroy(engines);
    bench_end(&options);
    return 0;
}
