/*
 * White-box tests of libcairn-sanmd, with sections of metadata that the test writes. Lookups in
 * random sections, in any order of the entries, must give the same results as a linear search.
 * Other tests cover faults, folded functions, memory that is not mapped, and queries in signal
 * handlers and threads while sections are added and removed. check_sanmd_programs tests the
 * sections that clang writes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fork_support.h"
#include "stackmap_support.h"

#include "sanmd/callbacks.h"

#include <cairn/sanmd_runtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDE = CAIRN_SANMD_WIDE_ADDRESSES };

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

/* ---- Refused system calls ---- */

static bool has_memory = true;

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*): the linker has given them their names. */

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return has_memory ? __real_mmap(address, size, protection, flags, file, offset) : MAP_FAILED;
}

/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

/* ---- Sections ---- */

/* A section and the address that its code seems to have. That address is not mapped. */
struct metadata {
    enum cairn_sanmd_kind kind;
    uint32_t version;
    uint8_t *bytes;
    size_t size;
    size_t count;
    struct cairn_sanmd_entry *entries; /* accesses are stored as functions of one byte */
};

static enum cairn_byte_order own_order(void)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN;
}

static void put(struct metadata *metadata, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        size_t place = own_order() == CAIRN_LITTLE_ENDIAN ? i : bytes - 1 - i;
        metadata->bytes[metadata->size++] = (uint8_t)(value >> 8 * place);
    }
}

static void put_number(struct metadata *metadata, uint32_t value)
{
    if ((metadata->version & CAIRN_SANMD_VERSION_MASK) == 1) {
        put(metadata, value, 4);
        return;
    }
    for (; value >= 0x80; value >>= 7)
        put(metadata, (value & 0x7F) | 0x80, 1);
    put(metadata, value, 1);
}

static void put_entry(struct metadata *metadata, const struct cairn_sanmd_entry *entry)
{
    uint64_t place = (uint64_t)(uintptr_t)metadata->bytes + metadata->size;
    put(metadata, entry->address - place, (metadata->version & WIDE) != 0 ? 8 : 4);
    if (metadata->kind == CAIRN_SANMD_ATOMICS)
        return;
    put_number(metadata, entry->size);
    put_number(metadata, entry->features);
    bool is_first = (metadata->version & CAIRN_SANMD_VERSION_MASK) == 1;
    if ((entry->features & (is_first ? 2 : 4)) != 0)
        put_number(metadata, entry->stack_argument_bytes);
}

enum { ENTRIES_MAX = 400, ENTRY_BYTES_MAX = 8 + 3 * 5, SLOTS = 16 };

/* Sections are near each other, so that 4 bytes reach from each section to all code. malloc does
 * not guarantee that. */
static struct {
    uint8_t bytes[SLOTS][ENTRIES_MAX * ENTRY_BYTES_MAX];
    bool is_used[SLOTS];
} arena;

static uint8_t *arena_take(void)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (arena.is_used[slot])
            continue;
        arena.is_used[slot] = true;
        return arena.bytes[slot];
    }
    ck_abort_msg("more sections than slots");
    return NULL;
}

static void arena_give(const uint8_t *bytes)
{
    for (unsigned slot = 0; slot < SLOTS; slot++)
        arena.is_used[slot] = arena.is_used[slot] && arena.bytes[slot] != bytes;
}

static struct metadata metadata_create(enum cairn_sanmd_kind kind, uint32_t version,
                                       const struct cairn_sanmd_entry *entries, size_t count)
{
    struct metadata metadata = {.kind = kind, .version = version, .count = count};
    metadata.bytes = arena_take();
    metadata.entries = malloc((count + 1) * sizeof *entries);
    memcpy(metadata.entries, entries, count * sizeof *entries);
    for (size_t i = 0; i < count; i++)
        put_entry(&metadata, &entries[i]);
    return metadata;
}

static void metadata_free(struct metadata *metadata)
{
    arena_give(metadata->bytes);
    free(metadata->entries);
}

static void metadata_add(const struct metadata *metadata)
{
    if (metadata->kind == CAIRN_SANMD_COVERED)
        __sanitizer_metadata_covered_add(metadata->version, metadata->bytes,
                                         metadata->bytes + metadata->size);
    else
        __sanitizer_metadata_atomics_add(metadata->version, metadata->bytes,
                                         metadata->bytes + metadata->size);
}

static void metadata_delete(const struct metadata *metadata)
{
    if (metadata->kind == CAIRN_SANMD_COVERED)
        __sanitizer_metadata_covered_del(metadata->version, metadata->bytes,
                                         metadata->bytes + metadata->size);
    else
        __sanitizer_metadata_atomics_del(metadata->version, metadata->bytes,
                                         metadata->bytes + metadata->size);
}

static uint64_t code_base(void) { return (uint64_t)(uintptr_t)&arena + (1 << 24); }

static struct cairn_sanmd_statistics statistics(void)
{
    struct cairn_sanmd_statistics now;
    cairn_sanmd_get_statistics(&now);
    return now;
}

/* ---- Random sections ---- */

enum { SECTIONS = 6, ROUNDS = 60, PROBES = 1000, STRETCH = 1 << 16 };

static struct metadata sections[SECTIONS];
static bool is_added[SECTIONS];

/* Writes functions, most of which follow each other directly. */
static size_t random_functions(struct cairn_sanmd_entry *entries, uint64_t base)
{
    size_t count = below(ENTRIES_MAX);
    uint64_t address = base + below(STRETCH);
    for (size_t i = 0; i < count; i++) {
        uint32_t features = below(4);
        entries[i] = (struct cairn_sanmd_entry){.address = address,
                                                .size = below(8) == 0 ? 0 : 1 + below(200),
                                                .features = features,
                                                .stack_argument_bytes =
                                                    (features & 2) != 0 ? 8 * below(9) : 0};
        address += entries[i].size + (below(3) == 0 ? below(500) : 0);
    }
    return count;
}

static size_t random_atomics(struct cairn_sanmd_entry *entries, uint64_t base)
{
    size_t count = below(ENTRIES_MAX);
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct cairn_sanmd_entry){.address = base + below(STRETCH), .size = 1};
    return count;
}

static void shuffle(struct cairn_sanmd_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t other = below((uint32_t)i + 1);
        struct cairn_sanmd_entry held = entries[i];
        entries[i] = entries[other];
        entries[other] = held;
    }
}

/* Each section has its own functions, at addresses that `number` separates. Accesses of several
 * sections are mixed. */
static struct metadata random_section(unsigned number, uint64_t base)
{
    static struct cairn_sanmd_entry entries[ENTRIES_MAX];
    bool is_covered = below(2) == 0;
    uint32_t version = 1 | (below(2) == 0 ? WIDE : 0);
    size_t count = is_covered ? random_functions(entries, base + number * 4 * STRETCH)
                              : random_atomics(entries, base);
    if (below(2) == 0)
        shuffle(entries, count);
    return metadata_create(is_covered ? CAIRN_SANMD_COVERED : CAIRN_SANMD_ATOMICS, version, entries,
                           count);
}

static const struct cairn_sanmd_entry *search(enum cairn_sanmd_kind kind, uint64_t pc)
{
    for (unsigned s = 0; s < SECTIONS; s++)
        for (size_t i = 0; is_added[s] && sections[s].kind == kind && i < sections[s].count; i++)
            if (pc - sections[s].entries[i].address < sections[s].entries[i].size)
                return &sections[s].entries[i];
    return NULL;
}

static bool is_same(const struct cairn_sanmd_entry *one, const struct cairn_sanmd_entry *other)
{
    return one->address == other->address && one->size == other->size &&
           one->features == other->features &&
           one->stack_argument_bytes == other->stack_argument_bytes;
}

static void expect_same(uint64_t pc)
{
    const struct cairn_sanmd_entry *expected = search(CAIRN_SANMD_COVERED, pc);
    struct cairn_sanmd_entry function = {.size = 77};
    expect(cairn_sanmd_find_function(pc, &function) == (expected != NULL));
    expect(expected == NULL ? function.size == 77 : is_same(&function, expected));
    expect(cairn_sanmd_is_atomic(pc) == (search(CAIRN_SANMD_ATOMICS, pc) != NULL));
}

static void probe(uint64_t base)
{
    for (unsigned i = 0; i < PROBES; i++)
        expect_same(base - 100 + below((SECTIONS + 1) * 4 * STRETCH));
    for (unsigned s = 0; s < SECTIONS; s++)
        for (size_t i = 0; i < sections[s].count; i += 1 + below(20)) {
            const struct cairn_sanmd_entry *entry = &sections[s].entries[i];
            expect_same(entry->address);
            expect_same(entry->address - 1);
            expect_same(entry->address + entry->size);
            expect_same(entry->address + entry->size - 1);
        }
}

START_TEST(random_sections_agree_with_a_linear_search)
{
    random_state = sample_seed();
    uint64_t base = code_base();
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned changed = below(SECTIONS);
        if (is_added[changed])
            metadata_delete(&sections[changed]);
        metadata_free(&sections[changed]);
        sections[changed] = random_section(changed, base);
        is_added[changed] = below(4) != 0 && sections[changed].count > 0;
        if (is_added[changed])
            metadata_add(&sections[changed]);
        probe(base);
    }
    for (unsigned i = 0; i < SECTIONS; i++) {
        if (is_added[i])
            metadata_delete(&sections[i]);
        metadata_free(&sections[i]);
    }
    ck_assert_uint_eq(statistics().range_count, 0);
    ck_assert_uint_eq(statistics().waiting_bytes, 0);
}
END_TEST

/* ---- Visitors ---- */

struct visited {
    size_t count;
    size_t limit; /* number of visits after which the visitor stops; 0: never */
    uint64_t last;
    const struct metadata *deleted; /* at the first visit */
};

static bool note(struct visited *visited, uint64_t address)
{
    expect(visited->count == 0 || address >= visited->last);
    visited->last = address;
    visited->count++;
    if (visited->deleted != NULL && visited->count == 1)
        metadata_delete(visited->deleted);
    return visited->count != visited->limit;
}

static bool visit_entry(void *data, const struct cairn_sanmd_entry *entry)
{
    return note(data, entry->address);
}

/* There are 100 of them, 16 bytes apart, in no particular order. */
static struct metadata hundred(enum cairn_sanmd_kind kind, uint64_t base)
{
    struct cairn_sanmd_entry entries[100];
    for (unsigned i = 0; i < 100; i++)
        entries[i] = (struct cairn_sanmd_entry){
            .address = base + 16 * ((i * 37) % 100), .size = 16, .features = 1};
    return metadata_create(kind, 2, entries, 100);
}

START_TEST(visits_are_limited_to_a_range)
{
    uint64_t base = code_base();
    struct metadata functions = hundred(CAIRN_SANMD_COVERED, base);
    struct metadata atomics = hundred(CAIRN_SANMD_ATOMICS, base);
    metadata_add(&functions);
    metadata_add(&atomics);
    static const struct {
        uint64_t begin;
        uint64_t end;
        size_t count;
    } ranges[] = {{0, 1600, 100}, {1, 1600, 99},   {16, 17, 1},     {17, 32, 0},
                  {16, 16, 0},    {1584, 9999, 1}, {1585, 9999, 0}, {320, 640, 20}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (int kind = CAIRN_SANMD_COVERED; kind <= CAIRN_SANMD_ATOMICS; kind++) {
            struct visited visited = {0};
            ck_assert(cairn_sanmd_visit((enum cairn_sanmd_kind)kind, base + ranges[i].begin,
                                        base + ranges[i].end, visit_entry, &visited));
            ck_assert_uint_eq(visited.count, ranges[i].count);
        }
    }
    struct visited three = {.limit = 3};
    ck_assert(!cairn_sanmd_visit(CAIRN_SANMD_ATOMICS, 0, UINT64_MAX, visit_entry, &three));
    ck_assert_uint_eq(three.count, 3);
    metadata_delete(&functions);
    metadata_delete(&atomics);
    metadata_free(&functions);
    metadata_free(&atomics);
}
END_TEST

START_TEST(visitors_may_delete_the_section)
{
    struct metadata functions = hundred(CAIRN_SANMD_COVERED, code_base());
    metadata_add(&functions);
    struct visited visited = {.deleted = &functions};
    ck_assert(cairn_sanmd_visit(CAIRN_SANMD_COVERED, 0, UINT64_MAX, visit_entry, &visited));
    ck_assert_uint_eq(visited.count, 1);
    /* The memory is kept for the query that was running, until another callback. */
    ck_assert_uint_gt(statistics().waiting_bytes, 0);
    metadata_add(&functions);
    metadata_delete(&functions);
    ck_assert_uint_eq(statistics().waiting_bytes, 0);
    metadata_free(&functions);
}
END_TEST

/* ---- Ranges, and errors in them ---- */

static struct cairn_sanmd_range only_range;

static bool keep_range(void *data, const struct cairn_sanmd_range *range)
{
    ++*(unsigned *)data;
    only_range = *range;
    return true;
}

static void expect_one_range(void)
{
    unsigned count = 0;
    ck_assert(cairn_sanmd_visit_ranges(keep_range, &count));
    ck_assert_uint_eq(count, 1);
}

START_TEST(entries_before_an_error_are_found)
{
    uint64_t base = code_base();
    struct metadata functions = hundred(CAIRN_SANMD_COVERED, base);
    const size_t entry = 4 + 1 + 1;
    functions.bytes[50 * entry + 5] = 8;
    metadata_add(&functions);
    expect_one_range();
    ck_assert_int_eq(only_range.kind, CAIRN_SANMD_COVERED);
    ck_assert_uint_eq(only_range.version, 2);
    ck_assert_uint_eq(only_range.section_address, (uintptr_t)functions.bytes);
    ck_assert_uint_eq(only_range.section_size, functions.size);
    ck_assert_uint_eq(only_range.entry_count, 50);
    ck_assert_int_eq(only_range.error.status, CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(only_range.error.offset, 50 * entry);
    ck_assert_uint_eq(statistics().faulty_range_count, 1);
    struct cairn_sanmd_entry function;
    for (unsigned i = 0; i < 100; i++)
        ck_assert(cairn_sanmd_find_function(functions.entries[i].address, &function) == (i < 50));
    metadata_delete(&functions);
    ck_assert_uint_eq(statistics().faulty_range_count, 0);
    metadata_free(&functions);
}
END_TEST

START_TEST(sections_of_unknown_versions_are_empty)
{
    struct metadata functions = hundred(CAIRN_SANMD_COVERED, code_base());
    functions.version = 3;
    metadata_add(&functions);
    expect_one_range();
    ck_assert_int_eq(only_range.error.status, CAIRN_ERROR_VERSION);
    ck_assert_uint_eq(only_range.entry_count, 0);
    struct cairn_sanmd_entry function;
    ck_assert(!cairn_sanmd_find_function(functions.entries[0].address, &function));
    ck_assert(!cairn_sanmd_find_function(0, &function));
    metadata_delete(&functions);
    ck_assert_uint_eq(statistics().range_count, 0);
    metadata_free(&functions);
}
END_TEST

START_TEST(empty_and_unknown_sections_are_ignored)
{
    struct metadata functions = hundred(CAIRN_SANMD_COVERED, code_base());
    __sanitizer_metadata_covered_add(2, NULL, NULL);
    __sanitizer_metadata_atomics_add(2, functions.bytes, functions.bytes);
    __sanitizer_metadata_covered_del(2, NULL, NULL);
    metadata_delete(&functions);
    ck_assert_uint_eq(statistics().range_count, 0);
    metadata_free(&functions);
}
END_TEST

START_TEST(sections_are_deleted_as_often_as_added)
{
    struct metadata atomics = hundred(CAIRN_SANMD_ATOMICS, code_base());
    uint64_t pc = atomics.entries[7].address;
    metadata_add(&atomics);
    metadata_add(&atomics);
    ck_assert_uint_eq(statistics().range_count, 1);
    metadata_delete(&atomics);
    ck_assert(cairn_sanmd_is_atomic(pc));
    metadata_delete(&atomics);
    ck_assert(!cairn_sanmd_is_atomic(pc));
    metadata_free(&atomics);
}
END_TEST

START_TEST(function_with_most_features_is_found)
{
    uint64_t base = code_base();
    const struct cairn_sanmd_entry entries[] = {{0, base, 32, 1, 0},
                                                {0, base, 32, 7, 8},
                                                {0, base, 32, 0, 0},
                                                {0, base, 0, 7, 16},
                                                {0, base + 32, 0, 1, 0}};
    struct metadata functions =
        metadata_create(CAIRN_SANMD_COVERED, 2, entries, sizeof entries / sizeof *entries);
    metadata_add(&functions);
    struct cairn_sanmd_entry function;
    ck_assert(cairn_sanmd_find_function(base + 31, &function));
    ck_assert_uint_eq(function.features, 7);
    ck_assert_uint_eq(function.stack_argument_bytes, 8);
    ck_assert(!cairn_sanmd_find_function(base + 32, &function));
    metadata_delete(&functions);
    metadata_free(&functions);
}
END_TEST

START_TEST(entries_at_both_ends_of_the_address_space_are_found)
{
    const struct cairn_sanmd_entry entries[] = {
        {0, 1, 4, 1, 0}, {0, UINT64_MAX / 2, 4, 1, 0}, {0, UINT64_MAX - 9, 4, 1, 0}};
    for (unsigned kind = CAIRN_SANMD_COVERED; kind <= CAIRN_SANMD_ATOMICS; kind++) {
        struct metadata metadata =
            metadata_create((enum cairn_sanmd_kind)kind, 2 | WIDE, entries, 3);
        metadata_add(&metadata);
        for (unsigned i = 0; i < 3; i++) {
            struct cairn_sanmd_entry found;
            ck_assert(cairn_sanmd_find_function(entries[i].address + 3, &found) ==
                      (kind == CAIRN_SANMD_COVERED));
            ck_assert(cairn_sanmd_is_atomic(entries[i].address) == (kind == CAIRN_SANMD_ATOMICS));
            ck_assert(!cairn_sanmd_is_atomic(entries[i].address + 1));
        }
        metadata_delete(&metadata);
        metadata_free(&metadata);
    }
}
END_TEST

/* Random addresses must not lead to accesses outside of a table. */
START_TEST(sections_of_random_bytes_are_accepted)
{
    random_state = sample_seed();
    for (unsigned round = 0; round < 500; round++) {
        static const uint32_t versions[] = {1, 2, 1 | WIDE, 2 | WIDE};
        uint8_t bytes[600];
        size_t size = 1 + below(sizeof bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = below(2) == 0 ? (uint8_t)below(256) : (uint8_t)(below(2) * 0xFF);
        struct metadata metadata = {.kind =
                                        below(2) == 0 ? CAIRN_SANMD_COVERED : CAIRN_SANMD_ATOMICS,
                                    .version = versions[below(4)],
                                    .bytes = bytes,
                                    .size = size};
        metadata_add(&metadata);
        struct visited visited = {0};
        struct cairn_sanmd_entry function;
        ck_assert(cairn_sanmd_visit(CAIRN_SANMD_COVERED, 0, UINT64_MAX, visit_entry, &visited));
        for (unsigned i = 0; i < 20; i++) {
            uint64_t pc = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
            (void)cairn_sanmd_find_function(pc >> below(64), &function);
            (void)cairn_sanmd_is_atomic(pc >> below(64));
        }
        metadata_delete(&metadata);
    }
    ck_assert_uint_eq(statistics().range_count, 0);
}
END_TEST

START_TEST(lost_sections_are_counted)
{
    uint64_t base = code_base();
    struct metadata kept = hundred(CAIRN_SANMD_ATOMICS, base);
    struct metadata lost = hundred(CAIRN_SANMD_COVERED, base);
    metadata_add(&kept);
    size_t lost_before = statistics().lost_range_count;
    has_memory = false;
    metadata_add(&lost);
    ck_assert_uint_eq(statistics().lost_range_count, lost_before + 1);
    ck_assert(cairn_sanmd_is_atomic(base));
    /* A deletion needs no memory. */
    metadata_delete(&lost);
    metadata_delete(&kept);
    ck_assert(!cairn_sanmd_is_atomic(base));
    ck_assert_uint_eq(statistics().range_count, 0);
    has_memory = true;
    metadata_add(&kept);
    ck_assert(cairn_sanmd_is_atomic(base));
    metadata_delete(&kept);
    ck_assert_uint_eq(statistics().waiting_bytes, 0);
    metadata_free(&kept);
    metadata_free(&lost);
}
END_TEST

/* ---- While sections are added and removed ---- */

enum { CHANGES = 3000, ASKING_THREADS = 2, CHANGING_THREADS = 2, TICK_MICROSECONDS = 200 };

/* One section stays, and the others are added and removed. */
static struct metadata staying;
static struct metadata changing[CHANGING_THREADS];
static atomic_bool is_over;
static atomic_ulong answers;

static void ask(uint64_t pc_of_staying)
{
    struct cairn_sanmd_entry function;
    expect(cairn_sanmd_is_atomic(pc_of_staying));
    expect(!cairn_sanmd_is_atomic(pc_of_staying + 1));
    for (unsigned i = 0; i < CHANGING_THREADS; i++) {
        uint64_t pc = changing[i].entries[answers % 100].address;
        if (cairn_sanmd_find_function(pc + 3, &function))
            expect(function.address == pc && function.size == 16 && function.features == 1);
    }
    atomic_fetch_add(&answers, 1);
}

static void on_tick(int number)
{
    (void)number;
    ask(staying.entries[answers % 100].address);
}

static void *ask_on(void *unused)
{
    (void)unused;
    while (!is_over)
        ask(staying.entries[answers % 100].address);
    return NULL;
}

static void *change_on(void *data)
{
    for (unsigned i = 0; i < CHANGES; i++) {
        metadata_add(data);
        metadata_delete(data);
    }
    return NULL;
}

static void begin_ticks(suseconds_t microseconds)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    ck_assert_int_eq(sigaction(SIGPROF, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_PROF, &timer, NULL), 0);
}

START_TEST(queries_in_threads_and_signal_handlers_find_remaining_sections)
{
    uint64_t base = code_base();
    staying = hundred(CAIRN_SANMD_ATOMICS, base);
    metadata_add(&staying);
    for (unsigned i = 0; i < CHANGING_THREADS; i++)
        changing[i] = hundred(CAIRN_SANMD_COVERED, base + i * STRETCH);
    begin_ticks(TICK_MICROSECONDS);
    pthread_t asking[ASKING_THREADS];
    pthread_t changers[CHANGING_THREADS];
    for (unsigned i = 0; i < ASKING_THREADS; i++)
        pthread_create(&asking[i], NULL, ask_on, NULL);
    for (unsigned i = 0; i < CHANGING_THREADS; i++)
        pthread_create(&changers[i], NULL, change_on, &changing[i]);
    for (unsigned i = 0; i < CHANGING_THREADS; i++)
        pthread_join(changers[i], NULL);
    is_over = true;
    for (unsigned i = 0; i < ASKING_THREADS; i++)
        pthread_join(asking[i], NULL);
    begin_ticks(0);
    ck_assert_uint_gt(answers, 0);
    ck_assert_uint_eq(statistics().range_count, 1);
    metadata_delete(&staying);
    /* While no query runs, everything has been freed. */
    ck_assert_uint_eq(statistics().waiting_bytes, 0);
    metadata_free(&staying);
    for (unsigned i = 0; i < CHANGING_THREADS; i++)
        metadata_free(&changing[i]);
}
END_TEST

/* ---- Children ---- */

static void *fork_on(void *failures)
{
    for (unsigned i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            fork_limit_time(20);
            metadata_add(&changing[1]);
            metadata_delete(&changing[1]);
            _exit(cairn_sanmd_is_atomic(staying.entries[0].address) ? 0 : 1);
        }
        int how = 1;
        waitpid(child, &how, 0);
        *(unsigned *)failures += how != 0;
    }
    is_over = true;
    return NULL;
}

START_TEST(forked_children_can_add_sections)
{
    uint64_t base = code_base();
    unsigned failures = 0;
    if (fork_breaks_the_allocator())
        return;
    staying = hundred(CAIRN_SANMD_ATOMICS, base);
    metadata_add(&staying);
    for (unsigned i = 0; i < CHANGING_THREADS; i++)
        changing[i] = hundred(CAIRN_SANMD_COVERED, base + i * STRETCH);
    pthread_t forking;
    is_over = false;
    pthread_create(&forking, NULL, fork_on, &failures);
    while (!is_over) {
        metadata_add(&changing[0]);
        metadata_delete(&changing[0]);
    }
    pthread_join(forking, NULL);
    ck_assert_uint_eq(failures, 0);
    metadata_delete(&staying);
    metadata_free(&staying);
    for (unsigned i = 0; i < CHANGING_THREADS; i++)
        metadata_free(&changing[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sanitizers' metadata at run time");
    TCase *tests = tcase_create("sections that the test writes");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_sections_agree_with_a_linear_search);
    tcase_add_test(tests, visits_are_limited_to_a_range);
    tcase_add_test(tests, visitors_may_delete_the_section);
    tcase_add_test(tests, entries_before_an_error_are_found);
    tcase_add_test(tests, sections_of_unknown_versions_are_empty);
    tcase_add_test(tests, empty_and_unknown_sections_are_ignored);
    tcase_add_test(tests, sections_are_deleted_as_often_as_added);
    tcase_add_test(tests, function_with_most_features_is_found);
    tcase_add_test(tests, entries_at_both_ends_of_the_address_space_are_found);
    tcase_add_test(tests, sections_of_random_bytes_are_accepted);
    tcase_add_test(tests, lost_sections_are_counted);
    tcase_add_test(tests, queries_in_threads_and_signal_handlers_find_remaining_sections);
    tcase_add_test(tests, forked_children_can_add_sections);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
