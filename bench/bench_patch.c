/*
 * Retargeting patch points, compared with XRay and with changing the protection of a page.
 *
 * The module is written by hand, so that no LLVM is needed. It has functions as LLVM compiles them
 * for x86-64, each with one patch point of 16 bytes.
 *
 * A relaxed patch takes less time than reading the clock. So a sample is the mean of GROUP patches,
 * and percentiles are over samples.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_patch.h"
#include "base/adapter.h"

#include <cairn/cairn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SITES = 4096, SAMPLES = 2000, GROUP = 64, FUNCTION_BYTES = 32, PATCHPOINT_OFFSET = 4 };

struct bench_module {
    cairn_runtime *runtime;
    uint8_t *code;
    cairn_site *sites[SITES];
};

static long near_one(void) { return 1; }
static long near_two(void) { return 2; }

/* ---- A module of SITES patch points ---- */

static const uint8_t function_bytes[FUNCTION_BYTES] = {
    0x48, 0x83, 0xEC, 0x08,                            /* sub $8, %rsp */
    0x49, 0xBB, 0,    0,    0,    0,    0,    0, 0, 0, /* movabs $target, %r11 */
    0x41, 0xFF, 0xD3, 0x0F, 0x1F, 0x00,                /* call *%r11; no-op */
    0x48, 0x83, 0xC4, 0x08, 0xC3,                      /* add $8, %rsp; ret */
    0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC,
};

static void write_functions(uint8_t *code)
{
    uint64_t target = (uintptr_t)near_one;
    for (int i = 0; i < SITES; i++) {
        memcpy(code + i * FUNCTION_BYTES, function_bytes, FUNCTION_BYTES);
        memcpy(code + i * FUNCTION_BYTES + PATCHPOINT_OFFSET + 2, &target, sizeof target);
    }
}

struct raw_function {
    uint64_t address;
    uint64_t stack_size;
    uint64_t record_count;
};

struct raw_record {
    uint64_t id;
    uint32_t code_offset;
    uint16_t flags;
    uint16_t location_count;
    uint32_t liveouts;
    uint32_t padding;
};

static bool write_stackmap(cairn_loader *loader, const uint8_t *code, struct cairn_error *error)
{
    const uint32_t header[4] = {3, SITES, 0, SITES};
    size_t size = sizeof header + SITES * (sizeof(struct raw_function) + sizeof(struct raw_record));
    uint8_t *section = cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, size, 8, NULL, error);
    if (section == NULL)
        return false;
    memcpy(section, header, sizeof header);
    struct raw_function *functions = (struct raw_function *)(void *)(section + sizeof header);
    struct raw_record *records = (struct raw_record *)(void *)(functions + SITES);
    for (int i = 0; i < SITES; i++) {
        functions[i] = (struct raw_function){(uintptr_t)code + (size_t)i * FUNCTION_BYTES, 8, 1};
        records[i] = (struct raw_record){.id = (uint64_t)i, .code_offset = PATCHPOINT_OFFSET};
    }
    return true;
}

static enum cairn_status declare(cairn_loader *loader, struct cairn_error *error)
{
    cairn_declarations *declarations;
    enum cairn_status status = cairn_declarations_create(NULL, &declarations, error);
    for (int i = 0; i < SITES && status == CAIRN_OK; i++) {
        const struct cairn_declaration declaration = {
            .id = (uint64_t)i,
            .kind = CAIRN_RECORD_PATCHPOINT,
            .byte_count = 16,
            .has_target = true,
            .result = {.kind = CAIRN_TYPE_INTEGER, .bits = 64},
        };
        status = cairn_declarations_add(declarations, &declaration, error);
    }
    if (status == CAIRN_OK)
        status = cairn_loader_declare(loader, declarations, error);
    cairn_declarations_destroy(declarations);
    return status;
}

static bool load(struct bench_module *module, const struct cairn_runtime_options *options,
                 struct cairn_error *error)
{
    cairn_loader *loader;
    cairn_module *loaded;
    if (cairn_runtime_create(options, &module->runtime, error) != CAIRN_OK ||
        cairn_loader_create(module->runtime, "bench", &loader, error) != CAIRN_OK)
        return false;
    module->code =
        cairn_loader_allocate(loader, CAIRN_SECTION_CODE, SITES * FUNCTION_BYTES, 64, NULL, error);
    if (module->code == NULL)
        return false;
    write_functions(module->code);
    if (!write_stackmap(loader, module->code, error) || declare(loader, error) != CAIRN_OK ||
        cairn_loader_finish(loader, &loaded, error) != CAIRN_OK ||
        cairn_module_publish(loaded, error) != CAIRN_OK)
        return false;
    for (uint32_t i = 0; i < SITES; i++)
        module->sites[i] = cairn_module_site(loaded, i);
    return true;
}

/* ---- A thread that executes the code meanwhile ---- */

struct executor {
    pthread_t thread;
    long (*function)(void);
    atomic_bool stop;
    atomic_bool runs;
};

static void pin_to(size_t processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set); /* optional: if it is refused, times vary more */
}

static void *execute(void *argument)
{
    struct executor *executor = argument;
    pin_to(1);
    while (!atomic_load_explicit(&executor->stop, memory_order_relaxed)) {
        executor->function();
        atomic_store_explicit(&executor->runs, true, memory_order_relaxed);
    }
    return NULL;
}

static void start(struct executor *executor, const struct bench_module *module)
{
    *executor = (struct executor){.function = (long (*)(void))(uintptr_t)module->code};
    pthread_create(&executor->thread, NULL, execute, executor);
    while (!atomic_load(&executor->runs))
        sched_yield();
}

static void stop(struct executor *executor)
{
    atomic_store(&executor->stop, true);
    pthread_join(executor->thread, NULL);
}

/* ---- Peers ---- */

/* Returns percentiles of one patch by XRay, in nanoseconds, as a program beside this one measures
 * them. False if that fails, as it does where there was no clang with XRay. */
static bool run_xray(double percentiles[3])
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "peer-xray");
    if (length <= 0)
        return false;
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, "peer-xray");
    FILE *peer = popen(path, "r");
    if (peer == NULL)
        return false;
    int read = fscanf(peer, "%lf %lf %lf", &percentiles[0], &percentiles[1], &percentiles[2]);
    return pclose(peer) == 0 && read == 3;
}

static double time_mprotect(void)
{
    enum { REPEATS = 2000 };
    static double samples[REPEATS];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t *code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return 0;
    for (int i = 0; i < REPEATS; i++) {
        double begun = bench_now();
        mprotect(code, page, PROT_READ | PROT_WRITE);
        *code = (uint64_t)i;
        mprotect(code, page, PROT_READ | PROT_EXEC);
        samples[i] = bench_now() - begun;
    }
    munmap(code, page);
    return bench_percentile(samples, REPEATS, 0.5);
}

/* ---- Figures ---- */

struct percentiles {
    double p50;
    double p99;
    double max;
};

struct patching {
    cairn_site *site;
    enum cairn_strength strength;
    const void *targets[2];
    int group;
};

static struct percentiles time_patching(const struct patching *patching)
{
    static double samples[SAMPLES];
    enum cairn_status status = CAIRN_OK;
    for (int i = 0; i < SAMPLES; i++) {
        double begun = bench_now();
        for (int j = 0; j < patching->group; j++)
            status |=
                cairn_site_call(patching->site, patching->targets[j % 2], patching->strength, NULL);
        samples[i] = (bench_now() - begun) / patching->group;
    }
    if (status != CAIRN_OK)
        return (struct percentiles){0};
    struct percentiles result = {.p50 = bench_percentile(samples, SAMPLES, 0.5)};
    result.p99 = bench_percentile(samples, SAMPLES, 0.99);
    result.max = bench_percentile(samples, SAMPLES, 1);
    return result;
}

static void print_percentiles(const struct bench_options *options, const char *name,
                              struct percentiles percentiles, const char *peer, double peer_value,
                              double ratio_limit)
{
    char full_name[64];
    snprintf(full_name, sizeof full_name, "%s.p50", name);
    bench_print(options, &(struct bench_figure){full_name, percentiles.p50, "ns", peer, peer_value,
                                                0, ratio_limit});
    snprintf(full_name, sizeof full_name, "%s.p99", name);
    bench_print(options,
                &(struct bench_figure){.name = full_name, .value = percentiles.p99, .unit = "ns"});
    snprintf(full_name, sizeof full_name, "%s.max", name);
    bench_print(options,
                &(struct bench_figure){.name = full_name, .value = percentiles.max, .unit = "ns"});
}

static void bench_strength(const struct bench_options *options, const struct bench_module *module,
                           enum cairn_strength strength, double xray, double mprotect_time)
{
    bool relaxed = strength == CAIRN_RELAXED;
    const struct patching patching = {
        .site = module->sites[0],
        .strength = strength,
        .targets = {(const void *)(uintptr_t)near_one, (const void *)(uintptr_t)near_two},
        .group = relaxed ? GROUP : 1,
    };
    const char *xray_name = xray > 0 ? "__xray_patch_function" : NULL;
    double bound = relaxed && xray > 0 ? 0.01 : 0;
    struct percentiles alone = time_patching(&patching);
    print_percentiles(options, relaxed ? "retarget.relaxed.alone" : "retarget.sync.alone", alone,
                      xray_name, xray, bound);
    bench_print(options, &(struct bench_figure){relaxed ? "retarget.relaxed.against-mprotect"
                                                        : "retarget.sync.against-mprotect",
                                                alone.p50, "ns", "mprotect, store, mprotect",
                                                mprotect_time, 0, 0});
    struct executor executor;
    start(&executor, module);
    struct percentiles busy = time_patching(&patching);
    stop(&executor);
    print_percentiles(options,
                      relaxed ? "retarget.relaxed.one-executing" : "retarget.sync.one-executing",
                      busy, NULL, 0, 0);
}

/* Measures targets within the direct call's reach, which are other code in the slab. */
static void bench_near(const struct bench_options *options, const struct bench_module *module)
{
    const struct patching patching = {
        .site = module->sites[1],
        .strength = CAIRN_RELAXED,
        .targets = {module->code, module->code + FUNCTION_BYTES},
        .group = GROUP,
    };
    print_percentiles(options, "retarget.relaxed.near-target", time_patching(&patching), NULL, 0,
                      0);
}

/* The same with a memory protection key for the written view, which few machines have. */
static void bench_protected(const struct bench_options *options)
{
    static struct bench_module module;
    const struct cairn_runtime_options protected_writes = {.protects_writes = true};
    struct cairn_error error;
    if (!load(&module, &protected_writes, &error)) {
        bench_print_missing(options, "retarget.relaxed.protected-writes", error.message);
        return;
    }
    const struct patching patching = {
        .site = module.sites[1],
        .strength = CAIRN_RELAXED,
        .targets = {module.code, module.code + FUNCTION_BYTES},
        .group = GROUP,
    };
    print_percentiles(options, "retarget.relaxed.protected-writes", time_patching(&patching), NULL,
                      0, 0);
    cairn_runtime_destroy(module.runtime);
}

static double time_many(const struct bench_module *module, const void *target,
                        enum cairn_strength strength)
{
    static struct cairn_site_change changes[SITES];
    double begun = bench_now();
    for (int i = 0; i < SITES; i++)
        changes[i] = (struct cairn_site_change){module->sites[i], CAIRN_SITE_CALL, target};
    enum cairn_status status = cairn_sites_change(changes, SITES, strength, NULL);
    return status == CAIRN_OK ? (bench_now() - begun) / (double)SITES : 0;
}

static bool can_synchronise(cairn_runtime *runtime)
{
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    return statistics.can_synchronise;
}

static void bench_many(const struct bench_options *options, const struct bench_module *module)
{
    enum { REPEATS = 51 };
    double samples[REPEATS];
    enum cairn_strength strength = can_synchronise(module->runtime) ? CAIRN_SYNC : CAIRN_RELAXED;
    for (int i = 0; i < REPEATS; i++) {
        const void *target =
            i % 2 == 0 ? (const void *)(uintptr_t)near_two : (const void *)(uintptr_t)near_one;
        samples[i] = time_many(module, target, strength);
    }
    bench_print(options, &(struct bench_figure){.name = "retarget.4096-sites.per-site",
                                                .value = bench_percentile(samples, REPEATS, 0.5),
                                                .unit = "ns",
                                                .limit = 30});
}

static bool make_no_ops(const struct bench_module *module)
{
    static struct cairn_site_change changes[SITES];
    for (int i = 0; i < SITES; i++)
        changes[i] = (struct cairn_site_change){.site = module->sites[i], .state = CAIRN_SITE_NOP};
    return cairn_sites_change(changes, SITES, CAIRN_RELAXED, NULL) == CAIRN_OK;
}

/* Returns the time per site for breaking an assumption with which all sites are registered. */
static double time_break(const struct bench_module *module, enum cairn_strength strength)
{
    cairn_assumption *assumption;
    enum cairn_status status = cairn_assumption_create(module->runtime, &assumption, NULL);
    if (status != CAIRN_OK)
        return 0;
    const void *target = (const void *)(uintptr_t)near_one;
    for (int i = 0; i < SITES && status == CAIRN_OK; i++)
        status = cairn_assumption_add(assumption, module->sites[i], target, CAIRN_RELAXED, NULL);
    double begun = bench_now();
    status |= cairn_assumption_break(assumption, strength, NULL);
    double elapsed = bench_now() - begun;
    cairn_assumption_destroy(assumption);
    return status == CAIRN_OK ? elapsed / (double)SITES : 0;
}

static void bench_assumption(const struct bench_options *options, const struct bench_module *module)
{
    enum { REPEATS = 51 };
    double samples[REPEATS];
    double peer_samples[REPEATS];
    enum cairn_strength strength = can_synchronise(module->runtime) ? CAIRN_SYNC : CAIRN_RELAXED;
    for (int i = 0; i < REPEATS; i++) {
        samples[i] = make_no_ops(module) ? time_break(module, strength) : 0;
        bool is_ready = make_no_ops(module);
        peer_samples[i] =
            is_ready ? time_many(module, (const void *)(uintptr_t)near_one, strength) : 0;
    }
    bench_print(options, &(struct bench_figure){
                             .name = "retarget.4096-sites.assumption",
                             .value = bench_percentile(samples, REPEATS, 0.5),
                             .unit = "ns",
                             .peer = "cairn_sites_change",
                             .peer_value = bench_percentile(peer_samples, REPEATS, 0.5),
                         });
}

bool bench_patch(const struct bench_options *options)
{
    static struct bench_module module;
    struct cairn_error error;
    if (!bench_wants(options, "retarget"))
        return true;
    if (!load(&module, NULL, &error)) {
        fprintf(stderr, "cairn-bench: %s\n", error.message);
        return false;
    }
    pin_to(0);
    double xray[3] = {0};
    if (!run_xray(xray)) {
        xray[0] = 0;
        bench_print_missing(options, "retarget.peer",
                            "clang's XRay runtime was not found when building, or failed");
    }
    double mprotect_time = time_mprotect();
    bench_strength(options, &module, CAIRN_RELAXED, xray[0], mprotect_time);
    if (can_synchronise(module.runtime))
        bench_strength(options, &module, CAIRN_SYNC, xray[0], mprotect_time);
    else
        bench_print_missing(options, "retarget.sync", "no membarrier with core synchronisation");
    bench_near(options, &module);
    bench_protected(options);
    bench_many(options, &module);
    bench_assumption(options, &module);
    cairn_runtime_destroy(module.runtime);
    return true;
}
