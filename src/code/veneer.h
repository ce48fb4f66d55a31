/*
 * code/veneer.h - chunks of prepared veneers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_VENEER_H
#define CODE_VENEER_H

#include "code/state.h"

/* A page of veneers of one kind and a page of their slots. The veneers never change. */
struct code_chunk {
    struct code_chunk *next;
    enum code_veneer_kind kind;
    size_t code_page;
    size_t slot_page;
    uint32_t count;
    uint32_t used;
    /* One bit a veneer: taken. */
    uint64_t taken[];
};

/* Which veneer a block has. */
struct veneer_place {
    struct code_chunk *chunk;
    uint32_t index;
};

/* Takes a veneer of the slab, preparing a chunk if all of its kind are taken. Under the lock. */
enum cairn_status veneer_take(struct code_space *space, struct code_slab *slab,
                              enum code_veneer_kind kind, struct veneer_place *place,
                              struct cairn_error *error);

/* Gives it back; chunks of which nothing is used go, but for one. Under the lock. */
void veneer_give_back(struct code_space *space, struct code_slab *slab, struct veneer_place place);

uint64_t veneer_address(const struct code_space *space, const struct code_slab *slab,
                        struct veneer_place place);
_Atomic uint64_t *veneer_slot(const struct code_slab *slab, struct veneer_place place);

/* Frees the chunks' descriptions; their pages go with the slab. */
void veneer_free_chunks(const struct code_space *space, struct code_slab *slab);

#endif
