/*
 * The registry of the tables of all sections that callbacks have added, the callbacks, and the
 * queries of programs. The registry is this library's only global state.
 *
 * Writers hold a lock, create a new directory of all tables, publish it with one store, and retire
 * the previous directory. A query announces itself and loads the directory. Everything reachable
 * from the directory is valid until the query ends.
 *
 * GRACE PERIODS. Memory that was unpublished is unmapped after all queries that may use it have
 * ended. Neither queries nor writers wait for that. A query increments a counter of the current
 * phase when it begins, and decrements the same counter when it ends. The phase can change as soon
 * as no query of the other phase is running. New queries are counted in the current phase, so the
 * number of queries in the other phase falls to 0. When data is unpublished, each query that may
 * still use it is counted in one of the two phases. After two more changes of the phase, all of
 * these queries have ended.
 *
 * All atomic operations are sequentially consistent. A query increments its counter before it loads
 * the published data, and a writer publishes new data before it reads the counters. Therefore, a
 * query that the writer does not see in the counters finds the new data.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanmd/callbacks.h"
#include "sanmd/table.h"

#include <pthread.h>

enum { PHASES = 2, STRIPES = 64, LINE_BYTES = 64 };

/* A table, with copies of the fields that a search compares. */
struct directory_entry {
    uint64_t code_begin;
    uint64_t code_end;
    /* The largest code_end of this entry and all entries before it. The code of two tables may be
     * interleaved, if one program contains two versions of the metadata. */
    uint64_t furthest_end;
    const struct table *table;
};

/* All tables: first those of functions, then those of accesses, both sorted by code_begin. */
struct directory {
    struct block block;
    size_t count;
    size_t covered_count;
    struct directory_entry entries[];
};

/* A running query. */
struct query {
    atomic_uint_fast64_t *running;
    const struct directory *directory; /* NULL if no table was ever added */
};

/* Counters in a separate cache line. Different threads usually use different lines. */
struct stripe {
    _Alignas(LINE_BYTES) atomic_uint_fast64_t running[PHASES];
};

/* Initialised statically, because callbacks may run before any constructor of this library. */
static struct {
    /* For queries. */
    struct stripe stripes[STRIPES];
    atomic_uint_fast64_t changes; /* number of phase changes so far; the lowest bit is the phase */
    _Atomic(struct directory *) directory;
    /* For writers, which hold the lock. The counters below may be read without it. */
    pthread_mutex_t lock;
    struct table *tables;
    struct block *retired; /* unpublished blocks, which earlier queries may still use */
    atomic_size_t waiting_bytes;
    atomic_size_t lost_range_count;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Beginning and ending queries ---- */

/* Neither function waits or allocates. The stacks of threads are far apart, so the address of a
 * call frame chooses the counters. A thread-local variable might allocate memory at its first use.
 */
static struct query query_begin(void)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const int beyond_frames = 16;
    const int index_bits = 6;
    _Static_assert(STRIPES == 1 << 6, "as many as the bits can tell apart");
    uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    struct stripe *stripe =
        &registry.stripes[(stack >> beyond_frames) * golden >> (64 - index_bits)];
    atomic_uint_fast64_t *running = &stripe->running[atomic_load(&registry.changes) % PHASES];
    atomic_fetch_add(running, 1);
    return (struct query){running, atomic_load(&registry.directory)};
}

static void query_end(struct query query) { atomic_fetch_sub(query.running, 1); }

/* ---- Releasing memory ---- */

static void retire(struct block *block)
{
    block->next_retired = registry.retired;
    block->deadline = atomic_load(&registry.changes) + PHASES;
    registry.retired = block;
    atomic_fetch_add(&registry.waiting_bytes, block->mapping_bytes);
}

/* Changes the phase up to twice, as far as running queries allow it. */
static void advance(void)
{
    for (unsigned i = 0; i < PHASES; i++) {
        uint64_t changes = atomic_load(&registry.changes);
        for (unsigned stripe = 0; stripe < STRIPES; stripe++)
            if (atomic_load(&registry.stripes[stripe].running[(changes + 1) % PHASES]) != 0)
                return;
        atomic_store(&registry.changes, changes + 1);
    }
}

/* Unmaps the retired blocks that no query uses. */
static void give_back(void)
{
    advance();
    uint64_t changes = atomic_load(&registry.changes);
    for (struct block **link = &registry.retired; *link != NULL;) {
        struct block *block = *link;
        if (changes < block->deadline) {
            link = &block->next_retired;
            continue;
        }
        *link = block->next_retired;
        atomic_fetch_sub(&registry.waiting_bytes, block->mapping_bytes);
        memory_unmap(block, block->mapping_bytes);
    }
}

/* ---- Publishing ---- */

/* Inserts a table in order, in linear time: tables are added one by one, and they are few. */
static void insert(struct directory *directory, const struct table *table)
{
    size_t place = directory->count++;
    for (; place > 0; place--) {
        const struct cairn_sanmd_range *before = &directory->entries[place - 1].table->range;
        if (before->kind != table->range.kind ? before->kind < table->range.kind
                                              : before->code_begin <= table->range.code_begin)
            break;
        directory->entries[place] = directory->entries[place - 1];
    }
    directory->entries[place] = (struct directory_entry){
        table->range.code_begin, table->range.code_end, table->range.code_end, table};
    directory->covered_count += table->range.kind == CAIRN_SANMD_COVERED;
}

static struct directory *make_directory(void)
{
    size_t count = 0;
    for (const struct table *table = registry.tables; table != NULL; table = table->next)
        count += !atomic_load(&table->is_gone);
    size_t bytes = sizeof(struct directory) + count * sizeof(struct directory_entry);
    struct directory *directory = memory_map(bytes);
    if (directory == NULL)
        return NULL;
    directory->block.mapping_bytes = bytes;
    for (const struct table *table = registry.tables; table != NULL; table = table->next)
        if (!atomic_load(&table->is_gone))
            insert(directory, table);
    for (size_t i = 1; i < directory->count; i++) {
        struct directory_entry *entry = &directory->entries[i];
        bool is_first_of_kind = i == directory->covered_count;
        if (!is_first_of_kind && entry[-1].furthest_end > entry->furthest_end)
            entry->furthest_end = entry[-1].furthest_end;
    }
    return directory;
}

/* Publishes a directory of all current tables, and retires deleted tables. Returns false if there
 * is no memory; queries then keep using the previous directory, in which deleted tables are marked
 * with is_gone. */
static bool publish(void)
{
    struct directory *made = make_directory();
    if (made == NULL)
        return false;
    struct directory *before = atomic_exchange(&registry.directory, made);
    if (before != NULL)
        retire(&before->block);
    for (struct table **link = &registry.tables; *link != NULL;) {
        struct table *table = *link;
        if (!atomic_load(&table->is_gone)) {
            link = &table->next;
            continue;
        }
        *link = table->next;
        retire(&table->block);
    }
    give_back();
    return true;
}

/* ---- Adding and deleting ---- */

static struct table *find_table(enum cairn_sanmd_kind kind, const void *start, const void *end)
{
    uint64_t address = (uint64_t)(uintptr_t)start;
    uint64_t size = (uint64_t)((const uint8_t *)end - (const uint8_t *)start);
    struct table *table = registry.tables;
    while (table != NULL && (table->range.kind != kind || table->range.section_address != address ||
                             table->range.section_size != size || atomic_load(&table->is_gone)))
        table = table->next;
    return table;
}

static bool is_empty(const void *start, const void *end)
{
    return start == NULL || (uintptr_t)start >= (uintptr_t)end;
}

static void add(enum cairn_sanmd_kind kind, uint32_t version, const void *start, const void *end)
{
    if (is_empty(start, end))
        return;
    pthread_mutex_lock(&registry.lock);
    struct table *table = find_table(kind, start, end);
    if (table != NULL) {
        table->add_count++;
    } else if ((table = sanmd_table_create(kind, version, start, end)) != NULL) {
        table->next = registry.tables;
        registry.tables = table;
        if (!publish()) {
            registry.tables = table->next;
            memory_unmap(table, table->block.mapping_bytes);
            table = NULL;
        }
    }
    if (table == NULL)
        atomic_fetch_add(&registry.lost_range_count, 1);
    pthread_mutex_unlock(&registry.lock);
}

static void forget(enum cairn_sanmd_kind kind, const void *start, const void *end)
{
    if (is_empty(start, end))
        return;
    pthread_mutex_lock(&registry.lock);
    struct table *table = find_table(kind, start, end);
    if (table != NULL && --table->add_count == 0) {
        atomic_store(&table->is_gone, true);
        (void)publish();
    }
    pthread_mutex_unlock(&registry.lock);
}

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*) */

void __sanitizer_metadata_covered_add(uint32_t version, const void *start, const void *end)
{
    add(CAIRN_SANMD_COVERED, version, start, end);
}

void __sanitizer_metadata_covered_del(uint32_t version, const void *start, const void *end)
{
    (void)version;
    forget(CAIRN_SANMD_COVERED, start, end);
}

void __sanitizer_metadata_atomics_add(uint32_t version, const void *start, const void *end)
{
    add(CAIRN_SANMD_ATOMICS, version, start, end);
}

void __sanitizer_metadata_atomics_del(uint32_t version, const void *start, const void *end)
{
    (void)version;
    forget(CAIRN_SANMD_ATOMICS, start, end);
}

/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

/* ---- Queries ---- */

/* The entries of one kind in a directory. */
struct entries {
    const struct directory_entry *first;
    size_t count;
};

static struct entries entries_of(struct query query, enum cairn_sanmd_kind kind)
{
    const struct directory *directory = query.directory;
    if (directory == NULL)
        return (struct entries){NULL, 0};
    if (kind == CAIRN_SANMD_COVERED)
        return (struct entries){directory->entries, directory->covered_count};
    return (struct entries){directory->entries + directory->covered_count,
                            directory->count - directory->covered_count};
}

/* Returns the number of directory entries whose code begins at or before `pc`. */
static size_t count_up_to(struct entries of, uint64_t pc)
{
    size_t low = 0;
    size_t high = of.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of.first[middle].code_begin <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the last entry of the table at or before `pc`. Returns false if all entries are after it,
 * if `pc` is after the table's code, or if the table was deleted. */
static bool find_in_table(const struct directory_entry *entry, uint64_t pc, size_t *found)
{
    if (pc >= entry->code_end || atomic_load_explicit(&entry->table->is_gone, memory_order_acquire))
        return false;
    size_t count = table_count_up_to(entry->table, pc);
    *found = count - 1;
    return count > 0;
}

/* Returns from the loop, because a loop that tests whether an access was found takes twice as long:
 * it has a branch that the processor cannot predict. */
static bool is_atomic(struct query query, uint64_t pc)
{
    struct entries of = entries_of(query, CAIRN_SANMD_ATOMICS);
    if (of.first == NULL)
        return false;
    for (size_t i = count_up_to(of, pc); i > 0 && of.first[i - 1].furthest_end > pc; i--) {
        size_t found;
        if (find_in_table(&of.first[i - 1], pc, &found) &&
            table_address(of.first[i - 1].table, found) == pc)
            return true;
    }
    return false;
}

bool cairn_sanmd_is_atomic(uint64_t pc)
{
    struct query query = query_begin();
    bool is_found = is_atomic(query, pc);
    query_end(query);
    return is_found;
}

bool cairn_sanmd_find_function(uint64_t pc, struct cairn_sanmd_entry *function)
{
    struct query query = query_begin();
    struct entries of = entries_of(query, CAIRN_SANMD_COVERED);
    bool is_found = false;
    for (size_t i = count_up_to(of, pc); !is_found && i > 0 && of.first[i - 1].furthest_end > pc;
         i--) {
        size_t found;
        if (!find_in_table(&of.first[i - 1], pc, &found))
            continue;
        struct cairn_sanmd_entry last = table_entry(of.first[i - 1].table, found);
        is_found = pc - last.address < last.size;
        if (is_found)
            *function = last;
    }
    query_end(query);
    return is_found;
}

/* Returns the number of the first entry at or after `begin`. */
static size_t first_entry(const struct table *table, uint64_t begin)
{
    if (begin <= table->range.code_begin)
        return 0;
    if (begin >= table->range.code_end)
        return table->range.entry_count;
    return table_count_up_to(table, begin - 1);
}

bool cairn_sanmd_visit(enum cairn_sanmd_kind kind, uint64_t begin, uint64_t end,
                       bool (*visit)(void *data, const struct cairn_sanmd_entry *entry), void *data)
{
    struct query query = query_begin();
    struct entries of = entries_of(query, kind);
    bool visits_all = true;
    for (size_t i = 0; i < of.count && visits_all; i++) {
        const struct table *table = of.first[i].table;
        /* The callback may delete the table. */
        for (size_t k = first_entry(table, begin);
             visits_all && k < table->range.entry_count && !atomic_load(&table->is_gone); k++) {
            struct cairn_sanmd_entry entry = table_entry(table, k);
            if (entry.address >= end)
                break;
            visits_all = visit(data, &entry);
        }
    }
    query_end(query);
    return visits_all;
}

bool cairn_sanmd_visit_ranges(bool (*visit)(void *data, const struct cairn_sanmd_range *range),
                              void *data)
{
    struct query query = query_begin();
    size_t count = query.directory == NULL ? 0 : query.directory->count;
    bool visits_all = true;
    for (size_t i = 0; i < count && visits_all; i++) {
        const struct table *table = query.directory->entries[i].table;
        visits_all = atomic_load(&table->is_gone) || visit(data, &table->range);
    }
    query_end(query);
    return visits_all;
}

void cairn_sanmd_get_statistics(struct cairn_sanmd_statistics *statistics)
{
    *statistics = (struct cairn_sanmd_statistics){
        .waiting_bytes = atomic_load(&registry.waiting_bytes),
        .lost_range_count = atomic_load(&registry.lost_range_count)};
    struct query query = query_begin();
    size_t count = query.directory == NULL ? 0 : query.directory->count;
    for (size_t i = 0; i < count; i++) {
        const struct table *table = query.directory->entries[i].table;
        const struct cairn_sanmd_range *range = &table->range;
        if (atomic_load(&table->is_gone))
            continue;
        statistics->range_count++;
        statistics->faulty_range_count += range->error.status != CAIRN_OK;
        statistics->table_bytes += range->table_bytes;
        if (range->kind == CAIRN_SANMD_COVERED)
            statistics->function_count += range->entry_count;
        else
            statistics->atomic_count += range->entry_count;
    }
    if (query.directory != NULL)
        statistics->table_bytes += query.directory->block.mapping_bytes;
    query_end(query);
}

/* ---- fork ---- */

static void lock(void) { pthread_mutex_lock(&registry.lock); }
static void unlock(void) { pthread_mutex_unlock(&registry.lock); }

/* Holds the lock during fork. Otherwise, the child could inherit a lock held by a thread that does
 * not exist there. */
__attribute__((constructor)) static void hold_lock_while_forking(void)
{
    (void)pthread_atfork(lock, unlock, unlock);
}
