/*
 * code/stub.h - chunks: pages of code that are divided into stubs, for veneers and for stubs that
 * are added and removed while threads run.
 *
 * A chunk of veneers is written when it is added, and its code never changes until it is released.
 * So adding a veneer takes setting a bit and storing to its slot, and writes no code. Slots are on
 * a private page, so that a forked child has its own.
 *
 * A chunk of other stubs is empty at first. Its granules are written only while they belong to a
 * stub that has not been published. A published stub is retired before its granules are reused,
 * which happens only after a quiescent point and a barrier, so that no core still holds old code
 * when new code is written there. Such a chunk stays until its slab is destroyed, because lookups
 * take no lock.
 *
 * Invariants: a chunk is in one of the two lists of its kind: in `full` if nothing was free at the
 * last look, otherwise in `open`. In `open`, chunks of veneers have a free one. `retired` is a
 * subset of `taken`.
 *
 * All functions are called with the space's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_STUB_H
#define CODE_STUB_H

#include "code/state.h"

struct code_chunk {
    struct code_chunk *next;
    struct code_chunk **link; /* the pointer to this chunk in its list */
    /* The chunk of stubs that was made before this one, in any slab. */
    struct code_chunk *older;
    struct code_slab *slab;
    enum code_chunk_kind kind;
    uint64_t address;
    _Atomic uint64_t *slots; /* of veneers, one for each; otherwise NULL */
    uint32_t granule_bytes;  /* the size of a veneer, or CODE_STUB_GRANULE */
    uint32_t granule_count;
    uint32_t cursor; /* first granule of the next search */
    uint32_t taken_count;
    uint32_t retired_count;
    /* Bit map of the taken granules. It is followed by the bit map `retired`, and in chunks of
     * stubs by one pointer for each granule: the owner of its stub. */
    uint64_t taken[];
};

/* Takes a veneer of the slab. Adds a chunk if all veneers of this kind are in use. */
enum cairn_status stub_take_veneer(struct code_space *space, struct code_slab *slab,
                                   enum code_veneer_kind kind, struct code_stub *veneer,
                                   struct cairn_error *error);
_Atomic uint64_t *stub_slot(const struct code_stub *veneer);

/* Releases a veneer, or a stub that no thread has executed. Releases a chunk of veneers that is
 * then unused, if another chunk of this kind has a free veneer. */
void stub_release(struct code_space *space, const struct code_stub *stub);

/* Frees the chunks' descriptions. Their pages are released with the slab. */
void stub_free_chunks(const struct code_space *space, struct code_slab *slab);

#endif
