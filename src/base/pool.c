/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <stdint.h>

enum { CHUNK_BYTES = 16 << 10, LINE_BYTES = 64 };

struct pool_chunk {
    struct pool_chunk *next;
};

void pool_init(struct pool *pool, const struct cairn_allocator *allocator, size_t object_bytes)
{
    *pool = (struct pool){.allocator = *allocator, .object_bytes = object_bytes};
}

void pool_release(struct pool *pool)
{
    while (pool->chunks != NULL) {
        struct pool_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        memory_free(&pool->allocator, chunk, CHUNK_BYTES);
    }
}

/* Adds a chunk. Its first object is the next one that is taken. */
static void add_chunk(struct pool *pool)
{
    struct pool_chunk *chunk = memory_resize(&pool->allocator, NULL, 0, CHUNK_BYTES);
    if (chunk == NULL)
        return;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    uintptr_t first = ((uintptr_t)(chunk + 1) + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1);
    size_t count = ((uintptr_t)chunk + CHUNK_BYTES - first) / pool->object_bytes;
    while (count-- > 0)
        pool_give(pool, (void *)(first + count * pool->object_bytes));
}

void *pool_take(struct pool *pool)
{
    if (pool->free == NULL)
        add_chunk(pool);
    void **object = pool->free;
    if (object != NULL)
        pool->free = *object;
    return object;
}

void pool_give(struct pool *pool, void *object)
{
    if (object == NULL)
        return;
    *(void **)object = pool->free;
    pool->free = object;
}
