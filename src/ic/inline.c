/*
 * The first case of a cache, or its first two cases, in the site's own bytes (site/inline.h).
 *
 * While the bytes are in use, the site's word is a no-op, the bytes test these cases, and a miss
 * branches to a stub with the other cases. A change that keeps them makes that branch go to a new
 * stub. Any other change makes the word branch to a stub with all cases. The bytes then wait for a
 * grace period, at whose end the cache uses them again.
 *
 * A second case that is added later is in the stub first, because threads may be in the bytes. If
 * both would fit, the word branches to a stub with all cases at the end of a grace period, and both
 * are in the bytes from the end of the next one on. So only hosts that end grace periods pay for
 * this, and a site's cases are elsewhere for only one of them.
 *
 * All functions are called with the set's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/inline.h"
#include "base/error.h"
#include "ic/cache.h"

#include <assert.h>
#include <string.h>

/* ---- The bytes ---- */

static void set_holds(cairn_site *site, bool holds)
{
    atomic_store_explicit(&site->holds_inline, holds, memory_order_release);
}

static enum cairn_status write_bytes(cairn_site *site, const uint8_t *bytes,
                                     struct cairn_error *error)
{
    enum cairn_status status =
        code_block_write(site->table->block, inline_address(site), bytes, inline_size(site), error);
    if (status == CAIRN_OK)
        memcpy(site->inlined->bytes, bytes, inline_size(site));
    return status;
}

void ic_inline_restore(cairn_site *site)
{
    struct site_table *sites = site->table;
    const uint8_t *initial = sites->initial_bytes + site->bytes_offset + site->return_offset;
    if (!atomic_load_explicit(&site->holds_inline, memory_order_relaxed))
        return;
    if (write_bytes(site, initial, NULL) == CAIRN_OK &&
        code_space_synchronise(sites->space, NULL) == CAIRN_OK)
        set_holds(site, false);
}

/* ---- The branch of a miss ---- */

/* Encodes it in a copy of the bytes, so that setting it cannot fail with a dual mapping. */
static enum cairn_status encode_miss(struct ic_change *change, struct cairn_error *error)
{
    const cairn_ic *ic = change->ic;
    const cairn_site *site = ic->site;
    const struct site_table *sites = site->table;
    uint64_t address = inline_address(site) + ic->inline_miss;
    memcpy(change->inline_bytes, site->inlined->bytes, inline_size(site));
    if (!arch_host_cache_encoder()->encode_miss(sites->arch, address, change->code.stub->address,
                                                change->inline_bytes + ic->inline_miss))
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "the code of an inline cache is out of reach of site %llu at 0x%llx",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return CAIRN_OK;
}

/* Stores the word that contains it. */
static enum cairn_status set_miss(struct ic_change *change, struct cairn_error *error)
{
    const cairn_site *site = change->ic->site;
    size_t size = site->table->arch->word_bytes;
    size_t word = change->ic->inline_miss / size * size;
    enum cairn_status status = code_block_write(site->table->block, inline_address(site) + word,
                                                change->inline_bytes + word, size, error);
    change->has_set_miss = status == CAIRN_OK;
    if (change->has_set_miss)
        memcpy(site->inlined->bytes + word, change->inline_bytes + word, size);
    return status;
}

/* ---- After a grace period ---- */

/* Frees the description of a site that was destroyed, unless it still waits. */
static void free_unused(struct site_inline *inlined)
{
    struct cache_set *set = inlined->set;
    if (inlined->state != INLINE_WAITING && !inlined->is_joining)
        memory_free(&set->allocator, inlined, sizeof *inlined);
}

static size_t free_bytes(struct grace_entry *entry)
{
    _Static_assert(offsetof(struct site_inline, retired) == 0, "it begins with its entry");
    struct site_inline *inlined = (struct site_inline *)(void *)entry;
    struct cache_set *set = inlined->set;
    if (cache_set_enter(set, NULL) != CAIRN_OK)
        return 0; /* the bytes are not used any more */
    cairn_site *site = inlined->site;
    inlined->state = INLINE_FREE;
    if (site == NULL)
        free_unused(inlined);
    else if (site->ic != NULL)
        ic_change_again(site->ic, false);
    else if (!atomic_load_explicit(&site->table->retired, memory_order_acquire))
        ic_inline_restore(site);
    cache_set_leave(set);
    return 0;
}

static void retire_bytes(struct site_inline *inlined)
{
    inlined->state = INLINE_WAITING;
    grace_retire(code_space_grace(inlined->set->space), &inlined->retired, free_bytes);
}

/* Leaves the bytes, so that the first two cases can be written to them together. */
static size_t join(struct grace_entry *entry)
{
    char *address = (char *)entry - offsetof(struct site_inline, joining);
    struct site_inline *inlined = (struct site_inline *)(void *)address;
    struct cache_set *set = inlined->set;
    if (cache_set_enter(set, NULL) != CAIRN_OK)
        return 0;
    inlined->is_joining = false;
    const cairn_ic *ic = inlined->site == NULL ? NULL : inlined->site->ic;
    if (inlined->site == NULL)
        free_unused(inlined);
    else if (ic != NULL && ic->is_inline && ic->inline_count == 1 && ic->case_count > 1)
        ic_change_again(inlined->site->ic, true);
    cache_set_leave(set);
    return 0;
}

static void join_later(struct site_inline *inlined)
{
    if (inlined->is_joining)
        return;
    inlined->is_joining = true;
    grace_retire(code_space_grace(inlined->set->space), &inlined->joining, join);
}

/* ---- Beginning and end ---- */

enum cairn_status ic_inline_prepare(cairn_ic *ic, struct cairn_error *error)
{
    cairn_site *site = ic->site;
    ic->may_inline = inline_is_possible(site) && code_space_can_synchronise(ic->set->space);
    if (!ic->may_inline || site->inlined != NULL)
        return CAIRN_OK;
    struct site_inline *inlined = memory_new(&ic->set->allocator, 1, sizeof *inlined);
    if (inlined == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an inline cache");
    inlined->set = ic->set;
    inlined->site = site;
    memcpy(inlined->bytes, site->table->initial_bytes + site->bytes_offset + site->return_offset,
           inline_size(site));
    site->inlined = inlined;
    return CAIRN_OK;
}

void ic_inline_end(cairn_ic *ic)
{
    struct site_inline *inlined = ic->site->inlined;
    if (inlined == NULL || ic_is_retired(ic))
        return;
    if (ic->is_inline)
        retire_bytes(inlined);
    else if (inlined->state == INLINE_FREE)
        ic_inline_restore(ic->site);
    ic->is_inline = false;
}

void ic_inline_unload(struct site_inline *inlined)
{
    struct cache_set *set = inlined->set;
    if (cache_set_enter(set, NULL) != CAIRN_OK)
        return;
    inlined->site = NULL;
    free_unused(inlined);
    cache_set_leave(set);
}

/* ---- Changes ---- */

bool ic_inline_encode(struct ic_change *change, const struct arch_cache *cache, uint64_t miss)
{
    const cairn_site *site = change->ic->site;
    const struct cairn_arch *arch = site->table->arch;
    change->inlined = (struct arch_cache_inline){
        .address = inline_address(site), .miss = miss, .has_second = change->inline_count > 1};
    return arch_host_cache_encoder()->encode_inline(arch, cache, &change->inlined,
                                                    change->inline_bytes);
}

static bool is_same_case(const struct ic_case *own, const struct ic_case *other)
{
    return other->call == NULL && ic_same_guard(&own->public.guard, &other->public.guard) &&
           ic_same_action(&own->public, &other->public) && own->counter == other->counter;
}

/* Whether the change has the cases that are in the bytes, in the same order. */
static bool keeps_cases(const struct ic_change *change)
{
    const cairn_ic *ic = change->ic;
    bool keeps = !change->leaves_inline && change->case_count >= ic->inline_count;
    for (uint32_t i = 0; i < ic->inline_count && keeps; i++)
        keeps = is_same_case(&ic->cases[i], &change->cases[i]);
    return keeps;
}

/* Whether the bytes have space for so many cases. It does not depend on where misses continue. */
static bool fits(struct ic_change *change, const struct arch_cache *cache, uint32_t count)
{
    change->inline_count = count;
    return change->case_count >= count &&
           ic_inline_encode(change, cache, inline_address(change->ic->site));
}

enum ic_way ic_inline_choose(struct ic_change *change, const struct arch_cache *cache)
{
    const cairn_ic *ic = change->ic;
    const cairn_site *site = ic->site;
    const struct arch_cache_encoder *encoder = arch_host_cache_encoder();
    bool is_selected = encoder->selects_cases != NULL && encoder->selects_cases(cache);
    if (!ic->may_inline || !inline_is_possible(site))
        return IC_WAY_BRANCH;
    /* The code can call only if the site calls it. */
    bool others_call = cache->miss_target != 0;
    for (uint32_t i = 1; i < change->case_count; i++)
        others_call |= cache->cases[i].action == ARCH_CACHE_JUMP;
    if (change->case_count == 0 || is_selected || others_call)
        return IC_WAY_BRANCH;
    if (ic->is_inline && !keeps_cases(change))
        return IC_WAY_BRANCH;
    if (ic->is_inline) {
        change->may_join = ic->inline_count == 1 && fits(change, cache, 2);
        change->inline_count = ic->inline_count;
        return IC_WAY_KEEP;
    }
    bool has_space =
        site->inlined->state == INLINE_FREE && (fits(change, cache, 2) || fits(change, cache, 1));
    return has_space ? IC_WAY_ENTER : IC_WAY_BRANCH;
}

bool ic_inline_prepare_call(cairn_ic *ic)
{
    cairn_site *site = ic->site;
    if (site->inlined != NULL && site->inlined->state == INLINE_FREE)
        ic_inline_restore(site);
    return !atomic_load_explicit(&site->holds_inline, memory_order_relaxed);
}

enum cairn_status ic_inline_write(struct ic_change *changes, size_t count,
                                  struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    bool has_written = false;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++) {
        cairn_site *site = changes[i].ic->site;
        if (changes[i].way != IC_WAY_ENTER)
            continue;
        set_holds(site, true);
        status = write_bytes(site, changes[i].inline_bytes, error);
        has_written = true;
    }
    if (status == CAIRN_OK && has_written)
        status = code_space_synchronise(changes->ic->set->space, error);
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        if (changes[i].way == IC_WAY_KEEP)
            status = encode_miss(&changes[i], error);
    return status;
}

enum cairn_status ic_inline_set_misses(struct ic_change *changes, size_t count,
                                       struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        if (changes[i].way == IC_WAY_KEEP)
            status = set_miss(&changes[i], error);
    for (size_t i = 0; i < count && status != CAIRN_OK; i++)
        plan_release(&changes[i].patch);
    return status;
}

void ic_inline_adopt(const struct ic_change *change)
{
    cairn_ic *ic = change->ic;
    if (change->way == IC_WAY_BRANCH) {
        if (ic->is_inline)
            retire_bytes(ic->site->inlined);
        ic->is_inline = false;
        return;
    }
    if (change->may_join)
        join_later(ic->site->inlined);
    if (change->way == IC_WAY_KEEP)
        return;
    ic->is_inline = true;
    ic->inline_count = change->inline_count;
    ic->inline_miss = change->inlined.miss_offset;
    ic->inline_bytes = change->inlined.code_bytes;
    ic->site->inlined->state = INLINE_IN_USE;
}
