/*
 * base/memory.h - the allocator hooks, with malloc as the default.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <cairn/allocator.h>
#include <stddef.h>

/* Returns `*chosen` if it has a function, otherwise an allocator that uses malloc. `chosen` may be
 * NULL. */
struct cairn_allocator memory_allocator(const struct cairn_allocator *chosen);

/* Allocates zeroed memory. Returns NULL if memory runs out, or if `count * size` overflows or is
 * 0. */
void *memory_new(const struct cairn_allocator *allocator, size_t count, size_t size);

/* Resizes a block. Returns NULL and leaves the block unchanged if memory runs out. */
void *memory_resize(const struct cairn_allocator *allocator, void *block, size_t old_size,
                    size_t new_size);

/* Copies the first `length` bytes of a string, and ends the copy with a zero byte. Returns NULL if
 * memory runs out. */
char *memory_copy_string(const struct cairn_allocator *allocator, const char *text, size_t length);

/* Frees a string that memory_copy_string has returned. NULL is allowed. */
void memory_free_string(const struct cairn_allocator *allocator, const char *text);

/* Frees a block of `size` bytes. NULL is allowed. */
void memory_free(const struct cairn_allocator *allocator, void *block, size_t size);

#endif
