/*
 * cairn-bench-modules: what it takes to have a hundred thousand modules of one function each: time
 * and memory of loading, finding and retiring them, of exits and closures, of a fork, and of a
 * child's first patch.
 *
 * All modules come from one object, which is made without LLVM. Finding by ID is compared with
 * std::unordered_map, and finding by PC with one table of as many records.
 *
 * usage: cairn-bench-modules [--only PREFIX]
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "bench/generate_stackmap.h"
#include "bench/one_function.h"
#include "bench/peer_map.h"
#include "bench/report.h"
#include "runtime/module.h"

#include <cairn/cairn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MODULES = 100000,
    LOOKUPS = 200000,
    REPEATS = 7,
    LOADED_BEFORE = 80000, /* for retiring half of them */
    STUBS = 10000,
    SITE_ID = 1
};

static uint64_t sink;
static struct bench_options options;
static struct one_function object;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 3;
}

/* ---- Modules ---- */

struct modules {
    cairn_runtime *runtime;
    cairn_module *modules[MODULES]; /* NULL: retired */
    uint64_t id[MODULES];
    uint64_t address[MODULES]; /* of the records */
    uint32_t loaded;           /* so far, for names and IDs */
    struct cairn_error error;
};

static struct modules *create(void)
{
    struct modules *modules = calloc(1, sizeof *modules);
    if (modules == NULL || cairn_runtime_create(NULL, &modules->runtime, NULL) != CAIRN_OK)
        abort();
    return modules;
}

static void destroy(struct modules *modules)
{
    cairn_runtime_destroy(modules->runtime);
    free(modules);
}

/* Loads the function at a place, with a new ID and a new name. */
static bool load(struct modules *modules, uint32_t place)
{
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15) + modules->loaded;
    uint64_t id = next_random(&state) << 20 | place;
    cairn_loader *loader;
    cairn_module *module = NULL;
    struct cairn_record record;
    one_function_number(&object, id, modules->loaded++);
    if (cairn_loader_create(modules->runtime, NULL, &loader, &modules->error) != CAIRN_OK)
        return false;
    if (cairn_loader_add_object(loader, object.bytes, object.size, NULL, &modules->error) !=
            CAIRN_OK ||
        cairn_loader_finish(loader, &module, &modules->error) != CAIRN_OK) {
        cairn_loader_destroy(loader);
        return false;
    }
    if (cairn_module_publish(module, &modules->error) != CAIRN_OK)
        return false;
    record = (struct cairn_record){cairn_module_table(module), 0};
    modules->modules[place] = module;
    modules->id[place] = id;
    modules->address[place] = cairn_record_address(record);
    return true;
}

/* Loads modules at all empty places below `count`. Returns how many modules there are. */
static uint32_t fill(struct modules *modules, uint32_t count)
{
    uint32_t present = 0;
    for (uint32_t i = 0; i < count; i++)
        present += modules->modules[i] != NULL || load(modules, i);
    return present;
}

/* Prints that a figure is missing, because only some modules could be loaded. */
static void print_incomplete(const char *name, const struct modules *modules, uint32_t count)
{
    char why[128 + sizeof modules->error.message];
    snprintf(why, sizeof why, "MISSED: only %u modules could be loaded: %s", count,
             modules->error.message);
    bench_print_missing(&options, name, why);
}

/* ---- Memory and mappings ---- */

/* Returns the bytes of memory that the process uses. A page that is mapped twice counts once. */
static double used_bytes(void)
{
    char line[128];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Pss: %lf", &kilobytes) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kilobytes * 1024;
}

static uint32_t count_mappings(void)
{
    uint32_t count = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    for (int c = 0; file != NULL && (c = getc(file)) != EOF;)
        count += c == '\n';
    if (file != NULL)
        fclose(file);
    return count;
}

/* Returns the size of a module's code and data. */
static double contents_bytes(const cairn_module *module)
{
    struct memory_range range;
    double bytes = 0;
    for (uint32_t i = 0; module_memory_range(module, i, &range); i++)
        bytes += (double)range.size;
    return bytes;
}

/* What was freed is given back to the system before each measurement, so that only what is in use
 * counts, whatever was allocated before. */
static void bench_memory(struct modules *modules)
{
    struct cairn_runtime_statistics empty;
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(modules->runtime, &empty);
    malloc_trim(0);
    memset(modules->modules, 1, sizeof modules->modules); /* touches the bench's own memory */
    memset(modules->id, 1, sizeof modules->id);
    memset(modules->address, 1, sizeof modules->address);
    memset(modules->modules, 0, sizeof modules->modules);
    double before = used_bytes();
    uint32_t count = fill(modules, MODULES);
    cairn_runtime_quiesce(modules->runtime); /* frees the tables that were replaced */
    malloc_trim(0);
    double used = (used_bytes() - before) / count;
    cairn_runtime_statistics(modules->runtime, &statistics);
    double tables = (double)statistics.table_bytes / count;
    double indexes = (double)(statistics.index_bytes - empty.index_bytes) / count;
    double contents = contents_bytes(modules->modules[0]);
    if (count < MODULES)
        print_incomplete("modules.memory-beyond", modules, count);
    else
        bench_print(&options,
                    &(struct bench_figure){.name = "modules.memory-beyond-code-data-table",
                                           .value = used - tables - indexes - contents,
                                           .unit = "bytes",
                                           .limit = 256});
    bench_print(&options, &(struct bench_figure){
                              .name = "modules.memory-in-all", .value = used, .unit = "bytes"});
    bench_print(&options, &(struct bench_figure){.name = "modules.memory-of-tables",
                                                 .value = tables,
                                                 .unit = "bytes"});
    bench_print(&options, &(struct bench_figure){.name = "modules.memory-of-shared-tables",
                                                 .value = indexes,
                                                 .unit = "bytes"});
}

static void retire_half_at_random(struct modules *modules)
{
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    uint64_t token = cairn_runtime_grace_start(modules->runtime);
    for (uint32_t i = 0; i < MODULES; i++)
        if (next_random(&state) % 2 == 0) {
            cairn_module_retire(modules->modules[i]);
            modules->modules[i] = NULL;
        }
    cairn_runtime_grace_end(modules->runtime, token);
    cairn_runtime_quiesce(modules->runtime);
}

/* Half of the modules are retired at random and loaded again, twice. `before` is the number of
 * mappings that the process had without a runtime: those of its libraries, heap and stack. */
static void bench_mappings(struct modules *modules, uint32_t before)
{
    uint32_t count = MODULES;
    uint32_t most = 0;
    for (int round = 0; round < 2 && count == MODULES; round++) {
        retire_half_at_random(modules);
        count = fill(modules, MODULES);
        if (most < count_mappings())
            most = count_mappings();
    }
    if (count < MODULES)
        print_incomplete("modules.mappings", modules, count);
    bench_print(&options,
                &(struct bench_figure){.name = "modules.mappings", .value = most, .limit = 64});
    bench_print(&options, &(struct bench_figure){.name = "modules.mappings-of-the-runtime",
                                                 .value = most - before});
}

/* ---- Retiring ---- */

static void bench_retire(void)
{
    struct modules *modules = create();
    uint32_t count = fill(modules, LOADED_BEFORE);
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < count; i += 2)
        cairn_module_retire(modules->modules[i]);
    double retired = bench_now_of_thread();
    size_t freed = cairn_runtime_quiesce(modules->runtime);
    double end = bench_now_of_thread();
    if (count < LOADED_BEFORE || freed != LOADED_BEFORE / 2)
        print_incomplete("modules.retire-40000-of-80000", modules, count);
    bench_print(&options, &(struct bench_figure){.name = "modules.retire-40000-of-80000",
                                                 .value = (retired - start) / 1e6,
                                                 .unit = "ms",
                                                 .limit = 100});
    bench_print(&options, &(struct bench_figure){.name = "modules.free-40000-of-80000",
                                                 .value = (end - retired) / 1e6,
                                                 .unit = "ms"});
    destroy(modules);
}

/* ---- Finding ---- */

static uint64_t wanted[LOOKUPS];

static double time_find_id(const cairn_runtime *runtime)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_runtime_find_id(runtime, wanted[i], &record, 1) + record.index;
    sink += sum;
    return (bench_now_of_thread() - start) / (double)LOOKUPS;
}

static double time_peer_find(const struct peer_map *peer)
{
    const void *table = NULL;
    uint32_t index = 0;
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += peer_map_find(peer, wanted[i], &table, &index) + index;
    sink += sum;
    return (bench_now_of_thread() - start) / (double)LOOKUPS;
}

static void bench_find_id(const struct modules *modules, uint32_t count, double limit)
{
    char name[64];
    double times[REPEATS];
    double peer_times[REPEATS];
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    struct peer_map *peer = peer_map_create();
    for (uint32_t i = 0; i < count; i++)
        peer_map_add(peer, modules->id[i], modules->modules[i], 0);
    for (uint32_t i = 0; i < LOOKUPS; i++)
        wanted[i] = modules->id[next_random(&state) % count];
    for (int i = 0; i < REPEATS; i++) {
        times[i] = time_find_id(modules->runtime);
        peer_times[i] = time_peer_find(peer);
    }
    peer_map_destroy(peer);
    snprintf(name, sizeof name, "modules.find-id-%u", count);
    bench_print(&options,
                &(struct bench_figure){.name = name,
                                       .value = bench_percentile(times, REPEATS, 0.5),
                                       .unit = "ns",
                                       .peer = "std::unordered_map",
                                       .peer_value = bench_percentile(peer_times, REPEATS, 0.5),
                                       .limit = limit});
}

static double time_find_pc(const cairn_runtime *runtime)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_runtime_find_address(runtime, wanted[i], &record) + record.index;
    sink += sum;
    return (bench_now_of_thread() - start) / (double)LOOKUPS;
}

static double time_table(const cairn_table *table, const uint64_t *addresses)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_table_find_address(table, addresses[i], &record) + record.index;
    sink += sum;
    return (bench_now_of_thread() - start) / (double)LOOKUPS;
}

static void bench_find_pc(const struct modules *modules)
{
    static uint64_t in_table[LOOKUPS];
    double times[REPEATS];
    double peer_times[REPEATS];
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    cairn_table *table;
    size_t size;
    uint8_t *bytes =
        generate_stackmap(MODULES, GENERATED_IDS_ASCENDING, UINT64_C(0x7F0000000000), &size);
    const struct cairn_section section = {bytes, size, CAIRN_BYTE_ORDER_NATIVE};
    if (bytes == NULL || cairn_table_create(&section, 1, NULL, &table, NULL) != CAIRN_OK)
        abort();
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        uint32_t number = (uint32_t)(next_random(&state) % MODULES);
        wanted[i] = modules->address[number];
        in_table[i] = cairn_record_address((struct cairn_record){table, number});
    }
    for (int i = 0; i < REPEATS; i++) {
        times[i] = time_find_pc(modules->runtime);
        peer_times[i] = time_table(table, in_table);
    }
    bench_print(&options,
                &(struct bench_figure){.name = "modules.find-pc-100000",
                                       .value = bench_percentile(times, REPEATS, 0.5),
                                       .unit = "ns",
                                       .peer = "one table",
                                       .peer_value = bench_percentile(peer_times, REPEATS, 0.5),
                                       .ratio_limit = 3});
    cairn_table_destroy(table);
    free(bytes);
}

/* ---- Loading ---- */

static void bench_load(void)
{
    enum { GROUP = 1000 };
    double times[REPEATS];
    struct modules *modules = create();
    fill(modules, GROUP); /* the first slab, and the allocator's memory */
    for (int i = 0; i < REPEATS; i++) {
        double start = bench_now_of_thread();
        for (uint32_t j = 0; j < GROUP; j++)
            load(modules, (uint32_t)(i + 1) * GROUP + j);
        times[i] = (bench_now_of_thread() - start) / (double)GROUP / 1e3;
    }
    bench_print(&options, &(struct bench_figure){.name = "modules.load-an-object-of-one-function",
                                                 .value = bench_percentile(times, REPEATS, 0.5),
                                                 .unit = "us",
                                                 .limit = 20});
    destroy(modules);
}

/* ---- Exits and closures ---- */

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

static bool create_exit(cairn_runtime *runtime, const cairn_signature *signature)
{
    cairn_exit *exit;
    (void)signature;
    return cairn_exit_create(runtime, leave, NULL, &exit, NULL) == CAIRN_OK;
}

static void handle(const struct cairn_value *arguments, struct cairn_value *result, void *user)
{
    (void)arguments;
    (void)result;
    (void)user;
}

static bool create_closure(cairn_runtime *runtime, const cairn_signature *signature)
{
    cairn_closure *closure;
    return cairn_closure_create(runtime, signature, handle, NULL, &closure, NULL) == CAIRN_OK;
}

/* Prints the time and the memory of one of many. */
static void bench_stubs(const char *what, bool (*make)(cairn_runtime *, const cairn_signature *),
                        const cairn_signature *signature)
{
    char name[64];
    struct modules *modules = create();
    bool done = make(modules->runtime, signature);
    double before = used_bytes();
    double start = bench_now_of_thread();
    for (int i = 0; i < STUBS && done; i++)
        done = make(modules->runtime, signature);
    double time = (bench_now_of_thread() - start) / (double)STUBS / 1e3;
    double bytes = (used_bytes() - before) / (double)STUBS;
    snprintf(name, sizeof name, "modules.%s-time", what);
    bench_print(&options,
                &(struct bench_figure){.name = name, .value = time, .unit = "us", .limit = 5});
    snprintf(name, sizeof name, "modules.%s-memory", what);
    bench_print(&options, &(struct bench_figure){
                              .name = name, .value = bytes, .unit = "bytes", .limit = 128});
    if (!done)
        bench_print_missing(&options, name, "MISSED: not all could be made");
    destroy(modules);
}

static void bench_all_stubs(void)
{
    cairn_signature *signature;
    const struct cairn_type integer = {.kind = CAIRN_TYPE_INTEGER, .bits = 64};
    bench_stubs("exit", create_exit, NULL);
    if (cairn_signature_create(NULL, &integer, 1, &integer, 1, &signature, NULL) != CAIRN_OK) {
        bench_print_missing(&options, "modules.closure", "built without libffi");
        return;
    }
    bench_stubs("closure", create_closure, signature);
    cairn_signature_destroy(signature);
}

/* ---- A forked child ---- */

static void *at_site(void) { return (void *)(uintptr_t)leave; }

/* Loads a module with a site, and other code of `bytes` bytes. Returns the site. */
static cairn_site *load_with_site(struct modules *modules, size_t bytes)
{
    cairn_loader *loader;
    cairn_module *module;
    cairn_declarations *declarations;
    struct cairn_error *error = &modules->error;
    const struct cairn_declaration declaration = {.id = SITE_ID,
                                                  .kind = CAIRN_RECORD_PATCHPOINT,
                                                  .byte_count = ONE_FUNCTION_SITE_BYTES,
                                                  .result = {.kind = CAIRN_TYPE_VOID}};
    one_function_number(&object, SITE_ID, modules->loaded++);
    if (cairn_loader_create(modules->runtime, NULL, &loader, error) != CAIRN_OK)
        return NULL;
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, bytes, 64, NULL, error);
    if (code != NULL)
        memset(code, 1, bytes);
    if (code == NULL || cairn_loader_finish(loader, &module, error) != CAIRN_OK ||
        cairn_module_publish(module, error) != CAIRN_OK ||
        cairn_loader_create(modules->runtime, NULL, &loader, error) != CAIRN_OK ||
        cairn_declarations_create(NULL, &declarations, error) != CAIRN_OK)
        return NULL;
    enum cairn_status status = cairn_declarations_add(declarations, &declaration, error);
    if (status == CAIRN_OK)
        status = cairn_loader_declare(loader, declarations, error);
    cairn_declarations_destroy(declarations);
    if (status != CAIRN_OK ||
        cairn_loader_add_object(loader, object.bytes, object.size, NULL, error) != CAIRN_OK ||
        cairn_loader_finish(loader, &module, error) != CAIRN_OK ||
        cairn_module_publish(module, error) != CAIRN_OK)
        return NULL;
    return cairn_module_site(module, 0);
}

/* Returns the time of a child's first patch in milliseconds, or less than 0. */
static double time_first_patch(cairn_site *site)
{
    int ends[2];
    double time = -1;
    if (pipe(ends) != 0)
        return time;
    pid_t child = fork();
    if (child == 0) {
        double start = bench_now_of_thread();
        if (cairn_site_call(site, at_site(), CAIRN_RELAXED, NULL) == CAIRN_OK)
            time = (bench_now_of_thread() - start) / 1e6;
        _exit(write(ends[1], &time, sizeof time) == sizeof time ? 0 : 1);
    }
    if (child < 0 || read(ends[0], &time, sizeof time) != sizeof time)
        time = -1;
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return time;
}

/* Returns the processor time of a fork in milliseconds, in the parent and in the child until fork
 * returns there, or less than 0. */
static double time_fork(cairn_site *site)
{
    int ends[2];
    double time = -1, in_child = 0;
    (void)site;
    if (pipe(ends) != 0)
        return time;
    double start = bench_now_of_thread();
    pid_t child = fork();
    double end = bench_now_of_thread();
    if (child == 0)
        _exit(write(ends[1], &end, sizeof end) == sizeof end ? 0 : 1);
    if (child > 0 && read(ends[0], &in_child, sizeof in_child) == sizeof in_child)
        time = (end - start + in_child) / 1e6;
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return time;
}

/* Returns the median of a time with `bytes` bytes of loaded code. */
static double with_code(size_t bytes, double (*time)(cairn_site *site))
{
    double times[REPEATS];
    struct modules *modules = create();
    cairn_site *site = load_with_site(modules, bytes);
    if (site == NULL)
        fprintf(stderr, "cairn-bench-modules: %s\n", modules->error.message);
    for (int i = 0; i < REPEATS; i++)
        times[i] = site == NULL ? -1 : time(site);
    destroy(modules);
    return bench_percentile(times, REPEATS, 0.5);
}

static void bench_fork(void)
{
    const size_t megabyte = 1 << 20;
    double little = with_code(megabyte, time_fork);
    bench_print(&options, &(struct bench_figure){.name = "modules.fork-100-MB",
                                                 .value = with_code(100 * megabyte, time_fork),
                                                 .unit = "ms",
                                                 .peer = "with 1 MB",
                                                 .peer_value = little});
    little = with_code(megabyte, time_first_patch);
    bench_print(&options,
                &(struct bench_figure){.name = "modules.child-first-patch-100-MB",
                                       .value = with_code(100 * megabyte, time_first_patch),
                                       .unit = "ms",
                                       .peer = "with 1 MB",
                                       .peer_value = little,
                                       .ratio_limit = 2});
}

/* ---- */

static void bench_many(void)
{
    static const struct {
        uint32_t count;
        double limit;
    } steps[] = {{1, 40}, {1000, 60}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct modules *few = create();
        if (fill(few, steps[i].count) == steps[i].count)
            bench_find_id(few, steps[i].count, steps[i].limit);
        destroy(few);
    }
    uint32_t mappings = count_mappings();
    struct modules *modules = create();
    bench_memory(modules);
    if (modules->loaded == MODULES && modules->error.status == CAIRN_OK) {
        bench_find_id(modules, MODULES, 100);
        bench_find_pc(modules);
        bench_mappings(modules, mappings);
    }
    destroy(modules);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--only") == 0)
        options.only = argv[2];
    if (!one_function_create(&object)) {
        fputs("cairn-bench-modules: no code can be loaded on this machine\n", stderr);
        return 1;
    }
    bench_begin(&options);
    bench_load();
    bench_all_stubs();
    bench_fork();
    bench_many();
    bench_retire();
    bench_end(&options);
    return 0;
}
