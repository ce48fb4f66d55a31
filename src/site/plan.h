/*
 * site/plan.h - from what a site is to do to the bits of its instruction.
 *
 * Planning may fail, and writes nothing that executing threads can see. Committing (commit.h)
 * cannot fail in dual mapping.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_PLAN_H
#define SITE_PLAN_H

#include "site/site.h"
#include "site/veneers.h"

struct change {
    cairn_site *site;
    /* The requested change. */
    uint64_t target;
    uint8_t branch;  /* enum arch_branch */
    bool is_direct;  /* whether the target is a place in code, not a function pointer
                      * (arch/arch.h) */
    bool original;   /* whether the change restores LLVM's own instruction */
    bool is_settled; /* set by site/commit.c; planning sets it to false */
    /* Set by site/commit.c: the change's number, and the site's count of undone changes before
     * it. */
    uint32_t sequence;
    uint32_t undone;
    /* Set by plan_change. */
    uint64_t bits;              /* the instruction */
    struct site_veneer *veneer; /* the veneer that it branches to, taken; NULL for a direct
                                 * branch */
    /* While the change is undone: the instruction that it has written, and the one to write. */
    uint64_t undo_from;
    uint64_t undo_to;
};

/* Changes of live sites of one space that are made together. Each is part of an element of `stride`
 * bytes. */
struct change_list {
    struct change *first;
    size_t count;
    size_t stride;
};

static inline struct change *change_at(const struct change_list *list, size_t index)
{
    return (struct change *)(void *)((char *)list->first + index * list->stride);
}

/* Initialises a change that makes the site a branch. The target may be anywhere. Leaves out the
 * members that plan_change and site/commit.c set, because batches have thousands of changes. */
static inline void plan_set_branch(struct change *change, cairn_site *site, enum arch_branch branch,
                                   uint64_t target)
{
    change->site = site;
    change->target = target;
    change->branch = (uint8_t)branch;
    change->is_direct = false;
    change->original = false;
}

static inline struct change plan_branch(cairn_site *site, enum arch_branch branch, uint64_t target)
{
    struct change change = {0};
    plan_set_branch(&change, site, branch, target);
    return change;
}

/* Returns the change that restores the site's initial instruction. */
struct change plan_restore(cairn_site *site);

/* Computes the bits of the instruction, and takes a veneer if the target is out of reach. MEMORY,
 * FULL, SYSTEM, RANGE. */
enum cairn_status plan_change(struct change *change, struct cairn_error *error);
/* Releases the veneer, when the change has been made or is abandoned. */
static inline void plan_release(struct change *change)
{
    if (change->veneer != NULL)
        veneers_give_back(change->veneer);
    change->veneer = NULL;
}

static inline void plan_release_all(const struct change_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        plan_release(change_at(list, i));
}

/* Writes the target of the change to the veneer's slot. */
static inline void plan_write_slot(const struct change *change)
{
    if (change->veneer != NULL)
        atomic_store_explicit(change->veneer->code.slot, change->target, memory_order_release);
}

#endif
