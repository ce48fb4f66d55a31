/* SPDX-License-Identifier: MIT */
#include "base/grace.h"

#include <assert.h>

void grace_init(struct grace *grace)
{
    *grace = (struct grace){.epoch = 1};
    grace->end = &grace->first;
    grace_renew_lock(grace);
}

void grace_destroy(struct grace *grace)
{
    assert(grace->first == NULL);
    pthread_mutex_destroy(&grace->lock);
}

void grace_drain(struct grace *grace)
{
    /* Releasing one item may retire another. */
    while (grace->first != NULL)
        grace_end(grace, grace_start(grace), NULL);
}

void grace_lock(struct grace *grace) { pthread_mutex_lock(&grace->lock); }

void grace_unlock(struct grace *grace) { pthread_mutex_unlock(&grace->lock); }

void grace_renew_lock(struct grace *grace) { pthread_mutex_init(&grace->lock, NULL); }

void grace_retire(struct grace *grace, struct grace_entry *entry, grace_release *release)
{
    grace_lock(grace);
    *entry = (struct grace_entry){.epoch = grace->epoch, .release = release};
    *grace->end = entry;
    grace->end = &entry->next;
    grace_unlock(grace);
}

uint64_t grace_epoch(struct grace *grace)
{
    grace_lock(grace);
    uint64_t epoch = grace->epoch;
    grace_unlock(grace);
    return epoch;
}

uint64_t grace_start(struct grace *grace)
{
    grace_lock(grace);
    uint64_t token = grace->epoch++;
    grace_unlock(grace);
    return token;
}

/* Removes what was retired before the period with the token began and is selected, and returns it.
 */
static struct grace_entry *take(struct grace *grace, uint64_t token, grace_filter *selects)
{
    struct grace_entry *taken = NULL;
    struct grace_entry **last = &taken;
    struct grace_entry **link = &grace->first;
    grace_lock(grace);
    while (token < grace->epoch && *link != NULL && (*link)->epoch <= token) {
        struct grace_entry *entry = *link;
        if (selects != NULL && !selects(entry)) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        *last = entry;
        last = &entry->next;
    }
    *last = NULL;
    if (*link == NULL)
        grace->end = link;
    grace_unlock(grace);
    return taken;
}

size_t grace_end(struct grace *grace, uint64_t token, grace_filter *selects)
{
    size_t sum = 0;
    struct grace_entry *entry = take(grace, token, selects);
    for (struct grace_entry *next; entry != NULL; entry = next) {
        next = entry->next;
        sum += entry->release(entry);
    }
    return sum;
}
