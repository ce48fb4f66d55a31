/*
 * file/memory_budget.h - limits the memory of an object.
 *
 * All memory of an object comes from the allocator of its budget. A request that would exceed the
 * limit fails as if there were no memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_MEMORY_BUDGET_H
#define FILE_MEMORY_BUDGET_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
    struct cairn_allocator source; /* allocator that provides the memory */
    uint64_t limit;                /* bytes */
    uint64_t used;
    uint64_t refused; /* limit that the last refused request would have needed; or 0 */
};

/* Returns the allocator of `budget`. The budget must not move while the allocator is used. */
struct cairn_allocator budget_allocator(struct budget *budget);

/* Counts memory that comes from elsewhere. Returns false, and counts nothing, if that would exceed
 * the limit. */
bool budget_take(struct budget *budget, uint64_t size);
void budget_return(struct budget *budget, uint64_t size);

/* Explains in `error` that the limit was exceeded, if `status` was caused by it. `what` names the
 * part that needed the memory. Returns `status`. */
enum cairn_status budget_explain(struct budget *budget, const char *what, enum cairn_status status,
                                 struct cairn_error *error);

#endif
