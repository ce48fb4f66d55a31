/*
 * patch/commit.h - the only writer of the patch words of published sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_COMMIT_H
#define PATCH_COMMIT_H

#include "patch/plan.h"

/*
 * Makes planned changes of live sites of one runtime. Each is the veneer's slot first, then one
 * store of the patch word (A, D of cairn/patch.h); no barrier. What commit_undo needs is noted if
 * the changes may be undone. Then the changes' veneers are given back. Cannot fail in Dual mode.
 * Otherwise MEMORY, SYSTEM or UNSUPPORTED, and then no site is changed, as far as
 * code_space_write_all promises it.
 */
enum cairn_status commit_changes(const struct change_list *list, bool may_be_undone,
                                 struct cairn_error *error);

/* The same for one change that is not undone. */
enum cairn_status commit_change(struct change *change, struct cairn_error *error);

/* Makes sure that the site's note (patch/fork.c) is its instruction. */
void commit_note(cairn_site *site);

/* What the instruction is, and what the veneer that it goes to goes to, of one moment; returns that
 * veneer, or NULL. Lock-free. */
const struct site_veneer *commit_read(const cairn_site *site, uint64_t *bits,
                                      uint64_t *veneer_target);

/* Undoes changes that were made: each site gets the instruction noted in `old_bits`, unless another
 * change of it has been made since or is being made. Cannot fail in Dual mode. Otherwise as
 * commit_changes; if it fails, the sites go on doing the new thing. */
enum cairn_status commit_undo(const struct change_list *list, struct cairn_error *error);

#endif
