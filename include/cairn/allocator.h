/*
 * cairn/allocator.h - the allocator for Cairn's own tables.
 *
 * Threads: it must be thread-safe if several threads use the runtime. Functions that signal
 * handlers may call do not call it.
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
 * An allocator: one function that allocates, resizes and frees, as in Lua.
 *
 * `reallocate` allocates if `block` is NULL; it frees the block and returns NULL if `new_size` is
 * 0; otherwise it resizes the block and preserves its contents. `old_size` is the size of the last
 * request for the block, in bytes. Returned blocks must be aligned for any type. If `new_size` is
 * not 0, NULL means out of memory, and the old block must remain valid. Shrinking must not fail.
 *
 * Lookups never call it. Patching a single live site calls it only to change the site's veneer
 * (cairn/patch.h).
 */
struct cairn_allocator {
    void *(*reallocate)(void *user, void *block, size_t old_size, size_t new_size);
    void *user;
};

#ifdef __cplusplus
}
#endif
#endif
