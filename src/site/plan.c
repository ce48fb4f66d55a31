/* SPDX-License-Identifier: MIT */
#include "site/plan.h"

#include "base/error.h"

/* ---- Checks ---- */

enum cairn_status plan_check_module(const struct site_table *sites, enum cairn_strength strength,
                                    struct cairn_error *error)
{
    if ((unsigned)strength > CAIRN_QUIESCENT)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no strength number %u",
                         (unsigned)strength);
    if (strength != CAIRN_RELAXED && !code_space_can_synchronise(sites->space))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this system has no membarrier with SYNC_CORE (Linux 4.16), so other "
                         "cores cannot be made to see a patch at once: patch with CAIRN_RELAXED");
    if (atomic_load_explicit(&sites->retired, memory_order_acquire))
        return error_set(error, CAIRN_ERROR_STATE, 0, "the site's module has been retired");
    if (!code_space_is_own(sites->space))
        return code_space_after_fork(sites->space, error);
    return CAIRN_OK;
}

enum cairn_status plan_refuse(const cairn_site *site, enum site_form form,
                              struct cairn_error *error)
{
    if (form == SITE_FORM_WRITTEN)
        return error_set(error, CAIRN_ERROR_STATE, site->address,
                         "site %llu at 0x%llx holds bytes of the host: restore it first, with "
                         "CAIRN_QUIESCENT",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
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

struct change plan_restore(cairn_site *site)
{
    if (site->keeps_original)
        return (struct change){.site = site, .original = true};
    struct change change =
        plan_branch(site, (enum arch_branch)site->initial_branch, site->initial.target);
    change.is_direct = site->initial_direct;
    return change;
}

/* Refuses a call at a site that neither saves nor reloads the TOC pointer, because it would return
 * with the callee's TOC pointer. */
static enum cairn_status check_toc(const struct change *change, struct cairn_error *error)
{
    const cairn_site *site = change->site;
    const struct cairn_arch *arch = site->table->arch;
    if (change->branch != ARCH_BRANCH_CALL || arch->toc_save_offset == 0 || site->saves_toc ||
        veneers_frame_calls(site))
        return CAIRN_OK;
    if (site->kind == CAIRN_RECORD_STATEPOINT)
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "site %llu at 0x%llx: a statepoint's call has to return to the end of its "
                         "bytes, and the TOC's reload lies behind the call: only a jump or a no-op "
                         "fits",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    return error_set(error, CAIRN_ERROR_RANGE, site->address,
                     "site %llu at 0x%llx has no space around its branch for the TOC's save and "
                     "reload: a call takes %zu bytes with them, so only a jump or a no-op fits",
                     (unsigned long long)site_id(site), (unsigned long long)site->address,
                     arch->call_bytes);
}

static bool needs_veneer(const struct change *change)
{
    if (change->branch == ARCH_BRANCH_CALL && veneers_frame_calls(change->site))
        return true;
    return change->site->table->arch->calls_need_veneer && !change->is_direct &&
           change->branch != ARCH_BRANCH_NOP;
}

static bool encode_straight(struct change *change)
{
    const cairn_site *site = change->site;
    return !needs_veneer(change) &&
           site->table->arch->encode_branch((enum arch_branch)change->branch,
                                            word_instruction_address(site), change->target,
                                            site->instruction_length, &change->bits);
}

static enum cairn_status plan_through_veneer(struct change *change, struct cairn_error *error)
{
    if (change->is_direct && change->site->table->arch->has_descriptors)
        return error_set(error, CAIRN_ERROR_RANGE, change->site->address,
                         "the place 0x%llx that LLVM's call goes to is out of the branch's reach, "
                         "and has no descriptor for a veneer",
                         (unsigned long long)change->target);
    enum cairn_status status =
        veneers_take(change->site, (enum arch_branch)change->branch, &change->veneer, error);
    if (status == CAIRN_OK)
        change->bits = change->veneer->bits;
    return status;
}

enum cairn_status plan_change(struct change *change, struct cairn_error *error)
{
    change->veneer = NULL;
    change->is_settled = false;
    if (change->original) {
        change->bits = change->site->initial.bits;
        return CAIRN_OK;
    }
    enum cairn_status status = check_toc(change, error);
    if (status != CAIRN_OK || encode_straight(change))
        return status;
    return plan_through_veneer(change, error);
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
