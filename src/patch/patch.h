/*
 * patch/patch.h - what has to hold before a site may be changed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_PATCH_H
#define PATCH_PATCH_H

#include "patch/plan.h"

/* The strength is one and can be had, the module is not retired, and the space is this process's
 * own (it is made so). ARGUMENT, UNSUPPORTED, STATE, SYSTEM. */
enum cairn_status patch_check_module(const struct site_table *sites, enum cairn_strength strength,
                                     struct cairn_error *error);

/* Of a site that patch_check_live does not let through. UNMANAGED, STATE. */
enum cairn_status patch_refuse(const cairn_site *site, struct cairn_error *error);

/* The site may be changed by one store while threads execute it. UNMANAGED, STATE. */
static inline enum cairn_status patch_check_live(const cairn_site *site, struct cairn_error *error)
{
    bool written = atomic_load_explicit(&site->form, memory_order_relaxed) == SITE_FORM_WRITTEN;
    return site->live && !written ? CAIRN_OK : patch_refuse(site, error);
}

/* A branch has a target. ARGUMENT. */
enum cairn_status patch_check_target(const cairn_site *site, const void *target,
                                     struct cairn_error *error);

/* Makes planned changes of live sites of one runtime, and the barrier that `strength` asks for: all
 * or none. MEMORY, SYSTEM, UNSUPPORTED. */
enum cairn_status patch_commit(const struct change_list *list, enum cairn_strength strength,
                               struct cairn_error *error);

/* The barrier that `strength` asks for. */
enum cairn_status patch_synchronise(struct code_space *space, enum cairn_strength strength,
                                    struct cairn_error *error);

#endif
