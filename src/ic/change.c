/*
 * Changes inline caches: first chooses the new cases, then writes code for them, and then makes one
 * store for each site and one barrier for all.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/cache.h"
#include "site/commit.h"
#include "site/word.h"

#include <string.h>

/* ---- Calls that Cairn makes for cases ---- */

static void retire_call(struct cache_set *set, struct ic_call *call)
{
    if (call == NULL || --call->references > 0)
        return;
    call->next_retired = set->retired_calls;
    set->retired_calls = call;
}

static void retire_calls(struct cache_set *set, const struct ic_cases *cases)
{
    for (uint32_t i = 0; i < cases->count; i++)
        retire_call(set, cases->entries[i].call);
}

static enum cairn_status make_call(cairn_ic *ic, const void *target, struct ic_call **call,
                                   struct cairn_error *error)
{
    struct ic_call *made = memory_new(&ic->set->allocator, 1, sizeof *made);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a case that calls");
    enum cairn_status status = arch_exit_init(&made->exit, ic->call_handler, made, error);
    if (status != CAIRN_OK) {
        memory_free(&ic->set->allocator, made, sizeof *made);
        return status;
    }
    made->ic = ic;
    made->target = target;
    made->references = 1;
    *call = made;
    return CAIRN_OK;
}

/* ---- The new cases ---- */

static void copy_cases(struct ic_cases *to, const struct ic_cases *from)
{
    memcpy(to->entries, from->entries, from->count * sizeof *from->entries);
    to->count = from->count;
    to->is_megamorphic = from->is_megamorphic;
}

void ic_change_begin(struct ic_change *change, cairn_ic *ic)
{
    change->ic = ic;
    change->resets_counts = false;
    change->is_made = false;
    change->code.stub.size = 0;
    copy_cases(&change->next, &ic->cases);
    for (uint32_t i = 0; i < change->next.count; i++)
        if (change->next.entries[i].call != NULL)
            change->next.entries[i].call->references++;
}

void ic_change_abandon(struct ic_change *change)
{
    retire_calls(change->ic->set, &change->next);
    change->next.count = 0;
}

static uint32_t find_guard(const struct ic_cases *cases, const struct cairn_ic_guard *guard)
{
    uint32_t i = 0;
    while (i < cases->count && !ic_same_guard(&cases->entries[i].public.guard, guard))
        i++;
    return i;
}

/* Returns a counter that no case of the change uses. Prefers one that the cache does not use at
 * present either. There is always a free counter: there are as many counters as a cache may have
 * cases, and the change has fewer cases. */
static uint32_t free_counter(const struct ic_change *change)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < change->next.count; i++)
        used |= UINT32_C(1) << change->next.entries[i].counter;
    const uint32_t all = (UINT32_C(1) << CAIRN_IC_CASE_LIMIT_MAX) - 1;
    uint32_t unused = ~(used | change->ic->counters_in_use) & all;
    return (uint32_t)__builtin_ctz(unused != 0 ? unused : ~used);
}

static void become_megamorphic(struct ic_change *change)
{
    retire_calls(change->ic->set, &change->next);
    change->next.count = 0;
    change->next.is_megamorphic = true;
}

static enum cairn_status make_entry(struct ic_change *change, const struct cairn_ic_case *added,
                                    struct ic_case *entry, struct cairn_error *error)
{
    *entry = (struct ic_case){.public = *added};
    if (added->action != CAIRN_IC_CALL || change->ic->calls_straight)
        return CAIRN_OK;
    return make_call(change->ic, added->target, &entry->call, error);
}

enum cairn_status ic_change_add(struct ic_change *change, const struct cairn_ic_case *added,
                                struct cairn_error *error)
{
    struct ic_cases *next = &change->next;
    if (next->is_megamorphic)
        return CAIRN_OK;
    uint32_t place = find_guard(next, &added->guard);
    if (place == change->ic->options.case_limit) {
        become_megamorphic(change);
        return CAIRN_OK;
    }
    struct ic_case entry;
    enum cairn_status status = make_entry(change, added, &entry, error);
    if (status != CAIRN_OK)
        return status;
    if (place < next->count) {
        entry.counter = next->entries[place].counter;
        retire_call(change->ic->set, next->entries[place].call);
    } else {
        entry.counter = free_counter(change);
        entry.counts_anew = true;
        next->count++;
    }
    next->entries[place] = entry;
    return CAIRN_OK;
}

static void remove_at(struct ic_change *change, uint32_t place)
{
    struct ic_cases *next = &change->next;
    retire_call(change->ic->set, next->entries[place].call);
    next->count--;
    memmove(&next->entries[place], &next->entries[place + 1],
            (next->count - place) * sizeof *next->entries);
}

enum cairn_status ic_change_remove(struct ic_change *change, const struct cairn_ic_guard *guard,
                                   struct cairn_error *error)
{
    uint32_t place = find_guard(&change->next, guard);
    if (place == change->next.count)
        return error_set(
            error, CAIRN_ERROR_NOT_FOUND, change->ic->site->address,
            "the inline cache of site %llu at 0x%llx has no case for the key 0x%llx at "
            "operand %u + %d",
            (unsigned long long)site_id(change->ic->site),
            (unsigned long long)change->ic->site->address, (unsigned long long)guard->key,
            guard->operand, guard->offset);
    remove_at(change, place);
    return CAIRN_OK;
}

uint32_t ic_change_remove_key(struct ic_change *change, uint64_t key)
{
    uint32_t removed = 0;
    for (uint32_t i = change->next.count; i > 0; i--)
        if (change->next.entries[i - 1].public.guard.key == key) {
            remove_at(change, i - 1);
            removed++;
        }
    return removed;
}

void ic_change_reset(struct ic_change *change)
{
    retire_calls(change->ic->set, &change->next);
    change->next.count = 0;
    change->next.is_megamorphic = false;
    change->resets_counts = true;
}

static uint64_t hits_of(const cairn_ic *ic, const struct ic_case *entry)
{
    return __atomic_load_n(&ic->hits[entry->counter], __ATOMIC_RELAXED);
}

/* Sorts the cases by hits. Cases with equal hits keep their order. */
void ic_change_order(struct ic_change *change)
{
    uint64_t hits[CAIRN_IC_CASE_LIMIT_MAX];
    struct ic_case *entries = change->next.entries;
    for (uint32_t i = 0; i < change->next.count; i++)
        hits[i] = hits_of(change->ic, &entries[i]);
    for (uint32_t i = 1; i < change->next.count; i++) {
        struct ic_case moved = entries[i];
        uint64_t moved_hits = hits[i];
        uint32_t place = i;
        for (; place > 0 && hits[place - 1] < moved_hits; place--) {
            entries[place] = entries[place - 1];
            hits[place] = hits[place - 1];
        }
        entries[place] = moved;
        hits[place] = moved_hits;
    }
}

/* ---- Preparing: what can fail ---- */

static enum cairn_status prepare(struct ic_change *change, enum cairn_strength strength,
                                 const struct site_table **checked, struct cairn_error *error)
{
    const cairn_site *site = change->ic->site;
    enum cairn_status status = CAIRN_OK;
    if (site->table != *checked)
        status = plan_check_module(site->table, strength, error);
    *checked = site->table;
    if (status == CAIRN_OK)
        status = ic_code_make(change->ic, &change->next, &change->code, error);
    if (status != CAIRN_OK)
        return status;
    change->patch = ic_code_branch(change->ic, &change->code);
    return plan_change(&change->patch, error);
}

/* Frees code that no thread could reach. */
static void release_code(struct ic_change *change)
{
    code_block_release_stub(change->ic->site->table->block, &change->code.stub);
    change->code.stub.size = 0;
}

static enum cairn_status prepare_all(struct ic_change *changes, size_t count,
                                     enum cairn_strength strength, struct cairn_error *error)
{
    const struct site_table *checked = NULL;
    for (size_t i = 0; i < count; i++) {
        enum cairn_status status = prepare(&changes[i], strength, &checked, error);
        if (status == CAIRN_OK)
            continue;
        release_code(&changes[i]);
        while (i-- > 0) {
            plan_release(&changes[i].patch);
            release_code(&changes[i]);
        }
        return status;
    }
    return CAIRN_OK;
}

/* ---- Writing ---- */

static void retire_code(const cairn_ic *ic, struct ic_code *code)
{
    code_block_retire_stub(ic->site->table->block, &code->stub);
    code->stub.size = 0;
}

/* Handles changes that have failed. Threads may be executing their code, so it is retired. If the
 * system also refused to restore the old word, the change stays made, so that the cache matches
 * what its site does. */
static void note_failure(struct ic_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct change *patch = &changes[i].patch;
        changes[i].is_made = word_read_instruction(patch->site) == patch->bits;
        if (!changes[i].is_made)
            retire_code(changes[i].ic, &changes[i].code);
    }
}

static enum cairn_status commit(struct ic_change *changes, size_t count,
                                enum cairn_strength strength, struct cairn_error *error)
{
    const struct change_list list = {&changes[0].patch, count, sizeof *changes};
    enum cairn_status status = commit_all(&list, strength, error);
    for (size_t i = 0; i < count; i++)
        changes[i].is_made = status == CAIRN_OK;
    if (status != CAIRN_OK)
        note_failure(changes, count);
    return status;
}

/* ---- After writing ---- */

static void adopt_counters(cairn_ic *ic, struct ic_change *change)
{
    ic->counters_in_use = 0;
    for (uint32_t i = 0; i < change->next.count; i++) {
        struct ic_case *entry = &change->next.entries[i];
        ic->counters_in_use |= UINT32_C(1) << entry->counter;
        if (entry->counts_anew)
            __atomic_store_n(&ic->hits[entry->counter], 0, __ATOMIC_RELAXED);
        entry->counts_anew = false;
    }
    if (change->resets_counts)
        atomic_store_explicit(&ic->misses, 0, memory_order_relaxed);
}

static void adopt(struct ic_change *change)
{
    cairn_ic *ic = change->ic;
    adopt_counters(ic, change);
    retire_calls(ic->set, &ic->cases);
    retire_code(ic, &ic->code);
    copy_cases(&ic->cases, &change->next);
    ic->code = change->code;
}

enum cairn_status ic_changes_apply(struct ic_change *changes, size_t count,
                                   enum cairn_strength strength, struct cairn_error *error)
{
    enum cairn_status status = prepare_all(changes, count, strength, error);
    if (status == CAIRN_OK && count > 0)
        status = commit(changes, count, strength, error);
    for (size_t i = 0; i < count; i++)
        if (changes[i].is_made)
            adopt(&changes[i]);
        else
            ic_change_abandon(&changes[i]);
    return status;
}
