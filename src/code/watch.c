/* SPDX-License-Identifier: MIT */
#include "code/watch.h"

void code_watchers_init(struct code_watchers *watchers)
{
    pthread_mutex_init(&watchers->lock, NULL);
    atomic_init(&watchers->first, NULL);
    atomic_init(&watchers->keeps_objects, false);
}

void code_watchers_renew(struct code_watchers *watchers)
{
    pthread_mutex_init(&watchers->lock, NULL);
    watchers->is_child = true;
}

void code_watchers_destroy(struct code_watchers *watchers)
{
    pthread_mutex_destroy(&watchers->lock);
}

static void note_keepers(struct code_watchers *watchers)
{
    bool keeps = false;
    for (const struct code_watcher *watcher = watchers->first; watcher != NULL;
         watcher = watcher->next)
        keeps |= watcher->keeps_objects;
    atomic_store_explicit(&watchers->keeps_objects, keeps, memory_order_relaxed);
}

void code_watchers_add(struct code_watchers *watchers, struct code_watcher *watcher,
                       void (*begin_watching)(struct code_watcher *watcher))
{
    pthread_mutex_lock(&watchers->lock);
    if (watchers->is_child)
        atomic_store_explicit(&watchers->first, NULL, memory_order_relaxed);
    watchers->is_child = false;
    begin_watching(watcher);
    watcher->next = watchers->first;
    atomic_store_explicit(&watchers->first, watcher, memory_order_release);
    note_keepers(watchers);
    pthread_mutex_unlock(&watchers->lock);
}

void code_watchers_remove(struct code_watchers *watchers, struct code_watcher *watcher)
{
    pthread_mutex_lock(&watchers->lock);
    struct code_watcher *before = NULL;
    struct code_watcher *found = watchers->first;
    while (found != NULL && found != watcher) {
        before = found;
        found = found->next;
    }
    if (found != NULL && before != NULL)
        before->next = watcher->next;
    else if (found != NULL)
        atomic_store_explicit(&watchers->first, watcher->next, memory_order_release);
    note_keepers(watchers);
    pthread_mutex_unlock(&watchers->lock);
}

/* Takes the lock and returns the first watcher that is to be told, or NULL. */
static struct code_watcher *begin(struct code_watchers *watchers)
{
    pthread_mutex_lock(&watchers->lock);
    return watchers->is_child ? NULL : watchers->first;
}

void code_watchers_module(struct code_watchers *watchers, const void *module, bool is_added)
{
    if (!code_watchers_exist(watchers))
        return;
    for (struct code_watcher *watcher = begin(watchers); watcher != NULL; watcher = watcher->next)
        (is_added ? watcher->module_added : watcher->module_removed)(watcher, module);
    pthread_mutex_unlock(&watchers->lock);
}

void code_watchers_code(struct code_watchers *watchers, const struct code_note *note)
{
    if (!code_watchers_exist(watchers))
        return;
    for (struct code_watcher *watcher = begin(watchers); watcher != NULL; watcher = watcher->next)
        watcher->code_added(watcher, note);
    pthread_mutex_unlock(&watchers->lock);
}

void code_watchers_code_removed(struct code_watchers *watchers, uint64_t address)
{
    if (!code_watchers_exist(watchers))
        return;
    for (struct code_watcher *watcher = begin(watchers); watcher != NULL; watcher = watcher->next)
        watcher->code_removed(watcher, address);
    pthread_mutex_unlock(&watchers->lock);
}
