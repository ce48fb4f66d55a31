/*
 * Invalidations: the sites at which threads leave a function, changed and reverted together.
 *
 * Invariants:
 * - A site belongs to at most one invalidation: whether it is already a call is checked, and the
 *   site is changed, under the runtime's lock. The host's filter is called earlier, without the
 *   lock.
 * - Whether a site has an inline cache is checked, and the site is changed, under the lock of the
 *   inline caches. So no site gets a cache in between, and no cache loses its site.
 * - Invalidating and undoing use the same array of changes, so undoing does not allocate.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/invalidation.h"

#include "base/error.h"
#include "runtime/events.h"
#include "runtime/module.h"
#include "site/patch.h"

#include <string.h>

/* A site and its previous state. */
struct invalidated {
    cairn_site *site;
    bool was_original; /* a shadow's original instruction; otherwise a no-op */
};

struct cairn_invalidation {
    cairn_runtime *runtime;
    const void *target;
    struct invalidated *sites;
    uint32_t count;
    uint32_t capacity;
    struct change *changes; /* as many as `capacity` */
};

/* ---- Sources of sites ---- */

/* A list, or `count` sites of a module from index `first` on. */
struct source {
    cairn_site *const *list;
    const cairn_module *module;
    uint32_t first;
    uint32_t count;
};

static enum cairn_status find_source(const cairn_runtime *runtime,
                                     const struct cairn_invalidation_options *options,
                                     struct source *source, struct cairn_error *error)
{
    struct cairn_function function;
    *source = (struct source){.list = options->sites, .count = options->site_count};
    if ((options->function != 0) + (options->module != NULL) + (options->sites != NULL) != 1)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "an invalidation is of a function, of a module, or of a list of sites");
    if (options->module != NULL) {
        source->module = options->module;
        source->count = site_table_count(options->module->sites);
    } else if (options->function != 0) {
        /* The module is looked up only once, because it may be retired at any time. */
        source->module = cairn_runtime_find_module(runtime, options->function);
        if (source->module == NULL ||
            !module_search_function(source->module, options->function, &function))
            return error_set(error, CAIRN_ERROR_NOT_FOUND, options->function,
                             "0x%llx is in no function of a published module",
                             (unsigned long long)options->function);
        source->count = module_function_sites(source->module, function, &source->first);
    }
    return CAIRN_OK;
}

/* ---- Choosing ---- */

static bool is_branch(enum cairn_site_state state)
{
    return state == CAIRN_SITE_CALL || state == CAIRN_SITE_JUMP;
}

static bool has_cache(const cairn_site *site)
{
    return atomic_load_explicit(&site->form, memory_order_relaxed) == SITE_FORM_CACHE;
}

/* Whether the host's filter accepts a site. Without a filter, a site is chosen if it is listed, or
 * if it is live and does nothing of the host's. */
static bool is_chosen(const struct cairn_invalidation_options *options,
                      const struct cairn_site_description *site)
{
    bool is_listed = options->sites != NULL;
    bool has_kind = site->kind == CAIRN_RECORD_PATCHPOINT || site->kind == CAIRN_RECORD_STACKMAP;
    if (!is_listed && (!has_kind || is_branch(site->state)))
        return false;
    if (options->accepts != NULL)
        return options->accepts(site, options->user);
    return is_listed ||
           (site->live && (site->state == CAIRN_SITE_NOP || site->state == CAIRN_SITE_ORIGINAL));
}

static enum cairn_status choose(const struct cairn_invalidation_options *options,
                                const struct source *source, cairn_invalidation *invalidation,
                                struct cairn_error *error)
{
    uint32_t branches = 0; /* among the sites that were not chosen */
    uint32_t not_live = 0;
    for (uint32_t i = 0; i < source->count; i++) {
        struct cairn_site_description description;
        cairn_site *site = source->list != NULL
                               ? source->list[i]
                               : cairn_module_site(source->module, source->first + i);
        if (site == NULL)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "the list has no site number %u", i);
        cairn_site_describe(site, &description);
        if (is_chosen(options, &description)) {
            invalidation->sites[invalidation->count++].site = site;
            continue;
        }
        branches += is_branch(description.state);
        not_live += !description.live;
    }
    if (invalidation->count > 0)
        return CAIRN_OK;
    if (branches > 0)
        return error_set(error, CAIRN_ERROR_CONFLICT, 0,
                         "of %u sites, %u call or jump already, and %u are not live", source->count,
                         branches, not_live);
    return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                     "the code cannot be left at any of %u sites, of which %u are not live",
                     source->count, not_live);
}

static enum cairn_status create(cairn_runtime *runtime, const void *target, uint32_t capacity,
                                cairn_invalidation **created, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &runtime->allocator;
    cairn_invalidation *made = memory_new(allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an invalidation");
    made->runtime = runtime;
    made->target = target;
    made->capacity = capacity;
    made->sites = memory_new(allocator, capacity, sizeof *made->sites);
    made->changes = memory_new(allocator, capacity, sizeof *made->changes);
    if (capacity > 0 && (made->sites == NULL || made->changes == NULL)) {
        cairn_invalidation_destroy(made);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u sites", capacity);
    }
    *created = made;
    return CAIRN_OK;
}

enum cairn_status invalidation_choose(cairn_runtime *runtime,
                                      const struct cairn_invalidation_options *options,
                                      cairn_invalidation **invalidation, struct cairn_error *error)
{
    struct source source;
    cairn_invalidation *created = NULL;
    enum cairn_status status = find_source(runtime, options, &source, error);
    if (status == CAIRN_OK)
        status = create(runtime, options->target, source.count, &created, error);
    if (status == CAIRN_OK)
        status = choose(options, &source, created, error);
    if (status == CAIRN_OK)
        *invalidation = created;
    else
        cairn_invalidation_destroy(created);
    return status;
}

/* ---- Invalidating ---- */

static struct change_list list_of(const cairn_invalidation *invalidation)
{
    return (struct change_list){invalidation->changes, invalidation->count,
                                sizeof *invalidation->changes};
}

/* Prepares the calls. Sites of a list must be free. Other sites are skipped if another thread has
 * changed them in the meantime. */
static enum cairn_status prepare_calls(cairn_invalidation *invalidation, bool is_listed,
                                       struct cairn_error *error)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < invalidation->count; i++) {
        struct cairn_site_description description;
        cairn_site *site = invalidation->sites[i].site;
        if (site->table->space != invalidation->runtime->space)
            return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                             "site %llu at 0x%llx belongs to another runtime",
                             (unsigned long long)site_id(site), (unsigned long long)site->address);
        cairn_site_describe(site, &description);
        if ((is_branch(description.state) || has_cache(site)) && !is_listed)
            continue;
        enum cairn_status status = plan_check_live(site, SITE_FORM_INITIAL, error);
        if (status != CAIRN_OK)
            return status;
        if (is_branch(description.state))
            return error_set(
                error, CAIRN_ERROR_CONFLICT, description.address,
                "site %llu at 0x%llx is a %s already", (unsigned long long)description.id,
                (unsigned long long)description.address, cairn_site_state_name(description.state));
        plan_set_branch(&invalidation->changes[kept], site, CAIRN_SITE_CALL,
                        (uintptr_t)invalidation->target);
        invalidation->sites[kept++] =
            (struct invalidated){site, description.state == CAIRN_SITE_ORIGINAL};
    }
    invalidation->count = kept;
    return CAIRN_OK;
}

static const cairn_site *invalidated_site(const void *user, size_t index)
{
    const cairn_invalidation *invalidation = user;
    return invalidation->sites[index].site;
}

static void note_invalidation(const cairn_invalidation *invalidation, const char *reason)
{
    const struct event_hits hits = {invalidated_site, invalidation, invalidation->count};
    event_invalidation(invalidation->runtime, &hits, reason == NULL ? "invalidation" : reason);
}

enum cairn_status invalidation_plan(cairn_invalidation *invalidation,
                                    const struct cairn_invalidation_options *options,
                                    enum cairn_strength strength, struct cairn_error *error)
{
    bool is_listed = options->sites != NULL;
    enum cairn_status status = prepare_calls(invalidation, is_listed, error);
    const struct change_list list = list_of(invalidation);
    if (status == CAIRN_OK && list.count == 0)
        status = error_set(error, CAIRN_ERROR_CONFLICT, 0,
                           "another thread has just made all sites call or jump");
    if (status == CAIRN_OK && is_listed)
        status = patch_check_distinct(&list, error);
    if (status == CAIRN_OK)
        status = plan_all(&list, SITE_FORM_INITIAL, strength, error);
    if (status != CAIRN_OK)
        invalidation->count = 0;
    return status;
}

enum cairn_status invalidation_commit(cairn_invalidation *invalidation,
                                      const struct cairn_invalidation_options *options,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    size_t made;
    const struct change_list list = list_of(invalidation);
    enum cairn_status status = patch_commit(&list, strength, &made, error);
    invalidation->count = (uint32_t)made;
    if (made > 0)
        note_invalidation(invalidation, options->reason);
    return status;
}

/* Changes the chosen sites. Afterwards the invalidation has those that have been changed. */
static enum cairn_status change_sites(cairn_invalidation *invalidation,
                                      const struct cairn_invalidation_options *options,
                                      enum cairn_strength strength, struct cairn_error *error)
{
    cairn_runtime *runtime = invalidation->runtime;
    bool is_taken = runtime_lock_sites(runtime);
    enum cairn_status status = invalidation_plan(invalidation, options, strength, error);
    if (status == CAIRN_OK)
        status = invalidation_commit(invalidation, options, strength, error);
    runtime_unlock_sites(runtime, is_taken);
    return status;
}

enum cairn_status cairn_invalidate(cairn_runtime *runtime,
                                   const struct cairn_invalidation_options *options,
                                   enum cairn_strength strength, cairn_invalidation **invalidation,
                                   struct cairn_error *error)
{
    cairn_invalidation *made = NULL;
    if (runtime == NULL || options == NULL || invalidation == NULL || options->target == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_invalidate: `%s` is NULL",
                         runtime == NULL        ? "runtime"
                         : options == NULL      ? "options"
                         : invalidation == NULL ? "invalidation"
                                                : "options->target");
    *invalidation = NULL;
    enum cairn_status status = invalidation_choose(runtime, options, &made, error);
    if (status == CAIRN_OK)
        status = change_sites(made, options, strength, error);
    if (made != NULL && made->count > 0)
        *invalidation = made;
    else
        cairn_invalidation_destroy(made);
    /* The sites may be those of an invalidation whose barrier was refused, or is in progress. */
    if (status == CAIRN_ERROR_CONFLICT) {
        enum cairn_status barrier = patch_barrier(runtime->space, strength, error);
        status = barrier == CAIRN_OK ? status : barrier;
    }
    return status;
}

/* ---- Reverting ---- */

/* Sites that have got a cache, or that do something else than call the target, stay unchanged; also
 * those of a broken assumption (cairn/assumption.h), which may call the same target. They do not
 * belong to the invalidation any more. Neither do sites that have been reverted. */
static enum cairn_status undo_locked(cairn_invalidation *invalidation, enum cairn_strength strength,
                                     struct cairn_error *error)
{
    uint32_t count = 0;
    size_t made;
    for (uint32_t i = 0; i < invalidation->count; i++) {
        const struct invalidated old = invalidation->sites[i];
        struct cairn_site_description description;
        cairn_site_describe(old.site, &description);
        if (has_cache(old.site) || old.site->is_broken || description.state != CAIRN_SITE_CALL ||
            description.target != (uintptr_t)invalidation->target)
            continue;
        invalidation->changes[count] =
            old.was_original ? plan_restore(old.site) : plan_branch(old.site, CAIRN_SITE_NOP, 0);
        invalidation->sites[count++] = old;
    }
    invalidation->count = count;
    if (count == 0)
        return patch_barrier(invalidation->runtime->space, strength, error);
    const struct change_list list = list_of(invalidation);
    enum cairn_status status = patch_live(&list, strength, &made, error);
    invalidation->count -= (uint32_t)made;
    memmove(invalidation->sites, invalidation->sites + made,
            invalidation->count * sizeof *invalidation->sites);
    return status;
}

enum cairn_status cairn_invalidation_undo(cairn_invalidation *invalidation,
                                          enum cairn_strength strength, struct cairn_error *error)
{
    if (invalidation == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_invalidation_undo: `invalidation` is NULL");
    cairn_runtime *runtime = invalidation->runtime;
    bool is_taken = runtime_lock_sites(runtime);
    enum cairn_status status = undo_locked(invalidation, strength, error);
    runtime_unlock_sites(runtime, is_taken);
    return status;
}

void cairn_invalidation_destroy(cairn_invalidation *invalidation)
{
    if (invalidation == NULL)
        return;
    const struct cairn_allocator *allocator = &invalidation->runtime->allocator;
    memory_free(allocator, invalidation->changes,
                invalidation->capacity * sizeof *invalidation->changes);
    memory_free(allocator, invalidation->sites,
                invalidation->capacity * sizeof *invalidation->sites);
    memory_free(allocator, invalidation, sizeof *invalidation);
}
