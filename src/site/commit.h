/*
 * site/commit.h - the only writer of the patch words of published sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_COMMIT_H
#define SITE_COMMIT_H

#include "site/plan.h"

/*
 * Makes all changes of the list, which is not empty, or none. For each change, writes the slot of
 * its veneer, and then the patch word with one store (A and D of cairn/patch.h). Then executes the
 * barrier that `strength` requests. Releases the veneers in any case.
 *
 * Errors: MEMORY, SYSTEM, UNSUPPORTED. After an error each site does what it would do without the
 * changes, as far as code_space_write_all guarantees that. With a single mapping, undoing after a
 * refused barrier may be refused, too. The sites then keep the new instructions, and the error
 * message says so.
 */
enum cairn_status commit_all(const struct change_list *list, enum cairn_strength strength,
                             struct cairn_error *error);

/* Makes a change of a site with a dual mapping, without a barrier: one store, which cannot fail. */
void commit_at_once(struct change *change);

/* Updates the site's note of its instruction (site/fork.c). */
void commit_note(cairn_site *site);

#endif
