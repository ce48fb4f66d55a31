/* SPDX-License-Identifier: MIT */
#include "file/memory_budget.h"

#include "base/error.h"

#include <stddef.h>

bool budget_take(struct budget *budget, uint64_t size)
{
    if (size <= budget->limit - budget->used) {
        budget->used += size;
        return true;
    }
    budget->refused = size > UINT64_MAX - budget->used ? UINT64_MAX : budget->used + size;
    return false;
}

void budget_return(struct budget *budget, uint64_t size) { budget->used -= size; }

static void *reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct budget *budget = user;
    const struct cairn_allocator *source = &budget->source;
    if (new_size > old_size && !budget_take(budget, new_size - old_size))
        return NULL;
    void *moved = source->reallocate(source->user, block, old_size, new_size);
    if (new_size < old_size)
        budget_return(budget, old_size - new_size);
    else if (moved == NULL && new_size > old_size)
        budget_return(budget, new_size - old_size);
    return moved;
}

struct cairn_allocator budget_allocator(struct budget *budget)
{
    return (struct cairn_allocator){.reallocate = reallocate, .user = budget};
}

enum cairn_status budget_explain(struct budget *budget, const char *what, enum cairn_status status,
                                 struct cairn_error *error)
{
    if (status == CAIRN_ERROR_MEMORY && budget->refused != 0)
        error_set(error, CAIRN_ERROR_MEMORY, 0,
                  "%s needs more memory than the object may take: %llu bytes with what is used "
                  "already; the limit is %llu",
                  what, (unsigned long long)budget->refused, (unsigned long long)budget->limit);
    budget->refused = 0;
    return status;
}
