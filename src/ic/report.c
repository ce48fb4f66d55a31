/*
 * Describes inline caches, one by one and in a visit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "ic/cache.h"

#include "record/table.h"
#include "runtime/events.h"
#include "runtime/runtime.h"

#include <string.h>

const char *cairn_ic_state_name(enum cairn_ic_state state)
{
    static const char *const names[] = {
        [CAIRN_IC_EMPTY] = "empty",
        [CAIRN_IC_MONOMORPHIC] = "monomorphic",
        [CAIRN_IC_POLYMORPHIC] = "polymorphic",
        [CAIRN_IC_MEGAMORPHIC] = "megamorphic",
        [CAIRN_IC_DESTROYED] = "destroyed",
    };
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

/* ---- Events ---- */

enum { KEY_TEXT_BYTES = 128 };

void ic_note_change(const cairn_ic *ic, enum cairn_ic_state from, enum cairn_ic_state to,
                    uint64_t added_key)
{
    const cairn_site *site = ic->site;
    const struct log_sink *sink = code_space_sink(site->table->space);
    EVENT_PROBE4(cache, site->address, from, to, added_key);
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    uint64_t start;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_CACHE,
        .address = site->address,
        .id = site_id(site),
        .module = event_module(sink, site->table->module_number),
        .a = (uint64_t)from << 32 | (uint64_t)to,
        .b = added_key,
    };
    const char *name = event_function(table_owner(site->table->records), site->address, &start);
    char key[KEY_TEXT_BYTES];
    log_record(log, &event, name, log_describe_key(log, added_key, key, sizeof key));
}

/* ---- Single caches ---- */

/* Writes the first `count` cases that the cache has, or has seen as a megamorphic one. */
static void copy_cases(const cairn_ic *ic, struct cairn_ic_seen *seen, uint32_t count)
{
    if (count > 0 && ic->is_megamorphic)
        memcpy(seen, ic->seen->cases, count * sizeof *seen);
    for (uint32_t i = 0; i < count && !ic->is_megamorphic; i++) {
        const struct ic_case *entry = &ic->cases[i];
        seen[i] = (struct cairn_ic_seen){.entry = entry->public};
        if (ic->options.counts_hits)
            seen[i].hits = __atomic_load_n(&ic->hits[entry->counter], __ATOMIC_RELAXED);
    }
}

static enum cairn_ic_state state_locked(cairn_ic *ic)
{
    if (atomic_load_explicit(&ic->is_destroyed, memory_order_relaxed))
        return CAIRN_IC_DESTROYED;
    return ic_state_of(ic->is_megamorphic, ic->case_count);
}

static void describe_locked(cairn_ic *ic, struct cairn_ic_seen *seen, uint32_t capacity,
                            struct cairn_ic_description *description)
{
    enum cairn_ic_state state = state_locked(ic);
    bool is_destroyed = state == CAIRN_IC_DESTROYED;
    *description = (struct cairn_ic_description){
        .ic = ic,
        .site = ic->site,
        .id = site_id(ic->site),
        .address = ic->site->address,
        .state = state,
        .case_count = is_destroyed ? 0 : ic->case_count,
        .case_limit = ic->options.case_limit,
        .seen = seen,
        .table_case_count = is_destroyed ? 0 : ic_table_count(ic->table),
        .counts_hits = ic->options.counts_hits,
        .misses = atomic_load_explicit(&ic->misses, memory_order_relaxed),
        .code_bytes = is_destroyed ? 0 : ic->code.stub->code_bytes,
        .case_bytes = is_destroyed ? 0 : ic->code.case_bytes,
    };
    if (!is_destroyed && ic->is_inline) {
        description->code_bytes += ic->inline_bytes;
        description->case_bytes += ic->inline_bytes;
    }
    bool has_seen = !is_destroyed && ic->is_megamorphic;
    uint32_t count = has_seen ? ic->seen->count : description->case_count;
    description->seen_count = count < capacity ? count : capacity;
    description->other_additions = has_seen ? ic->seen->other_additions : 0;
    copy_cases(ic, seen, description->seen_count);
}

/* A visitor holds the lock already. */
void cairn_ic_describe(cairn_ic *ic, struct cairn_ic_seen *seen, uint32_t capacity,
                       struct cairn_ic_description *description)
{
    bool is_locked = cache_set_lock(ic->set);
    describe_locked(ic, seen, capacity, description);
    if (is_locked)
        cache_set_leave(ic->set);
}

enum cairn_ic_state cairn_ic_state(cairn_ic *ic)
{
    bool is_locked = cache_set_lock(ic->set);
    enum cairn_ic_state state = state_locked(ic);
    if (is_locked)
        cache_set_leave(ic->set);
    return state;
}

cairn_ic *cairn_site_ic(cairn_site *site)
{
    struct cache_set *set = site->table->ics;
    bool is_locked = cache_set_lock(set);
    cairn_ic *ic = site->ic;
    if (is_locked)
        cache_set_leave(set);
    return ic;
}

/* ---- All caches ---- */

/* A visitor may call this again: nothing changes during a visit. */
void cairn_runtime_visit_ics(cairn_runtime *runtime, cairn_ic_visitor *visit, void *user)
{
    /* The visitor may release the host's reference to the runtime. */
    cairn_runtime_retain(runtime);
    struct cache_set *set = &runtime->ics;
    bool is_locked = cache_set_lock(set);
    bool continues = true;
    for (cairn_ic *ic = set->first; ic != NULL && continues; ic = ic->next) {
        struct cairn_ic_seen seen[CAIRN_IC_CASE_LIMIT_MAX];
        struct cairn_ic_description description;
        if (ic_is_retired(ic))
            continue;
        describe_locked(ic, seen, CAIRN_IC_CASE_LIMIT_MAX, &description);
        continues = visit(&description, user);
    }
    if (is_locked)
        cache_set_leave(set);
    cairn_runtime_destroy(runtime);
}
