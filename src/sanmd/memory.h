/*
 * sanmd/memory.h - allocates pages from the system. malloc is not used, because the first callbacks
 * may run before it works, and because it may call this library itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_MEMORY_H
#define SANMD_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory; NULL if the system has no memory. Pages that are never accessed take no
 * memory. */
void *memory_map(size_t bytes);
void memory_unmap(void *memory, size_t bytes);
/* Releases the pages after the first `kept` bytes. Returns the number of bytes still mapped. */
size_t memory_trim(void *memory, size_t bytes, size_t kept);

#endif
