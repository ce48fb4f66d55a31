/*
 * The set of all inline caches of a runtime.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/cache_set.h"

#include "base/error.h"

#include <errno.h>

/* The lock detects that its owner takes it again. */
void cache_set_renew_lock(struct cache_set *set)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&set->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void cache_set_init(struct cache_set *set, const struct cairn_allocator *allocator,
                    struct code_space *space)
{
    *set = (struct cache_set){.allocator = *allocator, .space = space};
    cache_set_renew_lock(set);
}

void cache_set_destroy(struct cache_set *set) { pthread_mutex_destroy(&set->lock); }

bool cache_set_lock(struct cache_set *set) { return pthread_mutex_lock(&set->lock) != EDEADLK; }

enum cairn_status cache_set_enter(struct cache_set *set, struct cairn_error *error)
{
    if (cache_set_lock(set))
        return CAIRN_OK;
    return error_set(
        error, CAIRN_ERROR_STATE, 0,
        "a visitor of inline caches, or a signal handler that has interrupted a change "
        "of one, cannot change or create any");
}

void cache_set_leave(struct cache_set *set) { pthread_mutex_unlock(&set->lock); }
