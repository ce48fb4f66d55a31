/*
 * site/inline.h - the bytes of a site after its patch word, in which an inline cache keeps the code
 * of its first case or its first two cases.
 *
 * The bytes are written only while no thread can be in them:
 *  (I) At first the word branches over them (site/site.h), so they are free. When a cache has
 * written them and made them visible to all cores, with a barrier, it makes the word a no-op. When
 * it makes the word a branch again, threads may still be in the bytes, so they wait for a grace
 *      period, as the code of a cache does that was replaced.
 *  (J) No return address is in the bytes. Calls at the word would return into them, so a site that
 *      ever was a call is excluded, and there can be no call until the bytes are restored. A
 * cache's exits return to the end of the site. (K) The branch that a miss takes is one instruction
 * in one patch word. A change that keeps the first case replaces it with one store, like (A) to (D)
 * of site/commit.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_INLINE_H
#define SITE_INLINE_H

#include "site/site.h"

enum inline_state {
    INLINE_FREE,   /* no thread can be in the bytes */
    INLINE_IN_USE, /* the patch word is a no-op */
    INLINE_WAITING /* for the end of a grace period */
};

/* Allocated for a site's first cache. Lives until the site is destroyed, or longer if it waits. */
struct site_inline {
    struct grace_entry retired; /* while it waits */
    struct grace_entry joining; /* while the second case waits to be written after the first */
    bool is_joining;
    struct cache_set *set;
    cairn_site *site; /* NULL when the site was destroyed */
    enum inline_state state;
    /* The current bytes in private memory, for forked children. */
    uint8_t bytes[ARCH_CACHE_INLINE_BYTES_MAX];
};

static inline uint64_t inline_address(const cairn_site *site)
{
    return site->address + site->return_offset;
}

static inline size_t inline_size(const cairn_site *site)
{
    return site->byte_count - site->return_offset;
}

/* Whether a cache of the site may use the bytes. */
static inline bool inline_is_possible(const cairn_site *site)
{
    return site->has_inline_space && !atomic_load_explicit(&site->was_called, memory_order_relaxed);
}

#endif
