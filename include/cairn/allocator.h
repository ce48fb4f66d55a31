/*
 * cairn/allocator.h - where Cairn's own tables come from.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_ALLOCATOR_H
#define CAIRN_ALLOCATOR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One function does it all, as in Lua: `block` NULL allocates, `new_size` 0
 * frees (and returns NULL), anything else resizes and keeps the contents.
 * `old_size` is what was asked for last. Returned blocks are aligned for any
 * type. NULL for a size above 0 means out of memory; the old block then stays.
 * Shrinking may not fail. It must be thread-safe if the runtime is used by
 * several threads. Cairn never calls it from a lookup, nor from a live patch of one site, except
 * to make the site another veneer (cairn/patch.h).
 */
struct cairn_allocator {
    void *(*reallocate)(void *user, void *block, size_t old_size, size_t new_size);
    void *user;
};

#ifdef __cplusplus
}
#endif
#endif
