/*
 * base/memory.h - the allocator hooks, with malloc as the default.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <cairn/allocator.h>
#include <stddef.h>

/* `chosen` itself if it names a function, otherwise an allocator over malloc. `chosen` may be NULL.
 */
struct cairn_allocator memory_allocator(const struct cairn_allocator *chosen);

/* Zeroed memory; NULL if there is none, or if `count * size` overflows or is 0. */
void *memory_new(const struct cairn_allocator *allocator, size_t count, size_t size);

/* NULL (and the old block stays) if there is no memory. */
void *memory_resize(const struct cairn_allocator *allocator, void *block, size_t old_size,
                    size_t new_size);

/* NULL is allowed. */
void memory_free(const struct cairn_allocator *allocator, void *block, size_t size);

#endif
