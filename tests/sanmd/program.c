/*
 * A program that is compiled with -fexperimental-sanitize-metadata and asks libcairn-sanmd about
 * itself, and about libraries before they are opened, while they are open, and after they were
 * closed. The first argument says for how many milliseconds threads open and close the libraries
 * that the others name. It prints, of itself and of each, what libcairn-sanmd knows, as addresses
 * in the file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sites.h"

#include <cairn/sanmd_runtime.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

enum { LIBRARIES_MAX = 4, TICK_MICROSECONDS = 500 };

static unsigned checks;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _Exit(1);                                                                              \
        }                                                                                          \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);                                          \
    } while (0)

static void *volatile kept;

#ifdef __cplusplus
extern "C" {
#endif
tell_function tell;
void keep_address(void *address) { kept = address; }
#ifdef __cplusplus
}
#endif

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* ---- What a file says of itself against what the library knows ---- */

static int64_t count_atomics(const struct site *site)
{
    int64_t count = 0;
    for (const uint8_t *at = site->begin; at < site->end; at++)
        count += cairn_sanmd_is_atomic(address_of(at));
    return count;
}

static void expect_site(const struct site *site)
{
    EXPECT(count_atomics(site) == site->atomic_count);
#if defined(__x86_64__) && defined(__OPTIMIZE__)
    /* One instruction does it, so it stands at the label. */
    EXPECT(cairn_sanmd_is_atomic(address_of(site->begin)) == (site->atomic_count == 1));
#endif
}

static void expect_sites(const struct told *told)
{
    EXPECT(told->site_count >= 7);
    for (size_t i = 0; i < told->site_count; i++)
        expect_site(&told->sites[i]);
}

static void expect_functions(const struct told *told)
{
    for (size_t i = 0; i < told->function_count; i++) {
        const struct expected_function *expected = &told->functions[i];
        struct cairn_sanmd_entry found;
        bool is_found = cairn_sanmd_find_function(expected->address, &found);
        EXPECT(is_found == (expected->features != UINT32_MAX));
        if (!is_found)
            continue;
        EXPECT(found.address == expected->address);
        EXPECT((found.features & expected->features) == expected->features);
        EXPECT(found.stack_argument_bytes == expected->stack_argument_bytes);
        EXPECT(cairn_sanmd_find_function(found.address + found.size - 1, &found));
        EXPECT(found.address == expected->address);
    }
}

/* A copy that outlives the file, in which all is gone. */
static void expect_nothing(const struct told *told, const struct site *sites)
{
    struct cairn_sanmd_entry found;
    for (size_t i = 0; i < told->site_count; i++)
        EXPECT(count_atomics(&sites[i]) == 0);
    for (size_t i = 0; i < told->function_count; i++)
        EXPECT(!cairn_sanmd_find_function(told->functions[i].address, &found));
}

/* ---- Before main, and after it ---- */

__attribute__((constructor(101))) static void ask_before_main(void)
{
    struct told told;
    tell(&told);
    expect_sites(&told);
}

__attribute__((destructor(101))) static void ask_after_main(void)
{
    struct told told;
    tell(&told);
    expect_sites(&told);
}

/* ---- Libraries ---- */

struct library {
    const char *path;
    void *handle;
    struct told told;
};

static void open_library(struct library *library)
{
    library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    EXPECT(library->handle != NULL);
    void *symbol = dlsym(library->handle, TELL_NAME);
    tell_function *tell_of_library;
    EXPECT(symbol != NULL);
    __builtin_memcpy(&tell_of_library, &symbol, sizeof symbol);
    tell_of_library(&library->told);
}

static void close_library(struct library *library)
{
    struct told told = library->told;
    struct site *sites = (struct site *)malloc(told.site_count * sizeof *sites);
    __builtin_memcpy(sites, told.sites, told.site_count * sizeof *sites);
    EXPECT(dlclose(library->handle) == 0);
    expect_nothing(&told, sites);
    free(sites);
}

static size_t range_count(void)
{
    struct cairn_sanmd_statistics statistics;
    cairn_sanmd_get_statistics(&statistics);
    EXPECT(statistics.faulty_range_count == 0);
    EXPECT(statistics.lost_range_count == 0);
    return statistics.range_count;
}

static void open_and_close(struct library *library)
{
    size_t count_before = range_count();
    open_library(library);
    EXPECT(range_count() == count_before + 2);
    expect_sites(&library->told);
    expect_functions(&library->told);
    close_library(library);
    EXPECT(range_count() == count_before);
}

/* ---- Libraries come and go while a timer's signals ask ---- */

static struct told own;
static struct library libraries[LIBRARIES_MAX];
static size_t library_count;
static long loop_milliseconds;
static unsigned long ticks;

static void on_tick(int number)
{
    (void)number;
    unsigned long tick = __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
    const struct site *site = &own.sites[tick % own.site_count];
    EXPECT(count_atomics(site) == site->atomic_count);
    for (size_t i = 0; i < library_count; i++) {
        uint64_t pc = libraries[i].told.functions[0].address + tick % 64;
        struct cairn_sanmd_entry found;
        (void)cairn_sanmd_is_atomic(pc);
        if (cairn_sanmd_find_function(pc, &found))
            EXPECT(pc - found.address < found.size);
    }
}

static bool is_time_over(const struct timespec *begun)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000 >
           loop_milliseconds;
}

static void *open_and_close_on(void *data)
{
    struct library library = *(struct library *)data;
    struct timespec begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        open_library(&library);
        expect_sites(&library.told);
        expect_functions(&library.told);
        EXPECT(dlclose(library.handle) == 0);
    } while (!is_time_over(&begun));
    return NULL;
}

static void begin_ticks(suseconds_t microseconds)
{
    struct sigaction action;
    __builtin_memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    struct itimerval timer;
    timer.it_interval.tv_sec = timer.it_value.tv_sec = 0;
    timer.it_interval.tv_usec = timer.it_value.tv_usec = microseconds;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void open_and_close_in_threads(void)
{
    pthread_t threads[LIBRARIES_MAX];
    begin_ticks(TICK_MICROSECONDS);
    for (size_t i = 0; i < library_count; i++)
        pthread_create(&threads[i], NULL, open_and_close_on, &libraries[i]);
    for (size_t i = 0; i < library_count; i++)
        pthread_join(threads[i], NULL);
    begin_ticks(0);
    EXPECT(ticks > 0);
}

/* ---- Printing ---- */

/* A file in memory. */
struct image {
    uint64_t probe; /* an address in it */
    uint64_t base;  /* how much higher it is than in the file */
    uint64_t begin;
    uint64_t end;
};

static int find_image(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct image *image = (struct image *)data;
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uint64_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + info->dlpi_phdr[i].p_memsz > end ? at + info->dlpi_phdr[i].p_memsz : end;
    }
    if (image->probe < begin || image->probe >= end)
        return 0;
    image->base = info->dlpi_addr;
    image->begin = begin;
    image->end = end;
    return 1;
}

static bool print_function(void *data, const struct cairn_sanmd_entry *function)
{
    const struct image *image = (const struct image *)data;
    printf("function %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
           function->address - image->base, function->size, function->features,
           function->stack_argument_bytes);
    return true;
}

static bool print_atomic(void *data, const struct cairn_sanmd_entry *access)
{
    const struct image *image = (const struct image *)data;
    printf("atomic %" PRIu64 "\n", access->address - image->base);
    return true;
}

static void print_image(const char *name, const struct told *told)
{
    struct image image;
    image.probe = told->functions[0].address;
    EXPECT(dl_iterate_phdr(find_image, &image) == 1);
    printf("file %s\n", name);
    EXPECT(cairn_sanmd_visit(CAIRN_SANMD_COVERED, image.begin, image.end, print_function, &image));
    EXPECT(cairn_sanmd_visit(CAIRN_SANMD_ATOMICS, image.begin, image.end, print_atomic, &image));
}

int main(int argc, char **argv)
{
    tell(&own);
    expect_sites(&own);
    expect_functions(&own);
    print_image(argv[0], &own);
    loop_milliseconds = atol(argv[1]);
    library_count = (size_t)argc - 2;
    for (size_t i = 0; i < library_count; i++) {
        libraries[i].path = argv[i + 2];
        open_and_close(&libraries[i]);
        open_and_close(&libraries[i]);
        open_library(&libraries[i]);
        print_image(libraries[i].path, &libraries[i].told);
        close_library(&libraries[i]);
    }
    if (loop_milliseconds > 0)
        open_and_close_in_threads();
    EXPECT(range_count() == 2);
    fprintf(stderr, "%u checks\n", checks);
    return 0;
}
