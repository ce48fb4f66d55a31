/*
 * Binds inline caches to sites, and destroys them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ic/cache.h"

#include "base/error.h"
#include "base/inspect.h"
#include "site/commit.h"

#include <stddef.h>

void ic_free(cairn_ic *ic)
{
    struct cairn_allocator allocator = ic->set->allocator;
    for (uint32_t i = 0; i < ic->case_count; i++)
        if (ic->cases[i].call != NULL)
            memory_free(&allocator, ic->cases[i].call, sizeof(struct ic_call));
    memory_free(&allocator, ic->seen, sizeof *ic->seen);
    ic_table_free(ic->table);
    if (ic->slow_path != NULL)
        ic->destroy_slow_path(ic->slow_path, &allocator);
    memory_free(&allocator, ic, ic_bytes(ic->options.case_limit));
}

static size_t free_retired(struct grace_entry *entry)
{
    _Static_assert(offsetof(struct cairn_ic, retired) == 0, "a cache begins with its entry");
    ic_free((cairn_ic *)(void *)entry);
    return 0;
}

static void set_form(cairn_site *site, enum site_form form)
{
    atomic_store_explicit(&site->form, (uint8_t)form, memory_order_release);
}

/* Removes the cache from its set and its site. Its code remains. */
static void unbind(cairn_ic *ic)
{
    struct cache_set *set = ic->set;
    inspect_begin(set->descriptor, INSPECT_CACHES);
    *(ic->previous != NULL ? &ic->previous->next : &set->first) = ic->next;
    *(ic->next != NULL ? &ic->next->previous : &set->last) = ic->previous;
    inspect_end(set->descriptor, INSPECT_CACHES);
    ic->site->ic = NULL;
}

static void unload(cairn_ic *ic)
{
    struct cache_set *set = ic->set;
    if (cache_set_enter(set, NULL) != CAIRN_OK)
        return;
    unbind(ic);
    cache_set_leave(set);
    code_stub_free(ic->code.stub);
    ic_free(ic);
}

/* Tells readers in other processes where the members of caches are. */
static void set_fields(struct inspect_field *fields)
{
    fields[INSPECT_CACHE_SITE] = INSPECT_MEMBER(struct cairn_ic, site);
    fields[INSPECT_CACHE_NEXT] = INSPECT_MEMBER(struct cairn_ic, next);
    fields[INSPECT_CACHE_PREVIOUS] = INSPECT_MEMBER(struct cairn_ic, previous);
    fields[INSPECT_CACHE_CASE_COUNT] = INSPECT_MEMBER(struct cairn_ic, case_count);
    fields[INSPECT_CACHE_CASE_LIMIT] = INSPECT_MEMBER(struct cairn_ic, options.case_limit);
    fields[INSPECT_CACHE_IS_MEGAMORPHIC] = INSPECT_MEMBER(struct cairn_ic, is_megamorphic);
    fields[INSPECT_CACHE_IS_INLINE] = INSPECT_MEMBER(struct cairn_ic, is_inline);
    fields[INSPECT_CACHE_COUNTS_HITS] = INSPECT_MEMBER(struct cairn_ic, options.counts_hits);
    fields[INSPECT_CACHE_COUNTERS] = INSPECT_MEMBER(struct cairn_ic, counters_in_use);
    fields[INSPECT_CACHE_HITS] = INSPECT_PLACE(struct cairn_ic, hits);
    fields[INSPECT_CACHE_MISSES] = INSPECT_MEMBER(struct cairn_ic, misses);
    fields[INSPECT_CACHE_STUB] = INSPECT_MEMBER(struct cairn_ic, code.stub);
    fields[INSPECT_STUB_CODE_BYTES] = INSPECT_MEMBER(struct code_stub, code_bytes);
}

/* Once the site's form is set, no other patch of the site begins. The host guarantees that none has
 * begun and not returned yet (cairn_ic_create). The form cannot guarantee that: a change reads it
 * before it stores the word, and may store at any later time. */
enum cairn_status ic_bind(cairn_ic *ic, struct cairn_error *error)
{
    static const struct cache_functions functions = {.unload = unload,
                                                     .unload_inline = ic_inline_unload};
    struct cache_set *set = ic->set;
    cairn_site *site = ic->site;
    enum cairn_status status = cache_set_enter(set, error);
    if (status != CAIRN_OK)
        return status;
    /* Written once, because it is read without the lock when there have been caches. */
    if (set->functions == NULL) {
        set->functions = &functions;
        if (set->descriptor != NULL)
            set_fields(set->descriptor->fields);
    }
    if (ic_is_retired(ic))
        status = error_set(error, CAIRN_ERROR_STATE, site->address,
                           "the site's module has been retired");
    else if (site->ic != NULL)
        status = error_set(error, CAIRN_ERROR_CONFLICT, site->address,
                           "site %llu at 0x%llx has an inline cache already",
                           (unsigned long long)site_id(site), (unsigned long long)site->address);
    else
        status = plan_check_live(site, SITE_FORM_INITIAL, error);
    if (status == CAIRN_OK)
        status = ic_inline_prepare(ic, error);
    if (status == CAIRN_OK) {
        struct ic_change change;
        size_t made;
        ic_change_begin(&change, ic);
        set_form(site, SITE_FORM_CACHE);
        status = ic_changes_apply(&change, 1, CAIRN_RELAXED, &made, error);
        if (status != CAIRN_OK)
            set_form(site, SITE_FORM_INITIAL);
    }
    if (status == CAIRN_OK) {
        inspect_begin(set->descriptor, INSPECT_CACHES);
        ic->previous = set->last;
        *(set->last != NULL ? &set->last->next : &set->first) = ic;
        set->last = ic;
        inspect_end(set->descriptor, INSPECT_CACHES);
        site->ic = ic;
    }
    cache_set_leave(set);
    return status;
}

/* Makes the site do what it did without the cache. Returns whether it does, even if the barrier was
 * refused. */
static bool restore_site(const cairn_ic *ic, enum cairn_strength strength,
                         enum cairn_status *status, struct cairn_error *error)
{
    struct change change = plan_restore(ic->site);
    const struct change_list list = {&change, 1, sizeof change};
    size_t made = 0;
    *status = plan_all(&list, SITE_FORM_CACHE, strength, error);
    if (*status == CAIRN_OK)
        *status = commit_all(&list, strength, &made, error);
    return made > 0;
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
    bool ends;
    if (atomic_load_explicit(&ic->is_destroyed, memory_order_relaxed)) {
        status = ic_check_usable(ic, error);
        ends = false;
    } else {
        ends = ic_is_retired(ic) || restore_site(ic, strength, &status, error);
    }
    if (ends) {
        set_form(ic->site, SITE_FORM_INITIAL);
        ic_note_change(ic, ic_state_of(ic->is_megamorphic, ic->case_count), CAIRN_IC_DESTROYED, 0);
        atomic_store_explicit(&ic->is_destroyed, true, memory_order_relaxed);
        unbind(ic);
        code_stub_retire(ic->code.stub);
        ic_inline_end(ic);
        grace_retire(code_space_grace(set->space), &ic->retired, free_retired);
    }
    cache_set_leave(set);
    return status;
}
