/*
 * patch/commit.h - the only writer of the patch words of published sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_COMMIT_H
#define PATCH_COMMIT_H

#include "patch/plan.h"

/*
 * Makes a planned change of a live site: the veneer's slot first, then one store of the patch word
 * (A, D of cairn/patch.h); no barrier. Then the change's veneer is given back, for good or ill.
 * Cannot fail in Dual mode; SYSTEM in Single mode, and then the word is as it was.
 */
enum cairn_status commit_change(struct change *change, struct cairn_error *error);

/* Makes sure that the site's note (patch/fork.c) is its instruction. */
void commit_note(cairn_site *site);

/* What the instruction is, and what the veneer that it goes to goes to, of one moment; returns that
 * veneer, or NULL. Lock-free. */
const struct site_veneer *commit_read(const cairn_site *site, uint64_t *bits,
                                      uint64_t *veneer_target);

/* Puts back the instruction that was noted in `old_bits` before the change was made, unless another
 * change has been made since or is being made. In Single mode that may fail, for want of a page;
 * then the site goes on doing the new thing. */
void commit_undo(const struct change *change);

#endif
