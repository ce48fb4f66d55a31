/*
 * site/veneers.h - the veneers of one site, for targets that its branch does not reach.
 *
 * Invariants:
 *  - A veneer is free, or taken by one change: from before the change writes the slot until it has
 *    written the instruction. No change takes a veneer that the instruction branches to. So while
 *    the instruction branches to a veneer, the slot holds the one target that belongs to it.
 *  - A veneer is used either for calls only or for jumps only. A thread that has executed a call,
 *    but not yet the veneer, reaches the target of some call, with its return address saved,
 *    however long it was stopped there.
 *  - All veneers for calls of one site are of one kind: framed veneers if the architecture needs
 *    registers saved around calls and the site does not save them.
 *  - Veneers stay with their site until its module is unloaded. There are as many of a kind as were
 *    reserved or ever needed at once: one in use, and one for each change in progress.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_VENEERS_H
#define SITE_VENEERS_H

#include "site/word.h"

struct site_veneer {
    struct code_veneer code;
    struct site_veneer *next; /* of the same site */
    uint64_t bits;            /* the site's branch to it */
    enum cairn_site_state branch;
    _Atomic uint32_t turns; /* how often it was taken and released: odd while it is taken */
};

/* Releases a veneer that the caller has taken. */
static inline void veneers_release(struct site_veneer *veneer)
{
    uint32_t turns = atomic_load_explicit(&veneer->turns, memory_order_relaxed);
    atomic_store_explicit(&veneer->turns, turns + 1, memory_order_release);
}

/* Whether calls at the site need a framed veneer, which saves the registers that the site does
 * not. */
static inline bool veneers_frame_calls(const cairn_site *site)
{
    return site->kind == CAIRN_RECORD_STACKMAP && !site->saves_toc &&
           site->table->arch->encode_framed_veneer != NULL;
}

/* Takes a free veneer of the site, or makes a new one. Lock-free and async-signal-safe if one is
 * free during the whole call. MEMORY, FULL, SYSTEM, RANGE. */
enum cairn_status veneers_take(cairn_site *site, enum cairn_site_state branch,
                               struct site_veneer **veneer, struct cairn_error *error);

/* Makes veneers until `count` of them are not taken. MEMORY, FULL, SYSTEM, RANGE: those that have
 * been made stay. */
enum cairn_status veneers_reserve(cairn_site *site, enum cairn_site_state branch, size_t count,
                                  struct cairn_error *error);

/* Returns the veneer that an instruction of the site branches to, or NULL. */
struct site_veneer *veneers_find(const cairn_site *site, uint64_t bits);

/* Frees the site's list. The code is freed with the block. */
void veneers_destroy(cairn_site *site);

#endif
