/*
 * A hash table with linear probing, whose slots hold an ID and the first entry of its list.
 *
 * Readers run at any time, and beside one writer:
 *  (A) An entry is complete before it is stored to its slot or to the entry before it (release).
 *      Readers load these pointers with acquire.
 *  (B) A slot's ID is stored before its first entry, and never changes. So a reader that sees an
 *      entry, or the mark REMOVED, sees the ID that belongs to it. When the last entry of an ID is
 *      removed, the slot gets the mark and stays: only the same ID may use it again.
 *  (C) A removed entry keeps its `next`. So a reader that is at the entry goes on to the entries
 *      that followed it, all of which stay in memory until a grace period has ended.
 *  (D) The array of slots is replaced when seven sixteenths of it have been used. The new array is
 *      complete before it is stored (release), and contains only IDs that have entries. A reader
 *      loads the array once (acquire). The older array does not change any more. Its lists lead to
 *      all entries that were there when it was replaced, and not removed since; a reader that still
 *      uses it began before the replacement, so it need not see entries that were added after.
 *  (E) A new array is at most three eighths full, so replacing takes O(1) time on average over the
 *      entries that are added. Removing needs no memory.
 *
 * IDs come from input, so the hash has a secret key (base/hash.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/id_table.h"

#include "base/error.h"
#include "base/hash.h"

#include <stddef.h>

enum { SLOT_BITS_MIN = 4, HASH_BITS = 64 };

struct slot {
    uint64_t id;
    _Atomic(struct id_entry *) first; /* NULL: the slot has never been used */
};

/* In `first`: all entries of the ID were removed. */
#define REMOVED ((struct id_entry *)(uintptr_t)1)

/* Invariant: `used` is the number of slots with an ID, at most seven sixteenths of all. More
 * would make lookups probe more slots, and processors predict wrongly how many. */
struct slots {
    struct grace_entry retired;
    struct id_table *ids;
    unsigned shift; /* HASH_BITS minus the binary logarithm of the number of slots */
    size_t mask;    /* the number of slots minus 1 */
    size_t used;
    struct slot slots[];
};

struct id_table {
    struct hash_key key;
    _Atomic(struct slots *) slots;
    struct cairn_allocator allocator;
    struct grace *grace;
    size_t live; /* IDs with entries */
};

/* ---- The entries of one module ---- */

size_t id_entries_length(const struct id_entry *entries)
{
    size_t count = entries != NULL;
    while (entries != NULL && !entries[count - 1].is_last)
        count++;
    return count;
}

/* Returns the module's entry after this one, or NULL. */
static struct id_entry *entry_after(struct id_entry *entry)
{
    return entry->is_last ? NULL : entry + 1;
}

static void count_first(struct cairn_record record, bool is_only, void *user)
{
    (void)record;
    (void)is_only;
    ++*(size_t *)user;
}

size_t id_entries_count(const cairn_table *records)
{
    size_t count = 0;
    table_visit_ids(records, count_first, &count);
    return count;
}

struct filling {
    struct id_entry *end;
    id_site_finder *find_site;
};

static bool note_site(struct cairn_record record, void *user)
{
    const struct filling *filling = user;
    cairn_site **site = &filling->end->site;
    cairn_site *found = filling->find_site(record);
    if (found != NULL)
        *site = *site == NULL ? found : ID_SITE_AMBIGUOUS;
    return true;
}

static void add_first(struct cairn_record record, bool is_only, void *user)
{
    struct filling *filling = user;
    struct id_entry *entry = filling->end;
    atomic_init(&entry->next, NULL);
    entry->previous = NULL;
    entry->site = NULL;
    entry->records = record.table;
    entry->index = record.index;
    entry->is_only = is_only;
    entry->is_last = false;
    if (filling->find_site != NULL && is_only)
        note_site(record, filling);
    else if (filling->find_site != NULL)
        table_visit_id(record.table, cairn_record_id(record), note_site, filling);
    filling->end++;
}

void id_entries_init(struct id_entry *entries, const cairn_table *records,
                     id_site_finder *find_site)
{
    struct filling filling = {entries, find_site};
    table_visit_ids(records, add_first, &filling);
    filling.end[-1].is_last = true;
}

static uint64_t id_of(const struct id_entry *entry)
{
    return cairn_record_id((struct cairn_record){entry->records, entry->index});
}

/* ---- Slots ---- */

static size_t slots_bytes(size_t count)
{
    return sizeof(struct slots) + count * sizeof(struct slot);
}

static struct slots *new_slots(struct id_table *ids, unsigned bits)
{
    size_t count = (size_t)1 << bits;
    struct slots *slots = memory_new(&ids->allocator, 1, slots_bytes(count));
    if (slots == NULL)
        return NULL;
    slots->ids = ids;
    slots->shift = HASH_BITS - bits;
    slots->mask = count - 1;
    return slots;
}

static size_t release_slots(struct grace_entry *entry)
{
    struct slots *slots = (struct slots *)(void *)entry;
    _Static_assert(offsetof(struct slots, retired) == 0, "the array begins with its entry");
    memory_free(&slots->ids->allocator, slots, slots_bytes(slots->mask + 1));
    return 0;
}

/* The key makes the hashes of any two IDs independent. The multiplication separates those of IDs
 * in arithmetic progression, which could otherwise be neighbours and make long runs of slots. */
static inline size_t home_of(const struct slots *slots, const struct hash_key *key, uint64_t id)
{
    uint64_t hash = hash_u64(key, id);
    hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> slots->shift);
}

static struct id_entry *load_first(const struct slot *slot)
{
    return atomic_load_explicit(&slot->first, memory_order_acquire);
}

/* Returns the ID's slot, or the unused slot where it belongs. Sets `*first` to what it holds. */
static inline struct slot *find_slot(const struct id_table *ids, struct slots *slots, uint64_t id,
                                     struct id_entry **first)
{
    for (size_t at = home_of(slots, &ids->key, id);; at = (at + 1) & slots->mask) {
        struct slot *slot = &slots->slots[at];
        *first = load_first(slot);
        if (*first == NULL || slot->id == id)
            return slot;
    }
}

static struct slots *writer_slots(const struct id_table *ids)
{
    return atomic_load_explicit(&ids->slots, memory_order_relaxed);
}

static bool has_entries(const struct id_entry *first) { return first != NULL && first != REMOVED; }

/* ---- Creating and destroying ---- */

enum cairn_status id_table_create(const struct cairn_allocator *allocator, struct grace *grace,
                                  struct id_table **ids, struct cairn_error *error)
{
    struct id_table *created = memory_new(allocator, 1, sizeof *created);
    if (created != NULL)
        *created =
            (struct id_table){.key = hash_key_create(), .allocator = *allocator, .grace = grace};
    struct slots *slots = created == NULL ? NULL : new_slots(created, SLOT_BITS_MIN);
    if (slots == NULL) {
        memory_free(allocator, created, sizeof *created);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of IDs");
    }
    atomic_init(&created->slots, slots);
    *ids = created;
    return CAIRN_OK;
}

void id_table_destroy(struct id_table *ids)
{
    if (ids == NULL)
        return;
    struct cairn_allocator allocator = ids->allocator;
    release_slots(&writer_slots(ids)->retired);
    memory_free(&allocator, ids, sizeof *ids);
}

size_t id_table_size_bytes(const struct id_table *ids)
{
    return sizeof *ids + slots_bytes(writer_slots(ids)->mask + 1);
}

/* ---- Writers ---- */

static size_t used_max(const struct slots *slots) { return (slots->mask + 1) / 16 * 7; }

/* Returns how many of the entries have an ID without other entries. */
static size_t count_new_ids(const struct id_table *ids, const struct id_entry *entries,
                            size_t entry_count)
{
    struct slots *slots = writer_slots(ids);
    size_t count = 0;
    for (size_t i = 0; i < entry_count; i++) {
        struct id_entry *first;
        find_slot(ids, slots, id_of(&entries[i]), &first);
        count += !has_entries(first);
    }
    return count;
}

/* Replaces the array by one for `count` IDs (D, E). */
static bool replace_slots(struct id_table *ids, size_t count)
{
    struct slots *old = writer_slots(ids);
    unsigned bits = SLOT_BITS_MIN;
    while (((size_t)1 << bits) / 8 * 3 < count)
        bits++;
    struct slots *fresh = new_slots(ids, bits);
    if (fresh == NULL)
        return false;
    for (size_t i = 0; i <= old->mask; i++) {
        struct id_entry *first = atomic_load_explicit(&old->slots[i].first, memory_order_relaxed);
        struct id_entry *none;
        if (!has_entries(first))
            continue;
        struct slot *slot = find_slot(ids, fresh, old->slots[i].id, &none);
        slot->id = old->slots[i].id;
        atomic_store_explicit(&slot->first, first, memory_order_relaxed);
        fresh->used++;
    }
    atomic_store_explicit(&ids->slots, fresh, memory_order_release);
    grace_retire(ids->grace, &old->retired, release_slots);
    return true;
}

enum cairn_status id_table_reserve(struct id_table *ids, const struct id_entry *entries,
                                   struct cairn_error *error)
{
    const struct slots *slots = writer_slots(ids);
    size_t count = id_entries_length(entries);
    if (slots->used + count <= used_max(slots))
        return CAIRN_OK;
    count = count_new_ids(ids, entries, count);
    if (slots->used + count <= used_max(slots) || replace_slots(ids, ids->live + count))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to publish %zu more IDs", count);
}

static void add_entry(struct id_table *ids, struct slots *slots, struct id_entry *entry)
{
    struct id_entry *first;
    uint64_t id = id_of(entry);
    struct slot *slot = find_slot(ids, slots, id, &first);
    if (has_entries(first)) {
        struct id_entry *last = first->previous;
        entry->previous = last;
        first->previous = entry;
        atomic_store_explicit(&last->next, entry, memory_order_release); /* (A) */
        return;
    }
    if (first == NULL) {
        slot->id = id; /* (B) */
        slots->used++;
    }
    ids->live++;
    entry->previous = entry;
    atomic_store_explicit(&slot->first, entry, memory_order_release); /* (A, B) */
}

void id_table_add(struct id_table *ids, struct id_entry *entries)
{
    for (struct id_entry *entry = entries; entry != NULL; entry = entry_after(entry))
        add_entry(ids, writer_slots(ids), entry);
}

static void remove_entry(struct id_table *ids, struct id_entry *entry)
{
    struct id_entry *first;
    struct slot *slot = find_slot(ids, writer_slots(ids), id_of(entry), &first);
    struct id_entry *next = atomic_load_explicit(&entry->next, memory_order_relaxed);
    struct id_entry *previous = entry->previous;
    if (next != NULL)
        next->previous = previous;
    else if (entry != first)
        first->previous = previous;
    if (entry != first) {
        atomic_store_explicit(&previous->next, next, memory_order_release);
        return;
    }
    ids->live -= next == NULL;
    atomic_store_explicit(&slot->first, next != NULL ? next : REMOVED, memory_order_release);
}

void id_table_remove(struct id_table *ids, struct id_entry *entries)
{
    for (struct id_entry *entry = entries; entry != NULL; entry = entry_after(entry))
        remove_entry(ids, entry);
}

/* ---- Readers ---- */

/* Returns the first entry of the ID, or NULL. */
static inline struct id_entry *find_entries(const struct id_table *ids, uint64_t id)
{
    struct slots *slots = atomic_load_explicit(&ids->slots, memory_order_acquire); /* (D) */
    struct id_entry *first;
    find_slot(ids, slots, id, &first);
    return has_entries(first) ? first : NULL;
}

static inline struct id_entry *next_entry(const struct id_entry *entry)
{
    return atomic_load_explicit(&entry->next, memory_order_acquire); /* (A, C) */
}

/* Visits the records of the ID; the visitor is inlined. */
static inline __attribute__((always_inline)) void visit_id(const struct id_table *ids, uint64_t id,
                                                           table_id_visitor *visit, void *user)
{
    bool goes_on = true;
    for (const struct id_entry *entry = find_entries(ids, id); entry != NULL && goes_on;
         entry = next_entry(entry))
        goes_on = entry->is_only ? visit((struct cairn_record){entry->records, entry->index}, user)
                                 : table_visit_id(entry->records, id, visit, user);
}

void id_table_visit(const struct id_table *ids, uint64_t id, table_id_visitor *visit, void *user)
{
    visit_id(ids, id, visit, user);
}

size_t id_table_find(const struct id_table *ids, uint64_t id, struct cairn_record *records,
                     size_t capacity)
{
    struct record_list list = {.records = records, .capacity = capacity};
    visit_id(ids, id, record_list_append, &list);
    return list.count;
}

cairn_site *id_table_find_site(const struct id_table *ids, uint64_t id)
{
    cairn_site *found = NULL;
    for (const struct id_entry *entry = find_entries(ids, id); entry != NULL;
         entry = next_entry(entry)) {
        if (entry->site == NULL)
            continue;
        if (found != NULL)
            return ID_SITE_AMBIGUOUS;
        found = entry->site;
    }
    return found;
}
