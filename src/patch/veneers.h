/*
 * patch/veneers.h - the veneers of one site, for targets that its branch does not reach.
 *
 * What must stay true:
 *  - A veneer is free, or taken by one change, from before that writes the slot until it has
 *    written the instruction, and has had its barrier if it asks for one. Nobody takes one that the
 *    instruction or the settled one (patch/site.h) goes to. So as long as one of these goes to a
 *    veneer, its slot holds the one target that was meant with it.
 *  - A veneer for calls stays one for calls, a veneer for jumps one for jumps: a thread that has
 *    executed the call, and not yet the veneer behind it, goes to where some call was to go,
 *    with its return address on the stack, however long it was stopped there.
 *  - A site's veneers for calls are all of one kind: framed where nothing is saved around the
 *    instruction and the architecture needs something to be.
 *  - Veneers stay with their site until its module goes. There are as many of a kind as were ever
 *    needed at once: one or two in use, and one for each thread that is changing the site.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_VENEERS_H
#define PATCH_VENEERS_H

#include "patch/word.h"

struct site_veneer {
    struct code_veneer code;
    struct site_veneer *next; /* of the same site */
    uint64_t bits;            /* of the site's branch to it */
    enum arch_branch branch;
    _Atomic bool taken;
};

/* Whether a call at the site goes through a veneer that keeps what the site does not. */
bool veneers_frame_calls(const cairn_site *site);

/* A free veneer of the site, or a new one. Lock-free and async-signal-safe if there is one.
 * MEMORY, FULL, SYSTEM, RANGE. */
enum cairn_status veneers_take(cairn_site *site, enum arch_branch branch,
                               struct site_veneer **veneer, struct cairn_error *error);

static inline void veneers_give_back(struct site_veneer *veneer)
{
    atomic_store_explicit(&veneer->taken, false, memory_order_release);
}

/* This one, if it is free. It looks whether the instruction goes to it twice: before, because that
 * is the cheap way to pass over the one in use; and after, when nobody else can bring it into use
 * any more. */
static inline bool veneers_try_to_take(const cairn_site *site, struct site_veneer *veneer)
{
    if (veneer->bits == word_read_instruction(site) ||
        atomic_load_explicit(&veneer->taken, memory_order_relaxed) ||
        atomic_exchange_explicit(&veneer->taken, true, memory_order_acq_rel))
        return false;
    if (veneer->bits != word_read_instruction(site) &&
        veneer->bits != atomic_load_explicit(&site->settled, memory_order_acquire))
        return true;
    veneers_give_back(veneer);
    return false;
}

/* The veneer that an instruction of the site goes to; NULL if there is none. */
struct site_veneer *veneers_find(const cairn_site *site, uint64_t bits);

/* Frees the site's list; the code goes with the block. */
void veneers_destroy(cairn_site *site);

#endif
