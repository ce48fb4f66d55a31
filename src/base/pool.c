/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* A small runtime takes little, and a large one has its objects in few places. */
enum { CHUNK_BYTES_MIN = 4 << 10, CHUNK_BYTES_MAX = 64 << 10, LINE_BYTES = 64 };

struct pool_chunk {
    struct pool_chunk *next;
    size_t bytes;
};

void pool_init(struct pool *pool, const struct cairn_allocator *allocator, size_t object_bytes)
{
    assert(object_bytes % sizeof(void *) == 0);
    assert(object_bytes <= (CHUNK_BYTES_MAX - 2 * LINE_BYTES) / POOL_ARRAY_MAX);
    *pool = (struct pool){.allocator = *allocator, .object_bytes = object_bytes};
}

void pool_release(struct pool *pool)
{
    while (pool->chunks != NULL) {
        struct pool_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        memory_free(&pool->allocator, chunk, chunk->bytes);
    }
}

/* ---- Arrays that were given back ---- */

static void push(struct pool *pool, void *objects, size_t count)
{
    *(void **)objects = pool->free[count - 1];
    pool->free[count - 1] = objects;
}

static void *pop(struct pool *pool, size_t count)
{
    void **objects = pool->free[count - 1];
    if (objects != NULL)
        pool->free[count - 1] = *objects;
    return objects;
}

/* Takes the first part of a longer array. */
static void *divide(struct pool *pool, size_t count)
{
    for (size_t longer = count + 1; longer <= POOL_ARRAY_MAX; longer++) {
        unsigned char *objects = pop(pool, longer);
        if (objects == NULL)
            continue;
        push(pool, objects + count * pool->object_bytes, longer - count);
        return objects;
    }
    return NULL;
}

/* ---- Chunks ---- */

static void *take_of_rest(struct pool *pool, size_t count)
{
    const size_t bytes = count * pool->object_bytes;
    unsigned char *objects = pool->rest;
    if (bytes > pool->rest_bytes)
        return NULL;
    pool->rest += bytes;
    pool->rest_bytes -= bytes;
    return objects;
}

/* Adds a chunk for at least `count` objects. What is left of the one before is too short for as
 * many. */
static bool add_chunk(struct pool *pool, size_t count)
{
    const size_t needed = sizeof(struct pool_chunk) + LINE_BYTES + count * pool->object_bytes;
    const size_t left = pool->rest_bytes / pool->object_bytes;
    size_t bytes = pool->chunks == NULL ? CHUNK_BYTES_MIN : 2 * pool->chunks->bytes;
    while (bytes < needed)
        bytes *= 2;
    if (bytes > CHUNK_BYTES_MAX)
        bytes = CHUNK_BYTES_MAX;
    struct pool_chunk *chunk = memory_resize(&pool->allocator, NULL, 0, bytes);
    if (chunk == NULL)
        return false;
    if (left > 0)
        push(pool, pool->rest, left);
    *chunk = (struct pool_chunk){.next = pool->chunks, .bytes = bytes};
    pool->chunks = chunk;
    uintptr_t first = ((uintptr_t)(chunk + 1) + LINE_BYTES - 1) & ~(uintptr_t)(LINE_BYTES - 1);
    pool->rest = (unsigned char *)first;
    pool->rest_bytes = (size_t)((uintptr_t)chunk + bytes - first);
    return true;
}

/* ---- Taking and giving ---- */

void *pool_take(struct pool *pool, size_t count)
{
    if (count == 0)
        return NULL;
    if (count > POOL_ARRAY_MAX)
        return memory_new(&pool->allocator, count, pool->object_bytes);
    void *objects = pop(pool, count);
    if (objects == NULL)
        objects = take_of_rest(pool, count);
    if (objects == NULL)
        objects = divide(pool, count);
    if (objects == NULL && add_chunk(pool, count))
        objects = take_of_rest(pool, count);
    return objects;
}

void pool_give(struct pool *pool, void *objects, size_t count)
{
    if (objects == NULL)
        return;
    if (count > POOL_ARRAY_MAX)
        memory_free(&pool->allocator, objects, count * pool->object_bytes);
    else
        push(pool, objects, count);
}
