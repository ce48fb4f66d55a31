/*
 * site/patch.h - changing live sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_PATCH_H
#define SITE_PATCH_H

#include "site/plan.h"

/*
 * Many sites change in three steps: plan_all (site/plan.h) does everything that can fail; the
 * writes follow; then one barrier. What changes sites for the host is a client of these functions:
 * lists, invalidations, assumptions, entries; caches, which have events of their own, use
 * commit_all.
 *
 * The sites of a list must be distinct. `*made` is the number of changes that have been made, from
 * the first one on. The errors are those of cairn_sites_change.
 */

/* Plans the changes, of sites without inline caches, and commits them. Allocates nothing for the
 * list itself. */
enum cairn_status patch_live(const struct change_list *list, enum cairn_strength strength,
                             size_t *made, struct cairn_error *error);

/* Commits planned changes: writes them, with events, and executes the barrier. SYSTEM, MEMORY. */
enum cairn_status patch_commit(const struct change_list *list, enum cairn_strength strength,
                               size_t *made, struct cairn_error *error);

/* Executes the barrier for earlier changes: for a client that is called again and finds nothing
 * left to change. ARGUMENT, UNSUPPORTED, SYSTEM. */
enum cairn_status patch_barrier(struct code_space *space, enum cairn_strength strength,
                                struct cairn_error *error);

/* Checks that no two changes are of the same site, in linear time. CONFLICT, MEMORY. */
enum cairn_status patch_check_distinct(const struct change_list *list, struct cairn_error *error);

#endif
