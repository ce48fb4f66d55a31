/*
 * patch/plan.h - from what a site is to do to the bits that make it do so.
 *
 * Planning may fail and writes nothing that an executing thread can see; committing (commit.h)
 * cannot fail in Dual mode.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_PLAN_H
#define PATCH_PLAN_H

#include "patch/site.h"

struct change {
    cairn_site *site;
    uint64_t bits;              /* of the instruction */
    struct site_veneer *veneer; /* that the instruction goes to; NULL: straight to the target */
    uint64_t target;            /* of the veneer */
};

/* A branch at the site. The target may be anywhere. RANGE, MEMORY, FULL, SYSTEM. */
enum cairn_status plan_branch(cairn_site *site, enum arch_branch branch, uint64_t target,
                              struct change *change, struct cairn_error *error);

/* What a live site was at first. Its veneer, if it needs one, exists. */
enum cairn_status plan_restore(cairn_site *site, struct change *change, struct cairn_error *error);

/* ---- The patch word ---- */

uint8_t plan_word_shift(const cairn_site *site);

/* Ones where the instruction is in the word. */
static inline uint64_t plan_instruction_mask(const cairn_site *site)
{
    return (UINT64_MAX >> (64 - 8 * site->instruction_length)) << site->word_shift;
}

/* The word as it is executed at this moment. */
uint64_t plan_read_word(const cairn_site *site);

#endif
