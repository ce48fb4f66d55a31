/*
 * Runtimes in forked children: all their locks, and the patch words of all their sites.
 *
 * Lock order: the inline caches' lock, the runtime's, the code space's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"
#include "runtime/runtime.h"

#include <errno.h>

static void lock(void *user)
{
    cairn_runtime *runtime = user;
    runtime->visitor_forks = pthread_mutex_lock(&runtime->ics.lock) == EDEADLK;
    pthread_mutex_lock(&runtime->lock);
}

static void unlock(void *user)
{
    cairn_runtime *runtime = user;
    pthread_mutex_unlock(&runtime->lock);
    if (!runtime->visitor_forks)
        pthread_mutex_unlock(&runtime->ics.lock);
}

static void renew_locks(void *user)
{
    cairn_runtime *runtime = user;
    pthread_mutex_init(&runtime->lock, NULL);
    ic_set_renew_lock(&runtime->ics);
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

static void write_words(void *user)
{
    cairn_runtime *runtime = user;
    runtime_lock(runtime);
    each_table(runtime, site_table_write_words);
    runtime_unlock(runtime);
}

void runtime_watch_forks(cairn_runtime *runtime)
{
    static const struct code_fork_client client = {
        .lock = lock,
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

void runtime_lock(cairn_runtime *runtime)
{
    code_space_renew_locks(runtime->space);
    pthread_mutex_lock(&runtime->lock);
}

void runtime_unlock(cairn_runtime *runtime) { pthread_mutex_unlock(&runtime->lock); }

enum cairn_status runtime_enter(cairn_runtime *runtime, struct cairn_error *error)
{
    return code_space_after_fork(runtime->space, error);
}

enum cairn_status cairn_runtime_after_fork(cairn_runtime *runtime, struct cairn_error *error)
{
    return runtime_enter(runtime, error);
}
