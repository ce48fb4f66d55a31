/*
 * cairn-bench-store: opening a store of a thousand objects, finding and adding one.
 *
 * The objects have 4 KiB, and the files are in the page cache. The peers read a file of the same
 * size whole, map and unmap it, and append an object to a file without any index or lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/report.h"

#include <cairn/store.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OBJECTS = 1000, OBJECT_BYTES = 4096, ROUNDS = 41, FINDS = 1000, PATH_BYTES = 512 };

static const struct bench_options options = {.json = false};
static const struct cairn_store_options store_options = {.fingerprint = "bench",
                                                         .fingerprint_size = 5};

static char folder[] = "/tmp/cairn-bench-store-XXXXXX";
static char path[PATH_BYTES]; /* of the store's file */
static uint8_t object[OBJECT_BYTES];
static cairn_store *store;
static int appended;
static unsigned next_key;

static void fail(const char *message)
{
    fprintf(stderr, "cairn-bench-store: %s\n", message);
    exit(1);
}

static size_t key_of(unsigned number, char *key)
{
    return (size_t)snprintf(key, 32, "program.lox:%u", number);
}

/* ---- What is measured ---- */

static void open_store(void)
{
    if (cairn_store_open(folder, &store_options, &store, NULL) != CAIRN_OK)
        fail("the store cannot be opened");
}

static void open_and_close(void)
{
    open_store();
    cairn_store_close(store);
}

static void find_all(void)
{
    char key[32];
    size_t size;
    for (unsigned i = 0; i < FINDS; i++)
        if (cairn_store_find(store, key, key_of(i % OBJECTS, key), &size) == NULL)
            fail("an object is missing");
}

static void make_keys(void)
{
    char key[32];
    for (unsigned i = 0; i < FINDS; i++) {
        (void)key_of(i % OBJECTS, key);
        __asm__ volatile("" : : "r"(key) : "memory");
    }
}

static void add_one(void)
{
    char key[32];
    size_t key_size = key_of(next_key++, key);
    if (cairn_store_add(store, key, key_size, object, sizeof object, NULL) != CAIRN_OK)
        fail("an object cannot be added");
}

static void append_one(void)
{
    if (write(appended, object, sizeof object) != sizeof object)
        fail("a file cannot be written");
}

static void read_file(void)
{
    static uint8_t bytes[2 * OBJECTS * OBJECT_BYTES];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (read(file, bytes, sizeof bytes) < OBJECTS * OBJECT_BYTES)
        fail("the file cannot be read");
    close(file);
}

static void map_file(void)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (fstat(file, &status) != 0)
        fail("the file cannot be opened");
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED)
        fail("the file cannot be mapped");
    munmap(bytes, (size_t)status.st_size);
    close(file);
}

/* ---- Measuring ---- */

/* Returns the median of the rounds, in nanoseconds. */
static double measure(void (*run)(void))
{
    static double rounds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begun = bench_now_of_thread();
        run();
        rounds[i] = bench_now_of_thread() - begun;
    }
    return bench_percentile(rounds, ROUNDS, 0.5);
}

static void print(const char *name, double value, const char *unit, const char *peer,
                  double peer_value)
{
    bench_print(
        &options,
        &(struct bench_figure){
            .name = name, .value = value, .unit = unit, .peer = peer, .peer_value = peer_value});
}

static void find_path(void)
{
    const struct dirent *entry;
    DIR *directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (directory != NULL)
        closedir(directory);
}

static void prepare(void)
{
    if (mkdtemp(folder) == NULL)
        fail("there is no temporary folder");
    memset(object, 0x90, sizeof object);
    open_store();
    while (next_key < OBJECTS)
        add_one();
    cairn_store_close(store);
    find_path();
    appended = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int main(void)
{
    prepare();
    bench_begin(&options);
    double open_ns = measure(open_and_close);
    print("store.open", open_ns / 1000, "us", "read() of the file", measure(read_file) / 1000);
    print("store.open_mapped", open_ns / 1000, "us", "mmap() of the file",
          measure(map_file) / 1000);
    open_store();
    double first_ns = measure(find_all);
    double find_ns = (first_ns - measure(make_keys)) / (int)FINDS;
    print("store.find", find_ns, "ns", NULL, 0);
    print("store.add", measure(add_one) / 1000, "us", "write() of the object",
          measure(append_one) / 1000);
    bench_end(&options);
    cairn_store_close(store);
    unlink(path);
    rmdir(folder);
    return 0;
}
