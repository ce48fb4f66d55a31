/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *malloc_reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size);
}

struct cairn_allocator memory_allocator(const struct cairn_allocator *chosen)
{
    if (chosen != NULL && chosen->reallocate != NULL)
        return *chosen;
    return (struct cairn_allocator){.reallocate = malloc_reallocate};
}

void *memory_new(const struct cairn_allocator *allocator, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total) || total == 0)
        return NULL;
    void *block = allocator->reallocate(allocator->user, NULL, 0, total);
    if (block != NULL)
        memset(block, 0, total);
    return block;
}

void *memory_resize(const struct cairn_allocator *allocator, void *block, size_t old_size,
                    size_t new_size)
{
    return allocator->reallocate(allocator->user, block, old_size, new_size);
}

char *memory_copy_string(const struct cairn_allocator *allocator, const char *text, size_t length)
{
    char *copy = memory_new(allocator, length + 1, 1);
    return copy == NULL ? NULL : memcpy(copy, text, length);
}

void memory_free_string(const struct cairn_allocator *allocator, const char *text)
{
    if (text != NULL)
        memory_free(allocator, (char *)(uintptr_t)text, strlen(text) + 1);
}

void memory_free(const struct cairn_allocator *allocator, void *block, size_t size)
{
    if (block != NULL)
        allocator->reallocate(allocator->user, block, size, 0);
}
