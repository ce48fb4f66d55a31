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
#include "patch/veneers.h"

struct change {
    cairn_site *site;
    /* What is wanted. */
    uint64_t target;
    uint8_t branch;  /* enum arch_branch */
    bool is_direct;  /* the target is a place in code, not a function pointer (arch/arch.h) */
    bool original;   /* LLVM's own instruction instead of a branch */
    bool is_settled; /* patch/commit.c; false when it has been planned */
    /* What patch/commit.c notes: the change's number, and how often the site was undone before. */
    uint32_t sequence;
    uint32_t undone;
    /* What plan_change adds. */
    uint64_t bits;              /* of the instruction */
    struct site_veneer *veneer; /* that it branches to, taken; NULL: straight to the target */
    /* While it is undone: bits of the instruction that it has written, and of the one to write. */
    uint64_t undo_from;
    uint64_t undo_to;
};

/* Changes of live sites of one space that are made together, each of them part of an element of
 * `stride` bytes. */
struct change_list {
    struct change *first;
    size_t count;
    size_t stride;
};

static inline struct change *change_at(const struct change_list *list, size_t index)
{
    return (struct change *)(void *)((char *)list->first + index * list->stride);
}

/* Makes it a branch at the site. The target may be anywhere. What plan_change adds, and what
 * patch/commit.c notes, is left out: batches have thousands of changes. */
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

/* What the site was at first. */
struct change plan_restore(cairn_site *site);

/* Finds the bits, and takes a veneer for a target out of reach. MEMORY, FULL, SYSTEM, RANGE. */
enum cairn_status plan_change(struct change *change, struct cairn_error *error);
/* Gives the veneer back, when the change has been made or will not be. */
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

/* The veneer's slot: what the instruction is to go to. */
static inline void plan_write_slot(const struct change *change)
{
    if (change->veneer != NULL)
        atomic_store_explicit(change->veneer->code.slot, change->target, memory_order_release);
}

#endif
