/* SPDX-License-Identifier: MIT */
#include "patch/plan.h"

struct change plan_restore(cairn_site *site)
{
    if (site->keeps_original)
        return (struct change){.site = site, .original = true};
    return plan_branch(site, (enum arch_branch)site->initial_branch, site->initial.target);
}

static enum cairn_status plan_through_veneer(struct change *change, struct cairn_error *error)
{
    enum cairn_status status = veneers_take(change->site, change->branch, &change->veneer, error);
    if (status == CAIRN_OK)
        change->bits = change->veneer->bits;
    return status;
}

enum cairn_status plan_change(struct change *change, struct cairn_error *error)
{
    const cairn_site *site = change->site;
    change->veneer = NULL;
    if (change->original) {
        change->bits = site->initial.bits;
        return CAIRN_OK;
    }
    if (site->table->arch->encode_branch(change->branch, word_instruction_address(site),
                                         change->target, site->instruction_length, &change->bits))
        return CAIRN_OK;
    return plan_through_veneer(change, error);
}
