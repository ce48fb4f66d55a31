/*
 * The set of all inline caches of a runtime, and its retired caches, which wait for a quiescent
 * point.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ic/cache.h"

#include "base/error.h"

#include <errno.h>

/* Initialises a lock that detects if its owner takes it again. */
static void init_lock(struct ic_set *set)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&set->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void ic_set_init(struct ic_set *set, const struct cairn_allocator *allocator,
                 struct code_space *space)
{
    *set = (struct ic_set){.allocator = *allocator, .space = space};
    init_lock(set);
}

/* ---- Retired memory ---- */

static void free_caches(cairn_ic *ic)
{
    while (ic != NULL) {
        cairn_ic *next = ic->next;
        ic_free(ic);
        ic = next;
    }
}

static void free_calls(struct ic_set *set, struct ic_call *call)
{
    while (call != NULL) {
        struct ic_call *next = call->next_retired;
        memory_free(&set->allocator, call, sizeof *call);
        call = next;
    }
}

void ic_set_quiesce(struct ic_set *set)
{
    if (ic_set_enter(set, NULL) != CAIRN_OK)
        return;
    cairn_ic *retired = set->retired;
    struct ic_call *calls = set->retired_calls;
    set->retired = NULL;
    set->retired_calls = NULL;
    ic_set_leave(set);
    free_caches(retired);
    free_calls(set, calls);
}

void ic_set_destroy(struct ic_set *set)
{
    free_caches(set->retired);
    free_calls(set, set->retired_calls);
    pthread_mutex_destroy(&set->lock);
}

/* ---- The lock ---- */

void ic_set_renew_lock(struct ic_set *set) { init_lock(set); }

bool ic_set_lock(struct ic_set *set)
{
    code_space_renew_locks(set->space);
    return pthread_mutex_lock(&set->lock) != EDEADLK;
}

enum cairn_status ic_set_enter(struct ic_set *set, struct cairn_error *error)
{
    enum cairn_status status = code_space_after_fork(set->space, error);
    if (status != CAIRN_OK || pthread_mutex_lock(&set->lock) != EDEADLK)
        return status;
    return error_set(
        error, CAIRN_ERROR_STATE, 0,
        "a visitor of inline caches, or a signal handler that has interrupted a change "
        "of one, cannot change or create any");
}

void ic_set_leave(struct ic_set *set) { pthread_mutex_unlock(&set->lock); }
