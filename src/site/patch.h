/*
 * site/patch.h - changing live sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_PATCH_H
#define SITE_PATCH_H

#include "site/plan.h"

/* Makes all changes or none: plans them, writes them, and executes the barrier that `strength`
 * requests. The sites must be distinct and have the form (plan_check_live). Allocates nothing for
 * the list itself. The errors are those of cairn_sites_change. */
enum cairn_status patch_live(const struct change_list *list, enum site_form form,
                             enum cairn_strength strength, struct cairn_error *error);

/* Checks that no two changes are of the same site, in linear time. CONFLICT, MEMORY. */
enum cairn_status patch_check_distinct(const struct change_list *list, struct cairn_error *error);

#endif
