/* SPDX-License-Identifier: MIT */
#include "site/plan.h"

#include "base/error.h"

#include <assert.h>

/* ---- Checks ---- */

enum cairn_status plan_check_strength(struct code_space *space, enum cairn_strength strength,
                                      struct cairn_error *error)
{
    if ((unsigned)strength > CAIRN_QUIESCENT)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "`strength` is %u, not one of 0 to 2",
                         (unsigned)strength);
    if (strength != CAIRN_RELAXED && !code_space_can_synchronise(space))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this system has no membarrier with SYNC_CORE (Linux 4.16), so other "
                         "cores cannot be made to see a patch at once: patch with CAIRN_RELAXED");
    return CAIRN_OK;
}

enum cairn_status plan_check_module(const struct site_table *sites, enum cairn_strength strength,
                                    struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (strength != CAIRN_RELAXED)
        status = plan_check_strength(sites->space, strength, error);
    return status == CAIRN_OK ? code_space_check_own(sites->space, error) : status;
}

enum cairn_status plan_refuse(const cairn_site *site, enum site_form form,
                              struct cairn_error *error)
{
    if (form == SITE_FORM_CACHE)
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx has an inline cache: destroy that first",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return error_set(error, CAIRN_ERROR_UNMANAGED, site->address,
                     "site %llu at 0x%llx cannot be patched live: %s",
                     (unsigned long long)site_id(site), (unsigned long long)site->address,
                     site->reason);
}

/* ---- The instruction ---- */

struct change plan_branch(cairn_site *site, enum cairn_site_state branch, uint64_t target)
{
    struct change change = {0};
    plan_set_branch(&change, site, branch, target);
    return change;
}

struct change plan_restore(cairn_site *site)
{
    if (site->keeps_original)
        return (struct change){.site = site, .original = true};
    struct change change =
        plan_branch(site, (enum cairn_site_state)site->initial_branch, site->initial.target);
    change.is_direct = site->initial_direct;
    return change;
}

/* Refuses a call that would return with the callee's TOC pointer. */
static enum cairn_status refuse_call(const cairn_site *site, struct cairn_error *error)
{
    if (site->kind == CAIRN_RECORD_STATEPOINT)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site %llu at 0x%llx: a statepoint's call has to return to the end of its "
                         "bytes, and the TOC's reload follows the call: only a jump or a no-op "
                         "fits",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return error_set(error, CAIRN_ERROR_RANGE, site->address,
                     "site %llu at 0x%llx has no space around its branch for the TOC's save and "
                     "reload: a call takes %zu bytes with them, so only a jump or a no-op fits",
                     (unsigned long long)site_id(site), (unsigned long long)site->address,
                     site->table->arch->call_bytes);
}

/* Notes that calls may return into the bytes after the word. Refuses the call if threads may be in
 * an inline cache's code there. STATE. */
static enum cairn_status note_call(cairn_site *site, struct cairn_error *error)
{
    if (atomic_load_explicit(&site->holds_inline, memory_order_acquire))
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx cannot be a call yet, because threads may be in the "
                         "code that an inline cache has left there: end a grace period first",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    atomic_store_explicit(&site->was_called, true, memory_order_relaxed);
    return CAIRN_OK;
}

/* Encodes the no-op. A site with space for an inline cache's code jumps over that space. */
static void encode_nop(struct change *change)
{
    const cairn_site *site = change->site;
    const struct cairn_arch *arch = site->table->arch;
    bool skips = site->has_inline_space && !change->falls_through;
    bool is_encoded = arch->encode_branch(
        arch, skips ? CAIRN_SITE_JUMP : CAIRN_SITE_NOP, word_instruction_address(site),
        site->address + site->byte_count, site->instruction_length, &change->bits);
    assert(is_encoded);
    (void)is_encoded;
}

/* Whether a call at the site keeps the caller's TOC pointer, where the architecture has one. */
static bool can_be_call(const cairn_site *site)
{
    return site->table->arch->toc_save_offset == 0 || site->saves_toc || veneers_frame_calls(site);
}

/* Encodes a branch to the change's target, with a veneer where it needs one. */
static enum cairn_status encode_target(struct change *change, struct cairn_error *error)
{
    cairn_site *site = change->site;
    const struct cairn_arch *arch = site->table->arch;
    const enum cairn_site_state branch = (enum cairn_site_state)change->branch;
    bool is_framed = branch == CAIRN_SITE_CALL && veneers_frame_calls(site);
    if (branch == CAIRN_SITE_CALL && !can_be_call(site))
        return refuse_call(site, error);
    bool needs_veneer = is_framed || (arch->calls_need_veneer && !change->is_direct);
    if (!needs_veneer &&
        arch->encode_branch(arch, branch, word_instruction_address(site), change->target,
                            site->instruction_length, &change->bits))
        return CAIRN_OK;
    if (change->is_direct && arch->has_descriptors)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "the place 0x%llx that LLVM's call goes to is out of the branch's reach, "
                         "and has no descriptor for a veneer",
                         (unsigned long long)change->target);
    enum cairn_status status = veneers_take(site, branch, &change->veneer, error);
    if (status == CAIRN_OK)
        change->bits = change->veneer->bits;
    return status;
}

enum cairn_status plan_change(struct change *change, struct cairn_error *error)
{
    cairn_site *site = change->site;
    enum cairn_status status = CAIRN_OK;
    change->veneer = NULL;
    if (change->original) {
        change->bits = site->initial.bits;
        return CAIRN_OK;
    }
    if (change->branch == CAIRN_SITE_NOP) {
        encode_nop(change);
        return CAIRN_OK;
    }
    if (change->branch == CAIRN_SITE_CALL && site->has_inline_space)
        status = note_call(site, error);
    return status == CAIRN_OK ? encode_target(change, error) : status;
}

/* While `count` changes are in progress, each has one veneer, and the instruction branches to at
 * most one other. */
enum cairn_status plan_reserve(cairn_site *site, uint32_t count, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (can_be_call(site))
        status = veneers_reserve(site, CAIRN_SITE_CALL, (size_t)count + 1, error);
    return status == CAIRN_OK ? veneers_reserve(site, CAIRN_SITE_JUMP, (size_t)count + 1, error)
                              : status;
}

enum cairn_status plan_all(const struct change_list *list, enum site_form form,
                           enum cairn_strength strength, struct cairn_error *error)
{
    const struct site_table *checked = NULL;
    for (size_t i = 0; i < list->count; i++) {
        enum cairn_status status = plan_one(change_at(list, i), form, strength, &checked, error);
        if (status == CAIRN_OK)
            continue;
        while (i-- > 0)
            plan_release(change_at(list, i));
        return status;
    }
    return CAIRN_OK;
}
