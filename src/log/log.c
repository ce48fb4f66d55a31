/*
 * Logs: the mapped file, its strings, and the clock.
 *
 * Strings. `strings` is an open-addressed hash table of the strings in the file. An entry holds the
 * upper half of the hash, and the index of the string's first slot plus 1; 0 is an empty entry. An
 * entry is set once, by a compare-and-swap, after its string is complete. Two threads that add one
 * string at the same time may both write it; both copies are valid. A string that finds no entry
 * within PROBE_LIMIT steps is written each time. `recent` is searched first: it finds a string by
 * its address, and then compares the bytes, because there may be another string meanwhile. That
 * takes half of the time.
 *
 * Forked children. `mark` is in a page that fork wipes, so a child reads 0. If the kernel cannot
 * wipe pages, `mark` is NULL and the process ID is compared, which takes a system call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "log/log.h"

#include "arch/arch.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/populate.h"

#include <cairn/architecture.h>
#include <cairn/cairn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 128,
    SLOTS_DEFAULT = 1 << 18,
    SLOTS_MIN = 64,
    SLOTS_MAX = 1 << 26,
    SLOTS_OF_STRING_ENTRY = 4, /* slots of the file for each entry of the table of strings */
    PROBE_LIMIT = 16,
    PREFETCHED_SLOTS = 8,
    RECENT_BITS = 11,
    RECENT_COUNT = 1 << RECENT_BITS,
    POPULATED_SLOTS_MAX = 1 << 20, /* when the log is created */
    POPULATED_SLOTS_STEP = 1 << 12,
    MODULE_NUMBER_BITS = 40,
    FILE_MODE = 0666,
    CALIBRATION_NS = 1000000,
    CALIBRATION_READS = 8
};

#define NS_PER_S UINT64_C(1000000000)
#define NONE UINT64_MAX

_Static_assert(sizeof(struct cairn_log_header) == HEADER_BYTES, "the format of the file");
_Static_assert(sizeof(struct cairn_log_event) == CAIRN_LOG_SLOT_BYTES, "the format of the file");
_Static_assert(sizeof(struct cairn_log_string) == CAIRN_LOG_SLOT_BYTES, "the format of the file");
_Static_assert(offsetof(struct cairn_log_header, next) == 80, "the format of the file");
_Static_assert(offsetof(struct cairn_log_header, lost) == 104, "the format of the file");

struct cairn_log {
    struct cairn_log_header *header; /* followed by the slots */
    char *slots;
    uint64_t slot_count;
    _Atomic uint64_t *strings;
    uint64_t string_mask; /* number of entries less 1 */
    const _Atomic uint32_t *mark;
    uint64_t process;
    uint64_t clock_hz;
    bool has_clock; /* whether arch_host_clock is used */
    struct cairn_allocator allocator;
    void (*describe_key)(uint64_t key, char *text, size_t size, void *user);
    void (*describe_position)(uint64_t function, uint64_t position, char *text, size_t size,
                              void *user);
    void *user; /* of both */
    size_t file_bytes;
    size_t page_bytes;
    uint64_t start_ns; /* CLOCK_MONOTONIC at `start_clock` */
    uint64_t start_clock;
    _Atomic uint32_t references;
    _Atomic uint64_t runtimes;
    _Atomic uint64_t invalidations;
    /* Strings by a hash of the address at which they were; only guesses. */
    _Atomic uint32_t recent[RECENT_COUNT];
};

/* ---- Time ---- */

static uint64_t system_ns(clockid_t clock)
{
    struct timespec now = {.tv_sec = 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t read_clock(const cairn_log *log)
{
    return log->has_clock ? arch_host_clock() : system_ns(CLOCK_MONOTONIC);
}

uint64_t log_clock(const cairn_log *log) { return read_clock(log); }

/* Multiplies and divides without overflow, exactly enough for differences of hours. */
static uint64_t scale(uint64_t value, uint64_t factor, uint64_t divisor)
{
    return value / divisor * factor +
           (uint64_t)((double)(value % divisor) * (double)factor / (double)divisor);
}

uint64_t log_nanoseconds(const cairn_log *log, uint64_t ticks)
{
    return scale(ticks, NS_PER_S, log->clock_hz);
}

uint64_t log_ticks(const cairn_log *log, uint64_t nanoseconds)
{
    return scale(nanoseconds, log->clock_hz, NS_PER_S);
}

/* Reads both clocks at nearly the same time: of several readings, takes the one during which the
 * thread was interrupted least. */
static void read_both(const cairn_log *log, uint64_t *ns, uint64_t *clock)
{
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < CALIBRATION_READS; i++) {
        uint64_t before = read_clock(log);
        uint64_t now = system_ns(CLOCK_MONOTONIC);
        uint64_t taken = read_clock(log) - before;
        if (taken >= shortest)
            continue;
        shortest = taken;
        *ns = now;
        *clock = before + taken / 2;
    }
}

/* Returns the rate of the clock since the log was created. */
static uint64_t measure_rate(const cairn_log *log)
{
    uint64_t ns = 0, clock = 0;
    if (!log->has_clock)
        return NS_PER_S;
    read_both(log, &ns, &clock);
    if (ns <= log->start_ns || clock <= log->start_clock)
        return log->clock_hz == 0 ? NS_PER_S : log->clock_hz;
    return scale(clock - log->start_clock, NS_PER_S, ns - log->start_ns);
}

static void start_clock(cairn_log *log)
{
    const struct timespec pause = {.tv_nsec = CALIBRATION_NS};
    log->has_clock = arch_host_has_clock();
    read_both(log, &log->start_ns, &log->start_clock);
    if (log->has_clock)
        nanosleep(&pause, NULL);
    log->clock_hz = measure_rate(log);
}

/* ---- Processes and threads ---- */

bool log_is_own(const cairn_log *log)
{
    if (log == NULL)
        return false;
    if (__builtin_expect(log->mark != NULL, 1))
        return atomic_load_explicit(log->mark, memory_order_relaxed) != 0;
    return (uint64_t)getpid() == log->process;
}

/* Returns the thread's ID. It is kept, with the process that it is valid in, because a forked child
 * inherits the variable. The model does not allocate, as signal handlers need. */
static uint32_t thread_id(const cairn_log *log)
{
    static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
        uint32_t thread;
        uint32_t process;
    } known;
    if (__builtin_expect(known.process != (uint32_t)log->process, 0)) {
        known.thread = (uint32_t)syscall(SYS_gettid);
        known.process = (uint32_t)log->process;
    }
    return known.thread;
}

/* Maps the mark. An emulator may claim that it wipes pages, and do nothing: it also claims that for
 * shared pages, which kernels refuse. */
static void map_mark(cairn_log *log)
{
    const int access = PROT_READ | PROT_WRITE;
    void *shared = mmap(NULL, log->page_bytes, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *page = mmap(NULL, log->page_bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_believed =
        shared != MAP_FAILED && madvise(shared, log->page_bytes, MADV_WIPEONFORK) != 0;
    if (shared != MAP_FAILED)
        munmap(shared, log->page_bytes);
    if (page == MAP_FAILED)
        return;
    if (!is_believed || madvise(page, log->page_bytes, MADV_WIPEONFORK) != 0) {
        munmap(page, log->page_bytes);
        return;
    }
    atomic_store_explicit((_Atomic uint32_t *)page, 1, memory_order_relaxed);
    log->mark = page;
}

/* ---- Slots ---- */

static inline char *slot_at(const cairn_log *log, uint64_t index)
{
    return log->slots + index * CAIRN_LOG_SLOT_BYTES;
}

/* Reserves one slot. Returns its index, or NONE if the log is full. Whether it is full is not
 * loaded before: an atomic addition right after a load of the same cache line took 3 ns longer. */
static inline uint64_t reserve_slot(const cairn_log *log)
{
    uint64_t index = __atomic_fetch_add(&log->header->next, 1, __ATOMIC_RELAXED);
    return index < log->slot_count ? index : NONE;
}

/* Reserves adjacent slots, or none. */
static uint64_t reserve_slots(const cairn_log *log, uint64_t count)
{
    uint64_t *next = &log->header->next;
    uint64_t index = __atomic_load_n(next, __ATOMIC_RELAXED);
    do
        if (index > log->slot_count || count > log->slot_count - index)
            return NONE;
    while (!__atomic_compare_exchange_n(next, &index, index + count, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    return index;
}

/* ---- Strings ---- */

/* Mixes eight bytes into the hash: multiplication, with the upper half folded into the lower. */
static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t product = (hash ^ word) * odd;
    return product ^ product >> 32;
}

static inline uint64_t hash_of(const char *bytes, size_t length)
{
    uint64_t hash = length, word;
    size_t at = 0;
    for (; at + sizeof word <= length; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    for (size_t i = at; i < length; i++)
        word = word << 8 | (uint8_t)bytes[i];
    return mix(mix(hash, word), length);
}

static uint32_t write_string(const cairn_log *log, const char *bytes, size_t length)
{
    size_t more = length <= CAIRN_LOG_STRING_BYTES ? 0 : length - CAIRN_LOG_STRING_BYTES;
    uint64_t count = 1 + (more + CAIRN_LOG_SLOT_BYTES - 1) / CAIRN_LOG_SLOT_BYTES;
    uint64_t index = reserve_slots(log, count);
    if (index == NONE)
        return 0;
    struct cairn_log_string *string = (void *)slot_at(log, index);
    memcpy((char *)string + offsetof(struct cairn_log_string, bytes), bytes, length);
    string->length = (uint32_t)length;
    __atomic_store_n(&string->kind, CAIRN_LOG_STRING, __ATOMIC_RELEASE);
    return (uint32_t)(index + 1);
}

static inline bool is_string(const cairn_log *log, uint32_t reference, const char *bytes,
                             size_t length)
{
    const char *slot = slot_at(log, reference - 1);
    const struct cairn_log_string *string = (const void *)slot;
    return string->length == length &&
           memcmp(slot + offsetof(struct cairn_log_string, bytes), bytes, length) == 0;
}

/* Returns the index of a string's first slot plus 1. Writes the string if it is new. 0 if there is
 * no space for it. */
static uint32_t intern_by_hash(const cairn_log *log, const char *text)
{
    size_t length = strnlen(text, CAIRN_LOG_STRING_BYTES_MAX);
    uint64_t hash = hash_of(text, length);
    uint32_t written = 0;
    for (uint64_t step = 0; step < PROBE_LIMIT; step++) {
        _Atomic uint64_t *place = &log->strings[(hash + step) & log->string_mask];
        uint64_t entry = atomic_load_explicit(place, memory_order_acquire);
        if (entry == 0) {
            if (written == 0)
                written = write_string(log, text, length);
            if (written == 0)
                return 0;
            uint64_t made = (hash & ~(uint64_t)UINT32_MAX) | written;
            if (atomic_compare_exchange_strong_explicit(place, &entry, made, memory_order_acq_rel,
                                                        memory_order_acquire))
                return written;
        }
        if ((entry ^ hash) >> 32 == 0 && is_string(log, (uint32_t)entry, text, length))
            return (uint32_t)entry;
    }
    return written != 0 ? written : write_string(log, text, length);
}

/* Whether `text` is the string, without reading more of it than there is. Since the file was full
 * of zeros, one follows the string, unless it fills its last slot. */
static inline bool matches(const cairn_log *log, uint32_t reference, const char *text)
{
    const char *slot = slot_at(log, reference - 1);
    const struct cairn_log_string *string = (const void *)slot;
    return string->length < CAIRN_LOG_STRING_BYTES_MAX &&
           string->length % CAIRN_LOG_SLOT_BYTES != CAIRN_LOG_STRING_BYTES &&
           strcmp(text, slot + offsetof(struct cairn_log_string, bytes)) == 0;
}

/* The same; 0 for NULL. Most strings were last seen at the same address. */
static inline uint32_t intern(cairn_log *log, const char *text)
{
    if (text == NULL)
        return 0;
    uintptr_t place = (uintptr_t)text ^ (uintptr_t)text >> RECENT_BITS;
    _Atomic uint32_t *recent = &log->recent[place % RECENT_COUNT];
    uint32_t reference = atomic_load_explicit(recent, memory_order_acquire);
    if (reference != 0 && matches(log, reference, text))
        return reference;
    reference = intern_by_hash(log, text);
    atomic_store_explicit(recent, reference, memory_order_release);
    return reference;
}

/* ---- Recording ---- */

/* A value in the log's file, which other processes may read at any time. The compiler does not join
 * such stores. Joined ones would read two values of an event at once, and wait until both, which
 * were stored separately, have reached the cache. */
#define STORE(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)

/* Makes the kernel allocate the pages of the slots after the next ones: otherwise every 64th event
 * would take a page fault. Those of the first POPULATED_SLOTS_MAX slots exist since the log was
 * created. It may be that no event gets the slot at which a step begins; then its pages take their
 * faults. */
static __attribute__((cold, noinline)) void populate_ahead(const cairn_log *log, uint64_t index)
{
    uint64_t first = index + POPULATED_SLOTS_STEP;
    if (first < POPULATED_SLOTS_MAX || first >= log->slot_count)
        return;
    uint64_t left = log->slot_count - first;
    uint64_t count = left < POPULATED_SLOTS_STEP ? left : POPULATED_SLOTS_STEP;
    populate(slot_at(log, first), count * CAIRN_LOG_SLOT_BYTES);
}

uint64_t log_record(cairn_log *log, const struct cairn_log_event *event, const char *name,
                    const char *text)
{
    if (!log_is_own(log))
        return 0;
    uint64_t clock = read_clock(log);
    uint32_t thread = thread_id(log);
    uint32_t name_slot = intern(log, name);
    uint32_t text_slot = intern(log, text);
    uint64_t index = reserve_slot(log);
    if (index == NONE) {
        __atomic_fetch_add(&log->header->lost, 1, __ATOMIC_RELAXED);
        return clock;
    }
    struct cairn_log_event *slot = (void *)slot_at(log, index);
    /* Otherwise the next event's atomic operation would wait for this slot's cache line. */
    __builtin_prefetch((const char *)slot + (size_t)PREFETCHED_SLOTS * CAIRN_LOG_SLOT_BYTES, 1);
    STORE(&slot->thread, thread);
    STORE(&slot->clock, clock);
    STORE(&slot->address, event->address);
    STORE(&slot->id, event->id);
    STORE(&slot->a, event->a);
    STORE(&slot->b, event->b);
    STORE(&slot->name, name_slot);
    STORE(&slot->text, text_slot);
    STORE(&slot->module, event->module);
    __atomic_store_n(&slot->kind, event->kind, __ATOMIC_RELEASE);
    if (__builtin_expect(index % POPULATED_SLOTS_STEP == 0, 0))
        populate_ahead(log, index);
    return clock;
}

uint64_t log_add_runtime(cairn_log *log)
{
    return atomic_fetch_add_explicit(&log->runtimes, 1, memory_order_relaxed) << MODULE_NUMBER_BITS;
}

uint64_t log_add_invalidation(cairn_log *log)
{
    return atomic_fetch_add_explicit(&log->invalidations, 1, memory_order_relaxed) + 1;
}

/* ---- The file ---- */

/* Removes a regular file of this name, and creates one. A process that has mapped the older file
 * keeps it: truncating it would kill that process with SIGBUS. */
static enum cairn_status open_new(const char *path, int *file, struct cairn_error *error)
{
    struct stat found;
    if (lstat(path, &found) == 0) {
        if (!S_ISREG(found.st_mode))
            return error_set_system(error, EEXIST, "cannot create the log '%.100s'", path);
        if (unlink(path) != 0)
            return error_set_system(error, errno, "cannot replace the log '%.100s'", path);
    }
    *file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (*file < 0)
        return error_set_system(error, errno, "cannot create the log '%.100s'", path);
    return CAIRN_OK;
}

static enum cairn_status cannot_allocate(const cairn_log *log, const char *path, int failure,
                                         struct cairn_error *error)
{
    return error_set_system(
        error, failure, "cannot allocate %zu bytes for the log '%.100s'%s", log->file_bytes, path,
        failure == EFBIG ? " (raise RLIMIT_FSIZE, or lower slot_count in struct "
                           "cairn_log_options)"
                         : "");
}

static enum cairn_status map_file(cairn_log *log, const char *path, struct cairn_error *error)
{
    int file = -1;
    enum cairn_status status = open_new(path, &file, error);
    if (status != CAIRN_OK)
        return status;
    int failure = file_allocate(file, log->file_bytes);
    void *mapping = MAP_FAILED;
    if (failure == 0) {
        mapping = mmap(NULL, log->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        failure = mapping == MAP_FAILED ? errno : 0;
    }
    close(file);
    if (failure != 0) {
        unlink(path);
        return cannot_allocate(log, path, failure, error);
    }
    log->header = mapping;
    log->slots = (char *)mapping + HEADER_BYTES;
    uint64_t slots = log->slot_count < POPULATED_SLOTS_MAX ? log->slot_count : POPULATED_SLOTS_MAX;
    populate(mapping, HEADER_BYTES + slots * CAIRN_LOG_SLOT_BYTES);
    return CAIRN_OK;
}

/* The magic bytes are stored last. */
static void write_header(const cairn_log *log)
{
    struct cairn_log_header *header = log->header;
    const char *architecture = cairn_architecture_name(cairn_architecture_host());
    header->byte_order = CAIRN_LOG_BYTE_ORDER;
    header->version = CAIRN_LOG_VERSION;
    header->header_bytes = HEADER_BYTES;
    header->slot_bytes = CAIRN_LOG_SLOT_BYTES;
    header->slot_count = log->slot_count;
    header->start_clock = read_clock(log);
    header->start_time_ns = system_ns(CLOCK_REALTIME);
    header->clock_hz = log->clock_hz;
    header->process = log->process;
    memcpy(header->cairn_version, CAIRN_VERSION_STRING, sizeof CAIRN_VERSION_STRING);
    memcpy(header->architecture, architecture, strnlen(architecture, sizeof header->architecture));
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, CAIRN_LOG_MAGIC, sizeof header->magic);
}

/* ---- Creating and destroying ---- */

static size_t strings_bytes(const cairn_log *log)
{
    return (log->string_mask + 1) * sizeof *log->strings;
}

static void release(cairn_log *log)
{
    struct cairn_allocator allocator = log->allocator;
    if (log->header != NULL)
        munmap(log->header, log->file_bytes);
    if (log->mark != NULL)
        munmap((void *)(uintptr_t)log->mark, log->page_bytes);
    memory_free(&allocator, (void *)log->strings, strings_bytes(log));
    memory_free(&allocator, log, sizeof *log);
}

/* Sets all that does not depend on the file. */
static enum cairn_status prepare(cairn_log *log, uint64_t slot_count, struct cairn_error *error)
{
    uint64_t entries = SLOTS_MIN / SLOTS_OF_STRING_ENTRY;
    while (entries < slot_count / SLOTS_OF_STRING_ENTRY)
        entries *= 2;
    log->slot_count = slot_count;
    log->string_mask = entries - 1;
    log->file_bytes = HEADER_BYTES + slot_count * CAIRN_LOG_SLOT_BYTES;
    log->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    log->process = (uint64_t)getpid();
    atomic_init(&log->references, 1);
    log->strings = memory_new(&log->allocator, entries, sizeof *log->strings);
    if (log->strings == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the strings of a log");
    map_mark(log);
    start_clock(log);
    return CAIRN_OK;
}

enum cairn_status cairn_log_create(const char *path, const struct cairn_log_options *options,
                                   cairn_log **log, struct cairn_error *error)
{
    static const struct cairn_log_options defaults;
    if (path == NULL || log == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_log_create: `%s` is NULL",
                         path == NULL ? "path" : "log");
    if (options == NULL)
        options = &defaults;
    uint64_t slot_count = options->slot_count == 0 ? SLOTS_DEFAULT : options->slot_count;
    if (slot_count < SLOTS_MIN || slot_count > SLOTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, slot_count,
                         "a log has from %d to %d slots, not %llu", SLOTS_MIN, SLOTS_MAX,
                         (unsigned long long)slot_count);
    struct cairn_allocator allocator = memory_allocator(&options->allocator);
    cairn_log *created = memory_new(&allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a log");
    created->allocator = allocator;
    created->describe_key = options->describe_key;
    created->describe_position = options->describe_position;
    created->user = options->user;
    enum cairn_status status = prepare(created, slot_count, error);
    if (status == CAIRN_OK)
        status = map_file(created, path, error);
    if (status != CAIRN_OK) {
        release(created);
        return status;
    }
    write_header(created);
    *log = created;
    return CAIRN_OK;
}

/* Ends a text of the host's. Returns NULL if it is empty. */
static const char *end_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    return text[0] == '\0' ? NULL : text;
}

const char *log_describe_position(const cairn_log *log, uint64_t function, uint64_t position,
                                  char *text, size_t size)
{
    if (log->describe_position == NULL)
        return NULL;
    text[0] = '\0';
    log->describe_position(function, position, text, size, log->user);
    return end_text(text, size);
}

const char *log_describe_key(const cairn_log *log, uint64_t key, char *text, size_t size)
{
    if (log->describe_key == NULL || key == 0)
        return NULL;
    text[0] = '\0';
    log->describe_key(key, text, size, log->user);
    return end_text(text, size);
}

void log_retain(cairn_log *log)
{
    atomic_fetch_add_explicit(&log->references, 1, memory_order_relaxed);
}

void cairn_log_destroy(cairn_log *log)
{
    if (log == NULL || atomic_fetch_sub_explicit(&log->references, 1, memory_order_acq_rel) != 1)
        return;
    if (log_is_own(log)) {
        log->header->clock_hz = measure_rate(log); /* more exact than at the start */
        __atomic_store_n(&log->header->end_clock, read_clock(log), __ATOMIC_RELEASE);
    }
    release(log);
}
