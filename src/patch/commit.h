/*
 * patch/commit.h - the only writer of the patch words of published sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_COMMIT_H
#define PATCH_COMMIT_H

#include "patch/plan.h"

/*
 * Makes the changes: for each the veneer's slot first, then one store of the patch word (A, D of
 * cairn/patch.h); then the barrier that `strength` asks for. Then the veneers are given back, for
 * good or ill. MEMORY, SYSTEM, UNSUPPORTED: each site does what it would do if the changes had not
 * been made, as far as code_space_write_all promises it. In Single mode, undoing after a barrier
 * that was refused may be refused, too; then the sites go on doing the new thing, and the sentence
 * says so.
 */
enum cairn_status commit_all(struct code_space *space, const struct change_list *list,
                             enum cairn_strength strength, struct cairn_error *error);

/* Whether a change of the site without a barrier is a store that cannot fail; and that change. */
static inline bool commit_is_at_once(const cairn_site *site)
{
    return site->table->alias_distance != 0;
}
void commit_at_once(struct change *change);

/* Makes sure that the site's note (patch/fork.c) is its instruction. */
void commit_note(cairn_site *site);

/* What the instruction is, and what the veneer that it goes to goes to, of one moment; returns that
 * veneer, or NULL. Lock-free. */
const struct site_veneer *commit_read(const cairn_site *site, uint64_t *bits,
                                      uint64_t *veneer_target);

#endif
