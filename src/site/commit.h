/*
 * site/commit.h - the only writer of the patch words of published sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_COMMIT_H
#define SITE_COMMIT_H

#include "site/plan.h"

/*
 * Makes all changes of the list, which is not empty: writes the slots of their veneers, then the
 * patch words with one store each (A and D of site/commit.c), and then executes the barrier that
 * `strength` requests. Releases the veneers in any case. `*made` is the number of changes that have
 * been made, from the first one on: with a dual mapping all of them.
 *
 * Errors: SYSTEM: the barrier was refused, after all changes have been made. With a single mapping
 * also MEMORY and SYSTEM, after which `*made` is less than the number of changes.
 */
enum cairn_status commit_all(const struct change_list *list, enum cairn_strength strength,
                             size_t *made, struct cairn_error *error);

/* Executes the barrier that `strength` requests, for everything that was written before. SYSTEM. */
enum cairn_status commit_barrier(struct code_space *space, enum cairn_strength strength,
                                 struct cairn_error *error);

#endif
