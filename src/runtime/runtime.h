/*
 * runtime/runtime.h - what loaders and modules need of a runtime.
 *
 * What must stay true:
 *  - `modules` holds every module that exists and is not retired, `retired` those that wait for
 *    a quiescent point; both are read and changed with `lock` held.
 *  - A module is in the index and owns its pages in the code space exactly while it is published.
 *  - The runtime lives as long as `references` is above 0: one for the host, one for each loader
 *    and engine.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/memory.h"
#include "code/space.h"
#include "index/index.h"
#include "patch/ic_set.h"

#include <cairn/runtime.h>
#include <pthread.h>
#include <stdatomic.h>

struct cairn_runtime {
    struct cairn_allocator allocator;
    struct code_space *space;
    struct index *index;
    struct ic_set ics;
    pthread_mutex_t lock;
    cairn_module *modules;
    cairn_module *retired;
    _Atomic uint32_t references;
    /* While the process forks: a visitor of inline caches does it, and has their lock already. */
    bool visitor_forks;
};

/* Every function that takes the lock takes it so. */
void runtime_lock(cairn_runtime *runtime);
void runtime_unlock(cairn_runtime *runtime);

/* From the first to the second, children that are forked get a copy of the runtime. */
void runtime_watch_forks(cairn_runtime *runtime);
void runtime_ignore_forks(cairn_runtime *runtime);

/* Before code is loaded, retired or changed, with no lock held: in a forked child, makes code
 * memory and locks its own. SYSTEM. */
CAIRN_MUST_CHECK enum cairn_status runtime_enter(cairn_runtime *runtime, struct cairn_error *error);

#endif
