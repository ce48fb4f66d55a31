/*
 * code/stub.h - chunks of code memory for stubs that are added and removed while threads run.
 *
 * A chunk is one page, divided into granules. Granules are written only while they belong to a stub
 * that has not been published. A published stub is retired before its granules are reused, which
 * happens only after a quiescent point and a barrier, so that no core still holds old code when new
 * code is written there.
 *
 * Invariants: a chunk is either in its slab's `stub_chunks` (some of it may be free) or in
 * `full_stub_chunks` (nothing was free at the last look), never in both. Chunks stay until their
 * slab is destroyed. `retired` is a subset of `taken`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_STUB_H
#define CODE_STUB_H

#include "code/state.h"

struct code_stub_chunk {
    struct code_stub_chunk *next;
    /* The chunk that was made before this one, in any slab. For lookups, which take no lock. */
    struct code_stub_chunk *older;
    uint64_t address;
    size_t page;
    uint32_t granule_count;
    uint32_t cursor; /* first granule of the next search */
    uint32_t retired_count;
    /* Bit map of the taken granules. It is followed by the bit map `retired`, and by one pointer
     * for each granule: the owner of the stub that the granule belongs to. */
    uint64_t taken[];
};

/* Frees the chunks' descriptions. Their pages are released with the slab. */
void stub_free_chunks(const struct code_space *space, struct code_slab *slab);

#endif
