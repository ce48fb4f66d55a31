/*
 * code/veneer.h - the code and the slots of veneers, in parts of pages.
 *
 * The code of a veneer does not change until the veneer is released; its slot does. The slot is in
 * the slab's data, so that a forked child has its own.
 *
 * All functions are called with the space's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_VENEER_H
#define CODE_VENEER_H

#include "code/state.h"

/* Offsets are counted from the start of the slab. */
struct veneer {
    uint32_t code;
    uint32_t slot;
    enum code_veneer_kind kind;
};

/* Takes space for a veneer of the slab and writes its code. It is visible to all cores. Errors:
 * FULL, SYSTEM, MEMORY, RANGE; nothing is taken. */
enum cairn_status veneer_take(struct code_space *space, struct code_slab *slab,
                              enum code_veneer_kind kind, struct veneer *veneer,
                              struct cairn_error *error);
void veneer_release(struct code_space *space, struct code_slab *slab, const struct veneer *veneer);

uint64_t veneer_address(const struct code_slab *slab, const struct veneer *veneer);
_Atomic uint64_t *veneer_slot(const struct code_slab *slab, const struct veneer *veneer);

#endif
