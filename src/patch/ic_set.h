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

/* What must stay true: `first` to `last` are the caches that sites have, oldest first; `retired`
 * and `retired_calls` wait for a quiescent point. All with `lock` held. */
struct ic_set {
    struct cairn_allocator allocator;
    struct code_space *space;
    pthread_mutex_t lock;
    cairn_ic *first;
    cairn_ic *last;
    cairn_ic *retired;
    struct ic_call *retired_calls;
    /* For whoever makes slow paths; 0 at first. */
    uint64_t entry_code;
};

void ic_set_init(struct ic_set *set, const struct cairn_allocator *allocator,
                 struct code_space *space);
/* All modules, and so all caches but retired ones, are gone. */
void ic_set_destroy(struct ic_set *set);
/* In a forked child: a thread of the parent may have held it. */
void ic_set_renew_lock(struct ic_set *set);
/* Frees what was retired. */
void ic_set_quiesce(struct ic_set *set);

/* Takes the lock, to look at what it protects. False: the thread has it, because it is in a visitor
 * or in a signal handler that has interrupted another function. */
bool ic_set_lock(struct ic_set *set);
/* The same to change it; in a forked child all code is then its own. SYSTEM; STATE if the thread
 * has the lock. On an error the lock is not taken. */
enum cairn_status ic_set_enter(struct ic_set *set, struct cairn_error *error);
void ic_set_leave(struct ic_set *set);

#endif
