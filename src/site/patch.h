/*
 * site/patch.h - the preconditions of changing a site.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_PATCH_H
#define SITE_PATCH_H

#include "site/plan.h"

/* Checks that the strength is valid and supported, and that the module is not retired. In a forked
 * child, makes the code space the child's own. ARGUMENT, UNSUPPORTED, STATE, SYSTEM. */
enum cairn_status patch_check_module(const struct site_table *sites, enum cairn_strength strength,
                                     struct cairn_error *error);

/* Returns why patch_check_live refuses a site with this form. The caller passes the form that it
 * has decided by, because the site may have lost its inline cache since. UNMANAGED, STATE. */
enum cairn_status patch_refuse(const cairn_site *site, enum site_form form,
                               struct cairn_error *error);

/* Checks that the site can be changed by one store while threads execute it, and has no inline
 * cache. UNMANAGED, STATE. */
static inline enum cairn_status patch_check_live(const cairn_site *site, struct cairn_error *error)
{
    enum site_form form = (enum site_form)atomic_load_explicit(&site->form, memory_order_relaxed);
    return site->live && form == SITE_FORM_INITIAL ? CAIRN_OK : patch_refuse(site, form, error);
}

/* Makes a change of a live site. The preconditions must have been checked. The errors are those of
 * cairn_site_call. */
enum cairn_status patch_live(struct change *change, enum cairn_strength strength,
                             struct cairn_error *error);

/* Checks that a branch has a target. ARGUMENT. */
enum cairn_status patch_check_target(const cairn_site *site, const void *target,
                                     struct cairn_error *error);

/* Executes the barrier that `strength` requests. */
enum cairn_status patch_synchronise(struct code_space *space, enum cairn_strength strength,
                                    struct cairn_error *error);

#endif
