/* SPDX-License-Identifier: MIT */
#include "tests/allocator_support.h"

#include <stdlib.h>
#include <string.h>

static void *count_reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct support_allocator *allocator = user;
    if (new_size == 0) {
        allocator->outstanding_bytes -= old_size;
        free(block);
        return NULL;
    }
    if (++allocator->calls == allocator->fail_at)
        return NULL;
    void *grown = realloc(block, new_size);
    if (grown == NULL)
        abort();
    allocator->outstanding_bytes += new_size - old_size;
    return grown;
}

struct cairn_allocator support_counting(struct support_allocator *allocator)
{
    return (struct cairn_allocator){.reallocate = count_reallocate, .user = allocator};
}

static void *poison_reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    void *moved = new_size == 0 ? NULL : malloc(new_size);
    if (new_size != 0 && moved == NULL)
        abort();
    if (block == NULL)
        return moved;
    if (moved != NULL)
        memcpy(moved, block, old_size < new_size ? old_size : new_size);
    memset(block, 0xA5, old_size);
    /* Without this, compilers leave out what is written to memory that is then freed. */
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
    return moved;
}

struct cairn_allocator support_poisoning(void)
{
    return (struct cairn_allocator){.reallocate = poison_reallocate};
}
