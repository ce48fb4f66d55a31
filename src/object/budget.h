/*
 * object/budget.h - how much memory an object may take.
 *
 * All memory of an object comes from its budget's allocator, which refuses what would exceed the
 * limit as if there were no memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_BUDGET_H
#define OBJECT_BUDGET_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
    struct cairn_allocator source; /* where the memory comes from */
    uint64_t limit;                /* in bytes */
    uint64_t used;
    uint64_t refused; /* the limit that the last refused request would have needed; or 0 */
};

/* The allocator of `budget`, which must not move while it is used. */
struct cairn_allocator budget_allocator(struct budget *budget);

/* Counts memory that comes from elsewhere; false, and nothing counted, beyond the limit. */
bool budget_take(struct budget *budget, uint64_t size);
void budget_return(struct budget *budget, uint64_t size);

/* Something has ended with `status`: if that is because of the limit, the error says so, with
 * `what` needed the memory. Returns `status`. */
enum cairn_status budget_explain(struct budget *budget, const char *what, enum cairn_status status,
                                 struct cairn_error *error);

#endif
