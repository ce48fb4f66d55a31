/*
 * Binds inline caches to sites, and changes single caches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ic/cache.h"

#include "base/error.h"
#include "site/patch.h"

/* ---- Binding and destroying ---- */

void ic_free(cairn_ic *ic)
{
    struct cairn_allocator allocator = ic->set->allocator;
    for (uint32_t i = 0; i < ic->cases.count; i++)
        if (ic->cases.entries[i].call != NULL)
            memory_free(&allocator, ic->cases.entries[i].call, sizeof(struct ic_call));
    if (ic->slow_path != NULL)
        ic->destroy_slow_path(ic->slow_path, &allocator);
    memory_free(&allocator, ic, sizeof *ic);
}

static void free_retired(struct cache_set *set, cairn_ic *ic, struct ic_call *call)
{
    while (ic != NULL) {
        cairn_ic *next = ic->next;
        ic_free(ic);
        ic = next;
    }
    while (call != NULL) {
        struct ic_call *next = call->next_retired;
        memory_free(&set->allocator, call, sizeof *call);
        call = next;
    }
}

static void link_last(struct cache_set *set, cairn_ic *ic)
{
    ic->previous = set->last;
    ic->next = NULL;
    if (set->last != NULL)
        set->last->next = ic;
    else
        set->first = ic;
    set->last = ic;
    ic->site->ic = ic;
}

static void unlink_from(struct cache_set *set, cairn_ic *ic)
{
    if (ic->previous != NULL)
        ic->previous->next = ic->next;
    else
        set->first = ic->next;
    if (ic->next != NULL)
        ic->next->previous = ic->previous;
    else
        set->last = ic->previous;
    ic->site->ic = NULL;
}

static enum cairn_status say_bound(const cairn_site *site, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_CONFLICT, site->address,
                     "site %llu at 0x%llx has an inline cache already",
                     (unsigned long long)site_id(site), (unsigned long long)site->address);
}

static void set_form(cairn_site *site, enum site_form form)
{
    atomic_store_explicit(&site->form, (uint8_t)form, memory_order_release);
}

/* Binds the cache. Once the site's form is set, no other patch of the site begins. The host sees to
 * it that none has begun and not returned yet (cairn_ic_create). The form is not enough for that: a
 * change reads it before it stores the word, and may store at any later time. */
static enum cairn_status bind_locked(cairn_ic *ic, struct cairn_error *error)
{
    cairn_site *site = ic->site;
    if (site->ic != NULL)
        return say_bound(site, error);
    enum cairn_status status = plan_check_live(site, SITE_FORM_INITIAL, error);
    if (status != CAIRN_OK)
        return status;
    struct ic_change change;
    ic_change_begin(&change, ic);
    set_form(site, SITE_FORM_CACHE);
    status = ic_changes_apply(&change, 1, CAIRN_RELAXED, error);
    if (status == CAIRN_OK)
        link_last(ic->set, ic);
    else
        set_form(site, SITE_FORM_INITIAL);
    return status;
}

/* Removes the cache from its set and its site. Retires its code, which threads may be executing. */
static void unbind(cairn_ic *ic)
{
    unlink_from(ic->set, ic);
    code_block_retire_stub(ic->site->table->block, &ic->code.stub);
}

static void unload(cairn_ic *ic)
{
    struct cache_set *set = ic->set;
    if (cache_set_enter(set, NULL) != CAIRN_OK)
        return;
    unbind(ic);
    cache_set_leave(set);
    ic_free(ic);
}

enum cairn_status ic_bind(cairn_ic *ic, struct cairn_error *error)
{
    static const struct cache_functions functions = {.unload = unload,
                                                     .free_retired = free_retired};
    enum cairn_status status = cache_set_enter(ic->set, error);
    if (status != CAIRN_OK)
        return status;
    ic->set->functions = &functions;
    status = bind_locked(ic, error);
    cache_set_leave(ic->set);
    return status;
}

static enum cairn_status say_destroyed(const cairn_ic *ic, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_STATE, ic->site->address,
                     "the inline cache of the site at 0x%llx has been destroyed",
                     (unsigned long long)ic->site->address);
}

enum cairn_status ic_check_usable(const cairn_ic *ic, struct cairn_error *error)
{
    if (atomic_load_explicit(&ic->is_destroyed, memory_order_relaxed))
        return say_destroyed(ic, error);
    if (ic_is_retired(ic))
        return error_set(error, CAIRN_ERROR_STATE, ic->site->address,
                         "the module of the inline cache has been retired");
    return CAIRN_OK;
}

static enum cairn_status restore_site(cairn_site *site, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    struct change change = plan_restore(site);
    const struct change_list list = {&change, 1, sizeof change};
    return patch_live(&list, SITE_FORM_CACHE, strength, error);
}

static enum cairn_status destroy_locked(cairn_ic *ic, enum cairn_strength strength,
                                        struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (atomic_load_explicit(&ic->is_destroyed, memory_order_relaxed))
        return say_destroyed(ic, error);
    if (!ic_is_retired(ic))
        status = restore_site(ic->site, strength, error);
    if (status != CAIRN_OK)
        return status;
    set_form(ic->site, SITE_FORM_INITIAL);
    atomic_store_explicit(&ic->is_destroyed, true, memory_order_relaxed);
    unbind(ic);
    ic->next = ic->set->retired;
    ic->set->retired = ic;
    return CAIRN_OK;
}

enum cairn_status cairn_ic_destroy(cairn_ic *ic, enum cairn_strength strength,
                                   struct cairn_error *error)
{
    if (ic == NULL)
        return CAIRN_OK;
    struct cache_set *set = ic->set;
    enum cairn_status status = cache_set_enter(set, error);
    if (status != CAIRN_OK)
        return status;
    status = destroy_locked(ic, strength, error);
    cache_set_leave(set);
    return status;
}

/* ---- Changing one cache ---- */

static enum cairn_status say_no_cache(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no inline cache to change");
}

/* Takes the set's lock for a change of the cache. */
static enum cairn_status enter(cairn_ic *ic, struct cairn_error *error)
{
    enum cairn_status status = cache_set_enter(ic->set, error);
    if (status != CAIRN_OK)
        return status;
    status = ic_check_usable(ic, error);
    if (status != CAIRN_OK)
        cache_set_leave(ic->set);
    return status;
}

static bool same_field(const struct cairn_ic_field *left, const struct cairn_ic_field *right)
{
    return left->offset == right->offset && left->width == right->width &&
           left->is_signed == right->is_signed && left->is_out_of_line == right->is_out_of_line &&
           left->pointer_offset == right->pointer_offset;
}

static bool same_case(const struct cairn_ic_case *left, const struct cairn_ic_case *right)
{
    return ic_same_guard(&left->guard, &right->guard) && left->action == right->action &&
           same_field(&left->field, &right->field) && left->operand == right->operand &&
           left->constant == right->constant && left->target == right->target;
}

/* Whether the cache has this case already, as when several threads miss at the same time and add
 * the same case. True for a megamorphic cache. */
static bool has_case(const cairn_ic *ic, const struct cairn_ic_case *wanted)
{
    for (uint32_t i = 0; i < ic->cases.count; i++)
        if (same_case(&ic->cases.entries[i].public, wanted))
            return true;
    return ic->cases.is_megamorphic;
}

static enum cairn_status add_locked(cairn_ic *ic, const struct cairn_ic_case *added,
                                    enum cairn_strength strength, struct cairn_error *error)
{
    if (has_case(ic, added))
        return CAIRN_OK;
    struct ic_change change;
    ic_change_begin(&change, ic);
    enum cairn_status status = ic_change_add(&change, added, error);
    if (status == CAIRN_OK)
        return ic_changes_apply(&change, 1, strength, error);
    ic_change_abandon(&change);
    return status;
}

enum cairn_status cairn_ic_add(cairn_ic *ic, const struct cairn_ic_case *added,
                               enum cairn_strength strength, struct cairn_error *error)
{
    if (ic == NULL || added == NULL)
        return say_no_cache(error);
    struct cairn_ic_case checked = *added;
    enum cairn_status status = ic_check_case(ic, &checked, error);
    if (status == CAIRN_OK)
        status = enter(ic, error);
    if (status != CAIRN_OK)
        return status;
    status = add_locked(ic, &checked, strength, error);
    cache_set_leave(ic->set);
    return status;
}

static enum cairn_status remove_locked(cairn_ic *ic, const struct cairn_ic_guard *guard,
                                       enum cairn_strength strength, struct cairn_error *error)
{
    struct ic_change change;
    ic_change_begin(&change, ic);
    enum cairn_status status = ic_change_remove(&change, guard, error);
    if (status == CAIRN_OK)
        return ic_changes_apply(&change, 1, strength, error);
    ic_change_abandon(&change);
    return status;
}

enum cairn_status cairn_ic_remove(cairn_ic *ic, const struct cairn_ic_guard *guard,
                                  enum cairn_strength strength, struct cairn_error *error)
{
    if (ic == NULL || guard == NULL)
        return say_no_cache(error);
    struct cairn_ic_guard checked = *guard;
    enum cairn_status status = ic_check_guard(ic, &checked, error);
    if (status == CAIRN_OK)
        status = enter(ic, error);
    if (status != CAIRN_OK)
        return status;
    status = remove_locked(ic, &checked, strength, error);
    cache_set_leave(ic->set);
    return status;
}

/* Makes a change that cannot fail before it is applied. */
static enum cairn_status apply_one(cairn_ic *ic, void (*alter)(struct ic_change *change),
                                   enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = enter(ic, error);
    if (status != CAIRN_OK)
        return status;
    struct ic_change change;
    ic_change_begin(&change, ic);
    alter(&change);
    status = ic_changes_apply(&change, 1, strength, error);
    cache_set_leave(ic->set);
    return status;
}

enum cairn_status cairn_ic_reset(cairn_ic *ic, enum cairn_strength strength,
                                 struct cairn_error *error)
{
    return ic == NULL ? say_no_cache(error) : apply_one(ic, ic_change_reset, strength, error);
}

enum cairn_status cairn_ic_order(cairn_ic *ic, enum cairn_strength strength,
                                 struct cairn_error *error)
{
    if (ic == NULL)
        return say_no_cache(error);
    if (!ic->options.counts_hits)
        return error_set(error, CAIRN_ERROR_STATE, ic->site->address,
                         "the inline cache of site %llu counts no hits to order its cases by: set "
                         "counts_hits in its options",
                         (unsigned long long)site_id(ic->site));
    return apply_one(ic, ic_change_order, strength, error);
}
