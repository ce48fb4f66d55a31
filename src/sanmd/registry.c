/*
 * Implements the registry, and the callbacks that change it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanmd/registry.h"

#include "sanmd/memory.h"

#include <pthread.h>

/* Initialised statically, because callbacks may run before any constructor of this library. */
static struct {
    /* For queries. */
    struct readers readers;
    _Atomic(struct directory *) directory;
    /* For writers, which hold the lock. The counters below may be read without it. */
    pthread_mutex_t lock;
    struct table *tables;
    /* Unpublished blocks, which earlier queries may still use. */
    struct block *retired;
    atomic_size_t waiting_bytes;
    atomic_size_t lost_range_count;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Queries ---- */

struct query query_begin(void)
{
    atomic_uint_fast64_t *running = readers_enter(&registry.readers);
    return (struct query){running, atomic_load(&registry.directory)};
}

void query_end(struct query query) { readers_leave(query.running); }

struct query_entries query_entries(struct query query, enum cairn_sanmd_kind kind)
{
    const struct directory *directory = query.directory;
    if (directory == NULL)
        return (struct query_entries){NULL, 0};
    if (kind == CAIRN_SANMD_COVERED)
        return (struct query_entries){directory->entries, directory->covered_count};
    return (struct query_entries){directory->entries + directory->covered_count,
                                  directory->count - directory->covered_count};
}

/* ---- Releasing memory ---- */

static void retire(struct block *block)
{
    block->next_retired = registry.retired;
    block->deadline = readers_deadline(&registry.readers);
    registry.retired = block;
    atomic_fetch_add(&registry.waiting_bytes, block->mapping_bytes);
}

static void give_back(void)
{
    readers_advance(&registry.readers);
    uint64_t changes = readers_changes(&registry.readers);
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

static size_t count_tables(void)
{
    size_t count = 0;
    for (const struct table *table = registry.tables; table != NULL; table = table->next)
        count += !atomic_load(&table->is_gone);
    return count;
}

static bool is_before(const struct directory_entry *entry, const struct table *table)
{
    if (entry->table->range.kind != table->range.kind)
        return entry->table->range.kind < table->range.kind;
    return entry->code_begin <= table->range.code_begin;
}

/* Inserts a table in order, in linear time: tables are added one by one, and they are few. */
static void insert(struct directory *directory, const struct table *table)
{
    size_t place = directory->count++;
    for (; place > 0 && !is_before(&directory->entries[place - 1], table); place--)
        directory->entries[place] = directory->entries[place - 1];
    directory->entries[place] = (struct directory_entry){
        table->range.code_begin, table->range.code_end, table->range.code_end, table};
    directory->covered_count += table->range.kind == CAIRN_SANMD_COVERED;
}

static void set_furthest_ends(struct directory *directory)
{
    for (size_t i = 1; i < directory->count; i++) {
        struct directory_entry *entry = &directory->entries[i];
        bool is_first_of_kind = i == directory->covered_count;
        if (!is_first_of_kind && entry[-1].furthest_end > entry->furthest_end)
            entry->furthest_end = entry[-1].furthest_end;
    }
}

static struct directory *make_directory(void)
{
    size_t bytes = sizeof(struct directory) + count_tables() * sizeof(struct directory_entry);
    struct directory *directory = memory_map(bytes);
    if (directory == NULL)
        return NULL;
    directory->block.mapping_bytes = bytes;
    for (const struct table *table = registry.tables; table != NULL; table = table->next)
        if (!atomic_load(&table->is_gone))
            insert(directory, table);
    set_furthest_ends(directory);
    return directory;
}

/* Retires deleted tables, which the current directory no longer contains. */
static void retire_gone_tables(void)
{
    for (struct table **link = &registry.tables; *link != NULL;) {
        struct table *table = *link;
        if (!atomic_load(&table->is_gone)) {
            link = &table->next;
            continue;
        }
        *link = table->next;
        retire(&table->block);
    }
}

/* Publishes a directory of all current tables. Returns false if there is no memory; queries then
 * keep using the previous directory, in which deleted tables are marked with is_gone. */
static bool publish(void)
{
    struct directory *made = make_directory();
    if (made == NULL)
        return false;
    struct directory *before = atomic_exchange(&registry.directory, made);
    if (before != NULL)
        retire(&before->block);
    retire_gone_tables();
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

static bool add_table(enum cairn_sanmd_kind kind, uint32_t version, const void *start,
                      const void *end)
{
    struct table *table = table_create(kind, version, start, end);
    if (table == NULL)
        return false;
    table->next = registry.tables;
    registry.tables = table;
    if (publish())
        return true;
    registry.tables = table->next;
    table_destroy(table);
    return false;
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
    if (table != NULL)
        table->add_count++;
    else if (!add_table(kind, version, start, end))
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

/* ---- Statistics ---- */

static void count_table(struct cairn_sanmd_statistics *statistics, const struct table *table)
{
    const struct cairn_sanmd_range *range = &table->range;
    if (atomic_load(&table->is_gone))
        return;
    statistics->range_count++;
    statistics->faulty_range_count += range->error.status != CAIRN_OK;
    statistics->table_bytes += range->table_bytes;
    if (range->kind == CAIRN_SANMD_COVERED)
        statistics->function_count += range->entry_count;
    else
        statistics->atomic_count += range->entry_count;
}

void registry_statistics(struct cairn_sanmd_statistics *statistics)
{
    *statistics = (struct cairn_sanmd_statistics){
        .waiting_bytes = atomic_load(&registry.waiting_bytes),
        .lost_range_count = atomic_load(&registry.lost_range_count)};
    struct query query = query_begin();
    size_t count = query.directory == NULL ? 0 : query.directory->count;
    for (size_t i = 0; i < count; i++)
        count_table(statistics, query.directory->entries[i].table);
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
