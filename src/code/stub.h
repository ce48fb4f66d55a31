/*
 * code/stub.h - chunks of code memory for stubs that come and go while threads run.
 *
 * A chunk is one page, cut into granules. Its bytes change only while they belong to a stub that
 * nobody has been shown yet; a stub that was shown is retired, and its granules are taken again
 * only after a quiescent point and a barrier, so that no core has anything of the old code left
 * when new code is written there.
 *
 * What must stay true: a chunk is in its slab's `stub_chunks` (some of it may be free) or in
 * `full_stub_chunks` (nothing was free when it was last looked at), never in both; chunks stay
 * until their slab goes. `retired` is a subset of `taken`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_STUB_H
#define CODE_STUB_H

#include "code/state.h"

struct code_stub_chunk {
    struct code_stub_chunk *next;
    /* Of all slabs, the one that was made before; for lookups, which take no lock. */
    struct code_stub_chunk *older;
    uint64_t address;
    size_t page;
    uint32_t granule_count;
    uint32_t cursor; /* where to look for room next */
    uint32_t retired_count;
    /* One bit a granule each; `retired` follows `taken`, and behind both is a pointer a granule:
     * the owner of the stub that it belongs to. */
    uint64_t taken[];
};

/* Frees the chunks' descriptions; their pages go with the slab. */
void stub_free_chunks(const struct code_space *space, struct code_slab *slab);

#endif
