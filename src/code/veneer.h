/*
 * code/veneer.h - chunks of veneers that are written in advance.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_VENEER_H
#define CODE_VENEER_H

#include "code/state.h"

/* A page of veneers of one kind and a page with their slots. The veneers never change. */
struct code_chunk {
    struct code_chunk *next;
    enum code_veneer_kind kind;
    size_t code_page;
    size_t slot_page;
    uint32_t count;
    uint32_t used;
    /* Bit map of the veneers in use. */
    uint64_t taken[];
};

/* A veneer of a block. */
struct veneer_place {
    struct code_chunk *chunk;
    uint32_t index;
};

/* Takes a veneer of the slab. Adds a chunk if all veneers of this kind are in use. Called with the
 * lock held. */
enum cairn_status veneer_take(struct code_space *space, struct code_slab *slab,
                              enum code_veneer_kind kind, struct veneer_place *place,
                              struct cairn_error *error);

/* Releases a veneer, and its chunk if that is then unused and another chunk of this kind has a free
 * veneer. Called with the lock held. */
void veneer_give_back(struct code_space *space, struct code_slab *slab, struct veneer_place place);

uint64_t veneer_address(const struct code_space *space, const struct code_slab *slab,
                        struct veneer_place place);
_Atomic uint64_t *veneer_slot(const struct code_slab *slab, struct veneer_place place);

/* Frees the chunks' descriptions. Their pages are released with the slab. */
void veneer_free_chunks(const struct code_space *space, struct code_slab *slab);

#endif
