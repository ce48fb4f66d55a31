/*
 * site/cache_set.h - all inline caches of a runtime, as the layers below src/ic see them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_CACHE_SET_H
#define SITE_CACHE_SET_H

#include "base/memory.h"
#include "code/space.h"

#include <cairn/ic.h>
#include <pthread.h>

struct cache_set;
struct inspect_descriptor;
struct site_inline;

/* What src/ic does for the layers below it. */
struct cache_functions {
    /* Frees the cache of a site whose module is being unloaded. No thread executes its code. */
    void (*unload)(cairn_ic *ic);
    /* Frees the state of the bytes of a site that is being destroyed. */
    void (*unload_inline)(struct site_inline *inlined);
};

/* Invariant: the list from `first` to `last` contains the caches that sites have, oldest first.
 * `lock` protects all of them. */
struct cache_set {
    struct cairn_allocator allocator;
    struct code_space *space;
    pthread_mutex_t lock;
    cairn_ic *first;
    cairn_ic *last;
    const struct cache_functions *functions; /* NULL before the first cache was created */
    struct inspect_descriptor *descriptor;   /* the runtime's, or NULL (base/inspect.h) */
};

void cache_set_init(struct cache_set *set, const struct cairn_allocator *allocator,
                    struct code_space *space);
/* Destroys the set. All modules must have been unloaded, and all caches freed. */
void cache_set_destroy(struct cache_set *set);
/* Makes the lock anew in a forked child, because a thread of the parent may have held it. */
void cache_set_renew_lock(struct cache_set *set);

/* Takes the lock to read what it protects. False if the thread has the lock already, because it is
 * in a visitor, or in a signal handler that has interrupted a function with this lock held. This
 * does not make the functions of caches async-signal-safe: a handler that has interrupted a
 * function with another lock held, such as cairn_runtime_quiesce, may wait for that lock
 * forever. */
bool cache_set_lock(struct cache_set *set);
/* Takes the lock to change what it protects. Errors: STATE if the thread has the lock already. On
 * an error the lock is not taken. */
enum cairn_status cache_set_enter(struct cache_set *set, struct cairn_error *error);
void cache_set_leave(struct cache_set *set);

#endif
