/*
 * patch/commit.h - the only writer of published sites.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_COMMIT_H
#define PATCH_COMMIT_H

#include "patch/plan.h"

/*
 * Makes a planned change of a live site: the veneer's slot first, then one store of the patch
 * word (A, D of cairn/patch.h). No barrier. Cannot fail in Dual mode; SYSTEM in Single mode, and
 * then the word is as it was.
 */
enum cairn_status commit_change(const struct change *change, struct cairn_error *error);

#endif
