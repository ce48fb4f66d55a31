/*
 * Changes inline caches: first alters copies of their cases, then makes code for them, and then
 * changes the sites as one list (site/commit.h), with one store for each site and one barrier for
 * all.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/cache.h"
#include "site/commit.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* ---- Calls that Cairn makes for cases ---- */

static size_t free_call(struct grace_entry *entry)
{
    struct ic_call *call = (struct ic_call *)(void *)entry;
    _Static_assert(offsetof(struct ic_call, retired) == 0, "a call begins with its entry");
    struct cairn_allocator allocator = call->set->allocator;
    memory_free(&allocator, call, sizeof *call);
    return 0;
}

static void retire_call(struct cache_set *set, struct ic_call *call)
{
    if (call == NULL || --call->references > 0)
        return;
    grace_retire(code_space_grace(set->space), &call->retired, free_call);
}

static void retire_calls(struct cache_set *set, const struct ic_case *cases, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        retire_call(set, cases[i].call);
}

static bool needs_call(const cairn_ic *ic, const struct cairn_ic_case *public)
{
    return public->action == CAIRN_IC_CALL && !ic->calls_straight;
}

static enum cairn_status make_call(cairn_ic *ic, const struct cairn_ic_case *public,
                                   struct ic_call **call, struct cairn_error *error)
{
    struct ic_call *made = memory_new(&ic->set->allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a case that calls");
    enum cairn_status status =
        arch_exit_init(&made->exit, ic->call_handler, made, ic->level, error);
    if (status != CAIRN_OK) {
        memory_free(&ic->set->allocator, made, sizeof *made);
        return status;
    }
    made->set = ic->set;
    made->ic = ic;
    made->made_for = *public;
    made->references = 1;
    *call = made;
    return CAIRN_OK;
}

/* ---- The new cases ---- */

void ic_change_begin(struct ic_change *change, cairn_ic *ic)
{
    change->ic = ic;
    change->seen = NULL;
    change->is_altered = false;
    change->needs_code = false;
    change->table = ic->table;
    change->resets_counts = false;
    change->added_key = 0;
    change->code.stub = NULL;
    change->way = IC_WAY_BRANCH;
    change->leaves_inline = false;
    change->may_join = false;
    change->has_set_miss = false;
    change->is_megamorphic = ic->is_megamorphic;
    change->case_count = ic->case_count;
    memcpy(change->cases, ic->cases, ic->case_count * sizeof *ic->cases);
    for (uint32_t i = 0; i < change->case_count; i++)
        if (change->cases[i].call != NULL)
            change->cases[i].call->references++;
}

static void drop_cases(struct ic_change *change)
{
    retire_calls(change->ic->set, change->cases, change->case_count);
    change->case_count = 0;
    memory_free(&change->ic->set->allocator, change->seen, sizeof *change->seen);
    change->seen = NULL;
}

static void drop(struct ic_change *change)
{
    drop_cases(change);
    ic_table_drop(change);
}

static uint32_t find_guard(const struct ic_change *change, const struct cairn_ic_guard *guard)
{
    uint32_t i = 0;
    while (i < change->case_count && !ic_same_guard(&change->cases[i].public.guard, guard))
        i++;
    return i;
}

/* Returns a counter that no case of the change uses. Prefers one that the cache does not use at
 * present either. There is always a free counter: there are as many counters as a cache may have
 * cases, and the change has fewer cases. */
static uint32_t free_counter(const struct ic_change *change)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < change->case_count; i++)
        used |= UINT32_C(1) << change->cases[i].counter;
    const uint32_t all = (UINT32_C(1) << CAIRN_IC_CASE_LIMIT_MAX) - 1;
    uint32_t unused = ~(used | change->ic->counters_in_use) & all;
    return (uint32_t)__builtin_ctz(unused != 0 ? unused : ~used);
}

/* ---- What megamorphic caches have seen ---- */

static void count_addition(struct ic_seen *seen, const struct cairn_ic_case *added)
{
    uint32_t i = 0;
    while (i < seen->count && !ic_same_guard(&seen->cases[i].entry.guard, &added->guard))
        i++;
    if (i == CAIRN_IC_CASE_LIMIT_MAX) {
        seen->other_additions++;
        return;
    }
    if (i == seen->count)
        seen->count++;
    seen->cases[i].entry = *added;
    seen->cases[i].additions++;
}

/* Removes the cases because of one more than the limit. The table gets those of them that it can
 * have. MEMORY. */
static enum cairn_status become_megamorphic(struct ic_change *change,
                                            const struct cairn_ic_case *added,
                                            struct cairn_error *error)
{
    const cairn_ic *ic = change->ic;
    struct ic_seen *seen = memory_new(&ic->set->allocator, 1, sizeof *seen);
    if (seen == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a megamorphic inline cache");
    for (; seen->count < change->case_count; seen->count++) {
        const struct ic_case *had = &change->cases[seen->count];
        seen->cases[seen->count].entry = had->public;
        if (!had->counts_anew)
            seen->cases[seen->count].hits =
                __atomic_load_n(&ic->hits[had->counter], __ATOMIC_RELAXED);
    }
    count_addition(seen, added);
    enum cairn_status status = ic_table_add(change, added, error);
    for (uint32_t i = 0; i < change->case_count && status == CAIRN_OK; i++)
        status = ic_table_add(change, &change->cases[i].public, error);
    drop_cases(change);
    change->seen = seen;
    change->is_megamorphic = true;
    return status;
}

/* ---- Altering the cases ---- */

static enum cairn_status add(struct ic_change *change, const struct cairn_ic_case *added,
                             struct cairn_error *error)
{
    struct ic_case entry = {.public = *added};
    enum cairn_status status = ic_check_case(change->ic, &entry.public, error);
    if (status != CAIRN_OK)
        return status;
    if (change->is_megamorphic) {
        count_addition(change->seen != NULL ? change->seen : change->ic->seen, &entry.public);
        return ic_table_add(change, &entry.public, error);
    }
    uint32_t place = find_guard(change, &entry.public.guard);
    /* Several threads may miss at the same time and add the same case. */
    if (place < change->case_count && ic_same_action(&change->cases[place].public, &entry.public))
        return CAIRN_OK;
    change->is_altered = change->needs_code = true;
    change->added_key = entry.public.guard.key;
    if (place == change->ic->options.case_limit)
        return become_megamorphic(change, &entry.public, error);
    if (needs_call(change->ic, &entry.public))
        status = make_call(change->ic, &entry.public, &entry.call, error);
    if (status != CAIRN_OK)
        return status;
    if (place < change->case_count) {
        entry.counter = change->cases[place].counter;
        retire_call(change->ic->set, change->cases[place].call);
    } else {
        entry.counter = free_counter(change);
        entry.counts_anew = true;
        change->case_count++;
    }
    change->cases[place] = entry;
    return CAIRN_OK;
}

static enum cairn_status remove_case(struct ic_change *change, const struct cairn_ic_guard *guard,
                                     struct cairn_error *error)
{
    const cairn_ic *ic = change->ic;
    struct cairn_ic_guard checked = *guard;
    enum cairn_status status = ic_check_guard(ic, &checked, error);
    if (status != CAIRN_OK)
        return status;
    if (change->is_megamorphic && ic->options.has_table)
        return ic_table_remove(change, &checked, error);
    uint32_t place = find_guard(change, &checked);
    if (place == change->case_count)
        return error_set(
            error, CAIRN_ERROR_NOT_FOUND, ic->site->address,
            "the inline cache of site %llu at 0x%llx has no case for the key 0x%llx at "
            "operand %u + %d",
            (unsigned long long)site_id(ic->site), (unsigned long long)ic->site->address,
            (unsigned long long)guard->key, guard->operand, guard->offset);
    change->is_altered = change->needs_code = true;
    retire_call(ic->set, change->cases[place].call);
    change->case_count--;
    memmove(&change->cases[place], &change->cases[place + 1],
            (change->case_count - place) * sizeof *change->cases);
    return CAIRN_OK;
}

static enum cairn_status alter(struct ic_change *change, const struct cairn_ic_change *wanted,
                               struct cairn_error *error)
{
    switch (wanted->kind) {
    case CAIRN_IC_CHANGE_ADD:
        return add(change, &wanted->entry, error);
    case CAIRN_IC_CHANGE_REMOVE:
        return remove_case(change, &wanted->entry.guard, error);
    case CAIRN_IC_CHANGE_RESET:
        drop_cases(change);
        ic_table_drop(change);
        change->table = NULL;
        change->is_megamorphic = false;
        change->is_altered = change->needs_code = true;
        change->resets_counts = true;
        return CAIRN_OK;
    }
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "site %llu: unknown kind of change %u",
                     (unsigned long long)site_id(change->ic->site), (unsigned)wanted->kind);
}

/* ---- Making the changes ---- */

/* Makes the change's cases and code those of the cache, and retires the old ones. */
static void adopt(struct ic_change *change)
{
    cairn_ic *ic = change->ic;
    ic_note_change(ic, ic_state_of(ic->is_megamorphic, ic->case_count),
                   ic_state_of(change->is_megamorphic, change->case_count), change->added_key);
    ic->counters_in_use = 0;
    for (uint32_t i = 0; i < change->case_count; i++) {
        struct ic_case *entry = &change->cases[i];
        ic->counters_in_use |= UINT32_C(1) << entry->counter;
        if (entry->counts_anew)
            __atomic_store_n(&ic->hits[entry->counter], 0, __ATOMIC_RELAXED);
        entry->counts_anew = false;
    }
    if (change->resets_counts)
        atomic_store_explicit(&ic->misses, 0, memory_order_relaxed);
    retire_calls(ic->set, ic->cases, ic->case_count);
    code_stub_retire(ic->code.stub);
    ic_inline_adopt(change);
    if (change->seen != NULL || !change->is_megamorphic) {
        memory_free(&ic->set->allocator, ic->seen, sizeof *ic->seen);
        ic->seen = change->seen;
    }
    ic->is_megamorphic = change->is_megamorphic;
    ic->case_count = change->case_count;
    memcpy(ic->cases, change->cases, change->case_count * sizeof *change->cases);
    ic->code = change->code;
    ic_table_adopt(change);
}

/* Does everything that can fail, and that no thread can see yet. */
static enum cairn_status prepare(struct ic_change *changes, const struct change_list *list,
                                 enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < list->count && status == CAIRN_OK; i++)
        status = ic_code_make(&changes[i], error);
    if (status == CAIRN_OK)
        status = ic_inline_write(changes, list->count, error);
    return status == CAIRN_OK ? plan_all(list, SITE_FORM_CACHE, strength, error) : status;
}

enum cairn_status ic_changes_apply(struct ic_change *changes, size_t count,
                                   enum cairn_strength strength, size_t *made,
                                   struct cairn_error *error)
{
    const struct change_list list = {&changes[0].patch, count, sizeof *changes};
    enum cairn_status status = prepare(changes, &list, strength, error);
    *made = 0;
    if (status == CAIRN_OK)
        status = ic_inline_set_misses(changes, count, error);
    if (status == CAIRN_OK)
        status = commit_all(&list, strength, made, error);
    for (size_t i = 0; i < count; i++) {
        struct ic_change *change = &changes[i];
        if (i < *made || change->has_set_miss) {
            adopt(change);
            continue;
        }
        code_stub_free(change->code.stub);
        drop(change);
    }
    return status;
}

void ic_change_again(cairn_ic *ic, bool leaves_inline)
{
    struct ic_change change;
    bool is_empty = ic->case_count == 0 && !ic->is_megamorphic;
    if (ic_check_usable(ic, NULL) != CAIRN_OK || is_empty)
        return;
    ic_change_begin(&change, ic);
    change.leaves_inline = leaves_inline;
    size_t made;
    enum cairn_status status = ic_changes_apply(&change, 1, CAIRN_RELAXED, &made, NULL);
    (void)status; /* if it fails, the cache's code stays where it is */
}

/* ---- The list of the host ---- */

/* Makes the changes that need code, and then those that only store words of tables, which cannot
 * fail. Words are data, and need no barrier. But an earlier relaxed change may have made a site
 * branch to code with another table, and with CAIRN_SYNC no thread may use the older code. So there
 * is a barrier even if there is nothing to change. */
static enum cairn_status apply_all(struct code_space *space, struct ic_change *changes,
                                   size_t count, enum cairn_strength strength,
                                   struct cairn_error *error)
{
    size_t coded = 0, made = 0;
    for (size_t i = 0; i < count; i++) {
        if (!changes[i].needs_code)
            continue;
        if (i != coded) {
            struct ic_change moved = changes[coded];
            changes[coded] = changes[i];
            changes[i] = moved;
        }
        coded++;
    }
    enum cairn_status status = plan_check_strength(space, strength, error);
    if (status == CAIRN_OK && coded > 0)
        status = ic_changes_apply(changes, coded, strength, &made, error);
    else
        for (size_t i = 0; i < coded; i++)
            drop(&changes[i]);
    bool is_made = coded > 0 ? made == coded : status == CAIRN_OK;
    for (size_t i = coded; i < count; i++)
        if (is_made)
            ic_table_adopt(&changes[i]);
        else
            drop(&changes[i]);
    if (status == CAIRN_OK && coded == 0)
        status = commit_barrier(space, strength, error);
    return status;
}

/* Alters copies of the cases of all caches, and then makes the changes. Each cache has one change,
 * whose number is `pending` - 1. */
static enum cairn_status change_locked(const struct cairn_ic_change *wanted, size_t count,
                                       enum cairn_strength strength, struct cairn_error *error)
{
    struct ic_change one;
    struct ic_change *changes = &one;
    size_t caches = 0;
    size_t begun = 0;
    enum cairn_status status = CAIRN_OK;
    const struct cairn_allocator *allocator = &wanted->ic->set->allocator;
    for (size_t i = 0; i < count; i++)
        if (wanted[i].ic->pending == 0)
            wanted[i].ic->pending = ++caches;
    if (caches > 1)
        changes = memory_new(allocator, caches, sizeof *changes);
    if (changes == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0,
                           "no memory for changes of %zu inline caches", caches);
    for (size_t i = 0; i < count && status == CAIRN_OK; i++) {
        cairn_ic *ic = wanted[i].ic;
        status = ic_check_usable(ic, error);
        if (status != CAIRN_OK)
            break;
        if (ic->pending > begun)
            ic_change_begin(&changes[begun++], ic);
        assert(ic->pending > 0);
        status = alter(&changes[ic->pending - 1], &wanted[i], error);
    }
    for (size_t i = 0; i < count; i++)
        wanted[i].ic->pending = 0;
    size_t altered = 0;
    for (size_t i = 0; i < begun; i++)
        if (status != CAIRN_OK || !changes[i].is_altered)
            drop(&changes[i]);
        else if (altered++ != i)
            changes[altered - 1] = changes[i];
    if (status == CAIRN_OK)
        status = apply_all(wanted->ic->set->space, changes, altered, strength, error);
    if (changes != &one)
        memory_free(allocator, changes, caches * sizeof *changes);
    return status;
}

enum cairn_status cairn_ics_change(const struct cairn_ic_change *changes, size_t count,
                                   enum cairn_strength strength, struct cairn_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (changes == NULL || changes[i].ic == NULL)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "`%s` is NULL",
                             changes == NULL ? "changes" : "ic");
        if (changes[i].ic->set != changes->ic->set)
            return error_set(error, CAIRN_ERROR_ARGUMENT, changes[i].ic->site->address,
                             "the inline cache of site %llu belongs to another runtime than that "
                             "of site %llu",
                             (unsigned long long)site_id(changes[i].ic->site),
                             (unsigned long long)site_id(changes->ic->site));
    }
    if (count == 0)
        return CAIRN_OK;
    struct cache_set *set = changes->ic->set;
    enum cairn_status status = cache_set_enter(set, error);
    if (status != CAIRN_OK)
        return status;
    status = change_locked(changes, count, strength, error);
    cache_set_leave(set);
    return status;
}

enum cairn_status cairn_ic_add(cairn_ic *ic, const struct cairn_ic_case *added,
                               enum cairn_strength strength, struct cairn_error *error)
{
    if (added == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_ic_add: `added` is NULL");
    const struct cairn_ic_change change = {ic, CAIRN_IC_CHANGE_ADD, *added};
    return cairn_ics_change(&change, 1, strength, error);
}
