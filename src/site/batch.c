/*
 * Batches of changes, which are recorded one by one, and then planned and written together.
 *
 * A commit first checks and plans all changes. If that fails, nothing has been written. Then it
 * writes all sites (commit.h), which fails for all of them or for none, and executes one barrier.
 * If the barrier fails, the changes are undone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/batch.h"

#include "base/error.h"
#include "site/commit.h"
#include "site/patch.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* Invariant: `places` is an open-addressed set of the sites in `changes`, with twice `capacity`
 * places. Each place holds an index into `changes` plus 1, or 0. */
struct cairn_batch {
    struct cairn_allocator allocator;
    struct code_space *space;
    struct change *changes;
    uint32_t *places;
    uint32_t count;
    uint32_t capacity; /* a power of two, or 0 */
};

/* ---- Creating and destroying ---- */

enum cairn_status batch_create(const struct cairn_allocator *allocator, struct code_space *space,
                               cairn_batch **batch, struct cairn_error *error)
{
    cairn_batch *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a batch");
    created->allocator = *allocator;
    created->space = space;
    *batch = created;
    return CAIRN_OK;
}

static void free_arrays(cairn_batch *batch)
{
    memory_free(&batch->allocator, batch->changes, batch->capacity * sizeof *batch->changes);
    memory_free(&batch->allocator, batch->places,
                2 * (size_t)batch->capacity * sizeof *batch->places);
}

void cairn_batch_destroy(cairn_batch *batch)
{
    if (batch == NULL)
        return;
    struct cairn_allocator allocator = batch->allocator;
    free_arrays(batch);
    memory_free(&allocator, batch, sizeof *batch);
}

void cairn_batch_clear(cairn_batch *batch)
{
    if (batch->count > 0)
        memset(batch->places, 0, 2 * (size_t)batch->capacity * sizeof *batch->places);
    batch->count = 0;
}

/* ---- The set of sites ---- */

static uint32_t first_place(const cairn_batch *batch, const cairn_site *site)
{
    uint64_t hash = (uintptr_t)site * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32) & (2 * batch->capacity - 1);
}

/* Returns the place of the site, or the empty place where it belongs. */
static uint32_t *find_place(const cairn_batch *batch, const cairn_site *site)
{
    uint32_t mask = 2 * batch->capacity - 1;
    uint32_t place = first_place(batch, site);
    while (batch->places[place] != 0 && batch->changes[batch->places[place] - 1].site != site)
        place = (place + 1) & mask;
    return &batch->places[place];
}

static enum cairn_status grow(cairn_batch *batch, struct cairn_error *error)
{
    uint32_t capacity = batch->capacity == 0 ? FIRST_CAPACITY : 2 * batch->capacity;
    cairn_batch grown = *batch;
    grown.capacity = capacity;
    grown.changes = memory_new(&batch->allocator, capacity, sizeof *grown.changes);
    grown.places = memory_new(&batch->allocator, 2 * (size_t)capacity, sizeof *grown.places);
    if (grown.changes == NULL || grown.places == NULL) {
        free_arrays(&grown);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a batch of %u changes",
                         capacity);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        grown.changes[i] = batch->changes[i];
        *find_place(&grown, grown.changes[i].site) = i + 1;
    }
    free_arrays(batch);
    *batch = grown;
    return CAIRN_OK;
}

/* ---- Recording ---- */

static enum cairn_status check_site(const cairn_batch *batch, const cairn_site *site,
                                    struct cairn_error *error)
{
    if (batch == NULL || site == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a batch and a site are needed");
    if (site->table->space != batch->space)
        return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                         "site %llu at 0x%llx belongs to another runtime than the batch",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    /* These two loads are enough in most cases. */
    enum cairn_status status = CAIRN_OK;
    if (atomic_load_explicit(&site->table->retired, memory_order_acquire) ||
        !code_space_is_own(batch->space))
        status = patch_check_module(site->table, CAIRN_RELAXED, error);
    return status == CAIRN_OK ? patch_check_live(site, error) : status;
}

/* Adds a change of the site, which the caller fills in. */
static enum cairn_status add_change(cairn_batch *batch, cairn_site *site, struct change **change,
                                    struct cairn_error *error)
{
    enum cairn_status status = check_site(batch, site, error);
    if (status == CAIRN_OK && batch->count == batch->capacity)
        status = grow(batch, error);
    if (status != CAIRN_OK)
        return status;
    uint32_t *place = find_place(batch, site);
    if (*place != 0)
        return error_set(error, CAIRN_ERROR_CONFLICT, site->address,
                         "site %llu at 0x%llx is in the batch already",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    *change = &batch->changes[batch->count];
    *place = ++batch->count;
    return CAIRN_OK;
}

static enum cairn_status add_branch(cairn_batch *batch, cairn_site *site, enum arch_branch branch,
                                    const void *target, struct cairn_error *error)
{
    struct change *change;
    enum cairn_status status = CAIRN_OK;
    if (site != NULL)
        status = patch_check_target(site, target, error);
    if (status == CAIRN_OK)
        status = add_change(batch, site, &change, error);
    if (status == CAIRN_OK)
        plan_set_branch(change, site, branch, (uintptr_t)target);
    return status;
}

enum cairn_status cairn_batch_call(cairn_batch *batch, cairn_site *site, const void *target,
                                   struct cairn_error *error)
{
    return add_branch(batch, site, ARCH_BRANCH_CALL, target, error);
}

enum cairn_status cairn_batch_jump(cairn_batch *batch, cairn_site *site, const void *target,
                                   struct cairn_error *error)
{
    return add_branch(batch, site, ARCH_BRANCH_JUMP, target, error);
}

enum cairn_status cairn_batch_nop(cairn_batch *batch, cairn_site *site, struct cairn_error *error)
{
    struct change *change;
    enum cairn_status status = add_change(batch, site, &change, error);
    if (status == CAIRN_OK)
        plan_set_branch(change, site, ARCH_BRANCH_NOP, 0);
    return status;
}

enum cairn_status cairn_batch_restore(cairn_batch *batch, cairn_site *site,
                                      struct cairn_error *error)
{
    struct change *change;
    enum cairn_status status = add_change(batch, site, &change, error);
    if (status == CAIRN_OK)
        *change = plan_restore(site);
    return status;
}

/* ---- Committing ---- */

/* Checks what may have changed since the change was recorded, and plans the change. Consecutive
 * sites are mostly of one module, so `checked` keeps the last module that was checked. */
static enum cairn_status check_and_plan(struct change *change, enum cairn_strength strength,
                                        const struct site_table **checked,
                                        struct cairn_error *error)
{
    const struct site_table *sites = change->site->table;
    enum cairn_status status = CAIRN_OK;
    if (sites != *checked)
        status = patch_check_module(sites, strength, error);
    if (status == CAIRN_OK)
        status = patch_check_live(change->site, error);
    *checked = sites;
    return status == CAIRN_OK ? plan_change(change, error) : status;
}

static enum cairn_status plan_all(cairn_batch *batch, enum cairn_strength strength,
                                  struct cairn_error *error)
{
    const struct site_table *checked = NULL;
    for (uint32_t i = 0; i < batch->count; i++) {
        enum cairn_status status = check_and_plan(&batch->changes[i], strength, &checked, error);
        if (status == CAIRN_OK)
            continue;
        while (i-- > 0)
            plan_release(&batch->changes[i]);
        return status;
    }
    return CAIRN_OK;
}

enum cairn_status cairn_batch_commit(cairn_batch *batch, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    if (batch == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no batch to commit");
    if (batch->count == 0)
        return CAIRN_OK;
    const struct change_list list = {batch->changes, batch->count, sizeof *batch->changes};
    enum cairn_status status = plan_all(batch, strength, error);
    if (status != CAIRN_OK)
        return status;
    status = commit_all(batch->space, &list, strength, error);
    if (status == CAIRN_OK)
        cairn_batch_clear(batch);
    return status;
}
