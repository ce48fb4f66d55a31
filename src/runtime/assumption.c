/*
 * Assumptions: sites that are patched together when the assumption is broken.
 *
 * Invariants, all under the runtime's lock:
 *  - A registration is in the list of its assumption and in that of its site's module. So both can
 *    end first: the assumption by cairn_assumption_destroy, the module by a grace period.
 *  - `changes` has space for as many changes as there are registrations, so breaking does not
 *    allocate it.
 *  - A broken assumption has no registrations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/assumption.h"
#include "record/declarations.h"

#include "base/array.h"
#include "base/error.h"
#include "runtime/events.h"
#include "site/patch.h"

#include <cairn/assumption.h>

struct registration {
    cairn_assumption *assumption;
    cairn_site *site;
    const void *target;
    struct registration *next; /* of the assumption */
    struct registration *previous;
    /* Of the module: the next one, and what points to this one. */
    struct registration *next_of_module;
    struct registration **link_of_module;
};

struct cairn_assumption {
    cairn_runtime *runtime;
    struct registration *first;
    size_t count;
    struct change *changes;
    size_t capacity;
    bool is_broken;
};

enum cairn_status cairn_assumption_create(cairn_runtime *runtime, cairn_assumption **assumption,
                                          struct cairn_error *error)
{
    if (runtime == NULL || assumption == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_assumption_create: `%s` is NULL",
                         runtime == NULL ? "runtime" : "assumption");
    cairn_assumption *created = memory_new(&runtime->allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an assumption");
    created->runtime = runtime;
    *assumption = created;
    return CAIRN_OK;
}

/* ---- Registrations ---- */

static void remove_from_assumption(struct registration *registration)
{
    cairn_assumption *assumption = registration->assumption;
    if (registration->previous != NULL)
        registration->previous->next = registration->next;
    else
        assumption->first = registration->next;
    if (registration->next != NULL)
        registration->next->previous = registration->previous;
    assumption->count--;
}

static void remove_from_module(struct registration *registration)
{
    *registration->link_of_module = registration->next_of_module;
    if (registration->next_of_module != NULL)
        registration->next_of_module->link_of_module = registration->link_of_module;
}

void assumption_forget(cairn_runtime *runtime, struct site_table *sites)
{
    if (sites == NULL)
        return;
    runtime_lock(runtime);
    while (sites->registrations != NULL) {
        struct registration *registration = sites->registrations;
        remove_from_module(registration);
        remove_from_assumption(registration);
        memory_free(&runtime->allocator, registration, sizeof *registration);
    }
    runtime_unlock(runtime);
}

/* Removes all registrations of an assumption. */
static void clear(cairn_assumption *assumption)
{
    while (assumption->first != NULL) {
        struct registration *registration = assumption->first;
        remove_from_assumption(registration);
        remove_from_module(registration);
        memory_free(&assumption->runtime->allocator, registration, sizeof *registration);
    }
}

/* Checks that the site can be patched when the assumption is broken: it is live, has no cache, and
 * does nothing yet. A site of another assumption that is broken calls its exit already. */
static enum cairn_status check_site(const cairn_site *site, struct cairn_error *error)
{
    struct cairn_site_description description;
    enum cairn_status status = plan_check_live(site, SITE_FORM_INITIAL, error);
    if (status != CAIRN_OK)
        return status;
    cairn_site_describe(site, &description);
    if (description.kind == CAIRN_RECORD_PATCHPOINT && description.state != CAIRN_SITE_NOP &&
        !site->is_broken)
        return error_set(error, CAIRN_ERROR_CONFLICT, description.address,
                         "site %llu at 0x%llx is a %s, and only one that does nothing can have an "
                         "assumption",
                         (unsigned long long)description.id,
                         (unsigned long long)description.address,
                         cairn_site_state_name(description.state));
    if (description.kind != CAIRN_RECORD_PATCHPOINT)
        return error_set(error, CAIRN_ERROR_ARGUMENT, description.address,
                         "site %llu at 0x%llx is of a %s, and only patch points can have an "
                         "assumption",
                         (unsigned long long)description.id,
                         (unsigned long long)description.address,
                         record_kind_name(description.kind));
    return CAIRN_OK;
}

/* Makes the site of a broken assumption call the target, unless it calls one already. */
static enum cairn_status leave_at_once(cairn_site *site, const void *target,
                                       enum cairn_strength strength, struct cairn_error *error)
{
    struct change change;
    size_t made;
    if (site->is_broken)
        return patch_barrier(site->table->space, strength, error);
    plan_set_branch(&change, site, CAIRN_SITE_CALL, (uintptr_t)target);
    enum cairn_status status =
        patch_live(&(struct change_list){&change, 1, sizeof change}, strength, &made, error);
    site->is_broken = made > 0;
    return status;
}

static enum cairn_status link_registration(cairn_assumption *assumption, cairn_site *site,
                                           const void *target, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &assumption->runtime->allocator;
    void *changes = array_reserve(allocator, assumption->changes, assumption->count, 1,
                                  &assumption->capacity, sizeof *assumption->changes);
    if (changes != NULL)
        assumption->changes = changes;
    struct registration *made = changes == NULL ? NULL : memory_new(allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, site->address,
                         "no memory to note a site of an assumption");
    *made = (struct registration){
        .assumption = assumption,
        .site = site,
        .target = target,
        .next = assumption->first,
        .next_of_module = site->table->registrations,
        .link_of_module = &site->table->registrations,
    };
    if (made->next_of_module != NULL)
        made->next_of_module->link_of_module = &made->next_of_module;
    if (made->next != NULL)
        made->next->previous = made;
    assumption->first = made;
    assumption->count++;
    site->table->registrations = made;
    return CAIRN_OK;
}

enum cairn_status cairn_assumption_add(cairn_assumption *assumption, cairn_site *site,
                                       const void *target, enum cairn_strength strength,
                                       struct cairn_error *error)
{
    if (assumption == NULL || site == NULL || target == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_assumption_add: `%s` is NULL",
                         assumption == NULL ? "assumption"
                         : site == NULL     ? "site"
                                            : "target");
    cairn_runtime *runtime = assumption->runtime;
    if (site->table->space != runtime->space)
        return error_set(error, CAIRN_ERROR_ARGUMENT, site->address,
                         "site %llu at 0x%llx belongs to another runtime than the assumption",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    bool is_taken = runtime_lock_sites(runtime);
    enum cairn_status status = check_site(site, error);
    if (status == CAIRN_OK)
        status = assumption->is_broken ? leave_at_once(site, target, strength, error)
                                       : link_registration(assumption, site, target, error);
    runtime_unlock_sites(runtime, is_taken);
    return status;
}

/* ---- Breaking ---- */

/* Collects the changes. A site that calls an exit because of another assumption stays unchanged; so
 * does the second registration of a site. */
static size_t collect_changes(cairn_assumption *assumption)
{
    size_t count = 0;
    for (struct registration *next = assumption->first; next != NULL; next = next->next) {
        if (next->site->is_broken)
            continue;
        plan_set_branch(&assumption->changes[count++], next->site, CAIRN_SITE_CALL,
                        (uintptr_t)next->target);
        next->site->is_broken = true;
    }
    return count;
}

static const cairn_site *changed_site(const void *user, size_t index)
{
    return change_at(user, index)->site;
}

static enum cairn_status break_locked(cairn_assumption *assumption, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    struct code_space *space = assumption->runtime->space;
    size_t made = 0;
    enum cairn_status status = plan_check_strength(space, strength, error);
    if (status != CAIRN_OK)
        return status;
    struct change_list list = {assumption->changes, collect_changes(assumption),
                               sizeof *assumption->changes};
    if (list.count > 0)
        status = patch_live(&list, strength, &made, error);
    else
        status = patch_barrier(space, strength, error);
    for (size_t i = made; i < list.count; i++)
        change_at(&list, i)->site->is_broken = false;
    if (made < list.count || assumption->is_broken)
        return status;
    const struct event_hits hits = {changed_site, &list, list.count};
    event_invalidation(assumption->runtime, &hits, "assumption broken");
    assumption->is_broken = true;
    clear(assumption);
    return status;
}

enum cairn_status cairn_assumption_break(cairn_assumption *assumption, enum cairn_strength strength,
                                         struct cairn_error *error)
{
    if (assumption == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_assumption_break: `assumption` is NULL");
    cairn_runtime *runtime = assumption->runtime;
    bool is_taken = runtime_lock_sites(runtime);
    enum cairn_status status = break_locked(assumption, strength, error);
    runtime_unlock_sites(runtime, is_taken);
    return status;
}

void cairn_assumption_destroy(cairn_assumption *assumption)
{
    if (assumption == NULL)
        return;
    cairn_runtime *runtime = assumption->runtime;
    runtime_lock(runtime);
    clear(assumption);
    runtime_unlock(runtime);
    memory_free(&runtime->allocator, assumption->changes,
                assumption->capacity * sizeof *assumption->changes);
    memory_free(&runtime->allocator, assumption, sizeof *assumption);
}
