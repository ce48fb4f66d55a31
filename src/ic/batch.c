/*
 * Changes many inline caches with one barrier.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ic/batch.h"

#include "base/error.h"
#include "ic/cache.h"

#include <string.h>

enum { FIRST_CAPACITY = 16 };

/* ---- Growing arrays ---- */

/* Returns the elements, with space for one more. NULL if there is no memory; nothing has changed
 * then. */
static void *with_room(const struct cairn_allocator *allocator, void *elements, size_t count,
                       size_t *capacity, size_t size)
{
    if (count < *capacity)
        return elements;
    size_t grown = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
    void *moved = memory_resize(allocator, elements, *capacity * size, grown * size);
    if (moved != NULL)
        *capacity = grown;
    return moved;
}

static enum cairn_status say_no_memory(const char *what, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note %s of inline caches", what);
}

/* ---- Changes in progress, with the set's lock held ---- */

/* Invariant: each cache has at most one change, with index `pending` - 1. */
struct changes {
    struct cache_set *set;
    struct ic_change *all;
    size_t count;
    size_t capacity;
};

static enum cairn_status change_of(struct changes *changes, cairn_ic *ic, struct ic_change **change,
                                   struct cairn_error *error)
{
    if (ic->pending == 0) {
        struct ic_change *all = with_room(&changes->set->allocator, changes->all, changes->count,
                                          &changes->capacity, sizeof *all);
        if (all == NULL)
            return say_no_memory("changes", error);
        changes->all = all;
        ic_change_begin(&changes->all[changes->count], ic);
        ic->pending = ++changes->count;
    }
    *change = &changes->all[ic->pending - 1];
    return CAIRN_OK;
}

static void forget_pending(struct changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        changes->all[i].ic->pending = 0;
}

static void free_changes(struct changes *changes)
{
    memory_free(&changes->set->allocator, changes->all, changes->capacity * sizeof *changes->all);
}

/* Ends the changes. Makes them if `status` is CAIRN_OK. */
static enum cairn_status end_changes(struct changes *changes, enum cairn_status status,
                                     enum cairn_strength strength, struct cairn_error *error)
{
    forget_pending(changes);
    if (status == CAIRN_OK)
        status = ic_changes_apply(changes->all, changes->count, strength, error);
    else
        for (size_t i = 0; i < changes->count; i++)
            ic_change_abandon(&changes->all[i]);
    free_changes(changes);
    return status;
}

/* ---- Batches ---- */

enum operation { OPERATION_ADD, OPERATION_REMOVE, OPERATION_RESET };

struct noted {
    enum operation operation;
    cairn_ic *ic;
    struct cairn_ic_case added; /* only the guard for a removal */
};

struct cairn_ic_batch {
    struct cache_set *set;
    struct noted *noted;
    size_t count;
    size_t capacity;
};

enum cairn_status ic_batch_create(struct cache_set *set, cairn_ic_batch **batch,
                                  struct cairn_error *error)
{
    cairn_ic_batch *created = memory_new(&set->allocator, 1, sizeof *created);
    if (created == NULL)
        return say_no_memory("a batch", error);
    created->set = set;
    *batch = created;
    return CAIRN_OK;
}

void cairn_ic_batch_destroy(cairn_ic_batch *batch)
{
    if (batch == NULL)
        return;
    const struct cairn_allocator *allocator = &batch->set->allocator;
    memory_free(allocator, batch->noted, batch->capacity * sizeof *batch->noted);
    memory_free(allocator, batch, sizeof *batch);
}

void cairn_ic_batch_clear(cairn_ic_batch *batch) { batch->count = 0; }

static enum cairn_status check_cache(const cairn_ic_batch *batch, const cairn_ic *ic,
                                     struct cairn_error *error)
{
    if (batch == NULL || ic == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a batch and an inline cache are needed");
    if (ic->set != batch->set)
        return error_set(error, CAIRN_ERROR_ARGUMENT, ic->site->address,
                         "the inline cache of site %llu belongs to another runtime than the batch",
                         (unsigned long long)site_id(ic->site));
    return ic_check_usable(ic, error);
}

static enum cairn_status note(cairn_ic_batch *batch, const struct noted *noted,
                              struct cairn_error *error)
{
    struct noted *all = with_room(&batch->set->allocator, batch->noted, batch->count,
                                  &batch->capacity, sizeof *all);
    if (all == NULL)
        return say_no_memory("a change", error);
    batch->noted = all;
    batch->noted[batch->count++] = *noted;
    return CAIRN_OK;
}

enum cairn_status cairn_ic_batch_add(cairn_ic_batch *batch, cairn_ic *ic,
                                     const struct cairn_ic_case *added, struct cairn_error *error)
{
    enum cairn_status status = check_cache(batch, ic, error);
    if (status != CAIRN_OK)
        return status;
    if (added == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no case to add");
    struct noted noted = {.operation = OPERATION_ADD, .ic = ic, .added = *added};
    status = ic_check_case(ic, &noted.added, error);
    return status == CAIRN_OK ? note(batch, &noted, error) : status;
}

enum cairn_status cairn_ic_batch_remove(cairn_ic_batch *batch, cairn_ic *ic,
                                        const struct cairn_ic_guard *guard,
                                        struct cairn_error *error)
{
    enum cairn_status status = check_cache(batch, ic, error);
    if (status != CAIRN_OK)
        return status;
    if (guard == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no guard to remove a case by");
    struct noted noted = {.operation = OPERATION_REMOVE, .ic = ic, .added = {.guard = *guard}};
    status = ic_check_guard(ic, &noted.added.guard, error);
    return status == CAIRN_OK ? note(batch, &noted, error) : status;
}

enum cairn_status cairn_ic_batch_reset(cairn_ic_batch *batch, cairn_ic *ic,
                                       struct cairn_error *error)
{
    enum cairn_status status = check_cache(batch, ic, error);
    const struct noted noted = {.operation = OPERATION_RESET, .ic = ic};
    return status == CAIRN_OK ? note(batch, &noted, error) : status;
}

static enum cairn_status make_noted(struct changes *changes, const struct noted *noted,
                                    struct cairn_error *error)
{
    struct ic_change *change;
    enum cairn_status status = ic_check_usable(noted->ic, error);
    if (status == CAIRN_OK)
        status = change_of(changes, noted->ic, &change, error);
    if (status != CAIRN_OK)
        return status;
    switch (noted->operation) {
    case OPERATION_ADD:
        return ic_change_add(change, &noted->added, error);
    case OPERATION_REMOVE:
        return ic_change_remove(change, &noted->added.guard, error);
    case OPERATION_RESET:
        break;
    }
    ic_change_reset(change);
    return CAIRN_OK;
}

static enum cairn_status commit_locked(const cairn_ic_batch *batch, enum cairn_strength strength,
                                       struct cairn_error *error)
{
    struct changes changes = {.set = batch->set};
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < batch->count && status == CAIRN_OK; i++)
        status = make_noted(&changes, &batch->noted[i], error);
    return end_changes(&changes, status, strength, error);
}

enum cairn_status cairn_ic_batch_commit(cairn_ic_batch *batch, enum cairn_strength strength,
                                        struct cairn_error *error)
{
    if (batch == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no batch to commit");
    enum cairn_status status = cache_set_enter(batch->set, error);
    if (status != CAIRN_OK)
        return status;
    status = commit_locked(batch, strength, error);
    cache_set_leave(batch->set);
    if (status == CAIRN_OK)
        cairn_ic_batch_clear(batch);
    return status;
}

/* ---- All caches that match ---- */

static bool has_key(const cairn_ic *ic, uint64_t key)
{
    for (uint32_t i = 0; i < ic->cases.count; i++)
        if (ic->cases.entries[i].public.guard.key == key)
            return true;
    return false;
}

static enum cairn_status remove_key_locked(struct cache_set *set, uint64_t key,
                                           enum cairn_strength strength, size_t *removed,
                                           struct cairn_error *error)
{
    struct changes changes = {.set = set};
    enum cairn_status status = CAIRN_OK;
    for (cairn_ic *ic = set->first; ic != NULL && status == CAIRN_OK; ic = ic->next) {
        struct ic_change *change;
        if (ic_is_retired(ic) || !has_key(ic, key))
            continue;
        status = change_of(&changes, ic, &change, error);
        if (status == CAIRN_OK)
            *removed += ic_change_remove_key(change, key);
    }
    return end_changes(&changes, status, strength, error);
}

enum cairn_status ic_set_remove_key(struct cache_set *set, uint64_t key,
                                    enum cairn_strength strength, size_t *count,
                                    struct cairn_error *error)
{
    size_t removed = 0;
    enum cairn_status status = cache_set_enter(set, error);
    if (status != CAIRN_OK)
        return status;
    status = remove_key_locked(set, key, strength, &removed, error);
    cache_set_leave(set);
    if (status == CAIRN_OK && count != NULL)
        *count = removed;
    return status;
}

static bool is_empty(const cairn_ic *ic)
{
    return ic->cases.count == 0 && !ic->cases.is_megamorphic;
}

static enum cairn_status reset_locked(struct site_table *sites, enum cairn_strength strength,
                                      size_t *reset, struct cairn_error *error)
{
    struct changes changes = {.set = sites->ics};
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 0; i < sites->count && status == CAIRN_OK; i++) {
        cairn_ic *ic = sites->sites[i].ic;
        struct ic_change *change;
        if (ic == NULL || is_empty(ic))
            continue;
        status = change_of(&changes, ic, &change, error);
        if (status == CAIRN_OK)
            ic_change_reset(change);
    }
    *reset = changes.count;
    return end_changes(&changes, status, strength, error);
}

enum cairn_status ic_reset_sites(struct site_table *sites, enum cairn_strength strength,
                                 size_t *count, struct cairn_error *error)
{
    size_t reset = 0;
    enum cairn_status status = cache_set_enter(sites->ics, error);
    if (status != CAIRN_OK)
        return status;
    status = reset_locked(sites, strength, &reset, error);
    cache_set_leave(sites->ics);
    if (status == CAIRN_OK && count != NULL)
        *count = reset;
    return status;
}
