/*
 * patch/ic_set.h - all inline caches of a runtime.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_IC_SET_H
#define PATCH_IC_SET_H

#include "base/memory.h"
#include "code/space.h"

#include <cairn/ic.h>
#include <pthread.h>

struct ic_call;

/* Invariant: the list from `first` to `last` contains the caches that sites have, oldest first.
 * `retired` and `retired_calls` wait for a quiescent point. `lock` protects all of them. */
struct ic_set {
    struct cairn_allocator allocator;
    struct code_space *space;
    pthread_mutex_t lock;
    cairn_ic *first;
    cairn_ic *last;
    cairn_ic *retired;
    struct ic_call *retired_calls;
    /* Reserved for the code that makes slow paths; initially 0. */
    uint64_t entry_code;
};

void ic_set_init(struct ic_set *set, const struct cairn_allocator *allocator,
                 struct code_space *space);
/* Destroys the set. All modules must have been unloaded, so only retired caches are left. */
void ic_set_destroy(struct ic_set *set);
/* Makes the lock anew in a forked child, because a thread of the parent may have held it. */
void ic_set_renew_lock(struct ic_set *set);
/* Frees the retired caches and calls. */
void ic_set_quiesce(struct ic_set *set);

/* Takes the lock to read what it protects. False if the thread has the lock already, because it is
 * in a visitor, or in a signal handler that has interrupted a function with this lock held. This
 * does not make the functions of caches async-signal-safe: a handler that has interrupted a
 * function with another lock held, such as cairn_runtime_quiesce, may wait for that lock
 * forever. */
bool ic_set_lock(struct ic_set *set);
/* Takes the lock to change what it protects. In a forked child, first makes all code the child's
 * own. Errors: SYSTEM; STATE if the thread has the lock already. On an error the lock is not
 * taken. */
enum cairn_status ic_set_enter(struct ic_set *set, struct cairn_error *error);
void ic_set_leave(struct ic_set *set);

#endif
