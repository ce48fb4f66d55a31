/* SPDX-License-Identifier: MIT */
#include "llvm/heap.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A chunk is smaller than those that the C library maps one by one. */
enum { CHUNK_BYTES = 1 << 16, CHUNKS = 32 };

static void populate(void *chunk)
{
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)chunk & ~(page - 1);
    madvise((void *)begin, (uintptr_t)chunk + CHUNK_BYTES - begin, MADV_POPULATE_WRITE);
#else
    (void)chunk;
#endif
}

/* The last chunk stays allocated. Without it, the C library would return the memory before it to
 * the system. */
void *heap_populate(void)
{
    void *chunks[CHUNKS];
    for (size_t i = 0; i < CHUNKS; i++) {
        chunks[i] = malloc(CHUNK_BYTES);
        if (chunks[i] != NULL)
            populate(chunks[i]);
    }
    for (size_t i = 0; i + 1 < CHUNKS; i++)
        free(chunks[i]);
    return chunks[CHUNKS - 1];
}

void heap_release(void *last) { free(last); }
