/*
 * site/plan.h - requested changes of sites, and the bits of the instructions that make them.
 *
 * Everything that a change can be refused for is checked here. Planning writes nothing that
 * executing threads can see. With a dual mapping, nothing can fail after it except the barrier
 * (site/commit.h).
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
    uint8_t branch;     /* enum cairn_site_state */
    bool is_direct;     /* whether the target is a place in code, not a function pointer
                         * (arch/arch.h) */
    bool falls_through; /* of a no-op: whether the bytes after it are executed, not skipped */
    bool original;      /* whether the change restores LLVM's own instruction */
    /* Set by planning. */
    uint64_t bits;              /* the instruction */
    struct site_veneer *veneer; /* the veneer that it branches to, taken; NULL for a direct
                                 * branch */
};

/* One or more changes of live sites of one space, which are made together. Each is part of an
 * element of `stride` bytes. */
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
 * members that planning sets, because a list may have thousands of changes. */
static inline void plan_set_branch(struct change *change, cairn_site *site,
                                   enum cairn_site_state branch, uint64_t target)
{
    change->site = site;
    change->target = target;
    change->branch = (uint8_t)branch;
    change->is_direct = false;
    change->falls_through = false;
    change->original = false;
}

/* Returns such a change, with all other members 0. */
struct change plan_branch(cairn_site *site, enum cairn_site_state branch, uint64_t target);

/* Returns the change that restores the site's initial instruction. */
struct change plan_restore(cairn_site *site);

/* Checks that the strength is valid and supported. ARGUMENT, UNSUPPORTED. */
enum cairn_status plan_check_strength(struct code_space *space, enum cairn_strength strength,
                                      struct cairn_error *error);

/* Does the same, and checks that the code can be changed (code_space_check_own). SYSTEM. */
enum cairn_status plan_check_module(const struct site_table *sites, enum cairn_strength strength,
                                    struct cairn_error *error);

/* Returns why plan_check_live refuses a site with this form. The caller passes the form that it
 * has decided by, because the site may have lost its inline cache since. UNMANAGED, STATE. */
enum cairn_status plan_refuse(const cairn_site *site, enum site_form form,
                              struct cairn_error *error);

/* Checks that the site can be changed by one store while threads execute it, and has the form:
 * SITE_FORM_CACHE for changes by its inline cache, otherwise SITE_FORM_INITIAL. UNMANAGED,
 * STATE. */
static inline enum cairn_status plan_check_live(const cairn_site *site, enum site_form expected,
                                                struct cairn_error *error)
{
    enum site_form form = (enum site_form)atomic_load_explicit(&site->form, memory_order_relaxed);
    return site->live && form == expected ? CAIRN_OK : plan_refuse(site, form, error);
}

/* Computes the bits of the instruction, and takes a veneer if the target is out of reach. MEMORY,
 * FULL, SYSTEM, RANGE. */
enum cairn_status plan_change(struct change *change, struct cairn_error *error);

/* Checks and plans a change. `*checked` is the module that was checked last, or NULL: the next site
 * mostly belongs to the same module. */
static inline enum cairn_status plan_one(struct change *change, enum site_form form,
                                         enum cairn_strength strength,
                                         const struct site_table **checked,
                                         struct cairn_error *error)
{
    const struct site_table *sites = change->site->table;
    enum cairn_status status = CAIRN_OK;
    if (sites != *checked)
        status = plan_check_module(sites, strength, error);
    *checked = sites;
    if (status == CAIRN_OK)
        status = plan_check_live(change->site, form, error);
    return status == CAIRN_OK ? plan_change(change, error) : status;
}

/* Checks and plans all changes of the list. On an error no change has a veneer. */
enum cairn_status plan_all(const struct change_list *list, enum site_form form,
                           enum cairn_strength strength, struct cairn_error *error);

/* Makes the veneers that `count` changes of the site need at once, so that planning them takes no
 * lock. MEMORY, FULL, SYSTEM, RANGE. */
enum cairn_status plan_reserve(cairn_site *site, uint32_t count, struct cairn_error *error);

/* Releases the veneer, when the change has been made or is abandoned. */
static inline void plan_release(const struct change *change)
{
    if (change->veneer != NULL)
        veneers_release(change->veneer);
}

/* Writes the target of the change to the veneer's slot. */
static inline void plan_write_slot(const struct change *change)
{
    if (change->veneer != NULL)
        atomic_store_explicit(change->veneer->code.slot, change->target, memory_order_release);
}

#endif
