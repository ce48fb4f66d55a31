/* SPDX-License-Identifier: MIT */
#include "tests/allocator_support.h"

#include <stdlib.h>

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
