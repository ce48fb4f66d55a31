/*
 * runtime/runtime.h - the private definition of a runtime, for loaders and modules.
 *
 * Invariants:
 *  - `modules` holds every module that exists and is not retired; `retired` holds the modules that
 *    wait for a quiescent point. Both are read and changed with `lock` held.
 *  - A module is in the index and owns its pages in the code space exactly while it is published.
 *  - The runtime is valid as long as `references` is above 0. The host, each loader and each engine
 *    have one reference.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/memory.h"
#include "code/space.h"
#include "record/published.h"
#include "site/cache_set.h"

#include <cairn/runtime.h>
#include <pthread.h>
#include <stdatomic.h>

struct cairn_runtime {
    struct cairn_allocator allocator;
    struct code_space *space;
    struct index *index;
    struct cache_set ics;
    pthread_mutex_t lock;
    cairn_module *modules;
    cairn_module *retired;
    _Atomic uint32_t references;
    /* Whether the process is forked by a visitor of inline caches, which already holds their lock.
     * False except during a fork. */
    bool visitor_forks;
};

/* Take and release the lock. In a forked child whose locks are still copies of its parent's,
 * runtime_lock first makes them anew. */
void runtime_lock(cairn_runtime *runtime);
void runtime_unlock(cairn_runtime *runtime);

/* Children that are forked between these two calls get a copy of the runtime. */
void runtime_watch_forks(cairn_runtime *runtime);
void runtime_ignore_forks(cairn_runtime *runtime);

/* Gives a forked child its own code memory and locks; does nothing in other processes. Must be
 * called before code is loaded, retired or changed, with no lock held. Errors: SYSTEM. */
CAIRN_MUST_CHECK enum cairn_status runtime_enter(cairn_runtime *runtime, struct cairn_error *error);

#endif
