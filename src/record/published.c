/*
 * An append-only list of tables, which is replaced when it is full.
 *
 * A reader loads `list` (acquire), then its `count` (acquire), then the entries below it. A writer
 * fills an entry before it increments the count (release), and a list before it stores `list`
 * (release). Unpublishing sets an entry's table to NULL. Such entries are not copied when the list
 * is replaced.
 *
 * Readers may still read a replaced list. A quiescent point guarantees only that readers which
 * began before the last retirement have ended. So it frees the lists that were replaced before the
 * last table was unpublished.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/published.h"

#include "base/error.h"
#include "record/layout.h"

#include <stdatomic.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

struct entry {
    _Atomic(const cairn_table *) table;
    /* Copies of the table's, so that a lookup need not touch most tables. */
    uint64_t id_min;
    uint64_t id_max;
};

struct list {
    struct list *next; /* next in the list of replaced lists */
    uint32_t capacity;
    _Atomic uint32_t count;
    struct entry entries[];
};

struct index {
    struct cairn_allocator allocator;
    _Atomic(struct list *) list;
    struct list *replaced; /* lists replaced since the last table was unpublished */
    struct list *freeable; /* lists replaced before that */
};

/* ---- Lists ---- */

static size_t list_size(uint32_t capacity)
{
    return sizeof(struct list) + capacity * sizeof(struct entry);
}

static struct list *new_list(const struct cairn_allocator *allocator, uint32_t capacity)
{
    struct list *list = memory_new(allocator, 1, list_size(capacity));
    if (list != NULL)
        list->capacity = capacity;
    return list;
}

static void free_lists(const struct cairn_allocator *allocator, struct list *list)
{
    while (list != NULL) {
        struct list *next = list->next;
        memory_free(allocator, list, list_size(list->capacity));
        list = next;
    }
}

static void append(struct list *list, const cairn_table *table)
{
    uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    struct entry *entry = &list->entries[count];
    entry->id_min = table->id_min;
    entry->id_max = table->id_max;
    atomic_store_explicit(&entry->table, table, memory_order_relaxed);
    atomic_store_explicit(&list->count, count + 1, memory_order_release);
}

/* ---- Creating and destroying ---- */

enum cairn_status index_create(const struct cairn_allocator *allocator, struct index **index,
                               struct cairn_error *error)
{
    struct index *created = memory_new(allocator, 1, sizeof *created);
    struct list *list = created == NULL ? NULL : new_list(allocator, FIRST_CAPACITY);
    if (list == NULL) {
        memory_free(allocator, created, sizeof *created);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an index of modules");
    }
    created->allocator = *allocator;
    atomic_init(&created->list, list);
    *index = created;
    return CAIRN_OK;
}

void index_destroy(struct index *index)
{
    if (index == NULL)
        return;
    struct cairn_allocator allocator = index->allocator;
    free_lists(&allocator, index->replaced);
    free_lists(&allocator, index->freeable);
    free_lists(&allocator, atomic_load_explicit(&index->list, memory_order_relaxed));
    memory_free(&allocator, index, sizeof *index);
}

/* ---- Writers ---- */

/* Replaces the list by one with space for as many tables again as are published. */
static bool replace_list(struct index *index)
{
    struct list *old = atomic_load_explicit(&index->list, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&old->count, memory_order_relaxed);
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&old->entries[i].table, memory_order_relaxed) != NULL)
            capacity += 2;
    struct list *fresh =
        new_list(&index->allocator, capacity < FIRST_CAPACITY ? FIRST_CAPACITY : capacity);
    if (fresh == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const cairn_table *table =
            atomic_load_explicit(&old->entries[i].table, memory_order_relaxed);
        if (table != NULL)
            append(fresh, table);
    }
    atomic_store_explicit(&index->list, fresh, memory_order_release);
    old->next = index->replaced;
    index->replaced = old;
    return true;
}

enum cairn_status index_publish(struct index *index, const cairn_table *table,
                                struct cairn_error *error)
{
    struct list *list = atomic_load_explicit(&index->list, memory_order_relaxed);
    bool full = atomic_load_explicit(&list->count, memory_order_relaxed) == list->capacity;
    if (full && !replace_list(index))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to publish one more module");
    append(atomic_load_explicit(&index->list, memory_order_relaxed), table);
    return CAIRN_OK;
}

void index_unpublish(struct index *index, const cairn_table *table)
{
    struct list *list = atomic_load_explicit(&index->list, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&list->entries[i].table, memory_order_relaxed) == table)
            atomic_store_explicit(&list->entries[i].table, NULL, memory_order_release);
    struct list **end = &index->replaced;
    while (*end != NULL)
        end = &(*end)->next;
    *end = index->freeable;
    index->freeable = index->replaced;
    index->replaced = NULL;
}

void index_quiesce(struct index *index)
{
    free_lists(&index->allocator, index->freeable);
    index->freeable = NULL;
}

/* ---- Readers ---- */

/* Returns the entry's table if it may have the ID and is published; otherwise NULL. */
static const cairn_table *table_with(const struct entry *entry, uint64_t id)
{
    if (id < entry->id_min || id > entry->id_max)
        return NULL;
    return atomic_load_explicit(&entry->table, memory_order_acquire);
}

size_t index_find_id(const struct index *index, uint64_t id, struct cairn_record *records,
                     size_t capacity)
{
    const struct list *list = atomic_load_explicit(&index->list, memory_order_acquire);
    uint32_t count = atomic_load_explicit(&list->count, memory_order_acquire);
    size_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const cairn_table *table = table_with(&list->entries[i], id);
        if (table == NULL)
            continue;
        size_t left = found < capacity ? capacity - found : 0;
        found += cairn_table_find_id(table, id, left == 0 ? NULL : records + found, left);
    }
    return found;
}

void index_visit_id(const struct index *index, uint64_t id, table_id_visitor *visit, void *user)
{
    const struct list *list = atomic_load_explicit(&index->list, memory_order_acquire);
    uint32_t count = atomic_load_explicit(&list->count, memory_order_acquire);
    bool goes_on = true;
    for (uint32_t i = 0; i < count && goes_on; i++) {
        const cairn_table *table = table_with(&list->entries[i], id);
        if (table != NULL)
            goes_on = table_visit_id(table, id, visit, user);
    }
}
