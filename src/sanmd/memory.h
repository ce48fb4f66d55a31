/*
 * sanmd/memory.h - pages from the system: there may be no malloc yet when the first callbacks come,
 * and it may be one that asks this library.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_MEMORY_H
#define SANMD_MEMORY_H

#include <stddef.h>

/* Zeros; NULL if the system has none. Pages that are never touched cost nothing. */
void *memory_map(size_t bytes);
void memory_unmap(void *memory, size_t bytes);
/* Gives back what lies beyond the first `kept` bytes; returns how many bytes are left. */
size_t memory_trim(void *memory, size_t bytes, size_t kept);

#endif
