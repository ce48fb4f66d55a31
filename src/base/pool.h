/*
 * base/pool.h - objects of one size, close together, one by one or as arrays.
 *
 * What a lookup reads of very many objects should be in few pages, because a page that the
 * processor has no translation for takes longer than a cache miss. Objects from an allocator are
 * mixed with everything else.
 *
 * Threads. The caller serialises all calls.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/memory.h"

#include <stddef.h>

struct pool_chunk;

/* Longer arrays fill pages of their own, and are allocated one by one. */
enum { POOL_ARRAY_MAX = 32 };

/* Invariant: `free[n]` is a list of arrays of n + 1 objects that are not in use, each of which
 * begins with the pointer to the next. Chunks are kept until the pool is released. Arrays are
 * divided, but not joined: a pool takes at most the memory that the arrays of each length once
 * took at the same time. */
struct pool {
    struct cairn_allocator allocator;
    size_t object_bytes;
    void *free[POOL_ARRAY_MAX];
    unsigned char *rest; /* what has not been used of the newest chunk */
    size_t rest_bytes;
    struct pool_chunk *chunks; /* newest first */
};

/* Initialises an empty pool. `object_bytes` is a multiple of 8. Objects whose size divides a cache
 * line of 64 bytes do not cross one. */
void pool_init(struct pool *pool, const struct cairn_allocator *allocator, size_t object_bytes);

/* Frees all memory, except long arrays that are in use. */
void pool_release(struct pool *pool);

/* Returns an array of `count` objects, whose contents are unspecified; NULL if memory runs out, or
 * if `count` is 0. */
void *pool_take(struct pool *pool, size_t count);

/* Takes an array back. NULL is allowed. */
void pool_give(struct pool *pool, void *objects, size_t count);

#endif
