/*
 * base/pool.h - small objects of one size, close together.
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

/* Invariant: `free` is a list of the objects that are not in use, each of which begins with the
 * pointer to the next. Chunks are kept until the pool is released. */
struct pool {
    struct cairn_allocator allocator;
    size_t object_bytes;
    void *free;
    struct pool_chunk *chunks;
};

/* Initialises an empty pool. `object_bytes` is a multiple of 8. Objects whose size divides a cache
 * line of 64 bytes do not cross one. */
void pool_init(struct pool *pool, const struct cairn_allocator *allocator, size_t object_bytes);

/* Frees all memory. */
void pool_release(struct pool *pool);

/* Returns an object, whose contents are unspecified; NULL if memory runs out. */
void *pool_take(struct pool *pool);

/* Takes an object back. NULL is allowed. */
void pool_give(struct pool *pool, void *object);

#endif
