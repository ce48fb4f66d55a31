/*
 * Barriers that fail when a test asks for it. The program defines its own `syscall`, which
 * overrides the C library's. This works for each thread separately, and under emulators.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BARRIER_SUPPORT_H
#define TESTS_BARRIER_SUPPORT_H

#include <pthread.h>
#include <stdbool.h>

/* The behaviour of this thread's barriers. All zero: the kernel's behaviour. */
struct support_barrier {
    /* Called instead of the barrier; returns whether the barrier succeeds. NULL: calls the
     * kernel. */
    bool (*instead)(void *user);
    void *user;
};

void support_set_barrier(struct support_barrier barrier);

/* Leaves barriers to the kernel that a thread makes while it holds this lock: code memory's, with
 * which it makes new code visible, such as a veneer's. */
void support_keep_barriers_under(pthread_mutex_t *lock);

#endif
