/*
 * patch/patch.h - what has to hold before a site may be changed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_PATCH_H
#define PATCH_PATCH_H

#include "patch/plan.h"

/* The space is this process's own, the module is not retired, and `strength` can be had. */
enum cairn_status patch_check_module(const struct site_table *sites, enum cairn_strength strength,
                                     struct cairn_error *error);

/* The site may be changed by one store while threads execute it. */
enum cairn_status patch_check_live(const cairn_site *site, struct cairn_error *error);

/* Plans a call, jump or no-op after checking its target. */
enum cairn_status patch_plan(cairn_site *site, enum arch_branch branch, const void *target,
                             struct change *change, struct cairn_error *error);

#endif
