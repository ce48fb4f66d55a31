/*
 * base/grace.h - items that were removed from lookups, and are freed after a grace period.
 *
 * What a reader without locks may still hold is not freed when it is removed, but retired: it waits
 * in a queue. grace_start returns a token. When the host knows that every thread has passed a
 * quiescent point since that call, it calls grace_end with the token, which frees what was retired
 * before the call of grace_start. What was retired later waits for a later period. Periods may
 * overlap, and may end in any order and in any thread.
 *
 * Retiring allocates nothing and cannot fail: each item contains its entry of the queue.
 *
 * Guarantee: an item is freed only after a period that began after the item was removed.
 *  (A) An item is removed from lookups first, then grace_retire is called. It takes the lock and
 *      gives the item the current epoch. grace_start takes the lock, too, returns the current
 *      epoch, and begins the next one.
 *  (B) If the retirement has the lock first, the removal happens before the start. So a thread that
 *      passes a quiescent point after the start cannot find the item afterwards.
 *  (C) If the start has the lock first, the item's epoch is larger than the token.
 * Without the lock, the removal could still be in the store buffer of its core when the epoch is
 * read.
 *
 * The lock is taken last, after all other locks, and with it nothing else is called.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_GRACE_H
#define BASE_GRACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grace_entry;

/* Frees the item that contains the entry. Returns what grace_end adds up. Called without locks. */
typedef size_t grace_release(struct grace_entry *entry);

struct grace_entry {
    struct grace_entry *next;
    uint64_t epoch;
    grace_release *release;
};

/* Invariants: the queue is sorted by epoch, all epochs in it are at most `epoch`, and `end` points
 * to its terminating null pointer. */
struct grace {
    pthread_mutex_t lock;
    uint64_t epoch; /* the token of the next period; 1 or more */
    struct grace_entry *first;
    struct grace_entry **end;
};

void grace_init(struct grace *grace);
/* Destroys the queue, which must be empty. */
void grace_destroy(struct grace *grace);

/* Frees everything that waits. No reader may exist any more. */
void grace_drain(struct grace *grace);

/* Take and release the lock around a fork, and make it anew in the child. */
void grace_lock(struct grace *grace);
void grace_unlock(struct grace *grace);
void grace_renew_lock(struct grace *grace);

/* Retires what contains `entry`, after it was removed from lookups (A). */
void grace_retire(struct grace *grace, struct grace_entry *entry, grace_release *release);

/* Returns the epoch of what is retired now, for items that have no entry: they are freed after a
 * period whose token is at least that. They must have been removed from lookups before (A). */
uint64_t grace_epoch(struct grace *grace);

/* Starts a period and returns its token, which is not 0. */
uint64_t grace_start(struct grace *grace);

/* Selects what is freed at the end of a period. Called with the lock held. */
typedef bool grace_filter(const struct grace_entry *entry);

/* Ends the period with this token: frees what was retired before its start and is selected, oldest
 * first; all of it if `selects` is NULL. What is not selected waits for a later period. Returns the
 * sum of what the releases return. Does nothing if no period with this token was started. */
size_t grace_end(struct grace *grace, uint64_t token, grace_filter *selects);

#endif
