/*
 * Runtimes in forked children: all their locks, and the patch words of all their sites.
 *
 * Lock order: the inline caches' lock, the runtime's, the code space's. A visitor of inline caches
 * holds their lock and may fork, or create or destroy a runtime, and so wait for a thread that
 * forks. Therefore a thread that forks does not wait for that lock with others held.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <time.h>

/* pthread_mutex_trylock would not tell whether this thread has the lock. The time is over, so this
 * does not wait. */
static bool try_lock(void *user)
{
    static const struct timespec now = {0};
    cairn_runtime *runtime = user;
    int result = pthread_mutex_timedlock(&runtime->ics.lock, &now);
    if (result != 0 && result != EDEADLK)
        return false;
    runtime->visitor_forks = result == EDEADLK;
    pthread_mutex_lock(&runtime->lock);
    return true;
}

static void unlock(void *user)
{
    cairn_runtime *runtime = user;
    pthread_mutex_unlock(&runtime->lock);
    if (!runtime->visitor_forks)
        pthread_mutex_unlock(&runtime->ics.lock);
    runtime->visitor_forks = false;
}

static void renew_locks(void *user)
{
    cairn_runtime *runtime = user;
    pthread_mutex_init(&runtime->lock, NULL);
    cache_set_renew_lock(&runtime->ics);
    /* In the child of a visitor, the visit goes on. */
    if (runtime->visitor_forks)
        pthread_mutex_lock(&runtime->ics.lock);
    runtime->visitor_forks = false;
}

/* Includes retired modules, because threads may be executing their code. */
static void each_table(const cairn_runtime *runtime, void (*visit)(struct site_table *sites))
{
    for (const cairn_module *module = runtime->modules; module != NULL; module = module->next)
        visit(module->sites);
    for (const cairn_module *module = runtime->retired; module != NULL; module = module->next)
        visit(module->sites);
}

static void note_words(void *user) { each_table(user, site_table_note_words); }

static void write_words(void *user) { each_table(user, site_table_write_words); }

void runtime_watch_forks(cairn_runtime *runtime)
{
    static const struct code_fork_client client = {
        .try_lock = try_lock,
        .unlock = unlock,
        .renew_locks = renew_locks,
        .note_words = note_words,
        .write_words = write_words,
    };
    code_space_set_fork_client(runtime->space, &client, runtime);
}

void runtime_ignore_forks(cairn_runtime *runtime)
{
    code_space_set_fork_client(runtime->space, NULL, NULL);
}

void runtime_lock(cairn_runtime *runtime) { pthread_mutex_lock(&runtime->lock); }

void runtime_unlock(cairn_runtime *runtime) { pthread_mutex_unlock(&runtime->lock); }

bool runtime_lock_sites(cairn_runtime *runtime)
{
    bool is_taken = cache_set_lock(&runtime->ics);
    runtime_lock(runtime);
    return is_taken;
}

void runtime_unlock_sites(cairn_runtime *runtime, bool is_taken)
{
    runtime_unlock(runtime);
    if (is_taken)
        cache_set_leave(&runtime->ics);
}

enum cairn_status cairn_runtime_after_fork(cairn_runtime *runtime, struct cairn_error *error)
{
    return code_space_after_fork(runtime->space, error);
}
